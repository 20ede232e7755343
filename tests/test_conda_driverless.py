"""A conda side for a machine without a driver: the cause is told, and what gives it one is offered."""

from __future__ import annotations

import pytest

from stackfix.matrix.load import load_matrix
from stackfix.resolve.changes import changes_of
from stackfix.resolve.question import parse_request, without
from stackfix.resolve.records import StackRequest
from tests.cli_world import Say, World

ASKED = ("lock", "--torch", "2.3", "--python", "3.11", "--channel", "conda-forge", "--format", "conda-lock")


@pytest.fixture(autouse=True)
def _no_driver(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the world, which takes all of conda's variables away."""
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")


@pytest.mark.parametrize("more", [(), ("--no-flash-attn",)], ids=["flash-attn not asked for", "without flash-attn"])
@pytest.mark.parametrize("variable", ["", "  "], ids=["empty", "blank"])
def test_the_missing_driver_is_the_cause_and_one_is_offered(
    variable: str, more: tuple[str, ...], world: World, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", variable)
    said = say(*ASKED, "--layout", "native", *more, "--json")
    assert said.status == 1, said
    texts = [cause["text"] for cause in said.json["error"]["causes"]]
    assert not [text for text in texts if "flash-attn" in text]
    [needs] = [cause for cause in said.json["error"]["causes"] if "needs __cuda" in cause["text"]]
    assert "_py311" in needs["source"]
    [lacks] = [cause for cause in said.json["error"]["causes"] if "a machine without __cuda" in cause["text"]]
    assert lacks["source"] == "CONDA_OVERRIDE_CUDA"
    commands = [offer["command"] for offer in said.json["error"]["nearest"]]
    assert any("--driver 525.60.13" in command for command in commands), commands
    helped = next(command for command in commands if "--driver" in command)
    assert say(*helped.split()[1:]).status == 0     # the variable is still set: the option goes before it


def test_a_lock_that_ends_in_wheels_for_it_says_so(world: World, say: Say) -> None:
    said = say(*ASKED, "--no-flash-attn", "--format", "requirements")
    assert said.status == 0, said
    assert "layout wheels" in said.err
    assert "layout native does not hold: pytorch 2.3.1 needs __cuda" in said.err
    assert "CONDA_OVERRIDE_CUDA" in said.err


def test_a_driver_that_is_named_is_the_machines(world: World, say: Say) -> None:
    said = say(*ASKED, "--layout", "native", "--no-flash-attn", "--driver", "560.28.03")
    assert said.status == 0, said
    assert "--driver 560.28.03" in said.err


def test_the_missing_driver_is_asked_and_changed_like_an_option() -> None:
    request = StackRequest(no_driver=True)
    [asked] = parse_request(request).ask("no-driver")
    assert not without(request, asked).no_driver
    changed = [change.request.driver for change in changes_of(load_matrix(), request, asked)]
    assert "525.60.13" in changed
    assert None not in changed                      # no command line unsets a variable
    assert parse_request(request.with_(driver="525.60.13")).ask("no-driver") == ()
