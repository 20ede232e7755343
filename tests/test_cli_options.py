"""Options as given: an empty one is an error, never one that was not given."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from stackfix.cli.app import group
from stackfix.cli.lock import command as lock_command
from stackfix.cli.options import LockOptions
from tests.cli_world import ASKED, Say, World

WITH_VALUE = sorted(
    max(option.opts, key=len) for option in lock_command.params
    if isinstance(option, click.Option) and not option.is_flag and not option.count
    and not isinstance(option.type, click.Choice)
)


@pytest.mark.parametrize("option", WITH_VALUE)
@pytest.mark.parametrize("value", ["", "  "])
def test_lock_refuses_an_empty_value_and_writes_nothing(option: str, value: str, world: World, say: Say) -> None:
    said = say("lock", *(ASKED if option != "--torch" else ASKED[2:]), option, value)
    assert (said.status, said.out) == (2, ""), said
    assert f"{option}: is empty" in said.err
    assert not list(Path().glob("*.t*"))
    assert world.asked == []


@pytest.mark.parametrize("words", [
    ("sync", ""), ("sync", "--prefix", ""), ("sync", "--python", ""), ("sync", "--flash-attn-source", ""),
    ("matrix", "show", "--matrix", ""), ("matrix", "why", "torch=2.3", "--matrix", ""), ("matrix", "show", ""),
    ("matrix", "check", "--index-url", ""), ("matrix", "check", "--cache-dir", ""),
], ids=" ".join)
def test_other_commands_refuse_an_empty_value(words: tuple[str, ...], world: World, say: Say) -> None:
    said = say(*words)
    assert said.status == 2, said
    assert "is empty" in said.err


def test_every_command_checks_its_values() -> None:
    """One that does not take the common options would let an empty value through."""
    def leaves(command: click.Command) -> list[click.Command]:
        if not isinstance(command, click.Group):
            return [command]
        context = click.Context(command)
        return [leaf for name in command.list_commands(context)
                if (child := command.get_command(context, name)) is not None for leaf in leaves(child)]

    for leaf in leaves(group):
        assert leaf.callback is not None
        assert hasattr(leaf.callback, "__wrapped__"), leaf.name


def test_an_empty_value_stands_over_the_one_of_the_project_file() -> None:
    assert LockOptions(torch="").asks_for_a_stack()
    assert LockOptions(glibc="").over(LockOptions(glibc="2.28")).glibc == ""
    assert LockOptions().over(LockOptions(glibc="2.28", formats=("pylock",))).glibc == "2.28"


# -- values that make no sense ---------------------------------------------------------------------------------------

@pytest.mark.parametrize(("words", "says"), [
    (("--upgrade-package", "../x"), "--upgrade-package ../x: is not the name of a project"),
    (("--upgrade-package", "numpy==1"), "--upgrade-package numpy==1: is not the name of a project"),
    (("--constraint", "numpy[x]<2"), "a constraint cannot have extras: numpy[x]"),
    (("-r", "missing.in"), "hint: check the name"),
    (("--platform", "linux-32"), "--platform linux-32: the matrix has no rows for this platform"),
    (("--platform", "linux-64,win-64"), "each with -cpu behind it"), (("--platform", "linux-64-CPU"), "`linux-64-cpu`"),
    (("--platform", "../../etc"), "--platform ../../etc: is not a platform"),
    (("--platform", "linux-64\n# x"), "is not a platform"), (("--platform", "osx-arm64-cpu-cpu"), "is not a platform"),
    (("--platform", "x" * 70_000), "is not a platform"), (("--platform", "$(id)"), "is not a platform"),
    (("--macos", "10.15"), "Apple silicon begins with macOS 11: write `11.0` or newer"),
    (("--macos", "14.0; import os"), "is not a version of macOS"), (("--macos", "9" * 5_000), "is not a version of"),
    (("--macos", "-1"), "is not a version of macOS"), (("--macos", "sequoia"), "write `15.0`"),
    (("--macos", "14.0\n15.0"), "is not a version of macOS"),
    (("--platform", "osx-arm64", "--format", "conda-lock"), "no records of channels are for osx-arm64"),
    (("-r", "-"), "-r -: standard input is not read"),
    (("-r", "https://user:s3cret@127.0.0.1:9/r.in"), "names an address; only files are read"),
    (("--matrix", "nonexistent"), "--matrix nonexistent: no such folder"),
    (("--with", "idna @ https://user:s3cret@127.0.0.1:9/idna.whl"), "idna @ https://127.0.0.1:9/idna.whl"),
    (("--with", "idna @@ https://user:s3cret@127.0.0.1:9/idna.whl"), "error: "),
    (("--nope=https://user:s3cret@127.0.0.1:9/",), "error: "),
], ids=lambda value: value if isinstance(value, str) else " ".join(value))
def test_a_bad_value_is_refused_by_name(words: tuple[str, ...], says: str, world: World, say: Say) -> None:
    said = say("lock", *ASKED, *words)
    assert said.status == 2, said
    assert says in said.err
    told = say("lock", *ASKED, *words, "--json")
    assert told.status == 2, told
    assert "s3cret" not in said.err + said.out + told.err + told.out


def test_renewing_what_is_not_locked_is_noted(world: World, say: Say) -> None:
    assert say("lock", *ASKED).status == 0
    said = say("lock", *ASKED, "--upgrade-package", "Numpy", "--upgrade-package", "Typing_Extensions")
    assert said.status == 0
    assert "note: --upgrade-package Numpy: the existing lock does not pin it" in said.err
    assert "Typing_Extensions" not in said.err


def test_a_cache_folder_that_is_a_file_is_said_once(world: World, say: Say) -> None:
    Path("cache").write_text("")
    said = say("lock", *ASKED, "--cache-dir", "cache")
    assert said.status == 0, said
    assert said.err.count("cannot be written") == 1
    assert "cannot be written" not in say("lock", *ASKED, "--cache-dir", "cache", "-q").err


def test_a_matrix_command_names_a_missing_folder(world: World, say: Say) -> None:
    for words in (("show",), ("why", "torch=2.3"), ("check",)):
        assert "--matrix nonexistent: no such folder" in say("matrix", *words, "--matrix", "nonexistent").err


def test_showing_nothing_is_an_answer_of_no(world: World, say: Say) -> None:
    assert say("matrix", "show", "torch=9.9").status == 1
    assert say("matrix", "show", "torch=9.9", "--json").json["builds"] == []
    assert say("matrix", "show", "torch=2.3").status == 0


def test_a_platform_of_the_matrix_is_named_as_in_a_lock(world: World, say: Say) -> None:
    for words in (("show", "platform=macos"), ("why", "torch=2.3", "platform=macos")):
        said = say("matrix", *words)
        assert said.status == 2, said
        assert "macos: is not a platform" in said.err
        assert "write `osx-arm64`" in said.err
