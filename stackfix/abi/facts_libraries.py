"""What sonames and symbol versions tell: CUDA, cuDNN, glibc, libstdc++. Over records of ELF files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stackfix.inspect.records import ElfObject

# Copies in wheels have a part of the file's hash behind their stem: libcudart-e409450e.so.11.0 by auditwheel,
# libcudart.782fcab0.so.11.0 by torchvision's builders
COPIED = re.compile(r"(?P<stem>lib[A-Za-z0-9_+-]+?)[-.][0-9a-f]{8}(?P<rest>\.so\b.*)")
# Libraries that count CUDA's majors. The others have numbers of their own, and some have one number for two majors:
# libcusparse.so.12 is in CUDA 12 and 13, libcusolver.so.11 in 11 and 12, libcurand.so.10 in all three.
COUNTS_CUDA = re.compile(r"lib(?:cudart|cublas|cublasLt|nvJitLink|nvfatbin|nvrtc|nvrtc-builtins|nvjpeg|cupti|npp[a-z]+)"
                         r"\.so\.(\d{1,3})(?:\.|$)")
OF_ONE_CUDA = {"libcusparse.so.11": 11, "libcufft.so.11": 12, "libcufft.so.12": 13, "libcufftw.so.11": 12,
               "libcufftw.so.12": 13, "libcusolver.so.12": 13, "libcusolverMg.so.12": 13}
CUDNN = re.compile(r"libcudnn(?:_[a-z_]+)?\.so\.(\d{1,3})(?:\.|$)")
NUMBERED = re.compile(r"(?P<node>[A-Z]+)_(?P<number>\d{1,4}(?:\.\d{1,4})+)")
RELATIVE = "GLIBC_ABI_DT_RELR"      # relocations in a packed form: glibc 2.36 names it so
RELATIVE_SINCE = "2.36"
STANDARD = ("GLIBCXX", "CXXABI")


def original(soname: str) -> str:
    """The soname before a copy of the library was renamed for a wheel."""
    match = COPIED.fullmatch(soname)
    return match["stem"] + match["rest"] if match else soname


def needed_of(files: Iterable[ElfObject]) -> tuple[str, ...]:
    """DT_NEEDED of all files, each once, with copies under their original name."""
    return tuple(dict.fromkeys(original(soname) for elf in files for soname in elf.needed))


def cuda_majors(sonames: Iterable[str]) -> tuple[int, ...]:
    """CUDA majors that these sonames tell for certain; a file that holds the runtime in itself has none to show."""
    found = set[int]()
    for soname in sonames:
        match = COUNTS_CUDA.match(soname)
        if match:
            found.add(int(match[1]))
        elif soname in OF_ONE_CUDA:
            found.add(OF_ONE_CUDA[soname])
    return tuple(sorted(found))


def cudnn_majors(sonames: Iterable[str]) -> tuple[int, ...]:
    """Majors of cuDNN, by its library and its sublibraries."""
    return tuple(sorted({int(match[1]) for match in map(CUDNN.match, sonames) if match}))


def glibc_floor(files: Sequence[ElfObject]) -> str | None:
    """The oldest glibc that has all versions that are needed: "2.27"."""
    numbers = newest_numbers(files).get("GLIBC", ())
    relative = any(need.version == RELATIVE for elf in files for need in elf.needed_versions)
    floor = max(numbers, as_numbers(RELATIVE_SINCE)) if relative else numbers
    return as_text(floor) if floor else None


def newest_standard(files: Sequence[ElfObject]) -> tuple[str, ...]:
    """The newest GLIBCXX and CXXABI that are needed."""
    newest = newest_numbers(files)
    return tuple(f"{node}_{as_text(newest[node])}" for node in STANDARD if node in newest)


def newest_numbers(files: Sequence[ElfObject]) -> dict[str, tuple[int, ...]]:
    """By name, the newest number of symbol versions that are needed. 2.9 is older than 2.27."""
    found: dict[str, tuple[int, ...]] = {}
    for elf in files:
        for need in elf.needed_versions:
            match = None if need.weak else NUMBERED.fullmatch(need.version)
            if match:
                found[match["node"]] = max(found.get(match["node"], ()), as_numbers(match["number"]))
    return found


def as_numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def as_text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


__all__ = ["cuda_majors", "cudnn_majors", "glibc_floor", "needed_of", "newest_standard", "original"]
