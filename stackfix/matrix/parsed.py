"""The rows of the matrix as Python keeps compiled modules: parsed once, beside the package, for its own matrix alone.

Parsing and checking 250 kB of TOML takes 50 ms, half of what a lock needs before it can ask for metadata. What is kept
holds for these texts and these parsers; where the folder cannot be written the texts are parsed every time.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

from stackfix.matrix import records
from stackfix.quick import filled, names_of

Kept = TypeVar("Kept")
_OWN = Path(__file__).resolve().parent
KINDS = tuple(sorted(
    (kind for kind in vars(records).values() if isinstance(kind, type) and names_of(kind)),
    key=lambda kind: kind.__name__))


def parsed_once(name: str, digest: str, parse: Callable[[], Kept], folder: Path | None = None) -> Kept:
    """What `parse` makes of texts with this digest, from an earlier run where there was one.

    It is one record, or a tuple of records: whatever else a file of this name held is parsed anew.
    """
    place = (_OWN / "__pycache__" if folder is None else folder) / f"{name}.{sys.implementation.cache_tag}.columns"
    key = hashlib.sha256(f"{digest} {_parsers()}".encode()).digest()
    with suppress(OSError):
        content = place.read_bytes()
        if content[:32] == key and hashlib.sha256(content[64:]).digest() == content[32:64]:
            kept: Kept = from_plain(marshal.loads(content[64:]))    # noqa: S302 - as trusted as the .pyc beside it
            return kept
    made = parse()
    if not sys.dont_write_bytecode:
        rows = marshal.dumps(to_plain(made))
        with suppress(OSError):
            put(place, key + hashlib.sha256(rows).digest() + rows)
    return made


def put(place: Path, content: bytes) -> None:
    """The file whole in its place."""
    place.parent.mkdir(exist_ok=True)
    beside = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(place)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def _parsers() -> str:
    """What tells the modules of this stage from other versions of them."""
    stats = (path.stat() for path in (*sorted(_OWN.glob("*.py")), _OWN.parent / "platforms.py"))
    return " ".join(f"{one.st_size}-{one.st_mtime_ns}" for one in stats)


def to_plain(value: Any) -> Any:
    """Records as lists: the number of their kind, then their values. Tuples stay tuples.

    But for those of one kind of record: these are columns, which are put back in a third of the time: the inverted
    number of their kind, how many there are, which columns hold records, and the columns.
    """
    if type(value) in KINDS:
        return [KINDS.index(type(value)), *(to_plain(getattr(value, name)) for name in names_of(type(value)))]
    if not isinstance(value, tuple):
        return value
    kinds = {type(one) for one in value}
    if len(kinds) != 1 or not kinds <= set(KINDS):
        return tuple(map(to_plain, value))
    kind = kinds.pop()
    rows = [tuple(getattr(one, name) for one in value) for name in names_of(kind)]
    columns = [tuple(map(to_plain, row)) for row in rows]
    deep = tuple(row != column for row, column in zip(rows, columns, strict=True))
    return [~KINDS.index(kind), len(value), deep, *columns]


def from_plain(value: Any) -> Any:
    """What `to_plain` was given."""
    if type(value) is list and value[0] < 0:
        kind = KINDS[~value[0]]
        made = tuple(map(kind.__new__, repeat(kind, value[1])))
        for name, deep, column in zip(names_of(kind), value[2], value[3:], strict=True):
            put = getattr(kind, name).__set__
            deque(map(put, made, map(from_plain, column) if deep else column), maxlen=0)
        return made
    if type(value) is list:
        values = [from_plain(one) if type(one) in _DEEP else one for one in value[1:]]
        return filled(KINDS[value[0]], values)
    return tuple(map(from_plain, value)) if type(value) is tuple and value and type(value[0]) in _DEEP else value


_DEEP = (list, tuple)       # what may hold records; the tuples of one field hold one kind of value
