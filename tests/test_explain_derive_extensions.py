"""Extensions: whose a file is by its path, and which releases are for which torch by the matrix's files."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive.companions import flash_attn, pair, xformers_built
from stackfix.explain.derive.extension_names import MODULES, extension_name
from stackfix.explain.derive.extensions import extension, releases_for
from stackfix.explain.derive.pins import linux_builds
from stackfix.explain.derive.requesters import requester
from stackfix.explain.derive.torch_rows import compiled_module, torch_row
from stackfix.explain.derive.torch_symbols import torch_symbol
from stackfix.explain.records import Fields
from stackfix.matrix.records import TorchBuild
from stackfix.matrix.toml_files import matrix_directory, parse_toml

FACTS = MatrixFacts(None)
SET_DEVICE = "_ZN3c104cuda9SetDeviceEi"
OPTIONAL = "_ZN2at4_ops15to_dtype_layout4callERKNS_6TensorEN3c108optionalINS5_10ScalarTypeEEE..."


@cache
def toml(name: str) -> dict[str, Any]:
    return parse_toml(name, (matrix_directory() / name).read_bytes())


def build(version: str, cuda: str) -> TorchBuild:
    return next(each for each in linux_builds(FACTS) if (each.version, each.cuda) == (version, cuda))


def derived(path: str, symbol: str, **context: str) -> Fields:
    fields = {"requester": path, "symbol": symbol, **context}
    fields = {**requester(fields, FACTS), **torch_symbol(fields, FACTS), **fields}
    return {**fields, **extension(fields, FACTS)}


# --- whose a file is ---

@pytest.mark.parametrize(("path", "project"), [
    ("flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so", "flash-attn"), ("flash_attn_2_cuda...so", "flash-attn"),
    ("/e/lib/python3.9/site-packages/flash_attn_2_cuda.cpython-39-x86_64-linux-gnu.so", "flash-attn"),
    ("vllm/_C.cpython-310-x86_64-linux-gnu.so", "vllm"), ("/e/site-packages/vllm/_C.abi3.so", "vllm"),
    ("/e/dist-packages/vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "vllm"), (".../xformers/_C.so", "xformers"),
    ("/e/site-packages/torchvision/image.so", "torchvision"),
    ("/e/site-packages/torchaudio/lib/_torchaudio.so", "torchaudio"),
    ("/e/site-packages/torchaudio/lib/libtorchaudio.so", "torchaudio"),
    ("/e/site-packages/torch_scatter/_scatter_cuda.so", "torch-scatter"),
    ("/e/site-packages/mmcv/_ext.cpython-38-x86_64-linux-gnu.so", "mmcv"),
    ("/e/site-packages/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so", "mamba-ssm"),
    ("amp_C.cpython-38-x86_64-linux-gnu.so", "apex"), ("/e/site-packages/libpyg.so", "libpyg"),
    ("C:\\v\\Lib\\site-packages\\torchvision\\_C.pyd", "torchvision"),
])
def test_a_path_tells_the_project(path: str, project: str) -> None:
    assert extension_name({"requester": path}, FACTS)["ext"] == project


@pytest.mark.parametrize("path", [
    "/e/site-packages/torch/lib/libtorch_cuda.so", "/e/site-packages/torch/_C.cpython-310-x86_64-linux-gnu.so",
    "/usr/lib/x86_64-linux-gnu/libfoo.so", "libtorch_cpu.so", "", "/e/site-packages/nvidia/cublas/lib/libcublas.so.12",
    "/home/u/build/libx.so", "/opt/conda/lib/libcusparse.so.12",
])
def test_what_is_torchs_or_the_systems_is_no_extension(path: str) -> None:
    assert "ext" not in extension_name({"requester": path}, FACTS)


@pytest.mark.parametrize("module", MODULES)
def test_each_module_that_lies_alone_is_known(module: str) -> None:
    found = extension_name(compiled_module({"module": module}, FACTS), FACTS)
    assert found["ext"] == MODULES[module]


def test_what_torch_compiled_itself_is_told_with_its_folder() -> None:
    path = "/home/u/.cache/torch_extensions/py310_cu121/fused_adam/fused_adam.so"
    assert extension_name({"requester": path}, FACTS) == {
        "built_here": path.rpartition("/")[0], "built_name": "fused_adam", "ext_shown": "fused_adam"}


@pytest.mark.parametrize(("path", "expected"), [
    ("/scratch/pip-build-env-x1/overlay/lib/python3.10/site-packages/nvidia/cusparse/lib/libcusparse.so.12",
     {"build_folder": "/scratch/pip-build-env-x1/overlay", "build_tool": "pip", "runpath_file": "libcusparse.so.12"}),
    ("/home/u/.cache/uv/builds-v0/.tmpAb1/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so",
     {"build_folder": "/home/u/.cache/uv/builds-v0/.tmpAb1", "build_tool": "uv", "rpath": "yes", "torch_file": "yes"}),
    ("/opt/conda/lib/libcusparse.so.12", {"conda_file": "yes", "conda_root": "/opt/conda"}),
    ("/home/u/miniconda3/envs/a/lib/libx.so", {"conda_file": "yes", "conda_root": "/home/u/miniconda3/envs/a"}),
    ("/w/.pixi/envs/default/lib/libx.so", {"conda_file": "yes", "conda_root": "/w/.pixi/envs/default"}),
    ("/usr/local/cuda-12.2/lib64/libcusparse.so.12",
     {"toolkit_file": "yes", "toolkit_folder": "/usr/local/cuda-12.2/lib64"}),
    ("/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda/12.4/lib64/libx.so", {"toolkit_file": "yes"}),
    ("/e/lib/python3.9/site-packages/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12",
     {"wheel_folder": "nvidia/cusparse/lib", "runpath_file": "libcusparse.so.12",
      "site": "/e/lib/python3.9/site-packages"}),
    ("/e/lib/python3.9/site-packages/torch/lib/../../../../libcublas.so.11", {"who": "libcublas.so.11"}),
    ("x.cpython-312-x86_64-linux-gnu.so", {"tag": "3.12"}), ("_C.abi3.so", {"abi3": "yes"}),
    (".../torch/lib/libtorch_cpu.so", {"torch_file": "yes", "who": "libtorch_cpu.so"}),
])
def test_a_place_tells_how_the_loader_looks(path: str, expected: dict[str, str]) -> None:
    found = requester({"requester": path}, FACTS)
    assert {name: found.get(name) for name in expected} == expected
    places = {"toolkit_file", "conda_file", "torch_file"} & found.keys()
    assert len(places) <= 1
    assert requester({}, FACTS) == {}


# --- which releases fit ---

def test_flash_attn_fits_by_the_names_of_its_wheels() -> None:
    rows = [(release["version"], row) for release in toml("flash_attn.toml")["release"]
            for row in release.get("wheels", ())]
    wanted = {version for version, row in rows
              if row.get("confidence") != "low" and "2.3" in row["torch"].split() and "FALSE" in row["abi"].split()
              and "3.10" in row["pythons"].split() and any(tag.startswith("12") for tag in row["cuda"].split())}
    named = re.compile(r"flash_attn-([\w.]+)\+cu12\d?torch2\.3cxx11abiFALSE-cp310-\S+x86_64")
    hashed = {match[1] for match in map(named.match, toml("flash_attn.toml").get("sha256", {})) if match}
    found = releases_for("flash-attn", build("2.3.1", "12.1"), "3.10", FACTS)
    assert wanted <= found <= wanted | hashed
    assert "2.5.7" not in found         # named for torch 2.3, and built against a nightly of it
    assert min(found, key=lambda each: [*map(int, re.findall(r"\d+", each))]) == "2.5.8"


@pytest.mark.parametrize(("torch", "cuda"), [
    ("2.2.1", "12.1"), ("2.4.0", "12.1"), ("2.6.0", "12.4"), ("2.9.0", "12.8"),
])
def test_vllm_fits_by_its_pin(torch: str, cuda: str) -> None:
    wanted = {row["version"] for row in toml("companions.toml")["vllm"]["releases"] if row["torch"] == f"=={torch}"}
    assert wanted
    assert releases_for("vllm", build(torch, cuda), None, FACTS) == wanted


def test_a_release_whose_wheel_was_read_fits_by_its_symbols_and_its_pin() -> None:
    assert releases_for("torchvision", build("2.4.0", "12.1"), None, FACTS) == {"0.19.0"}
    assert "0.19.0" not in releases_for("torchvision", build("2.4.1", "12.1"), None, FACTS)
    assert releases_for("torchvision", build("2.4.0", "11.8"), None, FACTS) == set()      # for CUDA 12


@pytest.mark.parametrize(("path", "symbol", "context", "expected"), [
    ("flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so", SET_DEVICE, {"python": "3.10"},
     {"ext_torch": "2.3.1", "ext_release": "2.5.8", "back_torch": "2.2.2"}),
    ("flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so", SET_DEVICE,
     {"python": "3.10", "torch": "2.3.0", "cuda": "12.1", "pkg_flash_attn": "2.5.7"},
     {"ext_torch": "2.3.0", "ext_release": "2.5.8", "back_torch": "2.2.2",
      "back_lock": "stackfix lock --torch 2.2.2 --cuda 12.1 --python 3.10 --flash-attn 2.5.7"}),
    ("vllm/_C.cpython-310-x86_64-linux-gnu.so", OPTIONAL, {"torch": "2.2.1", "pkg_vllm": "0.3.2"},
     {"ext_torch": "2.2.1", "ext_release": "0.4.1", "back_torch": "2.1.2", "ext_shown": "vllm 0.3.2"}),
    ("vllm/_C.cpython-310-x86_64-linux-gnu.so", OPTIONAL, {}, {"ext_torch": "2.2.1", "ext_release": "0.4.1"}),
    ("/e/site-packages/torch_scatter/_scatter_cuda.so", SET_DEVICE, {}, {"ext_torch": None, "back_torch": None}),
])
def test_what_fits_is_named_and_what_went_before(path: str, symbol: str, context: dict[str, str],
                                                 expected: dict[str, str | None]) -> None:
    found = derived(path, symbol, **context)
    assert {name: found.get(name) for name in expected} == expected
    assert found["moved"] == "yes"
    for value in filter(None, (expected.get("ext_torch"), expected.get("back_torch"))):
        assert value in found["ext_cure"]
    assert "--no-build-isolation" in found["ext_cure"] or found["ext"] == "vllm"


def test_a_name_that_tells_nothing_proposes_no_release() -> None:
    found = derived("/x/site-packages/vllm/_C.abi3.so", "_ZN2at4_ops5zeros4ca...")
    assert not {"ext_release", "back_torch", "moved"} & found.keys()


@pytest.mark.parametrize(("torch", "row"), [
    ("2.6.0", "torch==2.6.0 torchvision==0.21.0 torchaudio==2.6.0"),
    ("2.3.1", "torch==2.3.1 torchvision==0.18.1 torchaudio==2.3.1"),
])
def test_the_row_is_that_of_the_companions(torch: str, row: str) -> None:
    found = torch_row({"torch": torch}, FACTS)
    assert found["row"] == row
    for word in row.split()[1:]:
        name, _, version = word.partition("==")
        assert {"version": version, "torch": f"=={torch}"}.items() <= next(
            each for each in toml("companions.toml")[name]["releases"] if each["version"] == version).items()
    loose = [each["version"] for each in toml("companions.toml")["torchaudio"]["releases"]
             if not each.get("torch", "").startswith("==")]
    assert found["loose"] == f"torchaudio {loose[-1]}"
    assert "row" not in torch_row({}, FACTS)


# --- companions ---

def test_a_pair_that_does_not_fit_is_told_in_the_matrixs_words() -> None:
    found = pair("torchvision", {"torch": "2.4.0", "pkg_torchvision": "0.20.1"}, FACTS)
    assert found["wrong"] == "torchvision 0.20.1 requires torch==2.5.1, not 2.4.0"
    assert (found["fitting"], found["other_torch"]) == ("torchvision==0.19.0", "2.5.1")
    assert found["row_lock"] == "stackfix lock --torch 2.4.0 --cuda 12.1 --with 'torchvision==0.19.0'"
    fits = pair("torchvision", {"torch": "2.5.1", "pkg_torchvision": "0.20.1"}, FACTS)
    assert "wrong" not in fits
    assert "other_torch" not in fits


def test_without_a_torch_the_newest_pairs_are_told() -> None:
    found = pair("torchaudio", {}, FACTS)
    rows = [row for row in toml("companions.toml")["torchaudio"]["releases"] if row.get("torch", "").startswith("==")]
    assert found["pairs"].startswith(f"{rows[0]['version']} for torch {rows[0]['torch'][2:]}, ")
    assert found["row_lock"] == "stackfix lock --with torchaudio"


@pytest.mark.parametrize(("built", "local", "have", "kind"), [
    ("2.1.0", "cu121", "2.1.0+cpu", "cpu_torch"), ("2.3.0", "cu121", "2.3.0+cu118", "other_cuda"),
    ("2.5.1", "cu121", "2.4.0+cu121", "other_release"), ("2.5.1", "cu124", "2.5.0", "other_release"),
    ("2.1.0", "cu121", "2.1.0+cu121", None),
])
def test_xformers_tells_what_differs(built: str, local: str, have: str, kind: str | None) -> None:
    found = xformers_built({"built": built, "built_local": local, "have": have}, FACTS)
    kinds = {"cpu_torch", "other_cuda", "other_release"} & found.keys()
    assert kinds == ({kind} if kind else set())
    assert f"--torch {built} --cuda {local[2:4]}.{local[4]}" in found["built_lock"]


def test_xformers_for_another_cuda_of_the_same_torch_is_named() -> None:
    found = xformers_built({"built": "2.1.0", "built_local": "cu121", "have": "2.2.0+cu118"}, FACTS)
    row = next(row for row in toml("companions.toml")["xformers"]["releases"] if row.get("torch") == "==2.2.0")
    assert found["sibling"] == f"xformers=={row['version']}"
    assert (found["sibling_cuda"], found["have_cuda"], found["sibling_index"]) == (row["cuda"], "11.8", "cu118")
    assert found["sibling_lock"].startswith(f"stackfix lock --torch 2.2.0 --cuda {row['cuda']} ")
    same = xformers_built({"built": "2.1.0", "built_local": "cu121", "have": "2.2.0+cu121"}, FACTS)
    assert "fitting" in same
    assert "sibling" not in same


def test_of_vllm_the_newest_for_a_torch_is_taken_and_no_python_that_it_may_lack() -> None:
    found = derived("/e/lib/python3.10/site-packages/vllm/_C.abi3.so", SET_DEVICE, torch="2.5.1", python="3.10")
    rows = [row["version"] for row in toml("companions.toml")["vllm"]["releases"] if row["torch"] == "==2.5.1"]
    newest = max(rows, key=lambda each: [*map(int, re.findall(r"\d+", each))])
    assert found["ext_release"] == newest
    assert "--python" not in found["ext_lock"]
    kept = derived("/e/site-packages/vllm/_C.abi3.so", OPTIONAL, torch="2.2.1", python="3.10", pkg_vllm="0.3.2")
    assert kept["back_lock"].endswith("--python 3.10 --with 'vllm==0.3.2'"), "its own release is there for its Python"


def test_another_python_is_seen() -> None:
    fields = {"built": "2.3.0", "have": "2.3.0", "python_built": "3.10.15", "python_have": "3.11.6"}
    assert xformers_built(fields, FACTS)["other_python"] == "yes"
    assert "other_python" not in xformers_built({**fields, "python_have": "3.10.6"}, FACTS)


def test_flash_attn_is_proposed_for_the_torch_that_is_named_alone() -> None:
    found = flash_attn({"torch": "2.4.0", "cuda": "12.1", "python": "3.11"}, FACTS)
    newest = max(releases_for("flash-attn", build("2.4.0", "12.1"), "3.11", FACTS),
                 key=lambda each: [*map(int, re.findall(r"\d+", each))])
    assert found["flash_lock"].endswith(f"--flash-attn {newest}")
    assert "flash_fits" not in flash_attn({}, FACTS)
    assert "no wheel" in flash_attn({"torch": "1.13.1"}, FACTS)["flash_fits"]


@pytest.mark.parametrize(("path", "project"), [
    ("/workspace/vllm-0.2.0/vllm/activation_ops.cpython-310-x86_64-linux-gnu.so", "vllm"),
    ("/opt/conda/envs/vllm/lib/libother.so", None), ("/src/vllm/build/thing.so", None),
])
def test_a_checkout_is_told_by_the_folder_of_the_module(path: str, project: str | None) -> None:
    assert extension_name({"requester": path}, FACTS).get("ext") == project


@pytest.mark.parametrize(("built", "have", "kind"), [
    ("2.0.1", "2.0.1", "same_torch"), ("2.1.2", "2.1.2+cpu", "cpu_torch"), ("2.1.2", "2.2.0", "other_release"),
])
def test_what_differs_between_two_torches_of_xformers(built: str, have: str, kind: str) -> None:
    kinds = {"same_torch", "cpu_torch", "other_cuda", "other_release"}
    assert kinds & set(xformers_built({"built": built, "have": have}, FACTS)) == {kind}
