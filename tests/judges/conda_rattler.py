"""Judge: py-rattler. It reads every pixi.lock as the records are, and solves each environment with all of it pinned.

It reads files and repodata by itself; nothing of stackfix is in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml


def pixi_complaints(lock: Path, scratch: Path) -> Iterator[str]:
    """What is lost or changed when py-rattler reads the file and writes it again."""
    from rattler import LockFile

    written = scratch / "written-by-rattler.lock"
    LockFile.from_path(lock).to_path(written)
    ours, theirs = (yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) for path in (lock, written))
    for key in sorted({*ours, *theirs}):
        if ours.get(key) != theirs.get(key):
            yield f"{key}: {first_difference(ours.get(key), theirs.get(key))}"


def conda_lock_complaints(lock: Path) -> Iterator[str]:
    """Where py-rattler, which reads conda-lock.yml as the oldest of its own formats, reads other than stands there."""
    read = {
        **{("conda", platform, name): (record.url, record.sha256, sorted(line.replace(" ==", " ")
                                                                         for line in record.depends))
           for (_, platform), records in pixi_records(lock).items() for name, record in records.items()},
        **{("pip", platform, name): (package.location, package.hashes and package.hashes.sha256,
                                     sorted(line.partition(" ")[0] for line in package.requires_dist))
           for (_, platform), packages in pixi_pypi(lock).items() for name, package in packages.items()},
    }
    for entry in yaml.load(lock.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["package"]:
        named = {name: "" if entry["manager"] == "pip" else rest for name, rest in entry["dependencies"].items()}
        stated = (entry["url"], bytes.fromhex(entry["hash"]["sha256"]) if "sha256" in entry["hash"] else None,
                  sorted(f"{name} {rest}".strip().replace(" ==", " ") for name, rest in named.items()))
        found = read.pop((entry["manager"], entry["platform"], entry["name"]), None)
        if found != stated:
            yield f"{entry['name']}: rattler reads {found}, it is {stated}"
    for left in read:
        yield f"rattler reads {left}, which is not there"


def first_difference(one: Any, other: Any) -> str:
    """Where two documents part."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *other]:
            if one.get(key) != other.get(key):
                return f"{key}: {first_difference(one.get(key), other.get(key))}"
    if isinstance(one, list) and isinstance(other, list):
        for left, right in zip(one, other, strict=False):
            if left != right:
                return first_difference(left, right)
        return f"{len(one)} items, rattler writes {len(other)}"
    return f"{one!r}, rattler writes {other!r}"


def pixi_records(lock: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """(environment, platform) -> name -> the record that py-rattler makes of the file."""
    from rattler import LockFile

    return {
        (name, platform): {record.name.normalized: record for record in records}
        for name, environment in LockFile.from_path(lock).environments()
        for platform, records in environment.conda_repodata_records().items()
    }


def pixi_pypi(lock: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """(environment, platform) -> name -> py-rattler's package of pip."""
    from rattler import LockFile

    return {
        (name, platform): {package.name: package for package in packages}
        for name, environment in LockFile.from_path(lock).environments()
        for platform, packages in environment.pypi_packages().items()
    }


def pins_of(environment: Path) -> tuple[str, ...]:
    """The conda dependencies of an environment.yml."""
    document = yaml.load(environment.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return tuple(line for line in document["dependencies"] if isinstance(line, str))


def solve_complaints(
    pins: Sequence[str], channels: Mapping[str, tuple[str, Path]], *, platform: str,
    virtual: Sequence[tuple[str, str, str]], priority: str = "strict",
) -> Iterator[str]:
    """What rattler says where all packages are pinned: it must find exactly them.

    `channels`: name -> (base address, folder of subdirs), in order of priority. `virtual`: (name, version, build).
    """
    from rattler.exceptions import SolverError

    try:
        found = asyncio.run(solved(pins, channels, platform=platform, virtual=virtual, priority=priority))
    except SolverError as error:
        yield f"rattler finds no such environment: {str(error)[:2000]}"
        return
    wanted = sorted(pin.partition("::")[2] or pin for pin in pins)
    if found != wanted:
        yield f"rattler adds {sorted(set(found) - set(wanted))}, leaves out {sorted(set(wanted) - set(found))}"


async def solved(
    pins: Sequence[str], channels: Mapping[str, tuple[str, Path]], *, platform: str,
    virtual: Sequence[tuple[str, str, str]], priority: str,
) -> list[str]:
    """`name=version=build` of each package, sorted."""
    from rattler import (
        BuildString,
        Channel,
        ChannelPriority,
        GenericVirtualPackage,
        MatchSpec,
        PackageName,
        SparseRepoData,
        Version,
        solve_with_sparse_repodata,
    )

    sources = [
        SparseRepoData(Channel(base), subdir, folder / subdir / "repodata.json")
        for base, folder in channels.values() for subdir in (platform, "noarch")
        if (folder / subdir / "repodata.json").exists()
    ]
    bases = {name: base for name, (base, _) in channels.items()}
    records = await solve_with_sparse_repodata(
        specs=[MatchSpec(led(pin, bases)) for pin in pins], sparse_repodata=sources,
        virtual_packages=[GenericVirtualPackage(PackageName(name), Version(version), BuildString(build))
                          for name, version, build in virtual],
        channel_priority=ChannelPriority.Strict if priority == "strict" else ChannelPriority.Disabled,
    )
    return sorted(f"{record.name.normalized}={record.version}={record.build}" for record in records)


def led(pin: str, bases: Mapping[str, str]) -> str:
    """The pin with its channel's address for the name, which rattler would look for at its own default place."""
    name, found, rest = pin.partition("::")
    return f"{bases[name]}::{rest}" if found else pin
