"""By what a finding is known again in another diagnosis of the same environment."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TypeAlias

from stackfix.diagnose.finding_records import SEVERITIES, Diagnosis, Finding

Key: TypeAlias = tuple[str | None, ...]


def key_of(finding: Finding) -> Key:
    """Code, culprit and who is hurt; how bad it is and what is said of it may change."""
    culprit, asks = finding.culprit, finding.requester
    return (finding.code, culprit.path, culprit.package, culprit.variable,
            asks.path if asks else None, asks.package if asks else None)


def is_serious(finding: Finding) -> bool:
    """Whether a repair is for it: a note says what is worth knowing."""
    return finding.severity != "note"


def keys(diagnosis: Diagnosis) -> dict[Key, Finding]:
    """All that is above a note, by key, the worst of each."""
    found: dict[Key, Finding] = {}
    for each in diagnosis.findings:
        if is_serious(each):
            known = found.setdefault(key_of(each), each)
            if SEVERITIES.index(each.severity) < SEVERITIES.index(known.severity):
                found[key_of(each)] = each
    return found


def is_instead(finding: Finding, before: Mapping[Key, Finding], after: Container[Key]) -> bool:
    """Whether what hurts a file now has only come in the place of what hurt it before, no less, and is gone.

    So it is where links and activation cure together, and a process without activation has the links alone.
    """
    hurt = finding.requester.path if finding.requester else None
    return hurt is not None and any(
        key not in after and key[4] == hurt and SEVERITIES.index(each.severity) <= SEVERITIES.index(finding.severity)
        for key, each in before.items())


def in_fixed_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in one order, however they came."""
    return sorted(findings, key=lambda each: (SEVERITIES.index(each.severity), each.code,
                                              *(part or "" for part in key_of(each)), each.summary))
