"""What systems have of glibc and of libstdc++."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One release of a Linux distribution, and the newest symbol versions of its run-time libraries."""

    name: str                       # "Ubuntu"
    release: str                    # "22.04"
    glibc: str                      # "2.35"
    glibcxx: str                    # "3.4.30", of libstdc++
    cxxabi: str                     # "1.3.13", of the same
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GccVersion:
    """The GCC that brought a symbol version of libstdc++."""

    version: str                    # "GLIBCXX_3.4.30"
    gcc: str                        # "12.1.0"
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Functions that a library of conda's had, and has no longer."""

    package: str                    # "mkl"
    name: str                       # "MKL"
    until: str                      # "2024.0", the newest release that has them
    gone: str                       # "2024.1"
    functions: tuple[str, ...]
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """`matrices/runtime.toml`."""

    distributions: tuple[Distribution, ...]     # of one name oldest first
    gcc: tuple[GccVersion, ...]
    dropped: tuple[Dropped, ...]
