"""Library links that lead nowhere or are gone, and names without a version that a library opens and nobody has."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator

from stackfix.diagnose.families_parts import named, owner_at, plain
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.links_broken import find_links_to_nowhere, level_of
from stackfix.diagnose.links_lost import LostLink, lost_links
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.records import Failure, MissingLibrary, MissingSymbol, MissingVersion
from stackfix.diagnose.situation import Opening, View


def find_broken_links(view: View) -> Iterator[Finding]:
    """SF801: links to nowhere, and sonames whose link is gone."""
    for each in lost_links(view):
        finding = judge_lost(view, each)
        if finding is not None:
            yield finding
    yield from find_links_to_nowhere(view)


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
        cure=(shlex.join(("ln", "-s", name, lost.path)),
              *((f"{reinstall(view, owner)}  # or so",) if owner else ())),
        why_not=None if view.is_inside(lost.path) else f"{lost.path} lies outside of the environment",
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
