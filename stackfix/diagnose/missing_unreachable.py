"""Libraries that the environment has in folders where their requester does not look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.diagnose.families_parts import plain
from stackfix.diagnose.faults import own_copies
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_text import file_name, level_of, limited, needs_lines, requester_of, who_needs
from stackfix.diagnose.faults_verdict import Copy
from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Finding
from stackfix.diagnose.install_lines import export_line
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.missing_activated import by_activation, how_to_activate
from stackfix.diagnose.plumbing_scripts import Element
from stackfix.diagnose.provenance import LIBRARY_PATH, describe, folder_of, named, owner_of
from stackfix.diagnose.releases import release_of
from stackfix.diagnose.shadows import NOT_AT_HAND
from stackfix.diagnose.situation import View
from stackfix.inspect.records import ElfObject, FileAt

# onnxruntime-gpu opens the nvidia wheels' libraries by path when it is asked to (onnxruntime/__init__.py)
PRELOAD_DLLS = (1, 21)
TOO_LATE = ("PATH is not searched for libraries, and LD_LIBRARY_PATH set by os.environ inside the process comes too "
            "late: the loader read it when Python started")


def unreachable(view: View, group: Sequence[tuple[Fault, Copy]]) -> Finding:
    """SF402 of one requester."""
    fault, copy = group[0]
    names = [each.name for each, _ in group]
    element = by_activation(view, [each for _, each in group])
    requester = requester_of(view, fault)
    beyond = next((each.path for _, each in group if not view.is_at_hand(each.path)), None)
    return make_finding(
        "SF402", severity_of(view, group, after_activation=element is not None),
        level=level_of(fault),
        summary=f"{who_needs(fault)} finds {limited(names)} after activation only" if element is not None else
        f"{limited(names)} {'is' if len(names) == 1 else 'are'} installed where {who_needs(fault)} does not look",
        why=why_activated(element) if element is not None else why(view, fault, copy),
        culprit=Culprit(path=copy.path, package=named(owner_of(view, copy.path))),
        requester=requester,
        evidence=tuple(evidence(view, group)), error=fault.failure.message(), loser=copy.path,
        cure=tuple(cures(view, group)), why_not=f"{beyond} {NOT_AT_HAND}" if beyond else None)


def severity_of(view: View, group: Sequence[tuple[Fault, Copy]], *, after_activation: bool) -> str:
    """What is opened on a GPU only was installed for it: more than a note, unless torch loads it first.

    What fails without torch may work with it, and what fails without activation works with that.
    """
    worst = min((each.severity for each, _ in group), key=SEVERITIES.index)
    by_torch = loaded_by_torch(view, {each.name for each, _ in group})
    if worst != "note" or any(each.family is None for each, _ in group):
        return "warning" if worst == "error" and (by_torch or after_activation) else worst
    return "note" if by_torch else "warning"


def why_activated(element: Element) -> str:
    """What activation does that was not done here."""
    return (f"{element.script}, line {element.line}, puts {element.folder} on {LIBRARY_PATH}. That is not so in this "
            f"process: what is started without activation, as Jupyter kernels, services and cron jobs are, fails.")


def why(view: View, fault: Fault, copy: Copy) -> str:
    """Why the search misses the folder."""
    object_ = fault.requester
    if object_ is None:
        return f"{fault.opening.what}: the name is opened by code that gives no folder. {TOO_LATE}."
    mine, other = site_of(view, object_.path), site_of(view, copy.path)
    path = object_.elf.runpath if object_.elf.runpath is not None else object_.elf.rpath
    kind = "RUNPATH" if object_.elf.runpath is not None else "RPATH"
    if not path:
        how = f"{file_name(object_.path)} has neither RPATH nor RUNPATH"
    elif mine and other and mine != other:
        how = (f"The {kind} of {file_name(object_.path)} is relative to {mine}, and {file_name(copy.path)} lies in "
               f"another package folder, {other}")
    else:
        how = f"The {kind} of {file_name(object_.path)} does not lead to {folder_of(copy.path)}"
    return f"{how}. {TOO_LATE}."


def site_of(view: View, path: str) -> str | None:
    """The package folder that a file lies in."""
    sites = [each.path for each in view.environment.sites if path.startswith(f"{each.path}/")]
    return max(sites, key=len, default=None)


def evidence(view: View, group: Sequence[tuple[Fault, Copy]]) -> Iterator[str]:
    """Every library that the requester needs: reachable, installed elsewhere, or nowhere."""
    fault = group[0][0]
    yield from needs_lines(view, fault)
    copies = {each.name: copy for each, copy in group}
    found = {edge.name: fault.opening.outcome.attempted.objects[edge.provider].path
             for edge in fault.opening.outcome.edges if edge.requester == fault.first.number}
    needed = fault.requester.elf.needed if fault.requester else ()
    for name in dict.fromkeys((*copies, *(each for each in needed if view.family_of(each)))):
        if name in copies:
            yield f"{name}: installed, not reached: {describe(view, copies[name].path, copies[name].real_path)}"
        elif name in found:
            yield f"{name}: reached: {plain(view, found[name])}"
        elif loaded := fault.opening.outcome.attempted.find(name):
            yield f"{name}: loaded before: {plain(view, loaded.path)}"
        else:
            yield f"{name}: nowhere in the environment"
    for each, _ in group[1:]:
        yield from (f"{other.path} needs {each.name} too" for other in each.requesters[1:4])


def cures(view: View, group: Sequence[tuple[Fault, Copy]]) -> Iterator[str]:
    """What brings the loader there, best first."""
    fault = group[0][0]
    if by_activation(view, [copy for _, copy in group]) is not None:
        yield how_to_activate(view)
    folders = [*dict.fromkeys(folder_of(copy.path) for _, copy in group)]
    folders += [each for each in behind(view, [copy for _, copy in group]) if each not in folders]
    yield export_line(folders)
    if loaded_by_torch(view, {each.name for each, _ in group}):
        yield "or import torch first: it loads them, and what is loaded is found by its name"
    for name in ("onnxruntime-gpu", "onnxruntime"):
        known = view.distributions.get(name)
        if known and fault.opening.project == name and (release_of(known.version) or ()) >= PRELOAD_DLLS:
            yield "or call onnxruntime.preload_dlls() before the first session"
    mine = site_of(view, fault.requester.path) if fault.requester else None
    if mine is not None and mine != site_of(view, group[0][1].path):
        yield "or install all of it into a virtual environment, which has one package folder"


def behind(view: View, copies: Sequence[Copy]) -> Iterator[str]:
    """Folders of what these libraries need in turn and have no RPATH or RUNPATH to."""
    for copy in copies:
        at = view.files.at(copy.path)
        elf = at.elf if isinstance(at, FileAt) else None
        if isinstance(elf, ElfObject) and not elf.runpath and not elf.rpath:
            for name in elf.needed:
                yield from (folder_of(path) for path in own_copies(view, name)[:1])


def loaded_by_torch(view: View, names: set[str]) -> bool:
    """Whether an import of torch has loaded all of these."""
    return any(names <= {each.elf.soname for each in opening.outcome.attempted.objects}
               for opening in view.openings if opening.project == "torch" and opening.phase == "import")
