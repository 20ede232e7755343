"""The preload hook: libraries of the environment that are loaded by path before a package that needs them."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.plumbing import needed_libraries
from stackfix.diagnose.provenance import PRELOAD
from stackfix.diagnose.situation import View
from stackfix.plan.effect_records import Effect, Hooked
from stackfix.plan.names_paths import is_inside
from stackfix.plan.rules_seen import Modules, behind, beside, is_library, lost, needing


def by_hook(view: View, finding: Finding) -> Iterator[Effect]:
    """The hook with what the finding is about; with what that needs; with all parts of the library."""
    if hook_site(view) is None or finding.culprit.variable == PRELOAD:     # what is mapped at start stays mapped
        return
    if finding.code == "SF1104":
        yield for_kernels(view)
        return
    direct = lost(view, finding)
    for libraries in dict.fromkeys((direct, behind(view, direct), behind(view, beside(view, finding)))):
        modules = Modules(view)
        before = dict.fromkeys(modules.of(each) for each in needing(view, finding, libraries))
        hooks = {Hooked(module=module, library=path) for module in before if module for path in libraries}
        if hooks:
            yield Effect(hooks=tuple(sorted(hooks)))


def for_kernels(view: View) -> Effect:
    """What a notebook does not find, because only activation names its folder."""
    modules, found = Modules(view), set[Hooked]()
    by_what = {each.what: each for each in view.openings}
    for folder, name, what, _ in needed_libraries(view):
        path, opening = f"{folder.rstrip('/')}/{name}", by_what.get(what)
        module = modules.of(opening) if opening else None
        if module is not None and is_inside(view, path) and is_library(view, path):
            found.add(Hooked(module=module, library=path))
    return Effect(hooks=tuple(sorted(found)))


def hook_site(view: View) -> str | None:
    """The site folder of the prefix that Python reads .pth files of; None where there is none."""
    if view.environment.python is None:
        return None
    return next((each.path for each in view.environment.sites
                 if each.kind == "environment" and each.exists and is_inside(view, each.path)), None)
