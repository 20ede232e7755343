"""The variables by which one command is cured: those of activation, and for what only a preload hook cures, LD_PRELOAD.

Whatever is proposed is simulated, as every plan is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stackfix.cli.command_shown import command_for
from stackfix.cli.inspecting import Asked, open_view
from stackfix.cli.repairing import DiskGround
from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.provenance import PRELOAD
from stackfix.diagnose.situation import View
from stackfix.errors import BadInput
from stackfix.inspect.environment_records import Environment
from stackfix.plan.effect import Ground
from stackfix.plan.effect_imports import in_order
from stackfix.plan.effect_records import Effect, Variable
from stackfix.plan.effect_variables import variables_after
from stackfix.plan.install_choice import NoChoices
from stackfix.plan.names import in_fixed_order, is_serious
from stackfix.plan.planner_search import Search, Unwritten
from stackfix.plan.records import InstallWheel, Left
from stackfix.plan.rules import Means
from stackfix.plan.rules_seen import behind, beside, lost
from stackfix.plan.simulate import Simulation

SPLITS = re.compile("[:; ]")    # of LD_PRELOAD and of LD_LIBRARY_PATH: a folder whose name has one cannot be named
MARKS = ("VIRTUAL_ENV", "CONDA_PREFIX")
FILES = "variables alone do not do it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cured:
    """An environment, the variables that cure it, and what they do not cure."""

    environment: Environment
    variables: tuple[tuple[str, str | None], ...]   # None: unset
    left: tuple[Left, ...]                          # errors that a repair would cure


def cured_variables(asked: Asked) -> Cured:
    """Of the environment that is asked for."""
    with open_view(asked) as view, DiskGround(view, asked.root, no_wheel) as ground:
        return by_variables(view, ground)


def by_variables(view: View, ground: Ground) -> Cured:
    """Found as a plan is, with variables for the only means."""
    diagnosis = diagnose(view)
    search = Search(Simulation(view, diagnosis, ground), NoChoices(FILES), Means(method="activate"), why_unwritten)
    findings = [each for each in in_fixed_order(diagnosis.findings) if is_serious(each) and each.repairable]
    effect = search.run(findings)
    for each in findings:
        if not search.is_cured(effect, each):
            effect = preloaded(search, effect, each) or effect
    reason = f"{FILES}: `{command_for(view.environment.prefix, 'repair')}` changes files"
    left = tuple(Left(code=each.code, summary=each.summary, reason=reason) for each in findings
                 if each.severity == "error" and not (effect and search.is_cured(effect, each)))
    return Cured(environment=view.environment, left=left, variables=variables_after(view.situation, effect.variables))


def no_wheel(step: InstallWheel) -> Path:
    """Nothing is installed for one command."""
    raise BadInput(step.project, "is not installed for one command")


def why_unwritten(effect: Effect) -> Unwritten | None:
    """Why an effect cannot be had by variables; None where it can."""
    if effect.kinds() not in {(), ("write-activation",)}:
        return Unwritten(reason=FILES)
    bad = next((each for variable in effect.variables for each in variable.first if SPLITS.search(each)), None)
    return Unwritten(reason=f"{bad} cannot be named in a variable") if bad is not None else None


def preloaded(search: Search, effect: Effect, finding: Finding) -> Effect | None:
    """The effect with the libraries that a finding is about in LD_PRELOAD, where that cures it and harms nothing.

    A library that is mapped ends every search for its soname, wherever else it would have led.
    """
    for libraries in preloads(search.simulation.outcome(effect).active_view, finding):
        joined = effect.joined(Effect(variables=(Variable(name=PRELOAD, first=libraries),)))
        if why_unwritten(joined) is None and search.is_cured(joined, finding) and not search.simulation.new(joined):
            return joined
    return None


def preloads(view: View, finding: Finding) -> Iterator[tuple[str, ...]]:
    """Libraries that could be loaded first, each after those that it needs."""
    direct = lost(view, finding)
    for libraries in dict.fromkeys((direct, behind(view, direct), behind(view, beside(view, finding)))):
        if libraries:
            yield in_order(libraries, view.files)


def place_variables(environment: Environment, environ: Mapping[str, str]) -> dict[str, str | None]:
    """What says which environment is active, as its own activation sets it; only what is not so already.

    A variable that names another environment would be believed by what the command starts: it is unset, and its bin
    leaves PATH. A venv in an activated conda environment is no such case: the variable of the venv comes first.
    """
    prefix, old = environment.prefix, environ.get("PATH", os.defpath).split(":")
    folder, wanted = f"{prefix}/bin", dict[str, str | None]()
    is_plain = environment.venv is None and environment.conda is None
    if environment.venv is None:
        others = [name for name in MARKS if is_of_another(prefix, environ.get(name))]
        wanted |= dict.fromkeys(others)
        old = [each for each in old if each not in {f"{environ[name].rstrip('/')}/bin" for name in others}]
    if environment.venv is not None:
        wanted |= {"VIRTUAL_ENV": prefix, "PYTHONHOME": None}
    elif environment.conda is not None:
        wanted |= {"CONDA_PREFIX": prefix, **dict(environment.conda.variables)}
    is_first = folder in old if is_plain else old[:1] == [folder]
    path = old if is_first or ":" in folder else [folder, *(each for each in old if each != folder)]
    wanted["PATH"] = ":".join(path) if path != environ.get("PATH", os.defpath).split(":") else environ.get("PATH")
    return {name: value for name, value in wanted.items() if environ.get(name) != value}


def is_of_another(prefix: str, named: str | None) -> bool:
    """Whether the value of a variable is an environment in another place."""
    return bool(named) and os.path.realpath(str(named)) != os.path.realpath(prefix)


def unnamed_folder(environment: Environment) -> str | None:
    """The environment's bin, where PATH cannot name it."""
    folder = f"{environment.prefix}/bin"
    return folder if ":" in folder else None
