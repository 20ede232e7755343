"""What a text tells of the environment that it comes from, whatever its error is."""

from __future__ import annotations

import re

from stackfix.explain.records import Fields, Text

_VERSION = r"\d+(?:\.\d+)+(?:\.?(?:a|b|rc|post|dev)\d+)*(?:\+[A-Za-z0-9.]+)?"
PATTERNS = tuple(re.compile(pattern) for pattern in (
    r"/python(?P<python>3\.\d+)/(?:site|dist)-packages",
    r"(?P<site>(?:/[^\s:'\"()/]+)+/(?:site|dist)-packages)/",
    rf"\b(?:py)?torch(?:==|[ -]|: )v?(?P<torch>{_VERSION})",
))


def read_context(text: Text) -> Fields:
    """The first of each that the text names: `python`, `site`, `torch`."""
    fields: dict[str, str] = {}
    for line in text.lines:
        for pattern in PATTERNS:
            match = pattern.search(line.text)
            for name, value in (match.groupdict() if match else {}).items():
                if value:
                    fields.setdefault(name, value)
    return fields
