"""From a finding to what could cure it, the smallest change first. Nothing here is known to work: it is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.situation import View
from stackfix.plan.effect_records import Effect
from stackfix.plan.install_choice import Choices
from stackfix.plan.names import Key, key_of
from stackfix.plan.records import RANKS, Unreached
from stackfix.plan.rules_activation import by_activation, by_kernels
from stackfix.plan.rules_conda import wants_of_conda
from stackfix.plan.rules_hook import by_hook
from stackfix.plan.rules_install import wants
from stackfix.plan.rules_links import by_links, by_links_and_path
from stackfix.plan.rules_lock import toward
from stackfix.plan.rules_shadow import by_removal

Rule: TypeAlias = Callable[[View, Finding], Iterator[Effect]]

# What a method limits the means to, in the order in which they are tried. A link where the loader does not look first
# needs activation beside it.
METHODS: Mapping[str, tuple[Rule, ...]] = MappingProxyType({
    "auto": (by_hook, by_links, by_activation, by_links_and_path, by_removal),
    "activate": (by_activation, by_links_and_path),
    "preload": (by_hook,),
    "symlink": (by_links, by_links_and_path),
    "reinstall": (),
})
INSTALLING = frozenset({"auto", "reinstall"})


class Refusals:
    """Why nothing was to be installed, and what was out of reach, by finding; grows."""

    def __init__(self) -> None:
        self._reasons: dict[Key, dict[str, None]] = {}
        self._unreached: dict[Key, dict[Unreached, None]] = {}

    def note(self, finding: Key, reason: str | None, unreached: Unreached | None = None) -> None:
        if reason is not None:
            self._reasons.setdefault(finding, {}).setdefault(reason)
        if unreached is not None:
            self._unreached.setdefault(finding, {}).setdefault(unreached)

    def of(self, finding: Key) -> tuple[str, ...]:
        return tuple(self._reasons.get(finding, ()))

    def unreached(self, finding: Key) -> tuple[Unreached, ...]:
        return tuple(self._unreached.get(finding, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What may be done."""

    method: str                     # one of METHODS
    kernels: bool = False           # variables may be written into the prefix's kernel.json files


def candidates(view: View, finding: Finding, means: Means, choices: Choices, refusals: Refusals,
               largest: str = RANKS[-1]) -> Iterator[Effect]:
    """What could cure a finding, by rank; each once. `largest`: the kind of action beyond which there is none."""
    tried, rules = {Effect()}, METHODS[means.method]
    if means.kernels and by_activation in rules:
        rules = (*rules, by_kernels)
    for rule in rules:
        for effect in rule(view, finding):
            if effect not in tried and effect.cost()[0] <= RANKS.index(largest):
                tried.add(effect)
                yield effect
    if largest != RANKS[-1]:
        return
    options = (*wants(view, finding), *toward(view, finding, choices.pinned())) if means.method in INSTALLING else ()
    of_conda = wants_of_conda(view, finding) if means.method in INSTALLING else ()
    asked = chain((choices.offers(each) for each in options), (choices.of_conda(each) for each in of_conda))
    for offers in asked:
        refusals.note(key_of(finding), offers.reason, offers.unreached)
        for wheels in offers.sets:
            if wheels:
                yield Effect(wheels=wheels)
