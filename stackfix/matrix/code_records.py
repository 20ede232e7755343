"""What errors print. It stands apart from `Matrix`: only `explain` asks for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaError:
    """One error of the CUDA runtime, the driver, or both: the numbers are the same."""

    number: int
    runtime: str | None             # "cudaErrorNoDevice"
    driver: str | None              # "CUDA_ERROR_NO_DEVICE"
    text: str | None                # "no CUDA-capable device is detected"


@dataclass(frozen=True, slots=True, kw_only=True)
class CudnnStatus:
    """One status of cuDNN; its numbers differ between the majors."""

    major: int                      # of cuDNN
    number: int
    name: str                       # "SUBLIBRARY_VERSION_MISMATCH", without CUDNN_STATUS_
    since: str | None               # the minor of cuDNN 9 that brought it; None: all have it


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A GPU architecture, and the CUDA toolkits that compile for it."""

    arch: str                       # "sm_120"
    family: str                     # "Blackwell"
    first_cuda: str | None          # None: older than what the matrix knows
    last_cuda: str | None           # None: the newest toolkit still does


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """`matrices/codes.toml`."""

    cuda: tuple[CudaError, ...]
    cudnn: tuple[CudnnStatus, ...]
    ptx: tuple[tuple[str, str], ...]        # (PTX ISA, first CUDA with it): ("8.4", "12.4"), oldest first
    architectures: tuple[Architecture, ...]
    gpu_names: tuple[tuple[str, str], ...]      # words of product names, "#" a digit: ("RTX 50##", "sm_120")
