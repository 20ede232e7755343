"""An environment looked at, and the plan for it. Nothing is changed; only an index is asked, and for wheels alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stackfix.apply.conda_program import CondaLinker
from stackfix.cli.command_shown import command_for
from stackfix.cli.common import CommonOptions
from stackfix.cli.inspecting import Asked, open_view
from stackfix.cli.places_named import current_folder, place_of, variable_of
from stackfix.cli.progress import Bars
from stackfix.cli.repair_rights import DiskRights
from stackfix.cli.repairing import DiskGround, DiskPlaces
from stackfix.cli.repairing_conda_view import Link
from stackfix.cli.repairing_lock import LockedChoices
from stackfix.cli.repairing_pins import Pins, read_pins
from stackfix.cli.repairing_wheels import IndexChoices
from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Diagnosis
from stackfix.diagnose.situation import View
from stackfix.errors import StackfixError
from stackfix.inspect.environment_find import find_environment
from stackfix.inspect.places import Root
from stackfix.plan.effect_installed import LOADER
from stackfix.plan.hook_folder import folder_commands
from stackfix.plan.install_choice import NoChoices
from stackfix.plan.planner import make_plan
from stackfix.plan.records import InstallWheel, Plan, WriteFile
from stackfix.report.repair_records import Refusal

Fetch = Callable[[InstallWheel], Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An environment with its plan."""

    asked: Asked
    view: View
    diagnosis: Diagnosis
    plan: Plan
    fetch: Fetch                    # of a wheel's file onto our disk
    refused: StackfixError | None = None    # why nothing at all may be changed in this environment
    pins: Pins | None = None        # the lockfile that the plan goes toward
    folder: str | None = None       # commands for a preload folder elsewhere, where rights stand against a cure here

    @property
    def prefix(self) -> str:
        return self.view.environment.prefix

    @property
    def has_steps(self) -> bool:
        return any(each.steps for each in self.plan.actions)

    @property
    def has_errors(self) -> bool:
        return any(each.severity == "error" for each in self.diagnosis.findings)

    @property
    def refusal(self) -> Refusal | None:
        """What the report is told of `refused`, where there is something to be changed."""
        if self.refused is None or not self.has_steps:
            return None
        return Refusal(code=self.refused.reference, message=self.refused.what(), hint=self.refused.next_step(),
                       command=self.folder)

    def text(self, path: str) -> str | None:
        """What a file of the environment says; None where there is none."""
        return DiskPlaces(self.asked.root, self.prefix).text(path)


def preload_folder(plan: Plan) -> str | None:
    """Commands that make a folder elsewhere which does what the plan's preload hook would; None where it has none."""
    for step in (step for each in plan.actions if each.kind == "preload-hook" for step in each.steps):
        if isinstance(step, WriteFile) and step.path.endswith(LOADER):
            return folder_commands(plan.prefix, f"{plan.prefix}/{step.path.rpartition('/')[0]}", step.text)
    return None


def asked_of(prefix: str | None, python: str | None, variables: Sequence[str] = ()) -> Asked:
    """The options as places of this machine."""
    root = Root()
    return Asked(
        root=root, environ={**os.environ, **dict(variable_of(each) for each in variables)}, cwd=current_folder(),
        prefix=None if prefix is None else place_of(root, prefix),
        python=place_of(root, python) if python is not None and "/" in python else python,
        extensions=(), wheels=(), deep=False)


def prefix_of(asked: Asked) -> str:
    """The environment's folder. Raises BadInput where there is none."""
    return find_environment(asked.root, asked.environ, prefix=asked.prefix, python=asked.python,
                            running=sys.prefix).prefix


def undo_command(prefix: str) -> str:
    """What takes the last repair of `prefix` back."""
    return command_for(prefix, "undo")


def in_shell(asked: Asked, variables: Mapping[str, str | None]) -> Asked:
    """The same in a shell with these variables; None: unset."""
    kept = {name: value for name, value in asked.environ.items() if name not in variables}
    return replace(asked, environ={**kept, **{name: value for name, value in variables.items() if value is not None}})


def conda_link(prefix: str, common: CommonOptions) -> Link:
    """What links a package of conda's into a folder of ours, its archive brought into conda's own cache."""
    linker = CondaLinker(prefix=prefix, environ=os.environ)
    return lambda step, into: linker(step, into, offline=common.offline)


@contextmanager
def planned(asked: Asked, common: CommonOptions, bars: Bars, waiting: Callable[[], None] | None = None, *,
            method: str = "auto", kernels: bool = False, break_system: bool = False,
            lock: str | None = None) -> Iterator[Planned]:
    """The plan; wheels that it is simulated with are at hand until the end. `lock`: the file that has their pins.

    Raises BadInput, LockDoesNotFit and OtherTorch for a lock that is none, or not one of this environment.
    """
    with open_view(asked, waiting=waiting) as view, IndexChoices(view, common, bars) as choices, \
            DiskGround(view, asked.root, choices.fetch, conda_link(view.environment.prefix, common)) as ground:
        prefix = view.environment.prefix
        pins = None if lock is None else read_pins(lock, view, command_for(prefix, "sync"))
        diagnosis = diagnose(view)
        rights = DiskRights(prefix, break_system=break_system)
        places = DiskPlaces(asked.root, prefix)
        plan = make_plan(view, diagnosis, ground=ground, places=places,
                         resolve=choices if pins is None else LockedChoices(choices, view, pins),
                         method=method, kernels=kernels, rights=rights)
        folder = preload_folder(plan) if rights.refused is not None else None
        if rights.has_refused and rights.refused is None and any(each.unreached for each in plan.left):
            folder = preload_folder(make_plan(view, diagnosis, ground=ground, places=places, method="preload",
                                              resolve=NoChoices("is not asked for")))
        yield Planned(asked=asked, view=view, diagnosis=diagnosis, plan=plan, fetch=choices.fetch,
                      refused=rights.refused, pins=pins, folder=folder)
