"""Activation: folders put first on the loader's path, elements taken out of it, other variables set."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.plumbing import elements, find_broad_paths, needed_libraries, runs_here
from stackfix.diagnose.provenance import LIBRARY_PATH, PRELOAD
from stackfix.diagnose.situation import View
from stackfix.inspect.records import ElfObject, FileAt
from stackfix.plan.effect_environment import NO_USER_SITE, PYTHON_PATH
from stackfix.plan.effect_records import Effect, Linked, Variable
from stackfix.plan.names_paths import folder_of, is_broad, is_inside, relative
from stackfix.plan.rules_seen import behind, beside, lost

NARROW = "lib/stackfix"         # below the prefix: links to single libraries of a folder that holds everything
FOR_PATH = frozenset({"SF101", "SF302", "SF402", "SF802", "SF903", "SF1101"})
FOR_ELEMENTS = frozenset({"SF101", "SF302", "SF803", "SF804", "SF903", "SF1102"})


def by_activation(view: View, finding: Finding) -> Iterator[Effect]:
    """Few folders first, else the bad element out."""
    if finding.code == "SF704":
        yield from without_site(view, finding)
    if finding.code == "SF1103":
        yield Effect(variables=(Variable(name=LIBRARY_PATH, without=("",)),))
    if finding.code in FOR_PATH and finding.culprit.variable != PRELOAD:
        yield from folders_first(view, finding)
    if finding.code in FOR_ELEMENTS:
        yield from without_element(view, finding)


def without_site(view: View, finding: Finding) -> Iterator[Effect]:
    """The user's own site folder switched off, or the folder taken out of PYTHONPATH."""
    if finding.culprit.variable != PYTHON_PATH:
        yield Effect(variables=(Variable(name=NO_USER_SITE, value="1"),))
        return
    path = finding.winner or finding.culprit.path or ""
    bad = tuple(each.path for each in view.environment.sites
                if each.kind == PYTHON_PATH and (path == each.path or path.startswith(f"{each.path}/")))
    if bad:
        yield Effect(variables=(Variable(name=PYTHON_PATH, without=bad),))


def by_kernels(view: View, finding: Finding) -> Iterator[Effect]:
    """The folders that a notebook lacks, in the kernel.json files of the prefix; activation names them, too."""
    kernels = own_kernels(view)
    folders = tuple(dict.fromkeys(posixpath.normpath(each[0]) for each in needed_libraries(view) if each[0]))
    if finding.code == "SF1104" and kernels and folders:
        yield Effect(kernels=kernels, variables=(Variable(name=LIBRARY_PATH, first=folders),))


def own_kernels(view: View) -> tuple[str, ...]:
    """The kernel.json files of the prefix that start its Python."""
    return tuple(sorted(each.path for each in view.environment.kernels
                        if is_inside(view, each.path) and runs_here(view, each)))


def folders_first(view: View, finding: Finding) -> Iterator[Effect]:
    """The folders of the libraries that ought to be taken, first."""
    if finding.code == "SF802":
        yield from folder_of_driver(view, finding)
        return
    direct = lost(view, finding)
    for libraries in dict.fromkeys((direct, behind(view, direct), behind(view, beside(view, finding)))):
        # no link leads out of the prefix
        if libraries and not any(is_broad(view, folder_of(each)) and not is_inside(view, each) for each in libraries):
            yield with_folders(view, libraries)


def folder_of_driver(view: View, finding: Finding) -> Iterator[Effect]:
    """Where the file behind a bare name lies outside, in a folder that holds little else: WSL's."""
    wsl = view.machine.wsl.library_folder if view.machine.wsl else None
    if finding.loser is not None and not is_inside(view, finding.loser) and folder_of(finding.loser) == wsl:
        yield Effect(variables=(Variable(name=LIBRARY_PATH, first=(wsl,)),))


def with_folders(view: View, libraries: tuple[str, ...]) -> Effect:
    """These libraries before all others. Of a folder that holds everything only links to them are named."""
    first, links = dict[str, None](), set[Linked]()
    for path in libraries:
        if not is_broad(view, folder_of(path)):
            first.setdefault(folder_of(path))
            continue
        narrow = f"{view.environment.prefix}/{NARROW}"
        first.setdefault(narrow)
        for each in (path, *needed_beside(view, path)):
            link = f"{narrow}/{posixpath.basename(each)}"
            links.add(Linked(path=link, target=relative(each, link)))
    return Effect(links=tuple(sorted(links)), variables=(Variable(name=LIBRARY_PATH, first=tuple(first)),))


def needed_beside(view: View, path: str) -> Iterator[str]:
    """What a library needs and finds in its own folder: it has to come with it."""
    at, folder = view.files.at(path), folder_of(path)
    for name in at.elf.needed if isinstance(at, FileAt) and isinstance(at.elf, ElfObject) else ():
        if isinstance(view.files.at(f"{folder}/{name}"), FileAt):
            yield f"{folder}/{name}"


def without_element(view: View, finding: Finding) -> Iterator[Effect]:
    """The variable without what leads to the winner."""
    if finding.culprit.variable == PRELOAD:
        text = view.situation.loader.preload or ""
        found = [each for each in re.split("[: ]", text) if each and is_winner(view, each, finding)]
        if found:
            yield Effect(variables=(Variable(name=PRELOAD, without=tuple(sorted(set(found)))),))
        return
    folders = [folder_of(finding.winner)] if finding.winner else []
    if finding.code == "SF1102":
        folders = broad_element(view, finding)
    bad = {each for each in elements(view) if each and posixpath.normpath(each) in folders}
    if bad:
        yield Effect(variables=(Variable(name=LIBRARY_PATH, without=tuple(sorted(bad))),))


def is_winner(view: View, name: str, finding: Finding) -> bool:
    """Whether an element of LD_PRELOAD, a path or a name, is the file that wins."""
    path = finding.winner or ""
    at, other = view.files.at(name) if name.startswith("/") else None, view.files.at(path)
    same = isinstance(at, FileAt) and isinstance(other, FileAt) and at.identity == other.identity
    return name == path or same or ("/" not in name and name == path.rpartition("/")[2])


def broad_element(view: View, finding: Finding) -> list[str]:
    """The folder that an SF1102 is about."""
    return [posixpath.normpath(each) for each in elements(view) if each and any(
        other == finding and f" {each}" in other.summary for other in find_broad_paths(view))]
