"""Releases that an installer does not find, and what conda's solvers lack."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.version import Version

from stackfix.explain.derive.conflicts import nearest
from stackfix.explain.derive.releases import spread
from stackfix.explain.derive.stack import (
    CPU,
    DEFAULT_INDEX,
    builds_meant,
    in_stack,
    linux_builds,
    local_cuda,
    lock_of,
    project,
    release_of,
    releases,
)
from stackfix.explain.records import Derivation, Facts, Fields

TORCH = "torch"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(?:(?:={2,3}|@)\s*(?P<version>\d[\w.+]*))?")


def torch_release(fields: Fields, facts: Facts) -> Fields:
    """Of a `requirement` that no index answers, one on torch: where such a build is, and for which Pythons.

    `torch_version`; `torch_path`, the path of the torch index that has this build; `plain`, the release of the default
    index that is the same CUDA's; `variants`, the CUDAs of that release; `pythons`; `lock`; `no_release` and
    `torch_near` where no row of the matrix has this release. Without a version: `newest`, of any.
    """
    match = REQUIREMENT.match(fields.get("requirement", "").strip())
    if match is None or project(match["name"]) != TORCH:
        return {}
    version, python = match["version"], fields.get("python")
    if version is None:
        return newest_torch(python, facts)
    builds = builds_meant(version.partition("+")[0], None, facts)
    if not builds:
        near = nearest(releases(linux_builds(facts)), release_of(version))
        build = next(each for each in linux_builds(facts) if each.version == near)
        return {"torch_version": version, "no_release": "yes", "torch_near": near, "lock": lock_of(build, python)}
    same = tuple(each for each in builds if each.version == builds[0].version)
    cuda = local_cuda(version)
    own = next((each for each in same if cuda in {None, each.cuda}), None)
    build = own or same[0]
    found = {"torch_version": version, "torch_release": build.version, "pythons": first_and_last(build.pythons),
             "variants": ", ".join(sorted({each.cuda for each in same if each.cuda != CPU}, key=Version)),
             "lock": lock_of(build, python)}
    if cuda is None:
        return {**found, **({"python_outside": python} if python and python not in build.pythons else {})}
    if own is None:
        return {**found, "no_variant": cuda}
    return {**found, "asked_cuda": cuda,
            **({"plain": own.version} if own.index == DEFAULT_INDEX else {"torch_path": own.index})}


def newest_torch(python: str | None, facts: Facts) -> Fields:
    """`newest` release of torch and its `pythons`; the `lock` is of the newest that has this Python, if it is known."""
    builds = sorted((each for each in linux_builds(facts) if each.index == DEFAULT_INDEX),
                    key=lambda each: Version(each.version), reverse=True)
    fitting = next((each for each in builds if python in each.pythons), builds[0])
    return {"newest": builds[0].version, "pythons": first_and_last(builds[0].pythons), "lock": lock_of(fitting, python)}


def first_and_last(pythons: tuple[str, ...]) -> str:
    """"3.8 to 3.12"."""
    return pythons[0] if len(pythons) == 1 else f"{pythons[0]} to {pythons[-1]}"


def stack_requirement(fields: Fields, facts: Facts) -> Fields:     # noqa: ARG001 - all derivations are called alike
    """`project` and `asked`, name and version of a `requirement`; `stack` where it belongs to the GPU stack."""
    match = REQUIREMENT.match(fields.get("requirement", "").strip())
    if match is None:
        return {}
    own = project(match["name"])
    return {"project": own, **({"asked": match["version"]} if match["version"] else {}),
            **({"stack": "yes"} if in_stack(own) else {})}


def helper(fields: Fields, facts: Facts) -> Fields:
    """`helper`, where the `requirement` is on a project that torch itself requires and that is of no CUDA.

    Such ones, as markupsafe, are what the torch index holds besides the torch family, in few releases.
    """
    return helper_of((TORCH,), fields, facts)


def family_helper(fields: Fields, facts: Facts) -> Fields:
    """The same of torchvision and torchaudio, too: numpy, pillow."""
    return helper_of((TORCH, "torchvision", "torchaudio"), fields, facts)


def helper_of(family: Iterable[str], fields: Fields, facts: Facts) -> Fields:
    """`helper`, where the closures of these projects usually hold it."""
    from stackfix.matrix.load import load_closures

    match = REQUIREMENT.match(fields.get("requirement", "").strip())
    own = project(match["name"]) if match else ""
    closures = dict(load_closures(Path(facts.matrix.directory)))
    needed = {name for each in family for name in closures.get(each, ())}
    return {"helper": own} if own in needed and not in_stack(own) else {}


def cuda_build(fields: Fields, facts: Facts) -> Fields:
    """Of `cuda_wanted` 12.6 (or 12): `torch_fits`, releases of torch with such a build; the newest; a `lock`."""
    wanted = fields.get("cuda_wanted", "")
    builds = [each for each in linux_builds(facts) if each.cuda == wanted or each.cuda.startswith(f"{wanted}.")]
    if not wanted or not builds:
        return {}
    every = releases(each for each in linux_builds(facts) if each.cuda != CPU)
    ordered = sorted(builds, key=lambda each: (Version(each.version), each.index == DEFAULT_INDEX))
    newest, had = ordered[-1], max(reversed(ordered), key=facts.has_wheel)
    return {"torch_fits": spread({each.version for each in builds}, every), "torch_near": newest.version,
            "cuda_minor": newest.cuda, "lock": lock_of(had, fields.get("python"))}


def build_string(fields: Fields, facts: Facts) -> Fields:   # noqa: ARG001 - all derivations are called alike
    """`cuda_wanted`, the CUDA that a conda `build` string or `spec` states: 12.6 of "cuda126py311", 12 of ">=12"."""
    match = re.search(r"cuda[_-]?(\d{2})\.?(\d)?(?:\D|$)", fields.get("build", "")) or re.search(
        r"(?<![.\d])(1[0-9])(?:\.(\d{1,2}))?(?:\.\d+)*(?!\d)", fields.get("spec", ""))
    if match is None:
        return {}
    return {"cuda_wanted": f"{match[1]}.{match[2]}" if match[2] else match[1]}


def virtual_cuda(fields: Fields, facts: Facts) -> Fields:
    """What can be stated for a target: `major`, the CUDA that is wanted, else the one of most builds of torch.

    `majors`, all of them with the oldest driver of each; `glibc_floor`, what a `spec` asks for, else what the newest
    torch does.
    """
    rows = sorted(facts.matrix.driver_families, key=lambda each: each.cuda_major, reverse=True)
    builds = [each for each in linux_builds(facts) if each.cuda != CPU]
    counted = Counter(each.cuda.partition(".")[0] for each in builds)
    newest = max(builds, key=lambda each: Version(each.version))
    least = re.search(r">=\s*(\d+(?:\.\d+)*)", fields.get("spec", ""))
    of_glibc = least is not None and fields.get("virtual") == "__glibc"
    return {"majors": ", ".join(f"{each.cuda_major} (driver {each.floor} or newer)" for each in rows),
            "major": fields.get("cuda_wanted") or counted.most_common(1)[0][0],
            "glibc_floor": least[1] if least and of_glibc else newest.glibc or ""}


DERIVE: Mapping[str, Derivation] = {
    "torch-release": torch_release,
    "stack-requirement": stack_requirement,
    "helper": helper,
    "family-helper": family_helper,
    "virtual-cuda": virtual_cuda,
    "cuda-build": cuda_build,
    "build-string": build_string,
}
