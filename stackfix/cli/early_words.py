"""The words of a command line, as far as an early answer has to know them: where to, and which cache."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False               # typing itself takes 6 ms to import
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ELSEWHERE = "*"                     # stands for an absolute output folder: the answer is the same in another


def taken_apart(words: Sequence[str]) -> tuple[list[str], str | None, str | None]:
    """The words with an absolute output folder taken out; that folder; the cache folder that they name."""
    found = list(words)
    directory = cache = None
    for number, word in enumerate(words[:-1]):
        value = words[number + 1]
        if word in ("-o", "--output") and is_plain_folder(value) and "--json" not in words:
            directory, found[number + 1] = value, ELSEWHERE
        elif word == "--cache-dir":
            cache = value
    for word in words:
        if word.startswith("--cache-dir="):
            cache = word.partition("=")[2]
    return found, directory, cache


def output_of(words: Sequence[str]) -> str:
    """The output folder that the words name, as they name it."""
    folder = "."
    for number, word in enumerate(words):
        if word in ("-o", "--output"):
            folder = words[number + 1] if number + 1 < len(words) else folder
        elif word.startswith("--output="):
            folder = word.partition("=")[2]
        elif word.startswith("-o") and not word.startswith("--"):
            folder = word[2:]
    return folder


def is_plain_folder(text: str) -> bool:
    """Whether a path is absolute and spelled as pathlib would spell it."""
    return text.startswith("/") and len(text) > 1 and not text.endswith("/") and not any(
        part in ("", ".") for part in text[1:].split("/"))


def cache_folder(environ: Mapping[str, str]) -> str:
    """Where the cache is, as cache_place.default_cache_dir has it; "" on systems that are not asked here."""
    given = environ.get("STACKFIX_CACHE_DIR")
    if given:
        return given
    home = os.path.expanduser("~")
    if sys.platform in ("darwin", "win32"):
        return os.path.join(home, "Library", "Caches", "stackfix") if sys.platform == "darwin" else ""
    base = environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if base.startswith("/") else os.path.join(home, ".cache"), "stackfix")
