"""Records that depend on something that is not there, by py-rattler's own reading of specs."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.snapshot.pack import render_subdir
from stackfix.snapshot.records import Made

if TYPE_CHECKING:
    from rattler import SparseRepoData


def unmet(made: Made) -> Mapping[str, int]:
    """How many records of each "channel/subdir" have a dependency that no record of any channel meets.

    What a platform's and the noarch records depend on may be of either; noarch records are counted where any platform
    lacks what they need.
    """
    found: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory(prefix="stackfix-") as scratch:
        platforms = sorted({subdir.subdir for subdir in made.subdirs} - {"noarch"})
        for platform in platforms[:1]:          # noarch records are judged by the first one, which has most records
            _judge(made, (platform, "noarch"), Path(scratch), found)
        for platform in platforms[1:]:
            _judge(made, (platform,), Path(scratch), found)
    return Counter({where: len(files) for where, files in found.items()})


def _judge(made: Made, judged: tuple[str, ...], scratch: Path, found: dict[str, set[str]]) -> None:
    from rattler import Channel, MatchSpec, SparseRepoData
    from rattler.exceptions import InvalidMatchSpecError

    sources: list[SparseRepoData] = []
    for subdir in made.subdirs:
        if subdir.subdir in {judged[0], "noarch"}:
            path = scratch / f"{subdir.name}"
            path.write_bytes(render_subdir(subdir))
            sources.append(SparseRepoData(Channel(f"file:///{subdir.channel}"), subdir.subdir, path))
    known: dict[str, bool] = {}

    def met(spec: str) -> bool:
        if spec not in known:
            try:
                known[spec] = any(source.load_matching_records([MatchSpec(spec)]) for source in sources)
            except InvalidMatchSpecError:
                known[spec] = False
        return known[spec]

    for subdir in made.subdirs:
        for file, row in subdir.rows.items() if subdir.subdir in judged else ():
            needs = [spec for spec in row.get("depends", ()) if not spec.startswith("__")]
            if not all(met(spec) for spec in needs):
                found.setdefault(f"{subdir.channel}/{subdir.subdir}", set()).add(file)
    for source in sources:
        source.close()
