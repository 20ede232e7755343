"""What an installation would have to bring, and who finds the files for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stackfix.errors import StackfixError, Unreachable
from stackfix.plan.records import Install, Unreached
from stackfix.plan.rules_conda import Program, WantedConda

HASH_MISMATCH = "hash-mismatch"     # codes of errors: not the file that was promised
SILENT = frozenset({HASH_MISMATCH, "index-unreachable", "rate-limited", "request-failed"})  # no installer has it either


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A project in a range of releases."""

    project: str                    # normalised
    specifier: str                  # PEP 440; "" for any
    near: str | None                # the release that is there: the nearest to it is the smallest change
    cuda: str | None = None         # of a torch: "12.1"
    within: str | None = None       # releases among which a lock may choose; None: it is `specifier`'s alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Wheels that would do, best first; each set by itself. Else why there is none."""

    sets: tuple[tuple[Install, ...], ...] = ()
    reason: str | None = None       # "no network", "no wheel for CPython 3.11 on linux-64"
    unreached: Unreached | None = None      # who could not be asked, so that there may be some


def unreached_by(error: StackfixError) -> Unreached | None:
    """What an error says was out of reach; None where the answer was no."""
    return Unreached(what=error.what(), hint=error.next_step(), code=error.reference) \
        if isinstance(error, Unreachable) else None


class Choices(Protocol):
    """Finds wheels. All else that is installed is kept."""

    def offers(self, wanted: tuple[Wanted, ...]) -> Offers:
        """Wheels of all these projects, for the environment's Python and platform, with what they lack there."""
        ...

    def pinned(self) -> tuple[Wanted, ...]:
        """What a lockfile pins in another release than the one that is there: it may be wanted for any finding."""
        ...

    def lock(self) -> str | None:
        """Name of the lockfile that all is limited to."""
        ...

    def conda_programs(self) -> tuple[Program, ...]:
        """What installs packages of conda on this machine."""
        ...

    def of_conda(self, wanted: WantedConda) -> Offers:
        """A package of conda in another release, or again, where nothing else would change."""
        ...


class NoChoices:
    """Fills Choices where nothing is to be installed."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def offers(self, wanted: tuple[Wanted, ...]) -> Offers:
        """Nothing, for the reason given."""
        names = ", ".join(f"{each.project}{each.specifier}" for each in wanted)
        return Offers(reason=f"{names}: {self._reason}")

    def pinned(self) -> tuple[Wanted, ...]:
        return ()

    def lock(self) -> str | None:
        return None

    def conda_programs(self) -> tuple[Program, ...]:
        return ()

    def of_conda(self, wanted: WantedConda) -> Offers:
        """Nothing, for the reason given."""
        return Offers(reason=f"{wanted.package}{wanted.specifier}: {self._reason}")
