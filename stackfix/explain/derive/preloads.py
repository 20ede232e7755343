"""Which lock avoids an error: that of the torch a text names, or of one that opens its own libraries first."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stackfix.explain.derive.pins import builds_named, linux_builds, lock_of, newest_first
from stackfix.explain.derive.sonames import SITE, SONAME, cuda_of_package, folders
from stackfix.explain.derive.words import key_of, minor_of
from stackfix.explain.records import Derivation, Facts, Fields

FLOOR = re.compile(r"[>=]=\s*(\d+(?:\.\d+)*)")


def preload(fields: Fields, facts: Facts) -> Fields:
    """`preloads`: the oldest torch that opens the library `stem` itself; `preloading`: the lock of one that does.

    The lock is of the CUDA minor `symbol_cuda` where such a torch has it, else of the oldest that preloads, where that
    is of the same CUDA major, else of the newest of that major. `wheel_path`: the folder in which a wheel has it.
    """
    oldest = preloading_since(fields.get("stem", ""), facts)
    if oldest is None:
        return {}
    builds = [each for each in newest_first(linux_builds(facts))
              if key_of(each.version) >= key_of(oldest) and each.cuda != "cpu"]
    wanted, major = fields.get("symbol_cuda"), major_meant(fields)
    same = [each for each in builds if each.cuda == wanted]
    near = [each for each in builds if major in {None, each.cuda.partition(".")[0]}]
    least = [each for each in near if minor_of(each.version) == minor_of(oldest) and each.index == "default"]
    lock = lock_of(same or least or near, fields.get("python"))
    where = folders((fields["stem"],), major, facts)
    found = {"preloads": oldest, "preloading": lock or "",
             "wheel_path": f"{fields.get('site') or SITE}/{where[0]}" if where else ""}
    return {key: value for key, value in found.items() if value}


def major_meant(fields: Fields) -> str | None:
    """The CUDA major of the library: as its soname, its wheel or the function's name says."""
    named = SONAME.fullmatch(fields.get("soname") or fields.get("file") or "")
    if named is not None and named["version"]:
        return named["version"].partition(".")[0]
    if "package" in fields:
        return cuda_of_package(fields["package"])
    return fields["symbol_cuda"].partition(".")[0] if "symbol_cuda" in fields else None


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
