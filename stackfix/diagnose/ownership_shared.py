"""Files that two packages install with different content: whichever was installed last has overwritten the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stackfix.diagnose.families_parts import named
from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Finding, Requester
from stackfix.diagnose.install_lines import reinstall, uninstall
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.ownership_facts import ASIDE, GONE, facts_of, is_shared_object, listed
from stackfix.diagnose.releases import release_of
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Owner, SharedFile

SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwritten:
    """One contested file."""

    path: str
    claims: tuple[Owner, ...]
    right: tuple[Owner, ...]        # whose content may lie there: several where sizes do not tell
    wanted: Owner | None            # whose content is needed there; None where nothing tells, or several are
    requester: str | None           # path of what maps it
    severity: str


def contested(view: View) -> frozenset[str]:
    """Paths for which several projects state different contents."""
    facts = facts_of(view)
    return frozenset(each.path for each in view.environment.shared_files
                     if differs(each) and not facts.same_project(claim.owner for claim in each.claims))


def differs(shared: SharedFile) -> bool:
    """Whether the claims exclude each other; a link or a rewritten file states no content."""
    sizes = {each.size for each in shared.claims} - {None}
    hashes = {each.sha256 for each in shared.claims} - {None}
    return not shared.same and (len(sizes) > 1 or len(hashes) > 1)


def find_overwritten_files(view: View) -> Iterator[Finding]:
    """SF701: one finding for each set of packages that share files."""
    paths, groups = contested(view), dict[tuple[Owner, ...], list[Overwritten]]()
    for shared in view.environment.shared_files:
        if shared.path in paths:
            owners = tuple(sorted({each.owner for each in shared.claims}))
            groups.setdefault(owners, []).append(judge(view, shared, owners))
    for owners, files in groups.items():
        present = [each for each in files if each.right or is_there(view, each.path)]
        if present:
            yield describe(view, owners, sorted(present, key=rank))


def is_there(view: View, path: str) -> bool:
    """Whether anything lies there: what is gone is damage of both, not a quarrel."""
    return not any(each.kind in GONE for each in facts_of(view).faults.get(path, ()))


def judge(view: View, shared: SharedFile, owners: tuple[Owner, ...]) -> Overwritten:
    """Whose content lies at a path, and whether that is the one which is needed."""
    facts = facts_of(view)
    faulty = {each.owner for each in facts.faults.get(shared.path, ())}
    right = tuple(each for each in owners if each not in faulty)
    opening = facts.mapped.get(shared.path)
    file = Overwritten(path=shared.path, claims=owners, right=right, severity="",
                       wanted=wanted_by(view, opening.project if opening else None, owners),
                       requester=opening.request.name if opening else None)
    return replace(file, severity=severity(view, file, mapped=opening is not None))


def wanted_by(view: View, project: str | None, owners: Sequence[Owner]) -> Owner | None:
    """The one owner that the importing project requires, else that anything requires; None: that does not tell.

    A contested module counts as the project of its first owner, so that it is imported says nothing of who is wanted.
    """
    facts = facts_of(view)
    known = [each for each in owners if facts.projects_of(each)]    # Python sees them; not conda's oldest packages
    if len(known) == 1:
        return known[0]
    over = overlay(view, owners)
    if over is not None:
        return over
    importing = project if project not in {each.name for each in owners} else None
    closure = facts.projects.closure(importing) if importing is not None else frozenset[str]()
    asked = [each for each in owners if closure & {each.name, *facts.projects_of(each)}]
    asked = asked or [each for each in owners if facts.asked_by(each) or facts.extras_asking(each)]
    return asked[0] if len(asked) == 1 else None


def overlay(view: View, owners: Sequence[Owner]) -> Owner | None:
    """The owner that requires all others, and so is meant to lie over them."""
    required = {each: set(facts_of(view).projects.requires.get(each.name, ())) for each in owners}
    return next((each for each in owners if {other.name for other in owners} - {each.name} <= required[each]), None)


def severity(view: View, file: Overwritten, *, mapped: bool) -> str:
    """A library that is mapped and is not the one required fails; other libraries, and code of the stack, may.

    conda and pip never agree on who has a file: two versions of one part of the stack are then a mixture for good.
    """
    owners, lost = file.claims, file.wanted is not None and file.wanted not in file.right
    if not lost and file.wanted is not None and file.wanted == overlay(view, owners):
        return "note"       # as it is meant
    in_stack = any(facts_of(view).level(each) for each in owners)
    if is_shared_object(file.path):
        mixture = len({each.manager for each in owners}) > 1 and len({release_of(each.version) for each in owners}) > 1
        return "error" if mapped and (lost or (in_stack and mixture)) else "warning"
    return "warning" if file.path.endswith(".py") and in_stack and not ASIDE.search(file.path) else "note"


def rank(file: Overwritten) -> tuple[int, str]:
    return SEVERITIES.index(file.severity), file.path


def describe(view: View, owners: tuple[Owner, ...], files: Sequence[Overwritten]) -> Finding:
    """One finding; `files` come worst first."""
    facts, worst = facts_of(view), files[0]
    there, wanted = worst.right[0] if len(worst.right) == 1 else None, worst.wanted
    number = len(files)
    intruder = next((each for each in owners if each != wanted), None) if wanted else there
    return make_finding(
        "SF701", worst.severity, level=next(filter(None, map(facts.level, owners)), "environment"),
        summary=f"{listed(owners)} install {number} file{'' if number == 1 else 's'} of the same name with different "
                f"content",
        why=reason(worst, there),
        culprit=Culprit(path=worst.path, package=named(intruder)),
        requester=Requester(path=worst.requester, package=named(wanted)) if worst.requester or wanted else None,
        evidence=tuple(evidence(view, files)),
        cure=cure(view, owners, worst),
        why_not=why_not(view, worst),
    )


def why_not(view: View, file: Overwritten) -> str | None:
    if file.severity == "note":
        return "nothing is broken"
    if file.wanted is None:
        return "which of the packages is wanted cannot be told"
    return None if view.is_inside(file.path) else f"{file.path} lies outside of the environment"


def reason(file: Overwritten, there: Owner | None) -> str:
    """Whose content lies there, and what that means."""
    if not file.right:
        content = "What lies there is neither's"
    elif there is None:
        content = "All state one size, so only a comparison of contents (--deep) tells whose lies there"
    else:
        content = f"What lies there is that of {named(there)}"
    follows = "the package that was installed last has overwritten the other, and removing either takes files of both"
    if file.wanted is not None and file.wanted not in file.right:
        follows = f"{named(file.wanted)} is required, and its content is gone"
    return f"{content}; {follows}."


def evidence(view: View, files: Sequence[Overwritten]) -> Iterator[str]:
    shared = {each.path: each for each in view.environment.shared_files}
    for file in files[:SHOWN]:
        claims = ", ".join(f"{named(each.owner)}: {each.size if each.size is not None else 'unknown'} bytes"
                           for each in shared[file.path].claims)
        yield f"{file.path} ({claims})"
    if len(files) > SHOWN:
        yield f"and {len(files) - SHOWN} more"
    for owner in files[0].claims:
        yield f"{named(owner)} is {facts_of(view).said_of(owner)}"


def cure(view: View, owners: Sequence[Owner], file: Overwritten) -> tuple[str, ...]:
    """Commands: take the others away, then put the wanted one's files back."""
    if file.severity == "note":
        return ()
    if file.wanted is None:
        return tuple(f"{reinstall(view, each)}  # if {named(each)} is the one that you need" for each in owners)
    others = [each for each in owners if each != file.wanted]
    facts = facts_of(view)
    unasked = [each for each in others if not facts.asked_by(each) and not facts.extras_asking(each)]
    return (*(uninstall(view, each) for each in unasked),
            f"{reinstall(view, file.wanted)}  # {'then ' if unasked else ''}put the files of {named(file.wanted)} back",
            *(f"keep {named(each)} in an environment of its own" for each in others if each not in unasked))
