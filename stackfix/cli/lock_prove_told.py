"""What a user is told of a proof beside the lock: environments in which the stack fails, what is not proven."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stackfix.prove.proof_records import CANNOT_TELL, CLEAN, FAILS, Proof, ProvenTarget, Tried
from stackfix.quick import replace
from stackfix.resolve.records import Lock, Requirement, Target

if TYPE_CHECKING:
    from stackfix.conda.records import CondaTarget
    from stackfix.prove.records import NotFetched

SHOWN = 3


def noted(lock: Lock, proof: Proof, bounds: Sequence[Requirement], failed: Sequence[NotFetched] = ()) -> Lock:
    """The lock with what its proof says, as notes; the same for several targets is said once."""
    said = dict.fromkeys(note for each in proof.targets for note in notes_of(each))
    passed = dict.fromkeys(f"a candidate was passed over, for {each.origin.partition(': ')[2]}; "
                           f"{each.text} was asked for beside" for each in bounds)
    return replace(lock, notes=(*lock.notes, *passed, *said, *why_unknown(failed), *proof.outside))


def why_unknown(failed: Sequence[NotFetched]) -> Iterator[str]:
    """Why wheels could not be had or read here. It is no part of the proof, which is to be the same everywhere."""
    for each in failed:
        reason = each.reason.removeprefix(f"{each.wheel.file}: ")
        step = f"; {each.next_step}" if each.next_step else ""
        yield f"nothing is known of {each.wheel.file}: {reason}{step}"


def channels_text(conda: CondaTarget) -> str:
    """That packages of channels are not proven."""
    target = f"conda, Python {conda.target.python} on {conda.target.platform}"
    return f"{target}: its {len(conda.records)} packages of channels are outside of the proof"


def elsewhere_text(target: Target) -> str:
    """That what a target's system loads is not simulated."""
    return (f"Python {target.python} on {target.place}: not simulated, so it cannot be told whether it loads; only "
            f"Linux's loader is known here")


def notes_of(target: ProvenTarget) -> Iterator[str]:
    """Of one target."""
    if target.verdict == CANNOT_TELL:
        clean = next(each for each in target.environments if each.name == CLEAN)
        yield f"not everything could be proven: {clean.why}"
    for each in target.outside:
        yield f"{each.name} {each.version} is not in the proof: it {each.why}"
    for tried in target.environments:
        if tried.name == CLEAN:
            yield from (f"it loads, and yet: {each}" for each in tried.beware)
        elif tried.verdict == FAILS:
            yield fails_text(tried)


def fails_text(tried: Tried) -> str:
    """An environment in which the stack fails, with what, and what helps."""
    first = tried.troubles[0]
    holds = f" ({', '.join(tried.holds[:SHOWN])}{', …' if len(tried.holds) > SHOWN else ''})" if tried.holds else ""
    avoid = f"; {'; '.join(first.avoid[:2])}" if first.avoid else ""
    return f"it fails where {tried.title}{holds}: {first.summary}{avoid}"
