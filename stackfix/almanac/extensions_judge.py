"""A judged wheel: what its symbols tell of torch, beside what its metadata require of torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from stackfix.abi.facts_libraries import cuda_majors, needed_of
from stackfix.abi.records import BookRelease, Deciding, JudgedWheel, TorchBook, TorchRange
from stackfix.abi.torch_range import torch_range
from stackfix.abi.torch_required import torch_required
from stackfix.almanac.extensions_files import compiled_files, machine_of
from stackfix.almanac.records import WheelTables
from stackfix.errors import BadInput

PYTHON = re.compile(r"-cp(\d)(\d+)-cp\1\2")       # not "cp39-abi3": that is a floor
NUMBER = re.compile(r"\d+")
MOST_LETTERS = 200              # of a symbol that is told
TORCH = re.compile(r"torch(?![A-Za-z0-9._-])", re.IGNORECASE)
ASSUMED = "3.11"                # the Python of a wheel for several, whose wheels --add takes
ANY = "*"                       # torch is required, whatever its version


def judge(tables: WheelTables, book: TorchBook) -> JudgedWheel:
    """What is told of one wheel. Raises BadInput for one that asks nothing of torch: it is no extension of it."""
    files = compiled_files(tables)
    found = torch_range(files, book)
    if found is None or not found.asked:
        raise BadInput(tables.wheel.file, "none of its files asks anything of torch", "Take it out of the manifest.")
    declares = declared_torch(tables.requires, tables.wheel.file)
    return JudgedWheel(
        package=tables.wheel.package, version=tables.wheel.version, file=tables.wheel.file, sha256=tables.wheel.sha256,
        torch=tuple(able(found, book.releases)), string_abi=found.string_abi,
        cuda=cuda_majors(needed_of(file.elf for file in files)), declares=declares,
        disproved=tuple(minor for minor, versions in admitted(declares, book.releases).items()
                        if not any(map(found.loads, versions))),
        because=tuple(dict.fromkeys(
            (*shortest(found.unknown), *shortest(found.floor), *shortest(found.ceiling)))),
    )


def able(found: TorchRange, releases: Iterable[BookRelease]) -> Iterator[str]:
    """Minors of which every patch has all that is asked for; of the others, the releases that have."""
    for release in releases:
        patches = sorted((release.version, *release.patches), key=by_number)
        fitting = [version for version in patches if found.loads(version)]
        yield from [release.minor] if fitting == patches else fitting


def by_number(version: str) -> tuple[int, ...]:
    return tuple(map(int, NUMBER.findall(version)))


def shortest(reasons: Sequence[Deciding]) -> tuple[str, ...]:
    """Of the symbols that set a bound, the two that read best."""
    return tuple(sorted({each.name for each in reasons if len(each.name) <= MOST_LETTERS},
                        key=lambda name: (len(name), name))[:2])


def declared_torch(requires: Iterable[str], file: str) -> str | None:
    """What the metadata of a wheel require of torch where it is for: ">=2.11"; "*": torch without a version.

    None: no torch, or only where it cannot be told whether that is there.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    lines = [line for line in requires if TORCH.match(line)]
    try:
        specifier = SpecifierSet(asked_of(lines, file) or "")
    except InvalidSpecifier:        # old metadata have lines that no installer takes
        return None
    if specifier:
        return ",".join(sorted(map(str, specifier)))
    at_all = asked_of([f"torch>=0;{line.partition(';')[2]}" for line in lines], file)
    return ANY if at_all and asked_of(lines, file) == "" else None


def asked_of(lines: Iterable[str], file: str) -> str | None:
    """The specifier of these lines where the wheel of this name is for, as `torch_required` gives it."""
    python = PYTHON.search(file)
    machine = machine_of(file)
    return torch_required(lines, (), None, () if machine == "any" else (machine,),
                          f"{python[1]}.{python[2]}" if python else ASSUMED)


def admitted(declares: str | None, releases: Sequence[BookRelease]) -> dict[str, tuple[str, ...]]:
    """The releases that are admitted, by minor. A pin's local version says which build, not which release."""
    from packaging.specifiers import SpecifierSet

    if declares is None:
        return {}
    clauses = () if declares == ANY else declares.split(",")
    specifier = SpecifierSet(",".join(each.partition("+")[0] for each in clauses))
    found = {release.minor: tuple(specifier.filter((release.version, *release.patches))) for release in releases}
    return {minor: versions for minor, versions in found.items() if versions}


__all__ = ["admitted", "declared_torch", "judge"]
