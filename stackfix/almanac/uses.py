"""What consumers (NVIDIA's own libraries, and torch) want of NVIDIA's libraries, as the text of uses.tsv: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stackfix.abi.nvidia_versions import sorted_versions
from stackfix.almanac.nvidia_tables import is_function, line_of
from stackfix.almanac.records import LibraryTables, WheelTables

USES_HEAD = """\
# What consumers want of libraries of other wheels: strong undefined symbols. "= consumer, versions that were read",
# "@ its library, soname", then names, with the consumer's versions that want them where not all do.
# Made by: python -m stackfix.almanac nvidia --make
"""

# Libraries without symbol versions say with their names whose a symbol is, also where no read version exports it.
PREFIXES = {"libnccl.so.2": ("nccl", "pnccl"), "libcusparseLt.so.0": ("cusparseLt",)}


class LibraryUses:
    """Collects what consumers want, one wheel at a time. `exports`: by soname, what any version of it exports."""

    def __init__(self, exports: Mapping[str, frozenset[str]]) -> None:
        self.exports = exports
        self.versions: dict[str, set[str]] = {}                                 # by consumer
        self.wanting: dict[str, dict[tuple[str, str], dict[str, set[str]]]] = {}    # (library, soname) -> name

    def add(self, tables: WheelTables) -> None:
        """Takes one wheel; what several wheels of one release want is put together."""
        consumer, version = tables.wheel.package, tables.wheel.version
        self.versions.setdefault(consumer, set()).add(version)
        wanting = self.wanting.setdefault(consumer, {})
        for library, soname, name in uses_in(tables, self.exports):
            wanting.setdefault((library, soname), {}).setdefault(name, set()).add(version)

    def text(self) -> bytes:
        """The file."""
        lines = [USES_HEAD]
        for consumer in sorted(self.versions):
            versions = sorted_versions(self.versions[consumer])
            places = {version: place for place, version in enumerate(versions)}
            lines.append(f"= {consumer}\t{' '.join(versions)}\n")
            for (library, soname), names in sorted(self.wanting[consumer].items()):
                lines.append(f"@ {library}\t{soname}\n")
                for name, having in sorted(names.items()):
                    lines.append(line_of(name, sum(1 << places[version] for version in having), versions))
        return "".join(lines).encode("ascii")


def uses_in(tables: WheelTables, exports: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, str, str]]:
    """(library, soname, name) of what the wheel leaves to libraries of other wheels; weak symbols may stay null."""
    own = {name for each in tables.libraries for name in (each.soname, each.path.rpartition("/")[2]) if name}
    needed = {name for each in tables.libraries for name in each.needed} & exports.keys() - own
    supplied = frozenset(name for each in tables.libraries for name in each.exports)
    for library in tables.libraries:
        file = library.soname or library.path.rpartition("/")[2]
        for symbol in library.wanted:
            if symbol.weak or not is_function(symbol.name):
                continue
            if symbol.file is not None:
                if symbol.file in exports and symbol.file not in own:
                    yield file, symbol.file, symbol.name
            elif symbol.name not in supplied:
                for soname in sorted(needed):
                    if binds(symbol.name, soname, library, exports):
                        yield file, soname, symbol.name


def binds(name: str, soname: str, library: LibraryTables, exports: Mapping[str, frozenset[str]]) -> bool:
    """Whether a symbol without a version is this library's: by its exports, or by what its names begin with."""
    if name in exports[soname]:
        return True
    prefixes = PREFIXES.get(soname, ())
    return soname in library.needed and any(name.startswith(each) and name[len(each):][:1].isupper()
                                            for each in prefixes)
