"""What a proof takes for granted of a machine, and the environments in which it tries a stack."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedLibrary:
    """Libraries of the system that a target is taken to have."""

    sonames: tuple[str, ...]
    part: str                       # "glibc", as people say it
    versions: tuple[str, ...]       # prefixes of symbol versions that are compared: "GLIBCXX"; (): none is
    offers: tuple[str, ...]         # patterns of symbols without a version
    open: bool                      # which symbols it has is not known
    optional: bool                  # not every machine has it
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeLevel:
    """Newest symbol versions of the run-time libraries of systems with one glibc."""

    glibc: str                      # "2.28"
    versions: tuple[str, ...]       # "GLIBCXX_3.4.25"
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """One environment that a stack may meet. None and () where it has nothing of the kind."""

    name: str                       # "older-toolkit"
    title: str
    brings: tuple[str, ...]         # "toolkit", or projects without their CUDA suffix: "nvidia-cudnn"
    release: str | None             # "older minor", "newer minor", "older major"
    folder: str | None              # where that lies
    variable: str | None            # that names the folder: "LD_LIBRARY_PATH", "LD_PRELOAD"
    preload: str | None             # pattern of the file names in it that LD_PRELOAD names
    without: tuple[str, ...]        # sonames of the system that are not there
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofTable:
    """`matrices/proof.toml`."""

    libraries: tuple[AssumedLibrary, ...]
    levels: tuple[RuntimeLevel, ...]            # oldest glibc first
    surroundings: tuple[Surroundings, ...]
