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
