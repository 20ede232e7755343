"""A conda prefix as its conda-meta tells: read as plain JSON, nothing is imported or run."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from stackfix.errors import BadInput, Unreachable
from stackfix.sync.records import Change, CondaInstalled
from stackfix.write.records import CondaPin

LARGEST = 64 * 1024 * 1024      # bytes of one record; a package of 50,000 files has 15 MB
META = "conda-meta"


def refuse_other_folder(prefix: Path) -> None:
    """Raises BadInput unless the prefix is a conda environment, an empty folder or not there."""
    if prefix.is_symlink() and not prefix.exists():
        raise BadInput(f"--prefix {prefix}", "is a link that leads nowhere")
    if not prefix.exists():
        return
    if not prefix.is_dir():
        raise BadInput(f"--prefix {prefix}", "is not a folder")
    try:
        there = {path.name for path in prefix.iterdir()}
    except OSError as error:
        raise Unreachable(str(prefix), f"cannot be listed: {error.strerror}") from error
    if there and META not in there:
        raise BadInput(f"--prefix {prefix}", "is no conda environment, and not empty", "name a new folder")


def read_conda_installed(prefix: Path, *, doubtful: frozenset[str] = frozenset()) -> dict[str, CondaInstalled]:
    """Name -> the package that is linked. Raises Unreachable for a record that cannot be read.

    `doubtful`: packages that an interrupted sync was at work on. A damaged record of one of those counts as absent.
    """
    found: dict[str, CondaInstalled] = {}
    folder = prefix / META
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        record = read_record(path)
        if record is None:
            if path.stem.rsplit("-", 2)[0] in doubtful:
                continue
            raise Unreachable(str(path), "is no record of a package",
                              "remove the file, or the environment, and sync again")
        for name in (*record.files, *record.sizes):
            if name.startswith("/") or ".." in name.split("/"):
                raise Unreachable(str(path), f"says that {name[:120]!r} is of {record.name}, which is outside of the "
                                  "environment", "remove the file, or the environment, and sync again")
        found[record.name] = record
    return found


def refuse_two_records(prefix: Path, installed: Mapping[str, CondaInstalled], doubtful: frozenset[str]) -> None:
    """Raises Unreachable for two records of one name, of which nobody can tell which is right."""
    good = {one.path for one in installed.values()}
    for path in sorted((prefix / META).glob("*.json")):
        record = read_record(path) if path not in good else None
        if record is not None and record.name not in doubtful:
            raise Unreachable(str(path), f"is a second record of {record.name}, beside "
                              f"{installed[record.name].path.name}", "remove the one that is wrong, and sync again")


def read_record(path: Path) -> CondaInstalled | None:
    """One record; None for what is none."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:       # a FIFO would be waited for
            return None
        stated: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    words = [stated.get(key) for key in ("name", "version", "build")] if isinstance(stated, Mapping) else [None]
    if not all(isinstance(word, str) and word for word in words):
        return None
    rows = tuple(rows_of(stated))
    return CondaInstalled(
        name=stated["name"], version=stated["version"], build=stated["build"], sha256=text(stated, "sha256"),
        md5=text(stated, "md5"), url=text(stated, "url"), channel=text(stated, "channel"),
        subdir=text(stated, "subdir"), path=path,
        files=tuple(dict.fromkeys((*listed(stated.get("files")), *(row["_path"] for row in rows)))),
        sizes={row["_path"]: row["size_in_bytes"] for row in rows
               if row.get("path_type") == "hardlink" and isinstance(row.get("size_in_bytes"), int)
               and not row.get("prefix_placeholder")})


def listed(value: Any) -> Iterator[str]:
    """The texts of a list."""
    yield from (each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def rows_of(stated: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What the record says of each path: rattler and conda remove by these."""
    kept = stated.get("paths_data")
    rows = kept.get("paths") if isinstance(kept, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and isinstance(row.get("_path"), str):
            yield row


def text(stated: Mapping[str, Any], key: str) -> str | None:
    """The value where it is text."""
    value = stated.get(key)
    return value if isinstance(value, str) and value else None


def python_minor(installed: Mapping[str, CondaInstalled]) -> str | None:
    """`3.11`, of the Python that is linked."""
    python = installed.get("python")
    return ".".join(python.version.split(".")[:2]) if python else None


def is_same(pin: CondaPin, installed: CondaInstalled) -> bool:
    """Whether the archive that is linked is the locked one: by sha256, else by md5; where no hash can tell, by name."""
    if pin.sha256 and installed.sha256:
        return pin.sha256 == installed.sha256
    if pin.md5 and installed.md5:
        return pin.md5 == installed.md5
    return (pin.version, pin.build) == (installed.version, installed.build) and pin.url == installed.url


def plan_conda(
    pins: tuple[CondaPin, ...], installed: Mapping[str, CondaInstalled], again: Collection[str],
) -> tuple[Change, ...]:
    """One for each locked package, and one for each package that is to go, by name. `again`: not to be kept."""
    changes = []
    for pin in pins:
        before = installed.get(pin.name)
        kept = before is not None and pin.name not in again and is_same(pin, before)
        changes.append(Change(
            action="keep" if kept else "install" if before is None else "change", name=pin.name, build=False,
            installed=told(before) if before else None, locked=f"{pin.version} {pin.build}", manager="conda"))
    locked = {pin.name for pin in pins}
    changes += [Change(action="remove", name=name, installed=told(one), locked="", build=False, manager="conda")
                for name, one in installed.items() if name not in locked]
    return tuple(sorted(changes, key=lambda change: change.name))


def told(one: CondaInstalled) -> str:
    """`1.26.4 py311_0`."""
    return f"{one.version} {one.build}"
