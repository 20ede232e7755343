"""`stackfix diff`: targets that cannot be installed from a pylock, and so are not compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stackfix.sync.targets import told_targets

if TYPE_CHECKING:
    from stackfix.cli.diff_read import Side
    from stackfix.write.records import LeftOut


def asked_of(side: Side, other: Side, *, python: str | None, platform: str | None) -> tuple[LeftOut, ...]:
    """What is left out of a side and was asked for: by the options, and by the one target of an environment beside."""
    if other.kind == "environment" and other.targets:
        python, platform = python or other.targets[0].python, platform or other.targets[0].platform
    return tuple(one for one in side.left_out
                 if python in {None, one.python} and platform in {None, one.platform})


def left_out_lines(name: str, left_out: Iterable[LeftOut]) -> Iterator[str]:
    """A line for each package that stands in the way."""
    found: dict[str, list[tuple[str, str]]] = {}
    for one in left_out:
        found.setdefault(one.project, []).append((one.python, one.platform))
    for project, points in found.items():
        yield f"note: {name} is not compared for {told_targets(points)}: {project} has no file there"
