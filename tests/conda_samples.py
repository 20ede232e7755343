"""Targets of conda lockfiles built by hand, with the oddities of names, versions, builds and dependencies."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from stackfix.conda.records import Channel, CondaRecord, CondaTarget, Snapshot
from stackfix.resolve.records import LockedPackage, Target
from tests.lock_samples import FLASH, NOWHERE, PYTHON, TAG, flash_wheel, index_file, package

FORGE = Channel(name="conda-forge", url="https://channels.example/conda-forge")
TORCH = Channel(name="pytorch", url="https://channels.example/pytorch")
COMMAND = "stackfix lock --torch 2.3 --cuda 12.1"
X86 = Target(python=PYTHON, platform="linux-64", glibc="2.28")
ARM = replace(X86, platform="linux-aarch64")
SNAPSHOT = Snapshot(date="2026-10-30", digest="0123456789ab", holes=("no flash-attn",), reason="--offline")


def record(name: str, version: str, build: str, *depends: str, channel: Channel = FORGE, subdir: str = "linux-64",
           kind: str = "conda", **more: Any) -> CondaRecord:
    """One package file, its hashes those of its name."""
    file = f"{name}-{version}-{build}.{kind}"
    tail = build.rpartition("_")[2]
    fields: dict[str, Any] = {
        "name": name, "version": version, "build": build, "subdir": subdir, "channel": channel.url, "file_name": file,
        "build_number": int(tail) if tail.isdecimal() else 0, "url": f"{channel.url}/{subdir}/{file}",
        "md5": hashlib.md5(file.encode(), usedforsecurity=False).hexdigest(),
        "sha256": hashlib.sha256(file.encode()).hexdigest(), "depends": depends, "constrains": (),
        "noarch": "generic" if subdir == "noarch" else None,
    }
    return CondaRecord(**{**fields, **more})


def records(subdir: str = "linux-64") -> tuple[CondaRecord, ...]:
    """A small environment: a cycle, python and pip, a channel each, texts that look like numbers."""
    made = (
        record("_libgcc_mutex", "0.1", "conda_forge", subdir=subdir),
        record("ca-certificates", "2024.7.4", "hbcca054_0", subdir=subdir, license="ISC", size=154_473),
        record("cyclic-one", "1.0", "0", "cyclic-two", subdir=subdir),
        record("cyclic-two", "1.0", "0", "cyclic-one", "libgcc-ng >=12", subdir=subdir),
        record("libgcc-ng", "12e3", "12345_7", "_libgcc_mutex 0.1 conda_forge", "__glibc >=2.17,<3.0.a0", subdir=subdir,
               constrains=("libgomp 14.1.0",), size=842_109, timestamp=1_717_000_000_000),
        record("mkl", "2022.1", "h84fe81f_915", subdir=subdir, kind="tar.bz2", channel=TORCH),
        record("numpy", "1.10", f"py{TAG}h64a7726_0", f"python >={PYTHON}", f"python_abi {PYTHON}.* *_cp{TAG}",
               "libblas * *mkl", "libblas >=3.9.0,<4.0a0", "__cuda", subdir=subdir,
               constrains=("numpy-base <0a0",), license="BSD-3-Clause", license_family="BSD"),
        record("libblas", "3.9.0", "16_linux64_mkl", "mkl >=2022.1.0,<2023.0a0", subdir=subdir,
               track_features=("blas_mkl",)),
        record("pip", "24.2", "pyh8b19718_1", "python >=3.8", "setuptools", "wheel", subdir="noarch", noarch="python"),
        record("python", f"{PYTHON}.9", "hb806964_0_cpython", "ca-certificates", "libgcc-ng >=12", "pip", "tzdata",
               subdir=subdir, python_site_packages_path=f"lib/python{PYTHON}/site-packages"),
        record("python_abi", PYTHON, f"5_cp{TAG}", subdir=subdir),
        record("pytorch", "2.3.1", f"py{PYTHON}_cuda12.1_cudnn8.9.2_0", "numpy", "mkl >=2018", f"python >={PYTHON}",
               channel=TORCH, subdir=subdir, kind="tar.bz2", timestamp=1_717_604_000_000, size=1_477_000_000),
        record("setuptools", "1e5", "pyhd8ed1ab_0", "python >=3.8", subdir="noarch", noarch="python"),
        record("tzdata", "2024a", "h0c530f3_0", subdir="noarch", license="LicenseRef-Public-Domain",
               license_family="Public: # 'Domain'"),
        record("wheel", "0.43.0", "pyhd8ed1ab_1", "python >=3.8", "setuptools", subdir="noarch", noarch="python"),
    )
    return tuple(sorted(made, key=lambda one: one.name))


def pip_part() -> tuple[LockedPackage, ...]:
    """A cycle, extras, a wheel by URL with a local version, versions that look like numbers."""
    def wheel(name: str, version: str, **more: Any) -> LockedPackage:
        file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        return package(name, version, (index_file(name, file, file.encode()),), **more)

    return (
        wheel("a-server", "1.10", requires=("b-client", "a-server", "torch"), extras=("fast", "all")),
        wheel("b-client", "12", requires=("a-server",), requires_python=">=3.8"),
        flash_wheel(NOWHERE.release_url),
    )


def target(*, pip: tuple[LockedPackage, ...] | None = None, where: Target = X86, **more: Any) -> CondaTarget:
    """A target of layout mixed with all of that."""
    fields: dict[str, Any] = {
        "target": where, "layout": "mixed", "channels": (TORCH, FORGE), "priority": "strict", "virtual": (),
        "specs": (), "torch": None, "records": records(where.platform), "pip": pip_part() if pip is None else pip,
        "departures": (), "snapshot": None,
    }
    return CondaTarget(**{**fields, **more})


__all__ = ["ARM", "COMMAND", "FLASH", "FORGE", "SNAPSHOT", "TORCH", "X86", "pip_part", "record", "records", "target"]
