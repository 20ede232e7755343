"""flash_attn.toml to records."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from stackfix.matrix.faults import Faults
from stackfix.matrix.parse_torch import gpu_archs
from stackfix.matrix.records import FlashAttnRelease, FlashAttnWheel
from stackfix.matrix.rows import CONFIDENCES, PLATFORMS, Origins, Row
from stackfix.quick import dataclass

MACHINES = {"linux-64": "linux_x86_64", "linux-aarch64": "linux_aarch64"}
BASES = ("listed", "hashed", "planned")
MOST_WHEELS = 50_000  # rows multiply: a hostile row must not make millions


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashAttnRows:
    """What flash_attn.toml holds."""

    releases: tuple[FlashAttnRelease, ...]
    wheels: tuple[FlashAttnWheel, ...]


@dataclass(frozen=True, slots=True)
class _Hash:
    sha256: str
    source: str
    confidence: str


@dataclass(frozen=True, slots=True)
class _Origin:
    basis: str
    source: str
    confidence: str
    stated: bool  # the row gives a source of its own


def wheel_name(version: str, cuda: str, torch: str, abi: str, python: str, platform: str) -> str:
    """The asset's file name: cuda "122", torch "2.3", abi "TRUE" or "FALSE", python "3.11", platform "linux-64"."""
    tag = "cp" + python.replace(".", "")
    return f"flash_attn-{version}+cu{cuda}torch{torch}cxx11abi{abi}-{tag}-{tag}-{MACHINES[platform]}.whl"


def parse_flash_attn(document: dict[str, object], faults: Faults) -> FlashAttnRows:
    """Releases and wheels in file order."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    hashes = _hashes(top.table("sha256", needed=False), origins, faults)
    table = top.table("basis", needed=False)
    bases = {name: origins.of(table.table(name)) for name in table.names()}
    releases: list[FlashAttnRelease] = []
    wheels: dict[str, FlashAttnWheel] = {}
    for row in top.rows("release", name_by="version"):
        release = _release(row, origins)
        if release.version in {known.version for known in releases}:
            row.fault("given twice")
        releases.append(release)
        for ranges in row.rows("wheels", needed=False):
            _add_wheels(wheels, ranges, release, _row_origin(ranges, origins, bases), hashes)
        row.done()
    top.done()
    for file in hashes.keys() - wheels.keys():
        faults.add(f"sha256 {file}", "no release names this file")
    return FlashAttnRows(releases=tuple(releases), wheels=tuple(wheels.values()))


def _hashes(table: Row, origins: Origins, faults: Faults) -> dict[str, _Hash]:
    hashes: dict[str, _Hash] = {}
    for group in table.names():
        inner = table.table(group)
        if group not in origins.texts:
            inner.fault(f"{group!r} is not in [sources]")
        confidence = inner.chosen("confidence", CONFIDENCES)
        files = inner.table("files")
        for file in files.names():
            if file in hashes:
                faults.add(files.where, f"{file} given twice")
            hashes[file] = _Hash(files.text(file, "sha256"), origins.texts.get(group, ""), confidence)
        inner.done()
    return hashes


def _release(row: Row, origins: Origins) -> FlashAttnRelease:
    source, confidence = origins.of(row)
    return FlashAttnRelease(
        version=row.text("version", "version"),
        requires=row.lines("requires", "requirement"),
        build_requires=row.lines("build_requires", "requirement"),
        gpu_archs=gpu_archs(row),
        sdist=row.flag("sdist"),
        source=source,
        confidence=confidence,
    )


def _row_origin(row: Row, origins: Origins, bases: Mapping[str, tuple[str, str]]) -> _Origin:
    basis = row.chosen("basis", BASES, "listed")
    if basis not in bases and basis != "hashed":
        row.fault(f"no [basis.{basis}] says where such names come from")
    source, confidence = origins.of(row, *bases.get(basis, (None, None)))
    return _Origin(basis, source, confidence, row.has("source"))


def _weaker(origin: _Origin, known: _Hash | None) -> tuple[str, str]:
    """Source and confidence of a wheel: the hash's own, but a doubt that its row states stays."""
    if known is None:
        return origin.source, origin.confidence
    if origin.stated and CONFIDENCES.index(origin.confidence) > CONFIDENCES.index(known.confidence):
        return f"{known.source}; {origin.source}", origin.confidence
    return known.source, known.confidence


def _add_wheels(
    wheels: dict[str, FlashAttnWheel],
    row: Row,
    release: FlashAttnRelease,
    origin: _Origin,
    hashes: Mapping[str, _Hash],
) -> None:
    platform = row.chosen("platform", PLATFORMS, "linux-64")
    cudas, torches = row.words("cuda", "cuda-tag"), row.words("torch", "minor")
    abis, pythons = row.words("abi", "abi-flag"), row.words("pythons", "python")
    row.done()
    if len(cudas) * len(torches) * len(abis) * len(pythons) + len(wheels) > MOST_WHEELS:
        row.fault(f"more than {MOST_WHEELS} wheels")
        return
    if not (platform and all(cudas) and all(torches) and all(abis) and all(pythons)):
        return
    for cuda, torch, abi, python in product(cudas, torches, abis, pythons):
        file = wheel_name(release.version, cuda, torch, abi, python, platform)
        known = hashes.get(file)
        if file in wheels:
            row.fault(f"{file} given twice")
        if known is None and origin.basis == "hashed":
            row.fault(f"no sha256 for {file}")
        source, confidence = _weaker(origin, known)
        wheels[file] = FlashAttnWheel(
            file=file,
            version=release.version,
            cuda_tag="cu" + cuda,
            torch_minor=torch,
            cxx11_abi=abi == "TRUE",
            python=python,
            platform=platform,
            sha256=known.sha256 if known else None,
            basis="hashed" if known else origin.basis,
            source=source,
            confidence=confidence,
        )
