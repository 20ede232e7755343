"""Minors and single releases of torch as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from stackfix.abi.records import TorchRange

BEFORE = {"2.0": "1.13"}        # the only minor that does not follow by number


def spans(minors: Sequence[str]) -> str:
    """Consecutive minors as ranges: `2.3 to 2.6`, `2.8`. Consecutive by number, with 2.0 behind 1.13."""
    runs: list[list[str]] = []
    for minor in minors:
        if runs and follows(runs[-1][-1], minor):
            runs[-1].append(minor)
        else:
            runs.append([minor])
    return ", ".join(each[0] if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in runs)


def follows(one: str, other: str) -> bool:
    """Whether `other` is the minor after `one`."""
    if BEFORE.get(other) == one:
        return True
    (major, minor), (next_major, next_minor) = (tuple(map(int, each.split("."))) for each in (one, other))
    return (major, minor + 1) == (next_major, next_minor)


def releases(torch: TorchRange) -> str:
    """What it can load with: `2.3 to 2.6 but not 2.4.0`, `2.5, 2.4.0`, `2.4.0 alone`; empty for nothing."""
    found = ", ".join(filter(None, (spans(torch.minors), *torch.patches)))
    without = dict.fromkeys(each.version for each in torch.exceptions)
    if without:
        return f"{found} but not {', '.join(without)}"
    return f"{found} alone" if torch.patches and not torch.minors else found


__all__ = ["releases", "spans"]
