"""Real environments for the writers of conda files: solved by py-rattler over the bundled records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stackfix.conda.records import CondaAsk, CondaSolved, CondaTarget, Spec, VirtualPackage
from stackfix.matrix.toml_files import matrix_directory
from stackfix.resolve.records import LockedPackage, Target
from stackfix.sources.conda_snapshot import BundledRecords
from tests.conda_channels import bundled_channels

SUBDIRS = ("linux-64", "linux-aarch64", "noarch")
MACHINES = {"linux-64": "x86_64_v3", "linux-aarch64": "aarch64"}


def solved_target(
    cache_dir: Path, *specs: str, channels: tuple[str, ...] = ("conda-forge",), python: str = "3.11",
    platform: str = "linux-64", cuda: str = "12.8", priority: str = "strict", pip: tuple[LockedPackage, ...] = (),
) -> CondaTarget:
    """The environment of these specs, as a decision would hand it to the writers."""
    opened = bundled_channels(cache_dir, *channels)
    virtual = tuple(
        VirtualPackage(name=name, version=version, build=build)
        for name, version, build in (("__unix", "0", "0"), ("__linux", "5.15", "0"), ("__glibc", "2.28", "0"),
                                     ("__archspec", "1", MACHINES[platform]), ("__cuda", cuda, "0")))
    asked = tuple(Spec(text=text, origin="a test") for text in (*specs, f"python {python}.*"))
    answer = opened.solve(CondaAsk(platform=platform, channels=opened.channels, specs=asked, virtual=virtual,
                                   priority=priority))
    assert isinstance(answer, CondaSolved), answer
    return CondaTarget(
        target=Target(python=python, platform=platform, glibc="2.28"), layout="mixed" if pip else "native",
        channels=opened.channels, priority=priority, virtual=virtual, specs=asked, torch=None, records=answer.records,
        pip=pip, departures=(), snapshot=opened.snapshot)


def snapshot_roots(folder: Path, cache_dir: Path, target: CondaTarget) -> dict[str, Path]:
    """Base address of each channel -> a folder of subdirs with the bundled repodata.json, for the judges."""
    bundled = BundledRecords(matrix_directory() / "conda", cache_dir)
    roots = {}
    for channel in target.channels:
        root = roots[channel.url] = folder / channel.name
        for subdir in SUBDIRS:
            path = bundled.repodata(channel.name, subdir)
            place = root / subdir / "repodata.json"
            if path is not None and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(path)
    return roots


def judged_channels(target: CondaTarget, roots: Mapping[str, Path]) -> dict[str, tuple[str, Path]]:
    """As conda_rattler.solve_complaints takes them."""
    return {channel.name: (channel.url, roots[channel.url]) for channel in target.channels}


def virtual_of(target: CondaTarget) -> list[tuple[str, str, str]]:
    """The virtual packages that the target was solved with."""
    return [(one.name, one.version, one.build) for one in target.virtual]


ENVIRONMENTS: Mapping[str, Mapping[str, Any]] = {
    "conda-forge, torch 2.3": {"specs": ("pytorch 2.3.* cuda*", "cudnn <9", "numpy 1.26.*", "pip")},
    "the pytorch channel, torch 2.3": {
        "specs": ("pytorch 2.3.1 *cuda12.1*", "pytorch-cuda 12.1.*", "torchvision"),
        "channels": ("pytorch", "nvidia", "conda-forge")},
    "priority disabled": {
        "specs": ("pytorch 2.4.* *cuda12.4*", "pytorch-cuda 12.4.*", "torchvision"),
        "channels": ("pytorch", "nvidia", "conda-forge"), "priority": "disabled", "python": "3.12"},
    "aarch64": {"specs": ("pytorch 2.8.* cuda*",), "platform": "linux-aarch64", "python": "3.12", "cuda": "12.9"},
}
