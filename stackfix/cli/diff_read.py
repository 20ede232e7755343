"""Either side of `stackfix diff`: any lockfile that is read here, or an environment."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.cli.diff_environment import read_environment
from stackfix.cli.diff_held import conda_held, key_book, pip_held
from stackfix.errors import BadInput, Unreachable
from stackfix.quick import dataclass

if TYPE_CHECKING:
    from stackfix.write.records import Entry, HeldTarget, LeftOut

VERSION_PIN = re.compile(r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*(?P<version>[A-Za-z0-9.!+_-]+)")
CONDA_SUFFIXES = (".yml", ".yaml", ".lock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side is, and what it holds for each target."""

    kind: str                       # "environment", "requirements", "constraints", "pylock", or one of CONDA_KINDS
    targets: tuple[HeldTarget, ...]
    left_out: tuple[LeftOut, ...] = ()


def read_side(text: str) -> Side:
    """The side at that path. Raises BadInput, or Unreachable where unreadable."""
    path = Path(text)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise Unreachable(text, f"cannot be read: {error.strerror}") from error
    if is_folder:
        return Side(kind="environment", targets=(read_environment(path),))
    if not exists:
        raise BadInput(text, "no such lockfile or environment")
    if not path.is_file():
        raise BadInput(text, "is not a regular file: a FIFO, a socket or a device is not read",
                       "write it into a file, and name that")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise Unreachable(text, f"cannot be read: {error.strerror}") from error
    if path.suffix in CONDA_SUFFIXES:
        kind, targets = read_conda(path)
        return Side(kind=kind, targets=targets)
    if path.suffix == ".toml":
        return read_pylock(path)
    kind, targets = read_requirements(path)
    return Side(kind=kind, targets=targets)


def read_conda(path: Path) -> tuple[str, tuple[HeldTarget, ...]]:
    """conda-lock.yml, pixi.lock, an explicit file or a pinned environment.yml; with their second steps."""
    from stackfix.write.conda_read import read_conda_file
    from stackfix.write.records import HeldTarget

    lock, key = read_conda_file(path), key_book()
    found = []
    for one in lock.environments:
        python = one.python or next((python for python, platform in lock.targets if platform == one.platform), None)
        second = [entry for name in lock.second_steps
                  for entry in second_entries(path.with_name(name), python, one.platform)]
        found.append(HeldTarget(python=python, platform=one.platform, packages=(
            *conda_held(one.conda, key), *pip_held(one.pip), *pip_held(second))))
    return lock.kind, tuple(found)


def second_entries(path: Path, python: str | None, platform: str | None) -> tuple[Entry, ...]:
    """The pins of a second step for the target; none where the file is not there, or is another target's."""
    from stackfix.sync.lockfile import read_text
    from stackfix.sync.parse import parse_requirements_lock

    if not path.is_file():
        return ()
    lock = parse_requirements_lock(read_text(path), path.name)
    return lock.entries if lock.target in {None, (python, platform)} or None in {python, platform} else ()


def read_requirements(path: Path) -> tuple[str, tuple[HeldTarget, ...]]:
    """A requirements lock with its second step, or a constraints file."""
    from stackfix.sync.lockfile import read_text
    from stackfix.sync.parse import HEADER_TARGET, parse_requirements_lock
    from stackfix.write.records import HeldTarget

    text = read_text(path)
    if "--hash" in text:
        lock = parse_requirements_lock(text, path.name)
        python, platform = lock.target or (None, None)
        second = second_entries(path.with_name(lock.second_step), python, platform) if lock.second_step else ()
        return "requirements", (HeldTarget(python=python, platform=platform, variant=lock.variant,
                                           packages=tuple(pip_held((*lock.entries, *second)))),)
    entries: dict[str, Entry] = {}
    target = next((match for line in text.splitlines() if (match := HEADER_TARGET.fullmatch(line))), None)
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition(" #")[0].strip()
        if not content or content.startswith("#"):
            continue
        found = VERSION_PIN.fullmatch(content)
        if found is None:
            raise BadInput(f"{path} line {number}", f"is no pin of a version: {content[:80]!r}",
                           "name a lockfile: every line of one pins a version")
        entry = version_entry(found["name"], found["version"], number)
        if entries.setdefault(entry.name, entry) is not entry:
            raise BadInput(f"{path} line {number}", f"{entry.name} is pinned twice")
    return "constraints", (HeldTarget(
        python=f"3.{int(target['minor'])}" if target else None, platform=target["platform"] if target else None,
        variant=(target["variant"] or "") if target else None, packages=tuple(pip_held(entries.values()))),)


def version_entry(name: str, version: str, line: int) -> Entry:
    """`name==version`."""
    from packaging.utils import canonicalize_name

    from stackfix.write.records import Entry

    return Entry(name=canonicalize_name(name), version=version, url=None, sha256=(), line=line)


def read_pylock(path: Path) -> Side:
    """pylock.toml for each target that it is for, of those that are known here.

    A lock for every environment, as uv writes it, excludes only what its markers do. Some of what remains has no file
    of some package, such as a Python that is not out yet: these targets are left out, the others are read.
    """
    from stackfix.platforms import PLATFORMS
    from stackfix.sync.errors import LockDoesNotFit, NoFileFits
    from stackfix.sync.lockfile import read_text
    from stackfix.sync.pylock import pins_of, read_document
    from stackfix.sync.targets import PYTHONS, stand_in
    from stackfix.write.read import variant_of
    from stackfix.write.records import HeldTarget, LeftOut

    document, found, left_out = read_document(read_text(path), path.name), list[HeldTarget](), list[LeftOut]()
    refusal: LockDoesNotFit | NoFileFits | None = None
    variant = variant_of(document) or None      # that it is the CPU's is said only where no marker tells it apart
    for python, platform in product(PYTHONS, PLATFORMS):
        try:
            entries, second = pins_of(document, path.name, stand_in(python, platform))
        except LockDoesNotFit as error:
            refusal = refusal or error
            continue
        except NoFileFits as error:
            refusal = error if not left_out else refusal
            left_out.append(LeftOut(python=python, platform=platform, project=error.project))
            continue
        later = second_entries(path.with_name(second), python, platform) if second else ()
        found.append(HeldTarget(python=python, platform=platform, variant=variant,
                                packages=tuple(pip_held((*entries, *later)))))
    if not found:
        raise BadInput(str(path), f"is for no target known here ({refusal})")
    alike = not left_out and len(found) > 1 and len({frozenset(one.packages) for one in found}) == 1
    if "environments" not in document and alike:        # it does not tell them apart
        found = [HeldTarget(python=None, platform=None, packages=found[0].packages)]
    return Side(kind="pylock", targets=tuple(found), left_out=tuple(left_out))
