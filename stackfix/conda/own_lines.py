"""Lines of an environment.yml that are for channels: where each one holds in a layout, or that it holds nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from packaging.version import Version

from stackfix.conda.bounds import spec_name
from stackfix.conda.candidates import bundled, searched
from stackfix.conda.layouts_records import Lacking, Plan, Scene, Wish
from stackfix.conda.matching import admits, admits_version
from stackfix.conda.records import Channels, CondaRecord, Spec
from stackfix.matrix.query import CPU
from stackfix.resolve.pep508 import normalise, parse_requirement, parse_version
from stackfix.resolve.question import Question
from stackfix.resolve.records import CondaLine

MANY = 6
CUDNN = frozenset({"cudnn", "libcudnn"})
OLDEST = Version("0")
EXACT_BUILD = re.compile(r"(?P<name>\S+) ==(?P<version>[0-9.]+) (?P<build>\S+)")


def own_wishes(scene: Scene, *, pip: Iterable[str] | None) -> Iterator[Wish]:
    """What these lines ask of the channels. `pip`: projects that come from pip; None: all of the stack do."""
    for line in _lines(scene):
        if not _from_pip(scene, line, pip):
            yield Wish(spec=Spec(text=line.text, origin=line.origin), asks=scene.question.line_asks(line))


def unheld(scene: Scene, plan: Plan) -> Lacking | None:
    """The first line that pip, or what this torch has linked in, does not meet in this plan; None where all hold."""
    for line in _lines(scene):
        why = _not_by_pip(scene, line) if _from_pip(scene, line, plan.pip) else _linked_in(plan, line)
        if why is not None:
            return Lacking(layout=plan.layout, kind="conda-line", text=why, source=line.origin,
                           asks=scene.question.line_asks(line))
    return None


def absent(channels: Channels, question: Question, platform: str) -> Lacking | None:
    """The first line that no package of any channel meets, and that pip cannot meet either, whatever the torch."""
    places = searched(channels)
    for line in question.request.conda_lines:
        if line.platform not in {None, platform} or line.limits or (line.cuda and line.project is not None):
            continue
        records = channels.records(places, platform, spec_name(line.text))
        if any(admits(line.text, record) is not False for record in records):
            continue
        names = ", ".join(channel.name for channel in places)
        dated = bundled(channels)
        holes = f" ({dated.removeprefix(', ')}, with holes: no channel was asked)" if dated else ""
        text = f"no package of {names} is {line.text}{_nearest(line.text, records)}{holes}"
        return Lacking(layout=question.request.layout or "native", kind="conda-line", text=text,
                       source=f"records of {spec_name(line.text)} in {names}{dated}", asks=question.line_asks(line))
    return None


def _nearest(text: str, records: Sequence[CondaRecord]) -> str:
    """What there is instead: the versions, and that a version with a build behind it is meant to the last digit."""
    versions = sorted({record.version for record in records}, key=lambda one: parse_version(one) or OLDEST)
    shown = versions if len(versions) <= MANY else [*versions[:2], "…", *versions[-3:]]
    found = EXACT_BUILD.fullmatch(text)
    if found is not None:
        wider = f"{found['name']} {found['version']}.* {found['build']}"
        if any(admits(wider, record) for record in records):
            return (f" (a version with a build behind it is exact; {found['name']}={found['version']}.*="
                    f"{found['build']} is any release of it)")
    return f": they have {', '.join(shown) or 'none'}"


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


def _linked_in(plan: Plan, line: CondaLine) -> str | None:
    """That a bound on cuDNN is not met by the one that this torch has inside, whatever package lies beside it."""
    torch = plan.choice.torch if plan.choice is not None else None
    if torch is None or torch.cudnn is None or not torch.cudnn_linked or spec_name(line.text) not in CUDNN:
        return None
    # the build string states three parts of four
    if any(admits_version(line.text, text) is not False for text in (torch.cudnn, f"{torch.cudnn}.999")):
        return None
    return f"{line.text} is asked for, and {{torch}} of this channel has cuDNN {torch.cudnn} linked in"


def _not_by_pip(scene: Scene, line: CondaLine) -> str | None:
    """Why what pip brings does not meet the line; its bounds on libraries are asked of pip's own side."""
    if line.limits:
        return None
    if line.cuda:
        if admits_version(line.text, scene.cuda) is not False:
            return None
        return f"{line.text} is asked for, and pip's torch is built for CUDA {scene.cuda}"
    return f"{line.text} is a package of channels, and {line.project} would come from pip"
