"""Whatever goes wrong is one line and an exit status; only a bug has a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from stackfix.cli import app
from stackfix.cli.app import run
from tests.cli_world import ASKED, Say, World
from tests.judges.command import clean_environment

FULL = Path("/dev/full")


def in_child(
    words: list[str], *, cwd: Path, code: str = "", stdout: int | IO[str] = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, after `code`."""
    script = f"import sys; sys.argv[0] = 'stackfix'\n{code}\nfrom stackfix.cli import main; main()"
    environment = clean_environment(STACKFIX_CACHE_DIR=str(cwd / ".cache"),
                                    PIP_INDEX_URL=os.environ.get("PIP_INDEX_URL", ""))
    return subprocess.run([sys.executable, "-c", script, *words], cwd=cwd, env=environment, text=True,
                          check=False, stdout=stdout, stderr=subprocess.PIPE)


@pytest.mark.parametrize("words", [("lock", *ASKED, "--json"), ("lock", *ASKED), ("matrix", "show"), ("--help",),
                                   ("lock", "--torch", "x", "--json")], ids=" ".join)
@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
def test_a_full_disk_behind_stdout_is_one_line(words: tuple[str, ...], world: World, tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = in_child(list(words), cwd=tmp_path, stdout=full)
    assert done.returncode == 3, done
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("error")] == [
        "error: standard output: No space left on device"]
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("words", [("check", "--json"), ("check", "-v"), ("check", "--help")], ids=" ".join)
def test_a_reader_that_is_gone_is_no_answer(words: tuple[str, ...], tmp_path: Path) -> None:
    """With `set -o pipefail` an exit status of 1 would say that the environment is broken."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as gone:
        done = in_child([*words, "--prefix", sys.prefix], cwd=tmp_path, stdout=gone)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(("closed", "status", "said"), [
    ("1", 3, "error: standard output: Bad file descriptor\n"), ("2", 0, ""), ("1 2", 3, "")])
@pytest.mark.parametrize("form", ["--json", "-q"])
def test_closed_streams(closed: str, status: int, said: str, form: str, tmp_path: Path) -> None:
    """As cron and daemons start programs."""
    words = ["check", "--prefix", sys.prefix, "--fail-on", "never", form]
    close = " ".join(f"{each}>&-" for each in closed.split())
    done = subprocess.run(["sh", "-c", f'exec "$@" {close}', "sh", sys.executable, "-m", "stackfix", *words],
                          cwd=tmp_path, env=clean_environment(), text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (status, said)


def test_an_interrupt_while_importing_is_one_word(tmp_path: Path) -> None:
    code = ("class Interrupt:\n"
            "    def find_spec(self, name, *rest):\n"
            "        if name == 'stackfix.cli.app': raise KeyboardInterrupt\n"
            "sys.meta_path.insert(0, Interrupt())")
    done = in_child(["--version"], cwd=tmp_path, code=code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_an_unforeseen_fault_of_the_system_is_one_line(monkeypatch: pytest.MonkeyPatch, say: Say) -> None:
    def fails(**_: object) -> int:
        raise PermissionError(13, "Permission denied", "/somewhere/else")

    monkeypatch.setattr(app.group, "main", fails)
    said = say("lock")
    assert (said.status, said.out, said.err) == (3, "", "error: /somewhere/else: Permission denied\n")


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> int:
        raise LookupError("a bug")

    monkeypatch.setattr(app.group, "main", fails)
    with pytest.raises(LookupError):
        run(["lock"])


@pytest.mark.parametrize("words", [("lock",), ("lock", "--check")], ids=" ".join)
def test_a_lockfile_that_is_a_link_to_itself(words: tuple[str, ...], world: World, say: Say) -> None:
    Path("requirements.txt").symlink_to("requirements.txt")
    said = say(*words, *ASKED)
    assert said.status == (1 if "--check" in words else 3), said
    assert "requirements.txt" in said.err + said.out
    assert not Path("pylock.toml").exists()


@pytest.mark.parametrize("inputs", [(), ("-r", "requirements.in")], ids=["plain", "with inputs"])
def test_a_working_directory_that_was_deleted(inputs: tuple[str, ...], world: World, say: Say) -> None:
    gone = Path("gone").absolute()
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        said = say("lock", *ASKED, *inputs)
    finally:
        os.chdir(gone.parent)
    assert said.status == (2 if inputs else 3), said
    assert len([line for line in said.err.splitlines() if line.startswith("error")]) == 1


def test_errors_of_every_status_have_the_same_json(world: World, say: Say) -> None:
    for words, status in ((("lock", "--torch", "x"), 2), (("lock", *ASKED, "--offline"), 3), (("lock", "--nope"), 2)):
        said = say(*words, "--json")
        assert said.status == status, said
        assert json.loads(said.out)["error"] | {"causes": [], "nearest": []} == said.json["error"]
