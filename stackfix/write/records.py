"""Lockfiles as records: what is planned, what a line says, what differs."""

from __future__ import annotations

from stackfix.quick import dataclass, field
from stackfix.write.quoted import quoted

CONDA_KINDS = ("conda-lock", "explicit", "pixi", "environment")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """One lockfile, whole. `path` is a bare file name below the output folder."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One pin of a requirements lock. Exactly one of `version` and `url` is set."""

    name: str                       # normalised
    version: str | None             # of `name==version`
    url: str | None                 # of `name @ url`
    sha256: tuple[str, ...]         # sorted, at least one
    extras: tuple[str, ...] = ()
    via: tuple[str, ...] = ()       # what `# via` names, sorted
    marker: str | None = None       # only other tools' locks have one: a lock of ours is for one target
    line: int = field(default=0, compare=False)  # where it was read; 0 for one that was not read from a file


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementsLock:
    """A requirements lock. `target` and `second_step` are None where the file does not say."""

    target: tuple[str, str] | None  # ("3.11", "linux-64")
    second_step: str | None         # bare name of the file that must be installed after this one
    is_second_step: bool
    entries: tuple[Entry, ...]
    variant: str | None = None      # "cpu": for the CPU build on that platform; None where the file does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One line that is not as it should be. `found` None: missing; `expected` None: too much."""

    path: str
    line: int | None                # in the file as it is, from 1; None when there is no file
    found: str | None
    expected: str | None
    about: str | None = field(default=None, compare=False)  # of a pylock: the package and its marker, or the target
    whole: bool = field(default=False, compare=False)       # all that it is about: the line stands for it

    def describe(self) -> str:
        """`requirements.txt:12: found 'x', expected 'y'`."""
        if self.line is None:
            return f"{self.path}: missing"
        where = f"{self.path}:{self.line}: {self.about}" if self.about else f"{self.path}:{self.line}"
        if self.whole:
            return f"{where} is {'missing' if self.found is None else 'too much'}"
        if self.found is None:
            return f"{where}: missing {quoted(self.expected)}"
        if self.expected is None:
            return f"{where}: unexpected {quoted(self.found)}"
        return f"{where}: found {quoted(self.found)}, expected {quoted(self.expected)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaPin:
    """One package of a channel. What the format has no place for is None or empty."""

    name: str
    version: str
    build: str
    platform: str                   # that it is locked for: "linux-64"
    subdir: str | None              # that its file lies in: "noarch"; None in environment.yml
    channel: str | None             # base address; in environment.yml the name before `::`
    file_name: str | None
    url: str | None
    md5: str | None
    sha256: str | None
    depends: tuple[str, ...] = ()   # MatchSpecs
    constrains: tuple[str, ...] = ()
    build_number: int = 0           # where the file does not say: the digits at the end of the build string
    noarch: str | None = None
    size: int | None = None
    timestamp: int | None = None
    license: str | None = None
    license_family: str | None = None
    features: str | None = None
    track_features: tuple[str, ...] = ()
    python_site_packages_path: str | None = None
    category: str = "main"          # other tools' locks have "dev" too
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipPin:
    """One package of pip."""

    name: str                       # normalised
    version: str | None             # None where only the address says it
    platform: str
    url: str | None                 # None in environment.yml for `name==version`
    sha256: str | None              # None only in files of other tools
    extras: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    category: str = "main"
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaEnvironment:
    """What one file locks for one platform."""

    name: str                       # "default", or that of pixi.lock
    platform: str
    channels: tuple[str, ...]       # names or base addresses, in order of priority
    conda: tuple[CondaPin, ...]     # sorted by name
    pip: tuple[PipPin, ...]         # sorted by name

    @property
    def python(self) -> str | None:
        """The Python minor: "3.11"; None without a python package."""
        found = next((pin.version for pin in self.conda if pin.name == "python"), None)
        return ".".join(found.split(".")[:2]) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaLockFile:
    """One file. `targets` and `second_steps` are empty for a file that is not ours."""

    path: str
    kind: str                       # one of CONDA_KINDS
    environments: tuple[CondaEnvironment, ...]
    targets: tuple[tuple[str, str], ...] = ()   # ("3.11", "linux-64")
    glibc: str | None = None
    second_steps: tuple[str, ...] = ()          # bare names of files to install afterwards
    ours: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One package that a lockfile or an environment holds, in whatever manager's words."""

    name: str                       # as its manager calls it
    key: str                        # what conda and pip call it alike: the project, without its CUDA suffix
    manager: str                    # "conda" or "pip"
    version: str | None             # None where only an address says it
    build: str | None = None        # conda's build string
    source: str | None = None       # channel of conda, address of a file of pip; without credentials
    hashes: tuple[str, ...] = ()    # "sha256:…" and "md5:…", sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTarget:
    """What one side holds for one target. None: it does not say."""

    python: str | None              # "3.11"
    platform: str | None            # "linux-64"
    packages: tuple[Held, ...]
    variant: str | None = None      # "cpu" of linux-64-cpu, "" of linux-64

    @property
    def place(self) -> str | None:
        """`linux-64`, `linux-64-cpu`; None where the platform is not known."""
        return f"{self.platform}-{self.variant}" if self.platform and self.variant else self.platform

    @property
    def label(self) -> str:
        """`Python 3.11 on linux-64`."""
        return f"Python {self.python or '?'} on {self.place or 'this machine'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A target that a pylock does not exclude, and that cannot be installed from it."""

    python: str                     # "3.15"
    platform: str                   # "linux-64"
    project: str                    # that has no file for it; the first of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One package that is not the same on both sides. `before` None: added; `after` None: removed."""

    kinds: tuple[str, ...]          # "added", "removed", "manager", "version", "build", "source", "hash"
    stack: bool                     # torch, CUDA, cuDNN, nvJitLink, flash-attn or what is built for them
    before: Held | None
    after: Held | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChanges:
    """What changed for one target."""

    before: HeldTarget
    after: HeldTarget
    changes: tuple[Changed, ...]    # those of the stack first
