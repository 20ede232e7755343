"""The note in a prefix that outlives a killed process, and what the next sync does by it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from stackfix.errors import Unreachable
from stackfix.sync.conda_archive import is_inside
from stackfix.sync.conda_aside import set_aside
from stackfix.sync.conda_bytes import is_from
from stackfix.sync.conda_inside import Inside
from stackfix.sync.conda_pip import pip_files
from stackfix.sync.conda_prefix import META, read_conda_installed
from stackfix.sync.records import Interrupted

MARK = ".stackfix-sync"         # names what a sync is at work on, gone when it is done; not .json, which others read


def read_mark(prefix: Path) -> Interrupted | None:
    """What an interrupted sync was at work on; None where none was."""
    path = prefix / META / MARK
    if not path.is_file():
        return None
    try:
        stated: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):       # of nobody who ever was at work
        stated = None
    if not isinstance(stated, Mapping):
        return Interrupted(packages=frozenset(), paths={}, store="")
    placed, store = stated.get("placed"), stated.get("store")
    sources = {path: source for path, source in placed.items() if isinstance(source, str)} if isinstance(
        placed, Mapping) else {}
    return Interrupted(packages=frozenset(texts(stated, "packages")), store=store if isinstance(store, str) else "",
                       paths={**dict.fromkeys(texts(stated, "paths"), ""), **sources})


def texts(stated: Mapping[str, Any], key: str) -> Iterator[str]:
    """The texts of a list."""
    listed = stated.get(key)
    yield from (each for each in listed if isinstance(each, str)) if isinstance(listed, list) else ()


def write_mark(prefix: Path, packages: set[str], paths: Mapping[str, str], store: Path) -> None:
    """Writes down what is being changed; it is on the disk when this returns. Raises Unreachable.

    `paths`: those that the sync places, each with the file in `store` that it comes from ("" for none); of what was
    there before and belongs to no package, none.
    """
    mark = prefix / META / MARK
    draft = mark.with_name(f"{MARK}.new")
    try:
        with draft.open("w", encoding="utf-8") as stream:
            json.dump({"packages": sorted(packages), "store": str(store), "placed": dict(sorted(paths.items()))},
                      stream)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(mark)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise Unreachable(str(mark), f"cannot be written: {error.strerror}", "no package was changed") from error


def remove_mark(prefix: Path) -> None:
    """The sync is done."""
    with suppress(FileNotFoundError):
        (prefix / META / MARK).unlink()


def is_placed(prefix: Path, path: str, before: Interrupted) -> bool:
    """Whether what lies at `path` has the bytes that the killed sync placed there."""
    stem, _, source = before.paths.get(path, "").partition("/")
    return bool(stem and before.store) and is_inside(f"{stem}/{source}") and is_from(
        prefix / path, Path(before.store) / stem, source, prefix, part=True)


def sweep(prefix: Path, before: Interrupted) -> tuple[Path, ...]:
    """Takes away what a killed sync placed and no package owns. What has other bytes by now is moved: where to.

    Files of projects of pip stay.
    """
    owned = {path for one in read_conda_installed(prefix, doubtful=before.packages).values() for path in one.files}
    pips = pip_files(prefix, owned, is_ours=lambda path: is_placed(prefix, path, before))
    inside, moved = Inside(prefix), list[Path]()
    for path in before.paths:
        place = prefix / path
        if path in owned or path in pips or not is_inside(path) or inside.way_out(path) is not None:
            continue
        if is_placed(prefix, path, before):
            place.unlink()
        elif place.is_symlink() or place.is_file():
            moved.append(set_aside(prefix, path))
        for above in place.parents:
            if above == prefix or not above.is_dir() or above.is_symlink() or any(above.iterdir()):
                break
            above.rmdir()
    for left in (*(prefix / META).glob("prefix_record_*"), *prefix.glob("symtest_*")):      # rattler's own
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)
    return tuple(moved)
