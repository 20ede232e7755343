"""What activation leaves in the variables that list folders or files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

from stackfix.diagnose.provenance import LIBRARY_PATH, PRELOAD
from stackfix.diagnose.situation import Situation
from stackfix.plan.effect_records import Variable
from stackfix.quick import replace

SEPARATORS = {LIBRARY_PATH: "[:;]", PRELOAD: "[: ]"}    # as the loader parts them


def value_after(variable: Variable, before: str | None) -> str | None:
    """The variable as activation leaves it; None: unset."""
    if variable.value is not None:
        return variable.value
    gone = set(map(plain, (*variable.without, *variable.first)))
    parts = re.split(SEPARATORS.get(variable.name, ":"), before) if before else []
    kept = [*variable.first, *(each for each in parts if plain(each) not in gone)]
    return ":".join(kept) or None


def plain(element: str) -> str:
    """A folder without a slash at its end; the empty element, which is the current folder, stays."""
    return posixpath.normpath(element) if element else ""


def activated(situation: Situation, variables: Iterable[Variable]) -> Situation:
    """The situation in an activated shell."""
    values: dict[str, str] = dict(situation.machine.variables)
    loader = situation.loader
    known: Mapping[str, str | None] = {LIBRARY_PATH: loader.library_path, PRELOAD: loader.preload}
    for each in variables:
        after = value_after(each, known.get(each.name) or values.get(each.name))
        values.pop(each.name, None)
        if after is not None:
            values[each.name] = after
        if each.name == LIBRARY_PATH:
            loader = replace(loader, library_path=after)
        elif each.name == PRELOAD:
            loader = replace(loader, preload=after)
    return replace(situation, loader=loader,
                   machine=replace(situation.machine, variables=tuple(sorted(values.items()))))


def variables_after(situation: Situation, variables: Iterable[Variable]) -> tuple[tuple[str, str | None], ...]:
    """The changed variables with what activation leaves in them."""
    after = activated(situation, variables)
    said = {**dict(after.machine.variables), LIBRARY_PATH: after.loader.library_path, PRELOAD: after.loader.preload}
    return tuple((each.name, said.get(each.name)) for each in variables)
