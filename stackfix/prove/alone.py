"""Libraries of the lock that no import maps: each is opened by itself, as a program that looks for it would.

A wheel of cuSOLVER beside a torch that does not need it is there for somebody; nobody imports it by its name.
"""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.loader import Simulator
from stackfix.diagnose.records import OpenLibrary
from stackfix.diagnose.situation import Opening, View
from stackfix.quick import replace

PHASE = "library"
DRIVER = "driver"


def with_libraries(view: View) -> View:
    """The view with an opening for each main library of a known family that nothing has mapped."""
    mapped = {each.identity for opening in view.openings for each in opening.outcome.attempted.objects}
    simulator = Simulator(view.situation.loader, view.files, keep_going=True)
    openings = tuple(alone(view, simulator, path, project) for path, project in unmapped(view, mapped))
    situation = replace(view.situation, extra=(*view.situation.extra, *(each.request.name for each in openings)))
    return replace(view, situation=situation, openings=(*view.openings, *openings))


def unmapped(view: View, mapped: set[str]) -> Iterator[tuple[str, str]]:
    """(path, project) of these libraries, by path."""
    main = {each.stems[0]: each for each in view.libraries.families if each.projects and each.level != DRIVER}
    for each in view.environment.shared_objects:
        family = main.get(each.path.rpartition("/")[2].partition(".so")[0])
        if family is None or each.path in mapped or not each.owners:
            continue
        name = each.owners[0].name
        if name in family.projects or name.rpartition("-cu")[0] in family.projects:
            yield each.path, name


def alone(view: View, simulator: Simulator, path: str, project: str) -> Opening:
    """One library, opened in an interpreter that has imported nothing."""
    request = OpenLibrary(name=path)
    return Opening(project=project, what=f"{path.rpartition('/')[2]} opened by itself", phase=PHASE, request=request,
                   outcome=simulator.load(request, view.start), may_fail=None)
