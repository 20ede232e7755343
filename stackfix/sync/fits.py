"""Whether a marker, or a limit on Python, holds in an environment."""

from __future__ import annotations

from functools import lru_cache

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.specifiers import SpecifierSet

from stackfix.errors import BadInput
from stackfix.sync.parse import NAMED
from stackfix.sync.records import Interpreter


def python_fits(requires: str, name: str, interpreter: Interpreter) -> bool:
    """Whether the interpreter's version is in `requires`."""
    try:
        return SpecifierSet(requires).contains(dict(interpreter.markers)["python_full_version"], prereleases=True)
    except ValueError as error:         # InvalidSpecifier, or a number that int() refuses
        raise BadInput(f"{name} requires-python", f"is not a specifier: {requires[:80]!r}") from error


def marker_holds(text: str, where: str, interpreter: Interpreter) -> bool:
    """Whether the marker holds in the environment. Markers on extras or groups are for installers that choose them."""
    try:
        holds = evaluated(text, interpreter.markers)
    except (ValueError, UndefinedComparison, UndefinedEnvironmentName, RecursionError) as error:    # also int()'s own
        raise BadInput(where, f"is not a marker: {text[:80]!r}") from error
    if holds is None:
        raise BadInput(where, "its marker asks for extras or dependency groups, which `sync` does not choose",
                       "install it with `uv pip install -r`, naming them")
    return holds


@lru_cache(maxsize=65_536)      # a file's environments on all targets, and its packages' markers on one
def evaluated(text: str, environment: tuple[tuple[str, str], ...]) -> bool | None:
    """What the marker says there, None where it asks for extras or groups. Raises as packaging does.

    A lock says the same few many times, and `diff` asks for all targets: each is looked at once.
    """
    if not text.isprintable() or NAMED.search(text):
        return None
    return parsed_marker(text).evaluate(dict(environment))


@lru_cache(maxsize=16_384)
def parsed_marker(text: str) -> Marker:
    """The marker. Raises as packaging does."""
    return Marker(text)
