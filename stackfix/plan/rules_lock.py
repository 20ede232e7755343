"""Toward a lockfile: which of the releases that it pins otherwise may cure a finding. torch is not among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.imports_projects import SEPARATORS
from stackfix.diagnose.provenance import owner_of
from stackfix.diagnose.situation import View
from stackfix.plan.install_choice import Wanted
from stackfix.plan.rules_install import package_name


def toward(view: View, finding: Finding, pinned: Sequence[Wanted]) -> Iterator[tuple[Wanted, ...]]:
    """Sets of pins that the finding names, fewest first: each package alone, then all of them."""
    named = dict.fromkeys(named_by(view, finding))
    found = [each for name in named for each in pinned if each.project == name]
    yield from ((each,) for each in found)
    if len(found) > 1:
        yield tuple(found)


def named_by(view: View, finding: Finding) -> Iterator[str]:
    """Projects that a finding is about: its own packages, and those of its files."""
    asks = finding.requester
    for package in (finding.culprit.package, asks.package if asks else None):
        if name := package_name(package):
            yield SEPARATORS.sub("-", name).lower()
    for path in (finding.culprit.path, asks.path if asks else None, finding.winner, finding.loser):
        owner = owner_of(view, path, path) if path is not None else None
        if owner is not None:
            yield owner.name
