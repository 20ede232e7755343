"""The files of torch's part of the almanac: what they should hold, from one table, and whether they agree."""

from __future__ import annotations

import dataclasses
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path

from stackfix.abi.book_format import pack
from stackfix.abi.book_patches import render_patches
from stackfix.almanac.manifest import read_manifest, render_manifest
from stackfix.almanac.records import ManifestWheel
from stackfix.almanac.torch_patches import PatchRow, contradictions, in_order, parse_rows
from stackfix.almanac.torch_table import Table, minor_of, number_of, parse_full, render_core, render_full, union
from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.places import MIB, reason_of
from stackfix.write.replace import replace_files

MANIFEST, CORE, FULL, BOOK, PATCHES = "torch.toml", "core.tsv", "full.tsv.xz", "full.bin", "patches.tsv"
HEADER = ("# Wheels of torch (Linux x86_64) that the almanac is made of. The newest patch of a minor gives its column,",
          "# the others are compared with it. `python -m stackfix.almanac torch --add VERSION` adds one.")
MOST_TEXT = 64 * MIB            # of full.tsv; it has 12 MB
MOST_MEMORY = 256 * MIB         # of unpacking
# named one by one: what a preset stands for may differ between versions of liblzma
FILTERS = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 24, "lc": 4, "lp": 0, "pb": 0, "mode": lzma.MODE_NORMAL,
            "nice_len": 273, "mf": lzma.MF_BT4, "depth": 1000}]
ANEW = "Make the files anew with `python -m stackfix.almanac torch --make`."


def contents(table: Table, patches: Sequence[PatchRow], wheels: Sequence[ManifestWheel]) -> dict[str, bytes]:
    """The bytes of every file. Raises BadInput where two names share a hash."""
    return {
        MANIFEST: render_manifest(HEADER, wheels).encode("utf-8"),
        FULL: pack_text(render_full(table)),
        BOOK: pack_table(table),
        CORE: render_core(table).encode("utf-8"),
        PATCHES: render_patches(in_order(patches)).encode("utf-8"),
    }


def pack_table(table: Table) -> bytes:
    """The bytes of `full.bin`."""
    libraries = sorted({library for row in table.rows.values() for library in row})
    bits = {library: 1 << place for place, library in enumerate(libraries)}
    header = {"libraries": libraries, "releases": [dataclasses.asdict(each) for each in table.releases]}
    try:
        return pack(header, ((key, union(row), sum(bits[library] for library in row))
                             for key, row in table.rows.items()))
    except ValueError as error:
        raise BadInput(BOOK, str(error), "the form of the book must change first: docs/almanac.md") from error


def pack_text(text: str) -> bytes:
    return lzma.compress(text.encode("utf-8", "surrogateescape"), lzma.FORMAT_XZ, lzma.CHECK_CRC64, filters=FILTERS)


def unpack_text(packed: bytes, name: str) -> str:
    """The text of an xz file. Raises BadInput for what is none, and for one that would fill the memory."""
    try:
        unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
        text = unpacking.decompress(packed, MOST_TEXT)
        if unpacking.eof and not unpacking.unused_data:
            return text.decode("utf-8", "surrogateescape")
    except (lzma.LZMAError, EOFError) as error:
        raise BadInput(name, f"cannot be unpacked: {error}", ANEW) from error
    raise BadInput(name, "is cut short, or larger than any such table", ANEW)


def read_bytes(path: Path) -> bytes:
    """A file of the almanac. Raises BadInput where there is none."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {reason_of(error)}", ANEW) from error


def read_text(path: Path) -> str:
    """A text file of the almanac. Raises BadInput."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(str(path), f"is not UTF-8 (byte {error.start})", ANEW) from None


def read_table(directory: Path) -> Table:
    """The table of `full.tsv.xz`. Raises BadInput."""
    path = directory / FULL
    return parse_full(unpack_text(read_bytes(path), str(path)), str(path))


def read_patches(directory: Path) -> list[PatchRow]:
    """The rows of `patches.tsv`. Raises BadInput."""
    return parse_rows(read_text(directory / PATCHES), str(directory / PATCHES))


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """All files or none. A packed text that says the same stays as it is: versions of liblzma pack differently."""
    path = directory / FULL
    kept = dict(files)
    if path.exists() and FULL in kept:
        try:
            if unpack_text(read_bytes(path), FULL) == unpack_text(kept[FULL], FULL):
                del kept[FULL]
        except BadInput:        # damaged: it is replaced
            pass
    try:
        replace_files(directory, kept)
    except Unreachable as error:
        cause = error.__cause__
        reason = f"cannot be written: {reason_of(cause)}" if isinstance(cause, OSError) else error.reason
        raise Unreachable(str(directory), reason, "nothing was changed; free the place or name another --directory"
                          ) from error


def faults(directory: Path) -> list[str]:
    """Where the files do not agree with each other, one line for each; no wheel is asked. Raises BadInput."""
    table, wheels = read_table(directory), read_manifest(directory / MANIFEST)
    patches = read_patches(directory)
    found = [f"{FULL}: {line}" for line in strangers(table, wheels)]
    if pack_table(table) != read_bytes(directory / BOOK):
        found.append(f"{BOOK}: is not what {FULL} gives")
    if render_core(table) != read_text(directory / CORE):
        found.append(f"{CORE}: is not that part of {FULL}")
    return found + [f"{PATCHES}: {line}" for line in contradictions(patches, table)]


def by_minor(wheels: Sequence[ManifestWheel]) -> dict[str, list[ManifestWheel]]:
    """The wheels of each minor, the newest patch first; minors from the oldest."""
    found: dict[str, list[ManifestWheel]] = {}
    for wheel in sorted(wheels, key=lambda each: number_of(each.version), reverse=True):
        found.setdefault(minor_of(wheel.version), []).append(wheel)
    return dict(reversed(found.items()))


def strangers(table: Table, wheels: Sequence[ManifestWheel]) -> list[str]:
    """Which columns are of other wheels than the manifest has."""
    made = {each.minor: (each.version, each.file, each.sha256, each.patches) for each in table.releases}
    asked = {minor: (group[0].version, group[0].file, group[0].sha256, patches_of(group))
             for minor, group in by_minor(wheels).items()}
    return [f"the column of {minor} is of other wheels than {MANIFEST} has"
            for minor in sorted(made.keys() | asked.keys(), key=number_of) if made.get(minor) != asked.get(minor)]


def patches_of(group: Sequence[ManifestWheel]) -> tuple[str, ...]:
    """The other patches of a minor, oldest first."""
    return tuple(each.version for each in reversed(group[1:]))


__all__ = ["by_minor", "contents", "faults", "patches_of", "read_patches", "read_table", "strangers", "write_files"]
