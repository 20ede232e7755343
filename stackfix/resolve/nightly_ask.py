"""What asks for a nightly of torch: an exact date, in the option or in a requirement. Nothing else ever chooses one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.specifiers import Specifier, SpecifierSet

from stackfix.errors import BadInput
from stackfix.nightly import Nightly, asks_by_word, dated, nightly_of
from stackfix.resolve.pep508 import normalise, parse_specifier, parse_version

LOWER = frozenset({">=", ">", "~="})        # a limit from below lets in what comes after
EXACT = frozenset({"==", "==="})
HOW = "name its day: --torch nightly-2025-10-15, or the version, such as 2.10.0.dev20251015"
_PATH = re.compile(r"cpu|cu\d{3}")
# What belongs to a torch: pins of it in a lock of another kind say nothing of this one.
OF_TORCH = frozenset({"torch", "torchvision", "torchaudio", "triton", "pytorch-triton", "xformers", "flash-attn"})
LIBRARIES = ("nvidia-", "cuda-")


class NightlyNeedsDate(BadInput):
    """A nightly is asked for without its exact date."""

    reference = "nightly-needs-date"

    def with_days(self, newest: str) -> NightlyNeedsDate:
        """The same with the newest nightlies that there are; "" where nobody could be asked."""
        return NightlyNeedsDate(self.thing, self.reason, f"{self.hint}; {newest}" if newest else self.hint)


def option_specifier(text: str, option: str) -> SpecifierSet | None:
    """The specifier of `--torch nightly-2025-10-15`: one that no version meets, since the date is met otherwise.

    None for a text that does not ask for a nightly by that word. Raises NightlyNeedsDate for `nightly` alone.
    """
    if not asks_by_word(text):
        return None
    if dated(text) is None:
        reason = "nightlies are locked by their exact date" if text.strip().lower() == "nightly" else "names no day"
        raise NightlyNeedsDate(option, reason, HOW)
    return parse_specifier(f"==={text.strip().lower()}")


def nightly_asked(asks: Iterable[tuple[SpecifierSet, str]]) -> Nightly | None:
    """The nightly that limits on torch ask for, each with its place. Raises NightlyNeedsDate and BadInput."""
    found: list[Nightly] = []
    for specifier, place in asks:
        found.extend(one for part in specifier if (one := _of_part(part, place)) is not None)
    by_release = [one for one in found if one.release is not None]
    return next(iter((*(one for one in by_release if one.path is not None), *by_release, *found)), None)


def _of_part(part: Specifier, place: str) -> Nightly | None:
    by_date = dated(part.version)
    if by_date is not None:
        return by_date
    version = parse_version(part.version.removesuffix(".*"))
    if version is None or not version.is_devrelease or part.operator not in LOWER | EXACT:
        return None
    if part.operator in LOWER:
        raise NightlyNeedsDate(place, f"{part} is a range over nightlies, and only one of an exact date is locked", HOW)
    found = nightly_of(str(version))
    if found is None:
        raise NightlyNeedsDate(place, f"{part.version} names no day: nightlies are called 2.10.0.dev20251015", HOW)
    if found.path is not None and not _PATH.fullmatch(found.path):
        raise BadInput(place, f"+{found.path} is neither a CUDA build nor the CPU's", "write +cu128 or +cpu, say")
    return found


def names_day(specifier: SpecifierSet, version: str) -> bool:
    """Whether a limit is no more than the day of a nightly."""
    nightly = nightly_of(version)
    return nightly is not None and any(
        (by_date := dated(part.version)) is not None and by_date.date == nightly.date for part in specifier)


def names_nightly(specifier: SpecifierSet) -> bool:
    """Whether a limit on torch is one nightly."""
    return any(dated(part.version) or (part.operator in EXACT and nightly_of(part.version)) for part in specifier)


def kept_of_kind(kept: tuple[tuple[str, str], ...], nightly: Nightly | None) -> tuple[tuple[str, str], ...]:
    """The pins of the existing lock, without what is of torch where that is for a torch of the other kind."""
    torch = next((text for name, text in kept if normalise(name) == "torch"), None)
    if torch is None or (nightly_of(torch) is None) is (nightly is None):
        return kept
    return tuple((name, text) for name, text in kept if not is_of_torch(normalise(name)))


def is_of_torch(name: str) -> bool:
    """Whether a project is torch, built for it, or a library that it pins."""
    return name in OF_TORCH or name.startswith(LIBRARIES)
