"""Who calls a function of NVIDIA's libraries, and which stacks of torch bring the caller."""

from __future__ import annotations

from collections.abc import Sequence

from stackfix.abi.records import Asking
from stackfix.explain.derive.pins import (
    builds_named,
    builds_with,
    libraries_of,
    linux_builds,
    lock_of,
    newest_first,
    torch_minors,
)
from stackfix.explain.derive.words import joined, key_of, minor_of, spans
from stackfix.explain.records import Facts, Fields

MOST_PINS = 4


def callers(fields: Fields, soname: str, function: str, facts: Facts) -> dict[str, str]:
    """By the requester's file: `consumer` with its `consumer_versions`, the `stacks` that bring them, `caller_lock`."""
    name = fields.get("requester", "").rpartition("/")[2].strip("'\"`")
    every = [each for each in facts.books.nvidia.asking(soname, function) if each.file == name]
    if not every:
        return {}
    asking = every[0]
    known = facts.books.nvidia.consumer_versions(asking.consumer)
    if asking.consumer == "torch":
        return of_torch(fields, asking, known, soname, facts)
    builds = builds_with(asking.consumer, asking.versions, facts)
    found = {"consumer": asking.consumer, "consumer_versions": spans(asking.versions, known)}
    if builds:
        minors = torch_minors(facts.torch)
        cudas = joined(sorted({each.cuda for each in builds}, key=key_of))
        found["stacks"] = f"torch {spans(torch_minors(builds), minors)} for CUDA {cudas}"
        found["caller_lock"] = lock_of(newest_first(builds)) or ""
    return found


def of_torch(fields: Fields, asking: Asking, known: Sequence[str], soname: str, facts: Facts) -> dict[str, str]:
    """Of torch as the one who asks: `torch_wants`, `pins` by minor; `pin` and `pinned_by` where the text names it."""
    minors = list(dict.fromkeys(map(minor_of, known)))
    wanting = list(dict.fromkeys(map(minor_of, asking.versions)))
    packages = facts.books.nvidia.packages(soname)
    found = {"torch_wants": f"torch {spans(wanting, minors)}", "pins": pinned(packages, wanting, facts)}
    first = [each for each in newest_first(linux_builds(facts))
             if minor_of(each.version) == wanting[0] and each.index == "default"]
    if (lock := lock_of(first)) is not None:
        found["caller_lock"] = lock
    for each in builds_named(fields, facts)[:1]:
        own = [(name, version) for name, version in libraries_of(each, facts).items() if name in packages]
        for name, version in own[:1]:
            found |= {"package": name, "pin": version, "pinned_by": f"torch {each.version}"}
    return found


def pinned(packages: Sequence[str], minors: Sequence[str], facts: Facts) -> str:
    """Which version the default index's torch brings, minor by minor: "torch 2.2 2.19.3, torch 2.3 and 2.4 2.20.5"."""
    told: dict[str, list[str]] = {}
    for build in reversed(linux_builds(facts)):
        minor = minor_of(build.version)
        if build.index == "default" and minor in minors:
            for name, version in libraries_of(build, facts).items():
                if name in packages and minor not in told.setdefault(version, []):
                    told[version].append(minor)
    return ", ".join(f"{version} (torch {spans(where, minors)})" for version, where in list(told.items())[:MOST_PINS])
