"""What the simulated imports show of a finding: which libraries of the environment ought to have been loaded, and when.

lost: the copies that ought to be taken, by path
needing: the openings that take another one, or find none
Modules.of: the package whose execution such an opening is a part of
"""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.families_parts import plain
from stackfix.diagnose.faults import find_faults, own_copies
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.imports_projects import Projects
from stackfix.diagnose.missing import reachable_copy
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.records import ElfObject, FileAt
from stackfix.plan.effect_imports import packages
from stackfix.plan.names_paths import folder_of


def lost(view: View, finding: Finding) -> tuple[str, ...]:
    """The copies at hand that the finding is about: the loser, else all that a requester does not reach."""
    if finding.code == "SF402":
        return tuple(dict.fromkeys(copy.path for _, copy in unreached(view, finding)))
    found = finding.loser
    return (found,) if found is not None and view.is_at_hand(found) and is_library(view, found) else ()


def beside(view: View, finding: Finding) -> tuple[str, ...]:
    """All libraries that are taken from the winner's folder and lie in the loser's, too: parts of one library."""
    if finding.winner is None or finding.loser is None or not view.is_at_hand(finding.loser):
        return ()
    theirs, ours = folder_of(finding.winner), folder_of(finding.loser)
    found = dict[str, None]()
    for opening in view.openings:
        state = opening.outcome.attempted
        for edge in opening.outcome.edges:
            name = edge.name.rpartition("/")[2]
            if folder_of(plain(view, state.objects[edge.provider].path)) == theirs:
                found.setdefault(f"{ours}/{name}")
    return tuple(path for path in found if is_library(view, path))


def unreached(view: View, finding: Finding) -> Iterator[tuple[Fault, FileAt]]:
    """What the requester of an SF402 does not reach, and the copies that are there."""
    asks = finding.requester.path if finding.requester else None
    for fault in find_faults(view):
        mine = fault.requester.path if fault.requester else None
        if fault.category != "missing" or (mine is not None and plain(view, mine) != asks) or (
                mine is None and asks is not None):
            continue
        copy = reachable_copy(view, fault)
        at = view.files.at(copy.path) if copy is not None and view.is_at_hand(copy.path) else None
        if isinstance(at, FileAt):
            yield fault, at


def behind(view: View, paths: tuple[str, ...]) -> tuple[str, ...]:
    """These libraries and what they need in turn, as far as the environment has it and they have no way to it."""
    found, ahead = dict.fromkeys(paths), list(paths)
    while ahead:
        at = view.files.at(ahead.pop(0))
        elf = at.elf if isinstance(at, FileAt) else None
        for name in elf.needed if isinstance(elf, ElfObject) and not elf.runpath and not elf.rpath else ():
            copy = next((each for each in own_copies(view, name) if view.is_at_hand(each)), None)
            if copy is not None and copy not in found:
                found[copy] = None
                ahead.append(copy)
    return tuple(found)


def needing(view: View, finding: Finding, libraries: tuple[str, ...]) -> Iterator[Opening]:
    """Openings that newly map another copy of one of these libraries, or fail for want of it."""
    names, own = {each.rpartition("/")[2] for each in libraries}, set(libraries)
    for opening in view.openings:
        state, outcome = opening.outcome.attempted, opening.outcome
        other = any(plain(view, each.path) == finding.winner or (each.elf.soname in names and
                    plain(view, each.path) not in own) for each in (state.objects[at] for at in outcome.loaded))
        if other or any(getattr(each, "name", None) in names for each in outcome.failures):
            yield opening


def is_library(view: View, path: str) -> bool:
    """Whether a library lies there that the loader can open."""
    at = view.files.at(path)
    return isinstance(at, FileAt) and isinstance(at.elf, ElfObject)


class Modules:
    """Which package an opening is a part of: what Python executes first, when it imports that."""

    def __init__(self, view: View) -> None:
        projects = Projects(view.environment, view.libraries)
        self._view = view
        self._rows = {name: row.module for name, row in projects.rows.items()}
        self._sites = {name: f"{each.site}/" for name, each in projects.distributions.items()}
        self._files = {each.path: each.module for each in view.environment.shared_objects if each.module}
        self._first = {project: objects[0].path for project, objects in projects.modules.items() if project and objects}

    def of(self, opening: Opening) -> str | None:
        """The name to which the hook listens; None where Python's own code opens nothing of it."""
        project, path = opening.project or "", opening.request.name
        row, base = self._rows.get(project), self._sites.get(project, "/")
        if row is not None and opening.phase != "module" and (found := self._executed(row, base)):
            return found
        if row is not None and path.startswith(base):       # a file of a package without code of its own name
            inside = path.removeprefix(base).partition(".")[0].replace("/", ".")
            if found := self._executed(inside, base):
                return found
        path = path if path in self._files else self._first.get(project, "")
        module = self._files.get(path)
        if module is None:
            return None
        folders = path.split("/")[:-len(module.split("."))]
        return self._executed(module, "/".join(folders) + "/") or module

    def _executed(self, module: str, base: str) -> str | None:
        """The first of its packages that has code: folders without an __init__.py are only names."""
        at = self._view.files.at
        return next((each for each in packages(module) if at(f"{base}{each.replace('.', '/')}/__init__.py") is not None
                     or at(f"{base}{each.replace('.', '/')}.py") is not None), None)
