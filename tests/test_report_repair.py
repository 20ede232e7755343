"""What `stackfix repair` and `undo` print, and their JSON documents, from records alone."""

from __future__ import annotations

from dataclasses import replace

from stackfix.apply.records import Applied, Kept, Pending, Process, Undone
from stackfix.diagnose.finding_records import Diagnosis
from stackfix.plan.records import (
    Action,
    Change,
    InstallWheel,
    Left,
    MakeLink,
    Node,
    Plan,
    SetAside,
    WriteFile,
)
from stackfix.report.lines import Manner
from stackfix.report.repair import plan_lines
from stackfix.report.repair_ended import (
    applied_lines,
    load_verdict,
    pending_lines,
    surprise_lines,
    undone_lines,
    verified_lines,
)
from stackfix.report.repair_json import applied_document, plan_document, verified_document
from stackfix.report.repair_records import Verified
from stackfix.report.style import plain
from stackfix.verify.records import Probe, ProbeStep
from tests.test_report_check import CLEAN, NOTE, PLAIN, SHADOW, SICK

ABSENT, FILE = Node(kind="absent"), Node(kind="file", sha256="ab", mode=0o644)
HOOK = Action(
    id="preload-hook-1", kind="preload-hook", summary="Load it first", cures=("SF101", "SF101"),
    steps=(WriteFile(path="site/hook.py", text="new\nsame\n"),),
    changes=(Change(path="site/hook.py", before=ABSENT, after=FILE),))
MIXED = Action(
    id="relink-1", kind="relink", summary="Link it", cures=(),
    steps=(MakeLink(path="lib/a", target="b"), SetAside(path="lib/old"), WriteFile(path="bin/activate", text="b\n")),
    changes=(Change(path="lib/a", before=FILE, after=Node(kind="link", target="b")),
             Change(path="lib/old", before=FILE, after=ABSENT), Change(path="bin/activate", before=FILE, after=FILE)))
INSTALL = Action(
    id="install-1", kind="install", summary="Install x 2", cures=("SF201",), command="uv pip install x==2",
    steps=(InstallWheel(project="x", version="2", file="x-2.whl", sha256="cd", source="x==2", site="site",
                        replaces=("x 1",)),),
    changes=(Change(path="site/x-1.dist-info", before=Node(kind="folder"), after=ABSENT),
             Change(path="site/x-2.dist-info", before=ABSENT, after=Node(kind="folder"))))
ADVICE = Action(id="advice-1", kind="advice", summary="Update the driver", cures=("SF901",), steps=(), changes=(),
                command="sudo one\nsudo two")
PLAN = Plan(prefix="/venv", actions=(HOOK,), left=())
WORKS = ProbeStep(name="load torch", verdict="works", reason=None, detail="torch 2.3.1", accuracy=None, seconds=1.0,
                  libraries=("/venv/lib/x.so",))
PROVEN = Verified(findings=(), surprises=(), load=Probe(verdict="works", reason=None, device=None, steps=(WORKS,)),
                  kernel=None, reason="kernels: no GPU")
APPLIED = Applied(prefix="/venv", number=3, folder=".stackfix/0003", actions=("relink-1",), made=("lib/a",),
                  kept=(Kept(path="lib/a", copy=".stackfix/0003/kept/1/lib/a"),), processes=())


def shown(plan: Plan, diagnosis: Diagnosis = SICK, manner: Manner = PLAIN) -> list[str]:
    return list(plan_lines(plan, diagnosis, {"bin/activate": "a\n"}.get, manner))


def test_an_action_says_what_it_cures_and_changes() -> None:
    assert shown(PLAN) == [
        "1 action for /venv: 1 cure of 1 error, by simulation", f"error SF101 {SHADOW.summary}", "",
        "1. preload-hook  cures SF101 (2 times)", "   Load it first", "   write     site/hook.py (new)"]


def test_a_cure_is_counted_once_however_many_actions_it_takes() -> None:
    two = replace(PLAN, actions=(replace(MIXED, cures=("SF101",)), replace(HOOK, notes=("so it is",))))
    lines = shown(two)
    assert lines[0] == "2 actions for /venv: 1 cure of 1 error, by simulation"
    assert "   note: so it is" in lines
    half = replace(two, left=(Left(code=SHADOW.code, summary=SHADOW.summary, reason="of half of it"),))
    assert shown(half)[0] == "2 actions for /venv: 0 cures of 1 error, by simulation"


def test_where_scripts_are_there_the_headline_says_what_to_do() -> None:
    left = Left(code=SHADOW.code, summary=SHADOW.summary, reason="…", by_scripts=True)
    assert shown(Plan(prefix="/venv", actions=(), left=(left,), method="activate"))[0] == (
        "1 error in /venv, and the scripts of an earlier repair cure it once it is activated anew")


def test_each_kind_of_change_has_its_word() -> None:
    lines = shown(replace(PLAN, actions=(MIXED, INSTALL)))
    assert "   link      lib/a -> b (the old one is kept)" in lines
    assert "   set aside lib/old" in lines
    assert "   write     bin/activate (the old one is kept)" in lines
    assert "   install   site/x-2.dist-info (new)" in lines
    assert "   by hand   uv pip install x==2" in lines
    assert lines[0] == "2 actions for /venv: 1 cure of 1 error, by simulation"


def test_verbose_shows_texts() -> None:
    lines = shown(replace(PLAN, actions=(HOOK, MIXED)), manner=Manner(style=plain, verbose=True))
    assert lines[lines.index("   | --- nothing"):][:5] == [
        "   | --- nothing", "   | +++ site/hook.py", "   | @@ -0,0 +1,2 @@", "   | +new", "   | +same"]
    assert lines[lines.index("   | --- bin/activate"):][3:5] == ["   | -a", "   | +b"]


def test_many_changes_are_counted() -> None:
    many = replace(HOOK, changes=tuple(replace(HOOK.changes[0], path=f"site/{number}") for number in range(20)))
    lines = shown(replace(PLAN, actions=(many,)))
    assert [line for line in lines if line.startswith("   write ")] == [
        f"   write     site/{number} (new)" for number in range(8)]
    assert "   … 12 more (-v)" in lines


def test_what_is_left_has_its_reason_and_advice_its_commands() -> None:
    plan = replace(PLAN, actions=(ADVICE,), left=(Left(code="SF901", summary="too old", reason="it is outside"),))
    assert shown(plan) == [
        "1 error in /venv, and no change of it would cure any", f"error SF101 {SHADOW.summary}", "",
        "left as it is:", "  SF901 too old", "    because it is outside", "",
        "for you, or whoever administers the machine; nothing of it is run:", "  SF901 Update the driver",
        "      sudo one", "      sudo two"]


def test_variables_of_activation_are_told() -> None:
    lines = shown(replace(PLAN, variables=(("LD_LIBRARY_PATH", "/a:/b"), ("LD_PRELOAD", None))))
    assert lines[-2:] == ["   LD_LIBRARY_PATH=/a:/b", "   LD_PRELOAD unset"]


def test_there_is_nothing_to_repair_where_nothing_is_above_a_note() -> None:
    empty = replace(PLAN, actions=())
    assert shown(empty, CLEAN) == ["nothing to repair in /venv"]
    assert shown(empty, replace(CLEAN, findings=(NOTE,))) == ["nothing to repair in /venv"]


def test_a_hostile_name_reaches_no_terminal() -> None:
    change = Change(path="site/\x1b[2J\nx", before=ABSENT, after=FILE)
    lines = shown(replace(PLAN, actions=(replace(HOOK, changes=(change,), summary="a\x1bb"),)))
    assert not any("\x1b" in line or "\n" in line for line in lines)


def test_an_applied_plan_says_where_the_old_is() -> None:
    assert list(applied_lines(APPLIED, PLAIN)) == [
        "changed: 1 path made, 1 kept in /venv/.stackfix/0003"]


def test_each_proof_is_a_line() -> None:
    assert list(verified_lines(PROVEN, "stackfix undo", PLAIN)) == [
        "  simulation  clean        nothing above a note is found", "  load        works        torch 2.3.1",
        "  kernels     cannot tell  not tried", "  because kernels: no GPU", "`stackfix undo` takes it back"]
    failed = replace(WORKS, verdict="fails", reason="crashed", detail="it died")
    probe = Probe(verdict="fails", reason="crashed", device=None, steps=(WORKS, failed))
    lines = list(verified_lines(replace(PROVEN, load=probe, findings=(SHADOW,), reason=""), "undo it", PLAIN))
    assert lines == ["not proven: the change is made and stays, but what was tried afterwards fails",
                     "  simulation  findings     1 error left", "  load        fails        load torch: it died",
                     "  kernels     cannot tell  not tried", "`undo it` takes it back"]


def test_a_load_says_in_words_what_was_loaded_and_from_where() -> None:
    proven = replace(PROVEN, libraries=("/venv/lib/a/libx.so.1",))
    assert load_verdict(proven) == ("works", "torch 2.3.1 with libx.so.1 of /venv/lib/a")
    activation = replace(WORKS, name="activation", detail="LD_LIBRARY_PATH", libraries=())
    both = Probe(verdict="works", reason=None, device=None, steps=(activation, WORKS))
    many = replace(proven, load=both, libraries=tuple(f"/venv/{name}/l{name}.so" for name in "abc"))
    assert load_verdict(many) == (
        "works", "in an activated shell: torch 2.3.1 with la.so of /venv/a and lb.so of /venv/b and 1 more")
    alone = replace(proven, load=replace(both, steps=(activation,)), libraries=())
    assert load_verdict(alone) == ("works", "in an activated shell: nothing was imported")
    assert load_verdict(replace(PROVEN, load=None)) == ("cannot-tell", "not tried")


def test_what_was_not_foretold_is_named() -> None:
    wrong = replace(PROVEN, surprises=(SHADOW,))
    assert (PROVEN.works, wrong.works, wrong.is_as_promised) == (True, False, False)
    assert list(surprise_lines(wrong, PLAIN))[1] == f"error SF101 {SHADOW.summary}"


def test_an_undo_says_what_is_kept_and_where() -> None:
    undone = Undone(prefix="/venv", number=2, actions=("Did it",), removed=("lib/a",), restored=("lib/b",),
                    kept=(Kept(path="lib/a", copy=".stackfix/changed-0002/lib/a"),))
    assert list(undone_lines([undone], PLAIN)) == [
        "taken back: repair 2 of /venv", "  Did it", "  removed    lib/a", "  restored   lib/b",
        "  kept       lib/a, which was changed after the repair, is now /venv/.stackfix/changed-0002/lib/a"]
    assert list(undone_lines([replace(undone, number=None)], PLAIN)) == ["cleared: remains of a run in /venv"]


def test_an_unfinished_repair_is_told() -> None:
    pending = Pending(prefix="/venv", number=1, state="preparing", started="2026-01-01T00:00:00+00:00", host="box",
                      pid=5, actions=("Do it",), touched=False, can_complete=False, why_not="early", running=None)
    assert list(pending_lines(pending, PLAIN)) == [
        ("unfinished: an earlier change of /venv was stopped while preparing (begun 2026-01-01T00:00:00+00:00 by "
         "process 5 on box)"), "  Do it", "  nothing in the environment was changed by it yet"]


def test_the_documents_have_all_keys() -> None:
    plan = plan_document(replace(PLAN, actions=(MIXED, ADVICE), variables=(("LD_PRELOAD", None),)))
    assert plan["variables"] == {"LD_PRELOAD": None}
    assert plan["actions"][0]["changes"][0] == {
        "path": "lib/a", "before": {"kind": "file", "sha256": "ab", "mode": "0644", "target": None},
        "after": {"kind": "link", "sha256": None, "mode": None, "target": "b"}}
    assert plan["actions"][0]["changes"][1]["after"] is None
    assert plan["actions"][1]["command"] == "sudo one\nsudo two"
    process = Process(pid=7, command="python train.py", files=("/venv/lib/a",))
    applied = applied_document(replace(APPLIED, processes=(process,)), taken_back=True)
    assert applied["processes"] == [{"pid": 7, "command": "python train.py", "files": ["/venv/lib/a"]}]
    assert (applied["repair"], applied["taken_back"]) == (3, True)
    verified = verified_document(replace(PROVEN, findings=(SHADOW,)))
    assert (verified["static"], verified["load"], verified["kernel"]) == ("findings", "works", "cannot-tell")
    assert [each["name"] for each in verified["steps"]] == ["load torch"]
