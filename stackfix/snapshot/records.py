"""The records of one snapshot on their way into its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

KEYS = ("packages", "packages.conda")       # of repodata.json: .tar.bz2 and .conda files
Row = Mapping[str, Any]                     # one record, as repodata.json has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Subdir:
    """All records of one channel for one platform, by file name."""

    channel: str                    # "conda-forge"
    subdir: str                     # "linux-64"
    rows: Mapping[str, Row]

    @property
    def name(self) -> str:
        return f"{self.channel.replace('/', '_')}-{self.subdir}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a snapshot is made of."""

    date: str
    source: str
    subdirs: tuple[Subdir, ...]     # sorted by channel and subdir
    inferred: Mapping[str, tuple[str, ...]]     # "conda-forge/linux-64/<file>": constrains that nobody stated
    winners: str = ""               # why these records and no others: "some lockfile had chosen it"

    def every_row(self) -> Iterator[tuple[Subdir, str, Row]]:
        """Each record, with its subdir and its file name."""
        for subdir in self.subdirs:
            for file, row in subdir.rows.items():
                yield subdir, file, row
