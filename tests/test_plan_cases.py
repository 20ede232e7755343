"""Public reports, and what a plan makes of them: it cures the same, at no higher rank than the report's right answer.

`right` is the kind of action that the report's right answer amounts to, as an expert would give it: a fact of the case,
not of this code. "advice" where the answer lies outside of the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stackfix.cli.repairing import with_hooks
from stackfix.diagnose.diagnose import diagnose
from stackfix.inspect.places import Root
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.records import RANKS, Plan
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
from tests.plan_world import Shelf, advice, apply_plainly, cured, kinds, plan_of, shelf_for, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A report."""

    name: str
    make: Callable[[Path], World]
    right: str
    codes: tuple[str, ...]          # what the plan cures; for advice, what is left
    shelf: Callable[[Shelf], Shelf] = lambda shelf: shelf
    says: tuple[str, ...] = ()      # parts of commands that are advised


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


def compat(folder: Path) -> World:
    return k5.with_compat(folder, "NVIDIA GeForce RTX 2080 Ti", cached=False)


def cached_compat(folder: Path) -> World:
    return k5.with_compat(folder, "NVIDIA GeForce RTX 2080 Ti", cached=True)


CASES = (
    Case(name="a notebook's conda folder on the path", make=kaggle, right="write-activation", codes=("SF101",)),
    Case(name="the toolkit 12.2", make=lambda folder: k1.beside_toolkit(folder, "2.5.1").environ(
        LD_LIBRARY_PATH=f"{k1.TOOLKIT}/lib64"), right="write-activation", codes=("SF101",)),
    Case(name="pip keeps an older nvJitLink", make=cuml, right="install", codes=("SF201",),
         shelf=lambda shelf: shelf.put("nvidia-nvjitlink-cu12", "12.9.41").put("nvidia-nvjitlink-cu12", "12.9.86")),
    Case(name="the HPC SDK under JAX", make=hpc_sdk, right="write-activation", codes=("SF101",)),
    Case(name="an isolated build", make=isolated_build, right="write-activation", codes=("SF101",)),
    Case(name="cuDNN 8 on PATH", right="write-activation", codes=("SF402", "SF402"),
         make=lambda folder: k2.faster_whisper(folder, "nvidia-cudnn-cu12", "8.9.2.26", None)),
    Case(name="a provider without RPATH", make=k2.onnxruntime, right="write-activation", codes=("SF402",)),
    Case(name="a provider, and few of its wheels", make=little_cudnn, right="install", codes=("SF401", "SF402"),
         shelf=all_of_onnxruntime),
    Case(name="half of cuDNN from a module", right="write-activation", codes=("SF302",),
         make=lambda folder: k2.with_module(folder, (k2.TRAIN,)).environ(LD_LIBRARY_PATH=k2.MODULE,
                                                                         LOADEDMODULES="cuda/11.8.0")),
    Case(name="all parts but the front from a module", right="write-activation", codes=("SF302",),
         make=lambda folder: k2.with_module(folder, tuple(
             name for name, _ in libraries_of("cudnn", 11, "8.7.0.84"))).environ(LD_LIBRARY_PATH=k2.MODULE)),
    Case(name="flash-attn for an earlier torch", make=flash_attn, right="install", codes=("SF501",),
         shelf=fitting_flash_attn),
    Case(name="torchvision of another torch", make=vision, right="install", codes=("SF501",), shelf=fitting_vision),
    Case(name="an older NCCL", right="install", codes=("SF201",),
         make=lambda folder: install_torch(World(folder), "2.2.0", nccl="2.18.1"),
         shelf=lambda shelf: shelf.put("nvidia-nccl-cu12", "2.19.3")),
    Case(name="a preloaded NCCL", right="write-activation", codes=("SF101",),
         make=lambda folder: k4.with_old_nccl(folder).environ(LD_PRELOAD=f"{k4.ELSEWHERE}/libnccl.so.2")),
    Case(name="the toolkit's CUPTI where the wheel is not there", make=no_cupti, right="install", codes=("SF403",),
         shelf=lambda shelf: shelf.put("nvidia-cuda-cupti-cu12", "12.8.90")),
    Case(name="CUPTI under the release candidate", make=candidate_cupti, right="write-activation", codes=("SF101",)),
    Case(name="cuDNN 8 opens libcuda.so on WSL", make=wsl, right="write-activation", codes=("SF802",)),
    Case(name="cuda-compat on the path", make=compat, right="write-activation", codes=("SF804",)),
    Case(name="the link of libstdc++ is gone", make=lost_link, right="relink", codes=("SF801",)),
    Case(name="a guide's script", make=guide, right="write-activation", codes=("SF1101",)),
    Case(name="two wheels with one path", make=lambda folder: k7.cutlass(folder, "cu13", "base"), right="install",
         codes=("SF701",), shelf=whole_cutlass),
    Case(name="torch maps the system's libstdc++ first", make=lambda folder: k7.tokenizer(folder, "torch"),
         right="write-activation", codes=("SF903",)),
)
MORE = (
    Case(name="xformers for CUDA beside a torch for the CPU", make=cpu_torch, right="install", codes=("SF502",),
         shelf=torch_for_cuda),
    Case(name="vllm for another torch, and its xformers", right="install", codes=("SF501", "SF501"),
         make=lambda folder: k3.install_vllm(install_torch(World(folder), "2.2.1"), "0.3.2", C10_OPTIONAL, CHECK_OLD,
                                             xformers="0.0.23.post1", torch="2.1.2"),
         shelf=lambda shelf: shelf.put("vllm", "0.4.1", linked({
             name: k3.extension(STD_OPTIONAL) for name in k3.VLLM}), ("torch==2.2.1", "xformers==0.0.25")).put(
                 "xformers", "0.0.25", linked({"xformers/_C.so": k3.extension(STD_OPTIONAL)}), ("torch==2.2.1",))),
    Case(name="a torchaudio that names no torch", make=late_torchaudio, right="install", codes=("SF501",),
         shelf=lambda shelf: shelf.put("torchaudio", "2.6.0", linked({
             name: k3.extension(needs=("libc10.so", "libtorch.so")) for name in AUDIO}), ("torch==2.6.0",))),
    Case(name="flash-attn built before torch moved", make=moved_torch, right="install", codes=("SF501",),
         shelf=lambda shelf: shelf.put("flash-attn", "2.8.0.post2", linked({
             k3.FLASH: k3.extension(CHECK_NEW, set_device("2.7.0"))}), ("torch", "einops"))),
    Case(name="NCCL's file is gone", right="install", codes=("SF403",),
         make=lambda folder: k4.with_old_nccl(folder).remove(k4.NCCL).environ(LD_LIBRARY_PATH=k4.ELSEWHERE),
         shelf=lambda shelf: shelf.put("nvidia-nccl-cu12", "2.19.3")),
)
OUTSIDE = (
    Case(name="a part of the system's cuDNN", right="advice", codes=("SF302",), says=("dpkg -S /usr/lib/",),
         make=lambda folder: k2.system_part(install_torch(World(folder), "2.12.1"), "9.21.1")),
    Case(name="TensorFlow beside an older cuDNN", right="advice", codes=("SF601",),
         says=("stackfix lock --torch 2.7.0 --cuda 12.6 --with tensorflow==2.18.0",),
         make=lambda folder: k2.install_tensorflow(install_torch(World(folder), "2.5.1"), "2.18.0", "9.3.0.75"),
         shelf=lambda shelf: shelf.put("nvidia-cudnn-cu12", "9.3.0.75")),
    Case(name="driver 470", right="advice", codes=("SF901",), says=("stackfix lock --torch 2.1.0 --cuda 11.8",),
         make=lambda folder: k5.put_gpu(install_torch(World(folder), "2.1.0"), "NVIDIA GeForce RTX 3050", "470.86")),
    Case(name="cuda-compat in the cache", make=cached_compat, right="advice", codes=("SF804",),
         says=("000_cuda_compat.conf", "sudo ldconfig")),
    Case(name="pip over conda's torch", right="advice", codes=("SF701",),
         says=("conda remove --prefix", "--force-reinstall --no-deps torch==2.1.2"),
         make=lambda folder: install_torch(k7.conda_torch(
             folder, "1.13.1", "py3.11_cuda11.7_cudnn8.5.0_0", metadata=False), "2.1.2")),
)


def planned(case: Case, folder: Path) -> tuple[World, Plan, Shelf]:
    world = whole(case.make(folder / "machine"))
    shelf = case.shelf(shelf_for(world))
    return world, plan_of(world, shelf), shelf


@pytest.mark.parametrize("case", [*CASES, *MORE], ids=lambda case: case.name)
def test_the_plan_cures_it_at_no_higher_rank(case: Case, tmp_path: Path) -> None:
    world, plan, shelf = planned(case, tmp_path)
    assert set(cured(plan)) == set(case.codes), [(each.code, each.reason) for each in plan.left]
    assert [each for each in plan.left if each.code not in {"SF601", "SF602", "SF603"}] == []
    assert max(map(RANKS.index, kinds(plan))) <= RANKS.index(case.right)
    # what was simulated is what comes of it
    apply_plainly(world, plan, shelf)
    view = with_hooks(world.view(load_libraries()), Root(str(world.folder)))
    assert [(each.code, each.summary) for each in diagnose(view).findings
            if each.severity == "error" or (each.code in case.codes and each.severity != "note")] == []


@pytest.mark.parametrize("case", OUTSIDE, ids=lambda case: case.name)
def test_what_lies_outside_is_advised(case: Case, tmp_path: Path) -> None:
    _, plan, _ = planned(case, tmp_path)
    assert kinds(plan) == ()
    assert {each.code for each in plan.left} == set(case.codes)
    assert all(each.reason for each in plan.left)
    for part in case.says:
        assert part in advice(plan)
    assert all(not each.steps and not each.changes for each in plan.actions)
