"""Lines of an environment.yml that are for channels alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.conda.layouts_records import Scene, Wish
from stackfix.conda.records import Spec
from stackfix.resolve.question import conda_line_ask


def own_wishes(scene: Scene, *, pip: Iterable[str] | None) -> Iterator[Wish]:
    """What these lines ask of the channels. `pip`: projects that come from pip; None: all of the stack do.

    A line about a package that pip brings a project for (a build of pytorch) says nothing where pip brings it.
    """
    left = None if pip is None else frozenset(pip)
    for line in scene.question.request.conda_lines:
        if line.platform not in {None, scene.target.platform}:
            continue
        if line.project is None or (left is not None and line.project not in left):
            yield Wish(spec=Spec(text=line.text, origin=line.origin), asks=(conda_line_ask(line),))
