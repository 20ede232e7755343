"""A repaired environment's packages loaded for real, each in a child, and what that shows of the cure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from stackfix.cli.repair_planning import Planned
from stackfix.diagnose.imports_projects import Projects
from stackfix.diagnose.requirements_lacking import lacking
from stackfix.diagnose.situation import View
from stackfix.inspect.places import Root
from stackfix.inspect.records import FileAt
from stackfix.plan.names import is_serious
from stackfix.plan.records import InstallConda, InstallWheel, SetAside
from stackfix.quick import replace
from stackfix.verify.load import load_check
from stackfix.verify.probe import whole
from stackfix.verify.records import Probe, ProbeStep

NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)")


def loaded(found: Planned, after: View, python: str, modules: Iterable[str], environ: Mapping[str, str],
           timeout: float) -> Probe:
    """The imports in children; one that maps a library which the repair was to keep out fails."""
    left = {(each.code, each.summary) for each in found.plan.left}
    winners = (found.view.files.at(each.winner) for each in found.diagnosis.findings
               if each.winner is not None and is_serious(each) and (each.code, each.summary) not in left)
    # as they were before: a link may be gone by now, or lead to the right file
    out = {os.path.realpath(each.real_path) for each in winners if isinstance(each, FileAt)}
    seen = load_check(python, tuple(modules), environ, timeout=timeout)
    no_code_changed = not any(isinstance(step, InstallWheel | InstallConda | SetAside)
                              for action in found.plan.actions for step in action.steps)
    steps = []
    for step in seen.steps:
        if no_code_changed and step.verdict == "fails" and step.detail.startswith("ModuleNotFoundError: "):
            # it was so before: triton's import wants setuptools, which torch does not require
            steps.append(replace(step, verdict="cannot-tell", reason="not-installed", counts=False))
            continue
        if step.verdict == "fails" and (lines := never_there(found, after, step)):
            steps.append(replace(step, verdict="cannot-tell", reason="not-installed",
                                 detail=f"{step.detail}: {'; '.join(lines)}"))
            continue
        bad = next((path for path in step.libraries if os.path.realpath(path) in out), None)
        steps.append(step if bad is None or step.verdict != "works" else replace(
            step, verdict="fails", reason="library-conflict", detail=f"{step.detail}, but {bad} is still mapped"))
    return whole(steps, None)


def never_there(found: Planned, after: View, step: ProbeStep) -> tuple[str, ...]:
    """Requirements that a package lacks, where its import lacks a module that no package here has, or had before.

    The wheel alone is installed: what it requires is another matter, and told in the plan.
    """
    match = NO_MODULE.match(step.detail)
    if match is None or is_there(found.asked.root, after, match[1]):
        return ()
    changed = {part.partition(".")[0] for action in found.plan.actions for each in action.changes
               if each.before.kind != "absent" for part in each.path.split("/")}
    module = step.name.removeprefix("load ")
    projects = {project for project, row in Projects(after.environment, after.libraries).rows.items()
                if row.module == module} or {module.replace("_", "-")}
    return () if match[1] in changed else tuple(line for each in sorted(projects) for line in lacking(after, each)
                                                if line.startswith(f"{each} "))


def cured_libraries(found: Planned, load: Probe) -> Iterator[str]:
    """The files of the libraries that the cured findings are about, as the load has mapped them."""
    left = {(each.code, each.summary) for each in found.plan.left}
    about = {(path or "").rpartition("/")[2] for each in found.diagnosis.findings
             if is_serious(each) and (each.code, each.summary) not in left
             for path in (each.winner, each.loser, each.culprit.path)}
    yield from sorted({path for step in load.steps for path in step.libraries if path.rpartition("/")[2] in about})


def touched_modules(found: Planned, after: View) -> Iterator[str]:
    """Names to import of the packages whose simulated load is another than before, or that were installed."""
    before = {project: signature(found.view, project) for project in projects_of(found.view)}
    changed = {project for project in projects_of(after) if before.get(project) != signature(after, project)}
    steps = (step for action in found.plan.actions for step in action.steps)
    changed |= {step.project for step in steps if isinstance(step, InstallWheel)}
    rows = Projects(after.environment, after.libraries).rows
    for project in sorted(changed, key=lambda each: (each not in rows, each)):
        if project in rows and is_there(found.asked.root, after, rows[project].module):
            yield rows[project].module
        else:
            yield from compiled_modules(after, project)


def projects_of(view: View) -> frozenset[str]:
    return frozenset(each.project for each in view.openings if each.project is not None)


def signature(view: View, project: str) -> frozenset[tuple[str, bool, tuple[str, ...]]]:
    """What each library load of a project does: whether it fails, and which files it brings."""
    return frozenset(
        (each.what, bool(each.outcome.failures),
         tuple(sorted(each.outcome.attempted.objects[number].path for number in each.outcome.loaded)))
        for each in view.openings if each.project == project)


def is_there(root: Root, view: View, module: str) -> bool:
    """Whether a folder that Python imports from has something of that name: some wheels have only a compiled part."""
    name = module.partition(".")[0]
    return any(root.is_folder(f"{each.path}/{name}") or root.is_file(f"{each.path}/{name}.py")
               for each in view.environment.sites)


def compiled_modules(view: View, project: str) -> Iterator[str]:
    """The top-level packages with compiled modules of a project that no table knows."""
    for each in view.environment.shared_objects:
        if each.module is not None and any(owner.name == project for owner in each.owners):
            yield each.module.partition(".")[0]
