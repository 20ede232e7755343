"""GPUs: what they are, and which builds hold code for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stackfix.explain.derive.releases import (
    DEFAULT_INDEX,
    PLATFORM,
    build_name,
    builds_of,
    by_preference,
    lock_command,
    named_build,
    numbers,
    public,
)
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.hardware import driver_supports, gpu_capability, gpu_runs
from stackfix.matrix.records import TorchBuild

AMPERE = (8, 0)     # flash-attn 2's floor
ARCH = re.compile(r"(?:sm|compute)_(\d+)")


def gpu_by_name(fields: Fields, facts: Facts) -> Fields:
    """`capability_read` of the GPU that the text names as `gpu_name` or `gpu`; the longest words decide."""
    name = fields.get("gpu_name") or fields.get("gpu") or ""
    found = [(len(words), arch) for words, arch in facts.codes.gpu_names if name and word_pattern(words).search(name)]
    return {"capability_read": max(found)[1]} if found else {}


def word_pattern(words: str) -> re.Pattern[str]:
    """The words of a product name as a pattern; "#" is a digit."""
    return re.compile(rf"(?<!\w){re.escape(words).replace(re.escape('#'), '[0-9]')}(?!\d)", re.IGNORECASE)


def gpu(fields: Fields, facts: Facts) -> Fields:
    """What is known of the GPU that the message calls `capability_read`, "sm_120", "12.0", "120" or "12, 0".

    `beyond`: whether it is older or newer than `lowest` to `highest`, where the message names them.
    """
    found = gpu_capability(re.sub(r", ?", ".", fields.get("capability_read", "")))
    if found is None:
        return {}
    told = {"arch": f"sm_{found[0]}{found[1]}", "arch_digits": f"{found[0]}{found[1]}",
            "capability": f"{found[0]}.{found[1]}", "arch_ampere": "yes" if found >= AMPERE else "no"}
    lowest, highest = (gpu_capability(fields.get(name, "")) for name in ("lowest", "highest"))
    if lowest is not None and found < lowest:
        told["beyond"] = "older"
    elif highest is not None and found > highest:
        told["beyond"] = "newer"
    row = next((each for each in facts.codes.architectures if each.arch == told["arch"]), None)
    known = {"arch_family": row.family, "arch_cuda": row.first_cuda, "arch_last": row.last_cuda} if row else {}
    return {**told, **{name: value for name, value in known.items() if value}}


def torch_for_gpu(fields: Fields, facts: Facts) -> Fields:
    """Builds of torch with code for `arch`: of the text's own release, of the default index, and `lock` of the best."""
    arch, named, found = fields.get("arch", ""), named_build(fields, facts), {}
    if named is not None:
        found["named_build"] = build_name(named)
    if named is not None and named.gpu_archs:
        found |= {"named_archs": " ".join(named.gpu_archs), "named_lowest": machine_codes(named.gpu_archs)[0]}
        found |= {"named_runs": "yes" if gpu_runs(named.gpu_archs, arch) else "no"} if arch else {}
    fitting = [each for each in builds_with_code(facts) if arch and gpu_runs(each.gpu_archs, arch)]
    if not fitting:
        return found
    own = {each: witness for each in builds_of(facts, named.version if named else "")
           for archs, witness in [code_of(each, facts)] if gpu_runs(archs, arch)}
    if own:
        found["same_release"] = ", ".join(build_name(each) + witness for each, witness in own.items())
    usual = [each for each in fitting if each.index == DEFAULT_INDEX]
    for name, builds in (("default", usual), ("any", fitting)):
        if builds:
            found |= {f"oldest_{name}": build_name(min(builds, key=order)),
                      f"newest_{name}": build_name(max(builds, key=order))}
    driver = fields.get("driver")
    served = [each for each in [*own, *fitting] if driver is None or driver_supports(facts.matrix, driver, each.cuda)]
    # of one release a build that was read before one that is only taken to be alike
    best = by_preference(sorted(served or fitting, key=lambda each: not each.gpu_archs), fields, facts)[0]
    wanted = arch if best.gpu_archs else None
    return {**found, "lock": lock_command(best, arch=wanted, driver=driver if served else None)}


def code_of(build: TorchBuild, facts: Facts) -> tuple[tuple[str, ...], str]:
    """The architectures of a build, and by which others that is said where its own were not read.

    The builds for its CUDA next before and after it must agree: what a variant is compiled for rarely changes.
    """
    if build.gpu_archs:
        return build.gpu_archs, ""
    alike = sorted((each for each in builds_with_code(facts) if each.cuda == build.cuda), key=order)
    before = [each for each in alike if order(each) < order(build)][-1:]
    after = [each for each in alike if order(each) > order(build)][:1]
    if not before or not after or before[0].gpu_archs != after[0].gpu_archs:
        return (), ""
    return before[0].gpu_archs, f" (not read, but so in {before[0].version} and {after[0].version})"


def builds_with_code(facts: Facts) -> list[TorchBuild]:
    """Builds for x86-64 whose GPU code was read."""
    return [each for each in facts.torch if each.platform == PLATFORM and each.gpu_archs]


def machine_codes(archs: Iterable[str]) -> list[str]:
    """Those that are machine code, lowest first."""
    codes = {match[1] for arch in archs if arch.startswith("sm_") and (match := ARCH.match(arch))}
    return [f"sm_{each}" for each in sorted(codes, key=int)]


def order(build: TorchBuild) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """By release, then by CUDA."""
    return numbers(build.version), numbers(build.cuda)


def arch_floors(fields: Fields, facts: Facts) -> Fields:
    """From which GPU to which the default builds of torch go, in words, and the build that reaches lowest today."""
    found, runs = {}, list[tuple[str, str, list[str]]]()
    usual = sorted((each for each in builds_with_code(facts) if each.index == DEFAULT_INDEX), key=order)
    for build in usual:
        ends = machine_codes(build.gpu_archs)
        if not runs or runs[-1][2] != [ends[0], ends[-1]]:
            runs.append((build.version, build.version, [ends[0], ends[-1]]))
        else:
            runs[-1] = (runs[-1][0], build.version, runs[-1][2])
    found["floors_default"] = "; ".join(f"{first} to {last} for {ends[0]} to {ends[1]}" for first, last, ends in runs)
    widest = widest_of([each for each in builds_with_code(facts) if each.version == newest_with_choice(facts)], facts)
    if widest is not None:
        ends = machine_codes(widest.gpu_archs)
        found |= {"wide_release": f"torch {widest.version}", "wide_cuda": widest.cuda, "wide_lowest": ends[0],
                  "wide_highest": ends[-1]}
    own = widest_of(builds_of(facts, public(fields.get("torch", ""))), facts)
    return {**found, **({"wide_same": build_name(own)} if own else {})}


def newest_with_choice(facts: Facts) -> str:
    """The newest release with builds of several CUDA majors; "" where there is none."""
    majors: dict[str, set[str]] = {}
    for build in builds_with_code(facts):
        majors.setdefault(build.version, set()).add(build.cuda.partition(".")[0])
    return max((version for version, found in majors.items() if len(found) > 1), key=numbers, default="")


def widest_of(builds: Iterable[TorchBuild], facts: Facts) -> TorchBuild | None:
    """The build that reaches the oldest GPU; of several the one of the newest CUDA."""
    lowest = {each: int(codes[0][3:]) for each in builds if (codes := machine_codes(code_of(each, facts)[0]))}
    return min(lowest, key=lambda each: (lowest[each], [-part for part in numbers(each.cuda)]), default=None)


def newest_gpus(_fields: Fields, facts: Facts) -> Fields:
    """`newest_gpus`, in words: from which CUDA on the GPUs since Ampere are known."""
    rows = [each for each in facts.codes.architectures
            if each.first_cuda and (gpu_capability(each.arch) or ()) >= AMPERE]
    return {"newest_gpus": ", ".join(f"{each.arch} from CUDA {each.first_cuda} on" for each in rows)}


def flash_attn_archs(fields: Fields, facts: Facts) -> Fields:
    """For which GPUs prebuilt wheels of flash-attn are, whether any is for `arch`, the CUDA that compiles for more."""
    lists = {each.gpu_archs for each in facts.flash_attn if each.gpu_archs}
    found = {"flash_archs": ", ".join(sorted(" ".join(each) for each in lists))}
    floor = min((gpu_capability(arch) or AMPERE for archs in lists for arch in archs), default=AMPERE)
    found["flash_floor"] = f"{floor[0]}.{floor[1]}"
    for row in reversed(facts.codes.architectures):
        if row.family == "Hopper" and (capability := gpu_capability(row.arch)):
            found["hopper"] = f"{capability[0]}.{capability[1]}"
        if row.family == "Blackwell" and row.first_cuda:
            found["blackwell_cuda"] = row.first_cuda
    arch = fields.get("arch", "")
    runs = [each.version for each in facts.flash_attn if arch and each.gpu_archs and gpu_runs(each.gpu_archs, arch)]
    if runs:
        newest = max(runs, key=numbers)
        found |= {"flash_runs": f"{min(runs, key=numbers)} to {newest}", "flash_newest": newest}
    return found


DERIVE: Mapping[str, Derivation] = {
    "gpu-by-name": gpu_by_name, "gpu": gpu, "torch-for-gpu": torch_for_gpu, "arch-floors": arch_floors,
    "newest-gpus": newest_gpus, "flash-attn-archs": flash_attn_archs,
}
