"""Which torch minors export a name: `matrices/abi/full.bin`, mapped. See book_format for its bytes.

Opening compares the file with its digest and reads the header; a question touches a few pages. What another patch
release has otherwise (`patches.tsv`) is read when somebody asks.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import sys
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from stackfix.abi.book_format import HINT, MOST_LIBRARIES, MOST_RELEASES, PROLOGUE, digest_of, key_hash, read_sections
from stackfix.abi.book_patches import parse_patches
from stackfix.abi.records import BookRelease, PatchException
from stackfix.errors import BadInput
from stackfix.matrix.toml_files import matrix_directory, read_file

FILE, PATCHES = "full.bin", "patches.tsv"
MINOR = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")
VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){2}[0-9a-z.]{0,20}")
SHA256 = re.compile(r"[0-9a-f]{64}")
FIELDS = frozenset({"minor", "version", "file", "sha256", "string_abi", "patches"})
MOST_PATCHES = 100              # of one minor


def open_torch_book(directory: Path | None = None) -> MappedTorchBook:
    """The book in `directory`, ours where none is named. Raises BadInput where it is damaged, in whichever byte."""
    directory = matrix_directory() / "abi" if directory is None else directory
    path = directory / FILE
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            parts = read_sections(str(path), stream.read(PROLOGUE.size), size)      # an empty file cannot be mapped
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror or error}", HINT) from None
    if digest_of(memoryview(mapped)[PROLOGUE.size:]) != parts.digest:
        raise BadInput(str(path), "is damaged: its content is not what its digest says", HINT)
    return MappedTorchBook(mapped, path)


class MappedTorchBook:
    """Fills records.TorchBook. What is mapped stays so while this lives.

    The digest is for who opens the file; here each number is checked before it is used, so that none crashes.
    """

    def __init__(self, content: mmap.mmap | bytes, path: Path) -> None:
        """Raises BadInput for content whose parts or header are not those of a book."""
        self._path, self._view = path, memoryview(content)
        parts = read_sections(str(path), bytes(self._view[:PROLOGUE.size]), len(self._view))
        self._libraries, self._releases = self._read_header(bytes(self._view[slice(*parts.header)]))
        self._hashes = self._column("Q", parts.hashes, parts.keys)
        self._minors = self._column("Q", parts.minors, parts.pairs)
        self._exporters = self._column("H", parts.libraries, parts.pairs)
        self._index = self._column("H", parts.index, parts.keys)
        self._names_of: dict[int, tuple[str, ...]] = {}
        self._patches: Mapping[str, tuple[PatchException, ...]] | None = None

    @property
    def releases(self) -> tuple[BookRelease, ...]:
        """All minors, oldest first."""
        return self._releases

    def minors(self, name: str) -> tuple[str, ...]:
        """Minors whose libraries export the name, oldest first; () where none does."""
        pair = self._pair(name)
        if pair is None:
            return ()
        mask = self._minors[pair]
        if mask not in self._names_of:      # a few hundred masks stand for all names
            if mask >> len(self._releases) or not mask:
                raise self._bad("names minors that are not in its list")
            self._names_of[mask] = tuple(each.minor for place, each in enumerate(self._releases) if mask >> place & 1)
        return self._names_of[mask]

    def libraries(self, name: str) -> tuple[str, ...]:
        """Which of torch's libraries export it, in any minor."""
        pair = self._pair(name)
        if pair is None:
            return ()
        mask = self._exporters[pair]
        if mask >> len(self._libraries):
            raise self._bad("names libraries that are not in its list")
        return tuple(library for place, library in enumerate(self._libraries) if mask >> place & 1)

    def exceptions(self, version: str) -> tuple[PatchException, ...]:
        """What the patch release `version` has otherwise than its minor's newest patch."""
        if self._patches is None:
            path = self._path.with_name(PATCHES)
            self._patches = parse_patches(read_file(path, (FILE, PATCHES)), str(path))
        return self._patches.get(version, ())

    def _pair(self, name: str) -> int | None:
        """Which masks a name has; None where no release exports it."""
        from stackfix.abi.mangled import neutral  # a parser, which most locks need not load

        wanted = key_hash(neutral(name))
        place = bisect_left(self._hashes, wanted)
        if place == len(self._hashes) or self._hashes[place] != wanted:
            return None
        pair = self._index[place]
        if pair >= len(self._minors):
            raise self._bad("points at masks that it does not have")
        return pair

    def _column(self, code: Literal["Q", "H"], start: int, count: int) -> Sequence[int]:
        """`count` little-endian numbers; only another byte order has them copied."""
        part = self._view[start:start + count * array(code).itemsize]
        if sys.byteorder == "little":
            return part.cast(code)
        found = array(code, bytes(part))
        found.byteswap()
        return found

    def _read_header(self, text: bytes) -> tuple[tuple[str, ...], tuple[BookRelease, ...]]:
        """(libraries, releases). Raises BadInput."""
        try:
            header = json.loads(text)
            libraries = texts_of(header["libraries"])
            releases = tuple(map(release_of, header["releases"]))
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise self._bad(f"its header is not that of a book: {reason_of(error)}") from None
        order = [tuple(map(int, each.minor.split("."))) for each in releases]
        if not releases or sorted(set(order)) != order or len(releases) > MOST_RELEASES:
            raise self._bad("its releases are not in order")
        if len(libraries) > MOST_LIBRARIES:
            raise self._bad("it names more libraries than a mask has bits")
        return libraries, releases

    def _bad(self, reason: str) -> BadInput:
        return BadInput(str(self._path), reason, HINT)


def reason_of(error: Exception) -> str:
    """What is wrong with a header, in a few words."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 (byte {error.start})"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON (byte {error.pos})"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return f"without {error}" if isinstance(error, KeyError) else str(error)[:120]


def release_of(row: dict[str, Any]) -> BookRelease:
    """One release of the header. Raises TypeError, KeyError and ValueError."""
    if set(row) != FIELDS:
        raise ValueError("the fields of a release are " + ", ".join(sorted(FIELDS)))
    minor, version, patches = text_of(row["minor"]), text_of(row["version"]), texts_of(row["patches"])
    if not MINOR.fullmatch(minor) or len(patches) > MOST_PATCHES or not all(
            VERSION.fullmatch(each) and each.startswith(f"{minor}.") for each in (version, *patches)):
        raise ValueError("no release: " + minor[:40])
    if row["string_abi"] not in {"old", "new"} or not SHA256.fullmatch(text_of(row["sha256"])):
        raise ValueError("no std::string ABI or no hash of " + minor)
    return BookRelease(minor=minor, version=version, file=text_of(row["file"]), sha256=row["sha256"],
                       string_abi=row["string_abi"], patches=patches)


def text_of(value: object) -> str:
    """A text itself. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {value!r:.40}")
    return value


def texts_of(value: object) -> tuple[str, ...]:
    """The texts of a list. Raises TypeError for anything else."""
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, not {value!r:.40}")
    return tuple(map(text_of, value))


__all__ = ["MappedTorchBook", "open_torch_book"]
