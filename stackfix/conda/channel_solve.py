"""The channels' part of a plan under the strictest terms that have an answer. Bounded, and nothing is solved twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stackfix.conda.layouts_records import Plan, Wish
from stackfix.conda.records import (
    PRIORITIES,
    Channels,
    CondaAsk,
    CondaConflict,
    CondaRecord,
    CondaSolved,
    VirtualPackage,
)
from stackfix.resolve.clash import Clash
from stackfix.resolve.records import LockedPackage

MAX_SOLVES = 400        # conda solves for one decision with its explanation
HIDDEN = "strict channel priority"      # in rattler's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan that holds."""

    plan: Plan
    asked: CondaAsk
    wishes: tuple[Wish, ...]
    records: tuple[CondaRecord, ...]
    pip: tuple[LockedPackage, ...]
    given_up: tuple[tuple[Wish, CondaConflict], ...] = ()       # what was only wished, and why it cannot be


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Missed:
    """A plan that does not: by the channels' own conflict, or by a clash of what pip brings with what they have."""

    plan: Plan
    wishes: tuple[Wish, ...]
    conflict: CondaConflict | None = None
    clash: Clash | None = None
    text: str | None = None         # where it is neither
    unsure: bool = False            # it was not tried

    @property
    def involved(self) -> Sequence[Wish]:
        """The wishes that the conflict names; all of them where it names none."""
        causes = self.conflict.causes if self.conflict is not None else ()
        named = {cause.spec for cause in causes if cause.spec is not None}
        return [wish for wish in self.wishes if wish.spec in named] or self.wishes


@dataclass(slots=True, kw_only=True)
class Solves:
    """The channels with a memory of what was solved. `spent`: the bound was hit."""

    channels: Channels
    kept: tuple[tuple[str, str], ...] = ()
    exclude_newer: str | None = None
    left: int = MAX_SOLVES
    _known: dict[CondaAsk, CondaSolved | CondaConflict] = field(default_factory=dict)

    def answer(self, ask: CondaAsk) -> CondaSolved | CondaConflict | None:
        """The answer, or None where the bound was hit."""
        if ask not in self._known:
            if self.left <= 0:
                return None
            self.left -= 1
            self._known[ask] = self.channels.solve(ask)
        return self._known[ask]


def solve_plan(
    plan: Plan, solves: Solves, virtual: tuple[VirtualPackage, ...], bounds: tuple[Wish, ...]
) -> Found | Missed:
    """The channels' part under the strictest terms that have an answer.

    What is only wished goes where the solve fails with it: of what the conflict names the last first, `cuda-version` at
    the end and for the next nearest. Whether anything is to be had at all is asked before.
    """
    limits = (*plan.limits, *bounds)
    nearest, loose = plan.nearest, plan.loose
    given_up: list[tuple[Wish, CondaConflict]] = []
    plain: Found | Missed | None = None
    while True:
        found = _once(plan, solves, virtual, (*plan.wishes, *nearest[:1], *loose), limits)
        if isinstance(found, Found):
            return replace(found, given_up=tuple(given_up))
        wished = (*nearest[:1], *loose)
        if not wished or found.conflict is None:
            return found
        plain = plain or _once(plan, solves, virtual, plan.wishes, limits)
        if isinstance(plain, Missed):
            return plain
        named = {cause.spec for cause in found.conflict.causes}
        last = [wish for wish in wished if wish.spec in named][-1:] or list(wished[-1:])
        given_up.append((last[0], found.conflict))
        if last[0] in nearest:
            nearest = nearest[1:]
        else:
            loose = tuple(wish for wish in loose if wish is not last[0])


def _once(
    plan: Plan, solves: Solves, virtual: tuple[VirtualPackage, ...], wishes: tuple[Wish, ...], limits: tuple[Wish, ...],
) -> Found | Missed:
    """One set of wishes under strict priority, and without it where that hides what would do."""
    conflict: CondaConflict | None = None
    kept = {name for _, name in solves.kept}
    priorities = ("disabled",) if solves.channels.priority == "disabled" else PRIORITIES
    for priority in priorities:
        if priority != priorities[0] and (len(plan.channels) == 1 or conflict is None or not hidden(conflict)):
            continue
        ask = CondaAsk(
            platform=plan.target.platform, channels=plan.channels, specs=tuple(wish.spec for wish in wishes),
            constraints=tuple(wish.spec for wish in limits), virtual=virtual, priority=priority,
            locked=(*solves.kept, *(one for one in plan.favoured if one[1] not in kept)),
            exclude_newer=solves.exclude_newer,
        )
        answer = solves.answer(ask)
        if isinstance(answer, CondaSolved):
            return Found(plan=plan, asked=ask, wishes=(*wishes, *limits), records=answer.records, pip=())
        if answer is None:
            return Missed(plan=plan, wishes=wishes, text="it was not tried: too much was tried before", unsure=True)
        conflict = answer
    return Missed(plan=plan, wishes=(*wishes, *limits), conflict=conflict)


def hidden(conflict: CondaConflict) -> bool:
    """Whether strict priority is part of the conflict: a package of a channel further down would have done."""
    return HIDDEN in conflict.raw
