"""Library links that lead nowhere, one finding for what was installed together."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stackfix.diagnose.families_parts import named, owner_at, plain
from stackfix.diagnose.faults import own_copies
from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Finding, Requester
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.ownership_facts import facts_of
from stackfix.diagnose.records import MissingLibrary
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.environment_records import Owner, SharedObject
from stackfix.inspect.records import ElfObject, FileAt, Refused

VERSIONED = re.compile(r"\.so\.\d")
SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """One link, and whether an import needs it."""

    link: SharedObject
    target: str                     # path that its text names
    owner: Owner | None
    opening: Opening | None         # that fails without it
    failure: MissingLibrary | None

    @property
    def path(self) -> str:
        return self.link.path

    @property
    def severity(self) -> str:
        """Names for compilers are often left dangling on purpose: nothing is built here."""
        if self.failure is not None:
            return "error"
        return "warning" if self.owner and VERSIONED.search(self.path.rpartition("/")[2]) else "note"


def find_links_to_nowhere(view: View) -> Iterator[Finding]:
    """SF801: one finding for a package; one for all of unknown packages that lead out, as into a cleared cache."""
    objects = {each.path: each for each in view.environment.shared_objects}
    groups: dict[Owner | str, list[Broken]] = {}
    for link in objects.values():
        if link.link is not None and not is_end(objects, link) and leads_nowhere(view.files.at(link.path)):
            broken = judge(view, link)
            leads_out = (link.link or "").startswith("/") and not view.is_own(broken.target)
            groups.setdefault(broken.owner or ("" if leads_out else link.path), []).append(broken)
    for group in groups.values():
        yield describe(view, sorted(group, key=lambda each: (SEVERITIES.index(each.severity), each.path)))


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


def judge(view: View, link: SharedObject) -> Broken:
    missing = facts_of(view).missing
    opening, failure = missing.get(link.path) or missing.get(link.path.rpartition("/")[2]) or (None, None)
    needed = opening is not None and opening.may_fail is None and failure is not None and (
        failure.name == link.path or any(posixpath.normpath(each.path) == link.path for each in failure.tried))
    return Broken(link=link, target=target_of(link), owner=next(iter(view.owners(link.path)), None),
                  opening=opening if needed else None, failure=failure if needed else None)


def describe(view: View, group: Sequence[Broken]) -> Finding:
    """One finding; the worst link comes first."""
    one, more = group[0], len(group) - 1
    instead = meant(view, one)
    requester = one.failure.requester if one.failure else None
    return make_finding(
        "SF801", one.severity, level=level_of(view, one.path.rpartition("/")[2]),
        summary=f"{one.path} is a link that leads nowhere" + (
            f", and so {'is' if more == 1 else 'are'} {more} more" if more else ""),
        why=reason(group), culprit=Culprit(path=one.path, package=named(one.owner)),
        requester=Requester(path=plain(view, requester), package=named(owner_at(view, requester)))
        if requester else None,
        evidence=(*(f"{each.path} -> {each.link.link}" for each in group[:SHOWN]),
                  *((f"and {len(group) - SHOWN} more",) if len(group) > SHOWN else ()),
                  *((f"seen at: {one.opening.what}",) if one.opening else ())),
        error=error_of(view, one.link, one.failure) if one.failure else None,
        winner=one.path if instead else None, loser=instead, cure=cure(view, one, instead),
        why_not=why_not(view, one, instead),
    )


def meant(view: View, one: Broken) -> str | None:
    """A library of the environment of the name that nobody's link, made by hand, takes the place of."""
    if one.owner is not None or one.failure is None or not view.is_own(one.path):
        return None
    copies = own_copies(view, one.path.rpartition("/")[2])
    return next((each for each in copies if each != one.path and view.owners(each) and isinstance(
        at := view.files.at(each), FileAt) and isinstance(at.elf, ElfObject)), None)


def reason(group: Sequence[Broken]) -> str:
    one = group[0]
    if len(group) == 1:
        return f"It names {one.link.link}, and there is no file." if one.target != one.path else "It names itself."
    folder = posixpath.commonpath([each.target.rpartition("/")[0] for each in group])
    return (f"They name files below {folder}, which are not there. What is installed as links, as uv does with "
            "`--link-mode symlink`, ends when the cache that they lead to is cleared." if one.owner is None else
            f"They name files below {folder}, which are not there.")


def cure(view: View, one: Broken, instead: str | None) -> tuple[str, ...]:
    if one.owner is not None:
        return (reinstall(view, one.owner),)
    if instead is not None:
        return (shlex.join(("ln", "-sfn", posixpath.relpath(instead, posixpath.dirname(one.path)), one.path)),)
    if one.severity == "note":
        return (shlex.join(("rm", one.path)),)
    return (f"put {one.target} back, or install the package of {one.path} again, as files and not as links",)


def why_not(view: View, one: Broken, instead: str | None) -> str | None:
    if one.severity == "note":
        return "nothing is broken"
    if one.owner is None and instead is None:
        return "no package is known that has the file"
    return None if view.is_inside(one.path) else f"{one.path} lies outside of the environment"


def error_of(view: View, link: SharedObject, failure: MissingLibrary) -> str:
    """The loader's line: for a name it only says that nothing was found, for a path it says why."""
    loop = failure.name == link.path and isinstance(view.files.at(link.path), Refused)
    return (replace(failure, why="Too many levels of symbolic links") if loop else failure).message()


def level_of(view: View, soname: str) -> str:
    family = view.family_of(soname)
    return family.level if family else "environment"
