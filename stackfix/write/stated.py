"""What the lockfiles that are there state of each pin, with its hashes: a pin that they contradict is not kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from stackfix.errors import BadInput
from stackfix.resolve.records import Lock
from stackfix.write.conda_read import parse_conda_file
from stackfix.write.read import PIN, pylock_pins, read_text, read_toml, wheel_version

HASH = re.compile(r"--hash=sha256:([0-9a-f]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One pin of one file."""

    manager: str                    # "pip" or "conda"
    name: str
    pin: str                        # a version, or the address of a package of a channel
    hashes: frozenset[str]


def read_stated(directory: Path, names: Iterable[str]) -> tuple[Stated, ...]:
    """What these files state. Files that are not there, or damaged beyond reading, state nothing."""
    found: list[Stated] = []
    for name in names:
        path = directory / name
        try:
            if path.is_file():
                found += stated_of(path)
        except BadInput:
            continue
    return tuple(found)


def stated_of(path: Path) -> Iterator[Stated]:
    """What one file states, by what its name says it is."""
    if path.suffix == ".txt":
        yield from requirements_stated(read_text(path))
    elif path.suffix == ".toml":
        yield from pylock_stated(read_toml(path))
    else:
        for environment in parse_conda_file(read_text(path), str(path)).environments:
            for pin in environment.conda:
                if pin.url is not None:
                    hashes = frozenset(digest for digest in (pin.md5, pin.sha256) if digest)
                    yield Stated(manager="conda", name=pin.name, pin=pin.url, hashes=hashes)
            for other in environment.pip:
                if other.version is not None:
                    hashes = frozenset((other.sha256,) if other.sha256 else ())
                    yield Stated(manager="pip", name=other.name, pin=other.version, hashes=hashes)


def requirements_stated(text: str) -> Iterator[Stated]:
    """Each pin of a requirements file with the hashes below it."""
    pins: list[tuple[str, str, set[str]]] = []
    for line in text.splitlines():
        match = PIN.match(line[:4096].strip())
        version = (match["version"] or wheel_version(match["url"])) if match else None
        if match and version:
            pins.append((canonicalize_name(match["name"]), version, set()))
        if pins:
            pins[-1][2].update(HASH.findall(line))
    for name, version, hashes in pins:
        yield Stated(manager="pip", name=name, pin=version, hashes=frozenset(hashes))


def pylock_stated(document: dict[str, object]) -> Iterator[Stated]:
    """Each package of a pylock with the hashes of its files."""
    packages = document.get("packages")
    for package in packages if isinstance(packages, list) else ():
        for name, version in pylock_pins({"packages": [package]}):
            yield Stated(manager="pip", name=name, pin=version, hashes=frozenset(pylock_hashes(package)))


def pylock_hashes(package: dict[str, object]) -> Iterator[str]:
    """Each sha256 of a package's files."""
    wheels = package.get("wheels")
    files = [*(wheels if isinstance(wheels, list) else ()), package.get("sdist"), package.get("archive")]
    for file in files:
        hashes = file.get("hashes") if isinstance(file, dict) else None
        sha256 = hashes.get("sha256") if isinstance(hashes, dict) else None
        if isinstance(sha256, str):
            yield sha256


def decided(lock: Lock) -> Iterator[Stated]:
    """What the lock would state."""
    wheels = [*(target.packages for target in lock.targets), *(target.pip for target in lock.conda)]
    for package in (package for packages in wheels for package in packages):
        hashes = frozenset(file.sha256 for file in package.files if file.sha256)
        yield Stated(manager="pip", name=package.name, pin=package.version, hashes=hashes)
    for target in lock.conda:
        for record in target.records:
            hashes = frozenset(digest for digest in (record.md5, record.sha256) if digest)
            yield Stated(manager="conda", name=record.name, pin=record.url, hashes=hashes)


def contradicted(lock: Lock, stated: Iterable[Stated]) -> dict[tuple[str, str], tuple[str, ...]]:
    """(manager, name) of each pin that the lock took over although no file has one of its hashes, with other pins.

    Either the pin was changed by hand, or all its hashes were. The other pins are those that other files state.
    """
    stated = tuple(stated)
    doubtful: dict[tuple[str, str], tuple[str, ...]] = {}
    for key, pin, hashes in (((one.manager, one.name), one.pin, one.hashes) for one in decided(lock)):
        theirs = [one for one in stated if (one.manager, one.name) == key]
        same = [one for one in theirs if one.pin == pin]
        if same and not any(one.hashes & hashes for one in same):
            doubtful[key] = tuple(dict.fromkeys(one.pin for one in theirs if one.pin != pin))
    return doubtful
