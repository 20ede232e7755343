"""What is said of a lock's files beside their names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.quick import replace

if TYPE_CHECKING:
    from stackfix.cli.common import CommonOptions
    from stackfix.resolve.records import Lock, StackRequest, TargetLock
    from stackfix.write.records import PlannedFile


def expected_names(formats: tuple[str, ...], name: str | None, stack: StackRequest) -> tuple[str, ...]:
    """The files that a lock will have, as far as the request tells."""
    from stackfix.platforms import has_channels, split_place
    from stackfix.resolve.records import Target
    from stackfix.write.files import PIP_FORMATS, likely_names, names_of_several

    if max(len(stack.pythons), len(stack.platforms)) < 2:
        held = formats if any(map(has_channels, stack.platforms)) else tuple(
            kind for kind in formats if kind in PIP_FORMATS)
        return likely_names(held, name) if held else ()
    return names_of_several(formats, name, (
        Target(python=python, platform=platform, glibc=stack.glibc, variant=variant)
        for python in stack.pythons for platform, variant in map(split_place, stack.platforms)))


def with_pylock_note(lock: Lock, formats: Iterable[str], name: str | None) -> Lock:
    """The lock with a note where its targets need more than one pylock file."""
    if "pylock" not in formats or len(lock.targets) < 2:
        return lock
    from stackfix.write.names import joined, pylock_name
    from stackfix.write.pylock import pylock_groups

    groups = pylock_groups(lock.targets)
    if len(groups) == 1:
        return lock
    files = ", ".join(f"{pylock_name(joined(name, variant))} for {' and '.join(places(locks))}"
                      for variant, locks in groups)
    note = f"no marker tells two builds for one platform apart, so there are two pylock files: {files}"
    return replace(lock, notes=(*lock.notes, note))


def places(locks: Iterable[TargetLock]) -> list[str]:
    """The places of these targets, each once."""
    return list(dict.fromkeys(each.target.place for each in locks))


def tell_stale(
    directory: Path, files: tuple[PlannedFile, ...], inputs: Iterable[Path], common: CommonOptions,
) -> None:
    """Say on stderr which files of earlier locks go, with --quiet too: what is deleted is never passed over."""
    from stackfix.write.stale import lock_of, stale_parts, stale_pylocks

    planned = {file.path: file.text for file in files}
    pylocks = [path for path in planned if path.startswith("pylock")]
    gone = [(name, line.strip(" ,"), pylocks) for name, _, line in stale_pylocks(directory, planned)]
    gone += [(name, f"{line}\n", [path for path in planned if lock_of(path) == lock_of(name)])
             for name, _, line in stale_parts(directory, planned, inputs)]
    for name, target, files_of_its_kind in gone:
        import click

        holder = next((path for path in files_of_its_kind if target in planned[path]), None)
        why = f"{holder} holds its target now" if holder else "its target is not of this lock any more"
        common.seen.cannot_be_kept("a file that goes is told")
        click.echo(f"note: {name} is removed: {why}", err=True)
