"""Offered commands: a requirements file that an offer leaves as it is is named by them, with its hashes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli_world import Say, World

WORDS = ("lock", "--python", "3.11", "--no-flash-attn", "--format", "requirements", "--json")


def commands(say: Say, *words: str) -> list[list[str]]:
    said = say(*WORDS, *words)
    assert said.status == 1, said
    return [shlex.split(offer["command"]) for offer in said.json["error"]["nearest"]]


@pytest.mark.usefixtures("world")
def test_a_file_that_stays_as_it_is_is_named(say: Say) -> None:
    Path("limits.txt").write_text("numpy<2\n", encoding="utf-8")
    Path("asked.in").write_text("idna\nfilelock\n-c limits.txt\n", encoding="utf-8")
    offers = commands(say, "--torch", "2.3", "--cuda", "13.0", "-r", "asked.in", "--with", "fsspec")
    assert offers
    for words in offers:
        assert words[words.index("-r") + 1] == "asked.in"
        typed = [words[place + 1] for place, word in enumerate(words) if word in {"--with", "--constraint"}]
        assert typed == ["fsspec"]
        assert say(*words[1:]).status == 0, words


def test_a_file_of_which_a_line_changes_is_spelled_out(world: World, say: Say) -> None:
    Path("asked.in").write_text("idna==9\nfilelock\n", encoding="utf-8")
    for words in commands(say, "--torch", "2.3", "-r", "asked.in"):
        assert "-r" not in words
        assert "filelock" in words
        assert say(*words[1:]).status == 0, words
    assert world.asked
