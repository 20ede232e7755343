"""Sentences about extensions that several findings share."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.abi_groups import Extension
from stackfix.diagnose.finding_records import Culprit, Requester

# What packages say in place of the loader's line.
HIDDEN = {
    "torchvision": "RuntimeError: operator torchvision::nms does not exist",
    "xformers": "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.",
}
MOST_FILES = 8


def severity_of(extension: Extension) -> str:
    """An error: the module cannot be imported; a note where the package gets over it."""
    return "note" if extension.may_fail and extension.name not in HIDDEN else "error"


def culprit_of(extension: Extension) -> Culprit:
    """The package, with the file that fails first."""
    requester = extension.first.requester
    path = requester.path if requester else extension.first.opening.request.name
    return Culprit(path=path if path.startswith("/") else None, package=extension.package)


def requester_of(extension: Extension) -> Requester:
    """The same, as the one who needs it."""
    culprit = culprit_of(extension)
    return Requester(path=culprit.path, package=culprit.package)


def seen_error(extension: Extension) -> str:
    """The line that the user sees."""
    return HIDDEN.get(extension.name) or f"ImportError: {extension.first.failure.message()}"


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
