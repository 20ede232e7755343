"""The preload hook: libraries of the environment that are loaded by path before a package that needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.plumbing import needed_libraries
from stackfix.diagnose.provenance import PRELOAD
from stackfix.diagnose.situation import View
from stackfix.plan.effect_records import Effect, Hooked
from stackfix.plan.names_paths import is_inside
from stackfix.plan.rules_seen import Modules, behind, beside, is_library, lost, needing


def by_hook(view: View, finding: Finding) -> Iterator[Effect]:
    """The hook with what the finding is about; with what that needs; with all parts of the library."""
    if view.environment.python is None or finding.culprit.variable == PRELOAD:     # what is mapped at start stays
        return
    modules = Modules(view)
    if finding.code == "SF1104":
        yield from hooked(view, for_kernels(view, modules))
        return
    direct = lost(view, finding)
    for libraries in dict.fromkeys((direct, behind(view, direct), behind(view, beside(view, finding)))):
        before = dict.fromkeys(modules.of(each) for each in needing(view, finding, libraries))
        yield from hooked(view, {Hooked(module=module, library=path) for module in before if module
                                 for path in libraries})


def hooked(view: View, hooks: Collection[Hooked]) -> Iterator[Effect]:
    """The hook with these libraries, where one site folder can name all of them.

    It listens to packages that are executed, and to no other: a folder without code, as jax_plugins, is only a name.
    What is left without it shows in the simulation.
    """
    heard = sorted(each for each in hooks if each.module.isidentifier())
    if heard and hook_site(view, [each.library for each in heard]) is not None:
        yield Effect(hooks=tuple(heard))


def for_kernels(view: View, modules: Modules) -> Collection[Hooked]:
    """What a notebook does not find, because only activation names its folder."""
    found, by_what = set[Hooked](), {each.what: each for each in view.openings}
    for folder, name, what, _ in needed_libraries(view):
        path, opening = f"{folder.rstrip('/')}/{name}", by_what.get(what)
        module = modules.of(opening) if opening else None
        if module is not None and view.is_at_hand(path) and is_library(view, path):
            found.add(Hooked(module=module, library=path))
    return found


def hook_site(view: View, libraries: Iterable[str]) -> str | None:
    """The site folder of the prefix that Python reads .pth files of and that holds the libraries; None: there is none.

    What lies elsewhere in the prefix, such as conda's lib folder, is no wheel's own file. Those of the base, or of a
    folder that a .pth file names, are loaded from there: only the hook itself is written, and that into the prefix.
    """
    paths = [path for path in libraries if view.is_inside(path) or not view.is_at_hand(path)]
    return next((each.path for each in view.environment.sites
                 if each.kind == "environment" and each.exists and is_inside(view, each.path)
                 and all(path.startswith(f"{each.path}/") for path in paths)), None)
