"""cuDNN's parts and statuses, and who asks for which major of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stackfix.explain.derive.cudnn import builds_with, pin_of
from stackfix.explain.derive.releases import (
    DEFAULT_INDEX,
    PLATFORM,
    build_name,
    by_preference,
    lock_command,
    named_build,
    numbers,
    releases,
    spread,
)
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.hardware import gpu_capability
from stackfix.matrix.records import Framework

FIRST_NUMBER_OF_9 = 1001


def cudnn_status(fields: Fields, facts: Facts) -> Fields:
    """`status` of a `number`, the numbers that it has in cuDNN 8 and 9, and what its name ends in."""
    rows, number = facts.codes.cudnn, fields.get("number", "")
    status = fields.get("status")
    if status is None and number.isdecimal():
        major = 9 if int(number) >= FIRST_NUMBER_OF_9 else 8
        status = next((each.name for each in rows if (each.major, each.number) == (major, int(number))), None)
    found = [each for each in rows if each.name == status]
    if status is None or not found:
        return {}
    numbered = [f"{each.number} in cuDNN {each.since or each.major}" for each in found]
    return {"status": status, "status_numbers": ", ".join(numbered),
            "status_ends": status.removeprefix("NOT_SUPPORTED_")}


def named_cudnn(fields: Fields, facts: Facts) -> Fields:
    """`named_build` and `named_cudnn` of the torch that the text names; and what torch pins for old GPUs."""
    named, found = named_build(fields, facts), dict[str, str]()
    if named is not None and named.cudnn is not None:
        found |= {"named_build": build_name(named), "named_cudnn": named.cudnn}
    usual = [each for each in facts.torch if each.index == DEFAULT_INDEX and each.gpu_archs]
    if not usual:
        return found
    floor = lowest(max(usual, key=lambda each: numbers(each.version)).gpu_archs)
    old = [each for each in facts.torch if each.platform == PLATFORM and each.gpu_archs and each.cudnn
           and lowest(each.gpu_archs) < floor]
    if old:
        newest = max(old, key=lambda each: (numbers(each.cudnn or ""), numbers(each.version)))
        found |= {"old_floor": f"{floor[0]}.{floor[1]}", "old_cudnn": newest.cudnn or "", "old_cuda": newest.cuda,
                  "old_build": build_name(newest)}
    return found


def lowest(archs: Iterable[str]) -> tuple[int, int]:
    """The oldest GPU that machine code among them is for; (0, 0) where there is none."""
    return min((found for each in archs if each.startswith("sm_") and (found := gpu_capability(each))), default=(0, 0))


def cudnn_parts(fields: Fields, facts: Facts) -> Fields:
    """`parts` of cuDNN and `optional_parts`, those that it does without, with what is known of them."""
    major = "8" if fields.get("status") == "VERSION_MISMATCH" else "9"
    rows = [row for row in facts.libraries.opened if row.library.startswith("libcudnn")
            and row.library.endswith(f".so.{major}") and row.names[0].startswith("libcudnn_")]
    parts = dict.fromkeys(name for row in rows if not row.optional for name in row.names)
    optional = [f"{' '.join(row.names)} ({row.why})" for row in rows if row.optional]
    found = {"parts_major": major, "parts": ", ".join(parts)}
    return {**found, **({"optional_parts": "; ".join(optional)} if optional else {})}


def of_ctranslate2(facts: Facts) -> tuple[Framework, ...]:
    """What is known of CTranslate2, oldest first."""
    return tuple(each for each in facts.frameworks.frameworks if each.project == "ctranslate2")


def with_cudnn(rows: Iterable[Framework], major: int) -> list[Framework]:
    """Rows that want this major of cuDNN."""
    return [each for each in rows if each.cudnn is not None and f">={major}" in each.cudnn]


def span_of(rows: Iterable[Framework]) -> str:
    """Their releases, in words."""
    return " and ".join(each.first if each.first == each.last else f"{each.first} to {each.last}" for each in rows)


def cudnn_askers(fields: Fields, facts: Facts) -> Fields:
    """Which releases of CTranslate2 want cuDNN 8, 9 and none, and which torch pins the release that `asks`."""
    rows = of_ctranslate2(facts)
    nine, without = with_cudnn(rows, 9), [each for each in rows if each.cudnn is None]
    found = {"ct2_with_8": span_of(with_cudnn(rows, 8)), "ct2_with_9": span_of(nine)}
    found |= {"ct2_first_9": nine[0].first} if nine else {}
    found |= {"ct2_without": without[0].first} if without else {}
    builds = [each for each in facts.torch for row in without[:1] if each.platform == PLATFORM
              and each.index == DEFAULT_INDEX and each.cuda.startswith(f"{row.cuda}.")]
    if builds:
        lock = lock_command(by_preference(builds, fields, facts)[0])
        found["ct2_lock"] = f"{lock} --with 'ctranslate2>={without[0].first}'"
    eight = [each.version for each in builds_with(facts, "8") if each.index == DEFAULT_INDEX]
    found |= {"last_cudnn_8": max(eight, key=numbers)} if eight else {}
    asked = [each for each in builds_with(facts, fields.get("asks") or "0") if each.index == DEFAULT_INDEX]
    if asked:
        found["asks_torch"] = spread({each.version for each in asked}, releases(facts))
        found |= {"asks_pin": pin} if (pin := pin_of(asked[0])) else {}
    return found


DERIVE: Mapping[str, Derivation] = {
    "cudnn-status": cudnn_status, "named-cudnn": named_cudnn, "cudnn-parts": cudnn_parts,
    "cudnn-askers": cudnn_askers,
}
