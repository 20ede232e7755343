"""What channels have, what is asked of them, and what was decided, as plain records.

Addresses in these records never hold a credential. Platforms are conda subdirs ("linux-64"); versions are text as the
channel states it.
"""

from __future__ import annotations

from typing import Protocol

from stackfix.quick import dataclass
from stackfix.resolve.records import LockedPackage, Target

LAYOUTS = ("native", "mixed", "wheels")     # in the order in which `auto` tries them
PRIORITIES = ("strict", "disabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One channel, in order of priority where several are named."""

    name: str                       # as people write it: "conda-forge"; the address for one without a name
    url: str                        # base address, without credentials and without a slash at its end


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaRecord:
    """One package file of a channel, as its repodata states it."""

    name: str                       # normalised: "pytorch"
    version: str
    build: str                      # build string: "py3.11_cuda12.1_cudnn8.9.2_0"
    build_number: int
    subdir: str                     # "linux-64" or "noarch"
    channel: str                    # base address of its channel
    file_name: str
    url: str
    md5: str | None
    sha256: str | None
    depends: tuple[str, ...]        # MatchSpecs, in the record's order
    constrains: tuple[str, ...]
    noarch: str | None = None       # "python" or "generic"
    size: int | None = None         # bytes
    timestamp: int | None = None    # milliseconds since 1970
    license: str | None = None
    license_family: str | None = None
    features: str | None = None
    track_features: tuple[str, ...] = ()
    python_site_packages_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualPackage:
    """What the machine that the lock is for offers, and how it is known."""

    name: str                       # "__cuda"
    version: str                    # "12.2"
    build: str = "0"                # "x86_64_v3" of __archspec
    origin: str = ""                # "--driver 535.104", "CONDA_OVERRIDE_CUDA", "taken as --cuda 12.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One MatchSpec that is asked of the channels, with the place that it comes from."""

    text: str                       # "pytorch ==2.3.1 py3.11_cuda12.1_*"
    origin: str                     # "--torch 2.3", "requirements.in line 3", "layout mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The records that come with stackfix, used where the channels could not be read."""

    date: str                       # ISO 8601 date on which they were read
    digest: str                     # sha256 over its files, the first 12 digits
    holes: tuple[str, ...]          # what is known to be missing, a sentence each
    reason: str                     # why it was used: "--offline", "conda-forge cannot be reached: …"


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaAsk:
    """One solve."""

    platform: str                   # "linux-64"; noarch comes with it
    channels: tuple[Channel, ...]   # in order of priority
    specs: tuple[Spec, ...]
    constraints: tuple[Spec, ...] = ()          # only limit
    virtual: tuple[VirtualPackage, ...] = ()
    priority: str = "strict"        # one of PRIORITIES
    locked: tuple[tuple[str, str], ...] = ()    # (address, name) in the existing lock, preferred while they fit
    exclude_newer: str | None = None            # ISO 8601


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaCause:
    """One link of the chain for which a solve has no answer."""

    text: str                       # "pytorch 2.6.0 needs cudnn >=9.3, <10.0a0"
    spec: Spec | None = None        # what was asked, where the link is that
    source: str = ""                # file name of the record, or the channel


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaConflict:
    """Why a solve has no answer, shortest chain first. `raw` is the solver's own text, without local paths."""

    causes: tuple[CondaCause, ...]
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaSolved:
    """The answer of one solve, sorted by name."""

    records: tuple[CondaRecord, ...]


class Channels(Protocol):
    """What a decision needs of conda channels. Blocking calls; a memory behind them asks nothing twice."""

    channels: tuple[Channel, ...]   # the user's, or the default ones
    explicit: bool                  # whether the user named them
    priority: str | None            # the user's own: "strict", "flexible" or "disabled"; None: not set

    @property
    def snapshot(self) -> Snapshot | None:
        """The bundled records, once they had to be used for anything; else None."""

    def named(self, name: str) -> Channel:
        """The channel of this name, by the user's aliases and settings. Raises BadInput for none."""

    def records(self, channels: tuple[Channel, ...], platform: str, name: str) -> tuple[CondaRecord, ...]:
        """All files of one package in these channels for the platform and noarch. Raises Unreachable."""

    def solve(self, ask: CondaAsk) -> CondaSolved | CondaConflict:
        """One solve. Raises Unreachable, or BadInput for a spec that is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaTorch:
    """A torch build of a channel, as its record tells."""

    record: CondaRecord
    cuda: str                       # "12.1" as it was built with, or "cpu"
    cudnn: str | None               # "8.9.2" of the build string, or the lower bound of its dependency ("8.8.0.121")
    cudnn_linked: bool              # linked in: no cudnn package goes with it
    cxx11_abi: bool                 # std::string ABI: new on conda-forge, old in the pytorch channel
    python: str                     # "3.11"
    source: str                     # how that is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """One thing on which the two sides differ, and why that is so."""

    about: str                      # "cuda", "cudnn", "nvjitlink", "flash-attn", "torch", "python" or a package's name
    pip: str | None                 # what the pip side has; None: nothing
    conda: str | None
    reason: str
    source: str
    breaks: bool                    # whether it is against the rule of docs/consistency.md; else it is only told


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaTarget:
    """The conda lock of one target: packages of channels, and the pip entries beside them."""

    target: Target
    layout: str                     # one of LAYOUTS
    channels: tuple[Channel, ...]   # in order of priority
    priority: str
    virtual: tuple[VirtualPackage, ...]
    specs: tuple[Spec, ...]         # what was asked of the channels: also the dependencies of environment.yml
    torch: CondaTorch | None        # None in layout wheels
    records: tuple[CondaRecord, ...]            # sorted by name
    pip: tuple[LockedPackage, ...]              # sorted by name; step 2 among them
    departures: tuple[Departure, ...]
    snapshot: Snapshot | None = None            # where the records come from the bundled ones
    guesses: tuple[tuple[str, str], ...] = ()   # (package, project) that only their names say to be the same
    passed: tuple[tuple[str, str], ...] = ()    # (layout, why it does not hold) of those that were tried before
    also_cuda: tuple[str, ...] = ()             # for which CUDA the channels have a torch that is taken for the CPU
