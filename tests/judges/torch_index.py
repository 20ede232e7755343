"""Judge: what is known of the torch index. Every address of it in a lock must be of a known file, with its sha256."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from urllib.parse import unquote

from tests.judges.lockfile import Entry, read_entries
from tests.replay.torch_index import MATRICES, Row, TorchReplica, rows

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BASE: str = tomllib.loads((MATRICES / "sources.toml").read_text(encoding="utf-8"))["torch"]["index"]


def torch_entries(requirements: Path) -> tuple[Entry, ...]:
    """The entries that stand by an address of the torch index."""
    return tuple(entry for entry in read_entries(requirements) if entry.url and entry.url.startswith(f"{BASE}/"))


def row_of(url: str) -> Row | None:
    """The row of a written address."""
    path, _, file = unquote(url.removeprefix(f"{BASE}/")).rpartition("/")
    return next((row for row in rows(path or "root") if row.file == file), None)


def complaints(requirements: Path) -> list[str]:
    """What the rows do not bear out."""
    said = []
    for entry in torch_entries(requirements):
        row = row_of(str(entry.url))
        if row is None:
            said.append(f"{entry.name}: no such file is known: {entry.url}")
        elif entry.hashes != (row.sha256,):
            said.append(f"{entry.name}: {entry.hashes} in place of {row.sha256}")
        elif "+" in str(entry.url) or row.project != entry.name:
            said.append(f"{entry.name}: {entry.url} is not written as addresses are")
    return said


def led_to(replica: TorchReplica, requirements: Path, copy: Path) -> Path:
    """A copy of the file whose addresses of the torch index lead to the loopback one, with the hashes of its wheels."""
    text = requirements.read_text(encoding="utf-8")
    for entry in torch_entries(requirements):
        row = row_of(str(entry.url))
        assert row is not None, entry
        text = text.replace(str(row.sha256), hashlib.sha256(replica.site.wheel(row)).hexdigest())
    copy.write_text(text.replace(f"{BASE}/", f"{replica.url}/"), encoding="utf-8")
    return copy
