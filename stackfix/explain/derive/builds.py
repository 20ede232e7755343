"""Failed builds of extensions: what was built, which wheel makes the build needless, which CUDA goes with a torch."""

from __future__ import annotations

import re
from collections.abc import Mapping

from packaging.version import Version

from stackfix.explain.derive.releases import spread
from stackfix.explain.derive.stack import (
    CPU,
    builds_meant,
    in_stack,
    linux_builds,
    lock_of,
    minor,
    project,
    release_of,
    releases,
)
from stackfix.explain.records import Derivation, Facts, Fields
from stackfix.matrix.records import FlashAttnWheel, TorchBuild

FLASH_ATTN = "flash-attn"
SUBJECT = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*?)(?:(?:==|@|-)(?P<version>\d[\w.]*))?")
BASES = {"hashed": "its sha256 is known", "listed": "an inventory of the release names it"}


def build_subject(fields: Fields, facts: Facts) -> Fields:
    """`package` and `version` of what was built, and `stack` where it belongs to the GPU stack.

    For flash-attn also `build_requires`, what its build needs besides torch.
    """
    match = SUBJECT.fullmatch(fields.get("subject", ""))
    if match is None:
        return {}
    found = {"package": project(match["name"])}
    if match["version"]:
        found["version"] = match["version"]
    if in_stack(found["package"]):
        found["stack"] = "yes"
    if found["package"] == FLASH_ATTN:
        row = next((each for each in facts.flash_attn if each.version == found.get("version")), facts.flash_attn[0])
        found["build_requires"] = " ".join(row.build_requires)
    return found


def flash_attn_subject(fields: Fields, facts: Facts) -> Fields:
    """As `build-subject`, where the message is one of flash-attn's own."""
    subject = fields.get("subject", "")
    own = SUBJECT.fullmatch(subject)
    same = own is not None and project(own["name"]) == FLASH_ATTN
    return build_subject({**fields, "subject": subject if same else FLASH_ATTN}, facts)


def prebuilt_wheel(fields: Fields, facts: Facts) -> Fields:
    """The prebuilt flash-attn wheel that makes the build needless.

    `wheel`, `wheel_version`, `wheel_basis` and `lock` where one fits the torch that the text names; `no_wheel` and the
    `lock` of the nearest torch that has one where none fits; without a torch `wheel_torch`, all that have one.
    """
    if fields.get("package") != FLASH_ATTN:
        return {}
    version = fields.get("version")
    meant = [each for each in builds_meant(fields.get("torch"), fields.get("cuda"), facts) if each.cuda != CPU]
    for build in meant:
        fitting = wheels_of(build, facts, fields.get("python"))
        same = [each for each in fitting if each.version == version]
        if same or fitting:
            return told_wheel((same or fitting)[0], build)
    return nearest_wheel(version, meant[0] if meant else None, facts)


def told_wheel(wheel: FlashAttnWheel, build: TorchBuild) -> Fields:
    """One wheel that fits."""
    return {
        "wheel": wheel.file, "wheel_version": wheel.version, "wheel_basis": BASES[wheel.basis],
        "wheel_python": wheel.python, "torch_release": build.version, "torch_cuda": build.cuda,
        "lock": lock_of(build, wheel.python, f"--flash-attn {wheel.version}"),
    }


def nearest_wheel(version: str | None, meant: TorchBuild | None, facts: Facts) -> Fields:
    """What has a wheel, where none fits what was meant, or nothing was."""
    builds = [each for each in linux_builds(facts) if each.cuda != CPU]
    minors = tuple(dict.fromkeys(map(minor, releases(builds))))
    known = [each for each in facts.flash_attn_wheels if each.basis in BASES and each.platform == "linux-64"]
    own = [each for each in known if each.version == version] or known[:1]
    release = own[0].version
    covered = {each.torch_minor for each in known if each.version == release} & set(minors)
    found: dict[str, str] = {"wheel_version": release, "wheel_torch": spread(covered, minors)}
    if meant is not None:
        found |= {"no_wheel": "yes", "torch_release": meant.version, "torch_cuda": meant.cuda}
    wanted = release_of(meant.version) if meant else None
    order = sorted(builds, key=lambda each: distance(each, wanted))
    for build in order:
        fitting = [each for each in wheels_of(build, facts, None) if each.version == release]
        if fitting:
            return {**found, "lock": lock_of(build, fitting[0].python, f"--flash-attn {release}")}
    return found


def distance(build: TorchBuild, wanted: Version | None) -> tuple[int, float, bool]:
    """How far a build is from a release, by minors; from none: how old it is."""
    release = Version(build.version)
    apart = abs(release.minor - wanted.minor) + 100 * abs(release.major - wanted.major) if wanted else 0
    return apart, -(release.major * 10000 + release.minor * 100 + release.micro), build.index != "default"


def wheels_of(build: TorchBuild, facts: Facts, python: str | None) -> list[FlashAttnWheel]:
    """flash-attn wheels that somebody has seen and that fit a build: newest first, then newer Pythons first."""
    from stackfix.matrix.query import flash_attn_wheels_for

    pythons = (python,) if python else tuple(reversed(build.pythons))
    found = [each for own in pythons for each in flash_attn_wheels_for(facts.matrix, build, own, "linux-64")
             if each.basis in BASES]
    return sorted(found, key=lambda each: Version(each.version), reverse=True)


def toolkit_pair(fields: Fields, facts: Facts) -> Fields:
    """`torch_for_nvcc`: releases of torch with a build for the CUDA of `nvcc`.

    `torch_near` and its `lock`: the release that the text names where it is among them, else the newest.
    """
    nvcc = fields.get("nvcc", "")
    every = releases(each for each in linux_builds(facts) if each.cuda != CPU)
    fitting = [each for each in linux_builds(facts) if each.cuda == nvcc]
    if not fitting:
        return {}
    release = release_of(fields.get("torch", ""))
    named = [each for each in fitting if release is not None and Version(each.version) == release]
    newest = max(named or fitting, key=lambda each: (facts.has_wheel(each), Version(each.version)))
    return {"torch_for_nvcc": spread({each.version for each in fitting}, every), "torch_near": newest.version,
            "lock": lock_of(newest, fields.get("python"))}


def nvcc_architecture(fields: Fields, facts: Facts) -> Fields:
    """Of `arch` 120: `arch_since`, the oldest CUDA with which a torch for it was built.

    `arch_now` where the newest CUDA still has it, else `arch_until`; `lock` of the newest such build. {} where no build
    of torch holds code for it.
    """
    code = f"sm_{fields['arch'].rstrip('af')}"
    builds = [each for each in linux_builds(facts) if code in each.gpu_archs]
    if not builds:
        return {}
    cudas = sorted({each.cuda for each in builds}, key=Version)
    newest_cuda = max((each.cuda for each in facts.torch if each.gpu_archs and each.cuda != CPU), key=Version)
    newest = max(builds, key=lambda each: (facts.has_wheel(each), Version(each.version)))
    found = {"arch_since": cudas[0], "lock": f"{lock_of(newest, fields.get('python'))} --gpu-arch {code}"}
    return {**found, **({"arch_now": "yes"} if cudas[-1] == newest_cuda else {"arch_until": cudas[-1]})}


def wheel_name(fields: Fields, facts: Facts) -> Fields:
    """What a flash-attn `asset`'s name says: `version`, `asset_torch`, `asset_cuda`, `asset_abi`, `python`.

    `listed` where the matrix knows a wheel of that name.
    """
    match = re.match(r"flash_attn-(?P<version>[\w.]+)\+cu(?P<asset_cuda>\d+)torch(?P<torch>\d+\.\d+)"
                     r"cxx11abi(?P<asset_abi>TRUE|FALSE)-cp3(?P<minor>\d+)-", fields.get("asset", ""), re.IGNORECASE)
    if match is None:
        return {}
    found = {"version": match["version"], "torch": match["torch"], "asset_torch": match["torch"],
             "asset_cuda": match["asset_cuda"], "asset_abi": "new" if match["asset_abi"].upper() == "TRUE" else "old",
             "python": f"3.{match['minor']}", "package": FLASH_ATTN}
    known = {each.file.lower() for each in facts.flash_attn_wheels if each.basis in BASES}
    return {**found, **({"listed": "yes"} if fields["asset"].lower() in known else {})}


def isolation(fields: Fields, facts: Facts) -> Fields:      # noqa: ARG001 - all derivations are called alike
    """`open`, where the text shows a build in the environment itself: setup.py called outright, or its setuptools."""
    return {"open": "yes"} if fields.get("open_build") and not fields.get("isolated") else {}


DERIVE: Mapping[str, Derivation] = {
    "build-subject": build_subject,
    "flash-attn-subject": flash_attn_subject,
    "prebuilt-wheel": prebuilt_wheel,
    "isolation": isolation,
    "toolkit-pair": toolkit_pair,
    "nvcc-architecture": nvcc_architecture,
    "wheel-name": wheel_name,
}
