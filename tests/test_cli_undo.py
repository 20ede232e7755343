"""`stackfix undo`: what it gives back, what it keeps, and what it says."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.apply import syscalls
from stackfix.apply.records import Applied
from stackfix.apply.transaction import apply_plan
from stackfix.cli.repair_apply import no_wheels
from stackfix.cli.repair_planning import undo_command
from stackfix.plan.records import Action, Plan, SetAside, Step, WriteFile
from tests.apply_faults.world import tree_of
from tests.cli_world import Say
from tests.inspect_trees import make_venv

OURS = ("CONDA", "VIRTUAL_ENV", "PYTHON", "STACKFIX_")


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of this machine, and no network."""
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("undo opened a socket")

    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(socket, "socket", refuse)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_venv(tmp_path_factory.mktemp("undo") / "an env")


@pytest.fixture
def prefix(made: Path, tmp_path: Path) -> Path:
    """A venv without any repair."""
    return Path(shutil.copytree(made, tmp_path / "an env", symlinks=True))


def apply(prefix: Path, *steps: Step) -> Applied:
    action = Action(id="relink-1", kind="relink", summary=f"Do {len(steps)} things", cures=(), steps=steps, changes=())
    return apply_plan(Plan(prefix=str(prefix), actions=(action,), left=()), prefix, installer=no_wheels)


def test_the_last_repair_is_taken_back(prefix: Path, say: Say) -> None:
    first = tree_of(prefix)
    apply(prefix, WriteFile(path="lib/one", text="1"))
    second = tree_of(prefix)
    apply(prefix, WriteFile(path="lib/two", text="2"), SetAside(path="pyvenv.cfg"))
    (prefix / "pyvenv.cfg").write_text("")      # the place is still an environment
    (prefix / "pyvenv.cfg").unlink()
    said = say("undo", "--prefix", prefix)
    assert (said.status, said.err) == (0, ""), said
    assert said.out == (f"taken back: repair 2 of {prefix}\n  Do 2 things\n  removed    lib/two\n"
                        "  restored   pyvenv.cfg\n")
    assert {**tree_of(prefix), ".": 0} == {**second, ".": 0}
    assert say("undo", "--prefix", prefix, "-q").out == ""
    assert {**tree_of(prefix), ".": 0} == {**first, ".": 0}


def test_all_are_taken_back(prefix: Path, say: Say) -> None:
    first = tree_of(prefix)
    for name in ("one", "two", "three"):
        apply(prefix, WriteFile(path=f"lib/{name}", text=name))
    said = say("undo", "--prefix", prefix, "--all", "--json")
    assert (said.status, said.err) == (0, ""), said
    assert said.json["prefix"] == str(prefix)
    assert [(each["repair"], each["removed"]) for each in said.json["undone"]] == [
        (3, ["lib/three"]), (2, ["lib/two"]), (1, ["lib/one"])]
    assert tree_of(prefix) == first


def test_the_repairs_are_listed_the_last_one_first(prefix: Path, say: Say) -> None:
    assert say("undo", "--prefix", prefix, "--list").out == f"no repair is recorded in {prefix}\n"
    for name in ("one", "two"):
        apply(prefix, WriteFile(path=f"lib/{name}", text=name))
    before = tree_of(prefix)
    said = say("undo", "--prefix", prefix, "--list", "-v")
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert [line for line in lines if line.startswith("repair ")] == [lines[0], lines[3]]
    assert lines[0].startswith("repair 2 of ")
    assert lines[2] == "  made       lib/two"
    document = say("undo", "--prefix", prefix, "--list", "--json").json
    assert [each["made"] for each in document["repairs"]] == [["lib/two"], ["lib/one"]]
    assert document["unfinished"] is None
    assert tree_of(prefix) == before


def lose_journal(prefix: Path, number: str, how: str) -> None:
    home = prefix / ".stackfix" / number
    if how == "no journal":
        (home / "journal").unlink()
    elif how == "an empty journal":
        (home / "journal").write_text("")
    else:
        (home / "journal").write_text("not JSON\n")


@pytest.mark.parametrize("how", ["no journal", "an empty journal", "no lines"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_repair_that_cannot_be_read_is_named_and_nothing_of_it_is_lost(how: str, number: int, prefix: Path,
                                                                         say: Say) -> None:
    (prefix / "lib" / "one").write_text("mine")
    apply(prefix, SetAside(path="lib/one"), WriteFile(path="lib/ours", text="1"))
    apply(prefix, WriteFile(path="lib/two", text="2"), SetAside(path="lib/ours"))
    lose_journal(prefix, f"000{number}", how)
    before = tree_of(prefix)
    said = say("undo", "--prefix", prefix, "--list")
    assert said.status == 3, said
    assert f"repair {number} cannot be read: " in said.out
    assert f"  hint: what it had moved aside is in .stackfix/000{number}/kept, under its own path: put " in said.out
    assert f"repair {3 - number} of " in said.out
    document = say("undo", "--prefix", prefix, "--list", "--json").json
    assert [each["repair"] for each in document["unreadable"]] == [number]
    assert [each["repair"] for each in document["repairs"]] == [3 - number]
    assert tree_of(prefix) == before
    said = say("undo", "--prefix", prefix, "--all")
    assert (said.status, said.out.count("taken back: ")) == (3, 2 - number), said      # the damaged one stops it
    assert f".stackfix/000{number}/journal" in said.err
    assert (prefix / ".stackfix" / f"000{number}" / "kept").is_dir()


def test_a_number_without_anything_in_it_is_named_too(prefix: Path, say: Say) -> None:
    first = tree_of(prefix)
    (prefix / ".stackfix" / "0001").mkdir(parents=True, mode=0o700)
    (prefix / ".stackfix").chmod(0o700)
    said = say("undo", "--prefix", prefix, "--list")
    assert said.status == 0, said
    assert said.err.startswith(f"unfinished: an earlier change of {prefix} was stopped while preparing\n")
    (prefix / ".stackfix" / "0001").rename(prefix / "0001")
    apply(prefix, WriteFile(path="lib/two", text="2"))
    (prefix / ".stackfix" / "0001").rename(prefix / ".stackfix" / "0002")
    (prefix / "0001").rename(prefix / ".stackfix" / "0001")
    said = say("undo", "--prefix", prefix, "--list")
    assert said.status == 3, said
    assert "repair 1 cannot be read: .stackfix/0001 has no journal, and later ones are there\n" in said.out
    said = say("undo", "--prefix", prefix, "--all")
    assert (said.status, said.out.count("taken back: ")) == (0, 2), said
    assert {**tree_of(prefix), ".": 0} == {**first, ".": 0}


@pytest.mark.parametrize("what", ["file", "link", "link to nowhere"])
@pytest.mark.parametrize("words", [(), ("--list",), ("--all",)], ids=str)
def test_a_store_that_is_no_folder_is_named(what: str, words: tuple[str, ...], prefix: Path, say: Say) -> None:
    store = prefix / ".stackfix"
    if what == "file":
        store.write_text("mine")
    else:
        store.symlink_to(prefix / ("lib" if what == "link" else "nowhere"))
    before = tree_of(prefix)
    said = say("undo", "--prefix", prefix, *words)
    assert (said.status, said.out) == (3, "")
    assert said.err == (f"error: {store}: is a {what.partition(' ')[0]}, and no folder of repairs: stackfix makes "
                        "none\nhint: look at what it is, and move it away\n")
    assert tree_of(prefix) == before


def test_nothing_to_undo_is_no_error(prefix: Path, say: Say) -> None:
    before = tree_of(prefix)
    for words in ((), ("--all",)):
        said = say("undo", "--prefix", prefix, *words)
        assert (said.status, said.out, said.err) == (0, f"nothing to undo: no repair is recorded in {prefix}\n", "")
    assert say("undo", "--prefix", prefix, "-q").out == ""
    assert say("undo", "--prefix", prefix, "--json").json["undone"] == []
    assert tree_of(prefix) == before


def test_an_empty_folder_of_a_run_that_was_stopped_is_cleared(prefix: Path, say: Say) -> None:
    before = tree_of(prefix)
    (prefix / ".stackfix").mkdir(mode=0o700)
    said = say("undo", "--prefix", prefix)
    assert (said.status, said.out) == (0, f"cleared: remains of a run in {prefix}\n")
    assert {**tree_of(prefix), ".": 0} == {**before, ".": 0}


def test_the_command_to_undo_names_an_environment_that_is_not_active(prefix: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    assert undo_command(str(prefix)) == f"stackfix undo --prefix '{prefix}'"
    monkeypatch.setenv("VIRTUAL_ENV", str(prefix))
    assert undo_command(str(prefix)) == "stackfix undo"


def test_what_is_gone_already_and_what_others_added_is_told(prefix: Path, say: Say) -> None:
    apply(prefix, WriteFile(path="lib/one", text="ours"), WriteFile(path="etc/conda/activate.d/a.sh", text="ours"))
    (prefix / "lib" / "one").unlink()
    (prefix / "etc" / "conda" / "activate.d" / "b.sh").write_text("another's")
    said = say("undo", "--prefix", prefix)
    assert said.status == 0, said
    assert said.out == (f"taken back: repair 1 of {prefix}\n  Do 2 things\n"
                        "  gone       lib/one, since the repair\n"
                        "  left       etc, with what others have put there\n")
    assert (prefix / "etc" / "conda" / "activate.d" / "b.sh").read_text() == "another's"
    assert not (prefix / ".stackfix").exists()
    apply(prefix, WriteFile(path="lib/one", text="ours"))
    (prefix / "lib" / "one").unlink()
    document = say("undo", "--prefix", prefix, "--json").json
    assert document["undone"] == [{"repair": 1, "actions": ["Do 1 things"], "removed": [], "restored": [], "kept": [],
                                   "gone": ["lib/one"], "left": [], "remains": []}]


def test_what_was_changed_since_stops_it_and_is_kept_with_force(prefix: Path, say: Say,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    first = tree_of(prefix)
    apply(prefix, WriteFile(path="lib/one", text="ours"))
    (prefix / "lib" / "one").unlink()
    (prefix / "lib" / "one").write_text("mine")
    changed = tree_of(prefix)
    said = say("undo", "--prefix", prefix)
    assert said.status == 1, said
    assert "lib/one" in said.err
    assert f"`stackfix undo --prefix '{prefix}' --force`" in said.err
    assert tree_of(prefix) == changed
    monkeypatch.setenv("VIRTUAL_ENV", str(prefix))
    assert "`stackfix undo --force`" in say("undo").err
    assert "`stackfix undo --all --force`" in say("undo", "--all").err
    said = say("undo", "--prefix", prefix, "--force")
    assert said.status == 0, said
    [kept] = [line for line in said.out.splitlines() if line.startswith("  kept")]
    assert kept.startswith("  kept       lib/one, which was changed after the repair, is now ")
    assert Path(kept.rpartition(" is now ")[2]).read_text() == "mine"
    left = {path: facts for path, facts in tree_of(prefix).items() if not path.startswith((".stackfix", "."))}
    assert left == {path: facts for path, facts in first.items() if path != "."}


def test_what_is_back_in_its_place_has_one_line(prefix: Path, say: Say) -> None:
    """Neither that ours made way for it, nor that somebody had put it there again already, is a line of its own."""
    before = (prefix / "pyvenv.cfg").read_text()
    apply(prefix, SetAside(path="pyvenv.cfg"), WriteFile(path="pyvenv.cfg", text=f"{before}ours = 1\n"))
    told = f"taken back: repair 1 of {prefix}\n  Do 2 things\n  restored   pyvenv.cfg\n"
    assert say("undo", "--prefix", prefix).out == told
    apply(prefix, SetAside(path="pyvenv.cfg"), WriteFile(path="pyvenv.cfg", text=f"{before}ours = 1\n"))
    (prefix / "pyvenv.cfg").unlink()
    (prefix / "pyvenv.cfg").write_text(before)
    assert say("undo", "--prefix", prefix).out == told


def test_remains_that_cannot_be_deleted_are_told_with_place_and_reason(prefix: Path, say: Say,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file that was made immutable: it can be moved with its folder, and not be deleted."""
    def refuse(name: str, *, folder: int) -> None:
        if name == "libstuck.so":
            raise PermissionError(errno.EPERM, "Operation not permitted", name)
        unlink(name, folder=folder)

    unlink = syscalls.unlink
    before = tree_of(prefix)
    apply(prefix, WriteFile(path="lib/libstuck.so", text="ours"))
    monkeypatch.setattr(syscalls, "unlink", refuse)
    said = say("undo", "--prefix", prefix, "-q")
    assert said.status == 0, said
    [trash] = [path.name for path in (prefix / ".stackfix").iterdir()]
    why = f"  remains    {prefix}/.stackfix/{trash} could not be deleted: Operation not permitted (libstuck.so); "
    assert why in said.out
    listed = say("undo", "--prefix", prefix, "--list")
    assert (listed.status, f"\nremains: {prefix}/.stackfix/{trash} is of a run that is over" in listed.out) == (0, True)
    assert say("undo", "--prefix", prefix, "--list", "--json").json["remains"] == [f".stackfix/{trash}"]
    again = say("undo", "--prefix", prefix)
    assert (again.status, "cleared" in again.out) == (3, False)
    assert why in again.out
    document = say("undo", "--prefix", prefix, "--json")
    assert document.json["undone"][0]["remains"] == [
        {"path": f".stackfix/{trash}", "reason": "Operation not permitted (libstuck.so)"}]
    monkeypatch.setattr(syscalls, "unlink", unlink)
    assert say("undo", "--prefix", prefix).out == f"cleared: remains of a run in {prefix}\n"
    assert {**tree_of(prefix), ".": 0} == {**before, ".": 0}


@pytest.mark.parametrize("words", [(), ("--all",), ("--forget",)], ids=str)
def test_nothing_to_undo_is_no_error_where_nothing_may_be_changed(words: tuple[str, ...], prefix: Path, say: Say,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4321)        # somebody else's, whoever runs this
    said = say("undo", "--prefix", prefix, *words)
    assert (said.status, said.err) == (0, ""), said
    assert said.out.endswith(f": no repair is recorded in {prefix}\n")
    monkeypatch.undo()
    prefix.chmod(0o500)
    assert say("undo", "--prefix", prefix, *words).status == 0


def test_a_record_is_ended_and_the_environment_stays(prefix: Path, say: Say) -> None:
    for name in ("one", "two"):
        apply(prefix, WriteFile(path=f"lib/{name}", text=name))
    apply(prefix, SetAside(path="lib/two"))
    made = {path: facts for path, facts in tree_of(prefix).items() if not path.startswith(".")}
    said = say("undo", "--prefix", prefix, "--forget")
    assert (said.status, said.err) == (0, ""), said
    assert said.out == (f"forgotten: repair 3 of {prefix}, which stays as it is; the copies from before it are "
                        "deleted\n  Do 1 things\n  dropped    lib/two\n")
    assert [each.name for each in (prefix / ".stackfix").iterdir()] != []
    document = say("undo", "--prefix", prefix, "--forget", "--all", "--json").json
    assert [each["repair"] for each in document["forgotten"]] == [2, 1]
    assert {path: facts for path, facts in tree_of(prefix).items() if not path.startswith(".")} == made
    assert not (prefix / ".stackfix").exists()
    assert say("undo", "--prefix", prefix, "--forget").out == f"nothing to forget: no repair is recorded in {prefix}\n"


def test_a_repair_that_was_stopped_is_not_forgotten(prefix: Path, say: Say) -> None:
    (prefix / ".stackfix" / "0001").mkdir(parents=True, mode=0o700)
    (prefix / ".stackfix").chmod(0o700)
    said = say("undo", "--prefix", prefix, "--forget")
    assert (said.status, said.out) == (1, ""), said
    assert "stopped while preparing" in said.err
    assert (prefix / ".stackfix" / "0001").is_dir()


def test_what_was_taken_back_before_an_error_is_told(prefix: Path, say: Say) -> None:
    apply(prefix, WriteFile(path="lib/one", text="1"))
    apply(prefix, WriteFile(path="lib/two", text="2"))
    (prefix / "lib" / "one").unlink()
    (prefix / "lib" / "one").write_text("mine")
    said = say("undo", "--prefix", prefix, "--all")
    assert said.status == 1, said
    assert "taken back: repair 2" in said.out
    assert "lib/one" in said.err


@pytest.mark.parametrize("words", [("--list", "--all"), ("--list", "--force"), ("--list", "--forget"),
                                   ("--force", "--forget"), ("--prefix", "/nowhere")], ids=str)
def test_malformed_use_is_exit_2(words: tuple[str, ...], prefix: Path, say: Say) -> None:
    assert say("undo", *(() if "--prefix" in words else ("--prefix", prefix)), *words).status == 2


def test_the_active_environment_is_meant_where_none_is_named(prefix: Path, say: Say,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    apply(prefix, WriteFile(path="lib/one", text="1"))
    monkeypatch.setenv("VIRTUAL_ENV", str(prefix))
    assert say("undo").out.startswith(f"taken back: repair 1 of {prefix}\n")


def test_another_process_at_work_is_waited_for_by_nobody(prefix: Path, say: Say) -> None:
    code = ("import sys\nfrom stackfix.apply.lock import locked\nfrom stackfix.apply.tree import Tree\n"
            "with Tree(sys.argv[1]) as tree, locked(tree):\n    print('held', flush=True)\n    sys.stdin.read()\n")
    with subprocess.Popen([sys.executable, "-c", code, str(prefix)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        said = say("undo", "--prefix", prefix)
        child.communicate()
    assert said.status == 3, said
    assert f"process {child.pid}" in said.err
