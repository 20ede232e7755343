"""`stackfix abi` as a command line: what it takes, what it says with which exit status, and that it changes nothing.

The almanac is ours: SetDevice takes an int up to torch 2.2, a signed char from 2.3 to 2.7, and a bool too from 2.8.
"""

from __future__ import annotations

import json
import os
import pty
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli_world import Say
from tests.diagnose_world import World, elf_bytes, lib
from tests.inspect_trees import make_wheel
from tests.judges.command import clean_environment
from tests.loader_oracle.graph import Library
from tests.test_cli_check import shape_differences, snapshot
from tests.test_project_imports import HEAVY, loaded_by

SET_22, SET_23, SET_28 = (f"_ZN3c104cuda9SetDeviceE{each}" for each in ("i", "a", "ab"))
FAIL_OLD = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
FAIL_NEW = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
MODULE = "ext/_C.cpython-311-x86_64-linux-gnu.so"
NEEDS = ("libc10_cuda.so", "libc10.so", "libcudart.so.12", "libc.so.6")
CUDART = "libcudart.so.12"
OURS = ("LD_", "CUDA", "NVIDIA", "CONDA", "VIRTUAL_ENV", "PYTHON", "STACKFIX_")
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of this machine, an empty current folder, and no network."""
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("abi opened a socket")

    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(socket, "socket", refuse)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)


@pytest.fixture
def tree(tmp_path: Path) -> World:
    """torch 2.3.1 for CUDA 12.1 with the old std::string, and an extension for it."""
    made = World(tmp_path / "tree")
    made.wheel("torch", "2.3.1+cu121", {
        "torch/lib/libc10.so": lib(offers=(FAIL_OLD,)), "torch/lib/libc10_cuda.so": lib(
            offers=(SET_23,), needs=(CUDART, "libc10.so")),
        "torch/version.py": "__version__ = '2.3.1+cu121'\ncuda: Optional[str] = '12.1'\nhip: Optional[str] = None\n"})
    made.wheel("nvidia-cuda-runtime-cu12", "12.1.105", {f"nvidia/cuda_runtime/lib/{CUDART}": lib(
        offers=(f"cudaMalloc@{CUDART}",))})
    made.wheel("ext", "1.0", {MODULE: lib(wants=(SET_23, FAIL_OLD, f"cudaMalloc@{CUDART}"), needs=NEEDS)},
               requires=("torch",))
    return made


def of(tree: World) -> tuple[str, ...]:
    return ("--root", str(tree.folder), "--prefix", tree.prefix)


def wheel_of(name: str, version: str, library: Library, *, file: str = MODULE, requires: tuple[str, ...] = (),
             tag: str = "cp311-cp311-manylinux_2_28_x86_64") -> Path:
    """A wheel with one library, in the current folder."""
    return make_wheel(Path.cwd(), name, version, {file: elf_bytes(f"/x/{file}", library)}, requires=requires, tag=tag)


def axes(document: Any) -> dict[str, str]:
    return {each["name"]: each["verdict"] for each in document["fit"]["axes"]}


# --- what it says ---


def test_a_package_that_fits(tree: World, say: Say) -> None:
    before = snapshot(tree.folder)
    said = say("abi", "ext", *of(tree))
    assert (said.status, said.err) == (0, ""), said
    assert said.out.startswith("ext 1.0 can load with torch 2.3 to 2.7 (the index's wheels: 2.3 to 2.6)\n")
    assert "C++ ABI       the old std::string" in said.out
    assert f"fits torch 2.3.1+cu121 in {tree.prefix}" in said.out
    document = say("abi", "ext", *of(tree), "--json").json
    assert document["torch"]["minors"] == ["2.3", "2.4", "2.5", "2.6", "2.7"]
    assert document["torch"]["index_minors"] == ["2.3", "2.4", "2.5", "2.6"]
    assert (document["cuda"], document["python"], document["torch"]["string_abi"]) == ([12], ["cp311"], "old")
    assert document["fit"]["verdict"] == "fits"
    assert axes(document) == dict.fromkeys(("torch", "C++ ABI", "CUDA", CUDART, "Python", "machine"), "fits")
    assert document["fit"]["host"]["torch"] == {
        "version": "2.3.1+cu121", "installed": True, "string_abi": "old", "cuda": "12.1",
        "folders": [f"{tree.site}/torch/lib"]}
    assert {(each["soname"], each["name"]) for each in document["calls"]} == {(CUDART, "cudaMalloc")}
    assert snapshot(tree.folder) == before


def test_the_document_has_the_shape_that_the_page_shows(tree: World, say: Say) -> None:
    page = (ROOT / "docs" / "abi.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("## `--json`")[2].partition("```json\n")[2].partition("```")[0])
    tree.wheel("ext", "1.0", {MODULE: lib(wants=(SET_28, FAIL_NEW, f"cudaMalloc@{CUDART}"), needs=NEEDS),
                              "ext/bad.so": "no ELF"}, requires=("torch>=2.7",))
    real = say("abi", "ext", *of(tree), "--json").json
    for document in (shown, real):
        document["fit"]["host"]["nvidia"] = {}
    assert [key for key in ("calls", "libraries", "claims", "nearest", "notes") if not real[key]] == []
    assert list(shape_differences(shown, real)) == []


def test_one_that_does_not_fit_names_the_symbols_and_what_would(tree: World, say: Say) -> None:
    tree.wheel("ext", "1.0", {MODULE: lib(wants=(SET_28, FAIL_NEW), needs=NEEDS)}, requires=("torch",))
    said = say("abi", "ext", *of(tree))
    assert (said.status, said.err) == (1, ""), said
    assert "does not fit torch 2.3.1+cu121" in said.out
    assert "c10::cuda::SetDevice(signed char, bool)" in said.out
    assert "was compiled with the new one, torch with the old one" in said.out
    assert re.search(r"nearest +torch 2\.8\.0.*\n +stackfix lock --torch 2\.8\.0 .*--with ext==1\.0", said.out)
    document = say("abi", "ext", *of(tree), "--json").json
    torch = next(each for each in document["fit"]["axes"] if each["name"] == "torch")
    assert [each["name"] for each in torch["missing"]] == [SET_28, FAIL_NEW]
    assert torch["missing"][0]["file"] == MODULE
    quiet = say("abi", "ext", *of(tree), "-q")
    assert quiet.status == 1
    assert "SetDevice" in quiet.out
    assert "Python" not in quiet.out
    assert len(quiet.out) < len(said.out) / 2


def test_what_its_metadata_pin_is_what_a_lock_is_asked_for(tree: World, say: Say) -> None:
    """torchaudio 2.4.0 requires torch==2.4.0: the newest 2.4 would be refused."""
    for requires, text in ((("torch==2.8.0",), "lock --torch 2.8.0 "), (("torch==2.9.0",), "lock --torch 2.9.0 "),
                           (("torch==2.8.0; sys_platform == 'darwin'", "torch>=2.10"), "lock --torch 2.10.0 ")):
        tree.wheel("ext", "1.0", {MODULE: lib(wants=(SET_28, FAIL_NEW), needs=NEEDS)}, requires=requires)
        assert text in say("abi", "ext", *of(tree)).out
    tree.wheel("ext", "1.0", {MODULE: lib(wants=(SET_28, FAIL_NEW), needs=NEEDS)}, requires=("torch<2.3",))
    [nearest] = say("abi", "ext", *of(tree), "--json").json["nearest"]
    assert (nearest["version"], nearest["command"]) == ("2.8.0", None)


def test_no_lock_is_told_of_a_build_that_is_on_another_index(tree: World, say: Say) -> None:
    """torch 2.6.0+cu126 has the new std::string and is nearer than 2.7.1: but it cannot be locked."""
    tree.wheel("ext", "1.0", {MODULE: lib(wants=(SET_23, FAIL_NEW), needs=NEEDS)}, requires=("torch",))
    assert "stackfix lock --torch 2.7.1" in say("abi", "ext", *of(tree)).out


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_check_names_the_same_releases_with_the_same_commands(tree: World, say: Say, installer: str) -> None:
    """torchaudio 2.8.0 beside torch 2.3.1."""
    module = lib(wants=(SET_28,), needs=NEEDS, runpath="$ORIGIN/../../torch/lib")
    tree.wheel("torchaudio", "2.8.0", {"torchaudio/lib/_torchaudio.so": module}, requires=("torch==2.8.0",),
               installer=installer)
    abi = say("abi", "torchaudio", *of(tree), "--json").json
    assert abi["fit"]["verdict"] == "does not fit"
    found = [each["command"] for each in abi["nearest"]]
    checked = say("check", "--root", str(tree.folder), "--prefix", tree.prefix, "--json").json
    [finding] = [each for each in checked["findings"] if each["code"] == "SF501"
                 and each["culprit"]["package"] == "torchaudio 2.8.0"]
    assert [each.partition("  #")[0] for each in finding["cure"]] == found
    assert found[0].startswith("uv pip install --python /venv/bin/python --no-deps" if installer == "uv" else
                               "/venv/bin/python -m pip install --no-deps")


CUBLAS, CUDNN = "libcublas.so.12", "libcudnn.so.9"


def test_a_library_that_torch_pins_says_so(tree: World, say: Say) -> None:
    """torch 2.3.1's metadata want cuBLAS 12.1.3.1; cublasSgemmGroupedBatched came with 12.4.2.65."""
    pin = "nvidia-cublas-cu12==12.1.3.1"
    tree.wheel("nvidia-cublas-cu12", "12.1.3.1", {
        f"nvidia/cublas/lib/{CUBLAS}": lib(offers=(f"cublasCreate_v2@{CUBLAS}",))})
    tree.wheel("ext", "1.0", {MODULE: lib(wants=(f"cublasSgemmGroupedBatched@{CUBLAS}",), needs=(CUBLAS,))})
    [free] = say("abi", "ext", *of(tree), "--json").json["nearest"]
    assert free["command"] == "/venv/bin/python -m pip install --no-deps 'nvidia-cublas-cu12==12.4.2.65'"
    tree.wheel("pins", "1.0", {"pins.py": ""}, requires=(f"{pin} ; platform_system == 'Linux'",))
    [pinned] = say("abi", "ext", *of(tree), "--json").json["nearest"]
    assert pinned["command"] == f"{free['command']}  # pins 1.0 requires {pin}"


def test_a_library_that_asks_more_of_the_others_than_they_have_is_not_named(tree: World, say: Say) -> None:
    """cuSPARSE has cusparseSpMV_preprocess since 12.3.0.142, and asks nvJitLink since then for what 12.4.99 has."""
    soname, jit = "libcusparse.so.12", "libnvJitLink.so.12"
    tree.wheel("nvidia-cusparse-cu12", "12.1.0.106", {f"nvidia/cusparse/lib/{soname}": lib()})
    tree.wheel("ext", "1.0", {MODULE: lib(wants=(f"cusparseSpMV_preprocess@{soname}",), needs=(soname,))})
    for version, named in (("12.4.127", ["12.3.0.142"]), ("12.1.105", [])):
        tree.wheel("nvidia-nvjitlink-cu12", version, {f"nvidia/nvjitlink/lib/{jit}": lib()})
        found = say("abi", "ext", *of(tree), "--json").json
        assert found["fit"]["host"]["nvidia"]["nvidia-nvjitlink-cu12"] == version
        assert [each["version"] for each in found["nearest"]] == named
        tree.host(f"{tree.site}/nvidia_nvjitlink_cu12-{version}.dist-info/METADATA").unlink()


def test_a_library_that_torch_cannot_do_without_is_not_exchanged(tree: World, say: Say) -> None:
    """torch 2.3.1 is linked against libcudnn.so.8, which no release has beside libcudnn.so.9."""
    tree.wheel("nvidia-cudnn-cu12", "8.9.2.26", {"nvidia/cudnn/lib/libcudnn.so.8": lib(offers=("cudnnCreate",))})
    tree.wheel("ext", "1.0", {MODULE: lib(wants=(SET_23, FAIL_OLD, f"cudnnCreate@{CUDNN}"), needs=(*NEEDS, CUDNN))})
    document = say("abi", "ext", *of(tree), "--json").json
    assert axes(document)["cuDNN"] == axes(document)[CUDNN] == "does not fit"
    assert [(each["package"], each["command"]) for each in document["nearest"]] == [
        ("torch", "stackfix lock --torch 2.4.1 --with ext==1.0")]


def test_quiet_says_nothing_of_what_fits(tree: World, say: Say) -> None:
    assert (say("abi", "ext", *of(tree), "-q").status, say("abi", "ext", *of(tree), "-q").out) == (0, "")


@pytest.mark.parametrize(("release", "status", "verdict"), [
    ("2.3", 0, "fits"), ("2.4.0", 0, "fits"), ("2.6.0", 0, "fits"), ("2.7", 1, "does not fit"),
    ("2.2.2", 1, "does not fit"), ("2.99", 0, "cannot tell"), ("2.6.0+mine", 0, "cannot tell"),
    ("2.6.0+cu118", 1, "does not fit"), ("2.6.0+cu126", 1, "does not fit"), ("2.3.1+cu121", 0, "fits"),
    ("2.3.1+cpu", 1, "does not fit"),
])
def test_a_release_may_be_asked_about_in_the_environments_place(release: str, status: int, verdict: str, tree: World,
                                                               say: Say) -> None:
    module = tree.host(f"{tree.site}/{MODULE}")
    target = Path.cwd() / "_C.cpython-311-x86_64-linux-gnu.so"
    target.write_bytes(module.read_bytes())
    said = say("abi", f"./{target.name}", "--torch", release, "--json")
    assert (said.status, said.err) == (status, ""), said
    assert said.json["fit"]["verdict"] == verdict
    assert said.json["fit"]["host"]["prefix"] is None


@pytest.mark.parametrize(("release", "cuda", "cublas", "cudnn", "nearest"), [
    ("2.3", "12.1", "does not fit", "does not fit", ["2.4.1"]), ("2.4", "12.1", "does not fit", "fits", []),
    ("2.6", "12.4", "fits", "fits", []), ("2.6.0+cpu", "cpu", None, None, ["2.6.0"]),
])
def test_a_release_is_asked_about_with_the_libraries_that_it_pins(
        release: str, cuda: str, cublas: str | None, cudnn: str | None, nearest: list[str], say: Say) -> None:
    """cuDNN 8.9 and cuBLAS 12.1.3.1 of torch 2.3.1; torch 2.4.1 has cuDNN 9, and 2.5.1 the cuBLAS too."""
    path = wheel_of("ext", "1.0", lib(needs=(*NEEDS, CUBLAS, CUDNN), wants=(
        SET_23, FAIL_OLD, f"cublasSgemmGroupedBatched@{CUBLAS}", f"cudnnCreate@{CUDNN}")))
    said = say("abi", path.name, "--torch", release, "--json")
    assert said.json["fit"]["host"]["torch"]["cuda"] == cuda
    found = axes(said.json)
    assert (found.get(CUBLAS), found.get("cuDNN"), found.get(CUDNN)) == (cublas, cudnn, cudnn)
    assert [each["version"] for each in said.json["nearest"]] == nearest
    assert CUDART not in found       # nothing is called of it


def test_a_release_whose_toolkit_pins_its_libraries(say: Say) -> None:
    """torch 2.13.0 requires cuda-toolkit[cublas,…]==13.0.3: CUDA 13.0.3 has cuBLAS 13.1.1.3."""
    path = wheel_of("ext", "1.0", lib(needs=("libcublas.so.13",), wants=("cublasCreate_v2@libcublas.so.13",)))
    document = say("abi", path.name, "--torch", "2.13", "--json").json
    nvidia = document["fit"]["host"]["nvidia"]
    assert (nvidia["nvidia-cublas"], nvidia["nvidia-cudnn-cu13"], nvidia["nvidia-cuda-runtime"]) == (
        "13.1.1.3", "9.20.0.48", "13.0.96")
    assert "nvidia-nvjitlink" not in nvidia
    assert axes(document) == {"CUDA": "fits", "libcublas.so.13": "fits"}
    twelve = say("abi", path.name, "--torch", "2.3", "--json").json
    assert axes(twelve) == {"CUDA": "cannot tell"}


def test_a_wheel_whose_name_and_metadata_lie(say: Say) -> None:
    path = wheel_of("flash_attn", "2.5.8", lib(wants=(SET_28, FAIL_NEW), needs=NEEDS), requires=("torch>=2.7",))
    lying = path.with_name("flash_attn-2.5.8+cu118torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl")
    path.rename(lying)
    said = say("abi", lying.name, "--torch", "2.8")
    assert said.status == 0, said
    assert "but its file name says torch 2.4 (torch2.4), its symbols say torch 2.8 to" in said.out
    assert "but its file name says the old std::string (cxx11abiFALSE), its symbols say the new std::string" in said.out
    assert "but its file name says CUDA 11 (cu118), its symbols say CUDA 12" in said.out
    assert "but its metadata (torch>=2.7) admits torch 2.7, which cannot load it" in said.out
    document = say("abi", lying.name, "--torch", "2.8", "--json").json
    assert [each["holds"] for each in document["claims"]].count(False) == 4
    assert document["subject"]["file_name"] == lying.name


def test_symbols_that_no_release_has(say: Say) -> None:
    path = wheel_of("ext", "1.0", lib(wants=(SET_23, "_ZN3c1011from_a_forkEv"), needs=NEEDS))
    said = say("abi", path.name, "--torch", "2.3")
    assert said.status == 1
    assert said.out.startswith("ext 1.0 cannot load with any torch that is known: no release has 1 of the 2 symbols")
    assert "c10::from_a_fork()" in said.out


def test_a_library_that_a_single_file_lacks_is_told(tree: World, say: Say) -> None:
    """torchaudio's modules name no folder: alone they cannot be judged, beside their library they can."""
    own = "_ZN10torchaudio3sox5applyEN2at6TensorE"
    tree.library("/x/_audio.so", lib(wants=(SET_23, own), needs=("libaudio.so", *NEEDS)))
    alone = say("abi", "/x/_audio.so", *of(tree), "--json").json
    assert alone["torch"]["unknown"] == []      # torchaudio's own namespace
    assert axes(alone) | {"machine": ""} == dict.fromkeys(("torch", "CUDA"), "fits") | {
        "other projects": "cannot tell", "needs": "cannot tell", "machine": ""}
    assert next(each["needs"] for each in alone["fit"]["axes"] if each["name"] == "needs") == "libaudio.so"
    assert ["libaudio.so, not found beside it" in each["reason"] for each in alone["notes"]] == [True]
    tree.library("/x/libaudio.so", lib(offers=(own,)))
    beside = say("abi", "/x/_audio.so", *of(tree), "--json").json
    assert (beside["torch"]["unknown"], beside["notes"], beside["fit"]["verdict"]) == ([], [], "fits")


def test_what_asks_nothing_of_torch_and_what_has_no_compiled_file(tree: World, say: Say) -> None:
    tree.wheel("plain", "1.0", {"plain/_C.so": lib(needs=("libc.so.6",))}).wheel("pure", "1.0", {"pure.py": ""})
    assert say("abi", "plain", *of(tree)).out.startswith("plain 1.0 asks nothing of torch\n")
    pure = say("abi", "pure", *of(tree))
    assert (pure.status, pure.out.splitlines()[0]) == (
        0, "pure 1.0 has no compiled file: there is nothing that a symbol could tell")
    assert say("abi", "pure", *of(tree), "--json").json["fit"] is None


def test_without_torch_the_facts_alone(tmp_path: Path, say: Say) -> None:
    """An environment that nobody named and that has no torch is compared with nothing, whatever its Python."""
    bare = World(tmp_path / "bare")
    path = wheel_of("ext", "1.0", lib(wants=(SET_23,), needs=NEEDS), tag="cp39-cp39-linux_x86_64",
                    file="ext/_C.cpython-39-x86_64-linux-gnu.so")
    said = say("abi", path.name, "--root", str(bare.folder), "--env", f"VIRTUAL_ENV={bare.prefix}", "--json")
    assert (said.status, said.json["fit"]) == (0, None)
    named = say("abi", path.name, *of(bare), "--json")
    assert (named.status, axes(named.json)["Python"]) == (1, "does not fit")
    assert "torch" not in axes(named.json)


def test_a_place_without_any_environment_is_noted(tmp_path: Path, say: Say) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    path = wheel_of("ext", "1.0", lib(wants=(SET_23,), needs=NEEDS))
    said = say("abi", path.name, "--root", str(empty), "--json")
    assert (said.status, said.json["fit"]) == (0, None)
    assert any("no environment" in each["reason"] for each in said.json["notes"])
    assert say("abi", path.name, "--root", str(empty), "--prefix", "/venv").status == 2


def test_every_symbol_is_listed_where_it_is_asked_for(tree: World, say: Say) -> None:
    said = say("abi", "ext", *of(tree), "--symbols")
    assert re.search(r"2\.3 to 2\.7 +c10::cuda::SetDevice\(signed char\)", said.out)
    document = say("abi", "ext", *of(tree), "--symbols", "--json").json
    assert {each["name"] for each in document["symbols"]} == {SET_23, FAIL_OLD}
    assert say("abi", "ext", *of(tree), "--json").json["symbols"] is None


def test_verbose_says_the_names_as_the_file_has_them(tree: World, say: Say) -> None:
    said = say("abi", "ext", *of(tree), "-v")
    assert SET_23 in said.out
    assert f"in {MODULE}" in said.out
    assert "cudaMalloc" in said.out
    assert SET_23 not in say("abi", "ext", *of(tree)).out


def test_libraries_of_an_environment_are_asked_for_what_is_called(tree: World, say: Say) -> None:
    tree.wheel("ext", "1.0", {MODULE: lib(wants=(SET_23, f"cudaNever@{CUDART}"), needs=NEEDS)})
    document = say("abi", "ext", *of(tree), "--json").json
    assert axes(document)[CUDART] == "does not fit"
    assert next(each for each in document["fit"]["axes"] if each["name"] == CUDART)["missing"][0]["name"] == "cudaNever"


def test_a_conda_environment_has_its_libraries_in_lib(tmp_path: Path, say: Say) -> None:
    world = World(tmp_path / "conda", conda=True)
    info = "lib/python3.11/site-packages/torch-2.3.1.dist-info"
    world.conda("pytorch", "2.3.1", {
        "lib/libc10.so": lib(offers=(FAIL_NEW,)), "lib/libc10_cuda.so": lib(offers=(SET_23,)),
        "lib/libstdc++.so.6": lib(versions=("GLIBCXX_3.4", "GLIBCXX_3.4.33")),
        f"{info}/METADATA": "Name: torch\nVersion: 2.3.1\n",
        "lib/python3.11/site-packages/torch/version.py": "cuda = '11.8'\n"})
    path = wheel_of("ext", "1.0", lib(wants=(SET_23, FAIL_OLD), needs=NEEDS))
    document = say("abi", path.name, *of(world), "--json").json
    assert document["fit"]["host"]["torch"] | {"folders": []} == {
        "version": "2.3.1", "installed": True, "string_abi": "new", "cuda": "11.8", "folders": []}
    assert document["fit"]["host"]["libstdcxx"]["path"] == f"{world.prefix}/lib/libstdc++.so.6"
    assert axes(document)["C++ ABI"] == "does not fit"


def test_library_path_decides_which_cxx_library_is_meant(tree: World, say: Say) -> None:
    tree.library("/new/libstdc++.so.6", lib(versions=("GLIBCXX_3.4.99",)))
    document = say("abi", "ext", *of(tree), "--env", "LD_LIBRARY_PATH=/new", "--json").json
    assert document["fit"]["host"]["libstdcxx"] == {"path": "/new/libstdc++.so.6", "newest": ["GLIBCXX_3.4.99"]}


# --- what it refuses ---


@pytest.mark.parametrize(("words", "status", "text"), [
    ((), 2, "Missing argument"),
    (("none.so",), 2, "none.so: no such file"), (("./none",), 2, "./none: no such file"),
    (("../x",), 2, "../x: no such file"), (("/",), 2, "/: is a folder"), ((".",), 2, ".: is a folder"),
    (("none.whl",), 2, "none.whl: no such file"),
    (("no-such-package",), 2, "no package of that name is installed"),
    (("exte",), 2, "did you mean ext?"), (("",), 2, "is empty"), (("a\udcffb",), 2, "a\\xffb: no such file"),
    (("\x1b[31m\n.so",), 2, "\\x1b[31m\\n.so: no such file"),
    (("ext", "--torch", "nope"), 2, "is no release of torch"),
    (("ext", "--env", "x"), 2, "is not NAME=VALUE"),
    (("ext", "--prefix", "/nowhere"), 2, "/nowhere"),
    (("x.so", "--torch", "2.3", "--python", "/venv/bin/python"), 2, "leave one of them out"),
])
def test_bad_input_is_one_error(words: tuple[str, ...], status: int, text: str, tree: World, say: Say) -> None:
    named = () if "--prefix" in words or "--python" in words or not words else ("--prefix", tree.prefix)
    said = say("abi", *words, "--root", str(tree.folder), *(() if "--torch" in words and words[0] != "ext" else named))
    assert (said.status, said.out) == (status, ""), said
    assert text in said.err
    assert "Traceback" not in said.err
    assert said.err.count("error:") == 1


@pytest.mark.parametrize(("tag", "text"), [
    ("cp311-cp311-win_amd64", "is a wheel for win_amd64, and no wheel for Linux"),
    ("py3-none-macosx_11_0_arm64", "is a wheel for macosx_11_0_arm64, and no wheel for Linux"),
])
def test_a_wheel_for_another_system_is_refused(tag: str, text: str, say: Say) -> None:
    """Its .pyd and .dll files are no ELF files: that it has nothing compiled would not be true."""
    path = make_wheel(Path.cwd(), "ext", "1.0", {"ext/_C.pyd": b"MZ"}, tag=tag)
    said = say("abi", path.name)
    assert (said.status, said.out) == (2, "")
    assert text in said.err


def test_an_error_is_a_document_with_json(tree: World, say: Say) -> None:
    said = say("abi", "none.so", *of(tree), "--json")
    assert (said.status, said.err) == (2, "")
    assert said.json["error"]["code"] == "bad-input"


def test_a_package_whose_files_cannot_be_read_is_exit_3(tree: World, say: Say) -> None:
    tree.wheel("bad", "1.0", {"bad/a.so": "no ELF"})
    said = say("abi", "bad", *of(tree))
    assert (said.status, said.out) == (3, "")
    assert "none of its compiled files can be read: bad/a.so is no ELF file" in said.err


def test_what_is_odd_about_a_wheel_is_told_at_the_end(say: Say) -> None:
    path = wheel_of("ext", "1.0", lib(wants=(SET_23,), needs=NEEDS))
    path.rename("odd\x1b[31m.whl")
    said = say("abi", "odd\x1b[31m.whl", "--torch", "2.3")
    assert said.status == 0
    assert "no name of a wheel" in said.out
    assert "\x1b" not in said.out


# --- as a process ---


def in_child(*words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "stackfix", "abi", *map(str, words)], env=clean_environment(),
                          capture_output=True, text=True, check=False, timeout=60, **more)


def test_names_that_are_no_text_and_files_that_never_end(tree: World) -> None:
    site = tree.host(tree.site)
    os.mkfifo(site / "pipe.so")
    (site / "loop.so").symlink_to("loop.so")
    odd = os.fsdecode(os.fsencode(str(site)) + b"/\xff.so")
    Path(odd).write_bytes(elf_bytes("/x.so", lib(wants=(SET_23,), needs=NEEDS)))
    good = in_child(odd, "--torch", "2.3")
    assert (good.returncode, good.stderr) == (0, ""), good
    assert "\\xff.so can load with torch 2.3 to 2.7" in good.stdout
    assert json.loads(in_child(odd, "--torch", "2.3", "--json").stdout)["torch"]["minors"][0] == "2.3"
    for name, text in (("pipe.so", "not a plain file"), ("loop.so", "circle"), ("/dev/stdin", "not a plain file")):
        done = in_child(site / name, "--torch", "2.3", stdin=subprocess.PIPE)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert text in done.stderr


def test_whoever_reads_it_may_be_gone(tree: World) -> None:
    for redirect, status in ((">&-", 3), (">/dev/full", 3), ("| true", 141)):
        command = f"{sys.executable} -m stackfix abi ext --root {tree.folder} --prefix {tree.prefix} -v {redirect}"
        done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], env=clean_environment(),
                              capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
        assert done.returncode in {status, 0 if status == 141 else status}, (redirect, done)
        assert "Traceback" not in done.stderr


def test_on_a_terminal_lines_are_as_wide_as_it(tree: World) -> None:
    ours, theirs = pty.openpty()
    environment = {**clean_environment(), "TERM": "xterm", "COLUMNS": "70"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen([sys.executable, "-m", "stackfix", "abi", "ext", *of(tree)], stdout=theirs, env=environment):
        os.close(theirs)
        output = b"".join(until_the_end(ours)).decode()
    assert "\x1b[" in output
    plain = re.sub(r"\x1b\[[\d;]*m", "", output)
    assert max(len(line.rstrip()) for line in plain.splitlines() if "(" not in line) <= 70


def until_the_end(descriptor: int) -> Iterator[bytes]:
    with suppress(OSError):     # the other end was closed
        while part := os.read(descriptor, 4096):
            yield part
    os.close(descriptor)


def test_nothing_heavy_is_loaded(tree: World) -> None:
    for option in ("--json", "-v"):
        loaded = loaded_by(
            "import runpy",
            f"sys.argv = ['stackfix', 'abi', 'ext', '--root', {str(tree.folder)!r}, '--prefix', '/venv', {option!r}]",
            "runpy.run_module('stackfix', run_name='__main__')")
        assert "stackfix" in loaded
        assert loaded & {*HEAVY, "asyncio", "concurrent", "http", "logging", "socket", "ssl", "zipfile"} == set()


def test_damaged_libraries_of_torch_leave_the_answer_to_the_almanac(tree: World, say: Say) -> None:
    tree.host(f"{tree.site}/torch/lib/libc10_cuda.so").write_bytes(b"\x7fELF")
    document = say("abi", "ext", *of(tree), "--json").json
    torch = next(each for each in document["fit"]["axes"] if each["name"] == "torch")
    assert "2.3.1" in torch["reason"]
    assert torch["verdict"] in {"fits", "cannot tell"}
