"""What each path is before a plan and after it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from stackfix.plan.effect_world import Places
from stackfix.plan.records import Change, Install, MakeLink, Node, SetAside, Step, WriteFile

ABSENT = Node(kind="absent")


def changes_of(steps: Iterable[Step], places: Places) -> tuple[Change, ...]:
    """The changes of all steps but installations, whose files only the wheel names; by path, each once."""
    found: dict[str, Change] = {}
    for step in steps:
        for path, after in left_by(step):
            known = found.get(path)
            found[path] = Change(path=path, before=known.before if known else places.node(path), after=after)
    return tuple(found[path] for path in sorted(found) if found[path].before != found[path].after)


def left_by(step: Step) -> Iterator[tuple[str, Node]]:
    """(path, what is there after a step)."""
    if isinstance(step, WriteFile):
        digest = hashlib.sha256(step.text.encode()).hexdigest()
        yield step.path, Node(kind="file", sha256=digest, mode=step.mode)
    elif isinstance(step, MakeLink):
        yield step.path, Node(kind="link", target=step.target)
    elif isinstance(step, SetAside):
        yield step.path, ABSENT


def needed_steps(steps: Iterable[Step], places: Places) -> tuple[Step, ...]:
    """The steps that change anything: what is there already is left alone."""
    return tuple(step for step in steps if isinstance(step, Install) or any(
        places.node(path) != after for path, after in left_by(step)))
