"""Records as JSON values and back: a recorded machine can be kept, sent and judged elsewhere."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from stackfix.errors import BadInput

Record = TypeVar("Record")
UNIONS = (Union, types.UnionType)


def to_json(record: object) -> Any:
    """`record` in dicts, lists and scalars; every record carries its class name as "is"."""
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        fields = {field.name: to_json(getattr(record, field.name)) for field in dataclasses.fields(record)}
        return {"is": type(record).__name__, **fields}
    if isinstance(record, Mapping):
        return {str(key): to_json(value) for key, value in record.items()}
    if isinstance(record, (tuple, list)):
        return [to_json(item) for item in record]
    if record is None or isinstance(record, (str, int, float, bool)):
        return record
    raise TypeError(f"{type(record).__name__} has no JSON form")


def from_json(value: Any, kind: type[Record]) -> Record:
    """The record of `kind` that `to_json` made `value` of. Raises BadInput for anything else."""
    read: Record = _read(value, kind, kind.__name__)
    return read


def _read(value: Any, kind: Any, way: str) -> Any:      # noqa: PLR0911 - one branch for each kind of type
    origin = get_origin(kind)
    if origin in UNIONS:
        return _read_union(value, get_args(kind), way)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _read_record(value, kind, way)
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _read_named(value, kind, way)
    if origin is tuple and isinstance(value, list):
        items = get_args(kind)
        if len(items) == 2 and items[1] is Ellipsis:
            return tuple(_read(item, items[0], f"{way}[{place}]") for place, item in enumerate(value))
        if len(items) == len(value):
            return tuple(_read(item, each, way) for item, each in zip(value, items, strict=True))
    elif isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, dict):
        return {key: _read(item, get_args(kind)[1], f"{way}.{key}") for key, item in value.items()}
    elif kind in {str, int, bool, float} and type(value) is kind:
        return value
    elif kind is type(None) and value is None:
        return None
    raise BadInput(way, f"{kind} was expected, not {value!r:.80}")


def _read_union(value: Any, kinds: tuple[Any, ...], way: str) -> Any:
    if isinstance(value, dict) and "is" in value:
        kinds = tuple(kind for kind in kinds if getattr(kind, "__name__", None) == value["is"])
    for kind in kinds[:-1]:
        try:
            return _read(value, kind, way)
        except BadInput:
            continue
    if not kinds:
        raise BadInput(way, f"{value['is']!r:.80} is none of the records that belong here")
    return _read(value, kinds[-1], way)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read_record(value: Any, kind: type, way: str) -> Any:
    if not isinstance(value, dict) or value.get("is") != kind.__name__:
        raise BadInput(way, f"a {kind.__name__} was expected, not {value!r:.80}")
    known = _hints(kind)
    hints = {field.name: known[field.name] for field in dataclasses.fields(kind)}
    if set(value) - {"is"} != set(hints):
        raise BadInput(way, f"the fields of a {kind.__name__} are {', '.join(hints)}")
    return kind(**{name: _read(value[name], hint, f"{way}.{name}") for name, hint in hints.items()})


def _read_named(value: Any, kind: Any, way: str) -> Any:
    hints = _hints(kind)
    if not isinstance(value, list) or len(value) != len(kind._fields):
        raise BadInput(way, f"a {kind.__name__} of {len(kind._fields)} fields was expected, not {value!r:.80}")
    return kind(*(_read(item, hints[name], f"{way}.{name}") for name, item in zip(kind._fields, value, strict=True)))
