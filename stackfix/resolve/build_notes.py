"""What is to be known of an sdist whose requirements a build told."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.resolve.evidence import Evidence
from stackfix.resolve.needs import Candidate
from stackfix.resolve.records import Target
from stackfix.sources.errors import SdistNeedsBuild


def build_notes(evidence: Evidence, candidate: Candidate, target: Target) -> Iterator[str]:
    """That its code ran, on which machine, and what an installer will do."""
    metadata = evidence.metadata(candidate)
    if isinstance(metadata, SdistNeedsBuild) or metadata.built_on is None:
        return
    yield (
        f"the requirements of {candidate.label} were read by building its sdist on {metadata.built_on}, which runs its"
        " code; an installer builds it again, and the lock does not pin what that build itself needs"
    )
    if metadata.built_on != target.platform:
        yield (
            f"the lock for {target.platform} takes what a build of {candidate.label} on {metadata.built_on} said: on"
            f" {target.platform} a build may ask for other projects"
        )
