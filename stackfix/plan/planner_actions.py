"""From an effect to actions: the steps that bring it about, in the order in which they are applied."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Iterator, Mapping

from stackfix.diagnose.install_lines import install_line, reinstall
from stackfix.diagnose.situation import View
from stackfix.plan.effect import Ground
from stackfix.plan.effect_imports import tables
from stackfix.plan.effect_records import Effect, Hooked
from stackfix.plan.effect_variables import variables_after
from stackfix.plan.effect_wheel import WheelFiles, changes_by
from stackfix.plan.effect_world import Places
from stackfix.plan.hook import hook_steps
from stackfix.plan.kernel import kernel_steps
from stackfix.plan.names_paths import folder_of, inside, is_inside
from stackfix.plan.planner_activation import activation_action
from stackfix.plan.planner_changes import changes_of, needed_steps
from stackfix.plan.records import Action, Install, InstallConda, SetAside, Step
from stackfix.plan.relink import relink_steps
from stackfix.plan.rules_conda import Program, by_programs
from stackfix.plan.rules_hook import hook_site
from stackfix.quick import replace

DAMAGES = {"missing": "is gone", "broken-link": "leads nowhere"}
MOST_TOLD = 3                   # damaged files in a sentence


def actions_of(view: View, effect: Effect, places: Places, *, after: View, ground: Ground,
               known: Iterable[Hooked] = ()) -> Iterator[tuple[Effect, Action]]:
    """Each action with the part of the effect that it makes.

    after: the view once all of it has come about: the hook may load what is still to be installed
    known: what the hook that is there loads already
    """
    if effect.hooks:
        yield effect.only("preload-hook"), hook_action(after, {*known, *effect.hooks}, places)
    if effect.links:
        yield effect.only("relink"), link_action(view, effect, places)
    if effect.variables:
        yield Effect(variables=effect.variables), activation_action(view, effect.variables, places, ground.real)
    for path in effect.kernels:
        yield Effect(kernels=(path,), variables=effect.variables), kernel_action(view, path, effect, places)
    for path in effect.gone:
        yield Effect(gone=(path,)), made("remove-shadow", f"Set {path} aside, which no package has; it is kept",
                                         (SetAside(path=inside(view, path)),), places)
    for wheel in effect.wheels:
        yield Effect(wheels=(wheel,)), install_action(view, wheel, ground.files(wheel), places)


def made(kind: str, summary: str, steps: Iterable[Step], places: Places) -> Action:
    """An action whose cures are still to be told."""
    needed = needed_steps(steps, places)
    return Action(id=kind, kind=kind, summary=summary, cures=(), steps=needed, changes=changes_of(needed, places))


def hook_action(view: View, hooks: Iterable[Hooked], places: Places) -> Action:
    """The hook, with all that it is to load."""
    hooks, python = sorted(hooks), view.environment.python
    site = hook_site(view, [each.library for each in hooks])
    if site is None or python is None:
        raise AssertionError(hooks)     # the rules propose no such hook
    table = {module: [path.removeprefix(f"{site}/") for path in paths]
             for module, paths in tables(hooks, view.files).items()}
    folder = inside(view, site)
    steps = hook_steps(folder, table, python.minor, elsewhere=elsewhere(view, site, table),
                       present=places.names(folder), outside=view.outside)
    names = ", ".join(dict.fromkeys(posixpath.basename(each.library) for each in hooks))
    action = made("preload-hook", f"Load {names} of this environment before {', '.join(table)}, wherever its Python is "
                  "started: a small module in its site folder and the file that starts it (python -S reads none)",
                  steps, places)
    beyond = dict.fromkeys(folder_of(each.library) for each in hooks if not is_inside(view, each.library))
    return replace(action, notes=tuple(f"{each} lies outside of {view.environment.prefix}: it is loaded from there, by "
                                       "its whole path, and nothing in it is changed" for each in beyond))


def elsewhere(view: View, site: str, modules: Iterable[str]) -> Mapping[str, str]:
    """Packages that are not imported from the hook's site folder, and where they lie."""
    found = dict[str, str]()
    sites = sorted((each.path for each in view.environment.sites), key=len, reverse=True)
    rows = {row.module.partition(".")[0]: row.project for row in view.libraries.imports}
    for module in modules:
        known = view.distributions.get(rows.get(module, ""))
        path = next((each.path for each in view.environment.shared_objects if each.module is not None
                     and each.module.partition(".")[0] == module), None)
        folder = known.site if known is not None else None
        if path is not None and folder is None:
            folder = next((each for each in sites if path.startswith(f"{each}/")), folder_of(path))
        if folder is not None and folder != site:
            found[module] = folder
    return found


def link_action(view: View, effect: Effect, places: Places) -> Action:
    """The links, each after the one that it leads to."""
    ends = {each.path: posixpath.normpath(posixpath.join(folder_of(each.path), each.target)) for each in effect.links}
    links = {inside(view, path): inside(view, target) for path, target in ends.items()}
    shown = ", ".join(f"{path} -> {posixpath.basename(target)}" for path, target in links.items())
    return made("relink", f"Link {shown}", relink_steps(links), places)


def kernel_action(view: View, path: str, effect: Effect, places: Places) -> Action:
    """The variables in the env block of one kernel. Raises BadInput where the file is no kernel.json."""
    file, variables = inside(view, path), dict(variables_after(view.situation, effect.variables))
    node = places.node(file)
    steps = kernel_steps(file, places.text(file) or "", variables, node.mode or 0o644)
    values = ", ".join(f"{name}={value or ''}" for name, value in variables.items())
    return made("write-activation", f"Give {values} to the notebooks of {file}", steps, places)


def install_action(view: View, wheel: Install, files: WheelFiles, places: Places) -> Action:
    """One wheel, or one package of conda, with the topmost paths that it changes."""
    if isinstance(wheel, InstallConda):
        return conda_action(view, wheel, files, places)
    known = view.distributions.get(wheel.project)
    again = known is not None and known.version == wheel.version
    why = f": {wheel.why}" if wheel.why else ""
    return Action(
        id="install", kind="install", cures=(), steps=(wheel,), changes=changes_by(files, places),
        summary=f"Reinstall {wheel.project} {wheel.version}, and nothing else{damages(view, wheel)}" if again
        else f"Install {wheel.project} {wheel.version}{in_place_of(wheel)}, and nothing else{why}",
        command=reinstall(view, known) if known is not None and again
        else install_line(view, known, f"{wheel.project} @ {wheel.source}" if "://" in wheel.source else wheel.source))


def conda_action(view: View, step: InstallConda, files: WheelFiles, places: Places) -> Action:
    """One package of conda; the command that conda itself takes for it."""
    spec, why = f"{step.project}={step.version}={step.build}", f": {step.why}" if step.why else ""
    again = step.record in step.records
    program = Program(kind="conda", word=step.program[0])
    words = ("conda", "install", "--prefix", view.environment.prefix, *(("--force-reinstall",) if again else ()), spec)
    return Action(
        id="install", kind="install", cures=(), steps=(step,), changes=changes_by(files, places),
        summary=f"Reinstall {spec} of conda, and nothing else{damages(view, step)}" if again
        else f"Install {spec} of conda{in_place_of(step)}, and nothing else{why}",
        command=next(by_programs(view, shlex.join(words), (program,)), None))


def in_place_of(wheel: Install) -> str:
    return f" in place of {', '.join(wheel.replaces)}" if wheel.replaces else ""


def damages(view: View, wheel: Install) -> str:
    """": libx.so.1 is gone": what is wrong with the files of an installed release."""
    told = [f"{posixpath.basename(each.path)} {DAMAGES.get(each.kind, 'is not as it was installed')}"
            for each in view.environment.file_faults if (each.owner.manager, each.owner.name) == (
                "conda" if isinstance(wheel, InstallConda) else "pip", wheel.project)]
    more = f", and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
    return f": {', '.join(told[:MOST_TOLD])}{more}" if told else ""
