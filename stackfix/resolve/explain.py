"""Why no stack answers a question, from our own records."""

from __future__ import annotations

from collections.abc import Callable

from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.records import NoConsistentStack, StackRequest
from stackfix.resolve.solve import Failure


def refuse(
    evidence: Evidence, flash: FlashAttn, failure: Failure, command: Callable[[StackRequest], str]
) -> NoConsistentStack:
    """The refusal."""
    return NoConsistentStack(headline="no stack meets the request", causes=())
