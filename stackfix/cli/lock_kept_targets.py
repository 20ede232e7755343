"""What the lockfiles that are there pin for each target, where they pin one project at several versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.errors import StackfixError

if TYPE_CHECKING:
    from stackfix.write.records import Entry

Pins = tuple[tuple[str, str], ...]              # (name, version)
OfTargets = tuple[tuple[str, str, Pins], ...]   # (python, place, pins)


def pins_of_targets(directory: Path, name: str | None, pins: Pins) -> OfTargets:
    """(python, place, pins) of each target of the requirements files, else of the pylock files, sorted.

    Empty where no project is pinned at two versions: then all targets have one. Files that cannot be read say nothing.
    """
    if len({project for project, _ in pins}) == len(pins):
        return ()
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for python, place, some in of_requirements(directory, name):
        found.setdefault((python, place), set()).update(some)
    if not found:
        for python, place, some in of_pylocks(directory, name):
            found.setdefault((python, place), set()).update(some)
    return tuple((*target, tuple(sorted(some))) for target, some in sorted(found.items()))


def of_requirements(directory: Path, name: str | None) -> Iterator[tuple[str, str, Pins]]:
    """The pins of each requirements file whose header names its target."""
    from stackfix.sync.parse import HEADER_TARGET
    from stackfix.write.read import kept_requirements, requirements_pins

    for _, text in kept_requirements(directory, name):
        target = next((match for line in text.splitlines() if (match := HEADER_TARGET.fullmatch(line))), None)
        if target is not None:
            place = "-".join(filter(None, (target["platform"], target["variant"])))
            yield f"3.{int(target['minor'])}", place, tuple(requirements_pins(text))


def of_pylocks(directory: Path, name: str | None) -> Iterator[tuple[str, str, Pins]]:
    """The pins of each known target of each pylock file."""
    from stackfix.platforms import PLATFORMS
    from stackfix.sync.pylock import pins_of
    from stackfix.sync.targets import PYTHONS, stand_in
    from stackfix.write.read import kept_pylocks, variant_of

    for path, document in kept_pylocks(directory, name):
        variant = variant_of(document)
        for python in PYTHONS:
            for platform in PLATFORMS:
                try:
                    entries, _ = pins_of(document, path.name, stand_in(python, platform))
                except StackfixError:
                    continue            # of other targets, or damaged: `lock` replaces it
                yield python, "-".join(filter(None, (platform, variant))), tuple(pins_in(entries))


def pins_in(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """(name, version) of each entry."""
    from stackfix.write.read import wheel_version

    for entry in entries:
        version = entry.version or wheel_version(entry.url or "")
        if version is not None:
            yield entry.name, version
