"""Project names."""

from __future__ import annotations

import re


def normalise(name: str) -> str:
    """The name as PEP 503 has it: `flash_attn` and `Flash.Attn` are `flash-attn`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def leading_name(text: str) -> str | None:
    """The project that a requirement line begins with, normalised; None where it begins with none."""
    found = re.match(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)", text)
    return normalise(found[1]) if found else None
