"""Activation scripts that put an older library before a newer one on LD_LIBRARY_PATH."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackfix.diagnose.families_parts import is_older, named, owner_at, version_of
from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.imports_projects import SEPARATORS
from stackfix.diagnose.install_lines import uninstall
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.plumbing_scripts import PATH, Activated, Element, activated_path
from stackfix.diagnose.releases import CLAUSE, admits, release_of
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Owner
from stackfix.inspect.machine_records import Undecided
from stackfix.inspect.records import ElfObject, FileAt

NAME = re.compile(r"\s*([\w.-]+)\s*(?:\[[^\]]*\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A library under one name in one folder."""

    path: str
    real_path: str
    version: str | None
    owner: Owner | None

    def text(self) -> str:
        return f"{self.path} ({self.version or 'version unknown'}" + (f", {named(self.owner)})" if self.owner else ")")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A newer copy of a library that an older one goes before."""

    soname: str
    winner: Copy
    loser: Copy
    element: Element                # that brings the winner
    listed: bool                    # the loser's folder is on the path too, later


def find_activation_order(view: View) -> Iterator[Finding | Undecided]:
    """SF1101: an order that lets an older library win, and what is not taken back at deactivation."""
    activated = activated_path(view)
    if activated is None:
        return
    for element in activated.elements:
        if element.folder is None:
            yield Undecided(subject=f"{element.script}:{element.line}",
                            reason=f"what it puts on LD_LIBRARY_PATH is only known when it is run: {element.text}")
    passed: dict[str, list[Passed]] = {}
    for each in find_passed(view, activated):
        passed.setdefault(each.winner.path.rpartition("/")[0], []).append(each)
    for group in passed.values():
        yield describe(view, activated, group)
    yield from find_left_behind(view, activated)


def find_passed(view: View, activated: Activated) -> Iterator[Passed]:
    """Libraries of the GPU stack of which an older copy comes first. What the wheels carry is found after the path."""
    folders = list(dict.fromkeys(each.folder for each in activated.elements if each.folder is not None))
    names = {folder.path: folder.libraries for folder in view.environment.library_folders}
    own = [path for path in names if path not in folders and any(owner.manager == "pip" for owner in next(
        each.owners for each in view.environment.library_folders if each.path == path))]
    sonames = sorted({name for path in (*folders, *own) for name in names.get(path, ()) if view.family_of(name)})
    for soname in sonames:
        copies = [(folder, copy) for folder in (*folders, *own) if (copy := copy_at(view, folder, soname)) is not None]
        if len(copies) > 1 and copies[0][0] in folders:
            folder, winner = copies[0]
            newer = [(place, each) for place, each in copies[1:] if is_older(winner.version, each.version)]
            if newer:
                element = next(each for each in activated.elements if each.folder == folder)
                yield Passed(soname=soname, winner=winner, loser=newer[0][1], element=element,
                             listed=newer[0][0] in folders)


def copy_at(view: View, folder: str, soname: str) -> Copy | None:
    file = view.files.at(f"{folder}/{soname}")
    if not isinstance(file, FileAt):
        return None
    owner = owner_at(view, file.path)
    stated = file.elf.soname if isinstance(file.elf, ElfObject) else None
    return Copy(path=file.path, real_path=file.real_path, owner=owner,
                version=version_of(file.real_path, stated, owner, view.family_of(soname)))


def describe(view: View, activated: Activated, group: Sequence[Passed]) -> Finding:
    """One finding for all libraries of the folder that comes first."""
    unmet = [(each, asker) for each in group for asker in unmet_by(view, each)]
    one, asker = unmet[0] if unmet else (group[0], None)
    family = view.family_of(one.soname)
    folder = one.winner.path.rpartition("/")[0]
    before = activated.before
    return make_finding(
        "SF1101", "error" if unmet else "warning", level=family.level if family else "environment",
        summary=f"Activation puts {folder} before the newer {one.soname} of {one.loser.path.rpartition('/')[0]}",
        why=f"{one.element.script} sets LD_LIBRARY_PATH, which goes before the wheels' own search paths; in the order "
            f"that it makes, {one.winner.path} is found first."
            + ("" if one.listed else " The newer copy's folder is not on the path at all."),
        culprit=Culprit(path=one.element.script, package=named(one.winner.owner), variable=PATH),
        requester=Requester(package=asker) if asker else None,
        evidence=(f"{one.element.script}:{one.element.line}: {one.element.text}",
                  *(f"{each.soname}: {each.winner.text()} before {each.loser.text()}" for each in group),
                  *((f"{asker} requires {named(one.loser.owner)}",) if asker else ()),
                  *(("what LD_LIBRARY_PATH held before stays in front of all",) if before == 0 else ())),
        winner=one.winner.path, loser=one.loser.path, cure=cure(view, one, folder),
    )


def unmet_by(view: View, passed: Passed) -> Iterator[str]:
    """Installed projects whose requirement on the loser's package the winner's version does not meet."""
    owner, version = passed.loser.owner, passed.winner.version
    if owner is None or version is None:
        return
    for each in view.distributions.values():
        for line in each.requires:
            name, specifier = requirement_of(line)
            if name == owner.name and specifier and not admits(specifier, version):
                yield f"{each.name} {each.version}"


def requirement_of(line: str) -> tuple[str, str | None]:
    """(normalised name, specifier) of a requirement; None where it has none that can be judged, or is an extra's."""
    text, _, marker = line.partition(";")
    found = NAME.match(text)
    if found is None or "extra" in marker:
        return "", None
    specifier = text[found.end():].strip().removeprefix("(").removesuffix(")").strip()
    clauses = [CLAUSE.fullmatch(each) for each in specifier.split(",")]
    usable = all(each and release_of(each[2].removesuffix(".*")) for each in clauses)
    return SEPARATORS.sub("-", found[1]).lower(), specifier if usable else None


def cure(view: View, passed: Passed, folder: str) -> tuple[str, ...]:
    better = passed.loser.path.rpartition("/")[0]
    found = [f"in {passed.element.script}: put {better} before {folder}, and before the variable's earlier value",
             f"or leave {folder} out: what lies in the environment's own folders is found without it"]
    owner = passed.winner.owner
    if owner is not None and owner.manager == "conda":
        found.append(f"{uninstall(view, owner)}  # or so: remove the older copy")
    return tuple(found)


def find_left_behind(view: View, activated: Activated) -> Iterator[Finding]:
    """A variable that activate.d sets and no script of deactivate.d takes back."""
    scripts = list(dict.fromkeys(each.script for each in activated.elements if "/activate.d/" in each.script))
    taken_back = any(PATH in text for each in view.environment.activation if each.phase == "deactivate"
                     for _, text in each.lines)
    if scripts and not taken_back:
        folder = f"{scripts[0].rpartition('/activate.d/')[0]}/deactivate.d"
        yield make_finding(
            "SF1101", "note", level="environment",
            summary="LD_LIBRARY_PATH is set at activation and not set back at deactivation",
            why="The folders stay on the path of the shell when another environment is activated, and are added once "
                "more each time.",
            culprit=Culprit(path=scripts[0], variable=PATH),
            evidence=tuple(f"{each.script}:{each.line}: {each.text}" for each in
                           {(each.script, each.line): each for each in activated.elements}.values()),
            cure=(f"write a script of the same name into {folder} that restores the variable",),
            why_not="nothing is broken",
        )


