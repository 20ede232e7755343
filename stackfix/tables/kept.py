"""Reduced wheels in the cache: a document that tells of the wheel, then the compressed images of its libraries.

The cache hashes each entry as a whole, so a damaged one counts as not there. One of another form, or of another wheel,
is dropped.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from stackfix.errors import BadInput
from stackfix.inspect.plain import from_json, to_json
from stackfix.inspect.wheel_parts import is_shared_object
from stackfix.prove.records import WheelTables
from stackfix.sources.cache import Cache
from stackfix.tables.records import Packed, ReducedWheel

KIND = "tables-v1"
FORM = 1                        # to be raised when the reader of ELF files says something else of the same file
MOST_TEXT = 256 << 20           # bytes of a document; torch's has 1 MB
SHA256 = re.compile(r"[0-9a-f]{64}")


def read_kept(cache: Cache, sha256: str) -> ReducedWheel | None:
    """What the cache has of the wheel; None where that is nothing, or nothing that can be used."""
    if not SHA256.fullmatch(sha256):        # it becomes a file name
        return None
    entry = cache.entry(KIND, sha256)
    if entry is None:
        return None
    try:
        found = from_parts(entry.about, entry.content)
    except (BadInput, KeyError, RecursionError, TypeError, ValueError, zlib.error):
        found = None
    if found is None or found.tables.sha256 != sha256 or not is_whole(found.tables):
        cache.drop_entry(KIND, sha256)
        return None
    return found


def is_whole(tables: WheelTables) -> bool:
    """Whether every file that is a shared object's by its name was read: which names are may have changed since."""
    read = {each.path for each in tables.libraries}
    return all(path in read for path in tables.listing or () if ".so" in path and is_shared_object(path))


def keep(cache: Cache, wheel: ReducedWheel) -> None:
    """Keeps a wheel. Where the cache cannot be written, it says so itself."""
    text = json.dumps({
        "tables": to_json(wheel.tables),
        "images": [[path, each.size, each.extents, each.length, len(each.content)]
                   for path, each in wheel.images.items()],
    }, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    document = zlib.compress(text, 1)
    about = {"form": FORM, "file": wheel.tables.file, "document": len(document), "text": len(text)}
    cache.keep_entry(KIND, wheel.tables.sha256, about,
                     b"".join([document, *(each.content for each in wheel.images.values())]))


def from_parts(about: Mapping[str, Any], content: bytes) -> ReducedWheel | None:
    """What `keep` was given; None for another form. Raises one of several errors for anything else."""
    if about["form"] != FORM or about["text"] > MOST_TEXT:
        return None
    size = about["document"]
    text = zlib.decompressobj().decompress(content[:size], about["text"])
    document = json.loads(text)
    images = dict(packed_images(document["images"], memoryview(content)[size:]))
    return ReducedWheel(tables=from_json(document["tables"], WheelTables), images=images)


def packed_images(rows: list[list[Any]], content: memoryview) -> Iterator[tuple[str, Packed]]:
    """Path and image of each row. Raises ValueError where they are not the whole of the content."""
    place = 0
    for path, size, extents, length, packed in rows:
        if not all(isinstance(each, int) and each >= 0 for each in (size, extents, length, packed)):
            raise ValueError("an image of no size")
        yield path, Packed(size=size, extents=extents, length=length, content=content[place:place + packed])
        place += packed
    if place != len(content):
        raise ValueError("images of another length")


__all__ = ["KIND", "keep", "read_kept"]
