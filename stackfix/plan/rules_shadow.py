"""A copy in the prefix that stands before the right one and belongs to nobody: set aside, and kept."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.faults_verdict import is_nobodys
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.situation import View
from stackfix.inspect.records import FileAt
from stackfix.plan.effect_records import Effect
from stackfix.plan.names_paths import is_inside

CODES = frozenset({"SF101", "SF301", "SF302", "SF403", "SF801", "SF803", "SF804", "SF903", "SF1102"})


def by_removal(view: View, finding: Finding) -> Iterator[Effect]:
    """Without the winner, where no installer knows it: what a package has is the package's to remove."""
    path = finding.winner
    if finding.code in CODES and path is not None and is_inside(view, path):
        at = view.files.at(path)
        is_file = isinstance(at, FileAt) or finding.code == "SF801"       # a link that leads nowhere is no file
        if is_file and is_nobodys(view, path, getattr(at, "real_path", path)):
            yield Effect(gone=(path,))
