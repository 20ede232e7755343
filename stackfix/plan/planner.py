"""From a diagnosis to a plan: what is changed, in which order, what that cures, and what is left. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stackfix.diagnose.finding_records import Diagnosis, Finding
from stackfix.diagnose.requirements_lacking import told, unmet_of
from stackfix.diagnose.situation import View
from stackfix.errors import BadInput
from stackfix.plan.advice import activate_anew, advise
from stackfix.plan.effect import Ground
from stackfix.plan.effect_records import Effect
from stackfix.plan.effect_variables import variables_after
from stackfix.plan.effect_world import Places, Rights
from stackfix.plan.install_choice import SILENT, Choices
from stackfix.plan.names import Key, in_fixed_order, is_serious, key_of
from stackfix.plan.planner_actions import actions_of
from stackfix.plan.planner_activation import standing
from stackfix.plan.planner_check import Check
from stackfix.plan.planner_left import Told
from stackfix.plan.planner_notebooks import told_of_notebooks, with_notebooks
from stackfix.plan.planner_search import Search
from stackfix.plan.records import RANKS, Action, InstallWheel, Left, Plan
from stackfix.plan.rules import METHODS, Means
from stackfix.plan.simulate import Simulation
from stackfix.quick import replace


def make_plan(view: View, diagnosis: Diagnosis, *, ground: Ground, places: Places, resolve: Choices,
              method: str = "auto", kernels: bool = False, rights: Rights | None = None) -> Plan:
    """The smallest plan that cures all that can be cured in the prefix by this method, simulated as a whole.

    The same findings in whatever order give the same plan. With `kernels` the variables of activation go into the
    prefix's kernel.json files, too; what `rights` refuses is no plan. Raises BadInput for a method that is none.
    """
    if method not in METHODS:
        raise BadInput(f"--method {method}", "is no method", f"name one of {', '.join(METHODS)}")
    findings = [each for each in in_fixed_order(diagnosis.findings) if is_serious(each)]
    simulation = Simulation(view, diagnosis, ground)
    means = Means(method=method, kernels=kernels)
    check = Check(view, ground, places, simulation, rights)
    scripts = Effect(variables=standing(view, places, ground.real))
    search = Search(simulation, resolve, means, check.why_not, scripts)
    repairable = [each for each in findings if each.repairable]
    effect = search.run(repairable)
    if kernels:
        effect = with_notebooks(view, effect, scripts if search.by_scripts else Effect(), places)
    actions = credited(view, effect, places, simulation, findings)
    if kernels:
        actions = told_of_notebooks(actions, effect)
    actions = told_of_lacking(actions, view, simulation.outcome(effect).view)
    left = [each for each in findings if not search.is_cured(effect, each)] if effect else findings
    told_left = Told(search, check, method, repairable)
    anew = [each for each in left if key_of(each) in search.by_scripts]
    leaving = [(each, told_left.left(each)) for each in left]
    advice = (*activate_anew(view, anew),
              *advise(view, [each for each in left if each not in anew], resolve.conda_programs(),
                      dict(no_installation(leaving, resolve.lock()))))
    return Plan(
        prefix=view.environment.prefix, actions=(*numbered(actions), *numbered(iter(advice))),
        left=(*(each for _, each in leaving), *brought(search, effect)),
        variables=variables_after(view.situation, effect.variables), method=method, lock=resolve.lock(),
        is_whole=simulation.left > 0)


def no_installation(leaving: Iterable[tuple[Finding, Left]], lock: str | None) -> Iterator[tuple[Key, str]]:
    """Findings for which no command that installs is advised, and what is said instead.

    No installer gets what the index does not give; and what a lock does not pin would contradict it.
    """
    for finding, left in leaving:
        if any(each.code in SILENT for each in left.unreached):
            yield key_of(finding), ""
        elif lock is not None:
            yield key_of(finding), f"A release that {lock} does not pin may cure it: lock anew, or leave --lock out"


def credited(view: View, effect: Effect, places: Places, simulation: Simulation,
             findings: list[Finding]) -> Iterator[Action]:
    """The actions in order, each with the findings that are gone once it is done, and were not before.

    One that cures nothing before the next is done is for what that one cures. One without a step is none: what it would
    write has come to be there while we looked.
    """
    done, gone, waiting = Effect(), frozenset[Key](), list[Action]()
    made = actions_of(view, effect, places, after=simulation.outcome(effect).view, ground=simulation.ground,
                      known=simulation.hooks)
    for part, action in sorted((each for each in made if each[1].steps), key=lambda each: RANKS.index(each[1].kind)):
        done = done.joined(part)
        after = frozenset(key_of(each) for each in findings if is_gone(simulation, done, key_of(each)))
        cures = tuple(each.code for each in findings if key_of(each) in after - gone)
        if part.kernels and not cures:      # nothing more is gone than by the scripts, but in notebooks
            cures = tuple(each.code for each in findings if is_gone(simulation, part, key_of(each)))
        waiting.append(action)
        if cures:
            yield from (replace(each, cures=cures) for each in waiting)
            gone, waiting = gone | after, []
    yield from waiting


def told_of_lacking(actions: Iterable[Action], before: View, after: View) -> Iterator[Action]:
    """The actions; an installation with a note of each requirement of, or on, its package that is not met then."""
    for action in actions:
        projects = [step.project for step in action.steps if isinstance(step, InstallWheel)]
        known = {(each.by.name, each.line.name) for project in projects for each in unmet_of(before, project)}
        notes = (f"{told(each)}{', as before' if (each.by.name, each.line.name) in known else ''}"
                 for project in projects for each in unmet_of(after, project))
        yield replace(action, notes=(*action.notes, *notes))


def is_gone(simulation: Simulation, effect: Effect, key: Key) -> bool:
    """Whether a finding is gone once an effect has come about, in an activated shell where it has one.

    Where another one of its code, or for the same file, has come in its place, half of the cure is still to be done.
    """
    outcome = simulation.outcome(effect)
    instead = any(each.code == key[0] or (key[4] is not None and key_of(each)[4] == key[4])
                  for each in simulation.new(effect))
    return outcome.broken is None and not instead and not outcome.has(key, active=bool(effect.variables))


def numbered(actions: Iterator[Action]) -> Iterator[Action]:
    """Actions whose ids tell them apart: "relink-1"."""
    counts: dict[str, int] = {}
    for each in actions:
        counts[each.kind] = counts.get(each.kind, 0) + 1
        yield replace(each, id=f"{each.kind}-{counts[each.kind]}")


def brought(search: Search, effect: Effect) -> Iterator[Left]:
    """What the plan itself leaves that was not so before: requirements that an installation does not meet."""
    packages: Mapping[str, str] = {each.project: f"{each.project} {each.version}" for each in effect.wheels}
    for finding in in_fixed_order(search.simulation.new(effect)):
        yield Left(code=finding.code, summary=finding.summary,
                   reason=f"it comes of installing {', '.join(packages.values())}: installers will warn of it")
