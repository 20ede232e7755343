"""Which releases of NVIDIA's library wheels export which functions, and what their consumers want of them.

The files are read when a question needs them: packages.tsv always, of the libraries the one that is asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from stackfix.abi.nvidia_bounds import bounds_in, since_in
from stackfix.abi.nvidia_text import INTERNAL, Consumer, Exports, Published, parse_exports, parse_packages, parse_uses
from stackfix.abi.nvidia_versions import version_key
from stackfix.abi.records import Asking, Bounds, LibraryUse, Provision, Since
from stackfix.matrix.toml_files import matrix_directory, read_file

EXPECTED = ("nvidia/packages.tsv", "nvidia/<library>.tsv", "uses.tsv")


def open_nvidia_book(directory: Path | None = None) -> AlmanacOfNvidia:
    """The book in `directory`, ours where none is named. Raises BadInput, as every question may about its file."""
    return AlmanacOfNvidia(directory or matrix_directory() / "abi")


class AlmanacOfNvidia:
    """Fills records.NvidiaBook.

    C++ names (_Z...) and names of kernels (sm90_...) that these libraries export are internal to their wheels and not
    in the book: `provides` cannot tell of them, and `bounds` leaves them out.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._published = self._parsed_packages()
        self._carriers: dict[str, dict[str, tuple[str, ...]]] = {}      # soname -> package -> versions that carry it
        for package, published in self._published.items():
            for version, sonames in published.read.items():
                for soname in sonames:
                    of_soname = self._carriers.setdefault(soname, {})
                    of_soname[package] = (*of_soname.get(package, ()), version)
        self._exports: dict[str, dict[str, Exports]] = {}
        self._consumers: dict[str, Consumer] | None = None

    def _parsed_packages(self) -> dict[str, Published]:
        path = self.directory / "nvidia" / "packages.tsv"
        return parse_packages(str(path), read_file(path, EXPECTED))

    def _exports_of(self, soname: str) -> Mapping[str, Exports]:
        """By package; nothing for a library that the almanac does not know."""
        if soname not in self._exports:
            carriers = self._carriers.get(soname, {})
            path = self.directory / "nvidia" / f"{soname}.tsv"
            self._exports[soname] = parse_exports(str(path), read_file(path, EXPECTED), carriers) if carriers else {}
        return self._exports[soname]

    def _uses(self) -> Mapping[str, Consumer]:
        if self._consumers is None:
            path = self.directory / "uses.tsv"
            self._consumers = parse_uses(str(path), read_file(path, EXPECTED))
        return self._consumers

    @property
    def sonames(self) -> tuple[str, ...]:
        """Libraries that the almanac knows."""
        return tuple(sorted(self._carriers))

    def packages(self, soname: str) -> tuple[str, ...]:
        """Wheels that carry a library of this soname."""
        return tuple(self._carriers.get(soname, ()))

    def versions(self, package: str) -> tuple[str, ...]:
        """Read versions, oldest first."""
        published = self._published.get(package)
        return tuple(published.read) if published else ()

    def unread(self, package: str) -> tuple[str, ...]:
        """Versions that were published when the almanac was made, and not read."""
        published = self._published.get(package)
        return published.unread if published else ()

    def since(self, soname: str, name: str) -> tuple[Since, ...]:
        """For each wheel that has the library, one record per run of versions with the function; () where none has."""
        found: list[Since] = []
        for package, exports in self._exports_of(soname).items():
            found += since_in(package, soname, name, exports)
        return tuple(found)

    def bounds(self, soname: str, names: Collection[str]) -> tuple[Bounds, ...]:
        """For each wheel that has the library: which versions export all of the names. Internal ones are left out."""
        wanted = sorted({name for name in names if not INTERNAL.match(name)})
        return tuple(bounds_in(package, soname, wanted, exports, self.versions(package))
                     for package, exports in self._exports_of(soname).items())

    def provides(self, package: str, version: str, soname: str, names: Collection[str]) -> Provision:
        """Which of the names a version exports. One that was not read is judged only where its neighbours agree."""
        older, newer = self._around(package, version)
        below, above = (self._has(package, each, soname, names) for each in (older, newer))
        missing = tuple(sorted(name for name in names if below[name] is above[name] is False))
        unsure = tuple(sorted(name for name in names if below[name] is None or below[name] is not above[name]))
        read = older is not None and older == newer
        return Provision(package=package, version=version, soname=soname, missing=missing, unsure=unsure,
                         older=None if read else older, newer=None if read else newer)

    def _around(self, package: str, version: str) -> tuple[str | None, str | None]:
        """The read versions next to one, itself on both sides where it was read."""
        key = version_key(version)
        older: str | None = None
        for each in self.versions(package) if key else ():
            at = version_key(each)
            if at == key:
                return each, each
            if at is not None and key is not None and at > key:
                return older, each
            older = each
        return older, None

    def _has(self, package: str, version: str | None, soname: str, names: Collection[str]) -> dict[str, bool | None]:
        """Whether a read version has each of the names; None where the book does not know."""
        masks = self._masks(package, version, soname) if version else None
        if masks is None:
            return dict.fromkeys(names)
        having, bit = masks
        return {name: None if INTERNAL.match(name) else bool(having.get(name, 0) & bit) for name in names}

    def _masks(self, package: str, version: str, soname: str) -> tuple[Mapping[str, int], int] | None:
        """The names of a library and the bit of a read version, 0 where it lacks the library; None where not known."""
        read, same = self._around(package, version)
        if read is None or read != same or soname not in self._carriers:
            return None
        exports = self._exports_of(soname).get(package)
        if exports is None or read not in exports.versions:
            return {}, 0
        return exports.masks, 1 << exports.versions.index(read)

    def exported(self, package: str, version: str, soname: str) -> Collection[str] | None:
        """Names of one release's library, none where the release lacks it; None where it was not read."""
        found = self._masks(package, version, soname)
        return None if found is None else frozenset(name for name, mask in found[0].items() if mask & found[1])

    def consumers(self) -> tuple[str, ...]:
        """Packages of which it is known what they want of NVIDIA's libraries."""
        return tuple(self._uses())

    def consumer_versions(self, consumer: str) -> tuple[str, ...]:
        """Versions of a consumer of which it is known, oldest first; `uses` gives () for every other."""
        known = self._uses().get(consumer)
        return known.versions if known else ()

    def wants(self, consumer: str, version: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """(library, soname, names) that a release wants of libraries of other wheels; () where it was not read."""
        known, key = self._uses().get(consumer), version_key(version)
        place = next((place for place, each in enumerate(known.versions) if version_key(each) == key), None) if known \
            else None
        if known is None or place is None:
            return ()
        found = ((each.file, each.soname, tuple(name for name, mask in each.masks.items() if mask >> place & 1))
                 for each in known.wants)
        return tuple(each for each in found if each[2])

    def asking(self, soname: str, name: str) -> tuple[Asking, ...]:
        """Who wants a function of a library: for each consumer's file, the releases that do."""
        return tuple(
            Asking(consumer=consumer, file=each.file, versions=tuple(
                version for place, version in enumerate(known.versions) if each.masks[name] >> place & 1))
            for consumer, known in self._uses().items()
            for each in known.wants if each.soname == soname and each.masks.get(name))

    def uses(self, consumer: str, version: str) -> tuple[LibraryUse, ...]:
        """What a release wants of libraries of other wheels, for each wheel that has one; () where it was not read."""
        return tuple(LibraryUse(consumer=consumer, version=version, file=file, bounds=bounds)
                     for file, soname, names in self.wants(consumer, version)
                     for bounds in self.bounds(soname, names))


__all__ = ["AlmanacOfNvidia", "open_nvidia_book"]
