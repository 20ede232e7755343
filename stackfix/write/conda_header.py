"""The leading comment of the conda lockfiles, and what their readers find in it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.conda.records import CondaTarget
from stackfix.write.clean import comment_text
from stackfix.write.names import tag_of
from stackfix.write.requirements import FIRST_WORDS, told_target


def conda_header(
    targets: tuple[CondaTarget, ...], *, command: str, use: str, second_steps: tuple[str, ...] = (),
) -> list[str]:
    """Comment lines: the targets, the command, where the records come from, what differs from the pip lock."""
    lines = ["#", f"# {FIRST_WORDS} {' '.join(tag_of(target.target) for target in targets)}"]
    lines += [f"# ({told_target(target.target)})" for target in targets]
    lines += ["# by the following command:", "#", f"#    {comment_text(command)}", "#",
              "# install it:", f"#    {comment_text(use)}", "#"]
    notes = [*unique(note for target in targets for note in target_notes(target, several=len(targets) > 1))]
    notes += [f"# second step: {name}" for name in second_steps]
    if second_steps:
        notes.append("# (built from source: install it after this file, with --no-build-isolation)")
    return [*lines, *notes, "#"] if notes else lines


def target_notes(target: CondaTarget, *, several: bool) -> Iterator[str]:
    """What must be known of one target: its layout, a snapshot, addresses of this machine, differences."""
    of = f" ({tag_of(target.target)})" if several else ""
    yield f"# layout{of}: {target.layout}"
    if target.virtual:
        offered = ", ".join(f"{one.name} {one.version}" for one in target.virtual)
        yield f"# locked for machines with{of}: {comment_text(offered)}"
    if target.priority == "disabled":
        yield f"# channel priority{of}: disabled, so a package may come from any of the channels"
    if target.snapshot is not None:
        yield f"# records{of}: {snapshot_text(target)}"
    for channel in target.channels:
        if channel.url.startswith("file:"):
            yield f"# its packages lie in a folder, {comment_text(channel.url)}: it installs only where that folder is"
    for departure in target.departures:
        yield (f"# differs from the pip lock{of} in {departure.about}: {comment_text(departure.conda or 'none')} here, "
               f"{comment_text(departure.pip or 'none')} there; {comment_text(departure.reason)}")


def snapshot_text(target: CondaTarget) -> str:
    """Which bundled records the lock was made of; why they were used depends on the machine and is no part of it."""
    snapshot = target.snapshot
    return f"stackfix's own snapshot of {snapshot.date}, {snapshot.digest}" if snapshot else ""


def unique(lines: Iterable[str]) -> Iterator[str]:
    """The lines, each once."""
    yield from dict.fromkeys(lines)
