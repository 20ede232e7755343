"""torch.toml to records."""

from __future__ import annotations

import re

from stackfix.matrix.faults import Faults
from stackfix.matrix.records import TorchBuild
from stackfix.matrix.rows import PLATFORMS, Origins, Row
from stackfix.platforms import LINUX

DEFAULT_INDEX = "default"
_PLACEHOLDER = re.compile(r"@([A-Za-z0-9_-]+)")
_CUDNN = re.compile(r"nvidia-cudnn(?:-cu\d+)?\s*==\s*([^\s;,]+)")
_NCCL = re.compile(r"nvidia-nccl(?:-cu\d+)?\s*==\s*([^\s;,]+)")


class _Pins:
    """One group of `[pins]`."""

    def __init__(self, row: Row, markers: dict[str, str]) -> None:
        self.toolkit = row.optional("toolkit", "version")
        name = row.optional("marker")
        if name is not None and name not in markers:
            row.fault(f"marker {name!r} is not in [markers]")
        marker = markers.get(name or "", "")
        lines = _expanded(row, "lines", markers)
        self.lines = tuple(f"{line} ; {marker}" if marker and ";" not in line else line for line in lines)
        self.cudnn = _first(_CUDNN, self.lines)
        self.nccl = _first(_NCCL, self.lines)
        row.done()


def parse_torch(document: dict[str, object], faults: Faults) -> tuple[TorchBuild, ...]:
    """Builds in file order."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    table = top.table("markers", needed=False)
    markers = {name: table.text(name) for name in table.names()}
    groups = top.table("pins", needed=False)
    pins = {name: _Pins(groups.table(name), markers) for name in groups.names()}
    builds: list[TorchBuild] = []
    for release in top.rows("release", name_by="version"):
        builds.extend(_release(release, origins, markers, pins))
    top.done()
    _refuse_twice(builds, faults)
    return tuple(builds)


def _release(release: Row, origins: Origins, markers: dict[str, str], pins: dict[str, _Pins]) -> list[TorchBuild]:
    version = release.text("version", "version")
    pythons = release.several("pythons", "python")
    requires = _expanded(release, "requires", markers)
    rows = release.rows("builds")
    release.done()
    return [_build(row, version, pythons, requires, origins, markers, pins) for row in rows]


def _build(
    row: Row,
    version: str,
    pythons: tuple[str, ...],
    requires: tuple[str, ...],
    origins: Origins,
    markers: dict[str, str],
    pins: dict[str, _Pins],
) -> TorchBuild:
    cuda, index = row.text("cuda", "cuda"), row.optional("index") or DEFAULT_INDEX
    name = row.optional("pins")
    group = pins.get(name or "")
    if name is not None and group is None:
        row.fault(f"pins {name!r} is not in [pins]")
    own = _expanded(row, "requires", markers) if row.has("requires") else None
    # The other requirements were read from the default index's wheel only: they are no fact about another variant.
    shared = requires if index == DEFAULT_INDEX else ()
    abi = row.chosen("abi", ("old", "new", "unread"), "unread")
    on_gpu = group if cuda != "cpu" else None  # a CPU build may list CUDA pins that its markers never let through
    source, confidence = origins.of(row)
    platform = row.chosen("platform", PLATFORMS)
    build = TorchBuild(
        version=version,
        platform=platform,
        cuda=cuda,
        index=index,
        pythons=row.several("pythons", "python") if row.has("pythons") else pythons,
        cxx11_abi=None if abi == "unread" else abi == "new",
        gpu_archs=gpu_archs(row),
        requires=(group.lines if group else ()) + (shared if own is None else own),
        toolkit=on_gpu.toolkit if on_gpu else None,
        cudnn=on_gpu.cudnn if on_gpu else None,
        nccl=on_gpu.nccl if on_gpu else None,
        glibc=row.text("glibc", "minor") if platform in LINUX else None,
        macos=row.text("macos", "minor") if platform.startswith("osx-") else None,
        source=source,
        confidence=confidence,
    )
    row.done()
    return build


def gpu_archs(row: Row) -> tuple[str, ...]:
    """Architectures of the row: sm_90 of the word 90, and compute_90 too of 90+PTX."""
    archs: list[str] = []
    for word in row.words("archs", "arch", needed=False):
        number, _, ptx = word.partition("+")
        archs.extend([f"sm_{number}", f"compute_{number}"] if ptx else [f"sm_{number}"])
    return tuple(archs)


def _expanded(row: Row, key: str, markers: dict[str, str]) -> tuple[str, ...]:
    lines = row.lines(key, "requirement")
    return tuple(_PLACEHOLDER.sub(lambda found: _marker(row, key, found[1], markers), line) for line in lines)


def _marker(row: Row, key: str, name: str, markers: dict[str, str]) -> str:
    if name not in markers:
        row.fault(f"{key}: marker {name!r} is not in [markers]")
    return markers.get(name, "")


def _first(pattern: re.Pattern[str], lines: tuple[str, ...]) -> str | None:
    return next((match[1] for line in lines if (match := pattern.match(line))), None)


def _refuse_twice(builds: list[TorchBuild], faults: Faults) -> None:
    seen: set[tuple[str, str, str]] = set()
    for build in builds:
        key = (build.version, build.platform, build.index)
        if key in seen:
            faults.add(f"release {build.version}", f"two builds for {build.platform} on index {build.index}")
        seen.add(key)
