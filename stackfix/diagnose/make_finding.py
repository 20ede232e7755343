"""Findings by their code."""

from __future__ import annotations

from stackfix.diagnose.codes import BY_CODE
from stackfix.diagnose.finding_records import BuiltFor, Culprit, Finding, Install, Requester


def make_finding(       # noqa: PLR0913 - Finding's own fields
    code: str, severity: str, *, summary: str, why: str, culprit: Culprit, level: str | None = None,
    requester: Requester | None = None, symbols: tuple[str, ...] = (), evidence: tuple[str, ...] = (),
    error: str | None = None, winner: str | None = None, loser: str | None = None, cure: tuple[str, ...] = (),
    why_not: str | None = None, installs: tuple[Install, ...] = (), built_for: BuiltFor | None = None,
) -> Finding:
    """A finding with its code's kind and level; repairable unless `why_not` says why not."""
    known = BY_CODE[code]
    return Finding(
        code=code, kind=known.kind, severity=severity, level=level or known.level or "extensions", summary=summary,
        why=why, culprit=culprit, requester=requester, symbols=symbols, evidence=evidence, error=error, winner=winner,
        loser=loser, cure=cure, repairable=why_not is None, why_not=why_not,
        installs=installs, built_for=built_for,
    )
