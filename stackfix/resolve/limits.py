"""What one release limits beside its metadata: rules of the matrix, and what the symbols of the wheels tell.

Where both speak of the same two projects the symbols decide. Of a version that nobody read they say only what its two
neighbours agree on; else the rule decides, and where there is none, nothing does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.abi.records import LibraryUse, NvidiaBook
from stackfix.matrix import query
from stackfix.matrix.records import Matrix, Rule
from stackfix.quick import dataclass, replace
from stackfix.resolve.pep508 import ANY, admits, normalise, parse_requirement, parse_specifier, parse_version

SYMBOLS = "symbols of the wheels (almanac)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Limit:
    """What one release needs of the project `name`, if that is in the stack. It adds nothing to it."""

    rule: Rule                                  # as it is told
    name: str
    stated: tuple[SpecifierSet, ...]            # by rules of the matrix
    read: tuple[tuple[Version, bool], ...] = ()  # read versions of `name`, oldest first, and whether each suffices

    @property
    def all_suffice(self) -> bool:
        """Whether every version that was read has all that is used."""
        return all(fits for _, fits in self.read)

    def by_symbols(self, version: Version) -> bool | None:
        """Whether the symbols let the version in; None where they do not tell."""
        place = bisect_left(self.read, version, key=lambda entry: entry[0])
        if place < len(self.read) and self.read[place][0] == version:
            return self.read[place][1]
        if not 0 < place < len(self.read):
            return None
        below, above = self.read[place - 1][1], self.read[place][1]
        return below if below is above else None

    def admits(self, version: Version) -> bool:
        """Whether the version may stand beside the release, as far as anything is known."""
        told = self.by_symbols(version)
        return all(admits(specifier, version) for specifier in self.stated) if told is None else told

    def undecided(self, version: Version) -> bool:
        """Whether nothing is known of the version: neither do the symbols tell nor is there a rule."""
        return bool(self.read) and not self.stated and self.by_symbols(version) is None

    def specifier(self, versions: Sequence[Version]) -> SpecifierSet:
        """A specifier that takes those of `versions` (newest first) that the limit admits."""
        if not self.read:
            return self.stated[0]
        kept = [version for version in versions if self.admits(version)]
        if not kept:
            return parse_specifier("<0") or ANY
        parts = [f">={kept[-1]}"] if kept[-1] != versions[-1] else []
        parts += [f"<={kept[0]}"] if kept[0] != versions[0] else []
        inside = versions[versions.index(kept[0]) : versions.index(kept[-1])]
        parts += [f"!={version}" for version in inside if version not in kept]
        return parse_specifier(",".join(parts)) or ANY


def limits_of(matrix: Matrix, book: NvidiaBook | None, package: str, version: str) -> tuple[Limit, ...]:
    """All limits of one release: those of the symbols first, then rules about other projects, in file order."""
    by_symbols = {} if book is None else {limit.name: limit for limit in _symbol_limits(book, package, version)}
    others: list[Limit] = []
    for rule in query.rules_for(matrix, package, version):
        needed = parse_requirement(rule.needs)
        if needed is None:
            continue
        name = normalise(needed.name)
        known = by_symbols.get(name)
        if known is None or rule.needs.endswith("<0"):      # symbols do not tell that two overwrite each other's files
            others.append(Limit(rule=rule, name=name, stated=(needed.specifier,)))
        else:
            told = rule if known.all_suffice else known.rule
            by_symbols[name] = replace(known, rule=told, stated=(*known.stated, needed.specifier))
    return (*(limit for limit in by_symbols.values() if limit.stated or not limit.all_suffice), *others)


def of_the_nearest(book: NvidiaBook, package: str, version: str) -> tuple[str, tuple[Limit, ...]] | None:
    """For a consumer's release that nobody read, what the read one next below (else the oldest) needs. None: it was."""
    wanted = parse_version(version)
    known = [(parsed, text) for text in book.consumer_versions(package) if (parsed := parse_version(text)) is not None]
    if wanted is None or not known or any(parsed == wanted for parsed, _ in known):
        return None
    nearest = max((entry for entry in known if entry[0] < wanted), default=min(known))[1]
    limits = _of_uses(book, package, nearest, book.uses(package, nearest))
    return nearest, tuple(limit for limit in limits if not limit.all_suffice)


def _symbol_limits(book: NvidiaBook, package: str, version: str) -> Iterator[Limit]:
    """One limit for each library wheel that the release uses, also where every read version of it suffices."""
    uses = book.uses(package, version)
    if uses:
        yield from _of_uses(book, package, version, uses)
        return
    neighbours = _neighbours(book.consumer_versions(package), version)
    if neighbours is None:
        return
    below, above = (
        {limit.name: limit for limit in _of_uses(book, package, version, book.uses(package, near))}
        for near in neighbours
    )
    for name, limit in below.items():
        if name in above and above[name].read == limit.read:
            why = f"{limit.rule.why} (as read of {package} {neighbours[0]} and {neighbours[1]})"
            yield replace(limit, rule=replace(limit.rule, why=why, confidence="high"))


def _neighbours(versions: Sequence[str], version: str) -> tuple[str, str] | None:
    """The read versions next below and above one that was not read; None where it was, or stands at an end."""
    wanted = parse_version(version)
    known = sorted((parsed, text) for text in versions if (parsed := parse_version(text)) is not None)
    if wanted is None or any(parsed == wanted for parsed, _ in known):
        return None
    place = bisect_left(known, wanted, key=lambda entry: entry[0])
    return (known[place - 1][1], known[place][1]) if 0 < place < len(known) else None


def _of_uses(book: NvidiaBook, package: str, version: str, uses: Iterable[LibraryUse]) -> Iterator[Limit]:
    """The uses of one library wheel together: each of several libraries may want something else of it."""
    wanted: dict[str, list[LibraryUse]] = {}
    for use in uses:
        wanted.setdefault(use.bounds.package, []).append(use)
    for name, same in sorted(wanted.items()):
        if name == package:
            continue
        suffice = set(same[0].bounds.versions).intersection(*(use.bounds.versions for use in same[1:]))
        read = tuple(sorted(
            (parsed, text in suffice) for text in book.versions(name) if (parsed := parse_version(text)) is not None
        ))
        # where no read version has all of it, something is amiss with the reading: the metadata's word stands
        if any(fits for _, fits in read):
            rule = Rule(
                package=package, versions=f"=={version}", needs=f"{name}{_span(read)}", why=_why(same, read),
                source=SYMBOLS, confidence="certain",
            )
            yield Limit(rule=rule, name=name, stated=(), read=read)


def _span(read: Sequence[tuple[Version, bool]]) -> str:
    """`>=12.1.55`, `<=11.5.4.101`, or both; versions within that do not suffice are named."""
    fitting = [version for version, fits in read if fits]
    parts = [f">={fitting[0]}"] if not read[0][1] else []
    parts += [f"<={fitting[-1]}"] if not read[-1][1] else []
    parts += [f"!={version}" for version, fits in read if not fits and fitting[0] < version < fitting[-1]]
    return ",".join(parts)


def _why(uses: Sequence[LibraryUse], read: Sequence[tuple[Version, bool]]) -> str:
    """The symbols that set floor and ceiling: `libcusparse.so.12 uses __nvJitLinkAddData_12_1, absent in 12.0.140`."""
    told: list[str] = []
    floors = [use for use in uses if use.bounds.low and use.bounds.not_enough]
    if floors:
        use = max(floors, key=lambda one: parse_version(one.bounds.floor or "0") or Version("0"))
        told.append(f"{use.file} uses {use.bounds.low[0]}, absent in {use.bounds.not_enough}")
    ceilings = [use for use in uses if use.bounds.high and use.bounds.gone_in]
    if ceilings:
        use = min(ceilings, key=lambda one: parse_version(one.bounds.ceiling or "0") or Version("0"))
        told.append(f"{use.file} uses {use.bounds.high[0]}, gone in {use.bounds.gone_in}")
    if told:
        return "; ".join(told)
    lacking = ", ".join(str(version) for version, fits in read if not fits)
    return f"{uses[0].file} uses functions that are absent in {lacking or 'no version that was read'}"
