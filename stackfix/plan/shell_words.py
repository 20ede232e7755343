"""What activation scripts say, before it is written in the words of one shell."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from stackfix.errors import BadInput
from stackfix.plan.effect_records import Variable
from stackfix.plan.effect_variables import SEPARATORS, plain
from stackfix.plan.relink_paths import check_text

NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
CONTROL = re.compile("[\x00-\x1f\x7f]")
LOADERS = frozenset(SEPARATORS)
TOKEN = re.compile(r"\$(?:ORIGIN|LIB|PLATFORM|\{(?:ORIGIN|LIB|PLATFORM)\})")    # the loader puts something else there
WHOLE = ("", "/lib", "/lib64", "/lib32")    # of the prefix: git, ssh and cmake would find what they do not expect


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A text, or one behind the path of the prefix, which the shell knows."""

    text: str
    in_prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is done to one variable."""

    name: str
    kept: str                       # …_OLD remembers what was there, …_NEW what was made of it, …_OWN what was put in
    separators: str                 # characters that part its elements; the first is written
    first: tuple[Word, ...]
    own: tuple[Word, ...]           # those in each spelling
    drop: tuple[Word, ...]          # elements that go: `own`, and what is taken out
    value: Word | None              # in place of all that


def make_change(variable: Variable, prefix: str, before: str | None, mark: str) -> Change:
    """The change. Raises BadInput for what no shell, or no loader, would take as it is meant.

    before: what the variable is now; its spellings of the elements that go are among those that are looked for
    mark: a part of the names of the variables that remember
    """
    if not NAME.fullmatch(variable.name):
        raise BadInput(variable.name, "is no name of a variable")
    separators = SEPARATORS.get(variable.name, ":").strip("[]")
    for element in (*variable.first, *variable.without, *filter(None, (variable.value,))):
        check_element(element, variable.name)
    for folder in variable.first:
        check_folder(folder, prefix, separators, variable.name)
    seen = re.split(f"[{separators}]", before) if before else []
    own = spellings(variable.first, seen, prefix)
    return Change(
        name=variable.name, kept=f"_STACKFIX_{mark}_{variable.name}", separators=separators,
        first=tuple(word(each, prefix) for each in variable.first), own=own,
        drop=tuple(dict.fromkeys((*own, *spellings(variable.without, seen, prefix)))),
        value=word(variable.value, prefix) if variable.value is not None else None,
    )


def spellings(elements: Sequence[str], seen: Sequence[str], prefix: str) -> tuple[Word, ...]:
    """What a shell, which only compares texts, is to take for one of the elements."""
    names = set(map(plain, elements))
    texts = sorted({*names, *(f"{each}/" for each in names if each), *(each for each in seen if plain(each) in names)})
    return tuple(dict.fromkeys(each for text in texts for each in (Word(text=text), word(text, prefix))))


def word(text: str, prefix: str) -> Word:
    """The text; what lies in the prefix is found there also when the prefix has been moved."""
    if text.startswith(f"{prefix}/"):
        return Word(text=text.removeprefix(prefix), in_prefix=True)
    return Word(text=text)


def check_element(text: str, name: str) -> None:
    check_text(text)
    if CONTROL.search(text):
        raise BadInput(ascii(text), f"holds a control character, and cannot be put into {name}", "rename the folder")


def check_folder(folder: str, prefix: str, separators: str, name: str) -> None:
    """Raises BadInput where an element of this text would not be the folder that is meant, or be too much."""
    if not folder.startswith("/") or posixpath.normpath(folder) != folder:
        raise BadInput(folder or "an empty folder", f"is no absolute path that {name} could begin with")
    if re.search(f"[{separators}]", folder):
        raise BadInput(folder, f"holds a character that parts the elements of {name}", "rename the folder")
    if name in LOADERS and TOKEN.search(folder):
        raise BadInput(folder, "holds a token that the loader puts something else for", "rename the folder")
    if folder in {prefix + part for part in WHOLE}:
        raise BadInput(folder, f"would put all libraries of the environment first on {name}",
                       "give the folder of the one library")


def mark_of(prefix: str) -> str:
    """Eight characters for the prefix."""
    return hashlib.sha256(prefix.encode()).hexdigest()[:8]
