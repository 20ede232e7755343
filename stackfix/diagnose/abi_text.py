"""Sentences about extensions that several findings share."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stackfix.diagnose.abi_groups import Extension, extensions
from stackfix.diagnose.families_parts import plain
from stackfix.diagnose.finding_records import Culprit, Requester
from stackfix.diagnose.situation import View

# What packages say in place of the loader's line.
HIDDEN = {
    "torchvision": "RuntimeError: operator torchvision::nms does not exist",
    "xformers": "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.",
}
MOST_FILES = 8
DIGITS = re.compile(r"\d+")


def severity_of(view: View, extension: Extension) -> str:
    """An error: the module cannot be imported; a note where the package gets over it, or has another file for it."""
    if extension.may_fail and extension.name not in HIDDEN:
        return "note"
    return "note" if has_other_build(view, extension) else "error"


def told_of(view: View) -> set[str]:
    """Packages, or files that none owns, of which it is said already that they do not fit torch or its CUDA."""
    return {each.package or each.name for each in extensions(view).values()
            if (each.torch_symbols or each.missing) and severity_of(view, each) != "note"}


def only_modules(extension: Extension) -> bool:
    """Whether only modules fail that are perhaps never imported."""
    return all(each.opening.phase == "module" for each in extension.sightings)


def working_files(view: View, extension: Extension) -> set[str]:
    """Names of the package's modules that can be opened."""
    projects = {each.opening.project for each in extension.sightings} - {None}
    return {each.request.name.rpartition("/")[2] for each in view.openings
            if each.project in projects and not each.outcome.failures}


def has_other_build(view: View, extension: Extension) -> bool:
    """Whether each file that fails has a twin that works: `x_torch24.so` beside `x_torch26.so`."""
    if not only_modules(extension):
        return False
    twins = {DIGITS.sub("", each) for each in working_files(view, extension)}
    return all(DIGITS.sub("", each.opening.request.name.rpartition("/")[2]) in twins for each in extension.sightings)


def severity_of_unknown(view: View, extension: Extension) -> str:
    """Of symbols that nobody has: a module that is asked for fails; one among others that work may be for others."""
    if not only_modules(extension) or extension.first.opening.request.name in view.situation.extra:
        return severity_of(view, extension)
    return "note" if extension.may_fail or working_files(view, extension) else "warning"


def culprit_of(view: View, extension: Extension) -> Culprit:
    """The package, with the file that fails first."""
    requester = extension.first.requester
    path = requester.path if requester else extension.first.opening.request.name
    return Culprit(path=plain(view, path) if path.startswith("/") else None, package=extension.package)


def requester_of(view: View, extension: Extension) -> Requester:
    """The same, as the one who needs it."""
    culprit = culprit_of(view, extension)
    return Requester(path=culprit.path, package=culprit.package)


def seen_error(extension: Extension) -> str:
    """The line that the user sees."""
    return HIDDEN.get(extension.name) or extension.first.failure.message()


def evidence_of(extension: Extension) -> Iterator[str]:
    """The loader's own words, where it was seen, and what hides them."""
    first = extension.first
    yield f"the loader: {first.failure.message()}"
    if extension.name in HIDDEN:
        yield f"{extension.name} hides that line and goes on: {HIDDEN[extension.name]}"
    yield f"seen at: {first.opening.what}"
    if first.opening.may_fail is not None:
        yield f"it may fail: {first.opening.may_fail}"


def file_lines(extension: Extension) -> Iterator[str]:
    """The other files of the package that fail, with how much they lack."""
    files = extension.files
    for each in files[:MOST_FILES] if len(files) > 1 else ():
        yield f"{each.path}: fails as well" if each is not files[0] else f"{each.path}: fails first"
    if len(files) > MOST_FILES:
        yield f"and {len(files) - MOST_FILES} more files"
