"""A proof as text and back: `stack-proof.json`. The same proof gives the same bytes; what reads it trusts nothing."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from stackfix.errors import BadInput
from stackfix.prove.proof_records import Proof

SCHEMA_VERSION = 1
KIND = "stackfix stack proof"
WIDTH = 200                     # a wheel with its hash is a line
LARGEST = 32 << 20              # characters; the proof of a stack of 200 packages has 1 MB
MOST = 1 << 63                  # bytes of a file, or symbols
AGAIN = "make it again: stackfix lock --prove"


def proof_text(proof: Proof) -> str:
    """The file: what fits a line stands on one, so that proofs can be compared line by line."""
    document = {"schema_version": SCHEMA_VERSION, "kind": KIND, **dataclasses.asdict(proof)}
    return "".join(pretty(document, 0)) + "\n"


def pretty(value: Any, depth: int) -> Iterator[str]:
    """JSON with containers broken only where they are too long for a line.

    It is ASCII: names of files and symbols may hold bytes that are no UTF-8.
    """
    flat = json.dumps(value)
    if not isinstance(value, (dict, list, tuple)) or not value or len(flat) + 2 * depth < WIDTH:
        yield flat
        return
    named = value.items() if isinstance(value, dict) else ((None, each) for each in value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield opening
    for number, (key, each) in enumerate(named):
        yield ("," if number else "") + "\n" + "  " * (depth + 1)
        if key is not None:
            yield f"{json.dumps(key)}: "
        yield from pretty(each, depth + 1)
    yield "\n" + "  " * depth + closing


def parse_proof(text: str, name: str) -> Proof:
    """The proof in a text that came from `name`. Raises BadInput for anything else.

    Fields that a later release has added are passed over.
    """
    if len(text) > LARGEST:
        raise BadInput(name, f"is no proof of ours: more than {LARGEST >> 20} MB", AGAIN)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:       # JSONDecodeError is a ValueError, as a number of 5000 digits is
        what = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "too deep, or too long a number"
        raise BadInput(name, f"is no JSON ({what})", AGAIN) from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise BadInput(name, "is no proof that stackfix wrote", AGAIN)
    if document.get("schema_version") != SCHEMA_VERSION or document["schema_version"] is True:
        raise BadInput(name, f"has the schema version {str(document.get('schema_version'))[:20]!r}, "
                             f"and this stackfix reads {SCHEMA_VERSION}", AGAIN)
    proof: Proof = Reading(name).record(document, Proof, "")
    return proof


class Reading:
    """Reads JSON values into the records of a proof."""

    def __init__(self, name: str) -> None:
        self.name = name

    def refuse(self, way: str, expected: str) -> BadInput:
        return BadInput(self.name, f"{way.lstrip('.') or 'the document'}: {expected} was expected", AGAIN)

    def record(self, value: Any, kind: Any, way: str) -> Any:
        """A record of a kind."""
        if not isinstance(value, dict):
            raise self.refuse(way, "an object")
        found = {}
        for name, hint in hints_of(kind).items():
            if name not in value:
                raise self.refuse(way, f"a field {name!r}")
            found[name] = self.value(value[name], hint, f"{way}.{name}")
        return kind(**found)

    def value(self, value: Any, hint: Any, way: str) -> Any:
        """What a type hint asks for."""
        if dataclasses.is_dataclass(hint):
            return self.record(value, hint, way)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is tuple:
            return self.items(value, arguments, way)
        if origin in {Union, types.UnionType}:
            return None if value is None else self.value(value, arguments[0], way)
        if type(value) is not hint or (isinstance(value, int) and not 0 <= value < MOST):
            raise self.refuse(way, "text" if hint is str else "a number")
        return value

    def items(self, value: Any, arguments: tuple[Any, ...], way: str) -> tuple[Any, ...]:
        """A tuple of one kind of item, or of as many as are named."""
        if not isinstance(value, list):
            raise self.refuse(way, "a list")
        kinds = (arguments[0],) * len(value) if arguments[-1] is Ellipsis else arguments
        if len(kinds) != len(value):
            raise self.refuse(way, f"a list of {len(kinds)}")
        return tuple(self.value(each, kind, f"{way}[{place}]")
                     for place, (each, kind) in enumerate(zip(value, kinds, strict=True)))


@cache
def hints_of(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
