"""The preload folder that is printed where nothing may be written: made with these very commands, and used."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.plan.hook import hook_steps
from stackfix.plan.hook_folder import folder_commands
from stackfix.plan.records import WriteFile
from tests.real_environments.standins import write_wheels
from tests.real_environments.workshop import Workshop
from tests.repair_world import WINNER, Bench, bench_in, read_only, shells

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")
FINDERS = "import sys; print([type(each).__module__ for each in sys.meta_path].count('sitecustomize'))"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A package of compiled parts, whose library another copy shadows."""
    folder = tmp_path_factory.mktemp("stand-ins")
    (folder / "made").mkdir()
    return bench_in(Workshop(folder=folder / "made", wheels=write_wheels(folder / "wheels")))


@pytest.fixture(scope="module")
def command(bench: Bench) -> str:
    """As it is printed where the environment is mounted read-only."""
    start = read_only(bench.prefix)
    if not start:
        pytest.skip("nothing can be mounted here")
    said = bench.say("repair", "--dry-run", "--json", start=start)
    printed: str = said.json["refused"]["command"]
    assert f"\n{printed}\n" in bench.say("repair", "--dry-run", "-v", start=start).stdout
    return printed


def in_shell(shell: str, home: Path, command: str, *words: str | Path,
             **variables: str) -> subprocess.CompletedProcess[str]:
    """A program started in a shell in which the commands were pasted."""
    home.mkdir(exist_ok=True)
    return subprocess.run([shell, "-c", f'{command}\n"$@"', shell, *map(str, words)], text=True, capture_output=True,
                          env={"HOME": str(home), "PATH": os.defpath, **variables}, check=False, timeout=60)


@pytest.mark.parametrize("shell", shells())
def test_the_environments_own_library_is_mapped(shell: str, bench: Bench, command: str, tmp_path: Path) -> None:
    before = bench.tree()
    home = tmp_path / "a home"
    broken = in_shell(shell, home, ":", bench.made.python, "-B", "-c", WINNER, **bench.hostile)
    assert broken.returncode == 1
    done = in_shell(shell, home, command, bench.made.python, "-B", "-c", WINNER, **bench.hostile)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, bench.own, ""), done
    assert bench.tree() == before
    [folder] = (home / ".local" / "share" / "stackfix").iterdir()
    assert {each.name for each in folder.iterdir()} - {"__pycache__"} == {
        "sitecustomize.py", "sitecustomize_loader.py"}


def test_what_was_on_the_path_before_goes_on(bench: Bench, command: str, tmp_path: Path) -> None:
    """Also another sitecustomize: of the system, or of a tool that measures coverage."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import sys\nsys.seen = __file__\n")
    code = "import sys, sitecustomize; print(sys.seen == sitecustomize.__file__, sys.seen); " + FINDERS
    done = in_shell("sh", tmp_path / "home", command, bench.made.python, "-B", "-c", code, PYTHONPATH=str(other))
    assert done.stdout.splitlines() == [f"True {other}/sitecustomize.py", "1"], done


def test_another_environment_is_left_alone(command: str, tmp_path: Path) -> None:
    done = in_shell("sh", tmp_path / "home", command, sys.executable, "-c", FINDERS)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


def test_the_hook_can_be_switched_off(bench: Bench, command: str, tmp_path: Path) -> None:
    done = in_shell("sh", tmp_path / "home", command, bench.made.python, "-B", "-c", WINNER, STACKFIX_PRELOAD="0",
                    **bench.hostile)
    assert "undefined symbol" in done.stderr


def test_odd_names_stay_what_they_are(tmp_path: Path) -> None:
    """A folder's name is no code, and no end of a text, in the shell or in Python."""
    prefix = tmp_path / "it's $HOME `x`\nEND_OF_FILE\n é"
    site = f"{prefix}/site"
    steps = hook_steps("site", {"some": ["a/lib'x.so"]}, "3.11", elsewhere={"some": f"{prefix}/else"})
    loader = next(step.text for step in steps if isinstance(step, WriteFile) and step.path.endswith("_loader.py"))
    command = folder_commands(str(prefix), site, loader)
    assert command is not None
    code = ("import runpy, glob, os; [path] = glob.glob(os.environ['HOME'] + '/.local/share/stackfix/*/*_loader.py'); "
            "names = runpy.run_path(path); print(ascii((names['LIBRARIES'], names['ELSEWHERE'])))")
    done = in_shell("sh", tmp_path / "home", command, sys.executable, "-c", code)
    assert done.stdout.strip() == ascii(({"some": (f"{site}/a/lib'x.so",)}, {"some": f"{prefix}/else"})), done


def test_a_text_that_is_no_hook_makes_no_folder() -> None:
    assert folder_commands("/venv", "/venv/site", "x = 1\n") is None
