"""What is asked, what was decided, and why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from stackfix.errors import AnswerIsNo, StackfixError
from stackfix.matrix.records import TorchBuild
from stackfix.quick import dataclass, replace
from stackfix.sources.records import CoreMetadata, IndexFile, ReleaseAsset, UploadLimit

if TYPE_CHECKING:
    from stackfix.conda.records import CondaTarget


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Target:
    """What one lock is for. Nothing of the running machine is in it."""

    python: str                     # "3.11"
    platform: str                   # conda subdir: "linux-64", "osx-arm64"
    glibc: str                      # "2.28": newest manylinux tag that is accepted
    macos: str = "14.0"             # newest macosx tag that is accepted
    variant: str = ""               # "cpu": the CPU build, whatever the CUDA of the other targets is

    @property
    def place(self) -> str:
        """`linux-64`, or `linux-64-cpu` where a variant is asked for on this platform alone."""
        return f"{self.platform}-{self.variant}" if self.variant else self.platform


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One requirement or constraint of the user, with the place it was written."""

    text: str                       # PEP 508: "transformers>=4.40"
    origin: str                     # "--with transformers>=4.40", "requirements.in line 3", "stackfix.toml [train]"
    constraint: bool = False        # only limits (pip's -c)
    hashes: tuple[str, ...] = ()    # sha256 of the only files the user allows (`--hash` in a file); empty: any


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaLine:
    """One MatchSpec of an environment.yml that pip has no word for: a package of channels alone, a build, a channel."""

    text: str                       # "cmake >=3.28", "pytorch=2.3=*cuda*"
    origin: str                     # "environment.yml line 7"
    platform: str | None = None     # where it holds; None: everywhere
    project: str | None = None      # that pip would bring in the package's place, in layouts in which it does
    limits: tuple[str, ...] = ()    # the same said to pip: "nvidia-cudnn-cu12<9", of each project that it may be
    cuda: bool = False              # its version is CUDA's: what wheels are built for may meet it


@dataclass(frozen=True, slots=True, kw_only=True)
class StackRequest:
    """What the user asked. None: not asked, to be chosen."""

    torch: str | None = None        # PEP 440 specifier; "2.3" was turned into "==2.3.*"
    cuda: str | None = None         # "12.1", "12" or "cpu"
    pythons: tuple[str, ...] = ()   # empty: `default_python` if the stack has it, else the newest that has
    default_python: str = "3.11"
    platforms: tuple[str, ...] = ("linux-64",)     # places: "linux-64", "linux-64-cpu"
    glibc: str = "2.28"
    macos: str = "14.0"
    flash_attn: str | None = None   # specifier that must be met; None: included when a prebuilt wheel fits
    no_flash_attn: bool = False
    requirements: tuple[Requirement, ...] = ()
    driver: str | None = None
    no_driver: bool = False         # CONDA_OVERRIDE_CUDA is set and empty: the conda side is for a machine without one
    cuda_compat: bool = False
    gpu_archs: tuple[str, ...] = ()
    exclude_newer: str | None = None  # ISO 8601
    upload_limits: tuple[UploadLimit, ...] = ()     # of single projects and indexes, before the general one
    kept: tuple[tuple[str, str], ...] = ()  # (name, version) pins of the existing lock, preferred while they fit
    kept_of_targets: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = ()  # (python, place, the same), where
    #                                             the existing lock pins one project at several versions
    layout: str | None = None       # of the conda side: "native", "mixed" or "wheels"; None: the first that holds
    channels: tuple[str, ...] = ()  # the only conda channels; empty: those of the settings, else the default ones
    conda_lines: tuple[CondaLine, ...] = ()     # what is asked of channels alone
    places: tuple[tuple[str, str], ...] = ()    # (kind of ask, "environment.yml line 3: python=3.11") where no option
    #                                             says it

    def with_(self, **changes: object) -> StackRequest:
        """The same request with fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One thing the user asked that can be taken away or changed on its own. `flag` + `value` make the option."""

    kind: str                       # "torch", "cuda", "python", "platform", "flash-attn", "no-flash-attn", "driver",
    #                                 "no-driver", "gpu-arch", "glibc", "exclude-newer", "layout", "channel",
    #                                 "requirement", "conda-line"
    value: str                      # as the user wrote it: "2.3", "nvidia-nvjitlink-cu12<12.1"
    flag: str                       # "--torch", "--with", or a place such as "requirements.in line 3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One link of the chain that makes a request impossible. Without any one of them it would be possible."""

    kind: str                       # "asked", "matrix" (row, rule), "index" (metadata of a file), "channel" (record),
    #                                 "symbols" (what a proof did not find)
    text: str                       # plain words
    source: str                     # the option, the row's source, or "metadata of torch-2.3.1-….whl"
    asked: Asked | None = None      # for kind "asked"
    rows: tuple[object, ...] = ()   # for kind "matrix": the rows behind it


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A nearest change that was really solved."""

    change: str                     # "--cuda 12.1 in place of 13.0"
    command: str                    # the whole command line
    gives: str                      # "torch 2.3.1, CUDA 12.1, cuDNN 8.9.2.26, flash-attn 2.5.8"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPackage:
    """One pin. `files[0]` is the file an installer of the target picks; the rest are its siblings that fit too."""

    name: str                       # normalised
    version: str                    # public version of its metadata
    files: tuple[IndexFile, ...]    # each with sha256
    requires: tuple[str, ...]       # names it pulls in, for `# via`
    requested_by: tuple[str, ...]   # "--with transformers", "torch", sorted: who wants it
    requires_python: str | None = None
    direct: bool = False            # written by URL and hash (flash-attn release wheels)
    step: int = 1                   # 2: installed after the first, without build isolation
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLock:
    """The lock of one target; packages sorted by name."""

    target: Target
    build: TorchBuild
    packages: tuple[LockedPackage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSummary:
    """What the lock is, in a line. `driver_min`: floor of the CUDA major; None for CPU."""

    torch: str
    cuda: str
    cxx11_abi: bool | None
    cudnn: str | None
    nvjitlink: str | None
    nccl: str | None
    flash_attn: str | None
    driver_min: str | None
    pythons: tuple[str, ...]
    platforms: tuple[str, ...]
    nightly: str | None = None      # "2025-10-15": the day of torch, where it is a nightly


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The decision for all targets."""

    stack: StackSummary
    targets: tuple[TargetLock, ...]             # empty where no pip lockfile is asked for
    notes: tuple[str, ...]
    conda: tuple[CondaTarget, ...] = ()         # empty where no conda lockfile is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One thing that the matrix says about a combination."""

    about: str                      # key of the pair: "torch", "flash-attn", "driver"
    holds: bool | None              # True: fits; False: does not; None: the matrix cannot tell
    text: str                       # "flash-attn 2.6.3 has no prebuilt wheel for torch 2.9.1 …"
    source: str
    confidence: str                 # of the row: "certain", "high", "medium" or "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`matrix why`: whether a combination fits, from the matrix alone, and each reason."""

    fits: bool | None               # None: cannot tell
    combination: tuple[tuple[str, str], ...]    # the pairs as asked
    build: TorchBuild | None        # the torch build that was judged: the one that fits best, newest of equals
    points: tuple[Point, ...]       # in the order of the pairs


class NoConsistentStack(AnswerIsNo):
    """No stack meets the request. `causes` is minimal; `nearest` were solved with the same sources."""

    reference = "no-consistent-stack"

    def __init__(self, *, headline: str, causes: tuple[Cause, ...], nearest: tuple[Offer, ...] = ()) -> None:
        super().__init__(headline, causes, nearest)
        self.headline, self.causes, self.nearest = headline, causes, nearest

    def what(self) -> str:
        return self.headline


class WheelHashDisagreement(StackfixError):
    """The matrix and the release source state different hashes for one flash-attn wheel."""

    reference = "wheel-hash-disagreement"

    def __init__(self, *, file: str, matrix: str, source: str, row_source: str) -> None:
        super().__init__(file, matrix, source, row_source)
        self.file, self.matrix, self.source, self.row_source = file, matrix, source, row_source

    def what(self) -> str:
        return (
            f"{self.file}: the release source states sha256 {self.source}, the matrix {self.matrix}"
            f" (from {self.row_source})"
        )

    def next_step(self) -> str:
        return "the file was replaced or is not what it seems: use --no-flash-attn, or take another version"


class ProjectPage(Protocol):
    """One project on its index. Version strings are as the file names write them."""

    name: str

    def version_strings(self) -> tuple[str, ...]:
        """All distinct versions that have at least one wheel or sdist, in no order."""

    def files(self, version: str) -> tuple[IndexFile, ...]:
        """Files of one version string."""


class Index(Protocol):
    """What resolve needs of the package index. Blocking calls; prefetches return at once and never raise."""

    def prefetch_pages(self, names: tuple[str, ...]) -> None:
        """Start fetching these projects' pages."""

    def prefetch_metadata(self, files: tuple[IndexFile, ...]) -> None:
        """Start fetching these files' metadata."""

    def page(self, name: str) -> ProjectPage:
        """The page of `name`. Raises NoSuchProject (sources.errors) or Unreachable."""

    def metadata(self, file: IndexFile) -> CoreMetadata:
        """Metadata of a wheel, or static metadata of an sdist. Raises a StackfixError about that file."""


@runtime_checkable
class SelectivePage(Protocol):
    """A page that can leave files out before it reads what it says of them. One that cannot is only slower."""

    def files_named(self, version: str, accept: Callable[[str], bool]) -> tuple[IndexFile, ...]:
        """Files of one version string whose names are accepted."""


@runtime_checkable
class Building(Protocol):
    """An index that may build sdists whose metadata only a build can tell. One that does not has fewer answers."""

    def may_build(self, project: str) -> bool:
        """Whether the user allows the code of this project's sdists to run."""

    def built_metadata(self, file: IndexFile, python: str) -> CoreMetadata:
        """What a build of the sdist says for a Python minor. Raises a StackfixError about that file."""


@runtime_checkable
class Pinning(Protocol):
    """An index with projects that settings put on indexes of their own, where alone they are looked up."""

    def pinned_by(self, project: str) -> str | None:
        """What says so, in words for a message; None for any other project."""


@runtime_checkable
class Watchable(Protocol):
    """An index that tells of answers as they come. One that does not is only slower."""

    def watch(
        self, *, on_page: Callable[[ProjectPage], None] | None = None,
        on_metadata: Callable[[IndexFile, CoreMetadata], None] | None = None,
    ) -> None:
        """Call these, from any thread, as soon as an answer is there: a place to prefetch what follows."""


class Releases(Protocol):
    """What resolve needs of the flash-attn release source."""

    def assets(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]]:
        """Assets by version, asked all at once; a version without a release has (). Raises Unreachable."""

    def sha256(self, asset: ReleaseAsset) -> str:
        """The asset's sha256: stated, else of one whole download. Raises Unreachable."""
