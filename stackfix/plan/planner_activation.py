"""Activation scripts of a plan, for a conda prefix or a venv."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence

from stackfix.diagnose.plumbing_marks import marks_in
from stackfix.diagnose.provenance import LIBRARY_PATH, PRELOAD
from stackfix.diagnose.situation import View
from stackfix.plan.activation import FIRST, STEMS, Activation, Script, activation_steps
from stackfix.plan.activation_home import other_home
from stackfix.plan.effect_records import Variable
from stackfix.plan.effect_world import Places
from stackfix.plan.planner_changes import changes_of, needed_steps
from stackfix.plan.records import Action

OF_CONDA, OF_VENV = "etc/conda/activate.d", "bin"
MODE = 0o644

Real = Callable[[str], str | None]      # a folder without links; None where there is none


def activation_action(view: View, variables: Sequence[Variable], places: Places, real: Real) -> Action:
    """The action; without steps where no script of the environment can be written. Raises BadInput."""
    made = activation(view, variables, places, real)
    steps = needed_steps(made.steps, places)
    return Action(id="write-activation", kind="write-activation", cures=(), steps=steps,
                  changes=changes_of(steps, places),
                  summary=f"At activation, and taken back at deactivation: {'; '.join(map(told, variables))}",
                  notes=tuple(notes_of(made)))


def notes_of(made: Activation) -> Iterator[str]:
    """Scripts that are left as they are, those for one reason together."""
    reasons: dict[str, list[str]] = {}
    for path, why in made.skipped:
        reasons.setdefault(why, []).append(path)
    yield from (f"not in {' and '.join(paths)}: {why}" for why, paths in reasons.items())


def activation(view: View, variables: Sequence[Variable], places: Places, real: Real) -> Activation:
    """What is written. Nothing for a Python that is neither a venv nor in a conda prefix: nobody activates it."""
    environment, loader = view.environment, view.situation.loader
    before = {**view.variables, **{name: value for name, value in (
        (LIBRARY_PATH, loader.library_path), (PRELOAD, loader.preload)) if value is not None}}
    kind = kind_of(view)
    if kind is None:
        return Activation(steps=(), skipped=((environment.prefix, "it is neither a venv nor a conda prefix"),))
    folder = OF_CONDA if kind == "conda" else OF_VENV
    return activation_steps(environment.prefix, kind, variables, tuple(scripts(folder, places)), before=before,
                            is_here=lambda place: is_here(view, place, real))


def standing(view: View, places: Places, real: Real) -> tuple[Variable, ...]:
    """What the scripts of an earlier repair do at activation; nothing where they are of another folder."""
    prefix, kind, text = view.environment.prefix, kind_of(view), ""
    if kind == "venv":
        text = places.text(f"{OF_VENV}/{FIRST}") or ""
        if other_home(text, lambda place: is_here(view, place, real)) is not None:
            return ()
    elif kind == "conda":
        text = next(filter(None, (places.text(f"{OF_CONDA}/{stem}.sh") for stem in STEMS)), "")
    return tuple(sorted(Variable(name=each.name, first=each.first, without=tuple(sorted(each.without)),
                                 value=each.value) for each in marks_in(text.splitlines(), prefix)))


def kind_of(view: View) -> str | None:
    """Whose scripts activate the environment: "conda", "venv"; None: nobody's."""
    return "conda" if view.environment.conda is not None else "venv" if view.environment.venv is not None else None


def is_here(view: View, place: str, real: Real) -> bool:
    """Whether a path leads to the prefix."""
    prefix = view.environment.prefix
    return place == prefix or (real(place) or place) == (real(prefix) or prefix)


def scripts(folder: str, places: Places) -> Iterator[Script]:
    """The activation scripts that are there."""
    for name in places.names(folder):
        path = f"{folder}/{name}"
        if folder == OF_CONDA or posixpath.splitext(name)[0].lower() == "activate":
            text, node = places.text(path), places.node(path)
            if text is not None and node.kind == "file":
                yield Script(path=path, text=text, mode=node.mode or MODE)


def told(variable: Variable) -> str:
    """What becomes of one variable, in words."""
    if variable.value is not None:
        return f"set {variable.name}={variable.value}"
    parts = []
    if variable.first:
        parts.append(f"put {', '.join(variable.first)} first on {variable.name}")
    if variable.without:
        gone = ", ".join(each or "the empty element" for each in variable.without)
        parts.append(f"take {gone} out of {variable.name}")
    return " and ".join(parts)
