"""Copies of the system or of a toolkit that stand in for a library which the environment's packages should bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stackfix.diagnose.families_parts import plain
from stackfix.diagnose.faults import own_copies
from stackfix.diagnose.faults_text import (
    file_name,
    lacks,
    level_of,
    needs_lines,
    placed,
    requester_from,
    requester_of,
    shown_way,
    who_needs,
)
from stackfix.diagnose.faults_verdict import Verdict, verdicts
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.missing_carriers import Carrier, bring, gone_files, required_carriers
from stackfix.diagnose.provenance import describe, named, owner_of, trace
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.environment_records import FileFault
from stackfix.inspect.machine_records import Undecided


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """What should be there instead of a foreign copy."""

    gone: FileFault | None          # a recorded file that is not there
    carrier: Carrier | None         # a required wheel that is not installed

    @property
    def package(self) -> str | None:
        """As findings name it."""
        if self.gone is not None:
            return named(self.gone.owner)
        return self.carrier.requirement if self.carrier else None

    def why(self) -> str:
        if self.gone is not None:
            return f"{named(self.gone.owner)} recorded {self.gone.path}, and the file is gone"
        return f"{self.carrier.why}, and it is not installed" if self.carrier else ""

    def cure(self, view: View) -> str:
        if self.gone is not None:
            return reinstall(view, self.gone.owner)
        return next(bring(view, [self.carrier])) if self.carrier else ""


def find_foreign(view: View) -> Iterator[Finding | Undecided]:
    """SF403: a foreign copy that lacks something is an error, one that does not is a warning."""
    told = set()
    for verdict in verdicts(view):
        if verdict.kind == "foreign":
            told.add(verdict.winner.identity)
            missed = stand_in(view, verdict.fault.name, verdict.fault.requester, verdict.fault.opening)
            if missed is not None:
                yield lacking(view, verdict, missed)
    for opening in view.openings:
        for edge in opening.outcome.edges:
            found = opening.outcome.attempted.objects[edge.provider]
            if found.identity in told or view.family_of(edge.name) is None:
                continue
            told.add(found.identity)
            requester = opening.outcome.attempted.objects[edge.requester] if edge.requester is not None else None
            if not view.is_own(found.path, found.real_path) and not own_copies(view, edge.name):
                missed = stand_in(view, edge.name, requester, opening)
                if missed is not None:
                    yield filling_in(view, edge.name, found, requester, opening, missed)


def stand_in(view: View, name: str, requester: LoadedObject | None, opening: Opening) -> StandIn | None:
    """What should bring the library; None where the requester is meant to take the system's."""
    gone = next(iter(gone_files(view, name)), None)
    if gone is not None:
        return StandIn(gone=gone, carrier=None)
    family = view.family_of(name)
    if family is None or family.level == "driver":
        return None
    owner = owner_of(view, requester.path, requester.real_path) if requester else None
    for carrier in required_carriers(view, family, requester, opening.project):
        # what torch requires says nothing of a library that torch does not ask for
        asks = carrier.why.startswith(f"{owner.name} " if owner else f"{opening.project} ")
        if asks and carrier.name not in view.distributions:
            return StandIn(gone=None, carrier=carrier)
    return None


def lacking(view: View, verdict: Verdict, missed: StandIn) -> Finding:
    """The foreign copy does not even have what is needed."""
    fault, winner = verdict.fault, verdict.winner
    via = winner.via
    cause = trace(view, verdict.winner_object, winner.path, via) if via else None
    return make_finding(
        "SF403", fault.severity, level=level_of(fault),
        summary=f"{placed(view, winner.path, shown_way(cause, via) if cause else None)} stands in for that of "
                f"{missed.package}, and {lacks(fault, who_needs(fault))}",
        why=f"{missed.why()}. {cause.how if cause else winner.path}, so the loader takes that copy instead.",
        culprit=Culprit(path=winner.path, package=missed.package, variable=cause.variable if cause else None),
        requester=requester_of(view, fault), symbols=fault.symbols,
        evidence=(*needs_lines(view, fault), f"taken: {describe(view, winner.path, winner.real_path)}",
                  *(cause.lines if cause else ())),
        error=fault.failure.message(), winner=winner.path, cure=(missed.cure(view), *(cause.undo if cause else ())))


def filling_in(
        view: View, name: str, found: LoadedObject, requester: LoadedObject | None, opening: Opening, missed: StandIn,
) -> Finding:
    """The foreign copy does, for now."""
    path = plain(view, found.path)
    cause, family = trace(view, found, path, found.found_via), view.family_of(name)
    who = file_name(requester.path) if requester else opening.what
    asking = requester_from(view, requester) if requester else Requester()
    return make_finding(
        "SF403", "warning" if opening.may_fail is None else "note", level=family.level if family else "environment",
        summary=f"{placed(view, path, shown_way(cause, found.found_via))} stands in for that of {missed.package}, "
                f"which {who} needs",
        why=f"{missed.why()}. {cause.how}, so the loader takes that copy, whatever its version.",
        culprit=Culprit(path=path, package=missed.package, variable=cause.variable),
        requester=replace(asking, package=asking.package or opening.project),
        evidence=(f"seen at: {opening.what}", f"taken: {describe(view, path, found.real_path)}", *cause.lines),
        winner=path, cure=(missed.cure(view),))
