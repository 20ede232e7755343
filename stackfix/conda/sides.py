"""The two sides of a stack in the same words: what pip's lock has, and what the conda lock of the same target has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stackfix.conda.names import NameBook, Provided
from stackfix.conda.records import CondaRecord, CondaTarget
from stackfix.matrix import query
from stackfix.matrix.records import Matrix, TorchBuild
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.records import LockedPackage, TargetLock


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side. `versions` are of projects, as pip writes them, whoever brings them."""

    python: str | None              # "3.11"
    torch: str | None
    cuda: str | None                # "12.1" or "cpu"; None: not known
    cudnn: str | None
    cudnn_linked: bool
    cxx11_abi: bool | None
    source: str                     # how torch is known
    versions: Mapping[str, str]
    packages: Mapping[str, LockedPackage]       # what pip installs
    records: Mapping[str, CondaRecord]          # what channels bring, by project

    @property
    def flash_attn(self) -> str | None:
        """The release of flash-attn."""
        return self.versions.get("flash-attn")

    def library(self, stem: str) -> str | None:
        """The project of one of NVIDIA's libraries that this side has: `nvidia-cudnn-cu12` of `nvidia-cudnn`."""
        major = (self.cuda or "").partition(".")[0]
        return next((name for name in (f"{stem}-cu{major}", stem) if name in self.versions), None)


def pip_side(pip: TargetLock) -> Side:
    """The side of the pip lock."""
    return _of_wheels(pip.target.python, pip.build, {package.name: package for package in pip.packages}, {})


def conda_side(conda: CondaTarget, pip: TargetLock | None, matrix: Matrix, book: NameBook) -> Side:
    """The side of the conda lock: packages of channels, and what pip brings beside them."""
    python = next((record for record in conda.records if record.name == "python"), None)
    minor = ".".join(python.version.split(".")[:2]) if python is not None else None
    packages = {package.name: package for package in conda.pip}
    torch = conda.torch
    if torch is None:
        build = _wheel_build(packages.get("torch"), conda.target.platform, pip, matrix)
        return _of_wheels(minor, build, packages, _provided(conda, book, build.cuda if build else query.CPU))
    provided = _provided(conda, book, torch.cuda)
    versions = _versions(packages, provided)
    records = {project: one.record for project, one in provided.items()}
    major = torch.cuda.partition(".")[0]
    there = versions.get(f"nvidia-cudnn-cu{major}")
    return Side(
        python=minor, torch=_public(torch.record.version), cuda=torch.cuda,
        cudnn=torch.cudnn if torch.cudnn_linked else there, cudnn_linked=torch.cudnn_linked,
        cxx11_abi=torch.cxx11_abi, source=torch.record.file_name, versions=versions, packages=packages, records=records,
    )


def _of_wheels(
    python: str | None, build: TorchBuild | None, packages: Mapping[str, LockedPackage],
    provided: Mapping[str, Provided],
) -> Side:
    versions = _versions(packages, provided)
    cuda = build.cuda if build is not None else None
    own = f"nvidia-cudnn-cu{(cuda or '').partition('.')[0]}"
    return Side(
        python=python, torch=versions.get("torch"), cuda=cuda,
        cudnn=versions.get(own) or (build.cudnn if build is not None and cuda != query.CPU else None),
        cudnn_linked=False, cxx11_abi=build.cxx11_abi if build is not None else None,
        source=build.source if build is not None else "no torch", versions=versions, packages=packages,
        records={project: one.record for project, one in provided.items()},
    )


def _wheel_build(
    torch: LockedPackage | None, platform: str, pip: TargetLock | None, matrix: Matrix
) -> TorchBuild | None:
    """The row of the matrix for the torch that pip brings: that of the pip lock where it is the same."""
    if torch is None:
        return None
    if pip is not None and _public(pip.build.version) == _public(torch.version):
        return pip.build
    rows = query.builds(matrix, platform=platform, index=query.DEFAULT_INDEX)
    return next((row for row in rows if _public(row.version) == _public(torch.version)), None)


def _provided(conda: CondaTarget, book: NameBook, cuda: str) -> dict[str, Provided]:
    return {one.project: one for one in book.provided(conda.records, cuda)}


def _versions(packages: Mapping[str, LockedPackage], provided: Mapping[str, Provided]) -> dict[str, str]:
    found = {project: one.version or one.record.version for project, one in provided.items()}
    return {**found, **{name: _public(package.version) for name, package in packages.items()}}


def _public(version: str) -> str:
    """`2.3.1` of `2.3.1+cu121`, normalised."""
    parsed = parse_version(version)
    return parsed.public if parsed is not None else version
