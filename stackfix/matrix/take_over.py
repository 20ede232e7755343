"""What the index says, put into the documents of the matrix files; what it does not say is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from stackfix.matrix.drift import COMPANIONS, STACK, torch_specifier
from stackfix.matrix.index_view import (
    F,
    Release,
    SeenIndex,
    glibc_of,
    macos_of,
    platforms_of,
    pythons_of,
    releases_of,
    requires_dist_of,
)
from stackfix.matrix.records import Drift
from stackfix.matrix.requirement_lines import (
    ALL_PYTHONS,
    component_pins,
    holds,
    requirements_on,
    requirements_without_extras,
)
from stackfix.matrix.rows import PLATFORMS
from stackfix.matrix.toml_text import Value
from stackfix.platforms import LINUX

SOURCE = "index-new"
SOURCE_TEXTS = {
    "torch.toml": "METADATA and file names on the package index; CUDA from the cuda-toolkit pin; the rest was not read",
    "companions.toml": "METADATA of a Linux x86_64 wheel on the package index; its CUDA was not read",
    "flash_attn.toml": "file name on the package index; requirements as those of the release before it",
}
_LIBRARY = re.compile(r"nvidia-|cuda-")
_MAJOR_SUFFIX = re.compile(r"-cu\d+$")


def take_over(documents: dict[str, dict[str, Any]], change: Drift, index: SeenIndex[F]) -> None:
    release = None if change.kind == "gone" else releases_of(index.page(change.project)).get(Version(change.version))
    if release is None:
        return
    if change.project == "torch":
        toolkits = {Version(name) for name in documents["cuda.toml"]["toolkit"]}
        _take_torch(documents["torch.toml"], change, release, index, toolkits)
    elif change.project in COMPANIONS:
        _take_companion(documents["companions.toml"], change, release, index)
    elif change.project == "cuda-toolkit":
        _take_toolkit(documents["cuda.toml"], change, release, index)
    elif change.kind in {"new-release", "sdist"}:
        _take_flash_attn(documents["flash_attn.toml"], change, sdist=release.sdist and not release.yanked)


def _take_torch(
    document: dict[str, Any], change: Drift, release: Release[F], index: SeenIndex[F], toolkits: set[Version]
) -> None:
    if change.kind not in {"new-release", "pythons", "platform", "requires", "glibc", "macos"}:
        return
    rows: list[dict[str, Any]] = document["release"]
    row = next((row for row in rows if Version(row["version"]) == release.version), None)
    if row is None:
        row = {"version": str(release.version), "pythons": [], "requires": [], "builds": []}
        rows.append(row)
        rows.sort(key=lambda kept: Version(kept["version"]), reverse=True)
    respelled = platforms_of(change.file or "") if change.kind == "requires" else frozenset()
    builds = []
    for platform in PLATFORMS:
        known = next((build for build in row["builds"] if _is_default(build, platform)), None)
        fresh = _torch_build(document, row, release, platform, index, toolkits)
        build = _merged(known, fresh, take_requires=platform in respelled)
        if build is not None:
            builds.append(build)
    if any(build.get("source") == SOURCE for build in builds):
        document["sources"].setdefault(SOURCE, SOURCE_TEXTS["torch.toml"])
    row["builds"] = builds + [build for build in row["builds"] if build.get("index", "default") != "default"]


def _is_default(build: Mapping[str, Any], platform: str) -> bool:
    return bool(build["platform"] == platform and build.get("index", "default") == "default")


def _merged(
    known: Mapping[str, Any] | None, fresh: Mapping[str, Any] | None, *, take_requires: bool
) -> dict[str, Any] | None:
    """What the index says now, with what it does not say, or says as before, from the row that there is."""
    if known is None or fresh is None:
        return {**fresh, "source": SOURCE, "confidence": "low"} if fresh else dict(known) if known else None
    said = (*(("pins", "requires") if take_requires else ()), "pythons", "glibc", "macos")
    merged = {key: value for key, value in known.items() if key not in said or key in fresh}
    merged.update((key, fresh[key]) for key in said if key in fresh)
    return merged


def drop_unused_pins(document: dict[str, Any]) -> None:
    used = {build.get("pins") for row in document["release"] for build in row["builds"]}
    document["pins"] = {name: group for name, group in document["pins"].items() if name in used}


def _torch_build(
    document: dict[str, Any],
    row: dict[str, Any],
    release: Release[F],
    platform: str,
    index: SeenIndex[F],
    toolkits: set[Version],
) -> dict[str, Any] | None:
    wheels = release.wheels(platform)
    lines = requires_dist_of(index, wheels[0]) if wheels else None
    if lines is None:
        return None
    pythons = list(pythons_of(wheel.filename for wheel in wheels))
    row["pythons"] = row["pythons"] or pythons
    libraries, others = _split(lines)
    row["requires"] = row["requires"] or others
    build: dict[str, Any] = {"platform": platform, "cuda": "cpu"}
    toolkit = _toolkit_pin(libraries, toolkits, platform)
    if toolkit is not None:
        build["cuda"] = f"{toolkit.major}.{toolkit.minor}"
    if libraries:
        build["pins"] = _pin_group(document["pins"], libraries, toolkit)
    if others != row["requires"]:
        build["requires"] = others
    if pythons != row["pythons"]:
        build["pythons"] = pythons
    if platform in LINUX:
        build["glibc"] = glibc_of(wheels[0].filename) or "2.17"
    elif (macos := macos_of(wheel.filename for wheel in wheels)) is not None:
        build["macos"] = macos
    return build


def _split(lines: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Requirements on CUDA libraries, and the others, each as the index spells them."""
    plain = sorted(requirements_without_extras(lines))
    libraries = [line for line in plain if _LIBRARY.match(line)]
    return libraries, [line for line in plain if line not in libraries]


def _toolkit_pin(libraries: list[str], toolkits: set[Version], platform: str) -> Version | None:
    """The toolkit release that a wheel is pinned to; None where its markers keep that pin to other platforms."""
    for line in libraries:
        requirement = Requirement(line)
        named = requirement.name == "cuda-toolkit"
        pins = named and any(holds(requirement, python, platform) for python in ALL_PYTHONS)
        for clause in requirement.specifier if pins else ():
            if clause.operator == "==" and (version := Version(clause.version)) in toolkits:
                return next(known for known in toolkits if known == version)
    return None


def _pin_group(groups: dict[str, Any], libraries: list[str], toolkit: Version | None) -> str:
    """Name of the group with these lines; a new one where there is none."""
    label = f"CUDA {toolkit or 'unread'}, as the index spells it"
    number, name = 1, label
    while name in groups and groups[name]["lines"] != libraries:
        number += 1
        name = f"{label} ({number})"
    groups[name] = {**({"toolkit": str(toolkit)} if toolkit else {}), "lines": libraries}
    return name


def _take_companion(document: dict[str, Any], change: Drift, release: Release[F], index: SeenIndex[F]) -> None:
    rows: list[dict[str, Any]] = document[change.project]["releases"]
    row = next((row for row in rows if Version(row["version"]) == release.version), None)
    if row is not None and change.kind == "yanked":
        document["sources"].setdefault("yanked", "the release is yanked")
        row["source"] = "yanked"
    wheels = release.wheels("linux-64")
    lines = requires_dist_of(index, wheels[0]) if wheels else None
    if lines is None or change.kind not in {"new-release", "torch", "requires"}:
        return
    said: dict[str, Any] = {"version": str(release.version)}
    if torch := torch_specifier(lines):
        said["torch"] = torch
    if requires := sorted(requirements_on(lines, STACK)):
        said["requires"] = requires
    if row is not None:
        kept = {key: value for key, value in row.items() if key not in {"version", "torch", "requires"}}
        rows[rows.index(row)] = {**said, **kept}
        return
    document["sources"].setdefault(SOURCE, SOURCE_TEXTS["companions.toml"])
    rows.append({**said, "source": SOURCE, "confidence": "low"})
    rows.sort(key=lambda kept: Version(kept["version"]), reverse=True)


def _take_toolkit(document: dict[str, Any], change: Drift, release: Release[F], index: SeenIndex[F]) -> None:
    wheels = release.wheels()
    lines = requires_dist_of(index, wheels[0]) if wheels else None
    if lines is None or change.kind not in {"new-release", "components"}:
        return
    components = sorted(
        f"{_MAJOR_SUFFIX.sub('', name).removeprefix('nvidia-')} {version}"
        for name, version in component_pins(lines).items()
    )
    toolkits: dict[str, Any] = document["toolkit"]
    toolkits[str(release.version)] = components
    document["toolkit"] = dict(sorted(toolkits.items(), key=lambda kept: Version(kept[0]), reverse=True))


def _take_flash_attn(document: dict[str, Any], change: Drift, *, sdist: bool) -> None:
    rows: list[dict[str, Any]] = document["release"]
    version = Version(change.version)
    row = next((row for row in rows if Version(row["version"]) == version), None)
    if row is not None:
        row["sdist"] = sdist
        return
    document["sources"].setdefault(SOURCE, SOURCE_TEXTS["flash_attn.toml"])
    before = max((row for row in rows if Version(row["version"]) < version), key=lambda row: Version(row["version"]))
    said: dict[str, Value] = {key: before[key] for key in ("archs", "requires", "build_requires") if key in before}
    rows.append({"version": str(version), "sdist": sdist, **said, "source": SOURCE, "confidence": "low"})
    rows.sort(key=lambda kept: Version(kept["version"]), reverse=True)
