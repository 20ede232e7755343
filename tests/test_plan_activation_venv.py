"""Blocks in the activation scripts that Python's venv, uv and virtualenv write, sourced in real shells."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from stackfix.plan.activation import Activation, Script, activation_steps
from stackfix.plan.activation_venv import BEGIN, without_blocks
from stackfix.plan.effect_records import Variable
from tests.hook_world import MINORS, interpreter, write
from tests.shell_world import SHELLS, Shell, is_here, run

NAME = "LD_LIBRARY_PATH"
SCRIPTS = {".sh": "activate", ".fish": "activate.fish", ".csh": "activate.csh"}
MAKERS = (*(f"venv {minor}" for minor in MINORS), "uv", "virtualenv")
PROMPT = {"tcsh": ["set prompt = '> '"]}      # the scripts of venv want one


def make(maker: str, prefix: Path) -> None:
    """A venv without anything in it; skipped where its maker is not here."""
    if maker == "uv":
        uv = Path(sys.executable).with_name("uv")
        command = [str(uv if uv.exists() else shutil.which("uv") or ""), "venv", "-q", "--offline", str(prefix)]
    elif maker == "virtualenv":
        command = [sys.executable, "-m", "virtualenv", "-q", "--no-seed", str(prefix)]
    else:
        command = [interpreter(maker.split()[1]) or "", "-m", "venv", "--without-pip", str(prefix)]
    if not command[0] or (maker == "virtualenv" and importlib.util.find_spec("virtualenv") is None):
        pytest.skip(f"no {maker} here")
    subprocess.run(command, check=True, capture_output=True, timeout=120)


@dataclass(frozen=True, slots=True, kw_only=True)
class Venv:
    """A venv with the blocks in its scripts; those that its maker wrote lie in `plain`."""

    prefix: Path
    plain: Path
    activation: Activation
    scripts: tuple[Script, ...]


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Venv]:
    """By its maker; each is made once."""
    @functools.cache
    def made(maker: str) -> Venv:
        prefix = tmp_path_factory.mktemp("venvs") / "a  venv"
        make(maker, prefix)
        plain = prefix.parent / "plain"
        shutil.copytree(prefix / "bin", plain, symlinks=True)
        scripts = scripts_of(prefix)
        activation = planned(prefix, scripts)
        write(prefix, activation.steps)
        return Venv(prefix=prefix, plain=plain, activation=activation, scripts=scripts)

    return made


def scripts_of(prefix: Path) -> tuple[Script, ...]:
    return tuple(Script(path=f"bin/{path.name}", text=path.read_bytes().decode(), mode=path.stat().st_mode & 0o777)
                 for path in sorted((prefix / "bin").iterdir()) if path.name.lower().startswith("activate"))


def planned(prefix: Path, scripts: Sequence[Script]) -> Activation:
    variable = Variable(name=NAME, first=(f"{prefix}/lib/it's jit/lib",), without=("/bad",))
    return activation_steps(str(prefix), "venv", [variable], scripts)


def shell_for(name: str, maker: str) -> Shell:
    """The shell, strict where the maker's own script bears it: some name variables that only bash and zsh have."""
    if not is_here(name):
        pytest.skip(f"no {name} here")
    found = SHELLS[name]
    bears = name == "bash" or (maker.startswith("venv") and (name == "zsh" or maker != "venv 3.12"))
    return found if bears else replace(found, strict="")


def source(shell: Shell, folder: Path) -> str:
    """The line that activates; folders here have two spaces."""
    return shell.source.format(f"'{folder}/{SCRIPTS[shell.suffix]}'")


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("maker", MAKERS)
def test_before_in_and_after(maker: str, name: str, venv: Callable[[str], Venv], tmp_path: Path) -> None:
    shell, made = shell_for(name, maker), venv(maker)
    own, environ = f"{made.prefix}/lib/it's jit/lib", {NAME: "/bad:/x"}
    go, plain, ask = source(shell, made.prefix / "bin"), source(shell, made.plain), PROMPT.get(name, [])
    start, inside, after, twice, again = run(
        shell, [*ask, "?", go, "?", "deactivate", "?", go, go, "?", "deactivate", "?"], environ, tmp_path)
    control, control_after = run(shell, [*ask, plain, "?", "deactivate", "?"], environ, tmp_path)
    assert inside[NAME] == twice[NAME] == f"{own}:/x"
    assert start[NAME] == after[NAME] == again[NAME] == "/bad:/x"
    assert {key: value for key, value in inside.items() if key != NAME and "STACKFIX" not in key} == {
        key: value for key, value in control.items() if key != NAME}
    assert after == control_after


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("maker", MAKERS)
def test_the_variable_was_not_set(maker: str, name: str, venv: Callable[[str], Venv], tmp_path: Path) -> None:
    shell, made = shell_for(name, maker), venv(maker)
    go = source(shell, made.prefix / "bin")
    inside, after = run(shell, [*PROMPT.get(name, []), go, "?", "deactivate", "?"], {}, tmp_path)
    assert inside[NAME] == f"{made.prefix}/lib/it's jit/lib"
    assert [key for key in after if key == NAME or "STACKFIX" in key] == []


@pytest.mark.parametrize("name", SHELLS)
def test_another_venv_on_top(name: str, venv: Callable[[str], Venv], tmp_path: Path) -> None:
    """The second activation takes the first one back, as all makers' scripts do with PATH."""
    current = f"venv {sys.version_info.major}.{sys.version_info.minor}"
    shell, one, two = shell_for(name, "uv"), venv("uv"), venv(current)
    lines = [*PROMPT.get(name, []), source(shell, one.prefix / "bin"), source(shell, two.prefix / "bin"), "?",
             "deactivate", "?"]
    inside, after = run(shell, lines, {NAME: "/x"}, tmp_path)
    assert (inside[NAME], after[NAME]) == (f"{two.prefix}/lib/it's jit/lib:/x", "/x")
    assert [key for key in after if "STACKFIX" in key.upper()] == []


@pytest.mark.parametrize("maker", MAKERS)
def test_once_more_changes_nothing_and_blocks_can_be_cut_out(maker: str, venv: Callable[[str], Venv]) -> None:
    made = venv(maker)
    again = planned(made.prefix, scripts_of(made.prefix))
    assert again == made.activation
    written = {step.path: step for step in made.activation.steps}
    for script in made.scripts:
        if script.path in written:
            assert without_blocks(written[script.path].text) == script.text
            assert written[script.path].mode == script.mode
    powershell = next(step for path, step in written.items() if path.endswith(".ps1"))
    assert powershell.text.count(BEGIN) == 2
    assert powershell.text.index("function global:deactivate") < powershell.text.index(BEGIN)


def test_what_is_not_understood_is_left_and_said() -> None:
    odd = [
        Script(path="bin/activate", text="export PATH=/p/bin:$PATH\n"),
        Script(path="bin/activate.nu", text="export-env {}\n"),
        Script(path="bin/activate_this.py", text="import sys\n"),
        Script(path="bin/Activate.ps1", text="function global:deactivate () {\n}\n# SIG # Begin signature block\n"),
    ]
    made = planned(Path("/p"), odd)
    assert made.steps == ()
    assert [path for path, _ in made.skipped] == ["bin/Activate.ps1", "bin/activate", "bin/activate.nu"]


def test_lines_end_as_they_did() -> None:
    text = "\ufeff# x\r\nfunction global:deactivate([switch] $NonDestructive) {\r\n}\r\n$env:A = 1"
    (step,) = planned(Path("/p"), [Script(path="bin/activate.ps1", text=text, mode=0o755)]).steps
    assert step.text.startswith("\ufeff# x\r\n")
    assert step.text.count("\n") == step.text.count("\r\n")
    assert "$env:A = 1\r\n# >>>" in step.text
    assert step.mode == 0o755
