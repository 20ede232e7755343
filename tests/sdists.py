"""Small real sdists whose metadata only a build can tell, and archives that no sdist should be."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Mapping

DYNAMIC = "Metadata-Version: 2.2\nName: {name}\nVersion: {version}\nDynamic: Requires-Dist\n"
# A whole build backend in the sdist itself: it needs nothing, so most tests install nothing
BACKEND = """\
import os, pathlib, subprocess, sys, time
{before}
METADATA = {metadata!r}

def get_requires_for_build_wheel(config_settings=None):
    return {requires!r}

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = pathlib.Path(folder, {info!r})
    info.mkdir()
    {during}
    (info / "METADATA").write_text(METADATA)
    return {info!r}

def build_wheel(folder, config_settings=None, metadata_directory=None):
    raise SystemExit("no wheel is asked for")
"""
IN_TREE = '[build-system]\nrequires = {requires!r}\nbuild-backend = "own"\nbackend-path = ["."]\n'


def metadata(name: str, version: str, requires: Iterable[str] = (), **more: str) -> str:
    """METADATA of a build."""
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    return "\n".join([*lines, *(f"{key.replace('_', '-')}: {value}" for key, value in more.items())]) + "\n"


def sdist(
    name: str = "demo", version: str = "1.0", *, requires: Iterable[str] = (), told: str | None = None,
    before: str = "", during: str = "pass", build_requires: Iterable[str] = (), own_requires: Iterable[str] = (),
    files: Mapping[str, str] | None = None,
) -> bytes:
    """An sdist that says what it requires once its own backend ran: `before` as it is imported, `during` its hook.

    `files` take the place of the project's files; `told` of its METADATA.
    """
    made = {
        "pyproject.toml": IN_TREE.format(requires=list(build_requires)),
        "own.py": BACKEND.format(metadata=metadata(name, version, requires) if told is None else told, before=before,
                                 during=during, requires=list(own_requires), info=f"{name}-{version}.dist-info"),
    } if files is None else files
    top = f"{name}-{version}"
    return tar({f"{top}/PKG-INFO": DYNAMIC.format(name=name, version=version),
                **{f"{top}/{path}": text for path, text in made.items()}})


def tar(members: Mapping[str, str], *further: tarfile.TarInfo) -> bytes:
    """A .tar.gz of these files, the same bytes each time; `further` members have no content."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, text in members.items():
            member = tarfile.TarInfo(path)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        for member in further:
            archive.addfile(member)
    return gzip.compress(stream.getvalue(), mtime=0)


def special(path: str, kind: bytes, target: str = "", *, size: int = 0) -> tarfile.TarInfo:
    """A member that is no plain file: a link, a device."""
    member = tarfile.TarInfo(path)
    member.type, member.linkname, member.size = kind, target, size
    return member
