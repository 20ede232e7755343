"""The names that torch exports, by their beginning: for names that a text cuts short, and for those of one function.

The mapped book (`full.bin`) answers for whole names at once, but has no names in it. Its sources do: `core.tsv`
with c10's and the C names, and `full.tsv.xz` with all of them, unpacked in a twentieth of a second.
"""

from __future__ import annotations

import lzma
from functools import cached_property
from pathlib import Path

from stackfix.abi.nvidia_versions import mask_of
from stackfix.errors import BadInput
from stackfix.matrix.toml_files import matrix_directory, read_file

CORE, FULL, COLUMNS = "core.tsv", "full.tsv.xz", b"key\tminors\tlibraries\n"
MOST_BYTES = 64 * 1024 * 1024   # unpacked; today it is 13 MB
MOST_NAMES = 4096               # that are looked at for one beginning
LEAST = 6                       # characters of a beginning: shorter ones tell nothing
HINT = "Install stackfix again, or make the files anew with `python -m stackfix.almanac torch --make`."


class TorchNameList:
    """Fills records.TorchNames."""

    def __init__(self, directory: Path | None, minors: tuple[str, ...]) -> None:
        """`minors`: those of the book, oldest first."""
        self._folder = matrix_directory() / "abi" if directory is None else directory
        self._minors, self._places = minors, {minor: place for place, minor in enumerate(minors)}

    def starting(self, beginning: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """(name, minors that export it) of each name with this beginning; () for one that is too short to tell."""
        if len(beginning) < LEAST or not beginning.isascii():
            return ()
        if not beginning.startswith("_Z") or beginning.startswith(("_ZN3c10", "_ZNK3c10")):
            found = self._in(self._core, beginning)
            if found:
                return found
        return self._in(self._full, beginning) if beginning.startswith("_Z") else ()

    def having(self, library: str) -> tuple[str, ...]:
        """Minors that have a library, oldest first: those in which it exports any name."""
        if not library.startswith("lib") or not library.isascii():
            return ()
        text, wanted = self._core if library.startswith("libc10") else self._full, library.encode()
        found, seen = set[str](), set[str]()
        at = text.find(wanted)
        while at >= 0 and len(found) < len(self._minors):
            end = text.find(b"\n", at)
            end = end if end >= 0 else len(text)
            name, _, rest = text[text.rfind(b"\n", 0, at) + 1:end].decode("ascii", errors="replace").partition("\t")
            spans, _, libraries = rest.partition("\t")
            for each in libraries.split(" "):
                own, _, span = each.partition("@")
                if own == library and (span or spans) not in seen:
                    seen.add(span or spans)
                    found.update(self._row(f"{name}\t{span or spans}")[1])
            at = text.find(wanted, end)
        return tuple(minor for minor in self._minors if minor in found)

    def _in(self, text: bytes, beginning: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found: list[tuple[str, tuple[str, ...]]] = []
        wanted = b"\n" + beginning.encode()
        at = text.find(wanted)
        while at >= 0 and len(found) < MOST_NAMES:
            end = text.find(b"\n", at + 1)
            line = text[at + 1:end if end >= 0 else len(text)].decode("ascii", errors="replace")
            if "@" not in line:         # "…@string": of which minors the name has lost a tag
                found.append(self._row(line))
            at = text.find(wanted, end) if end >= 0 else -1
        return tuple(found)

    def _row(self, line: str) -> tuple[str, tuple[str, ...]]:
        name, _, rest = line.partition("\t")
        try:
            mask = mask_of(rest.partition("\t")[0], self._places)
        except ValueError as error:
            raise BadInput(str(self._folder / FULL), f"{line[:80]!r}: {error}", HINT) from None
        return name, tuple(minor for place, minor in enumerate(self._minors) if mask >> place & 1)

    @cached_property
    def _core(self) -> bytes:
        return read_file(self._folder / CORE, (CORE, FULL))

    @cached_property
    def _full(self) -> bytes:
        path = self._folder / FULL
        try:
            packed = lzma.LZMADecompressor(memlimit=4 * MOST_BYTES)
            text = packed.decompress(read_file(path, (CORE, FULL)), max_length=MOST_BYTES)
        except lzma.LZMAError as error:
            raise BadInput(str(path), f"cannot be unpacked: {error}", HINT) from None
        if COLUMNS not in text:
            raise BadInput(str(path), "is no list of names", HINT)
        return text


__all__ = ["TorchNameList"]
