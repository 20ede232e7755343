"""Several majors of one library that lie in one environment and do not meet in a process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from stackfix.diagnose.families_parts import carries, major_of, named, parts_of
from stackfix.diagnose.finding_records import Culprit, Finding
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.ownership_facts import facts_of
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Owner
from stackfix.inspect.records import ElfObject, FileAt


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One library of a family in a folder of the environment."""

    family: str
    level: str
    major: int
    path: str
    owners: tuple[Owner, ...]


def find_side_by_side(view: View, clashing: set[str]) -> Iterator[Finding]:
    """A note where several majors are installed and no import is seen to map both."""
    several = {name: found for name, found in main_libraries(view).items()
               if len(found) > 1 and name not in clashing}
    several = {name: sure for name, found in several.items() if len(sure := by_soname(view, found.values())) > 1}
    if several:
        yield describe_side_by_side(view, [found[major] for found in several.values() for major in sorted(found)])


def main_libraries(view: View) -> dict[str, dict[int, Installed]]:
    """By family and by the major of the file's name, the first file of the family's main library.

    A copy that a package of another kind bundles does not count.
    """
    parts, majors = parts_of(view), dict[str, dict[int, Installed]]()
    for folder in view.environment.library_folders:
        for name in folder.libraries:
            family, major = parts.family(name), major_of(name)
            if family is not None and major is not None and family.one_per_process \
                    and name.partition(".so")[0] == family.stems[0]:
                path = f"{folder.path}/{name}"
                owners = view.owners(path)
                if owners and not any(carries(each, family) for each in owners):
                    continue        # triton's own libcupti.so.12: only triton opens it, by its path
                found = Installed(family=family.name, level=family.level, major=major, path=path, owners=owners)
                majors.setdefault(family.name, {}).setdefault(major, found)
    return majors


def by_soname(view: View, found: Iterable[Installed]) -> dict[int, Installed]:
    """The files by the major of what they state themselves: CUPTI's libcupti.so.2025.4.0 is libcupti.so.13."""
    sure: dict[int, Installed] = {}
    for each in found:
        file = view.files.at(each.path)
        soname = file.elf.soname if isinstance(file, FileAt) and isinstance(file.elf, ElfObject) else None
        major = major_of(soname) if soname else None
        if major is not None:
            sure.setdefault(major, replace(each, major=major))
    return sure


def describe_side_by_side(view: View, found: Sequence[Installed]) -> Finding:
    names: dict[str, list[str]] = {}
    for each in found:
        names.setdefault(each.family, []).append(str(each.major))
    owners = list(dict.fromkeys(owner for each in found for owner in each.owners))
    facts = facts_of(view)
    unwanted = [owner for owner in owners if not facts.asked_by(owner) and not facts.extras_asking(owner)]
    return make_finding(
        "SF301", "note", level=found[0].level,
        summary="Several majors are installed side by side: "
                + "; ".join(f"{name} {' and '.join(majors)}" for name, majors in names.items()),
        why="No import that is known maps both in one process, and separate processes may use either. Packages that "
            "each bring their own would clash once they are imported together.",
        culprit=Culprit(path=found[-1].path, package=named(next(iter(found[-1].owners), None))),
        evidence=tuple(f"{each.path}: " + (", ".join(f"{named(owner)}, {facts.said_of(owner)}" for owner in each.owners)
                                           or "no package of the environment") for each in found),
        cure=(tuple(f"nothing that is installed requires {named(owner)}: it may be removed" for owner in unwanted)
              or ("keep packages for different CUDA majors in environments of their own",)),
        why_not="nothing is broken",
    )
