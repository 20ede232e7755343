"""Which wheels of NVIDIA the almanac reads, and which of their libraries."""

from __future__ import annotations

from collections.abc import Callable

from stackfix.errors import BadInput

# Packages of one library: cu11 and cu12 in their names, CUDA 13 without a suffix but for what has a release of its own.
FAMILIES: dict[str, tuple[str, ...]] = {
    "nvjitlink": ("-cu12", ""),
    "cusparse": ("-cu11", "-cu12", ""),
    "cusolver": ("-cu11", "-cu12", ""),
    "cublas": ("-cu11", "-cu12", ""),
    "cuda-runtime": ("-cu11", "-cu12", ""),
    "cuda-cupti": ("-cu11", "-cu12", ""),
    "nccl": ("-cu11", "-cu12", "-cu13"),
    "cusparselt": ("-cu12", "-cu13"),
    "cudnn": ("-cu11", "-cu12", "-cu13"),
}
PACKAGES = tuple(f"nvidia-{family}{suffix}" for family, suffixes in FAMILIES.items() for suffix in suffixes)

# What others are linked against. Not libnvperf, libpcsamplingutil and libcheckpoint beside CUPTI: nobody is.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "nvjitlink": ("libnvJitLink",),
    "cusparse": ("libcusparse",),
    "cusolver": ("libcusolver", "libcusolverMg"),
    "cublas": ("libcublas", "libcublasLt", "libnvblas"),
    "cuda-runtime": ("libcudart",),
    "cuda-cupti": ("libcupti",),
    "nccl": ("libnccl",),
    "cusparselt": ("libcusparseLt",),
}
# cuDNN opens these itself: half a gigabyte of kernels, and nothing that another wheel could ask for
INSIDE_CUDNN = ("libcudnn_engines", "libcudnn_heuristic", "libcudnn_ext")


def family_of(package: str) -> str:
    """`cublas` of nvidia-cublas-cu12. Raises BadInput for a package that the almanac does not read."""
    if package not in PACKAGES:
        raise BadInput(package, "is no package that the almanac of NVIDIA's libraries reads",
                       "It reads " + ", ".join(PACKAGES) + ".")
    return package.removeprefix("nvidia-").removesuffix("-cu11").removesuffix("-cu12").removesuffix("-cu13")


def wanted_of(package: str) -> Callable[[str], bool]:
    """Whether a path in a wheel of the package is a library that is read."""
    family = family_of(package)

    def wanted(path: str) -> bool:
        folder, _, file = path.rpartition("/")
        stem = file.partition(".so")[0]
        if folder.endswith("/stubs"):
            return False
        if family == "cudnn":
            return stem.startswith("libcudnn") and not stem.startswith(INSIDE_CUDNN)
        return stem in LIBRARIES[family]

    return wanted


def is_placeholder(version: str) -> bool:
    """Whether a version only holds a name in the index: 0.0.1.dev5, 0.0.0a0 have no library."""
    return version.startswith("0.0.")
