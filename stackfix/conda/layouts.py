"""What each layout asks of the channels, and what it leaves to pip, for one target and one torch build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from stackfix.conda.candidates import Choice
from stackfix.conda.matching import admits
from stackfix.conda.names import NameBook, Package, Shelf
from stackfix.conda.records import Channel, Channels, Spec
from stackfix.conda.specs import Translated, Untranslated, translate
from stackfix.errors import StackfixError
from stackfix.matrix.query import CPU
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.pep508 import normalise, parse_version
from stackfix.resolve.question import FLASH_ATTN, Question, UserLine
from stackfix.resolve.records import Asked, Target
from stackfix.sources.errors import SdistNeedsBuild

SYSTEM = ("libstdcxx",)         # what wheels of the stack need of a system beside Python itself
FREE_THREADS_FROM = (3, 13)     # Pythons that are built twice: their build strings tell which


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One thing that is asked of the channels, and what the user asked for that it rests on."""

    spec: Spec
    asks: tuple[Asked, ...] = ()
    project: str | None = None      # that a line of the request names


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One layout for one target with one torch build."""

    layout: str
    target: Target
    choice: Choice | None           # None in layout wheels
    channels: tuple[Channel, ...]
    wishes: tuple[Wish, ...]
    limits: tuple[Wish, ...]        # constraints: only bound what is there
    loose: tuple[Wish, ...]         # what is taken back, the last first, where the solve fails with it
    pip: tuple[str, ...] | None     # projects named by the request that pip brings; None: all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Why a layout is out of the question before anything is solved."""

    layout: str
    kind: str                       # what: "package", "build", "python", "flash-attn"; "nothing": it is another layout
    text: str
    source: str
    asks: tuple[Asked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What all plans of one target have in common."""

    question: Question
    evidence: Evidence
    channels: Channels
    names: NameBook
    target: Target
    flash_attn: str | None          # the release that the stack has
    cuda: str                       # of the wheel, or as asked
    pip_versions: Mapping[str, str] = field(default_factory=dict)   # of the pip lock, by project

    def package(self, choice: Choice, project: str) -> Package | None:
        """The package of the channels that brings a project; None: they have none."""
        return self.names.choose(project, self.shelf(choice.channels), choice.torch.cuda)

    def shelf(self, channels: tuple[Channel, ...]) -> Shelf:
        """The records that these channels have of a name."""
        return lambda name: self.channels.records(channels, self.target.platform, name)

    def lines_of_extra(self, project: str, extra: str) -> tuple[str, ...] | None:
        """Requires-Dist of the project's newest release for the target; None where that cannot be told."""
        try:
            candidate = next(self.evidence.project(project, self.target).candidates(()), None)
            metadata = None if candidate is None else self.evidence.metadata(candidate)
        except StackfixError:
            return None
        if metadata is None or isinstance(metadata, SdistNeedsBuild):
            return None
        return metadata.requires_dist if extra in map(normalise, metadata.provides_extra) else ()

    @property
    def lines(self) -> tuple[UserLine, ...]:
        """What the request names beside the stack, where it holds on the target."""
        view = self.evidence.view(self.target)
        return tuple(line for line in self.question.lines if view.applies(line.requirement.text, None))


def plans_for(scene: Scene, layout: str, choices: Iterable[Choice]) -> Iterator[Plan | Lacking]:
    """The plans of one layout, best first."""
    if layout == "wheels":
        yield wheels_plan(scene)
        return
    for choice in choices:
        yield native_plan(scene, choice) if layout == "native" else mixed_plan(scene, choice)


def native_plan(scene: Scene, choice: Choice) -> Plan | Lacking:
    """Everything from channels."""
    wishes: list[Wish] = []
    for line in scene.lines:
        if line.requirement.constraint:
            continue
        found = _line_wishes(scene, choice, line)
        if isinstance(found, str):
            source = _channels_text(choice.channels)
            return Lacking(layout="native", kind="package", text=found, source=source, asks=(line.asked,))
        wishes.extend(found)
    if scene.flash_attn is not None and not any(line.name == FLASH_ATTN for line in scene.lines):
        lacking_flash = _flash_lacking(scene, choice)
        if lacking_flash is not None:
            return lacking_flash
        origin = f"flash-attn {scene.flash_attn} of the stack"
        wishes.append(Wish(
            spec=Spec(text=f"{FLASH_ATTN} =={scene.flash_attn}", origin=origin),
            asks=tuple(ask.asked for ask in scene.question.flash_attn),
        ))
    return _plan(scene, "native", choice, wishes, pip=())


def mixed_plan(scene: Scene, choice: Choice, left: tuple[str, ...] = ()) -> Plan | Lacking:
    """torch from a channel, and from pip what no channel has for it: `left` is known to be so."""
    wishes: list[Wish] = []
    pip: list[str] = []
    for line in scene.lines:
        if line.requirement.constraint:
            continue
        found = _line_wishes(scene, choice, line)
        if isinstance(found, str) or line.name in left:
            pip.append(line.name)
        else:
            wishes.extend(found)
    if scene.flash_attn is not None and FLASH_ATTN not in pip:
        pip.append(FLASH_ATTN)
    if pip:
        wishes.append(Wish(spec=Spec(text="pip", origin="layout mixed")))
    return _plan(scene, "mixed", choice, wishes, pip=tuple(pip))


def wheels_plan(scene: Scene) -> Plan:
    """Python and system libraries from channels, all else from pip."""
    channels = scene.channels.channels
    wishes = [python_wish(scene), Wish(spec=Spec(text="pip", origin="layout wheels"))]
    wishes.extend(
        Wish(spec=Spec(text=name, origin="layout wheels"))
        for name in SYSTEM if scene.channels.records(channels, scene.target.platform, name)
    )
    return Plan(
        layout="wheels", target=scene.target, choice=None, channels=channels, wishes=tuple(wishes), limits=(),
        loose=(), pip=None,
    )


def _plan(scene: Scene, layout: str, choice: Choice, wishes: list[Wish], *, pip: tuple[str, ...]) -> Plan:
    torch = Wish(spec=Spec(text=choice.spec, origin=choice.label))
    limited = (_line_wishes(scene, choice, line) for line in scene.lines
               if line.requirement.constraint and line.name not in pip)
    limits = tuple(wish for found in limited if not isinstance(found, str) for wish in found)
    firm, loose = _cuda_wishes(scene, choice)
    return Plan(
        layout=layout, target=scene.target, choice=choice, channels=choice.channels,
        wishes=(python_wish(scene), torch, *firm, *wishes), limits=limits, pip=pip,
        loose=(*loose, *_like_pip(scene, choice, pip)),
    )


def _like_pip(scene: Scene, choice: Choice, pip: tuple[str, ...]) -> Iterator[Wish]:
    """The versions that the pip lock has of what the request names, where the channels have them too."""
    for line in scene.lines:
        version = scene.pip_versions.get(line.name)
        package = scene.package(choice, line.name) if version is not None and line.name not in pip else None
        if package is None or line.requirement.constraint:
            continue
        text = f"{package.name} =={version}"
        records = scene.channels.records(choice.channels, scene.target.platform, package.name)
        if any(admits(text, record) for record in records):
            yield Wish(spec=Spec(text=text, origin=f"{line.name} {version} of the pip lock"), project=line.name)


def python_wish(scene: Scene) -> Wish:
    """`python 3.11.*`; of a Python that is built twice the build with the lock."""
    python = scene.target.python
    minor = tuple(int(part) for part in python.split("."))
    build = f" *_cp{python.replace('.', '')}" if minor >= FREE_THREADS_FROM else ""
    asks = scene.question.python_ask(python)
    origin = f"--python {python}" if asks else f"Python {python} of the stack"
    return Wish(spec=Spec(text=f"python {python}.*{build}", origin=origin), asks=asks)


def _cuda_wishes(scene: Scene, choice: Choice) -> tuple[tuple[Wish, ...], tuple[Wish, ...]]:
    """What holds the libraries to one CUDA: firm for repacked wheels, whose channel says so; else what can be had."""
    torch = choice.torch
    if torch.cuda == CPU:
        return (), ()
    if choice.repacked:
        return (Wish(spec=Spec(text=f"pytorch-cuda {torch.cuda}.*", origin=f"CUDA {torch.cuda} of this torch")),), ()
    records = scene.channels.records(choice.channels, scene.target.platform, "cuda-version")
    own = _minor(torch.cuda)
    usable = {record.version for record in records if own <= _minor(record.version) < (own[0] + 1,)}
    for cuda in (scene.cuda, torch.cuda, *sorted(usable, key=_minor)):
        if cuda in usable:
            origin = f"the CUDA nearest to {scene.cuda} that this torch and its channel have"
            return (), (Wish(spec=Spec(text=f"cuda-version {cuda}.*", origin=origin)),)
    return (), ()


def _minor(cuda: str) -> tuple[int, ...]:
    return tuple(int(part) for part in cuda.split(".") if part.isdigit())


def _line_wishes(scene: Scene, choice: Choice, line: UserLine) -> tuple[Wish, ...] | str:
    """What a line asks of the channels, with what its extras need; a text that says why they cannot give it."""
    found = translate(
        line.requirement, scene.evidence.view(scene.target), lambda project: scene.package(choice, project),
        scene.lines_of_extra,
    )
    lacking = next((one for one in found if isinstance(one, Untranslated)), None)
    if lacking is not None:
        return f"{lacking.project} cannot come from {_channels_text(choice.channels)}: {lacking.reason}"
    return tuple(
        Wish(spec=one.spec, asks=(line.asked,), project=line.name) for one in found if isinstance(one, Translated))


def _flash_lacking(scene: Scene, choice: Choice) -> Lacking | None:
    """Why channels have no flash-attn of the stack's release for the Python, or None where they may."""
    records = scene.channels.records(choice.channels, scene.target.platform, FLASH_ATTN)
    wanted = parse_version(scene.flash_attn or "")
    fitting = [record for record in records if parse_version(record.version) == wanted]
    asks = tuple(ask.asked for ask in scene.question.flash_attn)
    if fitting:
        return None
    known = ", ".join(sorted({record.version for record in records}))
    have = f"they have {known}" if known else "they have none"
    text = f"flash-attn {scene.flash_attn} is in none of the channels {_channels_text(choice.channels)}: {have}"
    return Lacking(layout="native", kind="flash-attn", text=text, source="records of flash-attn", asks=asks)


def _channels_text(channels: tuple[Channel, ...]) -> str:
    return ", ".join(channel.name for channel in channels)
