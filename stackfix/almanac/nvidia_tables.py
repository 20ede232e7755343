"""What wheels export, as the text of matrices/abi/nvidia: pure, the same wheels give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stackfix.abi.nvidia_text import INTERNAL, NAME, SONAME
from stackfix.abi.nvidia_versions import sorted_versions, spans_of
from stackfix.almanac.records import LibraryTables, WheelTables
from stackfix.errors import BadInput

UNREAD = "unread"
PACKAGES_HEAD = """\
# Published wheels of NVIDIA's libraries, oldest first: package, version, sonames of the libraries that were read.
# "unread": published, and nothing is known of it. Made by: python -m stackfix.almanac nvidia --make
"""
MANIFEST_LINE = "# sha256 of the rows of nvidia.toml: {digest}\n"     # what ties the files to the hashes of the wheels
LIBRARY_HEAD = """\
# Functions that {soname} exports: by package, name, and the versions that have it where not all with the library do.
# "A-B" from A to B, "A-" to the newest, of the versions that packages.tsv has as read.
"""
OF_THE_LINKER = frozenset({"__bss_start", "_edata", "_end", "_init", "_fini"})


class LibraryExports:
    """Collects what libraries export, one wheel at a time; names of many versions are kept once."""

    def __init__(self) -> None:
        self.read: dict[str, dict[str, tuple[str, ...]]] = {}                   # package -> version -> sonames
        self.having: dict[str, dict[str, dict[str, set[str]]]] = {}             # soname -> package -> name -> versions

    def add(self, tables: WheelTables) -> None:
        """Takes one wheel. Raises BadInput for a version that was there before, or a wheel without a library."""
        wheel, versions = tables.wheel, self.read.setdefault(tables.wheel.package, {})
        if wheel.version in versions:
            raise BadInput(wheel.file, f"a second wheel of {wheel.package} {wheel.version}")
        sonames = tuple(sorted({each.soname for each in tables.libraries if each.soname}))
        if not sonames or not all(map(SONAME.fullmatch, sonames)):
            raise BadInput(wheel.file, "has none of the libraries that are read of this package")
        versions[wheel.version] = sonames
        for library in tables.libraries:
            if library.soname:
                self._add(library, library.soname, wheel.package, wheel.version)

    def _add(self, library: LibraryTables, soname: str, package: str, version: str) -> None:
        having = self.having.setdefault(soname, {}).setdefault(package, {})
        for name in library.exports:
            if is_function(name):
                having.setdefault(name, set()).add(version)

    def names(self) -> dict[str, frozenset[str]]:
        """By soname, what any version exports."""
        return {soname: frozenset(name for names in packages.values() for name in names)
                for soname, packages in self.having.items()}

    def files(self, unread: Mapping[str, Iterable[str]], digest: str) -> dict[str, bytes]:
        """The files of the folder.

        `unread`: by package, versions that are published and were not read. `digest`: of the manifest.
        """
        found = {"packages.tsv": self._packages(unread, digest)}
        for soname in self.having:
            found[f"{soname}.tsv"] = self._library(soname)
        return {name: text.encode("ascii") for name, text in found.items()}

    def _packages(self, unread: Mapping[str, Iterable[str]], digest: str) -> str:
        lines = []
        for package in sorted({*self.read, *unread}):
            known = {**dict.fromkeys(unread.get(package, ()), (UNREAD,)), **self.read.get(package, {})}
            lines += [f"{package}\t{version}\t{' '.join(known[version])}\n" for version in sorted_versions(known)]
        return PACKAGES_HEAD + MANIFEST_LINE.format(digest=digest) + "".join(lines)

    def _library(self, soname: str) -> str:
        lines = [LIBRARY_HEAD.format(soname=soname)]
        for package, having in sorted(self.having[soname].items()):
            carrying = sorted_versions(version for version, sonames in self.read[package].items() if soname in sonames)
            places = {version: place for place, version in enumerate(carrying)}
            lines.append(f"@ {package}\n")
            for name, versions in sorted(having.items()):
                lines.append(line_of(name, sum(1 << places[version] for version in versions), carrying))
        return "".join(lines)


def line_of(name: str, mask: int, versions: tuple[str, ...]) -> str:
    spans = spans_of(mask, versions)
    return f"{name}\t{spans}\n" if spans else f"{name}\n"


def is_function(name: str) -> bool:
    """Whether a name is one that others may use: neither internal to a wheel, nor in every library without versions."""
    return not INTERNAL.match(name) and name not in OF_THE_LINKER and NAME.fullmatch(name) is not None
