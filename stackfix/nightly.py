"""Nightlies of torch by their names: `2.10.0.dev20251015+cu128`, and `nightly-2025-10-15` where no release is said."""

from __future__ import annotations

import re

from stackfix.quick import dataclass

FOLDER = "nightly"              # of the torch index: nightly/cu128, and above its paths what all of them share
WORD = "nightly"
DATED = frozenset({"torch", "torchvision", "torchaudio"})      # built anew each night: their versions have a date
_VERSION = re.compile(r"(?P<release>\d+(?:\.\d+)*)\.dev(?P<date>\d{8})(?:\+(?P<path>[a-z0-9.]+))?")
_DATED = re.compile(r"nightly-(\d{4})-?(\d{2})-?(\d{2})")
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nightly:
    """One nightly build of torch."""

    date: str                       # "20251015"
    release: str | None = None      # "2.10.0"; None: whichever release was being prepared then
    path: str | None = None         # "cu128", where the version names it

    @property
    def day(self) -> str:
        """`2025-10-15`."""
        return day_of(self.date)

    @property
    def version(self) -> str | None:
        """`2.10.0.dev20251015`; None where the release is not said."""
        return None if self.release is None else f"{self.release}.dev{self.date}"


def nightly_of(version: str) -> Nightly | None:
    """The nightly that a version names; None for any other version, and where its date is none."""
    found = _VERSION.fullmatch(version.strip().lower())
    if found is None or not is_date(found["date"]):
        return None
    return Nightly(date=found["date"], release=found["release"], path=found["path"])


def dated(text: str) -> Nightly | None:
    """The nightly of `nightly-2025-10-15`; None for any other text, and where the date is none."""
    found = _DATED.fullmatch(text.strip().lower())
    date = "".join(found.groups()) if found is not None else ""
    return Nightly(date=date) if is_date(date) else None


def asks_by_word(text: str) -> bool:
    """Whether a text begins like one that asks for a nightly, well or not."""
    return text.strip().lower().startswith(WORD)


def is_date(date: str) -> bool:
    """Whether eight digits are a day of some calendar."""
    if len(date) != 8 or not date.isdigit():
        return False
    month, day = int(date[4:6]), int(date[6:])
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS[month - 1]:
        return False
    year = int(date[:4])
    return year > 0 and ((month, day) != (2, 29) or (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)))


def day_of(date: str) -> str:
    """`2025-10-15` of `20251015`."""
    return f"{date[:4]}-{date[4:6]}-{date[6:]}"


def is_nightly_path(path: str | None) -> bool:
    """Whether a path of the torch index is one of its nightlies."""
    return path is not None and path.startswith(f"{FOLDER}/")


def path_of(cuda: str) -> str:
    """`nightly/cu128` of `12.8`, `nightly/cpu` of `cpu`."""
    parts = cuda.split(".")
    return f"{FOLDER}/{cuda}" if not parts[0].isdigit() else f"{FOLDER}/cu{''.join(parts[:2])}"


def cuda_of(path: str) -> str:
    """`12.8` of `nightly/cu128` or `cu128`."""
    digits = path.rpartition("/")[2].removeprefix("cu")
    return f"{digits[:2]}.{digits[2:]}" if digits.isdigit() else digits
