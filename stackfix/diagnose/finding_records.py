"""What a diagnosis says. Frozen; `inspect.plain` writes them as JSON, and a plan of repairs is made from them alone."""

from __future__ import annotations

from dataclasses import dataclass

from stackfix.inspect.machine_records import Undecided

SEVERITIES = ("error", "warning", "note")   # will fail or corrupt; may; worth knowing
LEVELS = ("driver", "cuda", "cudnn", "torch", "extensions", "environment")     # the pyramid, from its base


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """What has to change: a file or folder, an installed package, or a variable. At least one is given."""

    path: str | None = None
    package: str | None = None      # "nvidia-nvjitlink-cu12 12.0.140"
    variable: str | None = None     # "LD_LIBRARY_PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Who needs it."""

    path: str | None = None
    package: str | None = None      # "nvidia-cusparse-cu12 12.1.0.106"


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """A package that would cure a finding, in one release or any of a range; one of the cures is the command for it."""

    package: str                    # "nvidia-nvjitlink-cu12"
    manager: str                    # "pip" (any installer of wheels), "conda"
    specifier: str                  # what the finding asks for: ">=12.4.99"
    version: str | None             # the release that is named; None: any that the range admits
    breaks: tuple[str, ...] = ()    # requirements of installed packages that it would not meet


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFor:
    """What its symbols tell of the torch that a compiled package was built for. The verdict is "can load", no more."""

    torch: tuple[str, ...]          # minors that export all that it asks for, oldest first; (): none that was read
    string_abi: str | None          # its std::string: "old", "new", "both"; None where no name speaks of it
    index: tuple[str, ...]          # those of `torch` whose wheel on the index has this std::string
    unknown: tuple[str, ...]        # symbols of torch's that no release which was read exports


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, or worth knowing, with its root: symptoms of one root are one finding."""

    code: str                       # "SF101", see codes.py and docs/findings.md
    kind: str                       # "shadowed-library"
    severity: str
    level: str                      # of the pyramid
    summary: str                    # one sentence: what
    why: str                        # one or two sentences: how it comes
    culprit: Culprit
    requester: Requester | None = None
    symbols: tuple[str, ...] = ()   # that the requester does not find, as the loader names them; all of them
    evidence: tuple[str, ...] = ()  # observed facts, one a line: who was found where, via which step, what was tried
    error: str | None = None        # the line that the user sees, in the loader's own words
    winner: str | None = None       # of a shadow: the file that the loader takes
    loser: str | None = None        # and the one that it should
    cure: tuple[str, ...] = ()      # what to do, by hand: commands where one line does it, best first
    repairable: bool = False        # by changes inside the prefix
    why_not: str | None = None      # where not repairable
    installs: tuple[Install, ...] = ()  # each would do by itself, best first
    built_for: BuiltFor | None = None   # of the extension that the finding is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One storey of the pyramid."""

    name: str
    verdict: str                    # "ok", "note", "warning", "error", "cannot-tell" or "absent"
    text: str                       # "torch 2.3.1 for CUDA 12.1", "no NVIDIA driver on this machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All that is said of one environment."""

    levels: tuple[Level, ...]
    findings: tuple[Finding, ...]   # worst first
    undecided: tuple[Undecided, ...]    # what this machine cannot decide, with the reason; no finding
