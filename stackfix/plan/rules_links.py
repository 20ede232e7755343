"""Links: those that are gone or lead nowhere, and names under which a library is opened and does not lie."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.links_broken import leads_nowhere
from stackfix.diagnose.provenance import LIBRARY_PATH
from stackfix.diagnose.situation import View
from stackfix.inspect.records import ElfObject, FileAt
from stackfix.plan.effect_records import Effect, Linked, Variable
from stackfix.plan.names_paths import folder_of, is_broad, is_inside, relative
from stackfix.plan.rules_seen import behind, beside, lost


def by_links(view: View, finding: Finding) -> Iterator[Effect]:
    """Links that would cure it, if their folder is searched before others."""
    if finding.code in {"SF801", "SF802"}:
        yield Effect(links=tuple(named_links(view, finding)))
    elif finding.code in {"SF101", "SF302", "SF402"}:
        for libraries in dict.fromkeys((lost(view, finding), behind(view, beside(view, finding)))):
            yield Effect(links=beside_requester(view, finding, libraries))


def by_links_and_path(view: View, finding: Finding) -> Iterator[Effect]:
    """The same links, in a folder that activation names first."""
    for each in by_links(view, finding):
        folders = tuple(dict.fromkeys(folder_of(link.path) for link in each.links))
        if folders and not any(is_broad(view, folder) for folder in folders):
            yield Effect(links=each.links, variables=(Variable(name=LIBRARY_PATH, first=folders),))


def named_links(view: View, finding: Finding) -> Iterator[Linked]:
    """The link that the finding names, or a new target for all that lead nowhere beside it."""
    path = finding.culprit.path
    if path is None or not is_inside(view, path):
        return
    if finding.loser is not None:
        if is_inside(view, finding.loser):      # no link leads out of the prefix
            yield Linked(path=path, target=relative(finding.loser, path))
        return
    owners = view.owners(path)
    for each in view.environment.shared_objects:
        mine = each.path == path or (owners and each.owners == owners)
        if each.link is not None and mine and is_inside(view, each.path) and leads_nowhere(view.files.at(each.path)):
            target = of_soname(view, each.path)
            if target is not None:
                yield Linked(path=each.path, target=relative(target, each.path))


def of_soname(view: View, path: str) -> str | None:
    """The one file beside a broken link that states its name as DT_SONAME."""
    folder, name = folder_of(path), posixpath.basename(path)
    found = dict[str, str]()            # by identity: links to one file are one
    for each in view.environment.library_folders:
        for other in each.libraries if each.path == folder else ():
            at = view.files.at(f"{folder}/{other}")
            if isinstance(at, FileAt) and isinstance(at.elf, ElfObject) and at.elf.soname == name:
                found.setdefault(at.identity, at.real_path)
    return next(iter(found.values())) if len(found) == 1 and folder_of(next(iter(found.values()))) == folder else None


def beside_requester(view: View, finding: Finding, libraries: tuple[str, ...]) -> tuple[Linked, ...]:
    """Links to libraries in the folder of the file that needs them, under names that are free there."""
    asks = finding.requester.path if finding.requester else None
    if asks is None or not all(is_inside(view, each) for each in (asks, *libraries)):
        return ()       # no link leads out of the prefix
    folder = folder_of(asks)
    return tuple(sorted(Linked(path=f"{folder}/{posixpath.basename(each)}", target=relative(each, f"{folder}/x"))
                        for each in libraries if folder_of(each) != folder
                        and not isinstance(view.files.at(f"{folder}/{posixpath.basename(each)}"), FileAt)))
