"""Metadata of sdists that only a build can tell, for those whose code the user allows to run.

The hooks of PEP 517 are called through `build`, in an environment made for the one sdist: its build requirements come
from the user's own indexes, as wheels, and its code sees neither logins nor settings. That is no sandbox: the code has
the rights of the user. What it told is kept by the sdist's sha256, the Python minor and the machine.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from stackfix.errors import Unreachable
from stackfix.quick import dataclass
from stackfix.sources.archives import BadArchive
from stackfix.sources.core_metadata import parse_metadata
from stackfix.sources.errors import BadMetadata, SdistBuildFailed
from stackfix.sources.records import CoreMetadata, IndexFile, IndexSettings
from stackfix.sources.sdist_build_child import remove
from stackfix.sources.sdist_build_hooks import NO_ROOM, told_metadata
from stackfix.sources.sdist_build_python import find_python, machine_name
from stackfix.sources.sdist_build_unpack import unpack_sdist

ALL = ":all:"
SECONDS = 600.0         # for one sdist, from the first program to the last


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Whose code may run. `tell` and `complain` take lines for the user: what happens, and what a failed build said."""

    projects: frozenset[str]        # normalised names, or ALL
    environ: Mapping[str, str]
    tell: Callable[[str], object]
    complain: Callable[[str], object]
    seconds: float = SECONDS
    by: str | None = None           # "allow-builds in stackfix.toml": where the user did not say so in this very run

    def __contains__(self, project: str) -> bool:
        return project in self.projects or ALL in self.projects


def build_metadata(
    file: IndexFile, content: bytes, *, python: str, allowed: Allowed, settings: IndexSettings,
) -> CoreMetadata:
    """What a build of the sdist `content` for this Python minor says. Raises SdistBuildFailed, Unreachable.

    One scratch folder, outside of any project, holds all that is written; it is gone afterwards.
    """
    scratch: Path | None = None
    until = time.monotonic() + allowed.seconds
    try:
        scratch = Path(tempfile.mkdtemp(prefix="stackfix-build-"))
        for name in ("home", "tmp"):
            (scratch / name).mkdir()
        executable = find_python(python, allowed.environ, scratch)
        if executable is None:
            raise SdistBuildFailed(
                file.project, file.version, f"a build for Python {python} needs a Python {python}, and none is found"
                " here", f"install it (`uv python install {python}`), or lock for a Python that is here")
        allowed.tell(f"building {file.project} {file.version} for Python {python} to read its requirements:"
                     f" its code runs{'' if allowed.by is None else f', as {allowed.by} allows'}")
        try:
            source = unpack_sdist(content, file.filename, scratch / "source")
        except BadArchive as fault:
            raise SdistBuildFailed(file.project, file.version, str(fault)) from None
        told = told_metadata(file, source, executable, scratch=scratch, until=until, allowed=allowed,
                             settings=settings)
    except BrokenPipeError:         # of whoever is told
        raise
    except OSError as fault:        # what the sdist does wrong is told as such by all that is called here
        folder = "the temporary folder" if scratch is None else f"the temporary folder {scratch.parent}"
        raise Unreachable(folder, fault.strerror or "cannot be written", NO_ROOM) from None
    finally:
        if scratch is not None:
            remove_tree(scratch)
    return _checked(told, file)


def _checked(told: bytes, file: IndexFile) -> CoreMetadata:
    """The record of what a build told, which has to be about `file`."""
    try:
        found = parse_metadata(told, file, "built")
    except BadMetadata as fault:
        raise SdistBuildFailed(file.project, file.version, f"the metadata that its build made {fault.reason}") from None
    return CoreMetadata(name=found.name, version=found.version, requires_dist=found.requires_dist,
                        requires_python=found.requires_python, provides_extra=found.provides_extra, basis="built",
                        built_on=machine_name())


def remove_tree(folder: Path) -> None:
    """Removes a folder with all in it, also what was made unreadable."""
    remove(str(folder))
    if not folder.exists():
        return
    with suppress(OSError, RecursionError):
        folder.chmod(stat.S_IRWXU)
        for above, names, _ in os.walk(folder):
            for name in names:              # before the walk goes into it
                if not (inner := Path(above, name)).is_symlink():
                    inner.chmod(stat.S_IRWXU)
    remove(str(folder))
