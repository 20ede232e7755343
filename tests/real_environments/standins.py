"""A folder of wheels that stand for the real ones: the same projects, versions, paths and sonames, in tiny files.

The libraries are real ELF files with the few symbols that the scenarios turn on. uv installs and overwrites them, and
the machine's loader loads or refuses them, as it does the gigabytes that they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from stackfix.matrix.load import load_matrix
from stackfix.matrix.query import builds
from tests.diagnose_world import lib
from tests.loader_oracle.graph import Library
from tests.real_environments.scenarios import NVJITLINK_12_1, RUN_RECORD
from tests.real_environments.wheel_file import Wheel

TAG = "cpython-311-x86_64-linux-gnu"
STATE = "_ZN3c1013AutogradState13get_tls_stateEv"        # in each torch
CU12_FOLDERS = ("cublas", "cuda_cupti", "cuda_nvrtc", "cuda_runtime", "cudnn", "cufft", "curand", "cusolver",
                "cusparse", "nccl", "nvtx")
CU13_FOLDERS = ("cudnn", "nvshmem", "nccl", "cusparselt", "cu13")
CU12_RPATH, CU13_RPATH = (":".join([*(f"$ORIGIN/../../nvidia/{each}/lib" for each in folders), "$ORIGIN"])
                          for folders in (CU12_FOLDERS, CU13_FOLDERS))
CUDNN_8 = ("", "_ops_infer", "_ops_train", "_cnn_infer", "_cnn_train", "_adv_infer", "_adv_train")
CUDNN_9 = ("", "_graph", "_ops", "_cnn", "_adv", "_engines_precompiled", "_engines_runtime_compiled", "_heuristic")
# Python's own way into torch, as far as a loader is concerned.
INIT = f"""
import ctypes, os
_here = os.path.dirname(os.path.abspath(__file__))
ctypes.CDLL(_here + "/lib/libtorch_global_deps.so", mode=ctypes.RTLD_GLOBAL)
ctypes.CDLL(_here + "/_C.{TAG}.so")
"""
VLLM = f"""
import ctypes, os, torch
ctypes.CDLL(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/vllm_flash_attn_2_cuda.{TAG}.so")
"""


def write_wheels(folder: Path) -> Path:
    """All of them into a new folder."""
    folder.mkdir()
    for wheel in (*plain(), *cuda_12(), *cudnn(), *cuda_13(), *torches(), *extensions()):
        wheel.write(folder)
    return folder


def plain() -> Iterator[Wheel]:
    """What torch needs beside CUDA; compiled only where its import opens something."""
    for pin in ("cuda-bindings 13.0.3", "filelock 3.15", "fsspec 2024.6", "jinja2 3.1", "networkx 3.3",
                "sympy 1.13.3", "typing-extensions 4.12"):
        name, _, version = pin.partition(" ")
        yield Wheel(name=name, version=version, files={})
    # A module is imported at each start of this Python: without -B that leaves a compiled one
    yield Wheel(name="setuptools", version="81.0", files={
        "distutils-precedence.pth": "import os; __import__('_distutils_hack')\n", "_distutils_hack/__init__.py": ""})
    yield Wheel(name="numpy", version="1.26.4", files={f"numpy/core/_multiarray_umath.{TAG}.so": lib()})
    for version in ("2.3.1", "3.0.0", "3.7.1"):
        yield Wheel(name="triton", version=version, files={
            "triton/_C/libtriton.so": lib(),
            "triton/backends/nvidia/lib/cupti/libcupti.so.12": lib(soname="libcupti.so.12")})


def nvidia(pin: str, folder: str, *sonames: str, **libraries: Library) -> Wheel:
    """A wheel of NVIDIA's. Plain libraries, then others under the keyword `lib…_so_12` (a dot cannot stand there)."""
    name, _, version = pin.partition(" ")
    made = {soname: lib(soname=soname, offers=(f"{soname.partition('.')[0]}_version",), runpath="$ORIGIN")
            for soname in sonames}
    special = {key.replace("_so_", ".so."): value for key, value in libraries.items()}
    return Wheel(name=name, version=version, files={
        f"nvidia/{folder}/lib/{soname}": each for soname, each in {**made, **special}.items()})


def nvjitlink(version: str) -> Wheel:
    """nvJitLink: each CUDA minor has functions of its own, under the one symbol version."""
    minor = version.split(".")[1]
    named = ({name.replace("_12_1", f"_12_{minor}") for name in NVJITLINK_12_1}, NVJITLINK_12_1 if minor != "0" else ())
    offers = sorted(f"{name}@libnvJitLink.so.12" for names in named for name in names)
    return nvidia(f"nvidia-nvjitlink-cu12 {version}", "nvjitlink",
                  libnvJitLink_so_12=lib(soname="libnvJitLink.so.12", offers=offers))


def cuda_12() -> Iterator[Wheel]:
    """Two stacks of CUDA 12: torch's own of 12.1, and the wheels of 12.8 that come beside CUDA 13."""
    for version in ("12.0.140", "12.1.105", "12.8.93", "12.9.86"):
        yield nvjitlink(version)
    for cublas, release, cufft, curand, cusolver, cusparse, nccl in (
            ("12.1.3.1", ("12.1.105",) * 4, "11.0.2.54", "10.3.2.106", "11.4.5.107", "12.1.0.106", "2.20.5"),
            ("12.8.4.1", ("12.8.90", "12.8.93", "12.8.90", "12.8.90"), "11.3.3.83", "10.3.9.90", "11.7.3.90",
             "12.5.8.93", "2.27.3")):
        cupti, nvrtc, cudart, nvtx = release
        minor = ".".join(cudart.split(".")[:2])
        yield nvidia(f"nvidia-cublas-cu12 {cublas}", "cublas", "libcublasLt.so.12", libcublas_so_12=lib(
            soname="libcublas.so.12", needs=("libcublasLt.so.12",), runpath="$ORIGIN", offers=("cublasCreate_v2",)))
        yield nvidia(f"nvidia-cuda-cupti-cu12 {cupti}", "cuda_cupti", "libcupti.so.12")
        yield nvidia(f"nvidia-cuda-nvrtc-cu12 {nvrtc}", "cuda_nvrtc", "libnvrtc.so.12", f"libnvrtc-builtins.so.{minor}")
        yield nvidia(f"nvidia-cuda-runtime-cu12 {cudart}", "cuda_runtime", "libcudart.so.12")
        yield nvidia(f"nvidia-nvtx-cu12 {nvtx}", "nvtx", "libnvToolsExt.so.1")
        yield nvidia(f"nvidia-cufft-cu12 {cufft}", "cufft", "libcufft.so.11")
        yield nvidia(f"nvidia-curand-cu12 {curand}", "curand", "libcurand.so.10")
        yield nvidia(f"nvidia-nccl-cu12 {nccl}", "nccl", libnccl_so_2=lib(soname="libnccl.so.2", offers=("ncclSend",)))
        yield cusparse_wheel(cusparse)
        yield nvidia(f"nvidia-cusolver-cu12 {cusolver}", "cusolver", libcusolver_so_11=lib(
            soname="libcusolver.so.11", needs=("libnvJitLink.so.12", "libcusparse.so.12", "libcublas.so.12"),
            runpath="$ORIGIN:$ORIGIN/../../cublas/lib:$ORIGIN/../../nvjitlink/lib:$ORIGIN/../../cusparse/lib"))
    yield nvidia("nvidia-cusparselt-cu12 0.7.1", "cusparselt", "libcusparseLt.so.0")
    yield nvidia("nvidia-cufile-cu12 1.13.1.3", "cufile", "libcufile.so.0", "libcufile_rdma.so.1")


def cusparse_wheel(version: str) -> Wheel:
    """cuSPARSE, which needs nvJitLink's functions of CUDA 12.1; its metadata does not say so."""
    wants = sorted(f"{name}@libnvJitLink.so.12" for name in NVJITLINK_12_1)
    made = nvidia(f"nvidia-cusparse-cu12 {version}", "cusparse", libcusparse_so_12=lib(
        soname="libcusparse.so.12", needs=("libnvJitLink.so.12",), wants=wants,
        runpath="$ORIGIN:$ORIGIN/../../nvjitlink/lib"))
    return Wheel(name=made.name, version=version, files=made.files, requires=("nvidia-nvjitlink-cu12",))


def cudnn() -> Iterator[Wheel]:
    """cuDNN 8 and 9. Both lie in one folder, for CUDA 12 and 13."""
    for pin, major, parts in (
            ("nvidia-cudnn-cu12 8.9.2.26", 8, CUDNN_8), ("nvidia-cudnn-cu12 9.1.0.70", 9, CUDNN_9),
            ("nvidia-cudnn-cu12 9.10.2.21", 9, CUDNN_9), ("nvidia-cudnn-cu13 9.20.0.48", 9, CUDNN_9)):
        yield nvidia(pin, "cudnn", *(f"libcudnn{part}.so.{major}" for part in parts))


def cuda_13() -> Iterator[Wheel]:
    """The stack of torch 2.12: one folder for all of the toolkit."""
    for pin, *sonames in (
            ("nvidia-cublas 13.1.1.3", "libcublas.so.13", "libcublasLt.so.13"),
            ("nvidia-cuda-cupti 13.0.85", "libcupti.so.13"),
            ("nvidia-cuda-nvrtc 13.0.88", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0"),
            ("nvidia-cuda-runtime 13.0.96", "libcudart.so.13"), ("nvidia-cufft 12.0.0.61", "libcufft.so.12"),
            ("nvidia-curand 10.4.0.35", "libcurand.so.10"),
            ("nvidia-cusolver 12.0.4.66", "libcusolver.so.12"), ("nvidia-cusparse 12.6.3.3", "libcusparse.so.12"),
            ("nvidia-nvjitlink 13.0.88", "libnvJitLink.so.13"), ("nvidia-nvtx 13.0.85", "libnvtx3interop.so.1")):
        yield nvidia(pin, "cu13", *sonames)
    yield nvidia("nvidia-cufile 1.15.1.6", "cu13", "libcufile_rdma.so.1", libcufile_so_0=lib(
        soname="libcufile.so.0", offers=("cuFileDriverOpen",)))     # finds its own part nowhere: no RUNPATH
    yield nvidia("nvidia-nvshmem-cu13 3.4.5", "nvshmem", "libnvshmem_host.so.3")
    yield nvidia("nvidia-cusparselt-cu13 0.8.1", "cusparselt", "libcusparseLt.so.0")
    yield nvidia("nvidia-nccl-cu13 2.29.7", "nccl", libnccl_so_2=lib(
        soname="libnccl.so.2", offers=("ncclSend", "ncclCommResume")))
    parts = {"cublas": "nvidia-cublas==13.1.0.3.*", "cudart": "nvidia-cuda-runtime==13.0.96.*",
             "cufft": "nvidia-cufft==12.0.0.61.*", "cufile": "nvidia-cufile==1.15.1.6.*",
             "cupti": "nvidia-cuda-cupti==13.0.85.*", "curand": "nvidia-curand==10.4.0.35.*",
             "cusolver": "nvidia-cusolver==12.0.4.66.*", "cusparse": "nvidia-cusparse==12.6.3.3.*",
             "nvjitlink": "nvidia-nvjitlink==13.0.88.*", "nvrtc": "nvidia-cuda-nvrtc==13.0.88.*",
             "nvtx": "nvidia-nvtx==13.0.85.*"}
    yield Wheel(name="cuda-toolkit", version="13.0.2", files={}, extras=tuple(parts),
                requires=tuple(f"{line} ; extra == '{extra}'" for extra, line in parts.items()))


def torches() -> Iterator[Wheel]:
    """torch 2.3.1, 2.4.0 and 2.12.1."""
    cu12 = ("libcudart.so.12", "libcusparse.so.12", "libcufft.so.11", "libcurand.so.10", "libcublas.so.12",
            "libcublasLt.so.12", "libnvToolsExt.so.1")
    cu13 = ("libcudart.so.13", "libcusparse.so.12", "libcufft.so.12", "libcurand.so.10", "libcublas.so.13",
            "libcublasLt.so.13", "libcusparseLt.so.0", "libnvshmem_host.so.3", "libcufile.so.0")
    yield torch("2.3.1", cu12, "libcudnn.so.8", "12", CU12_RPATH, ("_ZN3c104cuda9SetDeviceEa",), (RUN_RECORD,))
    yield torch("2.4.0", cu12, "libcudnn.so.9", "12", CU12_RPATH, ("_ZN3c104cuda9SetDeviceEa",), ())
    yield torch("2.12.1", cu13, "libcudnn.so.9", "13", CU13_RPATH, ("_ZN3c104cuda9SetDeviceEab",), (),
                ("ncclCommResume",))


def torch(version: str, cuda: Sequence[str], cudnn_name: str, major: str, rpath: str, of_cuda: Sequence[str],
          of_cpu: Sequence[str], of_nccl: Sequence[str] = ()) -> Wheel:
    """One torch. Symbols: what its own libraries offer, and what it wants of NCCL."""
    cudart, cupti, cusolver = f"libcudart.so.{major}", f"libcupti.so.{major}", f"libcusolver.so.{int(major) - 1}"
    own = {
        "libc10": lib(offers=(STATE,)),
        "libc10_cuda": lib(needs=("libc10.so", cudart), offers=of_cuda),
        "libtorch_cpu": lib(needs=("libc10.so", cupti, cudart), offers=of_cpu),
        "libtorch_cuda": lib(needs=("libc10_cuda.so", *cuda, cudnn_name, "libnccl.so.2", "libtorch_cpu.so"),
                             wants=("ncclSend", *of_nccl)),
        "libtorch_cuda_linalg": lib(needs=("libtorch_cuda.so", cusolver)),
        "libtorch": lib(needs=("libtorch_cpu.so", "libtorch_cuda.so")),
        "libtorch_python": lib(needs=("libtorch.so", "libtorch_cuda.so", cudnn_name)),
        "libtorch_global_deps": lib(needs=(cudart,)),
    }
    files: dict[str, Library | str] = {"torch/__init__.py": INIT, "torch/version.py": f"__version__ = '{version}'\n"}
    for stem, each in own.items():
        files[f"torch/lib/{stem}.so"] = with_rpath(each, f"{stem}.so", rpath)
    files[f"torch/_C.{TAG}.so"] = with_rpath(lib(needs=("libtorch_python.so",)), None, ":".join(
        [rpath.replace("/../..", "/.."), "$ORIGIN/lib"]))
    requires = next(each.requires for each in builds(load_matrix(), platform="linux-64", index="default")
                    if each.version == version)
    return Wheel(name="torch", version=version, files=files, requires=requires)


def with_rpath(library: Library, soname: str | None, rpath: str) -> Library:
    """As torch's own libraries are linked: RPATH, no RUNPATH."""
    return replace(library, soname=soname, rpath=rpath)


def extensions() -> Iterator[Wheel]:
    """What was built for another torch, and the releases of it that were built for this one."""
    for version, pin, symbol in (("2.5.6", "2.1.2", "_ZN3c104cuda9SetDeviceEi"),
                                 ("2.5.9.post1", "2.3.1", "_ZN3c104cuda9SetDeviceEa")):
        yield Wheel(name="vllm-flash-attn", version=version, requires=(f"torch=={pin}",), files={
            "vllm_flash_attn/__init__.py": VLLM,
            f"vllm_flash_attn_2_cuda.{TAG}.so": lib(
                needs=("libc10.so", "libc10_cuda.so", "libtorch.so", "libcudart.so.12"), wants=(symbol, STATE))})
    for version, pin, symbol in (("0.0.27", "2.3.1", RUN_RECORD), ("0.0.27.post1", "2.4.0", STATE)):
        yield Wheel(name="xformers", version=version, requires=(f"torch=={pin}", "numpy"), files={
            "xformers/__init__.py": "",
            "xformers/_C.so": lib(needs=("libc10.so", "libtorch.so", "libtorch_cpu.so"), wants=(symbol,))})
