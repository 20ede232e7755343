"""Children that crash, hang, chatter, or are no Python: each ends, and what is known of it is kept."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from stackfix.errors import Unreachable
from stackfix.verify.child import run_child
from stackfix.verify.ended import Ended, ended
from stackfix.verify.judge import step_of
from stackfix.verify.records import VERDICTS
from stackfix.verify.script import PARTS, script_of, source_of
from stackfix.verify.stack import STACK
from tests.real_environments.workshop import interpreters

ENVIRON = dict(os.environ)


def load(source: str, folder: Path, *, timeout: float = 60, python: str = sys.executable, **variables: str) -> Ended:
    """A child that imports a module of this source."""
    (folder / "subject.py").write_text(textwrap.dedent(source))
    environ = {**ENVIRON, "PYTHONPATH": str(folder), **variables}
    return run_child(python, "load", {"module": "subject", "stack": STACK}, environ, timeout=timeout)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    """Whether the process goes away; it is given ten seconds."""
    for _ in range(200):
        if not is_running(pid):
            return True
        time.sleep(0.05)
    return False


def test_an_answer_stands_among_all_that_is_printed(tmp_path: Path) -> None:
    done = load("""
        import os, sys
        __version__ = "1.0"
        print("stackfix-0000 {")
        os.write(1, b"\\x00\\xff no line feed")
        os.write(2, b"y" * 3_000_000)
        sys.stderr.write("the last line")
        """, tmp_path)
    assert done.answer == {"version": "1.0", "file": str(tmp_path / "subject.py")}
    assert (done.status, done.timed_out, done.stage) == (0, False, "import subject")
    assert done.said.endswith("the last line")
    assert len(done.said) == 1 << 20


def test_what_is_printed_before_the_script_begins_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nprint('x' * 100_000 + '{\"answer\": 1}', end='')\n")
    assert load("", tmp_path).answer == {"version": "", "file": str(tmp_path / "subject.py")}


@pytest.mark.parametrize(("line", "status"), [
    ("os.kill(os.getpid(), 11)", -11), ("os.abort()", -6), ("os._exit(3)", 3), ("os._exit(0)", 0),
    ("ctypes.string_at(0)", -11)])
def test_a_death_leaves_the_stage(line: str, status: int, tmp_path: Path) -> None:
    done = load(f"import ctypes, os\n{line}\n", tmp_path)
    assert (done.answer, done.stage, done.status, done.timed_out) == (None, "import subject", status, False)
    assert not list(tmp_path.glob("core*"))


@pytest.mark.parametrize(("line", "kind"), [
    ("raise ImportError('x')", "ImportError"), ("raise SystemExit(0)", "SystemExit"), ("raise KeyboardInterrupt",
     "KeyboardInterrupt"), ("def f(): f()\nf()", "RecursionError"), ("(", "SyntaxError")])
def test_whatever_an_import_raises_is_an_answer(line: str, kind: str, tmp_path: Path) -> None:
    done = load(f"{line}\n", tmp_path)
    assert done.answer is not None
    assert done.answer["raised"][0]["type"] == kind
    assert done.status == 0


def test_a_module_that_is_not_there_is_absent_and_one_that_lacks_another_is_not(tmp_path: Path) -> None:
    missing = run_child(sys.executable, "load", {"module": "no_such", "stack": STACK}, ENVIRON, timeout=60)
    assert missing.answer == {"absent": "no_such"}
    lacking = load("import no_such_either\n", tmp_path)
    assert lacking.answer is not None
    assert lacking.answer["raised"][0]["type"] == "ModuleNotFoundError"


def test_a_hang_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    done = load(f"""
        import os, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open({str(note)!r}, "w").write("%d %d" % (os.getpid(), other.pid))
        time.sleep(600)
        """, tmp_path, timeout=3)
    assert (done.timed_out, done.answer, done.stage, done.left_behind) == (True, None, "import subject", None)
    assert all(gone(int(pid)) for pid in note.read_text().split())


def test_a_start_that_hangs_is_ended_though_it_reads_no_script(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(600)\n")
    done = load("", tmp_path, timeout=1)
    assert (done.timed_out, done.stage, done.answer) == (True, None, None)


def test_a_process_that_holds_the_pipes_open_is_not_waited_for(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    done = load(f"""
        import subprocess, sys
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        open({str(note)!r}, "w").write(str(other.pid))
        """, tmp_path)
    pid = int(note.read_text())
    assert is_running(pid)      # else nothing was shown
    os.kill(pid, 9)
    assert done.answer is not None
    assert not done.timed_out


def test_a_child_dies_with_the_one_that_asks(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    (tmp_path / "subject.py").write_text(
        f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    asker = subprocess.Popen([sys.executable, "-c", (
        "import os, sys\nfrom stackfix.verify.child import run_child\n"
        "run_child(sys.executable, 'load', {'module': 'subject', 'stack': 'x'}, os.environ, timeout=600)")],
        env={**ENVIRON, "PYTHONPATH": str(tmp_path)})
    try:
        while not (note.exists() and note.read_text()):
            assert asker.poll() is None
            time.sleep(0.02)
    finally:
        asker.kill()
        asker.wait()
    assert gone(int(note.read_text()))


def test_nothing_is_imported_from_the_current_folder_and_nothing_is_compiled(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    for name in ("json", "ctypes", "subject", "importlib"):
        (here / f"{name}.py").write_text("raise RuntimeError('from the current folder')\n")
    monkeypatch.chdir(here)
    done = load("import os\n__version__ = os.environ['LD_LIBRARY_PATH']\n", there, LD_LIBRARY_PATH="/some where:;x")
    assert done.answer == {"version": "/some where:;x", "file": str(there / "subject.py")}
    assert [each.name for each in there.iterdir()] == ["subject.py"]


@pytest.mark.parametrize("program", ["/bin/true", "/bin/false", "/bin/cat"])
def test_what_is_no_python_gives_no_answer(program: str) -> None:
    done = run_child(program, "load", {"module": "x", "stack": STACK}, ENVIRON, timeout=60)
    assert (done.answer, done.stage) == (None, None)


@pytest.mark.parametrize("program", ["no/such/python", "/", __file__])
def test_what_cannot_be_started_is_unreachable(program: str) -> None:
    with pytest.raises(Unreachable) as caught:
        run_child(program, "load", {"module": "x", "stack": STACK}, ENVIRON, timeout=60)
    assert caught.value.thing == program


def test_messages_that_are_cut_off_or_of_another_shape_are_passed_over() -> None:
    output = ('m {"at": "one", "mapped": ["/a", 1]}\nm {"at": 3, "mapped": 4}\nm [1]\nn {"at": "two"}\n'
              'm {"answer": 5}\nm {"answer": {"a":')
    found = ended(output, "m", status=1, timed_out=False, left_behind=None, said="", seconds=0)
    assert (found.stage, found.answer, found.mapped) == ("one", None, ("/a",))


@pytest.mark.parametrize(("answer", "sound"), [
    ({}, True), ({"version": 5}, True), ([], False), ({"failed": 5}, False), ({"failed": {"call": "f"}}, False),
    ({"failed": {"call": "f", "code": 5}}, True), ({"raised": [{"type": "E"}]}, False), ({"raised": "E"}, False),
    ({"devices": []}, False), ({"devices": [], "cuda": "12.4"}, True), ({"devices": [{}], "cuda": "12.4"}, False),
    ({"accuracy": [{"of": "x", "largest_error": "1"}]}, False), ({"accuracy": None}, False)])
def test_an_answer_of_another_shape_is_none(answer: object, sound: bool) -> None:
    found = ended(f"m {json.dumps({'answer': answer})}", "m", status=0, timed_out=False, left_behind=None, said="",
                  seconds=0.1)
    assert (found.answer is not None) == sound
    assert step_of("x", found, timeout=60).verdict in VERDICTS


@pytest.mark.parametrize("minor", ["3.10", "3.12", "3.13"])
def test_scripts_run_in_other_pythons(minor: str, tmp_path: Path) -> None:
    python = next(interpreters(minor), None)
    if python is None:
        pytest.skip(f"no Python {minor} on this machine")
    environ = {name: value for name, value in ENVIRON.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    for part, request in (("load", {"module": "json"}), ("driver", {"task": "devices"})):
        done = run_child(str(python), part, {**request, "stack": STACK}, environ, timeout=60)
        assert done.answer is not None, done
        assert "raised" not in done.answer


@pytest.mark.parametrize("part", PARTS)
def test_a_script_stands_alone_and_is_read_by_python_3_7(part: str) -> None:
    tree = ast.parse(script_of(part), feature_version=(3, 7))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    # what came later than Python 3.7, and is no syntax
    assert not {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & {
        "removeprefix", "removesuffix", "is_relative_to", "pairwise", "cached_property", "prod", "unparse"}


@pytest.mark.parametrize("part", PARTS)
def test_no_two_modules_of_a_script_define_the_same_name(part: str) -> None:
    seen: dict[str, str] = {}
    for module in PARTS[part][0]:
        for node in ast.parse(source_of(module)).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names = [node.name]
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            else:
                continue
            assert not set(names) & set(seen), (module, set(names) & set(seen))
            seen.update(dict.fromkeys(names, module))
