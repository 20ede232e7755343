"""What a proof takes for granted of the machine: the system's libraries that are needed, and their newest versions."""

from __future__ import annotations

from collections.abc import Iterable

from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import View
from stackfix.prove.base import C_VERSION, Base, numbers
from stackfix.prove.facts import Short
from stackfix.prove.proof_records import Assumption

PYTHON = "Python"


def assumptions(view: View, base: Base, short: Short) -> tuple[Assumption, ...]:
    """One for each library of the system that a mapped file needs, by name; then Python itself."""
    mapped = mapped_objects(view)
    found = [assumption(base, soname, mapped) for soname in sorted(base.libraries)
             if any(soname in each.elf.needed or asks(each, soname) for each in mapped)]
    modules = sum(each.path.rpartition("/")[2].partition(".")[2].startswith(("cpython-", "abi3", "so"))
                  for each in mapped if each.real_path.startswith(tuple(f"{site}/" for site in short.sites)))
    program = view.environment.python
    return (*found, Assumption(part=PYTHON, library=f"python{program.minor if program else ''}", level=None,
                               versions=(), needed_by=modules))


def mapped_objects(view: View) -> tuple[LoadedObject, ...]:
    """Every file that some import maps, once; not the system's own."""
    found: dict[str, LoadedObject] = {}
    for opening in view.openings:
        objects = opening.outcome.attempted.objects
        for number in opening.outcome.loaded:
            if view.is_own(objects[number].real_path):
                found.setdefault(objects[number].identity, objects[number])
    return tuple(found.values())


def asks(object_: LoadedObject, soname: str) -> bool:
    return any(need.file == soname for need in object_.elf.needed_versions)


def assumption(base: Base, soname: str, mapped: Iterable[LoadedObject]) -> Assumption:
    """What is asked of one library."""
    library, needing = base.libraries[soname], 0
    newest: dict[str, tuple[tuple[int, ...], str]] = {}
    for each in mapped:
        needing += soname in each.elf.needed or asks(each, soname)
        for need in each.elf.needed_versions:
            prefix, _, number = need.version.rpartition("_")
            if need.file == soname and prefix in library.versions and numbers(number):
                newest[prefix] = max(newest.get(prefix, ((), "")), (numbers(number), need.version))
    level = base.glibc if C_VERSION in library.versions else ", ".join(
        f"{prefix}_{'.'.join(map(str, base.newest[prefix]))}" for prefix in library.versions if prefix in base.newest)
    return Assumption(part=library.part, library=soname, level=level or None, needed_by=needing,
                      versions=tuple(version for _, (_, version) in sorted(newest.items())))
