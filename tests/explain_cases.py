"""Public reports by their error lines alone: what an explanation must say of each, as it stands and altered.

`{names}` in lines and expectations are values: those of the report, or drawn. What is expected of drawn values is told
by explain_oracle, which reads the almanac's and the matrix's files by itself.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests import explain_oracle as oracle

Values = Mapping[str, str]
Draw = Callable[[random.Random], dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One report. Expectations are regular expressions over the causes that are shown, any case of letters."""

    name: str
    source: str                             # where it was reported
    text: str                               # its decisive lines
    values: Values = field(default_factory=dict)        # of the report
    draw: Draw | None = None                # others; None: nothing in the lines can be otherwise
    told: Callable[[Values], dict[str, str]] = lambda values: {}    # what the oracle adds
    cause: tuple[str, ...] = ()             # in summaries, reasons, culprits
    cure: tuple[str, ...] = ()              # in cures, avoiding and confirming commands
    never: tuple[str, ...] = ()             # in no cure
    follows: tuple[str, ...] = ()           # values of the report that nothing may still name once they are drawn anew


def site(chance: random.Random) -> str:
    """A site folder of somebody's."""
    root = chance.choice([
        "/home/ana/miniconda3/envs/train", "/opt/conda", "/home/eva/.venv", "/srv/venv", "/home/li/.pyenv/v/3.12.4",
        "/mnt/data/micromamba/envs/x-1", "/usr/local", "/data/env_2",
    ])
    return f"{root}/lib/python3.{chance.randint(9, 13)}/site-packages"


def folder(chance: random.Random) -> str:
    """A folder of a CUDA that is not the environment's."""
    return chance.choice(["/usr/local/cuda-12.0/lib64", "/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda/12.4/lib64",
                          "/apps/cuda/11.6.2/lib64", "/usr/lib/x86_64-linux-gnu", "/opt/sw/cudnn/8.4/lib"])


def tag(chance: random.Random) -> str:
    return f"cpython-3{chance.randint(9, 13)}-x86_64-linux-gnu"


# --- a CUDA library and an older nvJitLink ---

def nvjitlink(chance: random.Random) -> dict[str, str]:
    names = oracle.late_functions("nvidia-nvjitlink-cu12", "libnvJitLink.so.12", r"__nvJitLink\w+_12_\d+")
    symbol = chance.choice(names)
    return {"symbol": symbol, "bare": symbol.removeprefix("_"), "site": site(chance), "torch": "",
            "isolated": chance.choice(["/x/pip-build-env-k3x_9a/overlay", "/home/eva/.cache/uv/builds-v0/.tmpQ7zk1c"])}


def nvjitlink_told(values: Values) -> dict[str, str]:
    name = "_" + values["bare"]
    first = oracle.first_with("nvidia-nvjitlink-cu12", "libnvJitLink.so.12", name)
    assert first is not None
    return {"floor": first}


COMPLETE = {"symbol": "__nvJitLinkComplete_12_4", "bare": "_nvJitLinkComplete_12_4", "site": "...",
            "isolated": "/scratch/pip-build-env-abc/overlay"}
NVJITLINK = (
    Case(
        name="nvjitlink-in-conda-base", source="pytorch/pytorch#134929",
        text=("ImportError: {site}/nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: {symbol}, "
              "version libnvJitLink.so.12"),
        values=COMPLETE, draw=nvjitlink, told=nvjitlink_told,
        cause=("{symbol}", "older|before", r"libnvJitLink\.so\.12"),
        cure=("LD_LIBRARY_PATH", "nvidia-nvjitlink-cu12>={floor}"), follows=("symbol",),
    ),
    Case(
        name="nvjitlink-in-toolkit", source="pytorch/pytorch#140797",
        text=("ImportError: {site}/nvidia/cusparse/lib/libcusparse.so.12: symbol {symbol}, version "
              "libnvJitLink.so.12 not defined in file libnvJitLink.so.12 with link time reference"),
        values=COMPLETE, draw=nvjitlink, told=nvjitlink_told,
        cause=("{symbol}", r"libnvJitLink\.so\.12"),
        cure=("LD_LIBRARY_PATH", "nvidia-nvjitlink-cu12>={floor}", r"torch ?(>=|2\.\d)"), follows=("symbol",),
    ),
    Case(
        name="nvjitlink-kept-by-pip", source="NVIDIA/cuml#7794",
        text="undefined symbol: {bare} (needed by libcusparse.so.12)",
        values={"symbol": "__nvJitLinkGetErrorLogSize_12_9", "bare": "_nvJitLinkGetErrorLogSize_12_9"},
        draw=nvjitlink, told=nvjitlink_told,
        cause=("nvJitLink", "older|too old"), cure=("nvidia-nvjitlink-cu12>={floor}",), follows=("bare",),
    ),
    Case(
        name="nvjitlink-hidden-by-jax", source="jax-ml/jax#30050",
        text="Unable to load {library}. Is it installed?",
        values={"library": "cuSPARSE"}, draw=lambda chance: {"library": chance.choice(["cuSOLVER", "cuFFT", "cuBLAS"])},
        cause=("{library}", "LD_LIBRARY_PATH"), cure=("LD_LIBRARY_PATH",), follows=("library",),
    ),
    Case(
        name="nvjitlink-in-build-isolation", source="LMCache/LMCache#180",
        text=("ImportError: "
              "{isolated}/lib/python3.10/site-packages/nvidia/cusparse/lib/libcusparse.so.12: undefined"
              " symbol: {symbol}, version libnvJitLink.so.12"),
        values=COMPLETE, draw=nvjitlink, told=nvjitlink_told,
        cause=("{symbol}", "isolated|build environment"), cure=("LD_LIBRARY_PATH", "--no-build-isolation"),
        follows=("symbol",),
    ),
)


# --- cuDNN ---

def sublibrary(chance: random.Random) -> dict[str, str]:
    major, stems = chance.choice([("8", ["cnn_infer", "cnn_train", "ops_infer", "ops_train", "adv_infer"]),
                                  ("9", ["ops", "cnn", "adv", "graph"])])
    return {"library": f"libcudnn_{chance.choice(stems)}.so.{major}"}


def cudnn_releases(chance: random.Random) -> dict[str, str]:
    """A cuDNN that a torch requires, and a newer one of the same major."""
    pins = sorted({oracle.cudnn_pin(f"2.{minor}.0") for minor in range(4, 11)}, key=oracle.number)
    found, compiled = sorted(chance.sample(pins, 2), key=oracle.number)
    return {"found": ".".join(found.split(".")[:3]), "compiled": ".".join(compiled.split(".")[:3])}


CUDNN = (
    Case(
        name="cudnn-on-path-only", source="SYSTRAN/faster-whisper#297",
        text=("Could not load library {library}. Error: {library}: cannot open shared object file: No "
              "such file or directory\n"
              "Please make sure {library} is in your library path!"),
        values={"library": "libcudnn_ops_infer.so.8"}, draw=sublibrary,
        cause=("{library}",), cure=("LD_LIBRARY_PATH", "nvidia/cudnn/lib", "before|restart|new process"),
        follows=("library",),
    ),
    Case(
        name="cudnn-parts-of-two-releases", source="pytorch/pytorch#185512",
        text="RuntimeError: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH (first F.conv2d)",
        cause=("cuDNN", "releases|versions"), cure=("remove|uninstall|take|off",), never=("copy the", "cp "),
    ),
    Case(
        name="cudnn-not-reached-by-onnxruntime", source="microsoft/onnxruntime#25609",
        text=("[ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_cuda.so "
              "with error: {library}: cannot open shared object file: No such file or directory\n"
              "Failed to create CUDAExecutionProvider. Require cuDNN {cudnn}.* and CUDA {cuda}.*."),
        values={"library": "libcudnn.so.9", "cuda": "12", "cudnn": "9"},
        draw=lambda chance: {"library": chance.choice(["libcublasLt.so.12", "libcufft.so.11", "libcurand.so.10"]),
                             "cuda": "12", "cudnn": "9"},
        cause=("{library}",), cure=(r"onnxruntime-gpu\[cuda,cudnn\]|preload_dlls", "LD_LIBRARY_PATH|import torch"),
        follows=("library",),
    ),
    Case(
        name="cudnn-of-torch-under-tensorflow", source="tensorflow/tensorflow#60913",
        text=("E cuda_dnn.cc:522] Loaded runtime CuDNN library: {found} but source was compiled with: "
              "{compiled}.  CuDNN library needs to have matching major version and equal or higher "
              "minor version."),
        values={"found": "9.1.0", "compiled": "9.3.0"}, draw=cudnn_releases,
        cause=("{found}", "{compiled}"), cure=("cudnn", "{compiled}"), follows=("found", "compiled"),
    ),
    Case(
        name="cudnn-half-from-a-module", source="ultralytics/ultralytics#10203",
        text=("Could not load library {library}. Error: {folder}/{library}: symbol {symbol}, version "
              "libcudnn_cnn_infer.so.8 not defined in file libcudnn_cnn_infer.so.8 with link time "
              "reference"),
        values={"library": "libcudnn_cnn_train.so.8", "folder": "/usr/local/cuda/11.8.0/lib64",
                "symbol": "_ZN10cask_cudnn2kr8isAmpereEPNS0_5spa_tERKi"},
        draw=lambda chance: {"library": chance.choice(["libcudnn_ops_train.so.8", "libcudnn_adv_train.so.8"]),
                             "folder": folder(chance), "symbol": "_ZTIN10cask_cudnn14BaseKernelInfoE"},
        cause=("{folder}", "cuDNN"), cure=("{folder}", "LD_LIBRARY_PATH"), follows=("folder", "library"),
    ),
)


# --- extensions for another torch ---

def torch_symbol(chance: random.Random) -> dict[str, str]:
    """A C++ name that torch has in some minors only, and a module that asks for it."""
    names = [name for name, (minors, _) in oracle.torch_names().items()
             if re.fullmatch(r"_ZN(?:3c10|2at)\w+", name) and minors != "1.13-"]
    return {"symbol": chance.choice(names), "tag": tag(chance), "site": site(chance)}


def torch_told(values: Values) -> dict[str, str]:
    minors = oracle.torch_names()[values["symbol"]][0]
    first, _, last = minors.partition("-")
    return {"first": first, "last": last or (first if "-" not in minors else oracle.torch_minors()[-1])}


STRINGS = {"old": "Ss", "new": "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"}


def ends(abi: str) -> tuple[str, str]:
    """The oldest and the newest minor with the std::string of cxx11abiTRUE or FALSE."""
    minors = oracle.of_abi("new" if abi == "TRUE" else "old")
    return minors[0], minors[-1]


def pair(chance: random.Random) -> dict[str, str]:
    """A torch, and a torchvision that is another's."""
    pinned = {wanted for wanted, _ in oracle.companions("torchvision").values()}
    known = [version for version in oracle.torch_rows() if f"=={version}" in pinned
             and oracle.number(version) >= (2, 1)
             and version not in {"2.4.0", "2.5.1"}]             # which a drawn torchvision wants, and the report names
    torch, other = chance.sample(known, 2)
    return {"torch": torch, "torchvision": oracle.companion_of("torchvision", other)}


def xformers(chance: random.Random) -> dict[str, str]:
    torch, digits = chance.choice([("2.3.0", "121"), ("2.2.1", "118"), ("2.4.0", "124"), ("2.5.1", "124")])
    return {"torch": torch, "digits": digits, "cuda": f"{digits[:2]}0{digits[2]}",
            "found": f"{torch}+cpu" if chance.random() < 0.7 else torch.replace(".0", ".1") + "+cpu"}


EXTENSIONS = (
    Case(
        name="flash-attn-of-older-torch", source="Dao-AILab/flash-attention#931",
        text="ImportError: {site}flash_attn_2_cuda.{tag}.so: undefined symbol: {symbol}",
        values={"symbol": "_ZN3c104cuda9SetDeviceEi", "tag": "cpython-310-x86_64-linux-gnu", "site": ""},
        draw=lambda chance: torch_symbol(chance) | {"site": site(chance) + "/"}, told=torch_told,
        cause=("flash.attn", "another torch|built for torch|other torch", "{last}"),
        cure=("flash-attn", "--no-build-isolation|stackfix lock"), follows=("symbol",),
    ),
    Case(
        name="vllm-beside-another-torch", source="vllm-project/vllm#3147",
        text=("ImportError: vllm/_C.cpython-310-x86_64-linux-gnu.so: undefined symbol: "
              "_ZN2at4_ops15to_dtype_layout4callERKNS_6TensorEN3c108optionalINS5_10ScalarTypeEEE..."),
        cause=("vllm", "torch"), cure=("torch", "vllm"),
    ),
    Case(
        name="vllm-beside-another-torch-whole", source="vllm-project/vllm#3147",
        text="ImportError: {site}/vllm/_C.{tag}.so: undefined symbol: {symbol}",
        values={"symbol": "_ZN3c104cuda9SetDeviceEi", "tag": "cpython-310-x86_64-linux-gnu", "site": "/site-packages"},
        draw=torch_symbol, told=torch_told, cause=("vllm", "{first}", "{last}"), cure=("torch", "vllm"),
        follows=("symbol",),
    ),
    Case(
        name="flash-attn-with-the-other-string", source="Dao-AILab/flash-attention#931, with another symbol",
        text=("ImportError: {site}/flash_attn_2_cuda.{tag}.so: undefined symbol:"
              " _ZN3c105ErrorC2ENS_14SourceLocationE{string}"),
        values={"string": STRINGS["new"], "abi": "TRUE", "tag": "cpython-310-x86_64-linux-gnu", "site": "/packages"},
        draw=lambda chance: {"string": STRINGS["old"], "abi": "FALSE", "tag": tag(chance), "site": site(chance)},
        told=lambda values: dict(zip(("first", "last"), ends(values["abi"]), strict=True)),
        cause=("cxx11abi{abi}", "{first}", "{last}"), cure=("flash-attn", "--no-build-isolation"), follows=("abi",),
    ),
    Case(
        name="torchvision-without-operators", source="vladmandic/sdnext#3531",
        text="RuntimeError: operator torchvision::{operator} does not exist",
        values={"operator": "nms"}, draw=lambda chance: {"operator": chance.choice(["roi_align", "deform_conv2d"])},
        cause=("torchvision", "torch"), cure=("torchvision", "stackfix lock|pip install"),
    ),
    Case(
        name="torchvision-without-operators-listed", source="vladmandic/sdnext#3531",
        text=("torch                     {torch}\n"
              "torchvision               {torchvision}\n"
              "\n"
              "RuntimeError: operator torchvision::nms does not exist"),
        values={"torch": "2.4.0", "torchvision": "0.20.1"}, draw=pair,
        told=lambda values: {"fitting": oracle.companion_of("torchvision", values["torch"])},
        cause=("{torch}",), cure=("{fitting}",), follows=("torch", "torchvision"),
    ),
    Case(
        name="xformers-beside-cpu-torch", source="mistralai/mistral-inference#59",
        text=("WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for: "
              "PyTorch {torch}+cu{digits} with CUDA {cuda} (you have {found})"),
        values={"torch": "2.1.0", "digits": "121", "cuda": "1201", "found": "2.1.0+cpu"}, draw=xformers,
        cause=("xformers", r"{found}", r"{torch}\+cu{digits}"), cure=(r"torch=={torch}\+cu{digits}|--torch {torch}",),
        follows=("torch",),
    ),
    Case(
        name="flash-attn-then-another-torch", source="Zymrael/savanna#5",
        text=("ImportError: flash_attn_2_cuda...so: undefined symbol (c10), after setup finished "
              "without error"),
        cause=("flash.attn", "torch"), cure=("flash-attn", "torch"),
    ),
)


# --- libraries that are missing, or of another release ---

def nccl(chance: random.Random) -> dict[str, str]:
    names = oracle.late_functions("nvidia-nccl-cu12", "libnccl.so.2", r"nccl[A-Z]\w+")
    return {"symbol": chance.choice(names), "site": site(chance)}


def cupti(chance: random.Random) -> dict[str, str]:
    names = oracle.late_functions("nvidia-cuda-cupti-cu12", "libcupti.so.12", r"cupti[A-Z]\w+")
    return {"symbol": chance.choice(names), "site": site(chance)}


def floor(package: str, soname: str) -> Callable[[Values], dict[str, str]]:
    return lambda values: {"floor": oracle.first_with(package, soname, values["symbol"]) or ""}


LIBRARIES = (
    Case(
        name="nccl-too-old", source="vllm-project/vllm#4195",
        text="ImportError: libtorch_cuda.so: undefined symbol: {symbol}", values={"symbol": "ncclCommRegister"},
        draw=nccl, told=floor("nvidia-nccl-cu12", "libnccl.so.2"),
        cause=("{symbol}", "NCCL", "{floor}"), cure=("nvidia-nccl-cu12", "{floor}"), follows=("symbol",),
    ),
    Case(
        name="cudart-of-another-major", source="vllm-project/vllm#1718",
        text=("ImportError: libcudart.so.{major}: cannot open shared object file: No such file or "
              "directory"),
        values={"major": "12"}, draw=lambda chance: {"major": chance.choice(["13", "11.0"])},
        told=lambda values: {"cuda": values["major"].partition(".")[0]},
        cause=(r"libcudart\.so\.{major}", "CUDA {cuda}"), cure=("torch", "nvidia-cuda-runtime"),
        never=("ln -s", "symlink"),
    ),
    Case(
        name="cupti-of-the-toolkit", source="pytorch/pytorch#157381",
        text=("ImportError: {site}/torch/lib/libtorch_cpu.so: undefined symbol: {symbol}, version "
              "libcupti.so.12"),
        values={"symbol": "cuptiActivityEnableDriverApi", "site": "..."}, draw=cupti,
        told=floor("nvidia-cuda-cupti-cu12", "libcupti.so.12"),
        cause=("{symbol}", "CUPTI|libcupti", "{floor}"), cure=("nvidia-cuda-cupti-cu12", "{floor}|LD_PRELOAD"),
        follows=("symbol",),
    ),
    Case(
        name="cusparselt-in-another-folder", source="pytorch/pytorch#144433",
        text="ImportError: {library}: cannot open shared object file: No such file or directory",
        values={"library": "libcusparseLt.so.0", "package": "nvidia-cusparselt-cu12"},
        draw=lambda chance: dict(zip(("library", "package"), chance.choice([
            ("libnccl.so.2", "nvidia-nccl-cu12"), ("libcupti.so.12", "nvidia-cuda-cupti-cu12"),
            ("libnvJitLink.so.12", "nvidia-nvjitlink-cu12"), ("libcublasLt.so.12", "nvidia-cublas-cu12"),
        ]), strict=True)),
        cause=("{library}",), cure=("{package}",), follows=("library", "package"),
    ),
)


# --- driver and GPU ---

def found_driver(chance: random.Random) -> dict[str, str]:
    major, minor = chance.choice([(11, 2), (11, 7), (12, 2), (12, 4), (10, 2)])
    return {"found": f"{major}0{minor}0", "cuda": f"{major}.{minor}"}


def gpu(chance: random.Random) -> dict[str, str]:
    arch = chance.choice([("50", "5.0"), ("61", "6.1"), ("60", "6.0"), ("37", "3.7"), ("120", "12.0")])
    return {"sm": arch[0], "capability": arch[1]}


DRIVER = (
    Case(
        name="driver-too-old", source="lllyasviel/Fooocus#1313",
        text="RuntimeError: The NVIDIA driver on your system is too old (found version {found}).",
        values={"found": "11040", "cuda": "11.4"}, draw=found_driver,
        told=lambda values: {"floor": oracle.driver_floor(int(values["cuda"].split(".")[0]) + 1)},
        cause=("{cuda}", "driver"), cure=("{floor}",), follows=("cuda", "found"),
    ),
    Case(
        name="gpu-dropped", source="bnsreenu/digitalsreeni-image-annotator#57",
        text=("torch.AcceleratorError: CUDA error: no kernel image is available for execution on the "
              "device"),
        cause=("GPU",), cure=("torch", "lock|--gpu-arch|build"),
    ),
    Case(
        name="gpu-dropped-named", source="bnsreenu/digitalsreeni-image-annotator#57",
        text=("NVIDIA GeForce GTX with CUDA capability sm_{sm} is not compatible with the current "
              "PyTorch installation.\n"
              "The current PyTorch install supports CUDA capabilities sm_70 sm_75 sm_80 sm_86 sm_90.\n"
              "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the "
              "device"),
        values={"sm": "61", "capability": "6.1"}, draw=gpu, cause=("sm_{sm}|{capability}",), cure=("torch|lock",),
        follows=("sm",),
    ),
    Case(
        name="compat-on-geforce", source="NVIDIA/nvidia-docker#1515",
        text="Error 804: forward compatibility was attempted on non supported HW",
        cause=("compat", "libcuda"), cure=("cuda-compat|compat",),
    ),
    Case(
        name="libcuda-on-wsl", source="facebookresearch/nougat#105",
        text=("Could not load library {library}. Error: libcuda.so: cannot open shared object file: No "
              "such file or directory"),
        values={"library": "libcudnn_cnn_infer.so.8"}, draw=sublibrary,
        cause=(r"libcuda\.so",), cure=("/usr/lib/wsl/lib", "LD_LIBRARY_PATH"), follows=("library",),
    ),
    Case(
        name="flash-attn-without-gpu-code", source="ostris/ai-toolkit#475",
        text=("CUDA error ({site}/flash_fwd_launch_template.h:{line}): no kernel image is available for"
              " execution on the device"),
        values={"line": "184", "site": "..."},
        draw=lambda chance: {"line": str(chance.randint(20, 400)), "site": site(chance)},
        cause=("flash.attn", "GPU"), cure=("FLASH_ATTN_CUDA_ARCHS|FLASH_ATTENTION_FORCE_BUILD", "--no-build-isolation"),
        never=("TORCH_CUDA_ARCH_LIST=",), follows=("site",),
    ),
)


# --- resolvers and lockfiles ---

def pins(chance: random.Random) -> dict[str, str]:
    torch = chance.choice(["2.2.2", "2.3.1", "2.4.1", "2.6.0"])
    return {"torch": torch, "pin": oracle.cudnn_pin(torch), "have": chance.choice(["9.8.0.87", "9.10.2.21"])}


def plus(chance: random.Random) -> dict[str, str]:
    return {"torch": chance.choice(["2.5.1", "2.6.0", "2.7.1"]), "local": chance.choice(["cpu", "cu121", "cu126"])}


RESOLUTION = (
    Case(
        name="local-version-without-wheel", source="astral-sh/uv#9209",
        text=("error: Distribution `torch=={torch}+{local} @ registry` can't be installed because it "
              "doesn't have a source distribution or wheel for the current platform"),
        values={"torch": "2.4.1", "local": "cpu"}, draw=plus,
        cause=(r"{torch}\+{local}", "platform"), cure=("marker|platform",), follows=("torch",),
    ),
    Case(
        name="cudnn-pins-of-torch-and-jax", source="apple/axlearn#858",
        text=("torch {torch} requires nvidia-cudnn-cu12=={pin}, but you have nvidia-cudnn-cu12 {have} "
              "which is incompatible"),
        values={"torch": "2.1.1", "pin": "8.9.2.26", "have": "9.5.1.17"}, draw=pins,
        cause=("nvidia-cudnn-cu12", "{pin}", "{have}"), cure=("torch",), follows=("pin", "have"),
    ),
    Case(
        name="cudnn-8-beside-9", source="apple/axlearn#858",
        text="ImportError: libcudnn.so.{major}: cannot open shared object file",
        values={"major": "8"}, draw=lambda chance: {"major": "9"},
        cause=(r"libcudnn\.so\.{major}", "cuDNN {major}"), cure=("cudnn",),
    ),
    Case(
        name="jax-dnn-not-initialised", source="apple/axlearn#858",
        text="FAILED_PRECONDITION: DNN library initialization failed (with the older cuDNN)",
        cause=("cuDNN",), cure=("cudnn",),
    ),
    Case(
        name="virtual-package-of-pixi", source="prefix-dev/pixi#3949",
        text=("failed to solve the conda requirements: {name} * cuda cannot be installed because there "
              "are no viable options: {name} xxx would require __cuda *, for which no candidates were "
              "found."),
        values={"name": "jaxlib"}, draw=lambda chance: {"name": chance.choice(["pytorch", "libtorch"])},
        cause=("__cuda", "{name}"), cure=("system-requirements", "cuda"), follows=("name",),
    ),
    Case(
        name="helper-from-the-torch-index", source="astral-sh/uv#11532",
        text=("error: Distribution `{name}=={version} @ registry` can't be installed because it doesn't"
              " have a source distribution or wheel for the current platform (only wheels with cp313)"),
        values={"name": "markupsafe", "version": "3.0.2"},
        draw=lambda chance: {"name": chance.choice(["pillow", "jinja2", "numpy"]),
                             "version": chance.choice(["2.1.5", "11.0"])},
        cause=("{name}", "index"), cure=("explicit",), follows=("name", "version"),
    ),
    Case(
        name="virtual-packages-of-conda-lock", source="conda/conda-lock#101",
        text=("solve fails on the mac (no candidate for __glibc / __cuda constraints) while the same "
              "file locks on linux"),
        cause=("__cuda|__glibc",), cure=("CONDA_OVERRIDE|virtual",),
    ),
    Case(
        name="local-version-in-uv-lock", source="astral-sh/uv#12282",
        text=("error: Failed to parse `uv.lock`\n"
              "The entry for package `flash-attn` v{version} has wheel "
              "`flash_attn-{version}+cu12torch{torch}cxx11abifalse-cp310-cp310-linux_x86_64.whl` ..."),
        values={"version": "2.7.3", "torch": "2.5"},
        draw=lambda chance: {"version": chance.choice(["2.7.4", "2.8.3"]), "torch": chance.choice(["2.6", "2.4"])},
        cause=("flash.attn", r"{version}\+cu12torch{torch}|local version"), cure=("uv",), follows=("version",),
    ),
)


# --- plumbing ---

def standard(chance: random.Random) -> dict[str, str]:
    return {"version": f"3.4.{chance.choice([21, 22, 26, 29, 32])}", "by": site(chance) + "/some/_ext.so",
            "library": chance.choice(["/usr/lib64/libstdc++.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6"])}


PLUMBING = (
    Case(
        name="one-file-of-two-wheels", source="NVIDIA/cutlass#3259",
        text=("kernel JIT compilation fails or not, from run to run of the same install command (two "
              "wheels write libcute_dsl_runtime.so with different content)"),
        cause=("nvidia-cutlass-dsl",), cure=("--force-reinstall", "--no-deps"),
    ),
    Case(
        name="libstdcxx-link-lost", source="pytorch/pytorch#157709",
        text="ImportError: {library}: version `GLIBCXX_{version}' not found (required by {by})",
        values={"version": "3.4.30", "library": "/lib/x86_64-linux-gnu/libstdc++.so.6", "by": ".../libtorch_python.so"},
        draw=standard, cause=("GLIBCXX_{version}", "{library}"), cure=("libstdcxx",), follows=("version",),
    ),
    Case(
        name="cudnn-of-conda-first", source="tensorflow/docs#2251",
        text="Loaded runtime CuDNN library: {found} but source was compiled with: {compiled}.",
        values={"found": "8.1.0", "compiled": "8.6.0"},
        draw=lambda chance: {"found": chance.choice(["8.0.5", "8.2.1"]), "compiled": chance.choice(["8.7.0", "8.9.2"])},
        cause=("{found}", "{compiled}"), cure=("LD_LIBRARY_PATH|remove", "cudnn"), follows=("found", "compiled"),
    ),
    Case(
        name="pip-over-conda", source="hpcaitech/ColossalAI#2048",
        text=("after pip install of a package that requires torch: torch of another version and CUDA is"
              " imported; extensions break"),
        cause=("torch", "conda|two|another"), cure=("pip uninstall|constraint|lock",),
    ),
    Case(
        name="libstdcxx-of-the-system-first", source="pytorch/pytorch#115138",
        text="ImportError: {library}: version `GLIBCXX_{version}' not found (required by {by})",
        values={"version": "3.4.20", "library": "/lib64/libstdc++.so.6", "by": ".../_youtokentome_cython...so"},
        draw=standard, cause=("GLIBCXX_{version}", "first|before|system"), cure=("libstdcxx", "LD_LIBRARY_PATH|import"),
        follows=("version", "library"),
    ),
)

CASES = (*NVJITLINK, *CUDNN, *EXTENSIONS, *LIBRARIES, *DRIVER, *RESOLUTION, *PLUMBING)
