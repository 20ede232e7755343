"""Why something failed, told from an error code of the driver or from the words of an error. Pure tables.

Codes: cuda.h, `CUresult`; 35 is the runtime's (`cudaErrorInsufficientDriver`), which shims of libcuda pass on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What an error comes to."""

    verdict: str        # of VERDICTS
    reason: str         # of REASONS
    because: str | None = None      # in our words, where the error's own do not say it


ERROR = Reason(verdict="fails", reason="error")
BUSY = "another process has the GPU, or its memory: nothing is said of this environment"
CODES = {
    2: Reason(verdict="cannot-tell", reason="error", because=BUSY),
    34: Reason(verdict="fails", reason="library-conflict",
               because="this is the stub of a CUDA toolkit, to link against, in front of the driver's own libcuda"),
    35: Reason(verdict="fails", reason="driver-too-old"),
    36: Reason(verdict="fails", reason="driver-too-old"),
    46: Reason(verdict="cannot-tell", reason="error", because=BUSY),
    100: Reason(verdict="cannot-tell", reason="no-gpu"),
    209: Reason(verdict="fails", reason="no-kernel-for-this-architecture"),
    221: Reason(verdict="fails", reason="library-conflict",
                because="libnvidia-ptxjitcompiler.so.1 of the driver is not found, or another is"),
    222: Reason(verdict="fails", reason="driver-too-old", because="the driver does not know the code's PTX version"),
    223: Reason(verdict="cannot-tell", reason="error", because="CUDA_DISABLE_PTX_JIT or CUDA_DISABLE_JIT is set"),
    802: Reason(verdict="fails", reason="error", because="the GPUs are not initialised; does the fabric manager run?"),
    803: Reason(verdict="fails", reason="library-conflict",
                because="libcuda is not of the same version as the loaded kernel module"),
    804: Reason(verdict="fails", reason="library-conflict",
                because="libcuda is that of a forward-compatibility package, which this GPU is not made for"),
    999: Reason(verdict="fails", reason="error",
                because="often a driver that lost its device: after suspend, or without /dev/nvidia-uvm"),
}
# The first that matches: what a driver lacks is often told in one sentence with a library's name.
TEXTS = (
    ("cannot-tell", "error", BUSY, r"out of memory|busy or unavailable|CUDA_ERROR_OUT_OF_MEMORY"),
    ("fails", "driver-too-old", None, (
        r"driver version is insufficient|driver on your system is too old|unsupported toolchain"
        r"|requires? (?:a )?newer (?:NVIDIA )?driver")),
    ("cannot-tell", "no-driver", None, r"Found no NVIDIA driver|libcuda\.so[.\d]*: cannot open shared object file"),
    ("cannot-tell", "no-gpu", None, r"No CUDA GPUs are available|no CUDA-capable device"),
    ("fails", "no-kernel-for-this-architecture", None, (
        r"no kernel image is available|only supports \w+ GPUs|supports? only .{0,40}(?:GPUs|architectures)"
        r"|ARCH_MISMATCH|NO_BINARY_FOR_GPU|not compiled with CUDA enabled|device kernel image is invalid")),
    ("fails", "library-conflict", None, (
        r"undefined symbol|symbol lookup error|cannot open shared object file|version [`'][^`']+' not found"
        r"|[Cc](?:ould not|annot) (?:load|find) (?:library|symbol)|Unable to load any of|cannot load symbol"
        r"|cuDNN version incompatibility|VERSION_MISMATCH|display driver / cuda driver combination"
        r"|forward compatibility was attempted|invalid ELF header|file too short|wrong ELF class|stub library"
        r"|torch does not use cuDNN|cannot allocate memory in static TLS block|cannot enable executable stack")),
)


def reason_of_code(code: int) -> Reason:
    """Of a call of the driver."""
    return CODES.get(code, ERROR)


def reason_of_texts(texts: Iterable[str]) -> Reason:
    """Of the first of the errors that says something that is known, in the order given."""
    for text in texts:
        for verdict, reason, because, pattern in TEXTS:
            if re.search(pattern, text):
                return Reason(verdict=verdict, reason=reason, because=because)
    return ERROR
