"""YAML text that all readers take for the same: block style, and quotes where a plain word could be more than text.

YAML 1.1 (PyYAML) and 1.2 (ruamel, serde) read plain words differently: `12e3` is a number to one of them, `1.10` to
both, `no` is false to one. A scalar here is plain only where none of them sees anything but text in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

Yaml: TypeAlias = "str | int | bool | Sequence[Yaml] | Mapping[str, Yaml]"

LETTERS_FIRST = re.compile(r"_*[A-Za-z][A-Za-z0-9_./+:@%=~-]*")
# A number has no letters but those of a base or an exponent, and of a date
DIGITS_FIRST = re.compile(r"(?!0[xobXOB])(?=[A-Za-z0-9._+-]*[ac-df-np-su-wyA-CDF-NP-SU-WY])[0-9][A-Za-z0-9_.+-]*")
WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "nan"})


def render_yaml(value: Mapping[str, Yaml]) -> str:
    """The text of a document, keys in the order of `value`."""
    return "\n".join(mapping_lines(value)) + "\n"


def mapping_lines(value: Mapping[str, Yaml]) -> Iterator[str]:
    """Lines of a mapping, without indentation."""
    for key, item in value.items():
        if isinstance(item, (str, int)):
            yield f"{scalar(key)}: {scalar(item)}"
        elif not item:
            yield f"{scalar(key)}: {'{}' if isinstance(item, Mapping) else '[]'}"
        elif isinstance(item, Mapping):
            yield f"{scalar(key)}:"
            yield from (f"  {line}" for line in mapping_lines(item))
        else:
            yield f"{scalar(key)}:"
            yield from sequence_lines(item)


def sequence_lines(items: Sequence[Yaml]) -> Iterator[str]:
    """Lines of a sequence, the dashes without indentation."""
    for item in items:
        if isinstance(item, (str, int)):
            lines = iter((scalar(item),))
        elif not item:
            lines = iter(("{}" if isinstance(item, Mapping) else "[]",))
        else:
            lines = mapping_lines(item) if isinstance(item, Mapping) else sequence_lines(item)
        yield f"- {next(lines)}"
        yield from (f"  {line}" for line in lines)


def scalar(value: str | int) -> str:
    """One scalar: text in quotes unless nobody can mistake it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if is_plain(value):
        return value
    if value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return '"' + "".join(escaped(char) for char in value) + '"'


def is_plain(text: str) -> bool:
    """Whether the text without quotes is text to every reader."""
    if text.lower() in WORDS or text.endswith(":"):
        return False
    return (LETTERS_FIRST.fullmatch(text) or DIGITS_FIRST.fullmatch(text)) is not None


def escaped(char: str) -> str:
    """The character inside double quotes."""
    if char in {'"', "\\"}:
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
