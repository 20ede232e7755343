"""A folder for one wheel while it is downloaded and read. Of several processes that want the same, one works."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stackfix.errors import Unreachable
from stackfix.inspect.places import reason_of
from stackfix.sources.cache_place import make_private

WORK = ".work-"
LOOK = 0.2                      # seconds between two looks at a folder that another process holds
ELSEWHERE = "name another folder with --cache-dir"


@contextmanager
def work_folder(above: Path, sha256: str, go_on: Callable[[], None]) -> Iterator[Path]:
    """An empty folder that nobody else works in, gone afterwards. `go_on` raises where waiting for it should end.

    The lock is on the folder itself, so that a killed run holds none. Raises Unreachable.
    """
    folder = above / f"{WORK}{sha256}"
    try:
        make_private(above)
        while (descriptor := held(folder)) is None:
            go_on()
            time.sleep(LOOK)
        try:
            empty(folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)
    except OSError as error:
        raise Unreachable(str(above), f"cannot be written: {reason_of(error)}", ELSEWHERE) from error


def held(folder: Path) -> int | None:
    """The open folder, locked for this process; None while another has it, or has just removed it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), folder.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def empty(folder: Path) -> None:
    """Removes what a killed run has left."""
    for each in folder.iterdir():
        shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()


def sweep(above: Path) -> None:
    """Removes folders of killed runs: nobody holds their locks."""
    for folder in above.glob(f"{WORK}*"):
        with suppress(OSError):
            descriptor = held(folder)
            if descriptor is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


__all__ = ["sweep", "work_folder"]
