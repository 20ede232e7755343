"""Which functions of NVIDIA's libraries compiled files call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from stackfix.abi.facts_libraries import original
from stackfix.abi.records import CompiledFile

# Sonames as the symbol versions of these libraries have them
NVIDIA = re.compile(r"lib(?:cudart|cublas|cublasLt|nvblas|cudnn\w*|cufftw?|cufile\w*|cupti|curand|cusolver(?:Mg)?"
                    r"|cusparse|cusparseLt|nccl|nvJitLink|nvfatbin|nvrtc|nvjpeg|npp[a-z]+|cutensor\w*"
                    r"|nvshmem_host|cuda|nvidia-ml)\.so(?:\.\d+)*$")
# These have no symbol versions: a name is theirs by its prefix, where a library of this stem is in DT_NEEDED
UNVERSIONED = (
    (re.compile(r"p?nccl[A-Z]"), "libnccl.so"),
    (re.compile(r"cusparseLt[A-Z]"), "libcusparseLt.so"),
    (re.compile(r"nvshmem[a-z_]"), "libnvshmem_host.so"),
    (re.compile(r"nvml[A-Z]"), "libnvidia-ml.so"),
    (re.compile(r"cu(?:tensor)(?:Mg|Mp)?[A-Z]"), "libcutensor.so"),
    (re.compile(r"cu[A-Z]"), "libcuda.so"),
)


def calls_of(files: Iterable[CompiledFile]) -> tuple[tuple[str, str], ...]:
    """(soname, name) of each function, sorted. Copies of libraries that were renamed go under their original soname.

    What a file of the same package supplies is no call; a weak one does without. Functions that are looked up at run
    time (dlsym, cudaGetDriverEntryPoint) leave no trace.
    """
    return tuple(sorted({call for file in files for call in calls_in(file)}))


def calls_in(file: CompiledFile) -> Iterator[tuple[str, str]]:
    """The calls of one file."""
    needed = tuple(original(soname) for soname in file.elf.needed)
    for symbol in file.undefined:
        if symbol.weak:
            continue
        if symbol.file is not None:
            soname = original(symbol.file)
            if NVIDIA.match(soname):
                yield soname, symbol.name
        elif symbol.version is None and symbol.name[:2] in {"cu", "nc", "nv", "pn"}:
            stem = next((stem for prefix, stem in UNVERSIONED if prefix.match(symbol.name)), None)
            found = next((soname for soname in needed if stem and soname.startswith(stem)), None)
            if found:
                yield found, symbol.name


__all__ = ["calls_of"]
