"""What stood in the way of each layout as one reason: a chain of causes from both sides, and what was asked for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackfix.conda.layouts_records import Lacking, Plan
from stackfix.conda.partner_solve import Missed
from stackfix.conda.records import CondaCause, Departure
from stackfix.resolve.against import Reason
from stackfix.resolve.clash_links import clash_causes
from stackfix.resolve.needs import FromUser
from stackfix.resolve.records import Asked, Cause
from stackfix.resolve.solve import Refusal

if TYPE_CHECKING:
    from stackfix.resolve.question import Question
    from stackfix.resolve.stack import Stack

MAX_CAUSES = 6          # of one miss
MAX_TOLD = 2            # misses of one layout
# virtual packages, and what they come from
OF_THE_MACHINE = {"__cuda": ("cuda", "driver", "no-driver"), "__glibc": ("glibc",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlike:
    """A plan that has an answer, but one that is not the same stack as the pip lock."""

    plan: Plan
    departures: tuple[Departure, ...]


Miss = Lacking | Missed | Unlike


def reason_of(question: Question, misses: Sequence[Miss]) -> Reason:
    """The reason against a stack: in each layout what got furthest, and another kind of build that failed otherwise."""
    misses = _that_count(question, misses)
    by_layout = {layout: _layout_causes(misses, layout) for layout in dict.fromkeys(map(layout_of, misses))}
    lead = len(set(by_layout.values())) > 1
    chain = [
        replace(cause, text=f"layout {layout}: {cause.text}") if lead else cause
        for layout, causes in by_layout.items() for cause in causes
    ]
    asks = dict.fromkeys(asked for miss in misses for asked in miss_asks(question, miss))
    asks.update(dict.fromkeys((*question.ask("layout"), *question.ask("channel"))))
    ordered = tuple(asked for asked in question.asks if asked in asks)
    distinct = {(cause.kind, cause.text): cause for cause in chain}
    shape = " ".join(sorted({_shape(miss) for miss in misses}))
    return Reason(kind="channel", asks=ordered, says=shape, source=chain[0].source if chain else "channels",
                  chain=tuple(distinct.values()))


def _that_count(question: Question, misses: Sequence[Miss]) -> Sequence[Miss]:
    """Those that say why: that nothing is left to pip is no reason but against `--layout mixed`, and then it is all."""
    nothing = [miss for miss in misses if isinstance(miss, Lacking) and miss.kind == "nothing"]
    if nothing and question.request.layout == "mixed":
        return nothing
    return [miss for miss in misses if miss not in nothing] or misses


def passed_over(stack: Stack, misses: Sequence[Miss]) -> tuple[tuple[str, str], ...]:
    """Each layout that was tried, with the first thing that stood against it, in a line."""
    found: dict[str, str] = {}
    for layout in dict.fromkeys(map(layout_of, misses)):
        own = [miss for miss in misses if layout_of(miss) == layout]
        why = next(filter(None, map(_in_a_line, sorted(own, key=_furthest, reverse=True))), None)
        if why is not None:
            found[layout] = why.replace("{torch}", f"torch {stack.text}")
    return tuple(found.items())


def _in_a_line(miss: Miss) -> str:
    """What stood in the way; of the channels' own conflict what records say, and not what was asked for."""
    if isinstance(miss, Missed) and miss.conflict is not None:
        facts = [cause.text for cause in miss.conflict.causes if cause.spec is None]
        return "; ".join(facts[:2])
    return next((cause.text for cause in miss_causes(miss)), "")


def _layout_causes(misses: Sequence[Miss], layout: str) -> tuple[Cause, ...]:
    own = sorted((miss for miss in misses if layout_of(miss) == layout), key=_furthest, reverse=True)
    return tuple(cause for causes in _different(own) for cause in causes)


def refusal_of(question: Question, stack: Stack, misses: Sequence[Miss]) -> Refusal:
    """The refusal of a stack for what stood in the way of each layout."""
    unsure = any(isinstance(miss, Missed) and miss.unsure for miss in misses)
    return Refusal(stack=stack, reasons=(reason_of(question, misses),), unsure=unsure)


def layout_of(miss: Miss) -> str:
    """The layout that was tried."""
    return miss.layout if isinstance(miss, Lacking) else miss.plan.layout


def _furthest(miss: Miss) -> int:
    return 2 if isinstance(miss, Unlike) else 1 if isinstance(miss, Missed) else 0


def _different(misses: Sequence[Miss]) -> Iterator[list[Cause]]:
    """The causes of the first miss, and of the first that failed for something else."""
    told: set[str] = set()
    for miss in misses:
        causes = list(miss_causes(miss))[:MAX_CAUSES]
        if _shape(miss) not in told and len(told) < MAX_TOLD:
            told.add(_shape(miss))
            yield causes


def _shape(miss: Miss) -> str:
    """The same for misses that differ in the release or the build alone: told of one, they are true of the others."""
    if isinstance(miss, Lacking):
        return f"{miss.layout} {miss.kind}"
    if isinstance(miss, Unlike):
        return f"{miss.plan.layout} {' '.join(sorted({one.about for one in miss.departures}))}"
    if miss.conflict is not None:
        named = sorted({_name(cause.spec.text) for cause in miss.conflict.causes if cause.spec is not None})
        return f"{miss.plan.layout} {' '.join(named) or 'channels'}"
    return f"{miss.plan.layout} {miss.clash.name if miss.clash is not None else miss.text}"


def _name(spec: str) -> str:
    return spec.partition(" ")[0]


def miss_causes(miss: Miss) -> Iterator[Cause]:
    """The links of one miss, without what was asked."""
    if isinstance(miss, Lacking):
        yield Cause(kind="channel", text=miss.text, source=miss.source)
    elif isinstance(miss, Unlike):
        for one in miss.departures:
            sides = f"{one.about} is {one.pip or 'absent'} for pip and {one.conda or 'absent'} for conda"
            yield Cause(kind="channel", text=f"{sides}: {one.reason}", source=one.source)
    elif miss.conflict is not None:
        own = {wish.spec for wish in miss.wishes if wish.asks}      # the user's: told as what was asked
        for cause in miss.conflict.causes:
            if cause.spec not in own:
                yield conflict_cause(miss.plan, cause)
    elif miss.clash is not None:
        yield from (cause for cause in clash_causes(miss.clash) if cause.kind != "asked")
    else:
        text = miss.text or "it cannot be had"
        yield Cause(kind="channel", text=text, source=f"layout {miss.plan.layout}")


def conflict_cause(plan: Plan, cause: CondaCause) -> Cause:
    """One link of the channels' conflict."""
    channels = ", ".join(channel.name for channel in plan.channels)
    text = f"the stack has {cause.spec.text}" if cause.spec is not None else cause.text
    return Cause(kind="channel", text=text, source=cause.source or f"channels {channels}")


def miss_asks(question: Question, miss: Miss) -> Iterator[Asked]:
    """What was asked that the miss rests on."""
    if isinstance(miss, Lacking):
        yield from miss.asks
    elif isinstance(miss, Missed) and miss.clash is not None:
        for need in miss.clash.all_needs():
            if isinstance(need.origin, FromUser):
                yield need.origin.asked
    elif isinstance(miss, Missed):
        for wish in miss.involved:
            yield from wish.asks
        for cause in miss.conflict.causes if miss.conflict is not None else ():
            for word, kinds in OF_THE_MACHINE.items():
                if word in cause.text:
                    yield from (asked for kind in kinds for asked in question.ask(kind))
