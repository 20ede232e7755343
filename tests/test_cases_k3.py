"""Public reports on extensions that were built for another torch, or for CUDA beside a CPU torch: built and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.case_worlds import (
    C10_OPTIONAL,
    CHECK_NEW,
    CHECK_OLD,
    SET_DEVICE,
    STATE,
    STD_OPTIONAL,
    TAG,
    bare,
    install_torch,
    is_clean,
    judge,
    linked,
    set_device,
)
from tests.cli_world import Say
from tests.diagnose_world import World, lib
from tests.loader_oracle.graph import Library

LINKED = ("libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libcudart.so.12", "libc10_cuda.so",
          "libtorch_cuda.so")
FLASH = f"flash_attn_2_cuda.{TAG}"


def extension(*wants: str, needs: Sequence[str] = LINKED) -> Library:
    """A compiled extension of torch: it has no RPATH, torch is imported before."""
    return lib(needs=needs, wants=(*wants, STATE))


def install(world: World, name: str, version: str, files: Mapping[str, Library], *requires: str) -> World:
    return world.wheel(name, version, linked(files), requires=requires)


def really(world: World, name: str) -> str:
    """What this machine's loader says to an extension after torch."""
    world.opens_nothing().opens("torch/lib/libtorch_global_deps.so", to_global=True)
    return world.opens(f"torch/_C.{TAG}").opens(world.inside(name)).really()


# --- Dao-AILab/flash-attention#931: c10::cuda::SetDevice took an int up to torch 2.2 ---

@pytest.mark.parametrize(("torch", "flash", "built_for", "right", "back", "shown"), [
    ("2.3.0", "2.5.7", "2.2.2", "2.5.8", "2.2.2", "2.1 to 2.2: c10::cuda::SetDevice(int)"),
    ("2.4.0", "2.5.6", "2.1.2", "2.6.3", "2.2.2", "2.1 to 2.2: c10::cuda::SetDevice(int)"),
    ("2.8.0", "2.7.4.post1", "2.6.0", "2.8.3", "2.7.1", "2.3 to 2.7: c10::cuda::SetDevice(signed char)"),
])
def test_flash_attn_for_an_earlier_torch(
    torch: str, flash: str, built_for: str, right: str, back: str, shown: str, tmp_path: Path, say: Say,
) -> None:
    world = install_torch(World(tmp_path), torch).wheel("einops", "0.8.0")
    assert is_clean(say, world)
    wrong, own = set_device(built_for), set_device(torch)
    check = CHECK_NEW if torch == "2.8.0" else CHECK_OLD
    judged = judge(say, install(world, "flash-attn", flash, {FLASH: extension(wrong, check)}, "torch", "einops"))
    assert (judged.status, judged.codes) == (1, ["SF501"])
    finding = judged.only("SF501")
    assert (finding["kind"], finding["severity"], finding["level"]) == ("abi-mismatch", "error", "extensions")
    assert finding["culprit"] == {"path": world.inside(FLASH), "package": f"flash-attn {flash}", "variable": None}
    assert finding["symbols"] == [wrong]
    line = f"{FLASH}: undefined symbol: {wrong}"
    assert bare(finding["error"]) == line
    assert line in bare(really(world, FLASH))
    assert "c10::cuda::SetDevice" in finding["why"]
    assert finding["summary"].endswith(f"than {torch}: its symbols are those of torch {shown}")
    assert any(each.startswith("torch has c10::cuda::SetDevice(") and f"({own})" in each
               for each in finding["evidence"])
    if torch == "2.8.0":            # of the minors that have the function only 2.7 has the string as well
        assert ("it asks for the new std::string; of the package index's wheels those of torch 2.7 have it"
                in finding["evidence"])
    assert f"--torch {torch} " in finding["cure"][0]
    assert "--flash-attn" in finding["cure"][0]
    minor = ".".join(torch.split(".")[:2])
    assert f"torch{minor}cxx11abi" in finding["cure"][0]
    if flash == "2.5.7":
        assert f"--flash-attn {right} " in finding["cure"][0]
    assert f"stackfix lock --torch {back} --flash-attn {flash}" in finding["cure"]
    assert any("--no-build-isolation --no-cache-dir" in each for each in finding["cure"])
    assert is_clean(say, install(world, "flash-attn", right, {FLASH: extension(own, check)}, "torch", "einops"))


# --- vllm-project/vllm#3147: c10::optional became std::optional in torch 2.2 ---

VLLM = tuple(f"vllm/{name}.{TAG}" for name in ("_C", "_moe_C", "_punica_C"))


def install_vllm(world: World, version: str, *wants: str, xformers: str, torch: str) -> World:
    install(world, "xformers", xformers, {"xformers/_C.so": extension(*wants)}, f"torch=={torch}")
    world.wheel("transformers", "4.38.2")
    return install(world, "vllm", version, {name: extension(*wants) for name in VLLM}, f"torch=={torch}",
                   f"xformers=={xformers}", "transformers>=4.38.0")


@pytest.mark.parametrize(("torch", "vllm", "fitting"), [("2.2.1", "0.3.2", "0.4.1"), ("2.3.0", "0.3.3", "0.4.2")])
def test_vllm_for_torch_212(torch: str, vllm: str, fitting: str, tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), torch)
    install_vllm(world, vllm, C10_OPTIONAL, CHECK_OLD, xformers="0.0.23.post1", torch="2.1.2")
    judged = judge(say, world)
    assert (judged.status, set(judged.codes)) == (1, {"SF501"})
    finding = next(each for each in judged.serious if each["culprit"]["package"] == f"vllm {vllm}")
    other = next(each for each in judged.serious if each is not finding)
    assert other["culprit"]["package"] == "xformers 0.0.23.post1"       # it is for 2.1.2 as well
    assert len(judged.serious) == 2
    assert finding["culprit"]["path"] in {world.inside(each) for each in VLLM}
    assert (finding["kind"], finding["symbols"]) == ("abi-mismatch", [C10_OPTIONAL])
    name = Path(finding["culprit"]["path"]).name
    assert bare(finding["error"]) == f"{name}: undefined symbol: {C10_OPTIONAL}"
    assert f"undefined symbol: {C10_OPTIONAL}" in really(world, f"vllm/{name}")
    assert "requires torch==2.1.2" in finding["summary"]
    assert any(each.startswith("its symbols are those of torch 2.1 or older: at::_ops::to_dtype_layout::call")
               for each in finding["evidence"])
    assert sum(f"{world.site}/vllm/" in each for each in finding["evidence"]) >= len(VLLM)
    assert f"stackfix lock --torch 2.1.2 --with vllm=={vllm}" in finding["cure"]
    assert any(f"vllm=={fitting}" in each for each in finding["cure"])      # the nearest
    assert is_clean(say, install_vllm(install_torch(World(tmp_path / "back"), "2.1.2"), vllm, C10_OPTIONAL, CHECK_OLD,
                                      xformers="0.0.23.post1", torch="2.1.2"))


def test_vllm_for_this_torch(tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), "2.2.1")
    assert is_clean(say, install_vllm(world, "0.4.1", STD_OPTIONAL, xformers="0.0.25", torch="2.2.1"))


# --- vladmandic/sdnext#3531: xformers took torch back, torchvision stayed ---

SET_TRACING = "_ZN2at23SavedTensorDefaultHooks11set_tracingEb"      # what torchvision 0.20.1 asks for, and 2.4.0 lacks
VISION = "torchvision/_C.so"


def install_vision(world: World, version: str, torch: str, *wants: str) -> World:
    world.wheel("pillow", "10.4.0").wheel("numpy", "1.26.4", linked({
        f"numpy/core/_multiarray_umath.{TAG}": lib()}))
    return install(world, "torchvision", version, {
        VISION: extension(CHECK_OLD, *wants),
        "torchvision/image.so": extension(needs=("libc10.so", "libtorch.so", "libtorch_cpu.so")),
    }, "numpy", f"torch=={torch}", "pillow!=8.3.*,>=5.3.0")


@pytest.mark.parametrize(("torch", "local", "version", "built_for", "right"), [
    ("2.4.0", "+cu121", "0.20.1+cu124", "2.5.1", "0.19.0"), ("2.4.0", "", "0.20.1", "2.5.1", "0.19.0"),
    ("2.3.1", "", "0.20.1", "2.5.1", "0.18.1"),
])
def test_torchvision_hides_what_the_loader_says(torch: str, local: str, version: str, built_for: str, right: str,
                                                tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), torch, local=local)
    if torch == "2.4.0":
        install(world, "xformers", "0.0.27.post2", {"xformers/_C.so": extension(CHECK_OLD)}, "torch==2.4.0")
    assert is_clean(say, world)
    judged = judge(say, install_vision(world, version, built_for, SET_TRACING))
    assert (judged.status, judged.codes) == (1, ["SF501"])
    finding = judged.only("SF501")
    assert (finding["kind"], finding["severity"]) == ("abi-mismatch", "error")
    assert finding["culprit"] == {"path": world.inside(VISION), "package": f"torchvision {version}", "variable": None}
    assert finding["symbols"] == [SET_TRACING]
    assert finding["error"] == "RuntimeError: operator torchvision::nms does not exist"
    hidden = f"{VISION}: undefined symbol: {SET_TRACING}"
    assert any(hidden in each for each in finding["evidence"])          # what the message hides
    assert hidden in really(world, VISION)
    assert f"requires torch=={built_for}" in finding["summary"]
    assert ("its symbols are those of torch 2.5 or newer: at::SavedTensorDefaultHooks::set_tracing(bool)"
            in finding["evidence"])
    assert any(f"torchvision=={right}" in each for each in finding["cure"])
    assert any(f"stackfix lock --torch {built_for} --with torchvision==0.20.1" in each for each in finding["cure"])
    # the release for this torch asks for what there is
    assert is_clean(say, install_vision(world, right, torch))


def test_the_same_message_has_another_cause(tmp_path: Path, say: Say) -> None:
    """Beside a torch for the CPU the loader misses a CUDA library, not a symbol."""
    world = install_cpu_torch(World(tmp_path), "2.5.1+cpu")
    judged = judge(say, install_vision(world, "0.20.1", "2.5.1"))
    assert judged.status == 1
    finding = judged.only("SF502")
    assert finding["error"] == "RuntimeError: operator torchvision::nms does not exist"
    assert finding["symbols"] == []


# --- mistralai/mistral-inference#59: a torch for the CPU satisfies torch==2.1.0 ---

XFORMERS = "xformers/_C.so"


def install_cpu_torch(world: World, version: str) -> World:
    """torch of the index for the CPU."""
    optional = C10_OPTIONAL if version.startswith("2.1") else STD_OPTIONAL
    own = {"libc10.so": lib(offers=(STATE, CHECK_OLD)),
           "libtorch_cpu.so": lib(needs=("libc10.so",), offers=(optional,)),
           "libtorch.so": lib(needs=("libtorch_cpu.so",)), "libshm.so": lib(needs=("libtorch_cpu.so",)),
           "libtorch_python.so": lib(needs=("libshm.so", "libtorch.so")), "libtorch_global_deps.so": lib()}
    files = {f"torch/lib/{name}": replace(library, rpath="$ORIGIN") for name, library in own.items()}
    files[f"torch/_C.{TAG}"] = lib(needs=("libtorch_python.so",), rpath="$ORIGIN/lib")
    return install(world, "torch", version, files)


@pytest.mark.parametrize(("torch", "cuda", "xformers"), [
    ("2.1.0", "12.1", "0.0.22.post7"), ("2.4.1", "12.1", "0.0.28"), ("2.5.1", "12.1", "0.0.28.post3"),
])
def test_xformers_for_cuda_beside_a_cpu_torch(torch: str, cuda: str, xformers: str, tmp_path: Path, say: Say) -> None:
    world = install_cpu_torch(World(tmp_path), f"{torch}+cpu")
    assert is_clean(say, world)
    device = set_device(torch)
    judged = judge(say, install(world, "xformers", xformers, {XFORMERS: extension(CHECK_OLD, device)},
                                f"torch=={torch}"))
    assert (judged.status, judged.codes) == (1, ["SF502"])
    finding = judged.only("SF502")
    assert (finding["kind"], finding["severity"]) == ("cuda-extension-on-cpu-torch", "error")
    assert finding["culprit"] == {"path": None, "package": f"torch {torch}+cpu", "variable": None}
    assert finding["requester"] == {"path": world.inside(XFORMERS), "package": f"xformers {xformers}"}
    assert finding["symbols"] == [device]
    assert finding["error"].startswith("WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.")
    for name in ("libcudart.so.12", "libc10_cuda.so", "libtorch_cuda.so"):
        assert name in finding["why"]
    assert f"torch=={torch} takes the CPU build for satisfied" in finding["why"]
    assert finding["cure"][0].startswith(f"stackfix lock --torch {torch} --cuda ")      # names the CUDA build
    assert f"--with xformers=={xformers}" in finding["cure"][0]
    assert not any("no-deps xformers" in each for each in finding["cure"])              # torch is to be replaced
    with_cuda = install_torch(World(tmp_path / "cuda"), torch, local="" if torch == "2.5.1" else f"+cu{cuda[:2]}1")
    assert is_clean(say, install(with_cuda, "xformers", xformers, {XFORMERS: extension(CHECK_OLD, device)},
                                 f"torch=={torch}"))


def test_xformers_that_was_built_without_its_extension(tmp_path: Path, say: Say) -> None:
    """Its RECORD has no _C.so: nothing was deleted, and no system package has it."""
    world = install_torch(World(tmp_path), "2.1.2")
    judged = judge(say, install(world, "xformers", "0.0.23.post1", {}, "torch==2.1.2"))
    finding = judged.only("SF401")
    assert finding["culprit"] == {"path": world.inside(XFORMERS), "package": "xformers 0.0.23.post1", "variable": None}
    assert [each.partition(" install ")[2] for each in finding["cure"]] == [
        "--force-reinstall --no-deps xformers==0.0.23.post1"]
    assert not finding["repairable"]


# --- Zymrael/savanna#5: flash-attn was built, then another requirement moved torch ---

@pytest.mark.parametrize(("before", "after", "flash"), [("2.6.0", "2.7.0", "2.7.4.post1"), ("2.5.1", "2.7.1", "2.7.3")])
def test_flash_attn_built_before_torch_moved(before: str, after: str, flash: str, tmp_path: Path, say: Say) -> None:
    wants = (CHECK_OLD, set_device(before))

    def built(world: World) -> World:
        world.wheel("einops", "0.8.0")
        return install(world, "flash-attn", flash, {FLASH: extension(*wants)}, "torch", "einops")

    assert is_clean(say, built(install_torch(World(tmp_path / "before"), before)))
    world = built(install_torch(World(tmp_path / "after"), after))
    judged = judge(say, world)
    assert (judged.status, judged.codes) == (1, ["SF501"])
    finding = judged.only("SF501")
    assert finding["culprit"] == {"path": world.inside(FLASH), "package": f"flash-attn {flash}", "variable": None}
    assert finding["symbols"] == [CHECK_OLD]
    line = f"{FLASH}: undefined symbol: {CHECK_OLD}"
    assert bare(finding["error"]) == line
    assert line in bare(really(world, FLASH))
    assert "_GLIBCXX_USE_CXX11_ABI=0" in finding["why"]                 # torch 2.7 changed its std::string
    assert "its symbols are those of torch 2.3 to 2.7: c10::cuda::SetDevice(signed char)" in finding["evidence"]
    assert ("it asks for the old std::string; of the package index's wheels those of torch 2.3 to 2.6 have it"
            in finding["evidence"])
    assert f"stackfix lock --torch 2.6.0 --flash-attn {flash.partition('.post')[0]}" in " ".join(finding["cure"])
    assert f"--torch {after} " in finding["cure"][0]
    assert "cxx11abiTRUE" in finding["cure"][0]
    assert any("--no-build-isolation --no-cache-dir" in each for each in finding["cure"])


@pytest.mark.parametrize(("torch", "right"), [("2.6.0", "2.6.0"), ("2.7.0", "2.7.0")])
def test_a_torchaudio_that_names_no_torch(torch: str, right: str, tmp_path: Path, say: Say) -> None:
    """With a constraint on torch alone a resolver takes torchaudio 2.11, which states nothing."""
    needs = ("libc10.so", "libtorch.so", "libtorch_cpu.so")
    libraries = ("torchaudio/lib/_torchaudio.so", "torchaudio/lib/libtorchaudio.so")
    world = install_torch(World(tmp_path), torch)
    judged = judge(say, install(world, "torchaudio", "2.11.0", {
        each: extension("aoti_torch_abi_version", needs=needs) for each in libraries}))
    assert (judged.status, judged.codes) == (1, ["SF501"])
    finding = judged.only("SF501")
    assert finding["culprit"]["package"] == "torchaudio 2.11.0"
    assert finding["culprit"]["path"] in {world.inside(each) for each in libraries}
    assert finding["symbols"] == ["aoti_torch_abi_version"]
    if torch == "2.6.0":
        assert finding["summary"].endswith("its symbols are those of torch 2.7 or newer: aoti_torch_abi_version")
    assert bare(finding["error"]).endswith("undefined symbol: aoti_torch_abi_version")
    assert any(f"torchaudio=={right}" in each for each in finding["cure"])
    assert is_clean(say, install(world, "torchaudio", right, {each: extension(needs=needs) for each in libraries},
                                 f"torch=={right}"))


def test_names_of_setdevice_by_release() -> None:
    """The reports turn on it: which torch has which."""
    assert [set_device(each) for each in ("2.1.2", "2.2.2", "2.3.0", "2.7.0", "2.8.0")] == [
        SET_DEVICE + each for each in ("i", "i", "a", "a", "ab")]
