"""Drivers: what CUDA they serve, and which builds of torch run with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stackfix.explain.derive.releases import (
    CPU,
    PLATFORM,
    build_name,
    by_preference,
    lock_command,
    named_build,
    numbers,
    public,
)
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.hardware import driver_reaches, gpu_runs, jit_cuda_of_driver, major_of, newest_cuda_for_driver
from stackfix.matrix.records import TorchBuild

DRIVER = re.compile(r"\d{3}(?:\.\d+)*")
NUMBER = re.compile(r"(\d{1,2})0(\d)0")        # what cuDriverGetVersion returns


def found_cuda(fields: Fields, _facts: Facts) -> Fields:
    """`serves`, the newest CUDA that the driver knows: "11.4" of the number `found`, 11040, or by nvidia-smi."""
    match = NUMBER.fullmatch(fields.get("found", ""))
    cuda = f"{match[1]}.{match[2]}" if match else fields.get("driver_cuda", "")
    return {"serves": cuda} if cuda else {}


def driver_of_cuda(fields: Fields, facts: Facts) -> Fields:
    """What the newest CUDA that a driver knows, `serves`, tells of the driver: its branch, what it runs."""
    cuda = fields.get("serves", "")
    if not numbers(cuda):
        return {}
    found = {}
    shipped = [row.driver for row in facts.matrix.toolkit_drivers if row.cuda == cuda]
    if shipped:
        found["shipped_driver"] = min(shipped, key=numbers)
        found["branch"] = found["shipped_driver"].partition(".")[0]
    minors = [row.cuda for row in facts.matrix.toolkit_drivers if major_of(row.cuda) == major_of(cuda)]
    if minors:
        found["newest_cuda"] = max(minors, key=numbers)
    later = [row for row in facts.matrix.driver_families if row.cuda_major > major_of(cuda)]
    if later:
        next_one = min(later, key=lambda row: row.cuda_major)
        found |= {"next_major": str(next_one.cuda_major), "next_floor": next_one.floor}
    return found


def torch_for_driver(fields: Fields, facts: Facts) -> Fields:
    """For a driver that `serves` a CUDA: the build that the text names and its needs, and `lock` of one that runs.

    `driver_short`: whether the driver that the text names is older than the build needs.
    """
    found: dict[str, str] = {}
    named, driver = named_build(fields, facts), fields.get("driver", "")
    floor = {row.cuda_major: row.floor for row in facts.matrix.driver_families}
    if named is not None and named.cuda != CPU and major_of(named.cuda) in floor:
        found |= {"named_build": build_name(named), "named_cuda": named.cuda, "named_major": str(major_of(named.cuda)),
                  "named_floor": floor[major_of(named.cuda)]}
        if DRIVER.fullmatch(driver):
            found["driver_short"] = "no" if driver_reaches(driver, found["named_floor"]) else "yes"
    cuda = fields.get("serves") or (newest_cuda_for_driver(facts.matrix, driver) if DRIVER.fullmatch(driver) else "")
    runs = [each for each in facts.torch if cuda and each.platform == PLATFORM and each.cuda != CPU
            and major_of(each.cuda) <= major_of(cuda) and major_of(each.cuda) in floor]
    if cuda and runs and major_of(cuda) >= min(floor):
        own = fields.get("serves") or (jit_cuda_of_driver(facts.matrix, driver) or cuda)
        best = for_driver(runs, own, fields, facts)[0]
        found |= {"runs_build": build_name(best), "lock": lock_command(best, driver=driver or fields.get("branch"))}
    return found


def for_driver(builds: Iterable[TorchBuild], cuda: str, fields: Fields, facts: Facts) -> list[TorchBuild]:
    """Builds to propose for a driver that serves this CUDA, best first; as `by_preference` where that decides.

    Those with code for the GPU that the text names, `arch`; where it names none, those for a CUDA that compiles for
    every GPU that the driver can be for: 12.8 for a driver that serves it, since 12.6 has nothing for a Blackwell. Of
    one release the newest CUDA that the driver serves itself, before those that rest on minor-version compatibility.
    """
    arch, release = fields.get("arch", ""), public(fields.get("torch", ""))
    ready = [row.first_cuda for row in facts.codes.architectures
             if row.first_cuda and numbers(row.first_cuda) <= numbers(cuda)]
    least = max(ready, key=numbers, default="0")

    def unfit(each: TorchBuild) -> bool:
        if arch and each.gpu_archs:
            return not gpu_runs(each.gpu_archs, arch)
        return numbers(each.cuda) < numbers(least)

    def order(each: TorchBuild) -> tuple[object, ...]:
        later, parts = numbers(each.cuda) > numbers(cuda), numbers(each.cuda)
        far = parts if later else tuple(-part for part in parts)
        wrong = unfit(each)
        return (not facts.has_wheel(each), wrong and bool(arch), each.version != release, wrong,
                tuple(-part for part in numbers(each.version)), later, far)

    return sorted(builds, key=order)


def floors(_fields: Fields, facts: Facts) -> Fields:
    """`floors`, in words: the oldest driver of each CUDA major."""
    rows = sorted(facts.matrix.driver_families, key=lambda row: row.cuda_major)
    return {"floors": "; ".join(f"CUDA {row.cuda_major} needs driver {row.floor} or newer" for row in rows)}


def image_driver(fields: Fields, facts: Facts) -> Fields:
    """The driver that came with the CUDA of an image, `image_cuda`, and the oldest one of that CUDA major."""
    cuda = fields.get("image_cuda", "")
    shipped = [row.driver for row in facts.matrix.toolkit_drivers if row.cuda == cuda]
    floor = next((row.floor for row in facts.matrix.driver_families if numbers(cuda)[:1] == (row.cuda_major,)), None)
    if not shipped or floor is None:
        return {}
    return {"image_driver": min(shipped, key=numbers), "image_floor": floor, "image_major": str(major_of(cuda))}


def cpu_lock(fields: Fields, facts: Facts) -> Fields:
    """`cpu_lock`, the lock of a CPU build: of the release that the text names, else of the newest."""
    builds = [each for each in facts.torch if each.platform == PLATFORM and each.cuda == CPU]
    return {"cpu_lock": lock_command(by_preference(builds, fields, facts)[0])} if builds else {}


def ptx_pair(fields: Fields, facts: Facts) -> Fields:
    """The CUDA of the PTX that is wanted, `ptx_wanted`, and of the newest that is known, `ptx_served`."""
    releases = dict(facts.codes.ptx)
    found = {f"{name}_cuda": releases[fields[name]] for name in ("ptx_wanted", "ptx_served")
             if fields.get(name) in releases}
    shipped = [row.driver for row in facts.matrix.toolkit_drivers if row.cuda == found.get("ptx_wanted_cuda")]
    return {**found, **({"ptx_wanted_driver": min(shipped, key=numbers)} if shipped else {})}


DERIVE: Mapping[str, Derivation] = {
    "found-cuda": found_cuda, "driver-of-cuda": driver_of_cuda, "torch-for-driver": torch_for_driver,
    "floors": floors, "cpu-lock": cpu_lock, "image-driver": image_driver, "ptx-pair": ptx_pair,
}
