"""What errors print, and what other frameworks want. They stand apart from `Matrix`: only `explain` asks for them."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """What the releases `first` to `last` of a project want. Both ends belong to it, with all their patch releases."""

    project: str                    # "tensorflow"
    first: str                      # "2.18"
    last: str                       # "2.19"
    preloads_from: str | None       # release of the project that first loads the libraries of the NVIDIA wheels itself
    extra: str | None               # that brings the CUDA libraries: "and-cuda"
    cuda: int                       # CUDA major of the wheels on the package index
    cudnn: str | None               # "nvidia-cudnn-cu12==9.3.0.75"; None: it uses no cuDNN
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BitsandbytesLibraries:
    """CUDA minors that the wheels of bitsandbytes `first` to `last` have a library for."""

    first: str
    last: str
    cuda: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frameworks:
    """`matrices/frameworks.toml`."""

    frameworks: tuple[Framework, ...]
    bitsandbytes: tuple[BitsandbytesLibraries, ...]
