"""Whose a symbol is, by its name alone: torch's, the C++ library's, or that of a family of libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stackfix.matrix.library_records import LibraryFamily

LIBSTDCXX = "libstdc++.so.6"
# A component of a mangled name is its length and itself. `at` is so short that it must open a nested name: else
# `std::string::at` counts too. c10d is a namespace of its own.
TORCH_COMPONENT = re.compile(r"(?<!\d)(?:3c10|4c10d|5torch|6caffe2)|N[rVK]*[RO]?2at")
TORCH_C_NAME = re.compile(r"(?:aoti_|torch_|THP|THC)")
# Names with a hash differ in every build, whatever was built.
NOISE = re.compile(r"_GLOBAL__N_|__device_stub__|tmpxft|_INTERNAL_")
STANDARD = re.compile(r"_Z(?:T[VTIS])?(?:N[VK]*)?(?:S[tabsiod]|10__cxxabiv1)|_Z(?:nw|na|dl|da)|__cxa_|__gxx_")


def is_torch_symbol(name: str) -> bool:
    """Whether only torch can export it: torch's namespaces or C names, no noise of one build."""
    if name.startswith("_Z"):
        return TORCH_COMPONENT.search(name) is not None and NOISE.search(name) is None
    return TORCH_C_NAME.match(name) is not None


def is_standard_symbol(name: str) -> bool:
    """Whether the C++ library exports it, or torch where it was linked with a newer one."""
    return STANDARD.match(name) is not None and not is_torch_symbol(name)


def is_torch_library(soname: str) -> bool:
    """Whether a soname is one of torch's own libraries."""
    return re.match(r"lib(?:torch|c10|caffe2|shm)(?:_\w+)?\.so$", soname) is not None


def family_of_symbol(name: str, families: Iterable[LibraryFamily]) -> LibraryFamily | None:
    """The family that has the longest of the prefixes that fit; a prefix ends where another word begins."""
    found: tuple[int, LibraryFamily | None] = (0, None)
    for family in families:
        for prefix in family.symbols:
            if len(prefix) > found[0] and name.startswith(prefix) and not name[len(prefix):len(prefix) + 1].islower():
                found = len(prefix), family
    return found[1]
