"""The README's set-up commands are two, and they are the ones that CI runs; what it names exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix import __version__

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = ROOT / ".ci" / "run"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def set_up_commands(readme: str) -> list[str]:
    """The lines of the only shell block of the section "Set up"."""
    section = readme.partition("\n## Set up\n")[2].partition("\n## ")[0]
    [block] = [str(text) for language, text in FENCE.findall(section) if language == "sh"]
    return block.splitlines()


def test_there_are_two_set_up_commands() -> None:
    main, tests = set_up_commands(README)
    assert main.endswith("stackfix lock --torch 2.3 --cuda 12.1")
    assert "pytest" in tests


def test_ci_runs_both_as_written_and_the_tests_last() -> None:
    lines = CI.read_text(encoding="utf-8").splitlines()
    main, tests = set_up_commands(README)
    assert main in lines
    assert lines[-1] == tests


def test_ci_is_an_executable_script() -> None:
    assert CI.stat().st_mode & 0o111 == 0o111
    subprocess.run(["bash", "-n", CI], check=True, timeout=60)


def shell_lines(text: str) -> list[str]:
    """Every command line of the text's fences that starts with `stackfix`, prompts taken away."""
    blocks = (block for language, block in FENCE.findall(text) if language in ("sh", "console"))
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("stackfix ")]


@pytest.mark.parametrize("line", sorted(set(shell_lines(README))))
def test_every_option_that_the_readme_shows_exists(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = [word for word in words[:2] if word.isalpha()][: 2 if words[0] == "matrix" else 1]
    shown = subprocess.run([sys.executable, "-m", "stackfix", *command, "--help"], capture_output=True, text=True,
                           check=True, timeout=60).stdout
    options = {word.partition("=")[0] for word in words if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?", word)}
    assert options <= set(re.findall(r"--?[a-z][a-z-]*", shown))


def test_the_changelog_starts_with_this_version() -> None:
    text = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", text, re.MULTILINE)[0] == __version__
