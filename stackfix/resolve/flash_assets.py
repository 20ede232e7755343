"""flash-attn's release assets, told apart by their names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from stackfix.matrix import query
from stackfix.matrix.records import FlashAttnWheel, Matrix, TorchBuild
from stackfix.quick import dataclass
from stackfix.resolve.target import TargetView
from stackfix.sources.records import ReleaseAsset

_ASSET = re.compile(
    r"flash_attn-(?P<version>[0-9][0-9a-z.]*)\+cu(?P<cuda>\d+)torch(?P<torch>\d+\.\d+)cxx11abi(?P<abi>TRUE|FALSE)"
    r"-(?P<python>cp\d+)-(?P=python)-(?:manylinux[0-9a-z_.]*|linux)_(?:x86_64|aarch64)\.whl"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashWheel:
    """A wheel that fits one target. Without `sha256` it can be had only where `asset` tells what to download."""

    version: str                    # public version, as in its metadata
    file: str
    sha256: str | None
    asset: ReleaseAsset | None
    row: FlashAttnWheel | None      # the matrix row of the file, where there is one

    @property
    def obtainable(self) -> bool:
        """Whether its hash is known or can be had by a download."""
        return self.sha256 is not None or self.asset is not None


def cuda_tag_if_fits(file: str, version: str, build: TorchBuild) -> str | None:
    """The CUDA tag ("122", "12") of an asset that is built for this torch, else None. Python and platform are apart."""
    match = _ASSET.fullmatch(file)
    if match is None or match["version"] != version or build.cxx11_abi is None:
        return None
    same = (
        match["torch"] == query.minor_of(build.version)
        and (match["abi"] == "TRUE") is build.cxx11_abi
        and match["cuda"][:2] == build.cuda.partition(".")[0]
    )
    return match["cuda"] if same else None


def name_words(file: str) -> str:
    """`torch 2.3 and the old C++ ABI`, as an asset's name says."""
    match = _ASSET.fullmatch(file)
    if match is None:
        return "something else"
    return f"torch {match['torch']} and the {'new' if match['abi'] == 'TRUE' else 'old'} C++ ABI"


def version_of(file: str) -> str:
    """The public version in an asset's name."""
    return file.split("-")[1].partition("+")[0]


def worth_asking(allowed: tuple[str, ...], rows: tuple[FlashAttnWheel, ...], kept: str | None) -> tuple[str, ...]:
    """Releases down to the newest (or kept) one that has a fitting wheel for sure: an older one would not be taken."""
    sure = [row.version for row in rows if row.basis != "planned"]
    last = kept if kept in sure else next(iter(sure), None)
    return allowed[: allowed.index(last) + 1] if last in allowed else allowed


def _python_of(file: str) -> str:
    """`3.11` of an asset name that matches."""
    digits = file[:-4].split("-")[2].removeprefix("cp")
    return f"{digits[0]}.{digits[1:]}"


def has_code_for(matrix: Matrix, version: str, archs: Iterable[str]) -> bool:
    """Whether wheels of a flash-attn release run on all these GPUs, as far as anybody read what they have code for."""
    release = query.flash_attn_release(matrix, version)
    return release is None or not release.gpu_archs or all(query.gpu_runs(release.gpu_archs, arch) for arch in archs)


def lacking_archs(matrix: Matrix, wheels: Iterable[FlashAttnWheel], archs: tuple[str, ...]) -> tuple[str, ...]:
    """GPUs for which the newest of these wheels has no code, where there are wheels and none runs on all GPUs."""
    versions = list(dict.fromkeys(wheel.version for wheel in wheels))
    if not versions or any(has_code_for(matrix, version, archs) for version in versions):
        return ()
    return tuple(arch for arch in archs if not has_code_for(matrix, versions[0], (arch,)))


def wheel_of_row(row: FlashAttnWheel) -> FlashWheel:
    return FlashWheel(version=row.version, file=row.file, sha256=row.sha256, asset=None, row=row)


def listed_wheels(
    view: TargetView, build: TorchBuild, listed: Mapping[str, tuple[ReleaseAsset, ...]],
    rows: Iterable[FlashAttnWheel], unobtainable: Collection[str],
) -> list[FlashWheel]:
    """Fitting wheels of the listed releases: of one release the CUDA tag of torch's own minor first, then the newest.

    `unobtainable` are files whose download failed in this run.
    """
    by_file = {row.file: row for row in rows}
    found: list[tuple[bool, str, FlashWheel]] = []
    for version, assets in listed.items():
        for asset in assets:
            tag = cuda_tag_if_fits(asset.file, version, build)
            if tag is None or view.rank(asset.file) is None or _python_of(asset.file) != view.target.python:
                continue
            wheel = _wheel_of_asset(version, asset, by_file.get(asset.file), lost=asset.file in unobtainable)
            found.append((tag == build.cuda.replace(".", ""), tag, wheel))
    found.sort(key=lambda entry: entry[:2], reverse=True)
    return [wheel for _, _, wheel in found]


def _wheel_of_asset(version: str, asset: ReleaseAsset, row: FlashAttnWheel | None, *, lost: bool) -> FlashWheel:
    known = row.sha256 if row is not None else None
    return FlashWheel(
        version=version, file=asset.file, sha256=known or asset.sha256, asset=None if lost else asset, row=row,
    )
