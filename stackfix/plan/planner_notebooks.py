"""Notebooks, where they are asked for: kernels get what activation sets, for Jupyter starts them without any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.diagnose.situation import View
from stackfix.plan.effect_records import Effect
from stackfix.plan.effect_world import Places
from stackfix.plan.planner_actions import kernel_action
from stackfix.plan.records import Action
from stackfix.plan.rules_activation import own_kernels
from stackfix.quick import replace


def with_notebooks(view: View, effect: Effect, standing: Effect, places: Places) -> Effect:
    """The effect with all kernels of the prefix, which get its variables; else those of activation as it stands.

    standing: what scripts of an earlier repair do, where they cure what the effect does not
    """
    kernels = own_kernels(view)
    whole = effect.joined(Effect(kernels=kernels, variables=() if effect.variables else standing.variables))
    if not kernels or not whole.variables:
        return effect
    if effect.variables or any(kernel_action(view, path, whole, places).steps for path in kernels):
        return whole
    return effect           # they have it already


def told_of_notebooks(actions: Iterable[Action], effect: Effect) -> Iterator[Action]:
    """The actions, the first with a note where no kernel is changed, although it was asked for."""
    note = why_none(effect)
    for each in actions:
        yield replace(each, notes=(*each.notes, note)) if note else each
        note = None


def why_none(effect: Effect) -> str | None:
    """Why no kernel is changed; None where one is."""
    if effect.kernels:
        return None
    if effect.variables:
        return ("no kernel.json of this environment is known; `python -m ipykernel install --prefix` writes one, "
                "and the next `stackfix repair --jupyter` finds it")
    if effect.hooks:
        return "no kernel.json is changed: the hook works in notebooks, too"
    return "no kernel.json is changed: notebooks have it like all that the environment's Python starts"
