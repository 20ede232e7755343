"""Whose a symbol is, and which std::string it speaks of, by its name alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stackfix.abi.flavour import string_flavour

# A component of a mangled name is its length and itself. `at` is so short that it must open a nested name: else
# `std::string::at` counts too. c10d is a namespace of its own.
TORCH_COMPONENT = re.compile(r"(?<!\d)(?:3c10|4c10d|5torch|6caffe2)|N[rVK]*[RO]?2at")
# In C++ but in no namespace of torch's: those of torch_python that are called THP..., and the profiler that is inside.
TORCH_GLOBAL = re.compile(r"_Z(?:N[rVK]*[RO]?)?(?:[1-9]\d?TH[PC][A-Z]|9libkineto|16getPyInterpreterv)")
TORCH_C_NAME = re.compile(r"(?:aoti_|torch_|THP|THC)")
# Names with a hash of the file or of the build differ in every build, whatever was built.
# So do nvcc's wrappers of extended lambdas (__nv_), which are numbered anew in each build.
NOISE = re.compile(r"_GLOBAL__N_|__device_stub__|tmpxft|_INTERNAL_|__nv_")
# What may stand before a name: vtable, typeinfo, thread-local wrapper, guard variable, thunk.
SPECIAL = r"(?:T[VTISHWC]|G[VR]|T[hv]n?\d+_(?:n?\d+_)?)?"
STANDARD = re.compile(
    rf"_Z{SPECIAL}(?:N[rVK]*[RO]?)?(?:S[tabsiod]|10__cxxabiv1|9__gnu_cxx)|_Z(?:nw|na|dl|da)|__cxa_|__gxx_|__dynamic_cast$",
)


# The first component of a name, where it is no part of the C++ library.
SCOPE = re.compile(rf"_Z{SPECIAL}Z*(?:N[rVK]*[RO]?)?(\d{{1,4}})")
TORCH_SCOPES = frozenset({"c10", "c10d", "at", "torch", "caffe2", "libkineto", "getPyInterpreter"})


def is_torch_symbol(name: str) -> bool:
    """Whether only torch can export it: torch's namespaces or C names, no noise of one build."""
    if name.startswith("_Z"):
        return (TORCH_COMPONENT.search(name) or TORCH_GLOBAL.match(name)) is not None and NOISE.search(name) is None
    return TORCH_C_NAME.match(name) is not None


def is_of_another(name: str) -> bool:
    """Whether a C++ name stands in a namespace that is neither torch's nor the C++ library's.

    `torchaudio::f(at::Tensor)` speaks of torch and may be exported by it only by chance.
    """
    if not (found := SCOPE.match(name)):
        return False
    scope = name[found.end():found.end() + int(found[1])]
    return scope not in TORCH_SCOPES and not scope.startswith(("THP", "THC", "__gnu_cxx", "__cxxabiv1"))


def is_standard_symbol(name: str) -> bool:
    """Whether the C++ library exports it, or torch where it was linked with a newer one."""
    return STANDARD.match(name) is not None and not is_torch_symbol(name)


def is_torch_library(soname: str) -> bool:
    """Whether a soname is one of torch's own libraries."""
    return re.match(r"lib(?:torch|c10|caffe2|shm)(?:_\w+)?\.so$", soname) is not None


def string_abi(names: Iterable[str]) -> str | None:
    """Which std::string mangled names speak of: "new" (__cxx11), "old", or "both"; None where they speak of none."""
    return string_flavour(names)
