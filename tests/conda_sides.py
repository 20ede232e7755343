"""A conda lock and a pip lock of one target that agree, to be changed in one point."""

from __future__ import annotations

from dataclasses import replace

from stackfix.conda.builds import torch_builds
from stackfix.conda.names import NameBook
from stackfix.conda.records import Channel, CondaRecord, CondaTarget, Spec
from stackfix.matrix import query
from stackfix.matrix.conda_names import load_conda_names
from stackfix.matrix.load import load_matrix
from stackfix.resolve.records import LockedPackage, Target, TargetLock
from stackfix.sources.records import IndexFile
from tests.conda_shelf import record, shelf

MATRIX = load_matrix()
BOOK = NameBook(load_conda_names())
TARGET = Target(python="3.11", platform="linux-64", glibc="2.28")
FORGE = Channel(name="conda-forge", url="https://conda.invalid/conda-forge")
PYTORCH = Channel(name="pytorch", url="https://conda.invalid/pytorch")
FORGE_TORCH = "linux-64/pytorch-2.3.1-cuda120_py311hf6aebf0_300.conda"
OLD_TORCH = "linux-64/pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.tar.bz2"


def package(
    name: str, version: str, *, by: str = "torch", file: str | None = None, direct: bool = False
) -> LockedPackage:
    """A pin of pip's."""
    files = () if file is None else (IndexFile(
        project=name, filename=file, version=version, url=f"https://files.invalid/{file}", sha256="0" * 64,
        requires_python=None, yanked=None, size=None, upload_time=None, core_metadata=None,
        index="https://files.invalid",
    ),)
    return LockedPackage(name=name, version=version, files=files, requires=(), requested_by=(by,), direct=direct)


def pip_lock(*more: LockedPackage, torch: str = "2.3.1", cuda: str = "12.1") -> TargetLock:
    """The pins of a torch wheel, as the matrix has them."""
    build = next(row for row in query.builds(MATRIX, platform="linux-64") if (row.version, row.cuda) == (torch, cuda))
    pins = query.preferred_versions(MATRIX, build).items()
    nvidia = [package(name, version) for name, version in pins if name.startswith("nvidia-")]
    found = [package("torch", torch, by="--torch"), *nvidia, *more]
    return TargetLock(target=TARGET, build=build, packages=tuple(sorted(found, key=lambda one: one.name)))


def conda_lock(*records: CondaRecord, torch: str | None = FORGE_TORCH, pip: tuple[LockedPackage, ...] = (),
               channels: tuple[Channel, ...] = (FORGE,), layout: str = "native",
               specs: tuple[Spec, ...] = ()) -> CondaTarget:
    """A conda side with this torch of the shelf, and libraries of the wheel's versions; later records replace."""
    found = {one.name: one for one in (
        record("python", "3.11.9"), record("libcublas", "12.1.3.1"), record("libcusparse", "12.1.0.106"),
        record("libnvjitlink", "12.1.105"), record("cuda-version", "12.0"), record("libcudnn", "8.9.7.29"),
    )}
    if torch is not None:
        found["pytorch"] = shelf()[torch]
    if torch == OLD_TORCH:
        del found["libcudnn"], found["cuda-version"]
        found["pytorch-cuda"] = record("pytorch-cuda", "12.1")
    found.update({one.name: one for one in records})
    builds = torch_builds(found.values())
    return CondaTarget(
        target=TARGET, layout=layout, channels=channels, priority="strict", virtual=(), specs=specs,
        torch=next(iter(builds), None), pip=pip, departures=(),
        records=tuple(sorted(found.values(), key=lambda one: one.name)),
    )


def without(target: CondaTarget, *names: str) -> CondaTarget:
    """The same without these packages."""
    return replace(target, records=tuple(one for one in target.records if one.name not in names))
