"""What a snapshot is known to lack, counted from its records: a sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from stackfix.snapshot.records import Made, Row
from stackfix.snapshot.unmet import unmet

TORCH, CUDA = "pytorch", "cuda-version"
# Packages of a GPU stack whose absence or scarcity is felt
FELT = ("flash-attn", "torchaudio", "torchvision", "triton", "xformers")
_OLDEST = 2                         # major release of torch; that of CUDA, of which 11 is whole, too
_MINOR = re.compile(r"(\d+)\.(\d+)")


def holes_of(made: Made) -> tuple[str, ...]:
    """What is missing, the widest hole first."""
    return (*_origin(made), *_bare(made), *_unmet(made), *_releases(made), *_scarce(made), *_platforms(made))


def _origin(made: Made) -> Iterator[str]:
    if made.winners:
        yield f"A record is here because {made.winners}: other versions and builds are missing."
    if made.inferred:
        yield (f"The constrains of {len(made.inferred)} records were stated nowhere and inferred from their siblings"
               " (the table `inferred`).")


def _bare(made: Made) -> Iterator[str]:
    rows = [row for _, _, row in made.every_row()]
    bare = sum(1 for row in rows if not row.get("timestamp"))
    if bare:
        yield (f"{bare} of {len(rows)} records state no time, size, license or constrains, and no build of what they"
               " depend on, as conda-lock.yml has none of these: --exclude-newer leaves them out.")
    for key in ("sha256", "md5"):
        without = sorted(subdir.channel for subdir, _, row in made.every_row() if not row.get(key))
        counts = ", ".join(f"{len(list(each))} of {name}" for name, each in groupby(without))
        if without:
            yield f"{len(without)} records state no {key} ({counts})."


def _unmet(made: Made) -> Iterator[str]:
    found = unmet(made)
    if found:
        counts = ", ".join(f"{count} of {where}" for where, count in sorted(found.items()))
        yield f"Some records depend on something that no record here is ({counts}); they cannot be chosen."


def _releases(made: Made) -> Iterator[str]:
    """Minor releases of torch and CUDA between those that are here."""
    for name, label in ((TORCH, "torch"), (CUDA, "cuda-version")):
        for channel in sorted({subdir.channel for subdir in made.subdirs}):
            gaps = list(_gaps(_rows_of(made, channel, name)))
            if gaps:
                yield f"{channel} has no {label} {', '.join(gaps)} here."


def _gaps(rows: list[Row]) -> Iterator[str]:
    minors = sorted({(int(match[1]), int(match[2])) for row in rows if (match := _MINOR.match(row["version"]))})
    for major, each in groupby((minor for minor in minors if minor[0] >= _OLDEST), key=lambda minor: minor[0]):
        found = [minor for _, minor in each]
        yield from (f"{major}.{minor}" for minor in range(found[0], found[-1]) if minor not in found)


def _scarce(made: Made) -> Iterator[str]:
    for name in FELT:
        rows = _rows_of(made, None, name)
        if len(rows) == 1:
            yield f"{name}: one build ({rows[0]['version']} {rows[0]['build']})."
        elif not rows:
            yield f"{name}: none."
    newest = [row for row in _rows_of(made, None, TORCH) if "cuda13" in row["build"]]
    if len(newest) < 2:
        yield f"torch for CUDA 13: {_count(newest)}."


def _platforms(made: Made) -> Iterator[str]:
    found = sorted({subdir.subdir for subdir in made.subdirs} - {"noarch"})
    yield f"Only records for {', '.join(found)} and noarch."
    for platform in found[1:]:
        rows = [row for subdir in made.subdirs if subdir.subdir == platform for row in subdir.rows.values()
                if row["name"] == TORCH and "cuda" in row["build"]]
        yield f"{platform}: {_count(rows)} of torch for a GPU."


def _count(rows: list[Row]) -> str:
    versions = ", ".join(sorted({str(row["version"]) for row in rows}, key=_numbers))
    return f"{len(rows)} build{'' if len(rows) == 1 else 's'}" + (f" ({versions})" if versions else "")


def _rows_of(made: Made, channel: str | None, name: str) -> list[Row]:
    return [row for subdir, _, row in made.every_row() if row["name"] == name and channel in {None, subdir.channel}]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
