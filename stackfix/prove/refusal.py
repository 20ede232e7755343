"""A stack that would not load: the refusal, and the bounds under which the next candidate is looked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stackfix.prove.base import numbers
from stackfix.prove.proof_records import CLEAN, ProvenTarget, Remedy, Trouble
from stackfix.resolve.records import Cause, NoConsistentStack, Offer, Requirement

ORIGIN = "lock --prove"
SYMBOLS = "symbols of the wheels"
GLIBC = re.compile(r"GLIBC_\d+(?:\.\d+)+")
SHOWN = 12                          # symbols that are named one by one


class StackDoesNotLoad(NoConsistentStack):
    """The stack that was decided fails as soon as it is imported. Nothing was written."""

    reference = "stack-does-not-load"

    glibc: str | None = None            # the release that would do, where nothing else is missing

    def next_step(self) -> str | None:
        if self.glibc is not None:
            return f"--glibc {self.glibc}, if every machine that the lock is for has that or a newer one"
        if self.nearest:
            return None
        return "change what is asked; without --prove the lock is written, and fails when it is imported"


def refusal(target: ProvenTarget, nearest: tuple[Offer, ...] = ()) -> StackDoesNotLoad:
    """The error about one target that fails where nothing is in the way. `nearest`: changes that were solved."""
    troubles = troubles_in(target)
    error = StackDoesNotLoad(
        headline=f"the stack would not load on Python {target.python}, {target.platform}: {troubles[0].summary}",
        causes=tuple(cause for each in troubles for cause in causes_of(each)), nearest=nearest)
    error.glibc = glibc_for(troubles)
    return error


def glibc_for(troubles: Sequence[Trouble]) -> str | None:
    """The glibc that has all that is missing; None where something else is missing, too."""
    versions = [version for each in troubles for version in each.versions]
    if any(not each.versions or each.kind != "version" for each in troubles) or not all(
            GLIBC.fullmatch(version) for version in versions):
        return None
    return max((version.removeprefix("GLIBC_") for version in versions), key=numbers, default=None)


def troubles_in(target: ProvenTarget) -> tuple[Trouble, ...]:
    """What fails where nothing is in the way."""
    return next(each.troubles for each in target.environments if each.name == CLEAN)


def causes_of(trouble: Trouble) -> Iterator[Cause]:
    """Why one import fails, from what is seen down to what would do."""
    source = ", ".join(filter(None, (trouble.requester_package, trouble.provider_package))) or SYMBOLS
    yield Cause(kind="symbols", text=f"{trouble.summary}; it is seen at: {', '.join(trouble.seen[:3])}",
                source=f"{SYMBOLS}: {source}" if source != SYMBOLS else source)
    names = (*trouble.symbols, *trouble.versions)
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        who = trouble.requester or "Python"
        where = f"{trouble.library} is {trouble.provider}" if trouble.provider else f"nothing has {trouble.library}"
        yield Cause(kind="symbols", text=f"{who} needs {', '.join(names[:SHOWN])}{more}; {where}", source=SYMBOLS)
    for remedy in trouble.remedies[:2]:
        yield Cause(kind="symbols", source="symbols of the wheels (almanac)", text=remedy_text(remedy))


def remedy_text(remedy: Remedy) -> str:
    """Which release would do."""
    version = f"{remedy.package} {remedy.version}" if remedy.version else f"{remedy.package}{remedy.specifier}"
    return f"{version} has what is needed" + (f": {remedy.why}" if remedy.why else "")


def bounds_of(target: ProvenTarget) -> tuple[Requirement, ...]:
    """What the next candidate has to keep to, so that it is another one; empty where nothing is known that would do."""
    found: dict[str, Requirement] = {}
    for trouble in troubles_in(target):
        for remedy in trouble.remedies[:1]:
            specifier = remedy.specifier or (f"=={remedy.version}" if remedy.version else "")
            if specifier:
                text = f"{remedy.package}{specifier}"
                found.setdefault(text, Requirement(text=text, constraint=True, origin=f"{ORIGIN}: {trouble.summary}"))
    return tuple(found.values())
