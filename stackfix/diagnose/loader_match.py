"""Whether an object's definition of a name will do for who wants it. Rules by number: docs/loader.md.

Source: elf/dl-lookup.c of glibc 2.36 (check_match, do_lookup_x), each rule tried on the real loader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from stackfix.diagnose.loader_process import Mapped
from stackfix.inspect.records import Offer, UndefinedSymbol

FIRST_DEFINED = 3       # DT_VERSYM: 0 local, 1 unversioned, 2 the oldest version, which unversioned references take


class Special(NamedTuple):
    """An answer that is more than a provider's number, or none at all."""

    kind: str
    provider: Mapped | None = None


LOST, CRASH, OTHER_VERSION = Special("lost"), Special("crash"), Special("other version")
Answer: TypeAlias = "int | Special | None"      # None: a weak symbol that stays null


class Matcher:
    """What one definition means for one reference."""

    def judge(self, wanted: UndefinedSymbol, found: tuple[Mapped, Offer] | None) -> Answer:
        """What it means that this was found."""
        if found is None:
            return None if wanted.weak else LOST        # a weak one may stay null (rule 9)
        provider, offer = found
        if wanted.version is not None and self.asserts_versions(wanted, provider):
            return CRASH
        return Special("unique", provider) if offer.binding == "unique" else provider.number

    def match(self, wanted: UndefinedSymbol, offers: Sequence[Offer], object_: Mapped) -> Offer | None:
        """Which of an object's definitions of one name will do (rule 8)."""
        if wanted.version is None:
            return self.match_unversioned(offers, object_)
        if not object_.elf.versioned_symbols:
            return offers[0]
        for offer in offers:
            if offer.version == wanted.version or not (wanted.hidden or offer.version is not None or offer.hidden):
                return offer
        return None

    def match_unversioned(self, offers: Sequence[Offer], object_: Mapped) -> Offer | None:
        """The base or oldest version, else the only default one of the newer."""
        newer = []
        for offer in offers:
            if offer.version_index < FIRST_DEFINED or not object_.elf.versioned_symbols:
                return offer
            if not offer.hidden:
                newer.append(offer)
        return newer[0] if len(newer) == 1 else None

    def asserts_versions(self, wanted: UndefinedSymbol, object_: Mapped) -> bool:
        """Whether glibc's check_match stops with "Inconsistency detected by ld.so".

        It does where the very library that a version was linked from has no DT_VERSYM at all. A library that merely
        takes its place under another name is accepted.
        """
        return (not object_.elf.versioned_symbols and wanted.file is not None and object_.answers_to(wanted.file))
