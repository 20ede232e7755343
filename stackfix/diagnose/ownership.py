"""Files of installed packages that are missing or changed, package by package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackfix.diagnose.families_parts import named, owner_at, plain
from stackfix.diagnose.faults_text import file_name
from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Finding, Requester
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.links_lost import lost_links
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.missing_told import told_as_missing, told_as_unfit
from stackfix.diagnose.ownership_facts import ASIDE, CHANGED, GONE, Facts, Need, facts_of, is_shared_object
from stackfix.diagnose.ownership_shared import contested
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import FileFault, Owner
from stackfix.inspect.machine_records import Undecided

SHOWN = 12                      # paths that a finding lists
MANY = 10                       # edits by hand are few
WORDS = {"missing": "missing", "broken-link": "a link to nowhere", "no-file": "not a file", "size": "of another size",
         "hash": "of another content", "outside": "outside of the environment"}

WHY_GONE = {
    "missing": "Its installer recorded files that are not there: they were deleted by hand, or removed together with "
               "another package that had files of the same names.",
    "broken-link": "A link lies where its installer recorded a file, and leads nowhere: its target was deleted or "
                   "moved.",
    "no-file": "Something else, such as a folder, lies where its installer recorded a file.",
}
WHY_CHANGED = "Its installer recorded other contents: the files were edited, stripped, or written by something else."


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One file at fault, and how much it matters."""

    fault: FileFault
    severity: str
    need: Need | None


def find_damaged_packages(view: View) -> Iterator[Finding | Undecided]:
    """SF702: one finding for each package. What SF201, SF401, SF701, SF703 or SF801 tells is left to it."""
    facts = facts_of(view)
    disputed, lost, missed = contested(view), {each.path for each in lost_links(view)}, told_as_missing(view)
    unfit = told_as_unfit(view)
    groups: dict[Owner, list[FileFault]] = {}
    for each in view.environment.file_faults:
        elsewhere = each.path in lost or each.owner in facts.twice or (
            each.kind in GONE and each.owner in missed) or (
            each.kind in CHANGED and each.path in disputed | unfit) or (
            each.kind == "broken-link" and is_shared_object(each.path))
        if not elsewhere:
            groups.setdefault(each.owner, []).append(each)
    for owner, faults in groups.items():
        closed = [each for each in faults if each.kind == "unreadable"]
        if closed:
            yield Undecided(subject=f"files of {named(owner)}",
                            reason=f"{counted(len(closed), 'file')} cannot be read, {closed[0].path} for one")
        judged = [each for each in faults if each.kind != "unreadable"]
        if judged:
            yield describe(view, owner, sorted(weigh(facts, judged), key=rank))


def weigh(facts: Facts, faults: Sequence[FileFault]) -> Iterator[Damage]:
    changed_code = sum(each.kind in CHANGED and is_code(each.path) for each in faults)
    for each in faults:
        need = need_of(facts, each)
        yield Damage(fault=each, need=need, severity=severity(each, need, many=changed_code > MANY))


def need_of(facts: Facts, fault: FileFault) -> Need | None:
    """Why a shared object is needed: it is missed, or an import fails on what became of it."""
    if not is_shared_object(fault.path):
        return None
    need = facts.need(fault.path) if fault.kind in GONE else None
    if need is None and fault.kind in CHANGED:
        return facts.failed(fault.path) or facts.cut_short(fault.path)
    return need or facts.failed(fault.path)             # a folder in its place fails, and is not missed


def severity(fault: FileFault, need: Need | None, *, many: bool) -> str:
    """A library that is needed fails; code may. Data, tests and headers are asked for by few.

    A changed library that loads is a warning: images strip libraries, and people patch their search paths.
    """
    if need is not None:
        return "error"
    if fault.kind == "outside" or ASIDE.search(fault.path):
        return "note"
    if is_shared_object(fault.path):
        return "warning"
    if is_code(fault.path):
        return "warning" if fault.kind in GONE or many else "note"
    return "note"


def is_code(path: str) -> bool:
    return path.endswith(".py") and not ASIDE.search(path) and "/bin/" not in path


def rank(damage: Damage) -> tuple[int, str]:
    return SEVERITIES.index(damage.severity), damage.fault.path


def describe(view: View, owner: Owner, damages: Sequence[Damage]) -> Finding:
    """One finding for a package; `damages` come worst first."""
    facts, worst = facts_of(view), damages[0]
    asked = facts.asked_by(owner)
    need = worst.need
    only_outside = all(each.fault.kind == "outside" for each in damages)
    return make_finding(
        "SF702", worst.severity, level=facts.level(owner) or "environment",
        summary=f"{named(owner)} is not as it was installed: {summed_up(damages)}",
        why=reason(damages, only_outside=only_outside),
        culprit=Culprit(path=worst.fault.path, package=named(owner)),
        requester=requester_of(view, need, asked),
        evidence=tuple(evidence(damages)) + ((f"required by {', '.join(asked)}",) if asked else ()),
        error=need.error if need else None,
        cure=(reinstall(view, owner),) if not only_outside else (),
        why_not=why_not(view, owner, worst),
    )


def requester_of(view: View, need: Need | None, asked: Sequence[str]) -> Requester | None:
    """Who misses the file, else who requires the package."""
    path = plain(view, need.requester) if need and need.requester else None
    package = named(owner_at(view, path))
    if path is None and not asked:
        return None
    return Requester(path=path, package=package or next(iter(asked), None))


def summed_up(damages: Sequence[Damage]) -> str:
    """`3 files are missing, 1 file is of another size`."""
    counts: dict[str, int] = {}
    for each in damages:
        word = WORDS[each.fault.kind]
        counts[word] = counts.get(word, 0) + 1
    return ", ".join(f"{counted(number, 'file')} {'is' if number == 1 else 'are'} {word}"
                     for word, number in counts.items())


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def reason(damages: Sequence[Damage], *, only_outside: bool) -> str:
    if only_outside:
        return "Its RECORD names paths that lie outside of the environment; they were not looked at."
    kinds = {each.fault.kind for each in damages}
    told = [sentence for kind, sentence in WHY_GONE.items() if kind in kinds] or [WHY_CHANGED]
    unusable = unusable_of(damages[0])
    if unusable:
        told.append(f"{file_name(damages[0].fault.path)} {unusable}.")
    return " ".join(told)


def unusable_of(damage: Damage) -> str | None:
    """`cannot be loaded: file too short`; of what no opening fails on, only what was seen of the file."""
    need = damage.need
    if need is None or need.unusable is None:
        return None
    return f"{'is' if need.opening is None else 'cannot be loaded:'} {need.unusable}"


def evidence(damages: Sequence[Damage]) -> Iterator[str]:
    for each in damages[:SHOWN]:
        fault = each.fault
        stated = f", {fault.found} instead of {fault.expected}" if fault.kind in CHANGED else ""
        yield f"{WORDS[fault.kind]}: {fault.path}{stated}"
        if each.need is not None and each.need.unusable is not None:
            yield f"{'cannot be loaded' if each.need.opening else 'damaged'}: {fault.path}: {each.need.unusable}"
        if each.need is not None and each.need.requester is not None:
            yield f"needed by {each.need.requester}" + (f" ({each.need.opening.what})" if each.need.opening else "")
    if len(damages) > SHOWN:
        yield f"and {counted(len(damages) - SHOWN, 'more file')}"


def why_not(view: View, owner: Owner, worst: Damage) -> str | None:
    if worst.severity == "note":
        return "nothing is broken"
    if owner.manager == "system":
        return "it belongs to the system's own packages"
    return None if view.is_inside(worst.fault.path) else f"{worst.fault.path} lies outside of the environment"
