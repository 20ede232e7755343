"""A plan applied to the disk: whether this environment may be changed, and from where its wheels come."""

from __future__ import annotations

import os
from pathlib import Path

from stackfix.apply.conda_program import CondaLinker
from stackfix.apply.managed import must_be_ours
from stackfix.apply.preflight import check_access, check_plan
from stackfix.apply.processes import processes_with
from stackfix.apply.records import Applied, Process
from stackfix.apply.stage import StageWheel
from stackfix.apply.transaction import apply_plan, made_before, readable
from stackfix.apply.tree import Tree
from stackfix.apply.wheels import WheelInstaller, find_wheel_installer
from stackfix.cli.common import CommonOptions
from stackfix.cli.repair_planning import Planned
from stackfix.cli.repair_telling import tell
from stackfix.plan.records import InstallWheel
from stackfix.quick import replace


def must_be_changeable(found: Planned, *, break_system: bool) -> tuple[Process, ...]:
    """Who has files mapped that will change. Raises, before anybody is asked, what would stop the plan now.

    ExternallyManaged, NotOurs, CannotWrite, LeavesPrefix, Drifted. All is asked again when the plan is applied.
    """
    with Tree(found.prefix) as tree, readable(tree):
        must_be_ours(tree, break_system=break_system)
        check_plan(found.plan, tree)
        return processes_with(tree.prefix, check_access(found.plan, tree, made_before(tree)))


def applied(found: Planned, common: CommonOptions, *, break_system: bool) -> Applied:
    """What was changed. All wheels are on our disk, and their hashes checked, before the first change."""
    def progress(text: str) -> None:
        if common.verbose:
            tell(text, common)

    wheels = [step for action in found.plan.actions for step in action.steps if isinstance(step, InstallWheel)]
    for each in wheels:
        found.fetch(each)
    installer: StageWheel = no_wheels
    if wheels:
        own = find_wheel_installer(found.prefix, found.asked.environ)
        installer = FromCache(found, own)
    linker = CondaLinker(prefix=found.prefix, environ=os.environ)      # its archives are in conda's cache by now
    return apply_plan(found.plan, found.prefix, installer=installer, progress=progress, break_system=break_system,
                      linker=linker)


def no_wheels(step: InstallWheel, _: Path, /) -> None:
    """Of a plan without wheels."""
    raise AssertionError(step)


class FromCache:
    """Fills apply.stage.StageWheel: the same file that the plan was simulated with, and no network."""

    def __init__(self, found: Planned, installer: WheelInstaller) -> None:
        self._fetch, self._installer = found.fetch, installer

    def __call__(self, step: InstallWheel, into: Path, /) -> None:
        file = self._fetch(step)
        if "://" in step.source:        # its name states another version than its metadata: only an address does
            step = replace(step, source=file.as_uri())
        known = self._installer.installer
        words = (*known.words, "--no-index", "--find-links", str(file.parent))
        replace(self._installer, installer=replace(known, words=words))(step, into)
