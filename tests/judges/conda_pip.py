"""Judge of the pip part of a conda lock: uv takes it for its target, without the packages that conda brings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from tests.judges.lockfile import normal
from tests.judges.uv import NONE, Requires, UvJudge


def pip_entries(lock: Path, platform: str) -> list[Mapping[str, Any]]:
    """Entries of pip in conda-lock.yml."""
    document = yaml.load(lock.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return [entry for entry in document["package"] if entry["manager"] == "pip" and entry["platform"] == platform]


def as_requirements(lock: Path, platform: str, to: Path) -> Path:
    """The pip part of conda-lock.yml as a requirements file: by URL where the file's version is not the package's."""
    lines = []
    for entry in pip_entries(lock, platform):
        pin = f"{entry['name']} @ {entry['url']}" if by_url(entry) else f"{entry['name']}=={entry['version']}"
        lines.append(f"{pin} --hash=sha256:{entry['hash']['sha256']}\n")
    to.write_text("".join(lines), encoding="utf-8")
    return to


def by_url(entry: Mapping[str, Any]) -> bool:
    """Whether its file is a release asset: its name has a local version that its metadata lacks."""
    file = unquote(urlsplit(entry["url"]).path).rpartition("/")[2]
    return "+" in file and "+" not in entry["version"]


def complaints(
    lock: Path, platform: str, uv: UvJudge, scratch: Path, requires: Requires = NONE,
) -> Iterator[str]:
    """What uv says against the pip part."""
    if not pip_entries(lock, platform):
        return
    run = uv.dry_run(as_requirements(lock, platform, scratch / "pip-part.txt"), scratch, requires, no_deps=True)
    if run.status != 0:
        yield f"uv refuses the pip part: {run}"
        return
    wanted = {f"{entry['name']}=={entry['version']}" if not by_url(entry) else entry["name"]
              for entry in pip_entries(lock, platform)}
    told = re.findall(r"^ \+ ([A-Za-z0-9._-]+)(?:==(\S+)| @)", run.stderr, re.MULTILINE)
    would = {f"{normal(name)}=={version}" if version and f"{normal(name)}=={version}" in wanted else normal(name)
             for name, version in told}
    if would != wanted:
        yield f"uv would install {sorted(would)}, the pip part is {sorted(wanted)}"
