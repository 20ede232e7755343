"""What an environment is compared with, and how it deviates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One package of a lock."""

    name: str
    version: str | None             # None: only an address says it
    sha256: tuple[str, ...]         # of the files that may be installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One thing that is not as expected. `found` None: it is not there."""

    kind: str                       # "package", "version", "origin", "proof", "file", "resolution", "import"
    what: str                       # the package, the file, "libcusparse.so.12 needs libnvJitLink.so.12"
    expected: str
    found: str | None
    how: str | None = None          # of "resolution": the step of the search that gave it
