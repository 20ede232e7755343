"""What flows from a text to its explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stackfix.abi.records import Books
    from stackfix.matrix.code_records import Codes
    from stackfix.matrix.library_records import Libraries
    from stackfix.matrix.records import Companion, FlashAttnRelease, FlashAttnWheel, Frameworks, Matrix, TorchBuild

Fields = Mapping[str, str]      # what a rule read and derived: {"symbol": "__nvJitLinkAddData_12_1", "cuda": "12.1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the text, cleaned."""

    number: int                     # in the text as given, from 1
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text as it is judged: no controls, no colours, bounded."""

    lines: tuple[Line, ...]         # without empty ones
    size: int                       # bytes that were read
    cut: bool                       # there was more than is read


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseText:
    """One cause of a rule as its file states it: texts with {fields}."""

    when: tuple[str, ...] = ()      # fields that must be known ("symbol"), must not ("!folder"), or be ("major=12")
    summary: str
    because: tuple[str, ...]        # an entry whose fields are not all known is left out
    culprit: str | None
    confirm: str | None             # a command
    cure: str
    avoid: str | None               # a command


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A text that the rule must recognise, and what the explanation must name."""

    text: str
    says: tuple[str, ...]           # each stands somewhere in the explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one kind of message is recognised and what it means."""

    name: str                       # "nvjitlink-symbol"; unique
    kind: str                       # "undefined-symbol"; what --json calls it
    family: str                     # "K1"
    what: str                       # the section's first line in docs/explain.md
    anchors: tuple[str, ...]        # a line without any of these words, in any case, is not looked at
    patterns: tuple[str, ...]       # regular expressions; named groups become fields
    also: tuple[str, ...] = ()      # patterns that must be found somewhere in the text, too; their groups are fields
    reads: tuple[str, ...] = ()     # patterns that may be found somewhere in the text; their groups are fields
    lines: int = 1                  # how many lines a message may run over: they are joined, without what frames them
    weight: int                     # 0 to 100: of two messages the heavier is explained first
    hides: tuple[str, ...] = ()     # rules whose messages need no explanation where this one is found
    derive: tuple[str, ...] = ()    # names in explain.derive.DERIVE
    findings: tuple[str, ...] = ()  # codes of `stackfix check` that may be this, as seen in an environment: "SF101"
    causes: tuple[CauseText, ...]
    examples: tuple[Example, ...]
    source: str                     # where it was read that this message means this


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause, in words for people."""

    summary: str
    because: tuple[str, ...]
    culprit: str | None
    confirm: str | None
    cure: str
    avoid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A rule that was found in the text."""

    rule: str
    kind: str
    line: int                       # where it stands
    quoted: str
    fields: Fields
    causes: tuple[Cause, ...] = ()  # that hold, but those which a message before it has already


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a text means. No causes: the error is unknown, and `fields` is what could be read from it."""

    kind: str                       # of the message that is explained first, else "unknown"
    causes: tuple[Cause, ...]
    messages: tuple[Message, ...]
    fields: Fields = field(default_factory=dict)    # what the whole text tells of versions, folders, variables


class Facts(Protocol):
    """What a derivation may ask; each is read when it is first asked for."""

    @property
    def matrix(self) -> Matrix: ...

    @property
    def torch(self) -> tuple[TorchBuild, ...]: ...              # `matrix.torch` alone: much quicker

    def has_wheel(self, build: TorchBuild) -> bool: ...         # whether a file of it is known: `lock` can have it

    @property
    def companions(self) -> tuple[Companion, ...]: ...          # the same

    @property
    def flash_attn(self) -> tuple[FlashAttnRelease, ...]: ...

    @property
    def flash_attn_wheels(self) -> tuple[FlashAttnWheel, ...]: ...

    @property
    def codes(self) -> Codes: ...

    @property
    def frameworks(self) -> Frameworks: ...

    @property
    def libraries(self) -> Libraries: ...

    @property
    def books(self) -> Books: ...


Derivation = Callable[[Fields, Facts], Fields]      # fields to add; {} where nothing can be told
