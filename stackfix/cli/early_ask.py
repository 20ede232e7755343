"""Asks for the pages that a lock will likely need before its command line is parsed, and all else is imported.

A third of what a cold lock computes is imports: meanwhile the index can answer. Only plain command lines are understood
here, into a folder without locks, with one index and nothing in its settings that steers single projects; all others
are asked for when they are understood (wiring.py). Nothing is decided: what is asked for in vain costs a request.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.cli.early_state import Changed, folder_state
from stackfix.cli.early_words import cache_folder, output_of
from stackfix.errors import StackfixError
from stackfix.platforms import CPU, PLATFORMS, split_place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackfix.matrix.records import Matrix
    from stackfix.sources.index import PackageIndex
    from stackfix.sources.records import IndexSettings

_FLAGS = ("--no-flash-attn", "-q", "--quiet", "--json")
_VALUES = {
    "--torch": r"\d+(?:\.\d+){1,3}",
    "--with": r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._, -]+\])?[0-9A-Za-z.,<>=!~ *+-]*",
    "--cuda": r"\d+(?:\.\d+)?|cpu",
    "--python": r"3\.\d+",
    "--platform": rf"(?:{'|'.join(PLATFORMS)})(?:-{CPU})?",
    "--glibc": r"2\.\d+",
    "--format": "requirements|pylock|constraints",
    "--index-url": ".+", "--cache-dir": ".+", "-o": ".+", "--output": ".+",
}


class Begun:
    """An index that was asked before the command line was parsed, and what for."""

    def __init__(self, settings: IndexSettings, cache_dir: Path, index: PackageIndex, matrix: Matrix) -> None:
        self.settings, self.cache_dir, self.index, self.matrix = settings, cache_dir, index, matrix


_BEGUN: list[Begun] = []


def ask(words: Sequence[str]) -> None:
    """Asks for pages where the words are plain. What is wrong with them, or in the way, is told by the whole way."""
    values = values_of(words)
    if values is None:
        return
    try:
        if set(folder_state(output_of(words))) - {""}:
            return              # whether these files may be replaced, and what they pin, is looked at first
        begun = begin(values, os.environ)
    except (Changed, StackfixError, OSError, ValueError, RuntimeError):      # RuntimeError: there is no home
        return
    if begun is not None:
        _BEGUN.append(begun)


def taken(settings: IndexSettings, *, cache_dir: Path, offline: bool) -> Begun | None:
    """What was begun, for one lock, where that asks the same; else it is dropped."""
    if not _BEGUN:
        return None
    begun = _BEGUN.pop()
    if begun.settings == settings and begun.cache_dir == cache_dir and not offline:
        return begun
    begun.index.close()
    return None


def drop() -> None:
    """Ends what was begun and is not wanted."""
    while _BEGUN:
        _BEGUN.pop().index.close()
    asker = sys.modules.get("stackfix.sources.asker")
    if asker is not None:
        asker.reap()


def values_of(words: Sequence[str]) -> dict[str, list[str]] | None:
    """The values of each option; None for what is no plain lock of a stack."""
    found: dict[str, list[str]] = {}
    rest = list(words[:0:-1])
    if not words or words[0] != "lock":
        return None
    while rest:
        word = rest.pop()
        if word in _FLAGS:
            continue
        name, given, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not given:
            value = rest.pop() if rest else ""
        if not re.fullmatch(_VALUES.get(name, "(?!)"), value):
            return None
        found.setdefault(name, []).append(value)
    return found if "--torch" in found or "--with" in found else None


def begin(values: Mapping[str, Sequence[str]], environ: Mapping[str, str]) -> Begun | None:
    """The pages asked for; None where settings say more than where the index is."""
    from stackfix.sources.settings import read_settings

    settings = read_settings(index_url=values.get("--index-url", [None])[-1], environ=environ, home=Path.home(),
                             project=Path.cwd())
    if len(settings.indexes) != 1 or settings.pins or settings.policies or settings.keyring:
        return None
    given = values.get("--cache-dir", [""])[-1] or cache_folder(environ)
    if not given:
        return None
    from stackfix.matrix.hints import expected_projects
    from stackfix.matrix.load import load_matrix
    from stackfix.request.names import leading_name
    from stackfix.sources.asker import begin_asker
    from stackfix.sources.index import PackageIndex

    matrix = load_matrix(None)
    torch = values.get("--torch", [None])[-1]
    names = expected_projects(
        matrix, [name for text in values.get("--with", ()) if (name := leading_name(text))],
        torch=None if torch is None else f"=={torch}.*" if torch.count(".") == 1 else f"=={torch}",
        cuda=values.get("--cuda", [None])[-1],
        platforms=[platform for platform, variant in map(split_place, values.get("--platform", ["linux-64"]))
                   if not variant])
    index = PackageIndex(settings, cache_dir=Path(given), offline=False)
    index.ask_by(begin_asker(settings, Path(given)))
    index.prefetch_pages(names)
    index.let_ask()
    return Begun(settings, Path(given), index, matrix)
