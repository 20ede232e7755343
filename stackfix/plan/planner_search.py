"""The smallest sound plan: candidates joined finding by finding, each joint simulated, what turns out idle left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from stackfix.diagnose.finding_records import Finding
from stackfix.plan.effect_records import Effect
from stackfix.plan.install_choice import Choices
from stackfix.plan.names import Key, in_fixed_order, key_of
from stackfix.plan.records import RANKS, Unreached
from stackfix.plan.rules import Means, Refusals, candidates
from stackfix.plan.simulate import Simulation

NOTHING = Effect()
DEPTH = 4                       # findings in a row that a cure may uncover
# What an installation may leave: it is said beside it
TOLD = frozenset({"SF601", "SF602", "SF603"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten:
    """Why an effect cannot be written down as actions; `unreached`: it could, but for this."""

    reason: str
    unreached: Unreached | None = None


class Search:
    """Looks for the plan of one environment."""

    def __init__(self, simulation: Simulation, choices: Choices, means: Means,
                 why_unwritten: Callable[[Effect], Unwritten | None], standing: Effect = NOTHING) -> None:
        """A search.

        why_unwritten: why an effect cannot be written down as actions; None where it can
        standing: what the activation scripts of earlier repairs do: new ones take their place, and do that, too
        """
        self.simulation, self.choices, self.means, self.why_unwritten = simulation, choices, means, why_unwritten
        self.standing = standing
        self.by_scripts: set[Key] = set()           # findings that activation as it stands cures
        self.refusals = Refusals()
        self.tried: dict[Key, list[str]] = {}       # what did not do, in words
        self.refused: set[Key] = set()              # findings with a candidate that may not be made

    def run(self, findings: Iterable[Finding]) -> Effect:
        """An effect that cures what can be cured, and makes nothing new.

        All findings are tried with the smaller means before any is with a larger one: what cures one may cure others.
        What is left is tried again in the environment as it would be then: an installation may bring the copy that a
        hook can load.
        """
        effect = self.swept(Effect(), list(findings))
        while effect:
            before = effect
            again = self.simulation.outcome(effect).plain
            effect = self.swept(effect, [each for each in in_fixed_order(again.values())
                                         if each.repairable and key_of(each) in self.simulation.before])
            if effect == before:
                break
        return self.pruned(effect)

    def swept(self, effect: Effect, findings: list[Finding]) -> Effect:
        """The effect joined with what cures these findings, the smallest means for all of them first."""
        for largest in RANKS[1:]:
            for finding in findings:
                if not self.is_cured(effect, finding):
                    effect = self.attempt(effect, finding, DEPTH, largest) or effect
        return effect

    def attempt(self, effect: Effect, finding: Finding, depth: int, largest: str = RANKS[-1]) -> Effect | None:
        """The effect joined with the smallest that cures a finding, and with what that uncovers in turn.

        largest: the kind of action beyond which nothing is tried
        """
        before, told, best = self.simulation.outcome(effect), None, None
        view = before.view if key_of(finding) in before.plain else before.active_view
        for candidate in candidates(view, finding, self.means, self.choices, self.refusals, largest):
            if candidate.variables and not candidate.kernels and self.stands(finding):
                self.by_scripts.add(key_of(finding))
                break
            alone = joined = effect.joined(self.standing.joined(candidate) if candidate.variables else candidate)
            if joined == effect or self.simulation.left <= 0 or not is_smaller(joined, best):
                continue
            cured = self.is_cured(joined, finding)
            new = self.simulation.new(joined) if cured else ()
            if cured and new and depth:
                joined, new = self.uncovered(joined, finding, new, depth, largest)
            worth = cured and bool(joined.wheels) and is_worth(finding, new)
            unwritten = self.why_unwritten(joined) if cured and (not new or worth) else None
            if cured and not new and unwritten is None:
                best = joined if is_smaller(joined, best) else best
                if joined == alone:     # no later one is smaller
                    break
                continue
            if worth and told is None and unwritten is None:
                told = joined
            if unwritten is not None or self.simulation.outcome(joined).broken is not None:
                self.refused.add(key_of(finding))
            self.note(finding, unwritten or self.why_not(joined, candidate, new))
        return best or told

    def stands(self, finding: Finding) -> bool:
        """Whether a shell that is activated anew is rid of a finding that is there now, with nothing in its place."""
        return bool(self.standing) and key_of(finding) in self.simulation.before and self.is_cured(
            self.standing, finding) and not self.simulation.new(self.standing)

    def uncovered(self, joined: Effect, finding: Finding, new: tuple[Finding, ...],
                  depth: int, largest: str) -> tuple[Effect, tuple[Finding, ...]]:
        """The effect with what cures what it uncovers, where that can be had; and what is then new."""
        more = self.attempt(joined, new[0], depth - 1, largest)
        if more is not None and self.is_cured(more, finding):
            return more, self.simulation.new(more)
        for each in self.refusals.unreached(key_of(new[0])):
            self.refusals.note(key_of(finding), None, each)
        return joined, new

    def note(self, finding: Finding, why: Unwritten) -> None:
        """Writes down what did not do for a finding."""
        self.tried.setdefault(key_of(finding), []).append(why.reason)
        self.refusals.note(key_of(finding), None, why.unreached)

    def why_not(self, joined: Effect, candidate: Effect, new: tuple[Finding, ...]) -> Unwritten:
        """Why a candidate is no plan."""
        means = " with ".join(candidate.kinds())
        outcome = self.simulation.outcome(joined)
        if outcome.broken is not None:
            return Unwritten(reason=f"{means}: {outcome.broken}", unreached=outcome.unreached)
        return Unwritten(reason=f"{means}: leads to {new[0].code}: {new[0].summary}" if new
                         else f"{means}: does not cure it")

    def is_cured(self, effect: Effect, finding: Finding) -> bool:
        """Whether a finding is gone: everywhere, or where activation is part of the effect, in an activated shell."""
        outcome, key = self.simulation.outcome(effect), key_of(finding)
        if outcome.broken is not None:
            return False
        gone = not outcome.has(key, active=False)
        return not outcome.has(key, active=True) and (gone or bool(effect.variables))

    def cured(self, effect: Effect) -> tuple[frozenset[Key], frozenset[Key]]:
        """What is gone: everywhere; in an activated shell."""
        outcome, before = self.simulation.outcome(effect), self.simulation.before
        return (frozenset(each for each in before if each not in outcome.plain),
                frozenset(each for each in before if each not in outcome.active))

    def pruned(self, effect: Effect) -> Effect:
        """The effect without parts that cure nothing, the largest first."""
        wanted, new = self.cured(effect), {key_of(each) for each in self.simulation.new(effect)}
        for smaller in without_one(effect):
            part = minus(effect, smaller)
            if part == effect or not part or self.simulation.left <= 0:
                continue
            found = self.cured(part)
            fresh = {key_of(each) for each in self.simulation.new(part)}
            if found[0] >= wanted[0] and found[1] >= wanted[1] and fresh <= new and \
                    self.simulation.outcome(part).broken is None and self.why_unwritten(part) is None:
                effect = part
        return self.standing.joined(effect) if effect.variables else effect


def is_smaller(effect: Effect, best: Effect | None) -> bool:
    """Whether it is the better plan of two that cure the same."""
    return best is None or effect.cost() < best.cost()


def is_worth(finding: Finding, new: Iterable[Finding]) -> bool:
    """Whether an error is cured at the price of requirements that are not met any more, and of no more than that."""
    return finding.severity == "error" and all(each.severity != "error" and each.code in TOLD for each in new)


def without_one(effect: Effect) -> Iterator[Effect]:
    """Parts of an effect, each to be taken away: whole kinds, then single ones."""
    kinds = effect.kinds()
    yield from (effect.only(kind) for kind in reversed(kinds) if len(kinds) > 1)
    yield from (Effect(wheels=(each,)) for each in effect.wheels)
    yield from (Effect(gone=(each,)) for each in effect.gone)
    yield from (Effect(variables=(each,)) for each in effect.variables)
    yield from (Effect(links=(each,)) for each in effect.links)
    for library in sorted({each.library for each in effect.hooks}):
        yield Effect(hooks=tuple(each for each in effect.hooks if each.library == library))


def minus(effect: Effect, part: Effect) -> Effect:
    """An effect without a part of it."""
    return Effect(
        hooks=tuple(each for each in effect.hooks if each not in part.hooks),
        links=tuple(each for each in effect.links if each not in part.links),
        gone=tuple(each for each in effect.gone if each not in part.gone),
        variables=tuple(each for each in effect.variables if each not in part.variables),
        wheels=tuple(each for each in effect.wheels if each not in part.wheels),
        kernels=tuple(each for each in effect.kernels if each not in part.kernels))
