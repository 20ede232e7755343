"""Which packages' lost files are told as missing libraries, so that they are not told as damage too."""

from __future__ import annotations

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
