"""`stackfix repair` on a real environment: what it shows, changes, proves, and leaves alone."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stackfix.apply.transaction import apply_plan
from stackfix.apply.undo import undo
from stackfix.cli.common import CommonOptions
from stackfix.cli.progress import Bars
from stackfix.cli.repair import Wish, changed
from stackfix.cli.repair_apply import must_be_changeable, no_wheels
from stackfix.cli.repair_planning import Planned, asked_of, planned
from stackfix.plan.records import Action, Change, Node, Plan, SetAside, Step, WriteFile
from tests.apply_faults.kills import calls_of, run_killed_before
from tests.cli_world import Say
from tests.real_environments.scenarios import BESIDE_CUSPARSE
from tests.repair_world import Bench, activated, judge_cure, on_a_terminal, read_only, shells
from tests.test_cli_check import shape_differences

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")
COMMON = CommonOptions(as_json=False, quiet=False, verbose=0, offline=True, cache_dir=Path())
WISH = Wish(dry_run=False, yes=True, method="auto", kernels=False, break_system=False, timeout=60)


def is_cured(bench: Bench, *, env: dict[str, str] | None = None) -> bool:
    """Whether a child with the hostile variables imports the package and has the wheel's library mapped."""
    done = bench.imports(env=env)
    return (done.returncode, done.stdout.strip(), done.stderr) == (0, bench.own, "")


def kinds(document: Any) -> list[str]:
    return [each["kind"] for each in document["plan"]["actions"]]


def documented() -> dict[str, Any]:
    """The part of the document that docs/commands.md shows."""
    page = (Path(__file__).parent.parent / "docs" / "commands.md").read_text(encoding="utf-8")
    shown: dict[str, Any] = json.loads(
        page.partition("## `stackfix repair`")[2].partition("```json\n")[2].partition("```")[0])
    return shown


# --- what is shown, and that showing changes nothing ---


def test_a_dry_run_shows_the_plan_and_changes_nothing(bench: Bench) -> None:
    before, cache = bench.tree(), bench.cache()
    said = bench.say("repair", "--dry-run")
    assert (said.status, said.stderr) == (1, ""), said
    assert said.stdout.startswith(f"1 action for {bench.prefix}: 1 cure of 1 error, by simulation\n")
    assert "1. preload-hook  cures SF101" in said.stdout
    assert "_loader.py (new)" in said.stdout
    document = bench.say("repair", "--dry-run", "--json").json
    assert kinds(document) == ["preload-hook"]
    assert (document["applied"], document["verified"]["static"]) == (None, "findings")
    assert (bench.tree(), bench.cache()) == (before, cache)
    assert not is_cured(bench)


def test_a_dry_run_needs_no_write_access(bench: Bench) -> None:
    start = read_only(bench.prefix)
    if not start:
        pytest.skip("nothing can be mounted here")
    before = bench.say("repair", "--dry-run", "--json")
    said = bench.say("repair", "--dry-run", "--json", start=start)
    assert (said.status, said.stderr, said.json["plan"]) == (1, "", before.json["plan"]), said
    refused = bench.say("repair", "--yes", start=start)
    assert refused.status == 3, refused
    assert "mounted read-only" in refused.stderr
    assert "stackfix run" in refused.stderr


def test_verbose_shows_what_is_written(bench: Bench) -> None:
    said = bench.say("repair", "--dry-run", "-v", "--method", "activate")
    assert "+# >>> stackfix >>>" in said.stdout
    assert "--- bin/activate\n" in said.stdout
    assert "_OLD_VIRTUAL_PS1" not in said.stdout        # of a script that is there only the change
    assert f"LD_LIBRARY_PATH={Path(bench.own).parent}:{bench.hostile['LD_LIBRARY_PATH']}" in said.stdout


def test_there_is_nothing_to_repair_in_a_healthy_environment(bench: Bench) -> None:
    before = bench.tree()
    said = bench.say("repair", "--yes", LD_LIBRARY_PATH="")
    assert (said.status, said.stdout, said.stderr) == (0, f"nothing to repair in {bench.prefix}\n", ""), said
    assert bench.say("repair", "--dry-run", "-q", LD_LIBRARY_PATH="").stdout == ""
    assert bench.tree() == before


# --- the cure, and that it is taken back ---


def test_a_repair_holds_where_nothing_is_activated(bench: Bench) -> None:
    said = bench.say("repair", "--yes", "--json")
    assert (said.status, said.stderr) == (0, ""), said
    document = said.json
    assert document["verified"] | {"steps": 0} == {
        "static": "clean", "load": "works", "kernel": document["verified"]["kernel"], "findings": [], "surprises": [],
        "reason": document["verified"]["reason"], "steps": 0, "libraries": [bench.own]}
    load = next(each for each in document["verified"]["steps"] if each["name"] == "load torch")
    assert bench.own in load["libraries"]
    assert [each["code"] for each in document["findings"] if each["severity"] != "note"] == ["SF101"]
    assert document["applied"]["kept"] == []
    assert bench.imports("-I").stdout.strip() == bench.own
    assert bench.say("repair", "--yes").stdout == f"nothing to repair in {bench.prefix}\n"


def test_a_repair_is_given_back(bench: Bench) -> None:
    judge_cure(bench)
    assert not is_cured(bench)


def test_activation_holds_once_it_is_sourced(bench: Bench) -> None:
    before, cache = bench.tree(), bench.cache()
    said = bench.say("repair", "--yes", "--method", "activate", "--json")
    assert (said.status, kinds(said.json)) == (0, ["write-activation"]), said
    assert said.json["verified"]["load"] == "works"
    assert "bin/activate" in {each["path"] for each in said.json["applied"]["kept"]}
    assert list(shape_differences(documented(), {key: said.json[key] for key in documented()})) == []
    assert not is_cured(bench)          # not activated
    assert bench.say("check").stdout.endswith(
        f"`stackfix repair --dry-run --prefix {bench.prefix}` shows what would cure it\n")
    script = f'. "{bench.prefix}/bin/activate"; env -0; deactivate; printf "%s" "$LD_LIBRARY_PATH"'
    for shell in shells():
        done = subprocess.run([shell, "-c", script], env={**bench.hostile, "PATH": "/usr/bin:/bin"}, text=True,
                              capture_output=True, check=True, timeout=60)
        *pairs, after = done.stdout.split("\0")
        environ = {name: value for name, _, value in (pair.partition("=") for pair in pairs)}
        assert is_cured(bench, env=environ)
        assert after == bench.hostile["LD_LIBRARY_PATH"]
    path = said.json["plan"]["variables"]["LD_LIBRARY_PATH"]
    assert bench.say("check", "--fail-on", "warning", LD_LIBRARY_PATH=path).status == 0
    assert bench.say("undo").status == 0
    assert (bench.tree(), bench.cache()) == (before, cache)


def test_once_more_in_a_shell_that_is_not_activated_there_is_nothing_to_write(bench: Bench) -> None:
    """An unattended repair would stack one transaction on the other."""
    assert bench.say("repair", "--yes", "--method", "activate").status == 0
    before = bench.tree()
    for _ in range(2):
        said = bench.say("repair", "--yes", "--method", "activate")
        assert (said.status, said.stdout.splitlines()[0]) == (1, (
            f"1 error in {bench.prefix}, and the scripts of an earlier repair cure it once it is activated anew")), said
        assert f"source {bench.prefix}/bin/activate" in said.stdout
        assert bench.tree() == before
    inside = {name: value for name, value in activated(bench).items() if name == "LD_LIBRARY_PATH"}
    assert bench.say("repair", "--yes", "--method", "activate", **inside).status == 0
    assert bench.tree() == before
    assert bench.say("undo").status == 0
    assert "no repair is recorded" in bench.say("undo").stdout


def test_a_link_alone_is_not_what_is_done(bench: Bench) -> None:
    """It is what people are told, and LD_LIBRARY_PATH is searched before it."""
    before = bench.tree()
    said = bench.say("repair", "--yes", "--method", "symlink", "--json")
    assert (said.status, kinds(said.json)) == (0, ["relink", "write-activation"]), said
    assert said.json["verified"]["load"] == "works"
    assert bench.say("undo").status == 0
    assert bench.tree() == before


def test_a_link_by_hand_that_leads_nowhere_is_led_to_the_library(bench: Bench) -> None:
    """The link is then the way to the right file, and no proof that the wrong one is still mapped."""
    link = bench.made.site / BESIDE_CUSPARSE
    link.symlink_to(link.name)
    before = bench.tree()
    clean = {"LD_LIBRARY_PATH": ""}
    assert bench.imports(env=clean).returncode == 1
    said = bench.say("repair", "--yes", "--json", "--method", "symlink", **clean)
    assert (said.status, kinds(said.json), said.json["verified"]["load"]) == (0, ["relink"], "works"), said
    assert (bench.imports(env=clean).stdout.strip(), link.resolve()) == (bench.own, Path(bench.own).resolve())
    assert bench.say("undo").status == 0
    assert bench.tree() == before


# --- who is asked ---


@pytest.mark.parametrize("words", [(), ("--json",)], ids=str)
def test_off_a_terminal_somebody_has_to_say_yes(words: tuple[str, ...], bench: Bench) -> None:
    before = bench.tree()
    said = bench.say("repair", *words)
    assert said.status == 2, said
    assert "--yes" in said.stdout + said.stderr
    assert bench.tree() == before


@pytest.mark.parametrize(("answer", "status", "does"), [("\n", 1, False), ("y\n", 0, True)])
def test_at_a_terminal_it_is_asked_once(answer: str, status: int, does: bool, bench: Bench) -> None:
    before = bench.tree()
    found, said = on_a_terminal(bench, answer, "repair", "--prefix", str(bench.prefix))
    assert found == status, said
    assert said.count("[y/N]") == 1
    assert "1. preload-hook" in said.partition("[y/N]")[0]
    assert ("nothing was changed" in said) != does
    assert (bench.tree() != before) == does


@pytest.mark.parametrize("words", [("--method", "magic"), ("--timeout", "0"), ("--timeout", "nan"), ("--env", "X"),
                                   ("--prefix", "/nowhere"), ("--lock", "/nowhere/pylock.toml")], ids=str)
def test_malformed_use_is_exit_2(words: tuple[str, ...], say: Say) -> None:
    said = say("repair", "--yes", *words)
    assert (said.status, said.out) == (2, ""), said
    assert words[0] in said.err


# --- what was stopped, and what does not prove ---


def made_plan(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Planned:
    """The plan for the environment, made in this process."""
    for name, value in bench.environ().items():
        monkeypatch.setenv(name, value)
    with planned(asked_of(str(bench.prefix), None), COMMON, Bars(shown=False)) as found:
        return found


def killed(bench: Bench, plan: Plan, *, late: bool) -> None:
    """The plan applied by a process that dies: before all that it brings is there, or shortly before its end."""
    def work() -> object:
        return apply_plan(plan, bench.prefix, installer=no_wheels)

    calls = calls_of(work).total()
    undo(bench.prefix)
    assert run_killed_before(calls - 8 if late else 12, work).killed


@pytest.mark.parametrize(("late", "how"), [(False, "it was taken back"), (True, "it was completed")])
def test_a_killed_repair_is_told_and_ended_first(late: bool, how: str, bench: Bench,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    before = bench.tree()
    killed(bench, made_plan(bench, monkeypatch).plan, late=late)
    half = bench.tree()
    said = bench.say("repair", "--dry-run")
    assert (said.status, said.stdout) == (1, ""), said
    assert "was stopped" in said.stderr
    assert "stackfix undo" in said.stderr
    said = bench.say("run", "--", "echo", "it ran")
    assert (said.status, said.stdout) == (0, "it ran\n")
    assert "unfinished: " in said.stderr
    assert bench.tree() == half
    assert bench.say("repair").status == 2       # nobody can be asked
    said = bench.say("repair", "--yes")
    assert said.status == 0, said
    assert "unfinished: an earlier change" in said.stderr
    assert how in said.stderr
    assert is_cured(bench)
    assert bench.say("undo", "--all").status == 0
    assert bench.tree() == before


def test_a_killed_repair_may_be_taken_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bench.tree()
    killed(bench, made_plan(bench, monkeypatch).plan, late=True)
    listed = bench.say("undo", "--list", "--json")
    assert (listed.status, listed.json["unfinished"]["touched"], listed.json["repairs"]) == (0, True, []), listed
    said = bench.say("undo")
    assert (said.status, said.stderr) == (0, ""), said
    assert bench.tree() == before


def planned_steps(found: Planned, *steps: Step, changes: tuple[Change, ...] = ()) -> Planned:
    """A plan that says that it cures, and does these steps."""
    action = Action(id="relink-1", kind="relink", summary="Nothing of use", cures=("SF101",), steps=steps,
                    changes=changes)
    return replace(found, plan=Plan(prefix=found.prefix, actions=(action,), left=()))


def test_who_has_files_mapped_that_change_is_told_before_it_is_asked(bench: Bench,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    found = planned_steps(made_plan(bench, monkeypatch), SetAside(path=str(Path(bench.own).relative_to(bench.prefix))))
    assert must_be_changeable(found, break_system=False) == ()
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print('there', flush=True); sys.stdin.read()"
    with subprocess.Popen([bench.made.python, "-B", "-c", code, bench.own], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "there\n"
        [process] = must_be_changeable(found, break_system=False)
        child.communicate()
    assert (process.pid, process.files) == (child.pid, (bench.own,))


def test_a_repair_that_does_not_prove_is_taken_back(bench: Bench, monkeypatch: pytest.MonkeyPatch,
                                                    capfd: pytest.CaptureFixture[str]) -> None:
    """A plan that promises what it does not do: it writes one file, and says that it cures."""
    before, found = bench.tree(), made_plan(bench, monkeypatch)
    wrong = Change(path="idle.txt", before=Node(kind="absent"), after=Node(kind="file", mode=0o644))
    ended = changed(planned_steps(found, WriteFile(path="idle.txt", text=""), changes=(wrong,)), WISH, COMMON)
    assert ended.taken_back
    assert ended.verified is not None
    assert [each.code for each in ended.verified.surprises] == ["SF101"]
    said = capfd.readouterr().out
    assert "\ntaken back: " in said
    assert "error SF101" in said
    assert bench.tree() == before


def test_a_load_that_fails_is_told(bench: Bench) -> None:
    """The simulation knows nothing of what Python code does."""
    init = bench.made.site / "torch" / "__init__.py"
    text = init.read_text()
    init.unlink()       # its bytes are uv's, too
    init.write_text(text + "raise RuntimeError('not today')\n")
    said = bench.say("repair", "--yes", "--json")
    assert said.status == 1, said
    assert (said.json["verified"]["static"], said.json["verified"]["load"]) == ("clean", "fails")
    assert any("not today" in each["detail"] for each in said.json["verified"]["steps"])
    assert not said.json["applied"]["taken_back"]


# --- the document ---


def test_the_document_is_that_of_check_and_more(bench: Bench) -> None:
    dry, check = bench.say("repair", "--dry-run", "--json").json, bench.say("check", "--json").json
    assert {**dry, "plan": 0, "verified": 0} == {**check, "plan": 0, "verified": 0}
    [action] = dry["plan"]["actions"]
    assert list(action) == ["id", "kind", "summary", "cures", "changes", "command", "notes"]
    assert {json.dumps(each["before"]) for each in action["changes"]} == {"null"}
    assert {each["after"]["mode"] for each in action["changes"]} == {"0644"}


def test_what_was_set_aside_is_told_with_its_bytes(bench: Bench) -> None:
    first = (bench.prefix / "bin" / "activate").read_bytes()
    document = bench.say("repair", "--yes", "--method", "activate", "--json").json
    [copy] = [each["copy"] for each in document["applied"]["kept"] if each["path"] == "bin/activate"]
    assert (bench.prefix / copy).read_bytes() == first


@pytest.mark.skipif(shutil.which("unshare") is None, reason="util-linux mounts")
def test_the_read_only_mount_of_these_tests_is_one(bench: Bench) -> None:
    start = read_only(bench.prefix)
    if start:
        done = subprocess.run([*start, "touch", bench.prefix / "x"], capture_output=True, check=False, timeout=60)
        assert done.returncode != 0
    assert not (bench.prefix / "x").exists()


# --- notebooks ---


def test_the_kernels_of_the_environment_get_the_variables_when_asked(bench: Bench) -> None:
    kernel = bench.prefix / "share" / "jupyter" / "kernels" / "mine" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": [f"{bench.prefix}/bin/python", "-m", "ipykernel"], "display_name": "Mine"}))
    before = bench.tree()
    said = bench.say("repair", "--yes", "--json", "--method", "activate", "--jupyter")
    assert said.status == 0, said
    assert str(kernel.relative_to(bench.prefix)) in said.json["applied"]["made"]
    environ = json.loads(kernel.read_text())["env"]
    assert is_cured(bench, env=environ)         # as Jupyter starts it
    assert bench.say("undo").status == 0
    assert bench.tree() == before
    plain = bench.say("repair", "--dry-run", "--json", "--method", "activate").json["plan"]["actions"]
    assert str(kernel.relative_to(bench.prefix)) not in {
        change["path"] for action in plain for change in action["changes"]}
