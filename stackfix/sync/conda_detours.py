"""Links that packages bring: no file of any package is to be written through one that leads out of the prefix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from stackfix.sync.conda_archive import placed_at, refused
from stackfix.sync.records import Unpacked
from stackfix.write.records import CondaPin

HOPS = 40                       # links in a row, as Linux has it


def refuse_detours(packages: Iterable[tuple[CondaPin, Unpacked]], python: str | None, prefix: Path) -> None:
    """Raises BadPackage where a file would be written through a link of these packages that leads out of the prefix."""
    placed = [(pin, [(placed_at(path, one, python), path) for path in one.paths],
               {placed_at(path, one, python): target for path, target in one.links}) for pin, one in packages]
    links = {path: target for _, _, found in placed for path, target in found.items()}
    owners = {path: pin.name for pin, _, found in placed for path in found}
    known: dict[str, str | None] = {}
    for pin, paths, _ in placed:
        for place, path in paths:
            above = str(PurePosixPath(place).parent)
            if above not in known:
                known[above] = way_out(above, links, prefix)
            link = known[above]
            if link is not None:
                raise refused(pin, f"its file {path[:120]!r} passes through a link of {owners[link]} "
                                   "that leads out of the environment")


def way_out(folder: str, links: Mapping[str, str], prefix: Path) -> str | None:
    """The first of `links` by which `folder` would lead out of the prefix; None where none of them does."""
    ahead, at = folder.split("/")[::-1], list[str]()
    first, hops = None, 0
    real = os.path.realpath(prefix)
    while ahead:
        part = ahead.pop()
        if part == ".." and not at:
            return first
        if part in {"", ".", ".."}:
            del at[len(at) - (part == ".."):]
            continue
        here = "/".join((*at, part))
        target = links.get(here, link_on_disk(prefix / here))
        if target is None:
            at.append(part)
            continue
        hops += 1
        first = first or (here if here in links else None)
        if hops > HOPS or (target.startswith("/") and not f"{target}/".startswith(f"{real}/")):
            return first
        if target.startswith("/"):
            target, at = target[len(real):], []
        ahead += target.split("/")[::-1]
    return None


def link_on_disk(place: Path) -> str | None:
    """Where a link that is there leads; None for what is none."""
    try:
        return os.readlink(place)  # noqa: PTH115 - as it is written, "a/../b" too
    except OSError:
        return None
