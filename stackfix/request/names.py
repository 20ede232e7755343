"""Project names."""

from __future__ import annotations

import re


def normalise(name: str) -> str:
    """The name as PEP 503 has it: `flash_attn` and `Flash.Attn` are `flash-attn`."""
    return re.sub(r"[-_.]+", "-", name).lower()
