"""What an environment is asked about an error, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stackfix.diagnose.finding_records import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLibrary:
    """The file that a library's name leads to in one environment."""

    path: str
    via: str | None                 # "LD_LIBRARY_PATH (/opt/cuda/lib64)"; None: it lies there, and no search finds it
    package: str | None             # "nvidia-nvjitlink-cu12 12.4.127"
    has: bool | None                # the symbol that was asked for; None where none was, or the file cannot be read


class Place(Protocol):
    """An environment that was inspected."""

    @property
    def prefix(self) -> str: ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of `stackfix check`, worst first."""
        ...

    def library(self, soname: str, symbol: str | None) -> FoundLibrary | None:
        """The file that imports of the environment load under a name; None where there is none."""
        ...

    def other(self, soname: str) -> str | None:
        """A file of the same library under another name: "libcudnn.so.9 of nvidia-cudnn-cu12 9.1.0.70"."""
        ...

    def version(self, package: str) -> str | None:
        """Of an installed package."""
        ...

    @property
    def driver(self) -> str | None:
        """"550.54.15"; None where there is none, or nothing tells."""
        ...

    @property
    def gpus(self) -> tuple[str, ...]:
        """Names with their compute capability: "NVIDIA H100 (9.0)"."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """What is true of one message in the environment that was inspected."""

    verdict: str                    # "so here", "not so here", "cannot tell"
    text: str                       # one sentence
    findings: tuple[Finding, ...]   # that are this
    command: str | None             # that would cure it, changing nothing yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """The environment that the messages were held against. `error` in place of all else: the text stands alone."""

    prefix: str | None = None
    python: str | None = None       # "3.11.4"
    found_via: str | None = None    # "--prefix", "VIRTUAL_ENV", …
    root: str | None = None         # the tree that it lies in; None: this machine
    error: str | None = None        # why nothing could be seen
    heres: tuple[Here, ...] = ()    # of each message of the explanation, in its order
    findings: tuple[Finding, ...] = ()      # of an unknown error: those that name a symbol or a file that it names
