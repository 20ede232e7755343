"""Rows of the matrix. Versions are strings here (loading must be cheap); `query` compares them as PEP 440 versions.

Every row carries `source` (where the fact was read) and `confidence` ("certain", "high", "medium" or "low").
A row of low confidence never decides in silence: what it decides is named in the lock's notes.
"""

from __future__ import annotations

from stackfix.quick import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchBuild:
    """One torch wheel family: release x platform x CUDA variant."""

    version: str                    # "2.3.1"
    platform: str                   # conda subdir: "linux-64", "osx-arm64"
    cuda: str                       # "12.1", or "cpu"
    index: str                      # "default", or the path element of the torch index ("cu118")
    pythons: tuple[str, ...]        # ("3.8", "3.9"); free-threaded builds are left out
    cxx11_abi: bool | None          # std::string ABI; None where nobody read it, and off Linux
    gpu_archs: tuple[str, ...]      # ("sm_50", "sm_90"), PTX as "compute_90"; empty for CPU builds and unread ones
    requires: tuple[str, ...]       # PEP 508 lines as the wheel declares them (all of Requires-Dist without extras)
    toolkit: str | None             # CUDA toolkit release its libraries belong to: "12.1.1"; None for CPU
    cudnn: str | None               # "8.9.2.26"
    nccl: str | None
    glibc: str | None               # "2.17": floor from the platform tag; None off Linux
    macos: str | None = None        # "11.0": the oldest macOS that any of its wheels is for; None elsewhere
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitComponent:
    """One library wheel of one CUDA toolkit release."""

    toolkit: str                    # "12.1.1"
    package: str                    # "nvidia-nvjitlink-cu12"
    version: str                    # "12.1.105"
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """A package built against one torch and one CUDA: torchvision, torchaudio, xformers, vllm, triton."""

    package: str
    version: str
    torch: str | None               # specifier its metadata states for torch; None where it states nothing
    cuda: str | None                # CUDA its binaries were built for; None where unknown or not a CUDA build
    same_cuda: str                  # "minor", "major" or "any": how far its CUDA may differ from torch's
    requires: tuple[str, ...]       # other stack pins its metadata states (vllm: torchvision, xformers …), PEP 508
    cuda_on_windows: bool = False   # its Windows wheels on the default index are CUDA builds; else for the CPU, or none
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A need that no index metadata states: where `package` in `versions` is in a stack, `needs` must hold.

    It limits what is in the stack and adds nothing to it.
    """

    package: str                    # "nvidia-cusparse-cu12"
    versions: str                   # specifier: "==12.1.0.106"
    needs: str                      # PEP 508: "nvidia-nvjitlink-cu12>=12.1.55"
    why: str                        # "libcusparse.so.12 uses __nvJitLinkAddData_12_1, first in nvJitLink 12.1.55"
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What packages need of each other beside their metadata: a part of the matrix that is read alone, quickly."""

    companions: tuple[Companion, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashAttnRelease:
    """One flash-attn 2 release; `wheels` are its known or planned assets."""

    version: str                    # "2.5.8"; the tag is "v" + version
    requires: tuple[str, ...]       # install requirements without torch
    build_requires: tuple[str, ...]  # what must be installed before `--no-build-isolation`
    gpu_archs: tuple[str, ...]      # of the prebuilt wheels: ("sm_80", "sm_90")
    sdist: bool                     # an sdist is on the default index
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashAttnWheel:
    """One release asset. Its metadata version has no local part, its file name has."""

    file: str                       # "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
    version: str                    # "2.5.8"
    cuda_tag: str                   # "cu122", "cu12"
    torch_minor: str                # "2.3"
    cxx11_abi: bool
    python: str                     # "3.10"
    platform: str                   # "linux-64"
    sha256: str | None              # None: the name is known, its bytes are not
    basis: str                      # "hashed", "listed" (an inventory names it) or "planned" (the build workflow does)
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFamily:
    """Oldest driver that runs a CUDA major (minor-version compatibility)."""

    cuda_major: int
    floor: str                      # "525.60.13", of Linux
    windows: str | None = None      # "527.41", or a branch ("580"); None where nobody states it
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitDriver:
    """Driver shipped with one CUDA toolkit; not the minimum to run it, but needed to JIT its PTX."""

    cuda: str                       # "12.1"
    update: str                     # "GA", "Update 1"
    driver: str                     # "530.30.02", Linux
    source: str
    confidence: str


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
    windows: bool = True            # whether its Windows wheels are for that CUDA as well; else they are for the CPU
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BitsandbytesLibraries:
    """CUDA minors that the wheels of bitsandbytes `first` to `last` have a library for."""

    first: str
    last: str
    cuda: tuple[str, ...]
    windows: tuple[str, ...] = ()   # of the Windows wheels, where these have others
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frameworks:
    """`matrices/frameworks.toml`."""

    frameworks: tuple[Framework, ...]
    bitsandbytes: tuple[BitsandbytesLibraries, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """`matrices/sources.toml`: the base addresses, the only place that may name them."""

    torch_index: str                # base of the torch wheel index, without a trailing slash
    release_api: str                # flash-attn repository in the release API: + "/releases/tags/v2.5.8"
    release_download: str           # + "/v2.5.8/<file name, '+' as %2B>"
    conda_channels: tuple[tuple[str, str], ...]  # (name, address)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchIndexWheel:
    """One file of the torch wheel index. They stand apart from `Matrix`: a file name alone does not tell the bytes."""

    file: str                       # "torch-2.3.1+cu118-cp311-cp311-linux_x86_64.whl"
    project: str
    version: str                    # as the file name has it: "2.3.1+cu118"
    path: str                       # of the index: "cu118"; "root" for what lies above all paths
    sha256: str
    requires: tuple[str, ...] | None  # as the wheel declares them; None where nobody read them
    source: str
    confidence: str                 # "high" where independent places state the hash, else "medium"


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaName:
    """What one package of conda channels is to pip."""

    package: str                    # "libcublas"
    projects: tuple[str, ...]       # normalised: ("nvidia-cublas-cu11", "nvidia-cublas-cu12", "nvidia-cublas")
    versions: str                   # "same", or "longer": one part more than the project's ("2.20.5.1" of 2.20.5)
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaNames:
    """`matrices/conda_names.toml`: packages whose name is not that of their project. They stand apart from `Matrix`."""

    stack: tuple[CondaName, ...]    # of a GPU stack; of several projects the one of its CUDA major is meant
    other: tuple[CondaName, ...]    # of another name than their project
    same: tuple[CondaName, ...]     # of the same name, up to dashes
    none: tuple[str, ...]           # packages that hold no metadata of the project whose name they bear


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One place where the package index and the matrix disagree."""

    project: str
    version: str                    # of the project
    kind: str                       # "new-release", "gone", "yanked", "pythons", "platform", "glibc", "macos",
    #                                 "requires", "torch", "components", "sdist" or "unreadable"
    known: str | None               # what the matrix says; None: nothing
    found: str | None               # what the index says; None: nothing
    file: str | None                # the file of the index that says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All rows. `directory` names where they came from (for messages), `digest` the sha256 over the files' bytes."""

    torch: tuple[TorchBuild, ...]
    components: tuple[ToolkitComponent, ...]
    companions: tuple[Companion, ...]
    rules: tuple[Rule, ...]
    flash_attn: tuple[FlashAttnRelease, ...]
    flash_attn_wheels: tuple[FlashAttnWheel, ...]
    driver_families: tuple[DriverFamily, ...]
    toolkit_drivers: tuple[ToolkitDriver, ...]
    closures: tuple[tuple[str, tuple[str, ...]], ...]  # project -> projects its closure usually holds: only a hint of
    #                                                    what to fetch first, never a decision
    sources: Sources
    frameworks: Frameworks
    directory: str
    digest: str
