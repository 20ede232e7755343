"""Extension wheels that were read and judged before: `matrices/abi/extensions.tsv`.

UTF-8 lines of ten columns with a tab between them; first of all a line with the columns' names:

    package     normalised project name
    version     with its local version
    file        wheel file name
    sha256      of the wheel
    torch       torch minors that it can load with by its symbols, with each of their patches, oldest first, a space
                between them; single releases of minors where only some patches do: `2.3 2.4.0`; `-`: none known
    string_abi  std::string of its torch-owned names: `old`, `new`, `both`; `-` where none speaks of it
    cuda        CUDA majors of the libraries that it is linked against; `-`: none
    declares    what its metadata require of torch: `>=2.11`; `*`: torch, whatever its version; `-`: nothing
    disproved   torch minors that it declares and cannot load with; `-`: none
    because     of the symbols that bound `torch`, the shortest: two for its oldest minor, two for its newest; `-`: none

Packages stand in alphabetic order, a package's newest release first, a release's wheels by file name. The generator
writes the file (`python -m stackfix.almanac extensions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from stackfix.abi.records import JudgedWheel
from stackfix.errors import BadInput
from stackfix.matrix.toml_files import matrix_directory, read_file

FILE = "extensions.tsv"
COLUMNS = ("package", "version", "file", "sha256", "torch", "string_abi", "cuda", "declares", "disproved",
           "because")
NOTHING = "-"
HINT = "Install stackfix again, or make the file anew with `python -m stackfix.almanac extensions --make`."
PATTERNS = {
    "package": re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*"),
    "version": re.compile(r"[0-9][0-9a-z.!]*(?:\+[0-9a-z.]+)?"),
    "file": re.compile(r"[A-Za-z0-9_.+!]+(?:-[A-Za-z0-9_.+!]+){4,5}\.whl"),
    "sha256": re.compile(r"[0-9a-f]{64}"),
    "torch": re.compile(r"-|[0-9]{1,4}(?:\.[0-9]{1,4}){1,2}(?: [0-9]{1,4}(?:\.[0-9]{1,4}){1,2})*"),
    "string_abi": re.compile(r"-|old|new|both"),
    "cuda": re.compile(r"-|[0-9]{1,4}(?: [0-9]{1,4})*"),
    "declares": re.compile(r"-|\*|(?:[=<>!~]=?=?[0-9][0-9a-z.!+*]*)(?:,[=<>!~]=?=?[0-9][0-9a-z.!+*]*)*"),
    "disproved": re.compile(r"-|[0-9]{1,4}\.[0-9]{1,4}(?: [0-9]{1,4}\.[0-9]{1,4})*"),
    "because": re.compile(r"-|[A-Za-z_][A-Za-z0-9_.$]*(?: [A-Za-z_][A-Za-z0-9_.$]*)*"),
}


class ReadWheels:
    """Fills records.JudgedWheels over wheels in the order of the file."""

    def __init__(self, wheels: Iterable[JudgedWheel]) -> None:
        self.wheels = tuple(wheels)
        self._by_hash = {each.sha256: each for each in self.wheels}
        packages: dict[str, list[JudgedWheel]] = {}
        for each in self.wheels:
            packages.setdefault(each.package, []).append(each)
        self._packages: Mapping[str, tuple[JudgedWheel, ...]] = {name: tuple(each) for name, each in packages.items()}

    @property
    def packages(self) -> tuple[str, ...]:
        """All packages of which a wheel was read, by name."""
        return tuple(sorted(self._packages))

    def wheel(self, sha256: str) -> JudgedWheel | None:
        """By the hash of the file."""
        return self._by_hash.get(sha256)

    def releases(self, package: str, version: str) -> tuple[JudgedWheel, ...]:
        """All wheels of one release that were read. Both names in normalised form."""
        return tuple(each for each in self.of(package) if each.version == version)

    def of(self, package: str) -> tuple[JudgedWheel, ...]:
        """All wheels of a package, newest release first."""
        return self._packages.get(package, ())


def open_judged_wheels(directory: Path | None = None) -> ReadWheels:
    """The wheels of `extensions.tsv` in `directory`, else of the bundled one. Raises BadInput with the line."""
    path = (matrix_directory() / "abi" if directory is None else directory) / FILE
    content = read_file(path, (FILE,))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path}:{line}", f"not UTF-8 (byte {error.start})", HINT) from None
    return ReadWheels(parse_judged_wheels(text, str(path)))


def parse_judged_wheels(text: str, name: str) -> tuple[JudgedWheel, ...]:
    """The wheels of the whole text of such a file. Raises BadInput, which names the line, for the first fault."""
    first, *lines = text.split("\n")
    if tuple(first.split("\t")) != COLUMNS:
        raise BadInput(f"{name}:1", f"the columns are not {' '.join(COLUMNS)}", HINT)
    if not lines or lines.pop():
        raise BadInput(f"{name}:{text.count(chr(10)) + 1}", "the last line does not end", HINT)
    wheels = list[JudgedWheel]()
    hashes = set[str]()
    for number, line in enumerate(lines, 2):
        wheel = parse_row(line, f"{name}:{number}")
        new = not wheels or wheels[-1].package != wheel.package
        if new and wheels and wheel.package <= wheels[-1].package:
            raise BadInput(f"{name}:{number}", f"{wheel.package} stands behind {wheels[-1].package}", HINT)
        if wheel.sha256 in hashes:
            raise BadInput(f"{name}:{number}", f"the wheel {wheel.sha256} stands here twice", HINT)
        hashes.add(wheel.sha256)
        wheels.append(wheel)
    return tuple(wheels)


def parse_row(line: str, where: str) -> JudgedWheel:
    """One line. Raises BadInput."""
    values = line.split("\t")
    if len(values) != len(COLUMNS):
        raise BadInput(where, f"{len(values)} columns instead of {len(COLUMNS)}", HINT)
    row = dict(zip(COLUMNS, values, strict=True))
    for column, value in row.items():
        if not PATTERNS[column].fullmatch(value):
            raise BadInput(where, f"{value[:60]!r} is no {column}", HINT)
    for column in ("torch", "cuda", "disproved"):
        listed = [tuple(map(int, word.split("."))) for word in words(row[column])]
        if any(second <= one for one, second in pairwise(listed)):
            raise BadInput(where, f"{column} is not in order: {row[column][:60]!r}", HINT)
    both = set(words(row["torch"])) & set(words(row["disproved"]))
    if both:
        raise BadInput(where, f"torch {min(both)} is both possible and disproved", HINT)
    return JudgedWheel(
        package=row["package"], version=row["version"], file=row["file"], sha256=row["sha256"],
        torch=words(row["torch"]), string_abi=given(row["string_abi"]), cuda=tuple(map(int, words(row["cuda"]))),
        declares=given(row["declares"]), disproved=words(row["disproved"]),
        because=words(row["because"]),
    )


def render_judged_wheels(wheels: Iterable[JudgedWheel]) -> str:
    """The whole text of such a file, of wheels that are in its order."""
    rows = [COLUMNS]
    for each in wheels:
        lists = (each.torch, tuple(map(str, each.cuda)), each.disproved, each.because)
        torch, cuda, disproved, because = (" ".join(words) or NOTHING for words in lists)
        rows.append((each.package, each.version, each.file, each.sha256, torch, each.string_abi or NOTHING, cuda,
                     each.declares or NOTHING, disproved, because))
    return "".join("\t".join(row) + "\n" for row in rows)


def given(value: str) -> str | None:
    return None if value == NOTHING else value


def words(value: str) -> tuple[str, ...]:
    return () if value == NOTHING else tuple(value.split(" "))
