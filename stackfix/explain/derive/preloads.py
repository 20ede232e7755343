"""Which lock avoids an error: that of the torch a text names, or of one that opens its own libraries first."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stackfix.explain.derive.pins import builds_named, linux_builds, lock_of, newest_first
from stackfix.explain.derive.words import key_of, minor_of
from stackfix.explain.records import Derivation, Facts, Fields

FLOOR = re.compile(r"[>=]=\s*(\d+(?:\.\d+)*)")


def preload(fields: Fields, facts: Facts) -> Fields:
    """`preloads`: the oldest torch that opens the library `stem` itself; `preloading`: the lock of one that does.

    The lock is of the CUDA minor `symbol_cuda` where such a torch has it, else of the oldest that preloads, where that
    is of the same CUDA major, else of the newest of that major.
    """
    oldest = preloading_since(fields.get("stem", ""), facts)
    if oldest is None:
        return {}
    builds = [each for each in newest_first(linux_builds(facts))
              if key_of(each.version) >= key_of(oldest) and each.cuda != "cpu"]
    wanted = fields.get("symbol_cuda")
    same = [each for each in builds if each.cuda == wanted]
    major = [each for each in builds if wanted is None or major_of(each.cuda) == major_of(wanted)]
    least = [each for each in major if minor_of(each.version) == minor_of(oldest) and each.index == "default"]
    lock = lock_of(same or least or major, fields.get("python"))
    return {"preloads": oldest, **({"preloading": lock} if lock else {})}


def major_of(version: str) -> str:
    return version.partition(".")[0]


def preloading_since(stem: str, facts: Facts) -> str | None:
    """The oldest release from which on every row opens the library once its first step has not failed."""
    found = None
    for row in facts.libraries.imports if stem else ():
        if row.project != "torch" or (floor := FLOOR.search(row.versions or "")) is None:
            continue
        opens = any(step.when == "loaded" and f"/{stem}.so" in step.file for step in row.steps)
        found = None if not opens else found or floor[1]
    return found


def torch_lock(fields: Fields, facts: Facts) -> Fields:
    """`lock`: the command that locks the torch which the text names, else one that calls the function, else the newest.

    `caller_lock` is what `cuda-symbol` told of who calls it.
    """
    named = lock_of(builds_named(fields, facts), fields.get("python"))
    return {"lock": named or fields.get("caller_lock") or "stackfix lock"}


DERIVE: Mapping[str, Derivation] = {"preload": preload, "torch-lock": torch_lock}
