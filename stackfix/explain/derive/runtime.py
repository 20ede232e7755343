"""Symbol versions of glibc and of libstdc++: which GCC and which distributions have them, and which torch asks less."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from stackfix.explain.derive.pins import linux_builds, lock_of, newest_first
from stackfix.explain.derive.words import joined, key_of
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.runtime_records import Distribution, RunTimes

NODE = re.compile(r"(?P<part>GLIBC|GLIBCXX|CXXABI)_(?P<number>\d+(?:\.\d+)*)")
MAJORS_SINCE = 5        # from GCC 5 on each major is a series of its own; a bound of 4 would bind nothing
SYSTEM = re.compile(r"^/(?:usr/)?lib(?:64|32)?/|^/lib/|^/usr/local/lib")


def runtime_version(fields: Fields, facts: Facts) -> Fields:
    """Of `node` ("GLIBCXX_3.4.30"): `distributions` that have it, `gcc` that brought it; of glibc `older_lock`.

    `libstdcxx` is conda's package with the bound that means that GCC, quoted for a shell.
    `system_library`: the file that lacks it, `library_path`, lies in a folder of the system; else `own_library`.
    """
    match = NODE.fullmatch(fields.get("node", ""))
    if match is None:
        return {}
    table = load_table(facts)
    found = {"part": "glibc" if match["part"] == "GLIBC" else "libstdc++", "number": match["number"],
             "distributions": having(match["part"], match["number"], table)}
    gcc = next((each.gcc for each in table.gcc if each.version == match[0]), None)
    if gcc is not None:
        major = gcc.partition(".")[0]
        new = int(major) >= MAJORS_SINCE
        found |= {"gcc": gcc, "gcc_major": major, "libstdcxx": f"'libstdcxx>={major}'" if new else "libstdcxx"}
    path = fields.get("library_path", "")
    if path.startswith("/"):
        found["system_library" if SYSTEM.match(path) else "own_library"] = "yes"
    if match["part"] == "GLIBC":
        found |= older_torch(match["number"], fields, facts)
    return {key: value for key, value in found.items() if value}


def load_table(facts: Facts) -> RunTimes:
    """runtime.toml of the matrix that is asked."""
    from stackfix.matrix.runtime import load_run_times

    return load_run_times(Path(facts.matrix.directory))


def having(part: str, number: str, table: RunTimes) -> str:
    """The oldest release of each distribution that has a version: "Ubuntu 22.04, Debian 12 and RHEL 9"."""
    attribute = {"GLIBC": "glibc", "GLIBCXX": "glibcxx", "CXXABI": "cxxabi"}[part]
    oldest: dict[str, Distribution] = {}
    for each in table.distributions:
        if key_of(getattr(each, attribute)) >= key_of(number):
            oldest.setdefault(each.name, each)
    return joined([f"{each.name} {each.release}" for each in oldest.values()])


def older_torch(number: str, fields: Fields, facts: Facts) -> dict[str, str]:
    """`older_torch`, the newest torch whose wheels ask for an older glibc than that, and its lock."""
    builds = [each for each in newest_first(linux_builds(facts))
              if each.index == "default" and each.glibc and key_of(each.glibc) < key_of(number)]
    asking = oldest_asking(number, facts)
    if not builds or asking is None:
        return {}
    return {"older_torch": builds[0].version, "older_lock": lock_of(builds, fields.get("python")) or "",
            "torch_glibc": asking}


def oldest_asking(number: str, facts: Facts) -> str | None:
    """The oldest torch whose wheels ask for this glibc or a newer one: "2.7.0"; None where none does."""
    asking: Iterable[str] = (each.version for each in linux_builds(facts)
                             if each.index == "default" and each.glibc and key_of(each.glibc) >= key_of(number))
    return min(asking, key=key_of, default=None)


def dropped_function(fields: Fields, facts: Facts) -> Fields:
    """Of `symbol`: `dropped_library`, its `dropped_package` of conda, `dropped_until` and `dropped_gone`."""
    for each in load_table(facts).dropped:
        if fields.get("symbol") in each.functions:
            return {"dropped_library": each.name, "dropped_package": each.package, "dropped_until": each.until,
                    "dropped_gone": each.gone}
    return {}


DERIVE: Mapping[str, Derivation] = {"runtime-version": runtime_version, "dropped-function": dropped_function}
