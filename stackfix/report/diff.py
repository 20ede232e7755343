"""What changed between two sides, for people and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from stackfix.report.style import Style
from stackfix.write.records import Changed, Held, HeldTarget, LeftOut, TargetChanges

MARKS = {"added": ("+", "green"), "removed": ("-", "red")}


def diff_lines(
    targets: Sequence[TargetChanges], alone: tuple[Sequence[HeldTarget], Sequence[HeldTarget]], style: Style,
) -> Iterator[str]:
    """A line a change, the stack's first; targets are named where there are several."""
    several = len(targets) + len(alone[0]) + len(alone[1]) > 1
    for one in targets:
        if several:
            yield style(one.after.label if one.after.python else one.before.label, "bold")
        yield from (f"{'  ' if several else ''}{line}" for line in target_lines(one, style))
    for side, word in zip(alone, ("-", "+"), strict=True):
        yield from (style(f"{word} {one.label}: {len(one.packages)} packages", "bold") for one in side)


def target_lines(one: TargetChanges, style: Style) -> Iterator[str]:
    """The changes of one target."""
    for what, before, after in (("Python", one.before.python, one.after.python),
                                ("platform", one.before.place, one.after.place)):
        if before != after and before is not None and after is not None:
            yield style(f"~ {what} {before} -> {after}", "bold")
    for change in one.changes:
        mark, colour = MARKS.get(change.kinds[0], ("~", "yellow"))
        text = f"{style(mark, colour)} {change_text(change)}"
        yield style(text, "bold") if change.stack else text


def change_text(change: Changed) -> str:
    """`torch 2.3.0 -> 2.3.1 (pip; version)`."""
    before, after = change.before, change.after
    if before is None or after is None:
        one = after or before
        return f"{one.name} {told(one)} ({one.manager})" if one is not None else ""
    if before.manager != after.manager or before.name != after.name:
        return f"{before.name} {told(before)} ({before.manager}) -> {after.name} {told(after)} ({after.manager})"
    source = f"source: {before.source} -> {after.source}"
    if change.kinds == ("source",):
        return f"{after.name} {told(after)} ({after.manager}; {source})"
    if change.kinds == ("hash",):
        return f"{after.name} {told(after)} ({after.manager}; another file: the hash differs)"
    kinds = [source if kind == "source" else kind for kind in change.kinds]
    return f"{after.name} {told(before)} -> {told(after)} ({after.manager}; {', '.join(kinds)})"


def told(one: Held) -> str:
    """`2.3.1 cuda120_py311_300`."""
    return " ".join(part for part in (one.version or "of unknown version", one.build) if part)


def diff_document(
    sides: Sequence[tuple[str, str, Sequence[LeftOut]]], targets: Sequence[TargetChanges],
    alone: tuple[Sequence[HeldTarget], Sequence[HeldTarget]],
) -> dict[str, Any]:
    """`stackfix diff --json`. `sides`: (path as given, kind, targets that are left out) of each."""
    before, after = ({"path": path, "kind": kind, "left_out": [asdict(one) for one in left_out]}
                     for path, kind, left_out in sides)
    return {
        "before": before,
        "after": after,
        "targets": [{
            "before": target_document(one.before), "after": target_document(one.after),
            "changes": [{"kinds": list(change.kinds), "stack": change.stack,
                         "before": held_document(change.before), "after": held_document(change.after)}
                        for change in one.changes],
        } for one in targets],
        "only_before": [target_document(one) for one in alone[0]],
        "only_after": [target_document(one) for one in alone[1]],
    }


def target_document(one: HeldTarget) -> dict[str, Any]:
    """The target, and how many packages it has."""
    return {"python": one.python, "platform": one.platform, "variant": one.variant, "packages": len(one.packages)}


def held_document(one: Held | None) -> dict[str, Any] | None:
    """One package."""
    if one is None:
        return None
    document = asdict(one)
    del document["key"]
    return {**document, "hashes": list(one.hashes)}
