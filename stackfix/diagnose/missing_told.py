"""Which lost or changed files are told as missing or unfit libraries, so that they are not told as damage too."""

from __future__ import annotations

from stackfix.diagnose.faults_verdict import verdicts
from stackfix.diagnose.missing import missing_faults, recorded_and_gone
from stackfix.diagnose.missing_carriers import gone_files
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Owner


def told_as_missing(view: View) -> frozenset[Owner]:
    """Owners of recorded libraries that are gone, of which SF401 or SF403 speaks: it names all that is gone."""
    found = set()
    for fault in missing_faults(view):
        gone = recorded_and_gone(view, fault) if fault.severity != "note" else None
        found |= {gone.owner} if gone else set()
    for opening in view.openings if view.environment.file_faults else ():
        for edge in opening.outcome.edges if opening.may_fail is None else ():
            provider = opening.outcome.attempted.objects[edge.provider]
            if view.family_of(edge.name) is not None and not view.is_own(provider.path, provider.real_path):
                found |= {each.owner for each in gone_files(view, edge.name)}
    return frozenset(found)


def told_as_unfit(view: View) -> frozenset[str]:
    """Paths of the environment's own libraries that lack what is needed: SF201 says so, and what became of them."""
    copies = (each.regular or each.winner for each in verdicts(view)
              if each.kind in {"own", "both"} and each.fault.category != "bad" and each.fault.severity != "note")
    return frozenset(path for each in copies for path in (each.path, each.real_path))
