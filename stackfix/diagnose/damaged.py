"""Files that are there, with the size that their installer stated, and that the loader cannot use."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from stackfix.diagnose.families_parts import named, owner_at, plain
from stackfix.diagnose.faults import find_faults
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_text import level_of, needs_lines, requester_of, seen_error, why_unusable
from stackfix.diagnose.faults_verdict import verdicts
from stackfix.diagnose.finding_records import Culprit, Finding
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.ownership_facts import facts_of
from stackfix.diagnose.records import BadLibrary
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Undecided


def find_unusable_files(view: View) -> Iterator[Finding]:
    """SF702 for what an import opens and the loader refuses. What its size shows, and shadows, are told elsewhere."""
    shadows = {id(each.fault) for each in verdicts(view) if each.kind in {"shadow", "both"}}
    for fault in find_faults(view):
        failure = fault.failure
        if fault.category == "bad" and isinstance(failure, BadLibrary) and id(fault) not in shadows and not (
                facts_of(view).faults.get(posixpath.normpath(failure.path))):
            yield unusable(view, fault, failure)


def find_unjudged(view: View) -> Iterator[Undecided]:
    """Files whose symbols could not be read, so that nothing is known of what they lack or offer."""
    for each in dict.fromkeys(each for opening in view.openings for each in opening.outcome.unjudged):
        yield Undecided(subject=each.path, reason=each.reason)


def unusable(view: View, fault: Fault, failure: BadLibrary) -> Finding:
    """One file that is no library, or not one any more."""
    path = plain(view, failure.path)
    owner = owner_at(view, failure.path)
    if owner is not None:
        of = f" of {named(owner)}"
        why = "It is there, and is not what was installed: damaged on the disk, or half written."
        if failure.crash:
            why = f"{why} {why_unusable(failure)}."
    else:
        of, why = "", "No installer knows the file; it is no library of this machine, or only a part of one."
    hash_it = "whether it has the content that was installed: stackfix check --deep"
    return make_finding(
        "SF702", fault.severity, level=level_of(fault),
        summary=f"{path.rpartition('/')[2]}{of} cannot be loaded: {failure.why}", why=why,
        culprit=Culprit(path=path, package=named(owner)), requester=requester_of(view, fault),
        evidence=(f"{path}: {why_unusable(failure)}", *needs_lines(view, fault)), error=seen_error(failure),
        cure=(reinstall(view, owner), hash_it) if owner is not None else (f"remove or replace {path}",),
        why_not="no installer of the environment knows the file" if owner is None or not view.is_own(failure.path, path)
        else None if view.is_inside(path) else f"{path} lies outside of the environment",
    )
