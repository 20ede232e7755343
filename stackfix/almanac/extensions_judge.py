"""A judged wheel: what its symbols tell of torch, beside what its metadata require of torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stackfix.abi.facts_libraries import cuda_majors, needed_of
from stackfix.abi.records import BookRelease, Deciding, JudgedWheel, TorchBook
from stackfix.abi.torch_range import minor_of, torch_range
from stackfix.almanac.extensions_files import compiled_files, machine_of
from stackfix.almanac.records import WheelTables
from stackfix.errors import BadInput

if TYPE_CHECKING:
    from packaging.markers import Marker

PYTHON = re.compile(r"-cp(\d)(\d+)-cp\1\2")       # not "cp39-abi3": that is a floor
MOST_LETTERS = 200              # of a symbol that is told
ANY = "*"                       # torch is required, whatever its version


def judge(tables: WheelTables, book: TorchBook) -> JudgedWheel:
    """What is told of one wheel. Raises BadInput for one that asks nothing of torch: it is no extension of it."""
    files = compiled_files(tables)
    found = torch_range(files, book)
    if found is None or not found.asked:
        raise BadInput(tables.wheel.file, "none of its files asks anything of torch", "Take it out of the manifest.")
    declares = declared_torch(tables.requires, tables.wheel.file)
    single = {minor_of(version) for version in found.patches}
    return JudgedWheel(
        package=tables.wheel.package, version=tables.wheel.version, file=tables.wheel.file, sha256=tables.wheel.sha256,
        torch=found.minors, string_abi=found.string_abi, cuda=cuda_majors(needed_of(file.elf for file in files)),
        declares=declares,
        disproved=tuple(minor for minor in admitted(declares, book.releases) if minor not in {*found.minors, *single}),
        because=tuple(dict.fromkeys(
            (*shortest(found.unknown), *shortest(found.floor), *shortest(found.ceiling)))),
    )


def shortest(reasons: Sequence[Deciding]) -> tuple[str, ...]:
    """Of the symbols that set a bound, the two that read best."""
    return tuple(sorted({each.name for each in reasons if len(each.name) <= MOST_LETTERS},
                        key=lambda name: (len(name), name))[:2])


def declared_torch(requires: Iterable[str], file: str) -> str | None:
    """What the metadata of a wheel require of torch: ">=2.11"; "*": torch without a version, None: no torch."""
    from packaging.requirements import InvalidRequirement, Requirement

    clauses, found = set[str](), False
    for line in requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:      # old metadata have lines that no installer takes
            continue
        if requirement.name.lower() == "torch" and applies(requirement.marker, file):
            found = True
            clauses |= {str(each) for each in requirement.specifier}
    return (",".join(sorted(clauses)) or ANY) if found else None


def applies(marker: Marker | None, file: str) -> bool:
    """Whether a requirement holds where the wheel of this name is for, whatever this runs on; no extra asked for."""
    python = PYTHON.search(file)
    minor = f"{python[1]}.{python[2]}" if python else "3.11"
    return marker is None or marker.evaluate({
        "extra": "", "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_release": "",
        "platform_version": "", "platform_machine": machine_of(file), "python_version": minor,
        "python_full_version": f"{minor}.0", "implementation_name": "cpython", "implementation_version": f"{minor}.0",
        "platform_python_implementation": "CPython"})


def admitted(declares: str | None, releases: Sequence[BookRelease]) -> tuple[str, ...]:
    """Minors of which at least one release is admitted. A pin's local version says which build, not which release."""
    from packaging.specifiers import SpecifierSet

    if declares is None:
        return ()
    clauses = () if declares == ANY else declares.split(",")
    specifier = SpecifierSet(",".join(each.partition("+")[0] for each in clauses))
    return tuple(release.minor for release in releases
                 if any(specifier.contains(version) for version in (release.version, *release.patches)))


__all__ = ["admitted", "declared_torch", "judge"]
