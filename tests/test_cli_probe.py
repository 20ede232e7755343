"""`stackfix probe` from the command line: lines, document and exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli_world import Say
from tests.verify_libcuda import SOURCE, bare_python, make_libcuda, needs_gcc

KEYS = ["schema_version", "python", "prefix", "verdict", "reason", "device", "steps"]
STEP_KEYS = ["name", "verdict", "reason", "counts", "detail", "accuracy", "seconds", "libraries"]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment of the one who runs the tests."""
    for name in [*os.environ]:
        if name.startswith(("STANDIN_", "CUDA_", "VIRTUAL_ENV", "CONDA_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_python(tmp_path_factory.mktemp("bare"))


@pytest.fixture
def libcuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = make_libcuda(tmp_path / "libcuda")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(made))
    return made


@needs_gcc
def test_a_gpu_that_works(bare: Path, libcuda: Path, say: Say) -> None:
    said = say("probe", "--python", bare, "--require-gpu", "--json")
    assert (said.status, said.err) == (0, "")
    document = json.loads(said.out)
    assert list(document) == KEYS
    assert all(list(each) == STEP_KEYS for each in document["steps"])
    assert (document["verdict"], document["reason"]) == ("works", None)
    assert document["python"] == str(bare)
    kernels = document["steps"][1]
    assert kernels["accuracy"]["nan"] == 0
    assert 0 < kernels["accuracy"]["largest_error"] < kernels["accuracy"]["tolerance"]
    assert kernels["libraries"] == [str(libcuda / "libcuda.so.1")]


@needs_gcc
def test_lines_for_people(bare: Path, libcuda: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    said = say("probe", "--python", bare)
    lines = said.out.splitlines()
    assert lines[0].startswith("  works        driver                 Stand-in 0, compute capability 8.6")
    assert lines[-1].startswith("works: 2 of 2 steps work, Stand-in 0")
    assert str(libcuda) not in said.out
    assert str(libcuda / "libcuda.so.1") in say("probe", "--python", bare, "-v").out
    assert say("probe", "--python", bare, "-q").out == ""
    monkeypatch.setenv("STANDIN_WRONG", "mirror")
    said = say("probe", "--python", bare, "-q")
    assert said.status == 1
    assert said.out.splitlines()[0].startswith(
        "  fails        driver.kernels.0       wrong-numbers: integers: absolute error")
    assert said.out.splitlines()[-1].startswith("fails: wrong-numbers (driver.kernels.0), 1 of 2 steps work")


@needs_gcc
def test_without_a_gpu_nobody_can_tell(bare: Path, libcuda: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_FAIL", "cuInit:100")
    said = say("probe", "--python", bare)
    assert said.status == 0
    assert said.out.splitlines()[-1] == "cannot tell: no-gpu (driver), 0 of 1 steps work"
    asked = say("probe", "--python", bare, "--require-gpu", "--json")
    assert asked.status == 1
    assert json.loads(asked.out)["verdict"] == "cannot-tell"


@needs_gcc
def test_text_of_a_driver_does_not_steer_the_terminal(tmp_path: Path, bare: Path, libcuda: Path, say: Say) -> None:
    make_libcuda(libcuda, SOURCE.replace("Stand-in %d", "\\033[31mred\\n%d"))
    said = say("probe", "--python", bare)
    assert "\x1b" not in said.out
    assert "\\x1b[31mred" in said.out
    document = say("probe", "--python", bare, "--json").out
    assert "\x1b" not in document
    assert json.loads(document)["device"].startswith("\x1b[31mred\n0")


@pytest.mark.parametrize(("words", "status", "told"), [
    (("--timeout", "0"), 2, "--timeout 0: is no time to wait"),
    (("--timeout", "nan"), 2, "--timeout nan: is no time to wait"),
    (("--timeout", "inf"), 2, "--timeout inf: is no time to wait"),
    (("--timeout", "-3"), 2, "--timeout -3: is no time to wait"),
    (("--timeout", "soon"), 2, "soon"),
    (("--prefix", "no-such-folder"), 2, "--prefix no-such-folder: no Python there"),
    (("--python", "no-such-python"), 2, "--python no-such-python: no Python there"),
    (("--prefix", ""), 2, "--prefix: is empty"),
    (("--prefix", "a", "--python", "b"), 2, "name the environment twice"),
    (("--python", "/bin/false"), 3, "/bin/false: ended with status 1"),
    (("surplus",), 2, "surplus"),
])
def test_a_wrong_use_is_one_line(words: tuple[str, ...], status: int, told: str, say: Say) -> None:
    said = say("probe", *words)
    assert (said.status, said.out) == (status, "")
    assert told in said.err.splitlines()[0]
    assert len(said.err.splitlines()) <= 2


def test_a_python_of_the_path_is_taken(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some-python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    document = json.loads(say("probe", "--python", "some-python", "--json").out)
    assert document["python"] == str(tmp_path / "some-python")


@needs_gcc
def test_an_interrupt_ends_the_child(bare: Path, libcuda: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    hang = """int cuInit(unsigned flags) { CALL;
        FILE *file = fopen(getenv("NOTE"), "w"); fprintf(file, "%d", getpid()); fclose(file); for (;;) pause();"""
    make_libcuda(libcuda, SOURCE.replace("int cuInit(unsigned flags) { CALL;", hang))
    command = subprocess.Popen([sys.executable, "-m", "stackfix", "probe", "--python", bare], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={**os.environ, "NOTE": str(note)}, text=True)
    while not (note.exists() and note.read_text()):
        assert command.poll() is None
        time.sleep(0.02)
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out, err.strip()) == (130, "", "interrupted")
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
