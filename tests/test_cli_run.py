"""`stackfix run`: the command sees a cured environment, and nothing of it was changed."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.judges.command import Run, run
from tests.real_environments.workshop import Workshop
from tests.repair_world import WINNER, Bench, bench_in, read_only

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")
IMAGE = ('rm -rf "$1"; cp -a "$0" "$1"; mount -t tmpfs none "$0"; cp -a "$1/." "$0"; mount -o remount,ro "$0"; shift; '
         'exec "$@"')
TELL = "import os, sys; print(sys.prefix, os.environ.get('VIRTUAL_ENV'), sys.argv[1:]); sys.exit(41)"


@pytest.fixture(scope="module")
def bench(workshop: Workshop) -> Bench:
    """A broken environment, which no test changes."""
    return bench_in(workshop)


def started(bench: Bench, *words: str | Path) -> Run:
    return bench.say("run", *words)


def test_the_command_gets_the_right_library_and_nothing_is_changed(bench: Bench) -> None:
    before, cache = bench.tree(), bench.cache()
    assert bench.imports().returncode == 1
    said = started(bench, "--", "python", "-B", "-c", WINNER)
    assert (said.status, said.stdout.strip(), said.stderr) == (0, bench.own, "")
    assert (bench.tree(), bench.cache()) == (before, cache)


def test_it_needs_no_write_access(bench: Bench) -> None:
    start = read_only(bench.prefix)
    if not start:
        pytest.skip("nothing can be mounted here")
    said = bench.say("run", "--", "python", "-B", "-c", WINNER, start=start)
    assert (said.status, said.stdout.strip(), said.stderr) == (0, bench.own, "")


def test_a_file_system_that_is_read_only_is_planned_for_and_used(bench: Bench, tmp_path: Path) -> None:
    """Not a folder of another one: a file system of its own, as that of an image."""
    before = bench.tree()
    start = ("unshare", "--mount", "sh", "-ec", IMAGE, bench.prefix, tmp_path / "copy")
    if os.geteuid() != 0 or run([*start, "true"], cwd=tmp_path, env=bench.environ()).status != 0:
        pytest.skip("nothing can be mounted here")
    assert run([*start, "touch", bench.prefix / "x"], cwd=tmp_path, env=bench.environ()).status != 0
    planned = bench.say("repair", "--dry-run", "--json", start=start)
    assert (planned.status, planned.json["plan"]) == (1, bench.say("repair", "--dry-run", "--json").json["plan"])
    said = bench.say("run", "--", "python", "-B", "-c", WINNER, start=start)
    assert (said.status, said.stdout.strip(), said.stderr) == (0, bench.own, "")
    refused = bench.say("repair", "--yes", start=start)
    assert refused.status == 3, refused
    assert "mounted read-only" in refused.stderr
    assert bench.say("undo", "--list", start=start).stdout == f"no repair is recorded in {bench.prefix}\n"
    assert bench.tree() == before


@pytest.mark.parametrize("dashes", [("--",), ()], ids=str)
def test_words_and_the_exit_status_are_the_commands_own(dashes: tuple[str, ...], bench: Bench) -> None:
    said = started(bench, *dashes, "python", "-B", "-c", TELL, "--json", "", "-v", "--", "*")
    assert said.status == 41, said
    assert said.stdout.strip() == f"{bench.prefix} {bench.prefix} ['--json', '', '-v', '--', '*']"
    assert said.stderr == ""


def test_what_is_set_is_said_when_asked(bench: Bench) -> None:
    said = started(bench, "-v", "--", "sh", "-c", 'printf "%s" "$LD_LIBRARY_PATH"')
    own = f"{Path(bench.own).parent}:{bench.hostile['LD_LIBRARY_PATH']}"
    assert (said.status, said.stdout) == (0, own)
    assert f"stackfix: LD_LIBRARY_PATH={own}\n" in said.stderr
    assert f"stackfix: VIRTUAL_ENV={bench.prefix}\n" in said.stderr
    assert f"stackfix: PATH={bench.prefix}/bin:" in said.stderr


def test_what_variables_cannot_cure_is_said_and_the_command_runs(bench: Bench, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(bench.prefix, tmp_path / "copy", symlinks=True))
    gone = next(copy.rglob("libcudnn_cnn_infer.so.8"))
    gone.unlink()
    words = (sys.executable, "-m", "stackfix", "run", "--prefix", copy)
    said = run([*words, "--", "echo", "it ran"], cwd=tmp_path, env=bench.environ())
    assert (said.status, said.stdout) == (0, "it ran\n")
    assert "SF401 is not cured for this command" in said.stderr
    assert "stackfix repair" in said.stderr
    quiet = run([*words, "-q", "--", "echo", "it ran"], cwd=tmp_path, env=bench.environ())
    assert (quiet.stdout, quiet.stderr) == ("it ran\n", "")


def test_what_is_preloaded_is_taken_out(bench: Bench) -> None:
    bad = f"{bench.hostile['LD_LIBRARY_PATH']}/libnvJitLink.so.12"
    said = bench.say("run", "--", "python", "-B", "-c", WINNER, LD_LIBRARY_PATH="", LD_PRELOAD=bad)
    assert (said.status, said.stdout.strip(), said.stderr) == (0, bench.own, "")


@pytest.mark.parametrize("words", [(), ("--",), ("no-such-command",), ("no-such-command", "--json")], ids=str)
def test_malformed_use_is_exit_2(words: tuple[str, ...], bench: Bench) -> None:
    said = started(bench, *words)
    assert (said.status, said.stdout) == (2, ""), said
    assert said.stderr.startswith("error: ")


@pytest.mark.parametrize("option", ["--prefix", "--python"])
def test_an_empty_value_asks_for_no_other_environment(option: str, bench: Bench) -> None:
    said = started(bench, option, "", "--", "true")
    assert (said.status, f"{option}: is empty" in said.stderr) == (2, True), said


def test_an_empty_word_is_the_commands_own(bench: Bench) -> None:
    said = started(bench, "--", sys.executable, "-c", "import sys; print(sys.argv[1:])", "")
    assert (said.status, said.stdout) == (0, "['']\n"), said


def test_standard_output_is_the_commands_so_there_is_no_document(bench: Bench) -> None:
    said = started(bench, "--json", "--", "true")
    assert (said.status, said.stdout) == (2, "")
    assert "No such option '--json'" in said.stderr


def test_a_file_that_is_no_program_is_exit_3(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\x7fELF no program")
    file.chmod(0o755)
    said = started(bench, "--", file)
    assert said.status == 3, said
    assert f"{file}: cannot be started" in said.stderr


def test_a_command_that_is_killed_dies_as_it_would_without_us(bench: Bench) -> None:
    assert started(bench, "--", "sh", "-c", "kill -TERM $$").status == -signal.SIGTERM


@pytest.mark.parametrize("words", [(), ("-q",)], ids=str)
def test_a_path_with_a_colon_starts_the_environments_own_programs(words: tuple[str, ...], bench: Bench,
                                                                 tmp_path: Path) -> None:
    copy = Path(shutil.copytree(bench.prefix, tmp_path / "co:lon" / "v", symlinks=True))
    start: tuple[str | Path, ...] = (sys.executable, "-m", "stackfix", "run", "--prefix", copy, *words, "--")
    said = run([*start, "python", "-B", "-c", TELL], cwd=tmp_path, env=bench.environ())
    assert (said.status, said.stdout) == (41, f"{copy} {copy} []\n"), said
    no_path = f"stackfix: {copy}/bin has a colon, and no PATH can name it: "
    assert (no_path in said.stderr) == (not words)
    assert run([*start, "sh", "-c", "exit 7"], cwd=tmp_path, env=bench.environ()).status == 7      # of PATH
