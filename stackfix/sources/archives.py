"""METADATA and PKG-INFO out of wheels and sdists, which may be hostile: nothing is extracted, all is bounded."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
import zlib
from typing import IO

from stackfix.sources.page import normalise

MAX_METADATA = 16 * 1024 * 1024
_MAX_UNPACKED = 1024 * 1024 * 1024  # of an sdist
BROKEN = (zipfile.BadZipFile, zipfile.LargeZipFile, tarfile.TarError, zlib.error, EOFError, OSError, ValueError,
           NotImplementedError, RuntimeError, OverflowError, KeyError, IndexError)


class BadArchive(Exception):
    """No archive of the kind it should be, or without what it must have. The text is fit to be shown."""


class Missing(Exception):
    """Bytes of a remote file that were not fetched yet."""

    def __init__(self, start: int, size: int) -> None:
        super().__init__(start, size)
        self.start, self.size = start, size


class SparseFile(io.RawIOBase):
    """A file of `size` bytes of which only some parts are here; reading others raises Missing."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._parts: list[tuple[int, bytes]] = []
        self._at = 0

    def add(self, start: int, content: bytes) -> None:
        """Have `content` at `start`; parts that touch are joined, so that one read may span them."""
        for other in list(self._parts):
            if other[0] == start + len(content):
                content += other[1]
            elif other[0] + len(other[1]) == start:
                start, content = other[0], other[1] + content
            else:
                continue
            self._parts.remove(other)
        self._parts.append((start, content))

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + (0 if whence == io.SEEK_SET else self._at if whence == io.SEEK_CUR else self.size)
        if at < 0:
            raise ValueError("offset before the start of the file")
        self._at = at
        return at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self.size - self._at)
        size = left if size is None or size < 0 else min(size, left)
        if not size:
            return b""
        for start, content in self._parts:
            if start <= self._at and self._at + size <= start + len(content):
                data = content[self._at - start:self._at - start + size]
                self._at += size
                return data
        raise Missing(self._at, size)


def metadata_in_wheel(stream: IO[bytes] | SparseFile, project: str) -> bytes:
    """METADATA of the wheel. Raises BadArchive; Missing passes through."""
    try:
        with zipfile.ZipFile(stream) as archive:
            found = [info for info in archive.infolist() if _is_metadata(info.filename, project)]
            if len(found) != 1:
                raise BadArchive(f"the wheel has {len(found) or 'no'} METADATA of {project}")
            return _read_member(archive, found[0])
    except BROKEN as fault:
        raise BadArchive(f"the wheel is damaged ({short(fault)})") from None


def _is_metadata(name: str, project: str) -> bool:
    folder, _, rest = name.partition("/")
    return rest == "METADATA" and folder.endswith(".dist-info") and normalise(folder.partition("-")[0]) == project


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.file_size > MAX_METADATA or info.compress_size > MAX_METADATA:
        raise BadArchive(f"its {info.filename.rpartition('/')[2]} would be larger than {MAX_METADATA} bytes")
    with archive.open(info) as member:
        content = member.read(MAX_METADATA + 1)
    if len(content) > MAX_METADATA:
        raise BadArchive(f"its {info.filename.rpartition('/')[2]} is larger than {MAX_METADATA} bytes")
    return content


def pkg_info_in_sdist(content: bytes, filename: str) -> bytes:
    """PKG-INFO at the top of the sdist. Raises BadArchive."""
    try:
        if filename.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                found = [info for info in archive.infolist() if _is_pkg_info(info.filename)]
                if len(found) == 1:
                    return _read_member(archive, found[0])
        else:
            return _pkg_info_in_tar(content)
    except BROKEN as fault:
        raise BadArchive(f"the sdist is damaged ({short(fault)})") from None
    raise BadArchive("the sdist has no PKG-INFO")


def _pkg_info_in_tar(content: bytes) -> bytes:
    unpacked = Bounded(gzip.GzipFile(fileobj=io.BytesIO(content)), _MAX_UNPACKED)
    with tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            if member.isreg() and _is_pkg_info(member.name):
                if member.size > MAX_METADATA:
                    raise BadArchive(f"its PKG-INFO is larger than {MAX_METADATA} bytes")
                stream = archive.extractfile(member)
                if stream is not None:
                    return stream.read(MAX_METADATA)
    raise BadArchive("the sdist has no PKG-INFO")


def _is_pkg_info(name: str) -> bool:
    return re.fullmatch(r"(?:\./)?[^/]+/PKG-INFO", name) is not None and not name.startswith("../")


class Bounded(io.RawIOBase):
    """A stream that ends in an error once it has given more than `most` bytes."""

    def __init__(self, inner: gzip.GzipFile, most: int) -> None:
        super().__init__()
        self._inner, self._left, self._most = inner, most, most

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        data = self._inner.read(min(self._left + 1, 65536 if size is None or size < 0 else size))
        self._left -= len(data)
        if self._left < 0:
            raise BadArchive(f"the sdist unpacks to more than {self._most} bytes")
        return data


def short(fault: BaseException) -> str:
    """What a library says of a fault, no more than a line of it."""
    return (str(fault) or type(fault).__name__)[:200]
