"""Nine ways in which a good environment is broken in practice, each with its cure, and what a check must name.

What the loader says of each was seen in a child of the broken environment; the tests see it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.real_environments.workshop import Made, Workshop

TORCH_231 = ("torch==2.3.1", "numpy<2")
OLD_NVJITLINK, OWN_NVJITLINK = "nvidia-nvjitlink-cu12==12.0.140", "nvidia-nvjitlink-cu12==12.1.105"
NVJITLINK_FILE = "nvidia/nvjitlink/lib/libnvJitLink.so.12"
CUSPARSE_FILE = "nvidia/cusparse/lib/libcusparse.so.12"
BESIDE_CUSPARSE = "nvidia/cusparse/lib/libnvJitLink.so.12"
# What nvJitLink 12.1 brought and cuSPARSE 12.1 asks for; `ldd -r` must say the same.
NVJITLINK_12_1 = frozenset(f"__nvJitLink{name}_12_1" for name in (
    "AddData", "Complete", "Create", "Destroy", "GetErrorLog", "GetErrorLogSize", "GetLinkedCubin",
    "GetLinkedCubinSize"))
# What a CUDA 12.8 stack is made of (torch 2.8's own pins), and which of them lie where CUDA 13 wheels lie too.
CU12 = (
    "nvidia-cublas-cu12==12.8.4.1", "nvidia-cuda-cupti-cu12==12.8.90", "nvidia-cuda-nvrtc-cu12==12.8.93",
    "nvidia-cuda-runtime-cu12==12.8.90", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-cufft-cu12==11.3.3.83",
    "nvidia-cufile-cu12==1.13.1.3", "nvidia-curand-cu12==10.3.9.90", "nvidia-cusolver-cu12==11.7.3.90",
    "nvidia-cusparse-cu12==12.5.8.93", "nvidia-cusparselt-cu12==0.7.1", "nvidia-nccl-cu12==2.27.3",
    "nvidia-nvjitlink-cu12==12.8.93", "nvidia-nvtx-cu12==12.8.90",
)
TORCH_CU13 = ("torch==2.12.1", "numpy")
OWN_CU13 = ("nvidia-cudnn-cu13==9.20.0.48", "nvidia-cusparselt-cu13==0.8.1", "nvidia-nccl-cu13==2.29.7")

RUN_RECORD = ("_ZN3c1010Dispatcher17runRecordFunctionERN2at14RecordFunctionESt17reference_wrapperIKNS_14FunctionSchema"
              "EENS_11DispatchKeyE")

NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """What one finding must say. `path` is relative to the site folder, or absolute."""

    code: str
    path: str | None = None
    package: str | None = None
    requester: str | None = None    # relative to the site folder
    symbols: frozenset[str] | None = None   # all that it names; None: whatever it names
    among: frozenset[str] = frozenset()     # symbols that are among those it names
    evidence: str = ""              # how one of its lines begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One broken environment."""

    name: str
    base: tuple[str, ...]
    broken: Callable[[Workshop, Made], Mapping[str, str]]   # breaks it; variables of the shell
    cured: Callable[[Workshop, Made], None]                 # takes the fault out; the shell is clean again
    root: Root
    imports: tuple[str, ...] = ("torch",)
    error: str                      # what the child says, as a pattern
    beside: frozenset[str] = frozenset()    # codes above a note that are true of it too
    python: str = "3.11"

    def __str__(self) -> str:
        return self.name


def leave(workshop: Workshop, made: Made) -> None:
    """Nothing was changed on disk."""


def put(*pins: str) -> Callable[[Workshop, Made], Mapping[str, str]]:
    """Wheels are installed beside or over what is there."""
    def step(workshop: Workshop, made: Made) -> Mapping[str, str]:
        workshop.put(made, *pins)
        return NOTHING
    return step


def put_again(*pins: str) -> Callable[[Workshop, Made], None]:
    """The right wheels are installed anew."""
    def step(workshop: Workshop, made: Made) -> None:
        workshop.put_again(made, *pins)
    return step


def take(*projects: str) -> Callable[[Workshop, Made], None]:
    """Wheels are uninstalled."""
    def step(workshop: Workshop, made: Made) -> None:
        workshop.take(made, *projects)
    return step


def delete(file: str) -> Callable[[Workshop, Made], Mapping[str, str]]:
    """A file is gone. Its name is removed: the file itself is uv's."""
    def step(workshop: Workshop, made: Made) -> Mapping[str, str]:
        (made.site / file).unlink()
        return NOTHING
    return step


def old_nvjitlink_on_the_path(workshop: Workshop, made: Made) -> Mapping[str, str]:
    folder = workshop.unpack(OLD_NVJITLINK, "3.11") / "nvidia/nvjitlink/lib"
    return {"LD_LIBRARY_PATH": str(folder)}


def old_nvjitlink_beside(*, linked: bool) -> Callable[[Workshop, Made], Mapping[str, str]]:
    """A file, or a link out of the environment, that somebody puts beside cuSPARSE by hand."""
    def step(workshop: Workshop, made: Made) -> Mapping[str, str]:
        file = workshop.unpack(OLD_NVJITLINK, "3.11") / NVJITLINK_FILE
        path = made.site / BESIDE_CUSPARSE
        if linked:
            path.symlink_to(file)
        else:
            path.write_bytes(file.read_bytes())
        return NOTHING
    return step


def taken_away(file: str) -> Callable[[Workshop, Made], None]:
    def step(workshop: Workshop, made: Made) -> None:
        (made.site / file).unlink()
    return step


def two_stacks_and_one_taken_out(workshop: Workshop, made: Made) -> Mapping[str, str]:
    workshop.put(made, *CU12)
    workshop.take(made, *(pin.partition("==")[0] for pin in CU12))
    return NOTHING


SHADOWED = Scenario(
    name="old nvJitLink on LD_LIBRARY_PATH", base=TORCH_231, broken=old_nvjitlink_on_the_path, cured=leave,
    root=Root(code="SF101", path="nvidia-nvjitlink-cu12-12-0-140/" + NVJITLINK_FILE, requester=CUSPARSE_FILE,
              symbols=NVJITLINK_12_1),
    error=rf"{CUSPARSE_FILE}: undefined symbol: __nvJitLink\w+_12_1, version libnvJitLink\.so\.12")
TOO_OLD = Scenario(
    name="old nvJitLink installed", base=TORCH_231, broken=put(OLD_NVJITLINK), cured=put_again(OWN_NVJITLINK),
    root=Root(code="SF201", path=NVJITLINK_FILE, package="nvidia-nvjitlink-cu12 12.0.140", requester=CUSPARSE_FILE,
              symbols=NVJITLINK_12_1),
    error=rf"{CUSPARSE_FILE}: undefined symbol: __nvJitLink\w+_12_1, version libnvJitLink\.so\.12")
COPIED, LINKED = (Scenario(
    name=f"old nvJitLink {how} beside cuSPARSE", base=TORCH_231, broken=old_nvjitlink_beside(linked=how == "linked"),
    cured=taken_away(BESIDE_CUSPARSE),
    root=Root(code="SF101", path=BESIDE_CUSPARSE, requester=CUSPARSE_FILE, symbols=NVJITLINK_12_1),
    error=rf"{CUSPARSE_FILE}: undefined symbol: __nvJitLink\w+_12_1, version libnvJitLink\.so\.12")
    for how in ("copied", "linked"))
CUDNN_PART = "nvidia/cudnn/lib/libcudnn_cnn_infer.so.8"
PART_DELETED = Scenario(
    name="a cuDNN sublibrary deleted", base=TORCH_231, broken=delete(CUDNN_PART),
    cured=put_again("nvidia-cudnn-cu12==8.9.2.26"),
    root=Root(code="SF401", path=CUDNN_PART, package="nvidia-cudnn-cu12 8.9.2.26"), error="")
OTHER_CUDNN = Scenario(
    name="cuDNN 9 over cuDNN 8", base=TORCH_231, broken=put("nvidia-cudnn-cu12==9.1.0.70"),
    cured=put_again("nvidia-cudnn-cu12==8.9.2.26"),
    root=Root(code="SF401", package="nvidia-cudnn-cu12 9.1.0.70", requester="torch/lib/libtorch_python.so"),
    error=r"libcudnn\.so\.8: cannot open shared object file")
VLLM_FLASH_ATTN = Scenario(
    name="vllm-flash-attn built for another torch", base=TORCH_231, broken=put("vllm-flash-attn==2.5.6"),
    cured=take("vllm-flash-attn"), imports=("torch", "vllm_flash_attn_2_cuda"), beside=frozenset({"SF601"}),
    root=Root(code="SF501", path="vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so",
              package="vllm-flash-attn 2.5.6", among=frozenset({"_ZN3c104cuda9SetDeviceEi"}),
              evidence="its symbols are those of torch 2.1"),
    error=r"undefined symbol: _ZN3c104cuda9SetDeviceEi")
XFORMERS = Scenario(
    name="xformers built for another torch", base=("torch==2.4.0", "numpy<2"), broken=put("xformers==0.0.27"),
    cured=take("xformers"), beside=frozenset({"SF601"}), imports=("torch", "xformers._C"),
    root=Root(code="SF501", path="xformers/_C.so", package="xformers 0.0.27", among=frozenset({RUN_RECORD})),
    error=r"xformers/_C\.so: undefined symbol: _ZN3c1010Dispatcher17runRecordFunction")
HALF_UNINSTALLED = Scenario(
    name="CUDA 12 and 13 stacks, the former uninstalled", base=TORCH_CU13, broken=two_stacks_and_one_taken_out,
    cured=put_again(*OWN_CU13),
    root=Root(code="SF401", path="nvidia/cudnn/lib/libcudnn.so.9", package="nvidia-cudnn-cu13 9.20.0.48",
              requester="torch/lib/libtorch_python.so"),
    error=r"libcudnn\.so\.9: cannot open shared object file")

WITH_ONE_TORCH = (SHADOWED, COPIED, LINKED, TOO_OLD, PART_DELETED)
HEAVY = (OTHER_CUDNN, VLLM_FLASH_ATTN, XFORMERS, HALF_UNINSTALLED)
