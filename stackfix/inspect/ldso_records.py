"""How a machine's loader is configured, as plain records."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredFolder:
    """One folder of ld.so.conf, and the file that names it."""

    folder: str
    file: str               # "/etc/ld.so.conf.d/cuda.conf"
    line: int
