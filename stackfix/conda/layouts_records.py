"""What a layout asks of the channels, as records, and what all layouts of one target have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stackfix.conda.candidates import Choice
from stackfix.conda.names import NameBook, Package, Shelf
from stackfix.conda.records import Channel, Channels, Spec
from stackfix.errors import StackfixError
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.pep508 import normalise
from stackfix.resolve.question import Question, UserLine
from stackfix.resolve.records import Asked, Target
from stackfix.sources.errors import SdistNeedsBuild


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
    nearest: tuple[Wish, ...] = ()  # of which one is asked: the next where the solve fails with the one before
    favoured: tuple[tuple[str, str], ...] = ()      # (address, name) of records that are taken where they fit


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
        return tuple(line for line in self.question.lines
                     if line.asked.kind != "conda-line" and view.applies(line.requirement.text, None))
