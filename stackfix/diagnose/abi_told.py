"""What the almanac tells of an extension, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stackfix.diagnose.abi_names import readable
from stackfix.diagnose.abi_range import Told, minor_of, told_of_working
from stackfix.diagnose.faults_text import counted
from stackfix.diagnose.installed_torch import InstalledTorch, installed_torch, numbers
from stackfix.diagnose.situation import View

if TYPE_CHECKING:
    from stackfix.abi.records import Deciding

SHOWN = 3


def working_lines(view: View, project: str, stated: str) -> Iterator[str]:
    """That a package whose metadata excludes the installed torch has symbols that do not. `stated`: its requirement."""
    torch = installed_torch(view)
    told = told_of_working(view, project) if torch is not None else None
    if torch is not None and told is not None and told.has(torch):
        yield (f"it is stated to be for {stated}, its symbols are those of torch {told.span(told.range.minors)}: it "
               f"can be loaded with torch {torch.version} all the same")


def verdict_text(told: Told, torch: InstalledTorch) -> str:
    """What the symbols say: "its symbols are those of torch 2.1 to 2.2: c10::cuda::SetDevice(int)"."""
    found = told.range
    newest = told.releases[-1].minor
    if found.unknown:
        names = f"no torch release up to {newest} has {readable(found.unknown[0].name)}"
        more = f" and {len(found.unknown) - 1} more of its symbols" if len(found.unknown) > 1 else ""
        return f"{names}{more}: it was built for a nightly build, a fork, or a later release"
    if found.minors and len(found.minors) == len(told.releases):
        return f"each torch release that was read, {told.span(found.minors)}, has all of its symbols"
    if found.minors:
        decides = deciding(told, torch)
        names = f": {readable(decides.name)}" if decides is not None else ""
        return f"its symbols are those of torch {told.span(found.minors)}{names}"
    if found.patches:
        return f"its symbols are those of torch {', '.join(found.patches)} alone"
    return "no single torch release has all of its symbols"


def deciding(told: Told, torch: InstalledTorch) -> Deciding | None:
    """The symbol that rules the installed torch out, else the one that bounds the range most narrowly."""
    found, minor = told.range, minor_of(torch)
    bounding = [each for each in (*found.ceiling, *found.floor) if each.minors]
    against = [each for each in bounding if minor not in each.minors] or bounding
    return min(against, key=lambda each: (len(each.minors), len(each.name)), default=None)


def bound_lines(told: Told, torch: InstalledTorch) -> Iterator[str]:
    """The symbols that bound the range, each with the releases that have it."""
    found = told.range
    read = f"{told.releases[0].minor} to {told.releases[-1].minor}"
    for each in found.unknown[:SHOWN]:
        yield f"{readable(each.name)} ({each.name}) is in no torch release from {read}"
    minor = minor_of(torch)
    for bounds in (found.ceiling, found.floor):
        first = sorted(bounds, key=lambda each: (minor in each.minors, len(each.minors), len(each.name)))
        for each in first[:SHOWN]:
            if each.minors:
                yield f"{readable(each.name)} ({each.name}) is in torch {told.span(each.minors)}"
    if told.private:
        yield (f"{counted(told.private)} it asks for {'is' if len(told.private) == 1 else 'are'} in the torch that is "
               f"installed and in no release from {read}: that torch is a build of its own")
    if found.unknown and found.known:
        yield f"all its other symbols are those of torch {told.span(found.known)}"


def string_lines(told: Told) -> Iterator[str]:
    """What its std::string rules out: an axis of its own, beside the release."""
    found = told.range
    if found.string_abi == "both":
        yield "it asks for both kinds of std::string, which no torch has"
    elif found.string_abi is not None and found.minors and found.index_minors != found.minors:
        have = f"those of torch {told.span(found.index_minors)} have it" if found.index_minors else "none has it"
        yield f"it asks for the {found.string_abi} std::string; of the package index's wheels {have}"


def patch_lines(told: Told, torch: InstalledTorch) -> Iterator[str]:
    """Patch releases that lack what the newest of their minor has."""
    for each in told.range.exceptions:
        if numbers(each.version) == numbers(torch.release):
            yield f"torch {each.version} lacks {readable(each.key)}, which the newest {minor_of(torch)} has"
