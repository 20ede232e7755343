"""What the tests keep of the surveyed wheels, so that every set can be computed again without a download.

`names.txt.xz`: of each shared object the names that torch could be meant by, and what a sibling supplies. Lines:

    N name              the names, sorted; other lines count them from 0, each number as the step from the one before
    X number minors     a name that is not torch's to give, and torch minors that export it all the same
    M number library minors     a name of torch that moved from one of its libraries to another
    W package version file sha256
    R requirement       Requires-Dist that names torch
    L path soname needed,needed     a shared object; `-` for no soname
    S numbers           strong undefined names without a version
    V numbers           undefined names with a symbol version
    K numbers           weak undefined names
    E numbers           names that it defines and another file of the wheel wants

Made by `python -m tests.abi_survey.kept --store DIR`, of the almanac's store.
"""

from __future__ import annotations

import argparse
import lzma
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackfix.abi.names import TORCH_COMPONENT, is_torch_symbol
from stackfix.almanac.manifest import read_manifest
from stackfix.almanac.records import LibraryTables, ManifestWheel, WantedName, WheelTables
from stackfix.almanac.store import tables
from stackfix.matrix.toml_files import matrix_directory

FILE = Path(__file__).with_name("names.txt.xz")
TORCH_LIBRARY = re.compile(r"torch/lib/lib(?:torch|c10|caffe2|shm)[^/]*\.so$")
SOME_VERSION = "V"          # which one is of no account


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The wheels, with the names that may be torch's, and what else torch exports of the names that they want."""

    wheels: tuple[WheelTables, ...]
    leaks: Mapping[str, tuple[str, ...]]    # names that are not torch's to give: torch minors that export them
    moves: Mapping[str, Mapping[str, tuple[str, ...]]]      # names that moved: libraries, each with its minors


def may_be_torch(name: str) -> bool:
    """Whether a name is torch's, or would be counted as torch's by a rule without filters."""
    return is_torch_symbol(name) or (name.startswith("_Z") and bool(TORCH_COMPONENT.search(name) or "2at" in name))


def reduced(wheel: WheelTables, leaks: Mapping[str, tuple[str, ...]]) -> WheelTables:
    """The same wheel with those names only."""
    kept = [tuple(WantedName(name=each.name, version=each.version and SOME_VERSION, file=None, weak=each.weak)
                  for each in library.wanted if may_be_torch(each.name) or each.name in leaks)
            for library in wheel.libraries]
    wanted = {each.name for names in kept for each in names}
    return WheelTables(
        wheel=wheel.wheel, requires=tuple(line for line in wheel.requires if re.match(r"torch\b(?!-|\w)", line)),
        libraries=tuple(LibraryTables(path=library.path, soname=library.soname, needed=library.needed,
                                      exports=tuple(name for name in library.exports if name in wanted), wanted=names)
                        for library, names in zip(wheel.libraries, kept, strict=True)))


def exporters(wanted: set[str], releases: Iterable[tuple[str, WheelTables]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """By name: torch's libraries that export it, each with the minors."""
    found: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for minor, release in releases:
        for library in release.libraries:
            file = library.path.rpartition("/")[2]
            for name in wanted.intersection(library.exports):
                found[name][file] = (*found[name].get(file, ()), minor)
    return dict(sorted(found.items()))


def in_any(libraries: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Minors of which some library has it, oldest first."""
    return tuple(sorted({minor for minors in libraries.values() for minor in minors}, key=by_number))


def by_number(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")))


def render(survey: Survey) -> Iterator[str]:
    """The lines of the file."""
    names = sorted({name for wheel in survey.wheels for library in wheel.libraries
                    for name in (*library.exports, *(each.name for each in library.wanted))})
    number = {name: index for index, name in enumerate(names)}
    yield from (f"N {name}" for name in names)
    yield from (f"X {number[name]} {' '.join(minors)}" for name, minors in survey.leaks.items() if name in number)
    for name, libraries in survey.moves.items():
        yield from (f"M {number[name]} {library} {' '.join(minors)}" for library, minors in sorted(libraries.items()))
    for wheel in survey.wheels:
        yield f"W {wheel.wheel.package} {wheel.wheel.version} {wheel.wheel.file} {wheel.wheel.sha256}"
        yield from (f"R {line}" for line in wheel.requires)
        for library in wheel.libraries:
            yield f"L {library.path} {library.soname or '-'} {','.join(library.needed)}"
            strong = [each.name for each in library.wanted if not each.weak and each.version is None]
            versioned = [each.name for each in library.wanted if each.version is not None]
            weak = [each.name for each in library.wanted if each.weak and each.version is None]
            for key, listed in (("S", strong), ("V", versioned), ("K", weak), ("E", library.exports)):
                if listed:
                    yield f"{key} {steps(sorted({number[name] for name in listed}))}"


def steps(numbers: Sequence[int]) -> str:
    return " ".join(str(each - before) for before, each in zip((0, *numbers), numbers, strict=False))


def read_survey(path: Path = FILE) -> Survey:
    """What the file has."""
    names: list[str] = []
    leaks: dict[str, tuple[str, ...]] = {}
    moves: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    wheels: list[WheelTables] = []
    head: ManifestWheel | None = None
    requires: list[str] = []
    libraries: list[tuple[list[str], dict[str, list[str]]]] = []

    def close() -> None:
        if head is not None:
            read = tuple(map(as_library, libraries))
            wheels.append(WheelTables(wheel=head, requires=tuple(requires), libraries=read))
        requires.clear()
        libraries.clear()

    for line in lzma.decompress(path.read_bytes()).decode().splitlines():
        key, _, rest = line.partition(" ")
        if key == "N":
            names.append(rest)
        elif key == "X":
            number, *minors = rest.split(" ")
            leaks[names[int(number)]] = tuple(minors)
        elif key == "M":
            number, library, *minors = rest.split(" ")
            moves[names[int(number)]][library] = tuple(minors)
        elif key == "W":
            close()
            package, version, file, sha256 = rest.split(" ")
            head = ManifestWheel(package=package, version=version, file=file, sha256=sha256)
        elif key == "R":
            requires.append(rest)
        elif key == "L":
            libraries.append((rest.split(" "), {}))
        else:
            libraries[-1][1][key] = [names[number] for number in counted(rest)]
    close()
    return Survey(wheels=tuple(wheels), leaks=leaks, moves=dict(moves))


def counted(text: str) -> Iterator[int]:
    number = 0
    for step in text.split(" "):
        number += int(step)
        yield number


def as_library(row: tuple[list[str], dict[str, list[str]]]) -> LibraryTables:
    (path, soname, needed), listed = row
    wanted = [WantedName(name=name, version=version, file=None, weak=weak)
              for key, version, weak in (("S", None, False), ("V", SOME_VERSION, False), ("K", None, True))
              for name in listed.get(key, ())]
    return LibraryTables(path=path, soname=None if soname == "-" else soname,
                         needed=tuple(filter(None, needed.split(","))), exports=tuple(listed.get("E", ())),
                         wanted=tuple(sorted(wanted, key=lambda each: (each.name, each.version or "", each.weak))))


def make(store: Path, directory: Path) -> Survey:
    """The survey, from the store."""
    wheels = [tables(each, store, every_file) for each in read_manifest(directory / "extensions.toml")]
    wanted = {each.name for wheel in wheels for library in wheel.libraries for each in library.wanted}
    newest: dict[str, ManifestWheel] = {}
    for each in read_manifest(directory / "torch.toml"):    # by version: the newest patch of a minor comes last
        newest[".".join(each.version.split(".")[:2])] = each
    releases = ((minor, tables(each, store, is_torch_file)) for minor, each in newest.items())
    exported = exporters(wanted, releases)
    leaks = {name: in_any(libraries) for name, libraries in exported.items() if not is_torch_symbol(name)}
    reduced_wheels = tuple(reduced(wheel, leaks) for wheel in wheels)
    return Survey(wheels=reduced_wheels, leaks=leaks, moves={
        name: libraries for name, libraries in exported.items()
        if is_torch_symbol(name) and all(minors != in_any(libraries) for minors in libraries.values())})


def every_file(_path: str) -> bool:
    return True


def is_torch_file(path: str) -> bool:
    return TORCH_LIBRARY.fullmatch(path) is not None


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.abi_survey.kept")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--directory", type=Path, default=matrix_directory() / "abi")
    asked = parser.parse_args(words)
    text = "".join(f"{line}\n" for line in render(make(asked.store, asked.directory)))
    FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
