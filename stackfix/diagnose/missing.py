"""Libraries that nothing has, or that the environment has where its requester does not look."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from stackfix.diagnose.faults import find_faults, is_driver, serious
from stackfix.diagnose.faults_cuda import is_about_torch
from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_symbols import is_torch_library
from stackfix.diagnose.faults_text import file_name, level_of, needs_lines, requester_of, who_needs
from stackfix.diagnose.faults_verdict import Copy, own_files
from stackfix.diagnose.finding_records import SEVERITIES, Culprit, Finding
from stackfix.diagnose.install_lines import reinstall
from stackfix.diagnose.links_lost import lost_links
from stackfix.diagnose.links_unversioned import BARE, alias_of
from stackfix.diagnose.machine_architecture import is_foreign
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.missing_activated import activated_copy, fits
from stackfix.diagnose.missing_carriers import GONE, gone_files, is_plain, recorded
from stackfix.diagnose.missing_nowhere import SHOWN, nowhere, seen_error, tried_lines, who_opens
from stackfix.diagnose.missing_unreachable import unreachable
from stackfix.diagnose.provenance import named, owner_of
from stackfix.diagnose.records import MissingLibrary
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import FileFault, Owner
from stackfix.inspect.machine_records import Undecided
from stackfix.inspect.records import FileAt

NOT_GONE = frozenset({"no-file", "broken-link", "unreadable"})     # there in some way: told with the package's files


def find_missing(view: View) -> Iterator[Finding | Undecided]:
    """SF401 and SF402; a library of the driver where there is none is undecided."""
    absent: dict[str, list[Fault]] = {}
    unreached: dict[str, list[tuple[Fault, Copy]]] = {}
    lost: dict[Owner, list[tuple[Fault, FileFault]]] = {}
    for fault in missing_faults(view):
        if is_driver(view, fault.name) and not has_driver(view):
            yield undecided_driver(view, fault)
        elif gone := recorded_and_gone(view, fault):
            lost.setdefault(gone.owner, []).append((fault, gone))
        elif copy := reachable_copy(view, fault) or activated_copy(view, fault.name):
            if not (fault.severity == "note" and is_of_one_package(view, fault, copy)):
                unreached.setdefault(asker(fault), []).append((fault, copy))
        elif is_fault(view, fault):
            absent.setdefault(asker(fault), []).append(fault)
    yield from (nowhere(view, faults) for faults in absent.values())
    yield from (unreachable(view, group) for group in unreached.values())
    for files in lost.values():
        needed = [each for each in files if each[0].severity != "note"]
        if needed:
            yield deleted(view, sorted(needed, key=lambda each: (
                SEVERITIES.index(each[0].severity), not is_plain(each[0].name), each[0].requester is None)))


def missing_faults(view: View) -> Iterator[Fault]:
    """Libraries that are missing, and of which no other check speaks. A pattern is left out beside what fits it."""
    missing = [each for each in serious(find_faults(view)) if each.category == "missing"]
    names = [each.name for each in missing if is_plain(each.name)]
    for fault in missing:
        twice = not is_plain(fault.name) and any(fnmatchcase(each, fault.name) for each in names)
        if not twice and not is_told_elsewhere(view, fault):
            yield fault


def asker(fault: Fault) -> str:
    """What all that one requester misses is one finding by."""
    return fault.requester.identity if fault.requester else fault.opening.what


def is_told_elsewhere(view: View, fault: Fault) -> bool:
    """Whether a lost or broken link, or a name without a version, is what is wrong: links.py says so."""
    failure, tried = fault.failure, tried_paths(fault)
    if not isinstance(failure, MissingLibrary):
        return True
    if any(each.soname == fault.name and each.path in tried for each in lost_links(view)):
        return True
    if any(each.link is not None and each.path in tried for each in view.environment.shared_objects):
        return True
    if not is_plain(fault.name) and recorded(view, fault.name, NOT_GONE):
        return True
    return bool(BARE.fullmatch(fault.name)) and (
        is_driver(view, fault.name) or alias_of(view, fault.opening, failure) is not None)


def tried_paths(fault: Fault) -> set[str]:
    """Where all requesters looked, without `..`."""
    return {posixpath.normpath(each.path) for seen in fault.sightings
            for each in (seen.failure.tried if isinstance(seen.failure, MissingLibrary) else ())}


def is_fault(view: View, fault: Fault) -> bool:
    """Whether the library itself is what is missing. What is optional and was never there is no fault."""
    if fault.severity == "note" or has_foreign_copy(view, fault) or is_about_torch(view, fault):
        return False
    if "torch" in view.distributions or not fault.requesters:
        return True
    # without torch an extension of torch misses much
    return not all(any(map(is_torch_library, each.elf.needed)) for each in fault.requesters)


# --- the driver ---


def has_driver(view: View) -> bool:
    """Whether there is anything of NVIDIA's driver here that is more than a stub."""
    driver = view.machine.driver
    return driver.kernel_module is not None or any(each.origin in {"system", "wsl"} for each in driver.libraries)


def undecided_driver(view: View, fault: Fault) -> Undecided:
    why = ("it comes with NVIDIA's driver, and there is none on this machine" if view.machine.live else
           "it comes from the machine that the tree will run on")
    return Undecided(subject=fault.name, reason=why)


# --- files that a package should have ---


def recorded_and_gone(view: View, fault: Fault) -> FileFault | None:
    """The file that would have been found, were it there; else one of its name."""
    tried, gone = tried_paths(fault), gone_files(view, fault.name)
    return next((each for each in gone if each.path in tried), None) or next(iter(gone), None)


def deleted(view: View, files: Sequence[tuple[Fault, FileFault]]) -> Finding:
    """SF401 of a package's own files, of which the first is needed first."""
    fault, gone = files[0]
    owner, more = gone.owner, len({each.path for _, each in files}) - 1
    others = [each for each in view.environment.file_faults if each.owner == owner and each.kind in GONE]
    absent = gone.kind == "missing"
    return make_finding(
        "SF401", fault.severity, level=level_of(fault),
        summary=f"{file_name(gone.path)} of {named(owner)} {'is gone' if absent else 'is not a file any more'}, and "
                + (f"{who_needs(fault)} needs it" if fault.requester else who_opens(fault))
                + (f"; {more} more of its libraries are missed" if more else ""),
        why=f"{owner.name} recorded the file when it was installed. "
            + ("It was deleted since, or went together with another package that has a file of the same path."
               if absent else "Something else, such as a folder, lies in its place."),
        culprit=Culprit(path=gone.path, package=named(owner)), requester=requester_of(view, fault),
        evidence=(*(line for each, _ in files for line in needs_lines(view, each)),
                  *(f"gone: {each.path}" for each in others[:SHOWN]),
                  *((f"and {len(others) - SHOWN} more files of {owner.name}",) if len(others) > SHOWN else ()),
                  *tried_lines(fault)),
        error=seen_error(fault), cure=(reinstall(view, owner),),
        why_not=None if view.is_inside(gone.path) else f"{gone.path} lies outside of the environment")


# --- copies that no search comes to ---


def reachable_copy(view: View, fault: Fault) -> Copy | None:
    """The environment's copy, where the loader could take it if it came there."""
    for copy in own_files(view, fault.name):
        at = view.files.at(copy.path)
        if isinstance(at, FileAt) and fits(view, at):
            return copy
    return None


def is_of_one_package(view: View, fault: Fault, copy: Copy) -> bool:
    """Whether an optional part comes with the library that opens it: cuFile's wheel brings its RDMA part unreached."""
    requester = fault.requester
    owner = owner_of(view, requester.path, requester.real_path) if requester else None
    return owner is not None and owner == owner_of(view, copy.path, copy.real_path)


def has_foreign_copy(view: View, fault: Fault) -> bool:
    """Whether a file for another processor lies in the way: that is what is wrong then."""
    failure = fault.failure
    return isinstance(failure, MissingLibrary) and any(is_foreign(view, each) for each in failure.tried)
