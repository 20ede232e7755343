"""What a repair changes, as plain records: `inspect.plain` writes them, so that a plan can be kept and applied later.

All paths of steps are relative to the environment's prefix, in POSIX form, without "..": nothing outside of the prefix
is ever changed.
"""

from __future__ import annotations

from dataclasses import dataclass

# Kinds of actions, the smallest change first: among sound plans the one whose largest kind comes first here wins.
RANKS = ("advice", "preload-hook", "relink", "write-activation", "remove-shadow", "install")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What is at a path, without following a link at its end."""

    kind: str                       # "absent", "file", "link", "folder" or "other"
    sha256: str | None = None       # of a file's content
    mode: int | None = None         # permission bits
    target: str | None = None       # of a link, as written


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """A file with this text at `path`: a new inode renamed over what is there, which is kept."""

    path: str
    text: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeLink:
    """A symbolic link at `path`; what is there is kept."""

    path: str
    target: str                     # relative, and inside of the prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """What is at `path` (a file, a link, or a folder with all that is in it) is moved away and kept."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallWheel:
    """One release of a distribution in place of what is installed of it, from a file whose hash is checked."""

    project: str                    # normalised
    version: str
    file: str                       # wheel file name
    sha256: str
    source: str                     # requirement that an installer is given: "torchaudio==2.3.1", or an address
    site: str                       # the site folder that it goes to, relative to the prefix
    replaces: tuple[str, ...]       # releases that go: ("torchaudio 2.4.0",)
    why: str = ""                   # this release: "as `stackfix lock --torch 2.3.1 --cuda 12.1` chooses it"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallConda:
    """One package of conda in place of what is installed of it, from an archive whose hash is checked.

    conda links it into a folder of ours first; no conda works in the environment itself.
    """

    project: str                    # as conda calls it: "libnvjitlink"
    version: str
    build: str                      # "h5888daf_1"
    url: str                        # of the archive, as its channel states it
    sha256: str
    program: tuple[str, ...]        # the words that start conda
    replaces: tuple[str, ...]       # releases that go: ("libnvjitlink 12.0.140",)
    records: tuple[str, ...]        # and what conda has noted of them: ("conda-meta/libnvjitlink-12.0.140-0.json",)
    why: str = ""                   # this release

    @property
    def file(self) -> str:
        """The archive's name."""
        return self.url.rpartition("/")[2]

    @property
    def record(self) -> str:
        """What conda notes of it, relative to the prefix."""
        return f"conda-meta/{self.project}-{self.version}-{self.build}.json"


Install = InstallWheel | InstallConda
Step = WriteFile | MakeLink | SetAside | InstallWheel | InstallConda


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one path is before and after, for people and for the check before the first step."""

    path: str                       # relative to the prefix
    before: Node
    after: Node
    files: int | None = None        # of an installation: how many it brings there, or takes away
    size: int | None = None         # their bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One means, with the findings that it cures."""

    id: str                         # "preload-hook-1": stable for the same findings
    kind: str                       # one of RANKS
    summary: str
    cures: tuple[str, ...]          # codes of findings, each as often as it is cured
    steps: tuple[Step, ...]         # in order; empty for advice
    changes: tuple[Change, ...]
    command: str | None = None      # for advice, and what an installer is called with
    notes: tuple[str, ...] = ()     # what else is to be known before it is done


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreached:
    """What a cure would have needed, and what could not be read or written: an index, a folder without room."""

    what: str                       # the thing and the reason
    hint: str | None                # the next step
    code: str = ""                  # of the error: "hash-mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A finding that a plan does not cure, and why."""

    code: str
    summary: str
    reason: str
    unreached: tuple[Unreached, ...] = ()   # with it there may be a cure
    by_auto: tuple[str, ...] = ()   # kinds of actions by which `--method auto` would cure it, as simulated
    by_install: tuple[str, ...] = ()    # projects that `--method reinstall` would try; nothing was asked of an index
    installer: str | None = None    # "conda": whose own commands may cure it
    by_scripts: bool = False        # scripts that an earlier repair wrote cure it, in a shell that is activated anew
    is_refused: bool = False        # there is a change that would, or may, cure it, and that may not be made


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All actions for one environment, in the order in which they are applied. Empty: nothing to repair."""

    prefix: str
    actions: tuple[Action, ...]
    left: tuple[Left, ...]
    variables: tuple[tuple[str, str | None], ...] = ()  # as activation leaves them; None: unset
    method: str = "auto"            # what the means were limited to
    lock: str | None = None         # name of the lockfile that installations were limited to
    is_whole: bool = True           # False: there was more to try than is ever simulated
