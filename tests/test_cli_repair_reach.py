"""`stackfix repair` where something is out of reach: an index, room for a file, the right to write."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.apply import preflight
from stackfix.apply.errors import ExternallyManaged, NoSpace, NotOurs
from stackfix.cli.command_shown import command_for
from stackfix.cli.repair_rights import DiskRights
from stackfix.plan.records import Action, Plan, WriteFile
from tests.cli_world import World
from tests.real_environments.scenarios import NVJITLINK_FILE
from tests.real_environments.workshop import Workshop
from tests.repair_world import Bench, on_a_terminal, read_only
from tests.test_repair_real import projects

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")
NOBODY = "http://127.0.0.1:9/simple"
HEALTHY = {"LD_LIBRARY_PATH": ""}
# Python cuts its own compiled modules short, too, and then trips over them
SMALL_FILES = ("sh", "-c", 'ulimit -f 1; export PYTHONDONTWRITEBYTECODE=1; exec "$0" "$@"')
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(scope="module")
def index(workshop: Workshop) -> Iterator[str]:
    """An index that has all the stand-ins."""
    with World(projects=projects(workshop.folder.parent / "wheels")).served() as served:
        yield served.url


@pytest.fixture
def damaged(bench: Bench) -> Bench:
    """nvJitLink's file is gone: only its wheel brings it back."""
    (bench.made.site / NVJITLINK_FILE).unlink()
    return bench


# --- an index that nobody answers, and room that is not there ---


@pytest.mark.parametrize("words", [("--yes",), ("--dry-run",), ("--yes", "-q")], ids=str)
def test_an_index_out_of_reach_is_no_answer(words: tuple[str, ...], damaged: Bench) -> None:
    before = damaged.tree()
    said = damaged.say("repair", *words, PIP_INDEX_URL=NOBODY, **HEALTHY)
    assert said.status == 3, said
    assert said.stdout.startswith("1 error in ")
    headline = said.stdout.splitlines()[0]
    assert headline.endswith(f"in {damaged.prefix}, and what a cure of it needs is out of reach")
    assert said.stderr.startswith(f"error: {NOBODY}/nvidia-nvjitlink-cu12/: ")
    assert "\nhint: check the address" in said.stderr
    # said once, and nothing is advised that asks the same index
    assert "because something that it needs is out of reach" in said.stdout
    assert not [each for each in (NOBODY, "check the address", "pip install") if each in said.stdout], said.stdout
    assert damaged.tree() == before


def test_the_document_says_what_is_out_of_reach(damaged: Bench) -> None:
    said = damaged.say("repair", "--dry-run", "--json", PIP_INDEX_URL=NOBODY, **HEALTHY)
    assert (said.status, said.stderr) == (3, ""), said
    [left] = said.json["plan"]["left"]
    [far] = left["unreached"]
    assert NOBODY in far["message"]
    assert far["hint"]
    assert "127.0.0.1:9" in left["reason"]


def test_a_cache_without_room_is_named(damaged: Bench, index: str) -> None:
    before = damaged.tree()
    cache = damaged.workshop.folder / "fresh"
    said = damaged.say("repair", "--yes", "--cache-dir", cache, start=SMALL_FILES, PIP_INDEX_URL=index, **HEALTHY)
    assert said.status == 3, said
    assert f"error: {cache}" in said.stderr
    assert "File too large" in said.stderr
    assert "hint: name another folder with --cache-dir" in said.stderr
    assert damaged.tree() == before


def test_a_record_that_names_our_own_folder_is_no_traceback(damaged: Bench, index: str) -> None:
    [record] = damaged.made.site.glob("nvidia_nvjitlink_cu12-*.dist-info/RECORD")
    rows = record.read_bytes()
    record.unlink()
    record.write_bytes(rows + b"../../../.stackfix/0001/journal,,\n../../../.stackfix/lock,,\n")
    before = damaged.tree()
    said = damaged.say("repair", "--yes", "--json", PIP_INDEX_URL=index, **HEALTHY)
    assert (said.status, said.json["verified"]["load"]) == (0, "works"), said
    assert not [each for each in said.json["applied"]["kept"] if ".stackfix" in each["path"]]
    assert damaged.say("undo").status == 0
    assert damaged.tree() == before


def test_no_room_to_unpack_a_wheel_is_not_what_the_wheel_lacks(damaged: Bench, index: str) -> None:
    assert damaged.say("repair", "--dry-run", PIP_INDEX_URL=index, **HEALTHY).status == 1
    said = damaged.say("repair", "--yes", start=SMALL_FILES, PIP_INDEX_URL=index, **HEALTHY)
    assert said.status == 3, said
    assert "hint: set TMPDIR to a folder with more room" in said.stderr
    assert "does not have it" not in said.stdout


def test_no_room_for_the_journal_names_it(bench: Bench) -> None:
    before = bench.tree()
    said = bench.say("repair", "--yes", start=SMALL_FILES)
    assert said.status == 3, said
    assert said.stderr.splitlines() == [
        f"error: {bench.prefix}/.stackfix/0001/journal: File too large", "hint: everything was taken back"]
    assert bench.tree() == before


# --- a headline says no more than what is known ---


def test_another_method_is_named_that_would_cure_it(bench: Bench) -> None:
    said = bench.say("repair", "--dry-run", "--method", "reinstall")
    assert said.status == 1
    assert said.stdout.splitlines()[0] == (
        f"1 error in {bench.prefix}, and no installation would cure any; `--method auto` would cure it")
    [left] = bench.say("repair", "--dry-run", "--json", "--method", "reinstall").json["plan"]["left"]
    assert (left["by_auto"], left["unreached"]) == (["preload-hook"], [])


def test_nothing_is_promised_of_a_method_that_was_not_simulated(damaged: Bench) -> None:
    """An installation would do it; whether there is one, nobody was asked."""
    said = damaged.say("repair", "--dry-run", "--method", "preload", PIP_INDEX_URL=NOBODY, **HEALTHY)
    assert said.status == 1, said
    headline = said.stdout.splitlines()[0]
    assert "and no preload hook would cure any" in headline
    assert "`--method auto` would" not in said.stdout
    assert "may cure it" in headline


# --- what may not be changed is told by a dry run, too ---


@as_root
def test_a_folder_of_somebody_else_is_told_before_anything_is_asked(bench: Bench) -> None:
    os.chown(bench.made.site, 1234, 1234)
    before = bench.tree()
    dry, real = (bench.say("repair", "--method", "preload", word) for word in ("--dry-run", "--yes"))
    assert (dry.status, real.status) == (3, 3), (dry, real)
    assert dry.stdout == real.stdout
    assert "preload-hook: " in dry.stdout
    assert f"stackfix run --prefix {bench.prefix} -- CMD" in dry.stderr
    assert "export PYTHONPATH=" not in dry.stdout       # far more lines than all that is said
    assert dry.stdout.splitlines()[-1] == ("a preload folder of your own does the same, and changes nothing in the "
                                           "environment: -v prints the commands that make it")
    assert "\nexport PYTHONPATH=" in bench.say("repair", "--method", "preload", "--dry-run", "-v").stdout
    folder = bench.say("repair", "--method", "preload", "--dry-run", "--json").json["preload_folder"]
    assert f"{bench.made.site}/{NVJITLINK_FILE}" in folder
    assert bench.tree() == before
    other = bench.say("repair", "--dry-run", "--json").json         # another means that needs no such folder
    assert [each["kind"] for each in other["plan"]["actions"]] == ["write-activation"]


@as_root
def test_an_environment_of_somebody_else_is_no_offer(bench: Bench) -> None:
    os.chown(bench.prefix, 1234, 1234)
    dry, real = bench.say("repair", "--dry-run"), bench.say("repair", "--yes")
    assert (dry.status, real.status) == (3, 3), (dry, real)
    assert dry.stdout.splitlines()[1].startswith(f"not to be made here: {bench.prefix}: belongs to ")
    assert "stackfix run --prefix" in dry.stdout.splitlines()[-1]
    assert "stackfix run --prefix" in real.stderr.splitlines()[-1]
    assert "export PYTHONPATH=" not in dry.stdout + real.stdout
    shown = bench.say("repair", "--dry-run", "-v").stdout
    assert "\nexport PYTHONPATH=" in shown
    assert "stackfix run --prefix" in shown.splitlines()[-1]
    document = bench.say("repair", "--dry-run", "--json")
    assert (document.status, document.json["refused"]["code"]) == (3, "not-ours")
    assert isinstance(DiskRights(str(bench.prefix), break_system=True).refused, NotOurs)


def test_a_read_only_environment_shows_its_plan_and_that_it_cannot_be_made(bench: Bench) -> None:
    start = read_only(bench.prefix)
    if not start:
        pytest.skip("nothing can be mounted here")
    said = bench.say("repair", "--dry-run", "--json", start=start)
    assert (said.status, said.json["refused"]["code"]) == (1, "cannot-write")
    assert "stackfix run" in said.json["refused"]["hint"]
    assert "1. preload-hook" in bench.say("repair", "--dry-run", start=start).stdout


def test_files_behind_a_link_are_not_offered_to_be_replaced(damaged: Bench, index: str, tmp_path: Path) -> None:
    nvidia = damaged.made.site / "nvidia"
    shutil.move(nvidia, tmp_path / "nvidia")
    nvidia.symlink_to(tmp_path / "nvidia")
    before = damaged.tree()
    dry, real = (damaged.say("repair", word, PIP_INDEX_URL=index, **HEALTHY) for word in ("--dry-run", "--yes"))
    assert (dry.status, real.status) == (1, 1), (dry, real)
    assert dry.stdout == real.stdout
    assert "no change that may be made would cure any" in dry.stdout
    assert damaged.tree() == before


def test_a_disk_without_room_is_told_while_it_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = WriteFile(path="a", text="")
    plan = Plan(prefix=str(tmp_path), left=(), actions=(Action(
        id="relink-1", kind="relink", summary="…", cures=(), steps=(step,), changes=()),))
    rights = DiskRights(str(tmp_path), break_system=False)
    assert rights.why_not(plan) is None
    monkeypatch.setattr(preflight, "ROOM", 1 << 60)
    assert isinstance(rights.why_not(plan), NoSpace)


def test_a_python_of_the_system_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "lib" / "python3.11").mkdir(parents=True)
    (tmp_path / "lib" / "python3.11" / "EXTERNALLY-MANAGED").touch()
    assert isinstance(DiskRights(str(tmp_path), break_system=False).refused, ExternallyManaged)
    assert DiskRights(str(tmp_path), break_system=True).refused is None


# --- few words ---


def test_quiet_says_nothing_of_what_was_done(bench: Bench) -> None:
    said = bench.say("repair", "--yes", "-q")
    assert (said.status, said.stdout, said.stderr) == (0, "", ""), said


def test_quiet_asks_at_a_terminal_and_names_the_means(bench: Bench) -> None:
    status, said = on_a_terminal(bench, "n\n", "repair", "-q", "--prefix", str(bench.prefix))
    assert status == 1, said
    assert f"change {bench.prefix} (preload-hook)? [y/N]: " in said
    assert "1. preload-hook" not in said
    assert "write " not in said


def test_an_installation_speaks_with_one_voice(damaged: Bench, index: str) -> None:
    """uv and pip have words of their own for it."""
    said = damaged.say("repair", "--yes", PIP_INDEX_URL=index, **HEALTHY)
    assert (said.status, said.stderr) == (0, ""), said
    assert f"   install   lib/python3.11/site-packages/{NVJITLINK_FILE} (1 file, " in said.stdout
    assert "   replace   lib/python3.11/site-packages/nvidia_nvjitlink_cu12-" in said.stdout
    assert "Reinstall nvidia-nvjitlink-cu12 " in said.stdout
    assert "libnvJitLink.so.12 is gone" in said.stdout


@pytest.mark.parametrize("name", ["an env", "plain", "it's"])
def test_a_printed_command_names_an_environment_that_is_not_active(name: str, tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = tmp_path / name
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("home = /usr/bin\n")
    assert shlex.split(command_for(str(prefix), "repair", "--dry-run")) == [
        "stackfix", "repair", "--dry-run", "--prefix", str(prefix)]
    monkeypatch.setenv("VIRTUAL_ENV", str(prefix))
    assert command_for(str(prefix), "repair") == "stackfix repair"
