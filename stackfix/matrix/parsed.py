"""The rows of the matrix as Python keeps compiled modules: parsed once, beside the package, for its own matrix alone.

Parsing and checking 250 kB of TOML takes 50 ms, half of what a lock needs before it can ask for metadata. What is kept
holds for these texts and these parsers; where the folder cannot be written the texts are parsed every time.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from stackfix.matrix import records
from stackfix.matrix.records import Matrix
from stackfix.quick import filled, names_of

_OWN = Path(__file__).resolve().parent
KINDS = tuple(sorted(
    (kind for kind in vars(records).values() if isinstance(kind, type) and names_of(kind)),
    key=lambda kind: kind.__name__))


def parsed_once(name: str, digest: str, parse: Callable[[], Matrix], folder: Path | None = None) -> Matrix:
    """What `parse` makes of texts with this digest, from an earlier run where there was one."""
    place = (_OWN / "__pycache__" if folder is None else folder) / f"{name}.{sys.implementation.cache_tag}.rows"
    key = hashlib.sha256(f"{digest} {_parsers()}".encode()).digest()
    with suppress(OSError):
        content = place.read_bytes()
        if content[:32] == key and hashlib.sha256(content[64:]).digest() == content[32:64]:
            found = from_plain(marshal.loads(content[64:]))     # noqa: S302 - as trusted as the .pyc beside it
            if isinstance(found, Matrix):
                return found
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
    stats = (path.stat() for path in sorted(_OWN.glob("*.py")))
    return " ".join(f"{one.st_size}-{one.st_mtime_ns}" for one in stats)


def to_plain(value: Any) -> Any:
    """Records as lists: the number of their kind, then their values. Tuples stay tuples."""
    if type(value) in KINDS:
        return [KINDS.index(type(value)), *(to_plain(getattr(value, name)) for name in names_of(type(value)))]
    return tuple(map(to_plain, value)) if isinstance(value, tuple) else value


def from_plain(value: Any) -> Any:
    """What `to_plain` was given."""
    if type(value) is list:
        values = [from_plain(one) if type(one) in _DEEP else one for one in value[1:]]
        return filled(KINDS[value[0]], values)
    return tuple(map(from_plain, value)) if type(value) is tuple and value and type(value[0]) in _DEEP else value


_DEEP = (list, tuple)       # what may hold records; the tuples of one field hold one kind of value
