"""Where else the flash-attn wheel can be taken from: a folder, or a mirror of the release source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stackfix.errors import BadInput, Unreachable
from stackfix.resolve.records import Releases
from stackfix.sync.records import Step
from stackfix.write.records import Entry

PROJECT = "flash-attn"


class WrongWheel(Unreachable):
    """The file of the source is not the one that was locked."""

    reference = "hash-mismatch"


def release_wheels(steps: tuple[Step, ...]) -> Iterator[Entry]:
    """The pins that name a flash-attn wheel by URL."""
    for step in steps:
        yield from (entry for entry in step.entries if entry.name == PROJECT and entry.url)


def addresses_from(steps: tuple[Step, ...], source: str, releases: Releases | None) -> dict[str, str]:
    """Project -> address of its wheel in `source`, a folder, or a mirror that `releases` reads.

    A file of a folder is hashed here; what a mirror sends is hashed by the installer. Raises WrongWheel, BadInput,
    or what `releases` raises.
    """
    return {
        entry.name: in_folder(entry, Path(source)) if releases is None else on_mirror(entry, source, releases)
        for entry in release_wheels(steps)
    }


def in_folder(entry: Entry, folder: Path) -> str:
    """`file:` address of the locked wheel in the folder."""
    path = folder / file_name(entry)
    if not folder.is_dir():
        raise BadInput(f"--flash-attn-source {folder}", "no such folder")
    if not path.is_file():
        raise BadInput(f"--flash-attn-source {folder}", f"does not hold {path.name}", "put the wheel there")
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(1024 * 1024):
                digest.update(chunk)
    except OSError as error:
        raise Unreachable(str(path), f"cannot be read: {error.strerror}") from error
    refuse_other(entry, str(path), digest.hexdigest())
    return path.absolute().as_uri()


def on_mirror(entry: Entry, source: str, releases: Releases) -> str:
    """Address of the locked wheel on the mirror."""
    file = file_name(entry)
    version = file.split("-")[1].partition("+")[0]
    asset = next((asset for asset in releases.assets((version,)).get(version, ()) if asset.file == file), None)
    if asset is None:
        raise BadInput(f"--flash-attn-source {source}", f"its release {version} does not hold {file}")
    if asset.sha256 is not None:
        refuse_other(entry, asset.file, asset.sha256)
    return asset.url


def refuse_other(entry: Entry, file: str, digest: str) -> None:
    """Raises WrongWheel unless the digest is locked."""
    if digest not in entry.sha256:
        raise WrongWheel(file, f"has sha256 {digest}, the lock says {' or '.join(entry.sha256)}",
                         "nothing was installed; the file was replaced or damaged: get it anew, or lock again")


def file_name(entry: Entry) -> str:
    """The wheel's file name in the entry's URL."""
    name = unquote(urlsplit(entry.url or "").path.rpartition("/")[2])
    if "/" in name or "\\" in name or not name.endswith(".whl") or name.count("-") < 4:
        raise BadInput(entry.url or entry.name, "is not the address of a wheel")
    return name
