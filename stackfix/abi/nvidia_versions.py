"""Order of package versions, and runs of them in a list: what the files of the almanac write as "12.1.55-12.4.99".

No `packaging` here: a look-up is to cost microseconds, and NVIDIA's and torch's versions need little of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Key: TypeAlias = "tuple[tuple[int, ...], tuple[int, int], int, int]"

VERSION = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18}){0,15})(?:(a|b|rc)([0-9]{1,18}))?(?:\.post([0-9]{1,18}))?"
                     r"(?:\.dev([0-9]{1,18}))?")
PHASES = {"a": 0, "b": 1, "rc": 2}
LAST = 1 << 62      # sorts behind every number that VERSION admits


def version_key(version: str) -> Key | None:
    """What versions compare by, as PEP 440 orders them; None for what is none in its normal form, or a local one."""
    found = VERSION.fullmatch(version)
    if found is None:
        return None
    numbers, phase, of_phase, post, dev = found.groups()
    release = [int(each) for each in numbers.split(".")]
    while len(release) > 1 and release[-1] == 0:    # 13.0.3 and 13.0.3.0 are one version
        release.pop()
    final = (-1, 0) if dev and not post else (3, 0)
    before = (PHASES[phase], int(of_phase)) if phase else final
    return tuple(release), before, int(post) if post else -1, int(dev) if dev else LAST


def sorted_versions(versions: Iterable[str]) -> tuple[str, ...]:
    """Oldest first. Raises ValueError for what is no version."""
    keyed: list[tuple[Key, str]] = []
    for version in versions:
        key = version_key(version)
        if key is None:
            raise ValueError(version)
        keyed.append((key, version))
    return tuple(version for _, version in sorted(keyed))


def spans_of(mask: int, versions: Sequence[str]) -> str:
    """How the files write a set: "" for all, else "A-B", "A" or, to the newest, "A-", with commas between.

    Bit i stands for versions[i]. An open end keeps a line as it is when a newer version has the name too.
    """
    if mask == (1 << len(versions)) - 1:
        return ""
    written: list[str] = []
    for first, last in runs(mask):
        if last == len(versions) - 1:
            written.append(f"{versions[first]}-")
        else:
            written.append(versions[first] if first == last else f"{versions[first]}-{versions[last]}")
    return ",".join(written)


def mask_of(spans: str, places: Mapping[str, int]) -> int:
    """The set that `spans` writes; `places` gives each version's bit. Raises ValueError, which says what is wrong."""
    if not spans:
        return (1 << len(places)) - 1
    mask, free = 0, 0       # `free`: the first place that a further run may begin at
    for span in spans.split(","):
        first, dash, last = span.partition("-")
        begin = place_of(first, places)
        end = place_of(last, places) if last else len(places) - 1 if dash else begin
        if begin < free or end < begin:
            raise ValueError(f"{spans!r} is not in order")
        mask |= (1 << end + 1) - (1 << begin)
        free = end + 2      # two runs side by side are one
    return mask


def place_of(version: str, places: Mapping[str, int]) -> int:
    """The bit of a version. Raises ValueError."""
    if version not in places:
        raise ValueError(f"{version!r} is no version that was read")
    return places[version]


def runs(mask: int) -> list[tuple[int, int]]:
    """First and last bit of each run of ones, lowest first."""
    found: list[tuple[int, int]] = []
    at = 0
    while rest := mask >> at:
        at += (rest & -rest).bit_length() - 1
        rest = mask >> at
        ones = (rest + 1 & ~rest).bit_length() - 1
        found.append((at, at + ones - 1))
        at += ones
    return found
