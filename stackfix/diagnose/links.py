"""Library links that lead nowhere or are gone, and names without a version that a library opens and nobody has."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from stackfix.diagnose.families_parts import named, owner_at, plain
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.links_lost import LostLink, lost_links
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.ownership_facts import facts_of
from stackfix.diagnose.records import Failure, MissingLibrary, MissingSymbol, MissingVersion
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.environment_records import SharedObject
from stackfix.inspect.records import FileAt, Refused

VERSIONED = re.compile(r"\.so\.\d")


def find_broken_links(view: View) -> Iterator[Finding]:
    """SF801: links to nowhere, and sonames whose link is gone."""
    for each in lost_links(view):
        finding = judge_lost(view, each)
        if finding is not None:
            yield finding
    objects = {each.path: each for each in view.environment.shared_objects}
    for link in objects.values():
        if link.link is not None and not is_end(objects, link) and leads_nowhere(view.files.at(link.path)):
            yield describe_broken(view, link)


def is_end(objects: Mapping[str, SharedObject], link: SharedObject) -> bool:
    """Whether a link leads straight to a file that is known: nearly all do, and those are not opened."""
    target = objects.get(target_of(link))
    return target is not None and target.link is None


def leads_nowhere(at: FileAt | Refused | None) -> bool:
    """Whether nothing can ever be reached; what may not be opened now may be there."""
    return at is None or (isinstance(at, Refused) and "levels of symbolic links" in at.reason)


def target_of(link: SharedObject) -> str:
    """Path that the link's text names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(link.path), link.link or ""))


# --- sonames without their link ---


def judge_lost(view: View, lost: LostLink) -> Finding | None:
    """The finding; None where nobody put a link there and nobody misses it."""
    opening, failure = missed(view, lost)
    if failure is None and not lost.recorded:
        return None
    owner = next(iter(view.owners(lost.path, lost.target)), None)
    instead = taken_instead(view, lost.soname)
    name = lost.target.rpartition("/")[2]
    requester = failure.requester if failure else None
    return make_finding(
        "SF801", "error" if failure else "warning", level=level_of(view, lost.soname),
        summary=f"{lost.path} is gone: {name} is there, and nothing has its soname",
        why=f"The loader looks for a library by its soname only, so it passes over {lost.target}"
            + (f" and takes {instead}." if instead else "."),
        culprit=Culprit(path=lost.path, package=named(owner)),
        requester=Requester(path=plain(view, requester), package=named(owner_at(view, requester)))
        if requester else None,
        symbols=(failure.name,) if isinstance(failure, MissingSymbol) else (),
        evidence=(f"soname of {lost.target}: {lost.soname}",
                  *((f"{named(owner)} recorded {lost.path}",) if owner and lost.recorded else ()),
                  *((f"seen at: {opening.what}",) if opening else ())),
        error=failure.message() if failure else None, winner=instead, loser=lost.target,
        cure=(f"ln -s {name} {lost.path}",
              *((f"or reinstall the package: {reinstall(view, owner)}",) if owner else ())),
        why_not=None if view.is_own(lost.path) else f"{lost.path} lies outside of the environment",
    )


def missed(view: View, lost: LostLink) -> tuple[Opening | None, Failure | None]:
    """The first failure that the link would have prevented."""
    for opening in view.openings:
        for failure in opening.outcome.failures if opening.may_fail is None else ():
            if would_have(failure, lost):
                return opening, failure
    return None, None


def would_have(failure: Failure, lost: LostLink) -> bool:
    """Whether the library behind the link has what is missing."""
    if isinstance(failure, MissingLibrary):
        return failure.name == lost.soname and any(posixpath.normpath(each.path) == lost.path for each in failure.tried)
    if isinstance(failure, MissingVersion):
        return failure.provider.rpartition("/")[2] == lost.soname and failure.version in lost.versions
    return isinstance(failure, MissingSymbol) and failure.file == lost.soname and failure.version in lost.versions


def taken_instead(view: View, soname: str) -> str | None:
    """The file that the imports, or the interpreter itself, take under a soname."""
    states = [view.start, *(each.outcome.attempted for each in view.openings)]
    found = next(filter(None, (state.find(soname) for state in states)), None)
    return plain(view, found.path) if found else None


def level_of(view: View, soname: str) -> str:
    family = view.family_of(soname)
    return family.level if family else "environment"


# --- links to nowhere ---


def describe_broken(view: View, link: SharedObject) -> Finding:
    """A link whose target is not there."""
    name = link.path.rpartition("/")[2]
    missing = facts_of(view).missing
    opening, failure = missing.get(link.path) or missing.get(name) or (None, None)
    needed = opening is not None and opening.may_fail is None and failure is not None and (
        failure.name == link.path or any(posixpath.normpath(each.path) == link.path for each in failure.tried))
    owner = next(iter(view.owners(link.path)), None)
    # names for compilers are often left dangling on purpose: nothing is built here
    severity = "error" if needed else "warning" if owner and VERSIONED.search(name) else "note"
    requester = failure.requester if needed and failure else None
    return make_finding(
        "SF801", severity, level=level_of(view, name),
        summary=f"{link.path} is a link that leads nowhere",
        why=f"It names {link.link}, and there is no file." if target_of(link) != link.path else "It names itself.",
        culprit=Culprit(path=link.path, package=named(owner)),
        requester=Requester(path=plain(view, requester), package=named(owner_at(view, requester)))
        if requester else None,
        evidence=(f"{link.path} -> {link.link}", *((f"seen at: {opening.what}",) if needed and opening else ())),
        error=error_of(view, link, failure) if needed and failure else None,
        cure=(f"reinstall the package: {reinstall(view, owner)}",) if owner else
        (f"remove it: rm {link.path}",),
        why_not="nothing is broken" if severity == "note" else
        None if view.is_own(link.path) else f"{link.path} lies outside of the environment",
    )


def error_of(view: View, link: SharedObject, failure: MissingLibrary) -> str:
    """The loader's line: for a name it only says that nothing was found, for a path it says why."""
    loop = failure.name == link.path and isinstance(view.files.at(link.path), Refused)
    return (replace(failure, why="Too many levels of symbolic links") if loop else failure).message()
