"""`stackfix lock` as a whole, against a small index on loopback."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli_world import ASKED, Say, World
from tests.sources_servers import ok
from tests.sources_servers import status as found

BY_HAND = "numpy==1.26.4   # mine\n"


# -- files of others -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["requirements.txt", "pylock.toml", "conda-lock.yml"])
def test_a_file_by_hand_is_overwritten_only_when_told(name: str, world: World, say: Say) -> None:
    Path(name).write_text(BY_HAND)
    said = say("lock", *ASKED)
    assert (said.status, said.out) == (2, ""), said
    assert name in said.err
    assert "--overwrite" in said.err
    assert Path(name).read_text() == BY_HAND
    assert not {"requirements.txt", "pylock.toml", "conda-lock.yml"} - {name} & {path.name for path in Path().iterdir()}
    assert world.asked == [], "refused before the index is asked"
    assert say("lock", *ASKED, "--overwrite").status == 0
    assert "stackfix" in Path(name).read_text()
    assert say("lock", *ASKED).status == 0, "what is ours now is replaced unasked"


def test_a_file_by_hand_in_the_place_of_one_of_several_targets_is_refused(world: World, say: Say) -> None:
    place = Path("requirements-cp310-linux-64.txt")
    place.write_text(BY_HAND)
    said = say("lock", *ASKED, "--python", "3.10")
    assert said.status == 2, said
    assert place.name in said.err
    assert place.read_text() == BY_HAND


def test_check_reads_a_file_by_hand_as_different(world: World, say: Say) -> None:
    Path("requirements.txt").write_text(BY_HAND)
    said = say("lock", *ASKED, "--check", "--format", "requirements")
    assert said.status == 1, said
    assert "requirements.txt:1" in said.out


# -- the command in the header ---------------------------------------------------------------------------------------

def header_command(path: str = "requirements.txt") -> list[str]:
    """The words after `stackfix` of the command in the file's header."""
    command = next(line[5:] for line in Path(path).read_text().splitlines() if line.startswith("#    "))
    words = shlex.split(command)
    assert words[0] == "stackfix"
    return words[1:]


def bytes_here() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for kind in ("*.t*", "*.yml") for path in Path().rglob(kind)
            if ".cache" not in path.parts}


def assert_reproduces(say: Say, words: list[str]) -> None:
    """The command holds where the files are, and gives the same bytes where they are not."""
    before = bytes_here()
    held = say(*words, "--check")
    assert (held.status, held.out) == (0, ""), held
    for path in before:
        if Path(path).suffix in {".txt", ".toml", ".yml"} and path != "stackfix.toml":
            Path(path).unlink()
    assert say(*words).status == 0
    assert bytes_here() == before


@pytest.mark.parametrize(("words", "shown"), [
    (("-r", "requirements.in"), ("-r", "requirements.in")),
    (("-r", "./in/more.in", "--with", "filelock<3.13"), ("--with", "filelock<3.13", "-r", "./in/more.in")),
    (("-r", "requirements.in", "-r", "in/more.in", "--constraint", "filelock<3.13", "--format", "requirements"),
     ("--constraint", "filelock<3.13", "-r", "requirements.in", "-r", "in/more.in", "--format", "requirements")),
    (("-o", "locks", "--name", "train", "--exclude-newer", "2030-01-01"),
     ("--exclude-newer", "2030-01-01T00:00:00Z", "-o", "locks", "--name", "train")),
], ids=" ".join)
def test_the_header_is_what_was_asked_and_gives_the_lock_again(
    words: tuple[str, ...], shown: tuple[str, ...], world: World, say: Say,
) -> None:
    world.dated = True
    Path("requirements.in").write_text("numpy<2\n-c in/limits.in\n")
    Path("in").mkdir()
    Path("in/more.in").write_text("numpy\nidna>3\n")
    Path("in/limits.in").write_text("idna<3.7\n")
    inputs = {path: Path(path).read_text() for path in ("requirements.in", "in/more.in", "in/limits.in")}
    assert say("lock", *ASKED, *words).status == 0
    folder, suffix = ("locks/", "-train") if "-o" in words else ("", "")
    command = header_command(f"{folder}requirements{suffix}.txt")
    assert command == ["lock", *ASKED, *shown]
    assert_reproduces(say, command)
    assert inputs == {path: Path(path).read_text() for path in inputs}


def test_an_absolute_path_leaves_its_name_in_the_header(world: World, say: Say) -> None:
    Path("requirements.in").write_text("numpy<2\n")
    assert say("lock", *ASKED, "-r", Path("requirements.in").absolute(), "-o", Path().absolute()).status == 0
    assert header_command() == ["lock", *ASKED, "-r", "requirements.in"]
    assert_reproduces(say, header_command())


def test_a_python_that_was_not_asked_for_is_in_the_header(world: World, say: Say) -> None:
    said = say("lock", "--torch", "2.3", "--no-flash-attn", "--json")
    python = said.json["targets"][0]["python"]
    assert header_command() == ["lock", "--torch", "2.3", "--python", python, "--no-flash-attn"]


@pytest.mark.parametrize(("text", "words"), [
    ('torch = "2.3"\npython = "3.11"\nno-flash-attn = true\nrequirements = "requirements.in"\n', {"": []}),
    ('python = "3.11"\nno-flash-attn = true\n[stacks.a]\ntorch = "2.3"\n[stacks.b]\ntorch = "2.3.1"\nwith = "numpy"\n',
     {"-a": ["--name", "a"], "-b": ["--name", "b"]}),
], ids=["one", "named"])
def test_the_header_of_a_project_file_s_stack_names_the_stack(
    text: str, words: dict[str, list[str]], world: World, say: Say,
) -> None:
    Path("stackfix.toml").write_text(text)
    Path("requirements.in").write_text("numpy<2\n")
    assert say("lock").status == 0
    for suffix, rest in words.items():
        command = header_command(f"requirements{suffix}.txt")
        assert command == ["lock", *rest]
        assert say(*command, "--check").status == 0
    assert_reproduces(say, ["lock"])


# -- named stacks ----------------------------------------------------------------------------------------------------

STACKS = 'python = "3.11"\nno-flash-attn = true\n[stacks.good]\ntorch = "2.3"\n[stacks.bad]\ntorch = "2.3"\n'


@pytest.mark.parametrize(("fault", "status", "code"), [
    ('with = "no-such-project"\n', 1, "no-such-project"),
    ('with = "filelock>99"\n', 1, "no-consistent-stack"),
    ('requirements = "missing.in"\n', 2, "bad-input"),
    ('driver = "auto"\n', 3, "unreachable"),
])
def test_an_error_in_a_named_stack_names_it(
    fault: str, status: int, code: str, world: World, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stackfix.inspect.driver.read_driver_version", lambda: None)
    Path("stackfix.toml").write_text(STACKS + fault)
    said = say("lock")
    assert said.status == status, said
    assert "error: stack bad of stackfix.toml: " in said.err
    error = say("lock", "--json").json["error"]
    assert (error["code"], error["stack"], error["project_file"]) == (code, "bad", "stackfix.toml")
    assert error["message"].startswith("stack bad of stackfix.toml: ")
    assert say("lock", "--name", "good").status == 0


def test_an_error_in_the_only_stack_of_a_file_names_the_file(world: World, say: Say) -> None:
    Path("pyproject.toml").write_text('[tool.stackfix]\ntorch = "2.3"\nrequirements = "missing.in"\n')
    assert "error: pyproject.toml: missing.in: no such file" in say("lock").err
    assert say("lock", "--json").json["error"]["stack"] is None


def test_an_error_of_the_command_line_names_no_stack(world: World, say: Say) -> None:
    assert "stack" not in say("lock", *ASKED, "-r", "missing.in", "--json").json["error"]


# -- pages that are none ---------------------------------------------------------------------------------------------

LOGIN = b"<!DOCTYPE html><html><body><a href='/help'>help</a><form>Sign in</form></body></html>"


@pytest.mark.parametrize("redirected", [False, True])
def test_a_login_page_in_place_of_the_index(world: World, say: Say, *, redirected: bool) -> None:
    page = ok(LOGIN, kind="text/html; charset=utf-8")
    world.answers = {f"/simple/{name}/": page for name in world.projects}
    if redirected:
        world.answers = dict.fromkeys(world.answers, found("302 Found", "Location: /login")) | {"/login": page}
    said = say("lock", *ASKED, "--json")
    assert said.status == 3, said
    assert said.json["error"]["code"] == "bad-index-page"
    assert "is no index page: it lists no file of " in said.json["error"]["message"]
