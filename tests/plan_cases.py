"""Machines of public reports, each with what its right answer amounts to: a fact of the report, not of this code.

`right` is the kind of action that an expert would take; "advice" where the answer lies outside of the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stackfix.diagnose.situation import View
from stackfix.matrix.libraries import load_libraries
from stackfix.matrix.library_records import Libraries
from tests import test_cases_k1 as k1
from tests import test_cases_k2 as k2
from tests import test_cases_k3 as k3
from tests import test_cases_k4 as k4
from tests import test_cases_k5 as k5
from tests import test_cases_k7 as k7
from tests.case_worlds import (
    C10_OPTIONAL,
    CHECK_NEW,
    CHECK_OLD,
    STATE,
    STD_OPTIONAL,
    TAG,
    build_of,
    install_nvidia,
    install_torch,
    libraries_of,
    linked,
    nvjitlink,
    set_device,
    torch_libraries,
)
from tests.diagnose_world import World, lib
from tests.plan_world import Shelf


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A report."""

    source: str                     # repository and number of the report
    name: str
    make: Callable[[Path], World]
    right: str
    codes: tuple[str, ...]          # what the plan cures; for advice, what is left
    shelf: Callable[[Shelf], Shelf] = lambda shelf: shelf
    says: tuple[str, ...] = ()      # parts of commands that are advised
    libraries: Callable[[], Libraries] = load_libraries     # what packages are known to open
    seen: Callable[[World], View] | None = None             # as if it is the running machine

    def view(self, world: World) -> View:
        return self.seen(world) if self.seen is not None else world.view(self.libraries())


def kaggle(folder: Path) -> World:
    world = install_torch(World(folder, conda=True, prefix="/opt/conda"), "2.5.1")
    world.conda("libnvjitlink", "12.1.105", {f"lib/{k1.SONAME}": nvjitlink("12.1.105")})
    return world.environ(LD_LIBRARY_PATH="/opt/conda/lib:/usr/local/lib")


def cuml(folder: Path) -> World:
    world = install_nvidia(World(folder), "nvidia-cusparse-cu12", "12.5.10.65")
    world.wheel("cuml-cu12", "26.4.0", linked({f"cuml/internals/base.{TAG}": lib(
        needs=("libcusparse.so.12",), wants=("cusparseCreate@libcusparse.so.12",),
        runpath="$ORIGIN/../../nvidia/cusparse/lib")}), requires=("nvidia-cusparse-cu12",))
    return install_nvidia(world, "nvidia-nvjitlink-cu12", "12.8.93")


def hpc_sdk(folder: Path) -> World:
    sdk = "/opt/nvidia/hpc_sdk/Linux_x86_64/24.5"
    return k1.jax(folder, sdk, "12.4", "12.4.127").environ(
        LD_LIBRARY_PATH=f"{sdk}/cuda/12.4/lib64:{sdk}/comm_libs/nccl/lib", LOADEDMODULES="nvhpc/24.5")


def isolated_build(folder: Path) -> World:
    world = install_torch(World(folder, prefix="/home/me/.cache/uv/builds-v0/.tmpQkJ3aX"), "2.5.1")
    world.library(f"/apps/cuda/12.2.2/lib64/{k1.SONAME}", nvjitlink("12.2.140"))
    return world.environ(LD_LIBRARY_PATH="/apps/cuda/12.2.2/lib64", LOADEDMODULES="cuda/12.2.2")


def little_cudnn(folder: Path) -> World:
    return k2.onnxruntime(folder, {name: k2.WHEELS[name] for name in k2.ONLY_CUDNN})


def all_of_onnxruntime(shelf: Shelf) -> Shelf:
    for name, version in k2.WHEELS.items():
        shelf.put(name, version)
    return shelf


def flash_attn(folder: Path) -> World:
    world = install_torch(World(folder), "2.3.0").wheel("einops", "0.8.0")
    return k3.install(world, "flash-attn", "2.5.7", {k3.FLASH: k3.extension(set_device("2.2.2"), CHECK_OLD)},
                      "torch", "einops")


def fitting_flash_attn(shelf: Shelf) -> Shelf:
    return shelf.put("flash-attn", "2.5.8", linked({k3.FLASH: k3.extension(set_device("2.3.0"), CHECK_OLD)}),
                     ("torch", "einops"))


def vision(folder: Path) -> World:
    return k3.install_vision(install_torch(World(folder), "2.4.0"), "0.20.1", "2.5.1", k3.SET_TRACING)


def fitting_vision(shelf: Shelf) -> Shelf:
    return shelf.put("torchvision", "0.19.0", linked({
        k3.VISION: k3.extension(CHECK_OLD), "torchvision/image.so": k3.extension(needs=("libc10.so", "libtorch.so"))}),
        ("numpy", "torch==2.4.0", "pillow!=8.3.*,>=5.3.0"))


def cpu_torch(folder: Path) -> World:
    world = k3.install_cpu_torch(World(folder), "2.1.0+cpu")
    return k3.install(world, "xformers", "0.0.22.post7", {
        k3.XFORMERS: k3.extension(CHECK_OLD, set_device("2.1.0"))}, "torch==2.1.0")


def torch_for_cuda(shelf: Shelf) -> Shelf:
    """What a torch of the default index has and requires."""
    made = install_torch(World(shelf.folder / "elsewhere"), "2.1.0").view(load_libraries())
    for each in made.environment.distributions:
        if each.name.startswith("nvidia-"):
            shelf.put(each.name, each.version, requires=each.requires)
        elif each.name != "torch":
            shelf.put(each.name, each.version, linked({"triton/_C/libtriton.so": lib()})
                      if each.name == "triton" else {}, each.requires)
    return shelf.put("torch", "2.1.0", linked(torch_libraries("2.1.0")), build_of("2.1.0").requires)


AUDIO = ("torchaudio/lib/_torchaudio.so", "torchaudio/lib/libtorchaudio.so")


def late_torchaudio(folder: Path) -> World:
    return k3.install(install_torch(World(folder), "2.6.0"), "torchaudio", "2.11.0", {
        name: k3.extension("aoti_torch_abi_version", needs=("libc10.so", "libtorch.so")) for name in AUDIO})


def moved_torch(folder: Path) -> World:
    world = install_torch(World(folder), "2.7.0").wheel("einops", "0.8.0")
    return k3.install(world, "flash-attn", "2.7.4.post1", {k3.FLASH: k3.extension(set_device("2.6.0"), CHECK_OLD)},
                      "torch", "einops")


def no_cupti(folder: Path) -> World:
    path = "/usr/local/cuda-12.4/extras/CUPTI/lib64"
    return k4.with_toolkit(folder, "12.4.127", wheel="").environ(LD_LIBRARY_PATH=path)


def candidate_cupti(folder: Path) -> World:
    folders = ("cudnn", "cuda_nvrtc", "cuda_runtime", "cublas", "cufft", "curand", "cusolver", "cusparse", "cusparselt",
               "nccl", "nvtx", "nvjitlink", "cufile")
    rpath = ":".join((*(f"$ORIGIN/../../nvidia/{each}/lib" for each in folders), "$ORIGIN"))
    path = "/usr/local/cuda-12.4/extras/CUPTI/lib64"
    return k4.with_toolkit(folder, "12.4.127", rpath=rpath).environ(LD_LIBRARY_PATH=path)


def wsl(folder: Path) -> World:
    return k5.on_wsl(install_torch(World(folder), "2.1.2"))


def lost_link(folder: Path) -> World:
    world = k7.with_own_libstdcxx(folder, "libstdcxx", "15.1.0", "libstdc++.so.6.0.34", "GLIBCXX_3.4.30")
    return world.remove(f"{world.prefix}/lib/{k7.GLIBCXX}")


def guide(folder: Path) -> World:
    world = k7.guided(folder, k7.GUIDE)
    return world.environ(LD_LIBRARY_PATH=f"{world.prefix}/lib/:{world.inside(k7.CUDNN)}")


def whole_cutlass(shelf: Shelf) -> Shelf:
    names = tuple(f"cute_cu13_{number}" for number in range(30))
    return shelf.put(f"{k7.MAIN}-libs-cu13", "4.5.1", linked({
        k7.RUNTIME: lib(offers=names), k7.IR: lib(offers=names)}), (f"{k7.MAIN}-libs-base==4.5.1",))


def colab(folder: Path) -> World:
    """torch for CUDA 11 in its own wheel, and vllm for CUDA 12."""
    world = install_nvidia(k4.install_cu118(World(folder), "2.0.1"), "nvidia-cuda-runtime-cu11", "11.8.89")
    return k4.install_vllm(world, "0.2.2", "12", "torch>=2.1.0")


def earlier_vllm(shelf: Shelf) -> Shelf:
    return shelf.put("vllm", "0.2.1.post1", linked({f"vllm/{name}.{TAG}": lib(
        needs=("libc10.so", "libcudart.so.11.0"), wants=(STATE,), runpath="$ORIGIN/../nvidia/cuda_runtime/lib")
        for name in k4.OPS}), ("torch==2.0.1",))


def ubuntu(world: World) -> World:
    return world.write("/etc/os-release", "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=22.04\n")


def system_part(folder: Path) -> World:
    return ubuntu(k2.system_part(install_torch(World(folder), "2.12.1"), "9.21.1"))


def driver_470(folder: Path) -> World:
    return ubuntu(k5.put_gpu(install_torch(World(folder), "2.1.0"), "NVIDIA GeForce RTX 3050", "470.86"))


def pascal(folder: Path) -> World:
    world = k5.put_gpu(install_torch(World(folder), "2.8.0"), "NVIDIA GeForce GTX 1050", "550.54.15")
    return k5.put_code(world, k5.TORCH_CUDA, *k5.CODE_28)


def blackwell(folder: Path) -> World:
    world = k5.with_flash_attn(folder, "NVIDIA GeForce RTX 5090", "80", "90")
    return world.toolkit("/usr/local/cuda-12.8", "12.8.1")


def compat(folder: Path) -> World:
    return k5.with_compat(folder, "NVIDIA GeForce RTX 2080 Ti", cached=False)


def cached_compat(folder: Path) -> World:
    return k5.with_compat(folder, "NVIDIA GeForce RTX 2080 Ti", cached=True)


CASES = (
    Case(source="pytorch/pytorch#134929", name="a notebook's conda folder on the path",
         make=kaggle, right="write-activation", codes=("SF101",)),
    Case(source="pytorch/pytorch#140797", name="the toolkit 12.2",
         make=lambda folder: k1.beside_toolkit(folder, "2.5.1").environ(
        LD_LIBRARY_PATH=f"{k1.TOOLKIT}/lib64"), right="write-activation", codes=("SF101",)),
    Case(source="NVIDIA/cuml#7794", name="pip keeps an older nvJitLink",
         make=cuml, right="install", codes=("SF201",),
         shelf=lambda shelf: shelf.put("nvidia-nvjitlink-cu12", "12.9.41").put("nvidia-nvjitlink-cu12", "12.9.86")),
    Case(source="jax-ml/jax#30050", name="the HPC SDK under JAX",
         make=hpc_sdk, right="write-activation", codes=("SF101",)),
    Case(source="LMCache/LMCache#180", name="an isolated build",
         make=isolated_build, right="write-activation", codes=("SF101",)),
    Case(source="SYSTRAN/faster-whisper#297", name="cuDNN 8 on PATH",
         right="write-activation", codes=("SF402", "SF402"),
         make=lambda folder: k2.faster_whisper(folder, "nvidia-cudnn-cu12", "8.9.2.26", None)),
    Case(source="microsoft/onnxruntime#25609", name="a provider without RPATH",
         make=k2.onnxruntime, right="write-activation", codes=("SF402",)),
    Case(source="microsoft/onnxruntime#25609", name="a provider, and few of its wheels",
         make=little_cudnn, right="install", codes=("SF401", "SF402"),
         shelf=all_of_onnxruntime),
    Case(source="ultralytics/ultralytics#10203", name="half of cuDNN from a module",
         right="write-activation", codes=("SF302",),
         make=lambda folder: k2.with_module(folder, (k2.TRAIN,)).environ(LD_LIBRARY_PATH=k2.MODULE,
                                                                         LOADEDMODULES="cuda/11.8.0")),
    Case(source="ultralytics/ultralytics#10203", name="all parts but the front from a module",
         right="write-activation", codes=("SF302",),
         make=lambda folder: k2.with_module(folder, tuple(
             name for name, _ in libraries_of("cudnn", 11, "8.7.0.84"))).environ(LD_LIBRARY_PATH=k2.MODULE)),
    Case(source="Dao-AILab/flash-attention#931", name="flash-attn for an earlier torch",
         make=flash_attn, right="install", codes=("SF501",),
         shelf=fitting_flash_attn),
    Case(source="vladmandic/sdnext#3531", name="torchvision of another torch",
         make=vision, right="install", codes=("SF501",), shelf=fitting_vision),
    Case(source="vllm-project/vllm#4195", name="an older NCCL",
         right="install", codes=("SF201",),
         make=lambda folder: install_torch(World(folder), "2.2.0", nccl="2.18.1"),
         shelf=lambda shelf: shelf.put("nvidia-nccl-cu12", "2.19.3")),
    Case(source="vllm-project/vllm#4195", name="a preloaded NCCL",
         right="write-activation", codes=("SF101",),
         make=lambda folder: k4.with_old_nccl(folder).environ(LD_PRELOAD=f"{k4.ELSEWHERE}/libnccl.so.2")),
    Case(source="pytorch/pytorch#157381", name="the toolkit's CUPTI where the wheel is not there",
         make=no_cupti, right="install", codes=("SF403",),
         shelf=lambda shelf: shelf.put("nvidia-cuda-cupti-cu12", "12.8.90")),
    Case(source="pytorch/pytorch#157381", name="CUPTI under the release candidate",
         make=candidate_cupti, right="write-activation", codes=("SF101",)),
    Case(source="facebookresearch/nougat#105", name="cuDNN 8 opens libcuda.so on WSL",
         make=wsl, right="write-activation", codes=("SF802",)),
    Case(source="NVIDIA/nvidia-docker#1515", name="cuda-compat on the path",
         make=compat, right="write-activation", codes=("SF804",)),
    Case(source="pytorch/pytorch#157709", name="the link of libstdc++ is gone",
         make=lost_link, right="relink", codes=("SF801",)),
    Case(source="tensorflow/docs#2251", name="a guide's script",
         make=guide, right="write-activation", codes=("SF1101",)),
    Case(source="NVIDIA/cutlass#3259", name="two wheels with one path",
         make=lambda folder: k7.cutlass(folder, "cu13", "base"), right="install",
         codes=("SF701",), shelf=whole_cutlass),
    Case(source="pytorch/pytorch#115138", name="torch maps the system's libstdc++ first",
         make=lambda folder: k7.tokenizer(folder, "torch"),
         right="write-activation", codes=("SF903",)),
)
MORE = (
    Case(source="mistralai/mistral-inference#59", name="xformers for CUDA beside a torch for the CPU",
         make=cpu_torch, right="install", codes=("SF502",),
         shelf=torch_for_cuda),
    Case(source="vllm-project/vllm#3147", name="vllm for another torch, and its xformers",
         right="install", codes=("SF501", "SF501"),
         make=lambda folder: k3.install_vllm(install_torch(World(folder), "2.2.1"), "0.3.2", C10_OPTIONAL, CHECK_OLD,
                                             xformers="0.0.23.post1", torch="2.1.2"),
         shelf=lambda shelf: shelf.put("vllm", "0.4.1", linked({
             name: k3.extension(STD_OPTIONAL) for name in k3.VLLM}), ("torch==2.2.1", "xformers==0.0.25")).put(
                 "xformers", "0.0.25", linked({"xformers/_C.so": k3.extension(STD_OPTIONAL)}), ("torch==2.2.1",))),
    Case(source="Zymrael/savanna#5", name="a torchaudio that names no torch",
         make=late_torchaudio, right="install", codes=("SF501",),
         shelf=lambda shelf: shelf.put("torchaudio", "2.6.0", linked({
             name: k3.extension(needs=("libc10.so", "libtorch.so")) for name in AUDIO}), ("torch==2.6.0",))),
    Case(source="Zymrael/savanna#5", name="flash-attn built before torch moved",
         make=moved_torch, right="install", codes=("SF501",),
         shelf=lambda shelf: shelf.put("flash-attn", "2.8.0.post2", linked({
             k3.FLASH: k3.extension(CHECK_NEW, set_device("2.7.0"))}), ("torch", "einops"))),
    Case(source="vllm-project/vllm#4195", name="NCCL's file is gone",
         right="install", codes=("SF403",),
         make=lambda folder: k4.with_old_nccl(folder).remove(k4.NCCL).environ(LD_LIBRARY_PATH=k4.ELSEWHERE),
         shelf=lambda shelf: shelf.put("nvidia-nccl-cu12", "2.19.3")),
    Case(source="vllm-project/vllm#1718", name="vllm for CUDA 12 beside a torch for CUDA 11", make=colab,
         right="install", codes=("SF504",), shelf=earlier_vllm),
    Case(source="pytorch/pytorch#144433", name="torch in lib64, the wheels of NVIDIA in lib",
         make=k4.split, right="write-activation", codes=("SF402",),
         libraries=k4.before_the_release),
)
OUTSIDE = (
    Case(source="pytorch/pytorch#185512", name="a part of the system's cuDNN", make=system_part, right="advice",
         codes=("SF302",), says=('sudo apt-get remove "$(dpkg -S /usr/lib/',)),
    Case(source="tensorflow/tensorflow#60913", name="TensorFlow beside an older cuDNN",
         right="advice", codes=("SF601",),
         says=("stackfix lock --torch 2.7.0 --cuda 12.6 --with tensorflow==2.18.0",),
         make=lambda folder: k2.install_tensorflow(install_torch(World(folder), "2.5.1"), "2.18.0", "9.3.0.75"),
         shelf=lambda shelf: shelf.put("nvidia-cudnn-cu12", "9.3.0.75")),
    Case(source="lllyasviel/Fooocus#1313", name="driver 470", make=driver_470, right="advice", codes=("SF901",),
         says=("stackfix lock --torch 2.1.0 --cuda 11.8", "sudo ubuntu-drivers install")),
    Case(source="bnsreenu/digitalsreeni-image-annotator#57", name="Pascal under CUDA 12.8", make=pascal, right="advice",
         codes=("SF902",), says=("stackfix lock --torch 2.8.0 --cuda 12.6 --gpu-arch sm_61",),
         seen=lambda world: k5.machine(world, k5.smi("NVIDIA GeForce GTX 1050", "6.1"))),
    Case(source="ostris/ai-toolkit#475", name="flash-attn without code for the RTX 5090", make=blackwell,
         right="advice", codes=("SF902",), says=("FLASH_ATTENTION_FORCE_BUILD=TRUE FLASH_ATTN_CUDA_ARCHS=120",
                                                 "--no-build-isolation", "scaled_dot_product_attention"),
         seen=lambda world: k5.machine(world, k5.smi("NVIDIA GeForce RTX 5090", "12.0"))),
    Case(source="NVIDIA/nvidia-docker#1515", name="cuda-compat in the cache",
         make=cached_compat, right="advice", codes=("SF804",),
         says=("000_cuda_compat.conf", "sudo ldconfig")),
    Case(source="hpcaitech/ColossalAI#2048", name="pip over conda's torch",
         right="advice", codes=("SF701",),
         says=("conda remove --prefix", "--force-reinstall --no-deps torch==2.1.2"),
         make=lambda folder: install_torch(k7.conda_torch(
             folder, "1.13.1", "py3.11_cuda11.7_cudnn8.5.0_0", metadata=False), "2.1.2")),
)
# What there is to lock and not to repair; tests/test_cases_k6.py has them
LOCKED = ("apple/axlearn#858", "astral-sh/uv#9209", "astral-sh/uv#11532", "astral-sh/uv#12282", "conda/conda-lock#101",
          "prefix-dev/pixi#3949")
REPORTS = (
    "pytorch/pytorch#134929", "pytorch/pytorch#140797", "NVIDIA/cuml#7794", "jax-ml/jax#30050", "LMCache/LMCache#180",
    "SYSTRAN/faster-whisper#297", "pytorch/pytorch#185512", "microsoft/onnxruntime#25609",
    "tensorflow/tensorflow#60913", "ultralytics/ultralytics#10203", "Dao-AILab/flash-attention#931",
    "vllm-project/vllm#3147", "vladmandic/sdnext#3531", "mistralai/mistral-inference#59", "Zymrael/savanna#5",
    "vllm-project/vllm#4195", "vllm-project/vllm#1718", "pytorch/pytorch#157381", "pytorch/pytorch#144433",
    "lllyasviel/Fooocus#1313", "bnsreenu/digitalsreeni-image-annotator#57", "NVIDIA/nvidia-docker#1515",
    "facebookresearch/nougat#105", "ostris/ai-toolkit#475", *LOCKED, "NVIDIA/cutlass#3259", "pytorch/pytorch#157709",
    "tensorflow/docs#2251", "hpcaitech/ColossalAI#2048", "pytorch/pytorch#115138",
)
