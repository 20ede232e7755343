"""Questions to the matrix. Pure: records in, records out; versions are compared as PEP 440 versions."""

from __future__ import annotations

from functools import lru_cache

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from stackfix.matrix.hardware import (
    CPU,
    driver_floor,
    driver_supports,
    gpu_capability,
    gpu_runs,
    jit_cuda_of_driver,
    major_of,
    newest_cuda_for_driver,
    rests_on_branch,
)
from stackfix.matrix.hints import follow
from stackfix.matrix.records import (
    Companion,
    FlashAttnRelease,
    FlashAttnWheel,
    Matrix,
    Rule,
    TorchBuild,
)
from stackfix.platforms import split_place

__all__ = [
    "CPU",
    "DEFAULT_INDEX",
    "builds",
    "builds_on",
    "closure_hint",
    "companion",
    "companion_fits",
    "companion_versions",
    "companions",
    "component_version",
    "cuda_matches",
    "driver_floor",
    "driver_supports",
    "flash_attn_release",
    "flash_attn_versions",
    "flash_attn_wheels_for",
    "gpu_capability",
    "gpu_runs",
    "jit_cuda_of_driver",
    "library_hint",
    "major_of",
    "minor_of",
    "newest_cuda_for_driver",
    "newest_variant",
    "other_minor",
    "preferred_versions",
    "rests_on_branch",
    "rules_for",
    "torch_releases",
]

DEFAULT_INDEX = "default"

_TOOLKIT_LIBRARIES = tuple(
    f"nvidia-{name}"
    for name in (
        *("cublas", "cuda-cccl", "cuda-runtime", "cufft", "cufile", "cuda-cupti", "curand"),
        *("cusolver", "cusparse", "nvjitlink", "cuda-nvrtc", "nvtx"),
    )
)
_COMPANIONS: list[tuple[tuple[Companion, ...], dict[str, tuple[Companion, ...]]]] = []     # of the matrix last asked


@lru_cache(maxsize=4096)
def _version(text: str) -> Version:
    return Version(text)


@lru_cache(maxsize=4096)
def _specifier(text: str) -> SpecifierSet:
    return SpecifierSet(text)


def _admits(specifier: str, version: str) -> bool:
    return _specifier(specifier).contains(_version(version), prereleases=True)


def torch_releases(matrix: Matrix) -> tuple[str, ...]:
    """Versions of torch that have a row, newest first."""
    return tuple(sorted({build.version for build in matrix.torch}, key=_version, reverse=True))


def builds(matrix: Matrix, *, platform: str | None = None, index: str | None = None) -> tuple[TorchBuild, ...]:
    """Builds of torch, newest first; of one release, those of the default index first, then in file order."""
    chosen = [
        build
        for build in matrix.torch
        if (platform is None or build.platform == platform) and (index is None or build.index == index)
    ]
    chosen.sort(key=lambda build: build.index != DEFAULT_INDEX)
    return tuple(sorted(chosen, key=lambda build: _version(build.version), reverse=True))


def builds_on(matrix: Matrix, place: str) -> tuple[TorchBuild, ...]:
    """Builds for a place, in the same order; for one such as `linux-64-cpu` those for the CPU alone."""
    platform, variant = split_place(place)
    return tuple(build for build in builds(matrix, platform=platform) if not variant or build.cuda == CPU)


def minor_of(version: str) -> str:
    """The minor of a release: "2.3" of "2.3.1"."""
    release = _version(version).release
    return f"{release[0]}.{release[1] if len(release) > 1 else 0}"


def component_version(matrix: Matrix, toolkit: str, package: str) -> str | None:
    """Version of a library wheel in a toolkit release; None where the release has no such component or is unknown.

    "13.0.3" finds the release that is named 13.0.3.0.
    """
    wanted = _version(toolkit)
    for component in matrix.components:
        if component.package == package and _version(component.toolkit) == wanted:
            return component.version
    return None


def preferred_versions(matrix: Matrix, build: TorchBuild) -> dict[str, str]:
    """Versions that belong to this build: its toolkit's components, then the exact pins of its own metadata.

    The latter win where they differ (torch 2.7 pins an older NVRTC than CUDA 12.6.3 has). Empty for CPU builds.
    """
    if build.cuda == CPU:
        return {}
    versions: dict[str, str] = {}
    if build.toolkit is not None:
        toolkit = _version(build.toolkit)
        for component in matrix.components:
            if _version(component.toolkit) == toolkit:
                versions[component.package] = component.version
    for line in build.requires:
        pin = _exact_pin(line)
        if pin is not None and pin[0].startswith("nvidia-"):
            versions[pin[0]] = pin[1]
    return versions


@lru_cache(maxsize=4096)
def _exact_pin(line: str) -> tuple[str, str] | None:
    requirement = Requirement(line)
    clauses = list(requirement.specifier)
    if len(clauses) == 1 and clauses[0].operator == "==" and not clauses[0].version.endswith(".*"):
        return requirement.name, clauses[0].version
    return None


def rules_for(matrix: Matrix, package: str, version: str) -> tuple[Rule, ...]:
    """Rules that hold where `package` is at `version`, in file order."""
    return tuple(rule for rule in matrix.rules if rule.package == package and _admits(rule.versions, version))


def companion(matrix: Matrix, package: str, version: str) -> Companion | None:
    """The row of one companion release."""
    rows = companions(matrix, package)
    wanted = _version(version) if rows else None
    return next((row for row in rows if _version(row.version) == wanted), None)


def companions(matrix: Matrix, package: str) -> tuple[Companion, ...]:
    """The rows of one companion, in file order. Sorted once for a matrix: a search asks thousands of times."""
    known = next(iter(_COMPANIONS), None)
    if known is None or known[0] is not matrix.companions:
        found: dict[str, tuple[Companion, ...]] = {}
        for row in matrix.companions:
            found[row.package] = (*found.get(row.package, ()), row)
        known = matrix.companions, found
        _COMPANIONS[:] = [known]
    return known[1].get(package, ())


def companion_versions(matrix: Matrix, package: str) -> tuple[str, ...]:
    """Versions of a companion that have a row, newest first."""
    found = [row.version for row in matrix.companions if row.package == package]
    return tuple(sorted(found, key=_version, reverse=True))


def companion_fits(companion: Companion, build: TorchBuild) -> str | None:
    """None where the companion fits the build, else the reason in plain words.

    The CUDA of a companion was read from its x86_64 wheel, so it says nothing about a CPU build, but where its Windows
    wheels are known to be for CUDA beside torch's for the CPU. Rules are apart.
    """
    name = f"{companion.package} {companion.version}"
    if companion.torch is not None and not _admits(companion.torch, build.version):
        return f"{name} requires torch{companion.torch}, not {build.version}"
    if companion.cuda_on_windows and (build.platform, build.cuda) == ("win-64", CPU):
        return f"{name} is built for CUDA {companion.cuda} on Windows too, torch {build.version} there for the CPU"
    if companion.cuda is None or build.cuda == CPU or companion.same_cuda == "any":
        return None
    if companion.same_cuda == "minor":
        same = companion.cuda == build.cuda
    else:
        same = major_of(companion.cuda) == major_of(build.cuda)
    return None if same else f"{name} is built for CUDA {companion.cuda}, torch {build.version} for CUDA {build.cuda}"


def other_minor(companion: Companion, build: TorchBuild) -> bool:
    """Whether a companion that fits was built for another minor of the build's CUDA major."""
    if companion.cuda is None or build.cuda == CPU or companion.same_cuda != "major":
        return False
    return companion.cuda != build.cuda and companion_fits(companion, build) is None


def flash_attn_wheels_for(matrix: Matrix, build: TorchBuild, python: str, platform: str) -> tuple[FlashAttnWheel, ...]:
    """Assets that fit, newest release first; of one release, the CUDA tag that its setup.py would choose first.

    Fits: torch minor, C++ ABI, Python and platform are equal and the CUDA major is the same. (setup.py of 2.7.0 to
    2.8.3 gives a CUDA 13 torch the cu12 asset, which cannot load.) A build whose C++ ABI nobody read has none.
    """
    if build.cuda == CPU or build.cxx11_abi is None or build.platform != platform:
        return ()
    minor = minor_of(build.version)
    found = [
        wheel
        for wheel in matrix.flash_attn_wheels
        if wheel.torch_minor == minor
        and wheel.python == python
        and wheel.cxx11_abi is build.cxx11_abi
        and wheel.platform == platform
        and _tag_major(wheel.cuda_tag) == major_of(build.cuda)
    ]
    # Up to 2.3.5 setup.py takes the tag of torch's own CUDA minor where it has one; later releases have one per major.
    exact = "cu" + build.cuda.replace(".", "")
    found.sort(key=lambda wheel: (_version(wheel.version), wheel.cuda_tag == exact, wheel.cuda_tag), reverse=True)
    return tuple(found)


def flash_attn_release(matrix: Matrix, version: str) -> FlashAttnRelease | None:
    """The row of one flash-attn release."""
    wanted = _version(version)
    return next((row for row in matrix.flash_attn if _version(row.version) == wanted), None)


def flash_attn_versions(matrix: Matrix) -> tuple[str, ...]:
    """flash-attn releases, newest first."""
    return tuple(sorted((row.version for row in matrix.flash_attn), key=_version, reverse=True))


def cuda_matches(asked: str, cuda: str) -> bool:
    """Whether a CUDA version is what was asked: "12" any 12.x, "12.1" only 12.1 (also as 12.1.1), "cpu" the CPU."""
    if CPU in {asked, cuda}:
        return asked == cuda
    asked_parts, parts = asked.split("."), cuda.split(".")
    depth = min(len(asked_parts), len(parts))
    return asked_parts[:depth] == parts[:depth]


def closure_hint(matrix: Matrix, names: tuple[str, ...]) -> tuple[str, ...]:
    """The named projects and what their closures usually hold, each once: what to fetch first, never a decision."""
    return follow(dict(matrix.closures), names)


def newest_variant(matrix: Matrix, build: TorchBuild) -> str | None:
    """The newest CUDA that the release has a build for on the torch index, for the same platform."""
    cudas = {row.cuda for row in builds(matrix, platform=build.platform)
             if row.version == build.version and row.index != DEFAULT_INDEX and row.cuda != CPU}
    return max(cudas, key=_version, default=None)


def library_hint(matrix: Matrix, build: TorchBuild) -> tuple[str, ...]:
    """Projects that the metadata of a CUDA build leads to besides the ordinary ones, sorted; a hint as well.

    cuda-toolkit extras are followed to their components, and nvJitLink is added: torch 2.1 to 2.4 does not name it.
    """
    if build.cuda == CPU:
        return ()
    prefixes = ("nvidia-", "cuda-", "triton")
    names = {name for name in map(_project, build.requires) if name.startswith(prefixes)}
    shipped = {row.package for row in matrix.components if row.toolkit == build.toolkit}
    if "cuda-toolkit" in names:
        names |= {package for package in shipped if package.startswith(_TOOLKIT_LIBRARIES)}
        names |= {"cuda-pathfinder"}
    names |= {package for package in shipped if package.startswith("nvidia-nvjitlink")}
    return tuple(sorted(names))


@lru_cache(maxsize=4096)
def _project(line: str) -> str:
    return canonicalize_name(Requirement(line).name)


def _tag_major(tag: str) -> int:
    return int(tag.removeprefix("cu")[:2])  # "cu12" and "cu122" are both CUDA 12
