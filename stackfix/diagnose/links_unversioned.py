"""Libraries that are opened by a name without a version, where only a file with one is there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.families_parts import named, owner_at, plain
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.records import LoadedObject, MissingLibrary
from stackfix.diagnose.situation import Opening, View
from stackfix.inspect.machine_records import Undecided

BARE = re.compile(r"lib[^/]*\.so")
DRIVER = frozenset({"libcuda.so", "libnvidia-ml.so"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A versioned file that stands for a name which nobody has."""

    file: str                       # path: <site>/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
    link: str | None                # where a link would be found; None: in no folder of the environment


def find_missing_names(view: View) -> Iterator[Finding | Undecided]:
    """SF802, and libcuda.so where there is no driver at all."""
    told = set()
    for opening in view.openings:
        for failure in opening.outcome.failures:
            if not isinstance(failure, MissingLibrary) or not BARE.fullmatch(failure.name):
                continue
            key = (failure.name, failure.requester)
            if key in told:
                continue
            told.add(key)
            alias = alias_of(view, opening, failure)
            if alias is not None:
                yield describe(view, opening, failure, alias)
            elif failure.name in DRIVER:
                who = plain(view, failure.requester) if failure.requester else opening.what
                yield Undecided(subject=failure.name, reason=f"{who} opens it when it is used; it comes with NVIDIA's "
                                                             f"driver, which is not here")


def alias_of(view: View, opening: Opening, failure: MissingLibrary) -> Alias | None:
    """The versioned file for a bare name, and where a link to it would be found."""
    file = next(versioned_files(view, opening, failure), None)
    if file is None:
        return None
    tried = dict.fromkeys(posixpath.normpath(each.path) for each in failure.tried)
    own = [path for path in tried if view.is_own(path) and posixpath.basename(path) == failure.name]
    beside = [posixpath.dirname(file), posixpath.dirname(posixpath.normpath(failure.requester or ""))]
    own.sort(key=lambda path: beside.index(posixpath.dirname(path)) if posixpath.dirname(path) in beside else 2)
    return Alias(file=file, link=own[0] if own else None)


def versioned_files(view: View, opening: Opening, failure: MissingLibrary) -> Iterator[str]:
    """Files that have the name with a version: mapped ones, those of the environment, those of the system."""
    start = f"{failure.name}."
    yield from (plain(view, each.path) for each in opening.outcome.attempted.objects
                if each.path.rpartition("/")[2].startswith(start))
    for folder in view.environment.library_folders:
        yield from (f"{folder.path}/{name}" for name in folder.libraries if is_version_of(name, start))
    driver = view.machine.driver.libraries
    yield from (each.path for each in driver if each.real_path and each.origin in {"system", "wsl"}
                and is_version_of(each.path.rpartition("/")[2], start))
    cache = view.situation.loader.machine.cache
    yield from (cache[name] for name in sorted(cache) if is_version_of(name, start))


def is_version_of(name: str, start: str) -> bool:
    return name.startswith(start) and name[len(start):].replace(".", "").isdigit()


def describe(view: View, opening: Opening, failure: MissingLibrary, alias: Alias) -> Finding:
    """One finding for each caller and name."""
    caller = caller_of(opening, failure)
    path = failure.requester or (caller.path if caller else None)
    path = plain(view, path) if path else None
    family = view.family_of(failure.name)
    wsl = view.machine.wsl is not None and failure.name in DRIVER
    return make_finding(
        "SF802", severity(opening), level=family.level if family else "environment",
        summary=f"{failure.name} is opened by this name, and only {alias.file.rpartition('/')[2]} is there",
        why=f"{path or opening.what} opens it without a version; the loader finds no such name on its way, though "
            f"{alias.file} is the library that is meant."
            + (" On WSL the loader's cache has only the versioned name." if wsl else ""),
        culprit=Culprit(path=alias.link or alias.file, package=named(owner_at(view, alias.file))),
        requester=Requester(path=path, package=named(owner_at(view, path))),
        evidence=(*(f"tried: {each.path} ({each.why})" for each in failure.tried), f"there is: {alias.file}",
                  f"seen at: {opening.what}"),
        error=failure.message(), loser=alias.file, cure=tuple(cure(alias, wsl=wsl)),
        why_not=why_not(opening, alias),
    )


def severity(opening: Opening) -> str:
    """What is opened at first use may never be used; what may fail is optional."""
    if opening.may_fail is not None:
        return "note"
    return "error" if opening.phase == "import" else "warning"


def caller_of(opening: Opening, failure: MissingLibrary) -> LoadedObject | None:
    """The object whose code calls dlopen."""
    if opening.request.caller is None or failure.requester is not None:
        return None
    return opening.outcome.attempted.by_identity(opening.request.caller)


def cure(alias: Alias, *, wsl: bool) -> Iterator[str]:
    """Commands; a link inside the environment is relative where its target lies there too."""
    folder = posixpath.dirname(alias.file)
    if alias.link is not None:
        here = posixpath.dirname(alias.link)
        shared = len(posixpath.commonpath([folder, here]).strip("/").split("/")) > 1
        yield f"ln -s {posixpath.relpath(alias.file, here) if shared else alias.file} {alias.link}"
    if wsl:
        yield f"export LD_LIBRARY_PATH={folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
        yield f"or ask an administrator to make the link in {folder} and to run ldconfig"
    elif alias.link is None:
        yield f"make a folder with a link of that name to {alias.file}, and put it on LD_LIBRARY_PATH"


def why_not(opening: Opening, alias: Alias) -> str | None:
    if severity(opening) == "note":
        return f"nothing is broken: {opening.may_fail}"
    return None if alias.link else "no folder that the loader searches for it lies inside of the environment"
