"""Plans judged before they are offered: what is left, and what is new, once an effect has come about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Diagnosis, Finding
from stackfix.diagnose.situation import View
from stackfix.errors import StackfixError
from stackfix.plan.effect import Ground, view_after
from stackfix.plan.effect_records import Effect
from stackfix.plan.install_choice import unreached_by
from stackfix.plan.names import Key, is_instead, keys
from stackfix.plan.records import Unreached


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an effect leads to. `broken`: it cannot be judged, for this reason; `unreached`: and this was needed."""

    view: View                      # without activation
    plain: Mapping[Key, Finding]    # above a note, in a process without activation
    active_view: View
    active: Mapping[Key, Finding]   # in an activated shell; the same where activation changes nothing
    broken: str | None = None
    unreached: Unreached | None = None

    def has(self, finding: Key, *, active: bool) -> bool:
        """Whether a finding is still there."""
        return finding in (self.active if active else self.plain)


class Simulation:
    """One environment and what becomes of it. Each effect is simulated once."""

    def __init__(self, view: View, diagnosis: Diagnosis, ground: Ground, *, most: int = 400) -> None:
        self.before, self.ground, self.left = keys(diagnosis), ground, most
        start = Outcome(view=view, plain=self.before, active_view=view, active=self.before)
        self._view, self._known = view, {Effect(): start}
        self.hooks = ground.hooks()

    def outcome(self, effect: Effect) -> Outcome:
        """What the effect leads to."""
        known = self._known.get(effect)
        if known is None:
            self.left -= 1
            known = self._known[effect] = self._simulate(effect)
        return known

    def _simulate(self, effect: Effect) -> Outcome:
        try:
            plain = view_after(self._view, effect, self.ground)
            active = view_after(self._view, effect, self.ground, active=True) if effect.variables else plain
        except StackfixError as error:
            start = self._known[Effect()]
            return Outcome(view=start.view, plain=start.plain, active_view=start.view, active=start.active,
                           broken=error.what(), unreached=unreached_by(error))
        first = keys(diagnose(plain))
        return Outcome(view=plain, plain=first, active_view=active,
                       active=first if active is plain else keys(diagnose(active)))

    def new(self, effect: Effect) -> tuple[Finding, ...]:
        """Findings that an effect makes, or makes worse, wherever they are seen."""
        outcome = self.outcome(effect)
        found = {**outcome.plain, **outcome.active}
        return tuple(each for key, each in found.items() if (key not in self.before or (
            each.severity == "error" and self.before[key].severity != "error"))
            and (key in outcome.active or not is_instead(each, self.before, outcome.plain)))
