"""The view of an environment as it would be after a plan: the simulation that every plan is judged by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from stackfix.diagnose.situation import Owners, Situation, View
from stackfix.inspect.environment_records import Environment
from stackfix.inspect.records import Files
from stackfix.plan.effect_environment import (
    NO_USER_SITE,
    PYTHON_PATH,
    with_kernels,
    with_links,
    with_scripts,
    without,
    without_sites,
    without_user_site,
)
from stackfix.plan.effect_files import ChangedFiles
from stackfix.plan.effect_imports import simulate_hooked, tables
from stackfix.plan.effect_records import Effect, Hooked, Variable
from stackfix.plan.effect_scripts import scripts_after
from stackfix.plan.effect_variables import activated, plain, variables_after
from stackfix.plan.effect_wheel import WheelFiles
from stackfix.plan.records import Install


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """An environment with what was laid over it."""

    environment: Environment
    installed: Owners
    files: Files


class Ground(Protocol):
    """What only the disk, or an opened wheel, can answer."""

    def real(self, folder: str) -> str | None:
        """A folder without links; None where there is none."""
        ...

    def laid_over(self, below: Laid, wheel: Install) -> Laid:
        """The environment as it would be with a wheel installed. Raises StackfixError where it cannot be opened."""
        ...

    def files(self, wheel: Install) -> WheelFiles:
        """What a wheel changes on disk that was laid over an environment."""
        ...

    def hooks(self) -> tuple[Hooked, ...]:
        """What a preload hook that is there already loads."""
        ...


def view_after(view: View, effect: Effect, ground: Ground, *, active: bool = False) -> View:
    """The view after all of an effect; `active`: in an activated shell. What cannot be opened raises StackfixError."""
    laid = Laid(environment=view.environment, installed=view.installed, files=view.files)
    for each in effect.wheels:
        laid = ground.laid_over(laid, each)
    files = laid.files
    if effect.links or effect.gone:
        files = ChangedFiles(files, links={each.path: each.target for each in effect.links}, gone=effect.gone,
                             real=ground.real)
    owners = {each.path: laid.installed.owners(each.path) for each in effect.links}
    environment = with_links(without(laid.environment, effect.gone), effect.links, owners)
    if active:
        environment = with_scripts(environment, scripts_after(view, effect.variables))
        environment = with_kernels(environment, effect.kernels,
                                   dict(variables_after(view.situation, effect.variables)))
    situation = replace(view.situation, environment=environment)
    if active:
        situation = in_shell(situation, effect.variables)
    hooks = tables((*ground.hooks(), *effect.hooks), files)
    start, openings = simulate_hooked(situation, view.libraries, files, hooks)
    return replace(view, situation=situation, files=files, installed=laid.installed, start=start, openings=openings)


def in_shell(situation: Situation, variables: tuple[Variable, ...]) -> Situation:
    """The situation once activation has set the variables."""
    after = activated(situation, variables)
    values, environment = dict(after.machine.variables), after.environment
    if values.get(NO_USER_SITE):
        environment = without_user_site(environment)
    if any(each.name == PYTHON_PATH for each in variables):
        named = {plain(each) for each in values.get(PYTHON_PATH, "").split(":")}
        environment = without_sites(environment, [each.path for each in environment.sites if each.kind == PYTHON_PATH
                                                  and each.path not in named])
    return replace(after, environment=environment)
