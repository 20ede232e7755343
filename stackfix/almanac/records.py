"""What is kept of one wheel: names only. One file per wheel in the store, by the wheel's hash."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestWheel:
    """One wheel that the almanac is made of (`matrices/abi/torch.toml`, `nvidia.toml`, `extensions.toml`)."""

    package: str                    # "nvidia-nvjitlink-cu12"
    version: str
    file: str                       # wheel file name
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedName:
    """A symbol that a library leaves to others."""

    name: str
    version: str | None             # symbol version
    file: str | None                # the library that the version was linked from
    weak: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryTables:
    """The dynamic symbols of one shared object of a wheel."""

    path: str                       # in the wheel: "torch/lib/libc10.so"
    soname: str | None
    needed: tuple[str, ...]
    exports: tuple[str, ...]        # defined, visible, global, weak or unique; sorted, each once, without versions
    wanted: tuple[WantedName, ...]  # sorted by name


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelTables:
    """All shared objects of one wheel that the almanac looks at."""

    wheel: ManifestWheel
    requires: tuple[str, ...]       # Requires-Dist lines
    libraries: tuple[LibraryTables, ...]    # by path
