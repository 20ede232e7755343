"""The versions of one page, in order: the same for every target that looks at it, so that they are sorted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.resolve.needs import Need
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.records import ProjectPage


class PageVersions:
    """What a page's version strings mean. A memory that many targets share, and threads that fetch ahead."""

    def __init__(self, page: ProjectPage) -> None:
        texts: dict[Version, list[str]] = {}
        for text in page.version_strings():
            version = parse_version(text)
            if version is not None:
                texts.setdefault(version, []).append(text)
        self.texts: Mapping[Version, Sequence[str]] = texts     # as the file names write a version
        self.newest_first: tuple[Version, ...] = tuple(sorted(texts, reverse=True))
        self._admitting: dict[int, tuple[SpecifierSet, int]] = {}
        self._lists: dict[int, list[Version]] = {}
        self._stages: dict[int, tuple[list[Version], list[Version]]] = {}

    def admitted(self, needs: Sequence[Need]) -> list[Version]:
        """Versions that all needs admit, newest first."""
        return self._listed(self._common(needs))

    def stages(self, needs: Sequence[Need]) -> tuple[list[Version], list[Version]]:
        """The same, final releases apart from pre-releases."""
        bits = self._common(needs)
        if bits not in self._stages:
            admitted = self._listed(bits)
            self._stages[bits] = ([version for version in admitted if not version.is_prerelease],
                                  [version for version in admitted if version.is_prerelease])
        return self._stages[bits]

    def _listed(self, bits: int) -> list[Version]:
        if bits not in self._lists:
            self._lists[bits] = [version for place, version in enumerate(self.newest_first) if bits >> place & 1]
        return self._lists[bits]

    def _common(self, needs: Sequence[Need]) -> int:
        bits = (1 << len(self.newest_first)) - 1
        for need in needs:
            bits &= self._bits(need.specifier)
        return bits

    def _bits(self, specifier: SpecifierSet) -> int:
        """The versions that the specifier admits as a set of bits: a search asks for the same few sets again and again.

        By identity, since hashing a specifier costs as much as what is saved; the tuple keeps it alive.
        """
        found = self._admitting.get(id(specifier))
        if found is None:
            bits = sum(1 << place for place, version in enumerate(self.newest_first) if admits(specifier, version))
            found = self._admitting[id(specifier)] = (specifier, bits)
        return found[1]
