"""What is asked for before the command line is parsed: by plain lines alone, and nothing twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.cli import early_ask
from stackfix.cli.early_ask import values_of
from tests.cli_world import ASKED, Say, World, settle, speaker

ROOT = Path(__file__).resolve().parent.parent
LOCK = ("lock", *ASKED, "--format", "requirements")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with World().served() as world:
        folder = tmp_path / "project"
        folder.mkdir()
        settle(monkeypatch, folder, world.url)
        monkeypatch.setenv("STACKFIX_CACHE_DIR", str(tmp_path / "cache"))
        yield world
    early_ask.drop()


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    return speaker(capfd)


def pages(world: World) -> Counter[str]:
    return Counter(path for path in world.asked if path.startswith("/simple/"))


def asked(world: World) -> bool:
    """Whether the index was asked; what was sent may still be on its way."""
    until = time.monotonic() + 30
    while not world.asked and time.monotonic() < until:
        time.sleep(0.01)
    return bool(world.asked)


def nothing_asked(world: World) -> bool:
    return not world.asked and not early_ask._BEGUN  # noqa: SLF001


@pytest.mark.parametrize(("words", "expected"), [
    (LOCK, True),
    (("lock", "--with", "vllm"), True),
    (("lock", "--with=transformers[torch]>=4,<6", "--torch=2.6.0", "--cuda", "12.4", "-q"), True),
    (("lock", "--torch", "2.6", "--python", "3.11", "--platform", "linux-64-cpu", "-o", "x y"), True),
    ((), False),
    (("lock",), False),                                         # it may be in a project file
    (("lock", "--python", "3.11"), False),
    (("check", "--torch", "2.6"), False),
    (("lock", "--torch"), False),
    (("lock", "--torch", "two"), False),
    (("lock", "--torch", "nightly"), False),
    (("lock", "--torch", ""), False),
    (("lock", "--torch", "2.6", "--help"), False),
    (("lock", "--torch", "2.6", "--offline"), False),
    (("lock", "--torch", "2.6", "-v"), False),
    (("lock", "--torch", "2.6", "--matrix", "m"), False),
    (("lock", "--torch", "2.6", "-r", "requirements.in"), False),
    (("lock", "--torch", "2.6", "--format", "explicit"), False),
    (("lock", "--torch", "2.6", "--prove"), False),
    (("lock", "--torch", "2.6", "--index-url"), False),
    (("lock", "--torch", "2.6", "extra"), False),
    (("lock", "--torch", "2.6", "-qv"), False),
    (("lock", "--with", "./wheel"), False),
    (("lock", "--with", "own @ https://own.test/own.whl"), False),
    (("lock", "--with", "-r"), False),
])
def test_only_plain_command_lines_are_understood(words: tuple[str, ...], expected: bool) -> None:
    assert (values_of(words) is not None) == expected


def test_a_lock_takes_what_was_asked_for_and_asks_nothing_twice(world: World, say: Say) -> None:
    early_ask.ask(LOCK)
    assert asked(world)
    first = say(*LOCK)
    assert first.status == 0
    content = Path("requirements.txt").read_bytes()
    assert set(pages(world).values()) == {1}
    Path("requirements.txt").unlink()
    again = say(*LOCK, "--cache-dir", "another")
    assert (again, Path("requirements.txt").read_bytes()) == (first, content), "as without it"


def test_a_folder_with_a_lock_is_looked_at_first(world: World) -> None:
    Path("requirements.txt").write_text("own\n")
    early_ask.ask(LOCK)
    assert nothing_asked(world)


@pytest.mark.parametrize("settings", [
    'sources = {idna = {index = "own"}}\nindex = [{name = "own", url = "http://127.0.0.1:9/simple", explicit = true}]',
    'index = [{url = "http://127.0.0.1:9/simple"}]',
    'extra-index-url = ["http://127.0.0.1:9/simple"]',
    'keyring-provider = "subprocess"',
])
def test_settings_that_steer_single_projects_are_followed_first(
    settings: str, world: World, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("UV_NO_CONFIG")
    monkeypatch.setenv("HOME", str(Path.cwd()))
    Path("pyproject.toml").write_text(f'[project]\nname = "mine"\nversion = "1"\n[tool.uv]\n{settings}\n')
    early_ask.ask((*LOCK, "--with", "idna"))
    assert nothing_asked(world)


def test_an_index_that_makes_no_sense_is_told_by_the_whole_way(world: World, say: Say) -> None:
    words = (*LOCK, "--index-url", "gopher://nowhere")
    early_ask.ask(words)
    assert nothing_asked(world)
    assert say(*words).status == 2


@pytest.mark.parametrize("change", ["index", "cache", "offline"])
def test_another_request_than_was_expected_asks_for_itself(change: str, world: World, say: Say, tmp_path: Path) -> None:
    early_ask.ask(LOCK)
    assert asked(world)
    with World().served() as other:
        more = {"index": ("--index-url", other.url), "cache": ("--cache-dir", str(tmp_path / "other")),
                "offline": ("--offline",)}[change]
        said = say(*LOCK, *more)
        assert said.status == (3 if change == "offline" else 0)
        assert bool(other.asked) == (change == "index")
    assert not early_ask._BEGUN  # noqa: SLF001


def test_without_a_home_nothing_breaks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", gone)
    early_ask.ask(LOCK)
    assert nothing_asked(world)


PROGRAM = """
import json, sys
sys.argv = ["stackfix", *json.loads({words!r})]
import stackfix.cli
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            sys.stderr.write("BEGUN %d " % len(stackfix.cli.early_ask._BEGUN))
sys.meta_path.insert(0, Watch())
stackfix.cli.main()
"""


@pytest.mark.parametrize(("words", "begun", "status"), [
    ((*LOCK, "-q"), 1, 0), ((*LOCK, "--no-such-option"), 0, 2), ((*LOCK, "--python", "3.1"), 1, 1),
])
def test_the_program_asks_before_it_imports_its_parser(
    words: tuple[str, ...], begun: int, status: int, world: World,
) -> None:
    assert world.url
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(words=json.dumps(words))], capture_output=True,
                          text=True, check=False, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert f"BEGUN {begun} " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == status, done.stderr
