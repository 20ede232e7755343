"""Whether an effect can be written down as actions that stay in the prefix."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.situation import View
from stackfix.errors import StackfixError
from stackfix.plan.effect import Ground
from stackfix.plan.effect_records import Effect
from stackfix.plan.effect_world import Places, Rights
from stackfix.plan.install_choice import unreached_by
from stackfix.plan.names_paths import folder_of
from stackfix.plan.planner_actions import actions_of
from stackfix.plan.planner_search import Unwritten
from stackfix.plan.records import Action, InstallConda, InstallWheel, Plan, Step
from stackfix.plan.simulate import Simulation


class Check:
    """Asked of each plan that is sound, before it is chosen."""

    def __init__(self, view: View, ground: Ground, places: Places, simulation: Simulation,
                 rights: Rights | None = None) -> None:
        self.view, self.ground, self.places, self.simulation, self.rights = view, ground, places, simulation, rights

    def why_not(self, effect: Effect) -> Unwritten | None:
        """Why it cannot be written; None where it can."""
        try:
            after = self.simulation.outcome(effect).view
            actions = [action for _, action in actions_of(self.view, effect, self.places, after=after,
                                                          ground=self.ground, known=self.simulation.hooks)]
        except StackfixError as error:
            return Unwritten(reason=error.what(), unreached=unreached_by(error))
        for action in actions:
            if not action.steps:
                return Unwritten(reason=f"{action.kind}: {why_empty(action)}")
            outside = self.outside(action)
            if outside is not None:
                return Unwritten(reason=f"{action.kind}: {outside} leads out of the environment")
        plan = Plan(prefix=self.view.environment.prefix, actions=tuple(actions), left=())
        refused = self.rights.why_not(plan) if self.rights is not None else None
        if refused is not None:
            kinds = " with ".join(effect.kinds())
            return Unwritten(reason=f"{kinds}: {refused.what()}", unreached=unreached_by(refused))
        return None

    def outside(self, action: Action) -> str | None:
        """A folder in which something is changed that is not in the prefix, once its links are followed."""
        prefix = self.view.environment.prefix
        real = self.ground.real(prefix) or prefix
        for each in dict.fromkeys(folder for step in action.steps for folder in self.folders(step)):
            folder = self.nearest(f"{prefix}/{each}" if each else prefix)
            if folder != real and not folder.startswith(f"{real}/"):
                return f"{prefix}/{each}"
        return None

    def folders(self, step: Step) -> Iterator[str]:
        """Folders, relative to the prefix, in which a step makes names."""
        if isinstance(step, InstallWheel | InstallConda):
            yield step.site if isinstance(step, InstallWheel) else step.record.rpartition("/")[0]
            yield from (each.path.rpartition("/")[0] for each in self.ground.files(step).coming)
        else:
            yield step.path.rpartition("/")[0]

    def nearest(self, folder: str) -> str:
        """A folder without links; of one that is not there yet, that of the last part of it that is."""
        while (found := self.ground.real(folder)) is None:
            folder = folder_of(folder)
        return found


def why_empty(action: Action) -> str:
    """Why an action has no step."""
    return "; ".join(action.notes) or "all that it would write is there already"
