"""Lines of an environment.yml that are for channels: where each one holds in a layout, or that it holds nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackfix.conda.layouts_records import Lacking, Plan, Scene, Wish
from stackfix.conda.matching import admits_version
from stackfix.conda.records import Spec
from stackfix.matrix.query import CPU
from stackfix.resolve.pep508 import normalise, parse_requirement
from stackfix.resolve.question import conda_line_ask
from stackfix.resolve.records import CondaLine


def own_wishes(scene: Scene, *, pip: Iterable[str] | None) -> Iterator[Wish]:
    """What these lines ask of the channels. `pip`: projects that come from pip; None: all of the stack do."""
    for line in _lines(scene):
        if not _from_pip(scene, line, pip):
            yield Wish(spec=Spec(text=line.text, origin=line.origin), asks=(conda_line_ask(line),))


def unheld(scene: Scene, plan: Plan) -> Lacking | None:
    """The first line that pip would have to meet in this plan, and that it cannot; None where all hold."""
    for line in _lines(scene):
        if not _from_pip(scene, line, plan.pip):
            continue
        why = _not_by_pip(scene, line)
        if why is not None:
            return Lacking(layout=plan.layout, kind="conda-line", text=why, source=line.origin,
                           asks=(conda_line_ask(line),))
    return None


def _lines(scene: Scene) -> Iterator[CondaLine]:
    for line in scene.question.request.conda_lines:
        if line.platform in {None, scene.target.platform}:
            yield line


def _from_pip(scene: Scene, line: CondaLine, pip: Iterable[str] | None) -> bool:
    """Whether pip brings what the line is about: a library of CUDA only where the wheels' closure has it."""
    if line.project is None or (pip is not None and line.project not in pip):
        return False
    if line.cuda:
        return scene.cuda != CPU
    return not line.limits or any(_name(limit) in scene.pip_versions for limit in line.limits)


def _name(limit: str) -> str:
    parsed = parse_requirement(limit)
    return normalise(parsed.name) if parsed is not None else limit


def _not_by_pip(scene: Scene, line: CondaLine) -> str | None:
    """Why what pip brings does not meet the line; its bounds on libraries are asked of pip's own side."""
    if line.limits:
        return None
    if line.cuda:
        if admits_version(line.text, scene.cuda) is not False:
            return None
        return f"{line.text} is asked for, and pip's torch is built for CUDA {scene.cuda}"
    return f"{line.text} is a package of channels, and {line.project} would come from pip"
