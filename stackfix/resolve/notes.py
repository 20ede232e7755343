"""What the user should know of a decision beyond its result."""

from __future__ import annotations

from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.solve import Solved


def notes_of(evidence: Evidence, flash: FlashAttn, solved: Solved) -> tuple[str, ...]:
    """Notes in a fixed order, each a sentence."""
    return ()
