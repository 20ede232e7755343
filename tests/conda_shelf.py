"""Real records of channels, as their repodata states them, for tests of the conda side."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import cast

from hypothesis import strategies as st

from stackfix.conda.records import CondaRecord

FILE = Path(__file__).parent / "conda_records.json"
# What a hostile channel may write where a version, a build string or a dependency is expected.
ODD = st.text(st.sampled_from(list("0123456789.,|*=<>!~()[]{}_+-abc cuda_py311hx\t\n\0é")), max_size=30)


@cache
def shelf() -> dict[str, CondaRecord]:
    """By file name with its subdir: "linux-64/pytorch-2.3.1-….conda"."""
    found: dict[str, CondaRecord] = {}
    document = json.loads(FILE.read_text(encoding="utf-8"))
    for place, records in document.items():
        channel, _, subdir = place.partition("/")
        for file_name, raw in records.items():
            found[f"{subdir}/{file_name}"] = made(file_name, raw, subdir=subdir, channel=f"https://conda.invalid/{channel}")
    return found


def made(file_name: str, raw: dict[str, object], *, subdir: str = "linux-64",
         channel: str = "https://conda.invalid/conda-forge") -> CondaRecord:
    """The record of one entry of a repodata.json."""
    return CondaRecord(
        name=cast("str", raw["name"]), version=cast("str", raw["version"]), build=cast("str", raw["build"]),
        build_number=cast("int", raw["build_number"]), subdir=subdir, channel=channel, file_name=file_name,
        url=f"{channel}/{subdir}/{file_name}", md5=cast("str | None", raw.get("md5")),
        sha256=cast("str | None", raw.get("sha256")), depends=tuple(cast("list[str]", raw["depends"])),
        constrains=tuple(cast("list[str]", raw.get("constrains", []))), noarch=cast("str | None", raw.get("noarch")),
        timestamp=cast("int | None", raw.get("timestamp")),
    )


def record(name: str, version: str = "1.0", build: str = "0", *, depends: tuple[str, ...] = (),
           constrains: tuple[str, ...] = (), subdir: str = "linux-64",
           channel: str = "https://conda.invalid/conda-forge", build_number: int = 0) -> CondaRecord:
    """A record of one's own making."""
    file_name = f"{name}-{version}-{build}.conda"
    return CondaRecord(
        name=name, version=version, build=build, build_number=build_number, subdir=subdir, channel=channel,
        file_name=file_name, url=f"{channel}/{subdir}/{file_name}", md5="0" * 32, sha256="0" * 64, depends=depends,
        constrains=constrains,
    )
