"""How a process gets its library path: folders that are too broad, the current folder, kernels without activation."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.families_parts import is_older, named, owner_at, plain, version_of
from stackfix.diagnose.faults_verdict import verdicts
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.plumbing_scripts import PATH, activated_path
from stackfix.diagnose.provenance import script_lines, who_set
from stackfix.diagnose.records import Candidate, Edge, LoadedObject, MissingLibrary
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.environment_records import JupyterKernel
from stackfix.inspect.records import FileAt

STEP = "LD_LIBRARY_PATH"
SET_OUTSIDE = "no file of the environment sets the variable: a shell's start-up file or a job script does"
BROAD = frozenset({"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A library that an opening takes from LD_LIBRARY_PATH."""

    opening: Opening
    edge: Edge
    object: LoadedObject

    @property
    def element(self) -> str:
        return self.edge.found_via.element or ""

    @property
    def requester(self) -> LoadedObject | None:
        state = self.opening.outcome.attempted
        if self.edge.requester is not None:
            return state.objects[self.edge.requester]
        return state.by_identity(self.opening.request.caller) if self.opening.request.caller else None

    def others(self, view: View) -> tuple[Candidate, ...]:
        """What the same search would come to without the variable."""
        state, caller = self.opening.outcome.attempted, self.requester
        number = state.objects.index(caller) if caller is not None else None
        found = view.candidates(self.edge.name, number, state)
        return tuple(each for each in found if each.found_via.step != STEP and each.bad is None)


def taken_from_path(view: View) -> tuple[Taken, ...]:
    """Each library once, with the first opening that takes it; worked out once for a view."""
    remembered = vars(view)         # as functools.cached_property does it
    if "_taken" not in remembered:
        found: dict[str, Taken] = {}
        for opening in view.openings if view.situation.loader.library_path else ():
            for edge in opening.outcome.edges:
                object_ = opening.outcome.attempted.objects[edge.provider]
                if edge.found_via.step == STEP:
                    found.setdefault(object_.path, Taken(opening=opening, edge=edge, object=object_))
        remembered["_taken"] = tuple(found.values())
    answer: tuple[Taken, ...] = remembered["_taken"]
    return answer


def elements(view: View) -> tuple[str, ...]:
    """Elements of LD_LIBRARY_PATH as the loader parts it; none where it is not set, or empty as a whole."""
    text = view.situation.loader.library_path
    return tuple(text.replace(";", ":").split(":")) if text else ()


# --- whole folders ---


def find_broad_paths(view: View) -> Iterator[Finding]:
    """SF1102: a folder that holds everything. A warning where it puts an older library of the GPU stack in front.

    A library that breaks something by it is told by that (SF101): then the folder is only a note.
    """
    told = {each.winner.identity for each in verdicts(view)}
    for element in dict.fromkeys(each for each in elements(view) if is_broad(view, each)):
        taken = [each for each in taken_from_path(view) if same_folder(each.element, element)]
        older = [(each, better) for each in taken if each.object.identity not in told
                 for better in newer_than(view, each)]
        yield describe_broad(view, element, len(taken), older)


def is_broad(view: View, element: str) -> bool:
    folder = posixpath.normpath(element) if element else ""
    multiarch = posixpath.dirname(folder) in {"/lib", "/usr/lib"} and folder.endswith("-linux-gnu")
    conda = view.environment.conda is not None and folder == f"{view.environment.prefix}/lib"
    return folder in BROAD or multiarch or conda


def same_folder(one: str, other: str) -> bool:
    return bool(one) and posixpath.normpath(one) == posixpath.normpath(other)


def newer_than(view: View, taken: Taken) -> Iterator[Candidate]:
    """Copies of a known library that the variable hides and that are newer than the one that it gives."""
    if view.family_of(taken.object.elf.soname or taken.edge.name) is None:
        return
    mine = version_at(view, taken.object.path)
    for each in taken.others(view):
        if is_older(mine, version_at(view, each.path)):
            yield each


def version_at(view: View, path: str) -> str | None:
    file = view.files.at(path)
    if not isinstance(file, FileAt):
        return None
    soname = getattr(file.elf, "soname", None)
    return version_of(file.real_path, soname, owner_at(view, path), view.family_of(soname or ""))


def describe_broad(view: View, element: str, taken: int, older: list[tuple[Taken, Candidate]]) -> Finding:
    one = older[0] if older else None
    set_by, undo = who_set(view, PATH, element)
    return make_finding(
        "SF1102", "warning" if older else "note",
        summary=f"LD_LIBRARY_PATH has the whole of {element}"
                + (f", and an older {older[0][0].edge.name} comes from there" if older else ""),
        why="All libraries of that folder go before those that programs were built to find, in each program that is "
            "started from here; compilers, git and ssh are known to break by it.",
        culprit=Culprit(path=plain(view, one[0].object.path) if one else None, variable=PATH),
        requester=requester_of(view, one[0]) if one else None,
        evidence=(f"LD_LIBRARY_PATH={view.situation.loader.library_path}",
                  *set_by, f"{taken} librar{'y' if taken == 1 else 'ies'} of the imports come from there",
                  *(f"{each.edge.name}: {each.object.path} ({version_at(view, each.object.path)}) before "
                    f"{plain(view, better.path)} "
                    f"({version_at(view, better.path)})" for each, better in older)),
        winner=plain(view, one[0].object.path) if one else None, loser=plain(view, one[1].path) if one else None,
        cure=(*undo, f"take {element} out of LD_LIBRARY_PATH, and name only the folders that are needed"),
        why_not="nothing is broken" if not older else None if is_set_inside(view, element) else SET_OUTSIDE,
    )


def is_set_inside(view: View, element: str) -> bool:
    """Whether a script of the environment, or conda's own variables for it, name the element."""
    conda = view.environment.conda
    stated = dict(conda.variables).get(PATH, "") if conda is not None else ""
    return any(True for _ in script_lines(view, PATH, element)) or element in stated.split(":")


def requester_of(view: View, taken: Taken) -> Requester | None:
    found = taken.requester
    if found is None:
        return None
    return Requester(path=plain(view, found.path), package=named(owner_at(view, found.path)))


# --- the current folder ---


def find_current_folder(view: View) -> Iterator[Finding]:
    """SF1103: an empty element. A warning only where a library really comes from the folder in which one stands."""
    if not any(not each for each in elements(view)):
        return
    taken = [each for each in taken_from_path(view) if not each.element]
    yield make_finding(
        "SF1103", "warning" if taken else "note",
        summary="LD_LIBRARY_PATH has an empty element, which is the current folder"
                + (f": {taken[0].edge.name} is taken from it" if taken else ""),
        why="Which libraries a program takes then depends on the folder in which it is started, and whoever can write "
            "there can replace them. It comes of a colon at an end, or of a variable that was empty.",
        culprit=Culprit(path=taken[0].object.real_path if taken else None, variable=PATH),
        requester=requester_of(view, taken[0]) if taken else None,
        evidence=(f"LD_LIBRARY_PATH={view.situation.loader.library_path}",
                  *(f"{each.edge.name}: {each.object.real_path}, at: {each.opening.what}" for each in taken)),
        winner=taken[0].object.real_path if taken else None,
        cure=("write LD_LIBRARY_PATH=/folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}, so that no colon is left over",),
        why_not="nothing is broken" if not taken else None if activated_path(view) is not None else SET_OUTSIDE,
    )


# --- Jupyter kernels ---


def find_kernels_without_path(view: View) -> Iterator[Finding]:
    """SF1104: kernels of this Python, where imports need what only activation, or this shell, sets."""
    kernels = [each for each in view.environment.kernels if runs_here(view, each) and PATH not in dict(each.variables)]
    kernels.sort(key=lambda each: not view.is_own(each.path))
    if not kernels:
        return
    needed = next(needed_libraries(view), None)
    if needed is None:
        return
    folder, name, what, source = needed
    yield make_finding(
        "SF1104", "warning",
        summary=f"A Jupyter kernel does not get the LD_LIBRARY_PATH without which {what} fails",
        why="Jupyter starts a kernel with the variables of its own server and of kernel.json; no activation script of "
            "the environment runs.",
        culprit=Culprit(path=kernels[0].path, variable=PATH), requester=Requester(path=None, package=what),
        evidence=(f"{name} is found in {folder} only, which {source} names",
                  *(f"{each.path}: env has no LD_LIBRARY_PATH" for each in kernels)),
        cure=(f'put "env": {{"LD_LIBRARY_PATH": "{folder}"}} into {kernels[0].path}',),
        why_not=None if view.is_inside(kernels[0].path) else f"{kernels[0].path} lies outside of the environment",
    )


def runs_here(view: View, kernel: JupyterKernel) -> bool:
    """Whether a kernel starts the environment's Python; one of the prefix may leave the folder to Jupyter."""
    if kernel.python is not None and kernel.python.startswith("/"):
        return kernel.python.startswith(f"{view.environment.prefix}/")
    return kernel.path.startswith(f"{view.environment.prefix}/")


def needed_libraries(view: View) -> Iterator[tuple[str, str, str, str]]:
    """(folder, library, what needs it, what names the folder) where nothing but the variable leads to the library."""
    for taken in taken_from_path(view):
        if taken.opening.may_fail is None and not taken.others(view):
            yield taken.element, taken.edge.name, taken.opening.what, "LD_LIBRARY_PATH"
    activated = activated_path(view)
    for opening in view.openings if activated is not None else ():
        for failure in opening.outcome.failures if opening.may_fail is None else ():
            if isinstance(failure, MissingLibrary) and activated is not None:
                for each in activated.elements:
                    if each.folder is not None and view.files.at(f"{each.folder}/{failure.name}") is not None:
                        yield each.folder, failure.name, opening.what, each.script


