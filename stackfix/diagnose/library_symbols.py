"""Which versions of a library have the functions that are asked of it, by the almanac of NVIDIA's wheels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_symbols import family_of_symbol
from stackfix.diagnose.provenance import owner_of
from stackfix.diagnose.releases import release_of
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Owner
from stackfix.inspect.records import BadElf, ElfObject, FileAt
from stackfix.matrix.library_records import LibraryFamily

if TYPE_CHECKING:
    from stackfix.abi.records import Bounds, Since

MOST_LINES, MOST_NAMES = 3, 5
MOST_MAJORS = 20                    # of NVIDIA's sonames: libcudart.so.13 is the highest


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is asked of one library, and which versions of its wheel have that."""

    bounds: Bounds                  # of all names that some version is known to have
    by: Mapping[str, tuple[str, ...]]   # names by who asks: "nvidia-cusparse-cu12 12.3.1.170", else a path


def demand_of_fault(view: View, fault: Fault, provider: Owner) -> Demand | None:
    """What the fault's symbols demand of the provider; None where the almanac knows none of them."""
    who = {label_of(view, each.path, each.real_path): fault.symbols for each in fault.requesters}
    return demand(view, fault.name, provider, who)


def demand_of_all(view: View, fault: Fault, provider: Owner) -> Demand | None:
    """What all files of the environment, opened or not, demand of a fault's library; worked out once for a view."""
    remembered: dict[tuple[str, Owner], Demand | None] = vars(view).setdefault("_demands", {})
    key = fault.name, provider
    if key not in remembered:
        remembered[key] = demand(view, fault.name, provider, asked_by(view, fault))
    return remembered[key]


def demand(view: View, soname: str, provider: Owner, by: Mapping[str, Collection[str]]) -> Demand | None:
    """The bounds of the provider's own wheel over these names."""
    names = {name for each in by.values() for name in each if not name.startswith("_Z")}   # those are not in the book
    wheel = wheel_of(view, provider, soname)
    if wheel is None or not names:
        return None
    found = bounds_in(view, soname, wheel, names)
    if found is not None and found.unknown:         # of these nothing is known: they bound nothing
        names -= set(found.unknown)
        found = bounds_in(view, soname, wheel, names) if names else None
    if found is None:
        return None
    return Demand(bounds=found, by={who: tuple(each for each in asked if each in names) for who, asked in by.items()})


def bounds_in(view: View, soname: str, wheel: str, names: Collection[str]) -> Bounds | None:
    """Which versions of one wheel have all of the names."""
    return next((each for each in view.books.nvidia.bounds(soname, names) if each.package == wheel), None)


def wheel_of(view: View, provider: Owner, soname: str) -> str | None:
    """The wheel whose versions are counted as the provider's are: of conda's package the one that has its version."""
    packages = view.books.nvidia.packages(soname)
    if provider.name in packages:
        return provider.name
    release = release_of(provider.version)
    same = [each for each in packages if provider.manager == "conda"
            and any(release_of(version) == release for version in view.books.nvidia.versions(each))]
    return same[0] if len(same) == 1 else None


def asked_by(view: View, fault: Fault) -> dict[str, tuple[str, ...]]:
    """Names that the environment's files ask of the library of a fault, by who asks."""
    found, seen = dict[str, dict[str, None]](), set[str]()
    for path in (*(each.path for each in fault.requesters),
                 *(each.path for each in view.environment.shared_objects if each.link is None)):
        at = view.files.at(path)
        if isinstance(at, FileAt) and at.identity not in seen:
            seen.add(at.identity)
            names = names_of(view, at, fault)
            if names:
                found.setdefault(label_of(view, path, at.real_path), {}).update(dict.fromkeys(names))
    return {who: tuple(names) for who, names in found.items()}


def names_of(view: View, at: FileAt, fault: Fault) -> list[str]:
    """Names that one file asks of the library; where they carry no version, those of its family."""
    if not isinstance(at.elf, ElfObject) or fault.name not in at.elf.needed:
        return []
    try:
        undefined = view.files.symbols(at).undefined()
    except BadElf:      # told elsewhere
        return []
    families = (fault.family,) if fault.family is not None else ()
    return [each.name for each in undefined if not each.weak and (
        each.file == fault.name or (each.file is None and family_of_symbol(each.name, families) is not None))]


def label_of(view: View, path: str, real_path: str) -> str:
    """Who asks: a package with its version, else the file."""
    owner = owner_of(view, path, real_path)
    return f"{owner.name} {owner.version}" if owner else path


def specifier_of(bounds: Bounds) -> str:
    """The range of versions that have all names: ">=12.4.99", ">=11.4,<=11.5.4.101"; "" for every version."""
    return ",".join((*((f">={bounds.floor}",) if bounds.floor else ()),
                     *((f"<={bounds.ceiling}",) if bounds.ceiling else ())))


def since_text(since: Since) -> str:
    """In which versions of a wheel a function is: "x is in nvidia-nvjitlink-cu12 from 12.4.99 on, not in 12.3.101"."""
    parts = list[str]()
    if since.first is not None:
        before = f", not in {since.absent_before}" if since.absent_before else ""
        parts.append(f"from {since.first} on{before}")
    if since.last is not None:
        parts.append(f"up to {since.last}, not in {since.absent_after}" if since.absent_after else
                     f"up to {since.last}")
    return f"{since.name} is in {since.package} {' and '.join(parts) or 'in every version that was read'}"


def since_lines(view: View, soname: str, names: Iterable[str]) -> Iterator[str]:
    """Since when names of a library exist, of those that not every version has; the same answer is told once."""
    told = dict[tuple[str | None, str | None], str]()
    for name in names:
        for each in view.books.nvidia.since(soname, name):
            if each.first or each.last:
                told.setdefault((each.first, each.last), since_text(each))
    yield from list(told.values())[:MOST_LINES]


def owner_lines(view: View, names: Iterable[str], needed: Iterable[str]) -> Iterator[str]:
    """Which of NVIDIA's libraries names belong to, by the versions that were read; `needed`: what is linked against."""
    linked = {each.partition(".so")[0] for each in needed}
    for name in list(names)[:MOST_NAMES]:
        family = family_of_symbol(name, view.libraries.families)
        for soname in sonames_of(view, family) if family else ():
            found = view.books.nvidia.since(soname, name)
            for each in found[:1]:
                missing = "" if soname.partition(".so")[0] in linked else ", which it is not linked against"
                yield f"{since_text(each)}, as a function of {soname}{missing}"


def sonames_of(view: View, family: LibraryFamily) -> Iterator[str]:
    """Libraries of a family that the almanac has read."""
    for stem in family.stems:
        yield from (name for number in range(MOST_MAJORS) if view.books.nvidia.packages(
            name := f"{stem}.so.{number}"))


def contradiction(everyone: Demand) -> str:
    """That no version has all that is asked, and who asks for it."""
    askers = [who for who, names in everyone.by.items() if names]
    return (f"no version of {everyone.bounds.package} that was read has all that is asked of it, by "
            f"{', '.join(askers[:MOST_LINES])}")
