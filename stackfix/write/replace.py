"""Several files of one folder replaced together."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from stackfix.errors import Unreachable


def replace_files(directory: Path, contents: Mapping[str, bytes | None]) -> None:
    """Gives each name in `directory` its new bytes (None: removes it), all or none.

    Raises Unreachable and leaves what was there.

    Each file is written beside its place and moved in once all are on disk, so no reader sees half a file. A kill
    between two moves leaves whole files, some of them still the old ones.
    """
    made: list[Path] = []
    beside: dict[Path, Path | None] = {}
    try:
        make_folder(directory, made)
        for name, content in contents.items():
            place = place_of(directory, name)
            if content is None:
                beside[place] = None
            elif current_bytes(place) != content:
                new = beside[place] = place.with_name(f".{place.name}.{os.urandom(6).hex()}.new")
                write_new(new, content, like=place)
        move_in(beside)
        sync_folders({place.parent for place in beside})
    except BaseException as error:
        discard(new for new in beside.values() if new)
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            reason = f"lockfiles cannot be written: {error.strerror}: {error.filename or directory}"
            raise Unreachable(str(directory), reason,
                              "nothing was changed; free the place or choose another folder with -o DIR") from error
        raise


def make_folder(directory: Path, made: list[Path]) -> None:
    """Makes `directory` and its missing parents, and notes each in `made`."""
    missing = [folder for folder in (directory, *directory.parents) if not os.path.lexists(folder)]
    for folder in reversed(missing):
        folder.mkdir()
        made.append(folder)
    if not directory.is_dir():
        raise Unreachable(str(directory), "is not a folder", "name a folder with -o DIR")


def place_of(directory: Path, name: str) -> Path:
    """The file that `name` stands for. Raises Unreachable where it is none, or a link that leads out of `directory`."""
    if name != Path(name).name or "\\" in name or "\0" in name or name in {"", ".", ".."}:
        raise Unreachable(str(directory / name), "is not a bare file name")
    path = directory / name
    if not os.path.lexists(path):
        return path
    try:
        resolved = path.resolve(strict=False)
        inside = resolved.is_relative_to(directory.resolve())
        mode = path.stat().st_mode if path.exists() else stat.S_IFREG
    except RuntimeError as error:       # a loop of links, before Python 3.13
        raise Unreachable(str(path), "is a link to itself", "remove it") from error
    if path.is_symlink() and not inside:
        raise Unreachable(str(path), f"is a link that leads out of {directory}", "remove the link, or write elsewhere")
    if not stat.S_ISREG(mode):
        raise Unreachable(str(path), "is in the way: not a regular file", "move it, or write elsewhere with -o DIR")
    return resolved if path.is_symlink() else path


def current_bytes(place: Path) -> bytes | None:
    """What the file holds now; None where there is none."""
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None


def write_new(path: Path, content: bytes, *, like: Path) -> None:
    """Writes a new file to the disk, with the mode of `like` where that exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        if like.exists():
            path.chmod(stat.S_IMODE(like.stat().st_mode))
        os.fsync(stream.fileno())


def move_in(beside: Mapping[Path, Path | None]) -> None:
    """Moves each new file to its place, removes where there is none; on a failure all is taken back."""
    saved: dict[Path, Path | None] = {}
    try:
        for place, new in beside.items():
            saved[place] = save_aside(place)
            if new is None:
                place.unlink(missing_ok=True)
            else:
                new.replace(place)
    except BaseException:
        put_back(saved)
        raise
    discard(copy for copy in saved.values() if copy)


def save_aside(place: Path) -> Path | None:
    """A second name of the file, or a copy where the file system has no hard links; None where there is no file."""
    if not place.exists():
        return None
    copy = place.with_name(f".{place.name}.{os.urandom(6).hex()}.old")
    try:
        os.link(place, copy)
    except OSError:
        import shutil

        shutil.copy2(place, copy)
    return copy


def put_back(saved: Mapping[Path, Path | None]) -> None:
    """Every place as it was. A copy that cannot be moved back stays, and is named."""
    stuck: list[str] = []
    for place, copy in reversed(list(saved.items())):
        try:
            if copy is None:
                place.unlink(missing_ok=True)
            else:
                copy.replace(place)
                copy.unlink(missing_ok=True)    # two names of one file: the system takes the move as done already
        except OSError:
            stuck.append(f"{place} (its old content: {copy})")
    if stuck:
        raise Unreachable(", ".join(stuck), "could not be put back after a failed write")


def discard(paths: Iterable[Path]) -> None:
    """Removes what is there of `paths`."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def sync_folders(folders: set[Path]) -> None:
    """Makes the moves last through a power cut, where the system can."""
    for folder in folders:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
