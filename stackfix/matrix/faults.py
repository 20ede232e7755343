"""The faults of one file: patterns that values are checked by, and one error for all that do not match.

Versions and requirements are checked by pattern here, since loading must not import packaging; `deep` parses them.
"""

from __future__ import annotations

import re

from stackfix.errors import BadInput

_VERSION = r"\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?"
_CLAUSE = rf"(?:(?:==|!=)\s*{_VERSION}(?:\.\*)?|(?:~=|>=|<=|<|>)\s*{_VERSION})"
_SPECIFIER = rf"{_CLAUSE}(?:\s*,\s*{_CLAUSE})*"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"

PATTERNS: dict[str, tuple[re.Pattern[str], str]] = {
    "version": (re.compile(_VERSION), "a version"),
    "specifier": (re.compile(_SPECIFIER), "a version specifier"),
    "requirement": (
        re.compile(rf"{_NAME}(?:\[{_NAME}(?:,{_NAME})*\])?(?:\s*{_SPECIFIER})?(?:\s*;.*)?"),
        "a requirement",
    ),
    "name": (re.compile(_NAME), "a project name"),
    "python": (re.compile(r"\d\.\d+"), 'a Python minor such as "3.11"'),
    "minor": (re.compile(r"\d+\.\d+"), 'a minor such as "2.3"'),
    "cuda": (re.compile(r"\d+\.\d+|cpu"), 'a CUDA version such as "12.1", or "cpu"'),
    "cuda-tag": (re.compile(r"\d{2,3}"), 'the digits of a CUDA tag such as "122"'),
    "number": (re.compile(r"\d+(?:\.\d+)*"), "digits and dots"),
    "arch": (re.compile(r"\d{2,3}[af]?(?:\+PTX)?"), 'a GPU architecture such as "90" or "90+PTX"'),
    "abi-flag": (re.compile(r"TRUE|FALSE"), '"TRUE" or "FALSE"'),
    "sha256": (re.compile(r"[0-9a-f]{64}"), "64 hexadecimal digits in lower case"),
    "address": (re.compile(r"https?://[^\s?#@]*[^\s?#@/]"), "an address without credentials and without a last slash"),
    "text": (re.compile(r".*\S.*", re.DOTALL), "some text"),
}


class Faults:
    """Faults of one file, raised together."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[str] = []

    def add(self, where: str, reason: str) -> None:
        self.found.append(f"{where}: {reason}" if where else reason)

    def check(self, value: object, kind: str, where: str) -> str:
        """`value` if it is text of this kind, else "" and a fault."""
        pattern, meaning = PATTERNS[kind]
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        self.add(where, f"{value!r} is not {meaning}")
        return ""

    def raise_if_any(self) -> None:
        if self.found:
            raise BadInput(
                self.file,
                "; ".join(self.found),
                "Correct the rows named; docs/matrix.md says how each is written.",
            )
