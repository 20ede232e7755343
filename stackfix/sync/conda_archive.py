"""An unpacked package, read before anything of it is linked: what it is, and whether all of it stays in the prefix."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from stackfix.errors import Unreachable
from stackfix.sync.records import Unpacked
from stackfix.write.records import CondaPin

LARGEST = 128 * 1024 * 1024     # bytes of one file below info/
CHUNK = 1024 * 1024
SCRIPTS = ("post-link.sh", "pre-link.sh", "pre-unlink.sh")
INFO = ("index.json", "paths.json", "files", "link.json", "has_prefix", "no_link")     # what linking goes by


class BadPackage(Unreachable):
    """A package that cannot be linked safely."""

    reference = "bad-package"


def read_unpacked(folder: Path, pin: CondaPin) -> Unpacked:
    """What the package is. Raises BadPackage where it is another than the lock says, or leads out of a prefix."""
    index = document(folder, "index.json", pin)
    found = tuple(str(index.get(key)) for key in ("name", "version", "build"))
    if found != (pin.name, pin.version, pin.build):
        raise refused(pin, f"holds {' '.join(found)[:120]}")
    noarch = index.get("noarch")
    paths = tuple(stated_paths(folder, pin))
    for path in paths:
        refuse_path(path, pin)
    commands = tuple(entry_points(folder, pin))
    for name in commands:
        if not name or "/" in name or "\\" in name or name in {".", ".."} or not name.isprintable():
            raise refused(pin, f"has a command called {name[:60]!r}")
    place = index.get("python_site_packages_path")
    if place is not None and (not isinstance(place, str) or not is_inside(place)):
        raise refused(pin, "keeps its site-packages outside of the prefix")
    return Unpacked(
        folder=folder, index=index, is_python=noarch == "python", paths=paths,
        links=tuple((path, str((folder / path).readlink())) for path in paths if (folder / path).is_symlink()),
        commands=commands,
        scripts=tuple(path for path in paths if path.startswith("bin/.") and path.endswith(SCRIPTS)))


def document(folder: Path, name: str, pin: CondaPin) -> dict[str, Any]:
    """One JSON file of info/. Raises BadPackage for none."""
    path = folder / "info" / name
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            raise refused(pin, f"its info/{name} is no file of a package")
        stated: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise refused(pin, f"has no info/{name} that can be read") from None
    if not isinstance(stated, dict):
        raise refused(pin, f"its info/{name} is no mapping")
    return stated


def stated_paths(folder: Path, pin: CondaPin) -> Iterator[str]:
    """What the package says it puts into a prefix: of paths.json, else of the older info/files."""
    if not (folder / "info" / "paths.json").is_file():
        listed = folder / "info" / "files"
        if listed.is_symlink() or not listed.is_file():
            raise refused(pin, "does not say its files")
        yield from (line for line in listed.read_text(encoding="utf-8", errors="replace").splitlines() if line)
        return
    rows = document(folder, "paths.json", pin).get("paths")
    for row in rows if isinstance(rows, list) else ():
        path = row.get("_path") if isinstance(row, Mapping) else None
        if not isinstance(path, str):
            raise refused(pin, "has a file without a path")
        yield path


def entry_points(folder: Path, pin: CondaPin) -> Iterator[str]:
    """The names of the commands that are made for a package of Python without platform."""
    if not (folder / "info" / "link.json").is_file():
        return
    noarch = document(folder, "link.json", pin).get("noarch")
    listed = noarch.get("entry_points") if isinstance(noarch, Mapping) else None
    for line in listed if isinstance(listed, list) else ():
        yield str(line).partition("=")[0].strip()


def refuse_path(path: str, pin: CondaPin) -> None:
    """Raises BadPackage for a path that leaves the prefix or passes for a record of a package."""
    if not is_inside(path) or not path.isprintable():
        raise refused(pin, f"has the file {path[:120]!r}, which leads out of the environment")
    parts = PurePosixPath(path).parts
    if len(parts) == 2 and parts[0] == "conda-meta" and path.endswith(".json"):
        raise refused(pin, f"has the file {path[:120]!r}, which passes for a record")


def is_inside(path: str) -> bool:
    """Whether a relative path stays below where it starts."""
    return bool(path) and not path.startswith("/") and "\\" not in path and ".." not in path.split("/")


def placed_at(path: str, package: Unpacked, python: str | None) -> str:
    """Where a file of the package lies below the prefix."""
    if package.is_python and python is not None and path.startswith("site-packages/"):
        return f"lib/python{python}/{path}"
    return f"bin/{path.removeprefix('python-scripts/')}" if path.startswith("python-scripts/") else path


def placed_paths(package: Unpacked, python: str | None) -> list[str]:
    """All that linking the package writes below the prefix."""
    return [*(placed_at(path, package, python) for path in package.paths),
            *(f"bin/{name}" for name in package.commands)]


def is_whole(package: Unpacked, info: Mapping[str, str]) -> bool:
    """Whether an unpacked package still has the bytes that it had: environments share its files by hard links.

    `info`: what info_digests() gave when it was unpacked. A package without paths.json cannot tell.
    """
    if info != info_digests(package.folder) or "paths.json" not in info:
        return False
    rows: Any = json.loads((package.folder / "info" / "paths.json").read_bytes())
    return all(is_as_stated(package.folder / row["_path"], row) for row in rows["paths"])


def is_as_stated(path: Path, row: Mapping[str, Any]) -> bool:
    """Whether one file is what its row of paths.json says."""
    if row.get("path_type") == "softlink":
        return path.is_symlink()
    if row.get("path_type") == "directory":
        return path.is_dir()
    stated = row.get("sha256")
    try:
        return path.is_file() and (not isinstance(stated, str) or digest_of(path) == stated)
    except OSError:
        return False


def info_digests(folder: Path) -> dict[str, str]:
    """sha256 of those files below info/ by which a package is linked, and of those that paths.json has no hash of."""
    found = {name: digest_of(folder / "info" / name) for name in INFO if (folder / "info" / name).is_file()}
    return {**found, **(dict(unhashed(folder)) if "paths.json" in found else {})}


def unhashed(folder: Path) -> Iterator[tuple[str, str]]:
    """(path, sha256 or target) of files that paths.json has no sha256 of, as older builders left them."""
    rows: Any = json.loads((folder / "info" / "paths.json").read_bytes())
    for row in rows.get("paths") or () if isinstance(rows, Mapping) else ():
        if isinstance(row.get("sha256"), str) or row.get("path_type") in {"softlink", "directory"}:
            continue
        path = folder / row["_path"]
        if path.is_symlink():
            yield f"/{row['_path']}", f"-> {path.readlink()}"
        elif path.is_file():
            yield f"/{row['_path']}", digest_of(path)


def digest_of(path: Path, kind: str = "sha256") -> str:
    """The file's hash in hex."""
    digest = hashlib.new(kind, usedforsecurity=kind != "md5")
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def refused(pin: CondaPin, reason: str) -> BadPackage:
    """The error about one package."""
    return BadPackage(f"{pin.name} ({pin.file_name})", reason, "nothing was linked; do not use this package")
