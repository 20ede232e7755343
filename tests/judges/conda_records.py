"""Judge: the channel's own repodata.json. Every package of a file must be a record there, in all that the file says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Rows = Mapping[str, Any]
VIRTUAL = "__"
ONE_SPEC = re.compile(r"(?P<name>[^\s=<>!~]+)\s*(?P<rest>.*)")
PIXI_ALIKE = ("md5", "sha256", "size", "timestamp", "license", "license_family", "features",
              "python_site_packages_path")


class Repodata:
    """The records behind addresses: `roots` leads a channel's base address to a folder of subdirs."""

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self._roots = {base.rstrip("/"): root for base, root in roots.items()}

    def record(self, url: str) -> Rows:
        """The record of a package's address. Raises KeyError for none."""
        base, subdir, file = url.rsplit("/", 2)
        document = read_repodata((self._roots[base] / subdir / "repodata.json").resolve())
        found: Rows = {**document.get("packages", {}), **document.get("packages.conda", {})}[file]
        return found


@cache
def read_repodata(path: Path) -> dict[str, Any]:
    """One repodata.json, once."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def conda_lock_complaints(lock: Path, repodata: Repodata) -> Iterator[str]:
    """Where conda-lock.yml says other than the records."""
    for entry in yaml.load(lock.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["package"]:
        if entry["manager"] != "conda":
            continue
        row = known(entry["url"], repodata)
        if row is None:
            yield f"{entry['name']}: {entry['url']} is no record"
            continue
        for key, ours, theirs in (
            ("name", entry["name"], row["name"]), ("version", entry["version"], row["version"]),
            ("md5", entry["hash"]["md5"], row["md5"]), ("sha256", entry["hash"].get("sha256"), row.get("sha256")),
            ("dependencies", spec_set(f"{name} {rest}" for name, rest in entry["dependencies"].items()),
             spec_set(row["depends"])),
        ):
            if ours != theirs:
                yield f"{entry['name']}: {key} is {ours}, the record has {theirs}"


def spec_set(depends: Any) -> dict[str, set[str]]:
    """Name -> the words of all its conditions, however they are joined."""
    found: dict[str, set[str]] = {}
    for text in depends:
        match = ONE_SPEC.fullmatch(" ".join(text.split()))
        assert match is not None, text
        words = {word for part in match["rest"].split() for word in part.split(",") if word != "*"}
        found.setdefault(match["name"].lower(), set()).update(words)
    return found


def pixi_complaints(lock: Path, repodata: Repodata) -> Iterator[str]:
    """Where pixi.lock says other than the records."""
    for entry in yaml.load(lock.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["packages"]:
        if "conda" not in entry:
            continue
        row = known(entry["conda"], repodata)
        if row is None:
            yield f"{entry['conda']} is no record"
            continue
        for key in ("depends", "constrains", "track_features"):
            theirs = row.get(key, [])
            if entry.get(key, []) != (theirs.split() if isinstance(theirs, str) else theirs):
                yield f"{row['name']}: {key} is {entry.get(key)}, the record has {theirs}"
        for key in PIXI_ALIKE:
            theirs = milliseconds(row.get(key)) if key == "timestamp" else row.get(key)
            if entry.get(key) != theirs:
                yield f"{row['name']}: {key} is {entry.get(key)}, the record has {theirs}"


def milliseconds(timestamp: int | None) -> int | None:
    """Old records state seconds."""
    return timestamp * 1000 if timestamp is not None and timestamp < 253_402_300_799 else timestamp


def explicit_complaints(lock: Path, repodata: Repodata) -> Iterator[str]:
    """Lines of an explicit file that are no record with its md5."""
    for line in lock.read_text(encoding="utf-8").splitlines():
        if line.startswith(("#", "@")):
            continue
        url, _, md5 = line.partition("#")
        row = known(url, repodata)
        if row is None or row["md5"] != md5:
            yield f"{line}: the record has {row and row['md5']}"


def known(url: str, repodata: Repodata) -> Rows | None:
    """The record; None where there is none."""
    try:
        return repodata.record(url)
    except (KeyError, OSError):
        return None
