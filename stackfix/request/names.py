"""Project names."""

from __future__ import annotations

import re

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"


def normalise(name: str) -> str:
    """The name as PEP 503 has it: `flash_attn` and `Flash.Attn` are `flash-attn`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_name(text: str) -> bool:
    """Whether `text` is a project's name and nothing else."""
    return re.fullmatch(NAME, text) is not None


def leading_name(text: str) -> str | None:
    """The project that a requirement line begins with, normalised; None where it begins with none."""
    found = re.match(rf"\s*({NAME})", text)
    return normalise(found[1]) if found else None
