"""TOML as the matrix files write it: rows of a table as inline tables, one a line, so that a diff shows rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = "str | bool | int | Sequence[Value] | Mapping[str, Value]"

LINE = 118
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def render_toml(header: Sequence[str], document: Mapping[str, Value]) -> str:
    """The text of a file: `header` lines (comments), then the tables. The same document gives the same bytes."""
    lines = list(header)
    _table(lines, (), document)
    return "\n".join(lines).rstrip("\n") + "\n"


def header_of(text: str) -> tuple[str, ...]:
    """The comment lines before the first table, with the blank lines between them."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        lines.append(line)
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(lines)


def _table(lines: list[str], path: tuple[str, ...], table: Mapping[str, Value]) -> None:
    tables: list[tuple[str, Value]] = []
    for key, value in table.items():  # a key behind a [table] line would belong to that table: plain values come first
        if isinstance(value, Mapping) or (not path and _rows(value)):
            tables.append((key, value))
        else:
            lines.extend(_assignment(key, value))
    for key, value in tables:
        if isinstance(value, Mapping):
            if not all(isinstance(inner, Mapping) for inner in value.values()) or not value:
                lines.extend(["", f"[{_dotted((*path, key))}]"])
            _table(lines, (*path, key), value)
        else:
            for row in value:  # type: ignore[union-attr]
                lines.extend(["", f"[[{_key(key)}]]"])
                _table(lines, (*path, key), row)  # type: ignore[arg-type]


def _assignment(key: str, value: Value) -> list[str]:
    start = f"{_key(key)} = "
    if _rows(value):
        return [f"{start}[", *(f"    {_inline(row)}," for row in value), "]"]  # type: ignore[union-attr]
    line = start + _inline(value)
    if len(line) <= LINE or isinstance(value, (str, bool, int, Mapping)):
        return [line]
    return [f"{start}[", *_filled([_inline(item) for item in value]), "]"]


def _filled(items: Sequence[str]) -> list[str]:
    lines, current = [], "   "
    for item in items:
        if len(current) + len(item) + 2 > LINE and current.strip():
            lines.append(current)
            current = "   "
        current += f" {item},"
    return [*lines, current]


def _rows(value: Value) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and bool(value)
        and all(isinstance(item, Mapping) for item in value)
    )


def _inline(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_inline(item)}" for key, item in value.items()) + " }"
    return "[" + ", ".join(_inline(item) for item in value) + "]"


def _key(key: str) -> str:
    return key if BARE_KEY.match(key) else _string(key)


def _dotted(path: Sequence[str]) -> str:
    return ".".join(_key(part) for part in path)


def _string(text: str) -> str:
    if '"' in text and "'" not in text and text.isprintable():
        return f"'{text}'"
    return '"' + "".join(ESCAPES.get(char) or _shown(char) for char in text) + '"'


def _shown(char: str) -> str:
    return char if char.isprintable() else f"\\U{ord(char):08x}"
