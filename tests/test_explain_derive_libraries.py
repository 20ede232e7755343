"""Libraries that are missing: their wheels, folders and torch are those of the almanac's and the matrix's files."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive.libraries import missing_library, nvrtc_release
from stackfix.explain.derive.sonames import SONAME, folders, openers, searched_since
from stackfix.explain.derive.torch_library import torch_library
from stackfix.matrix.toml_files import matrix_directory, parse_toml

FACTS = MatrixFacts(None)
FOLDER = matrix_directory()


@cache
def toml(name: str) -> dict[str, Any]:
    return parse_toml(name, (FOLDER / name).read_bytes())


@cache
def carriers() -> dict[str, set[str]]:
    """Soname -> packages of the almanac that carry it."""
    found: dict[str, set[str]] = {}
    for line in (FOLDER / "abi" / "nvidia" / "packages.tsv").read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if len(fields) == 3 and not line.startswith("#") and fields[2] != "unread":
            for soname in fields[2].split():
                found.setdefault(soname, set()).add(fields[0])
    return found


def listed(text: str) -> set[str]:
    return set(re.split(r", | or | and ", text))


@pytest.mark.parametrize("soname", sorted(carriers()))
def test_each_library_of_the_almanac_is_told_with_its_wheels(soname: str) -> None:
    told = missing_library({"soname": soname}, FACTS)
    assert listed(told["packages"]) == carriers()[soname]
    assert told["package"] in carriers()[soname]
    majors = {match[1] if (match := re.search(r"-cu(\d\d)$", each)) else "13" for each in carriers()[soname]}
    assert told.get("cuda_major") == (majors.pop() if len(majors) == 1 else None)
    assert told["file"] == soname


@pytest.mark.parametrize("family", [each for each in toml("libraries.toml")["family"] if each["level"] != "driver"],
                         ids=lambda each: str(each["name"]))
def test_each_family_is_known_by_each_of_its_names(family: dict[str, Any]) -> None:
    for stem in family["stems"].split():
        told = missing_library({"soname": f"/some/where/{stem}.so.1"}, FACTS)
        assert told["level"] == family["level"]
        assert told["library"].removeprefix("the ") == family["name"]


@pytest.mark.parametrize("soname", [
    "libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libGL.so.1", "libpython3.10.so.1.0", "libssl.so.1.1",
    "libfoo.so", "", "libc.so.6", "not a library", "libcudart",
])
def test_other_libraries_and_the_drivers_are_not_claimed(soname: str) -> None:
    assert missing_library({"soname": soname}, FACTS) == {}


@pytest.mark.parametrize("major", ["8", "9"])
def test_torch_with_a_cudnn_is_what_torch_pins(major: str) -> None:
    pins = toml("torch.toml")["pins"]
    minors = {".".join(release["version"].split(".")[:2]) for release in toml("torch.toml")["release"]
              for build in release["builds"]
              if build["platform"] == "linux-64" and "index" not in build
              and any(re.match(rf"nvidia-cudnn(-cu\d+)?=={major}\.", line)
                      for line in pins.get(build.get("pins", ""), {"lines": []})["lines"])}
    told = missing_library({"soname": f"libcudnn.so.{major}"}, FACTS)
    first, last = min(minors, key=lambda each: [*map(int, each.split("."))]), max(
        minors, key=lambda each: [*map(int, each.split("."))])
    assert told["torch_with"] == f"torch {first} to {last}"
    assert told["cudnn_major"] == major
    assert told["requirement"].endswith(f"=={major}.*")


@pytest.mark.parametrize(("torch", "cuda", "soname", "expected"), [
    ("2.1.0", "11.8", "libcudart.so.12", {"other_major": "yes", "lib_lock": "stackfix lock --torch 2.1.0 --cuda 12.1"}),
    ("2.1.0", "12.1", "libcudart.so.11.0", {"other_major": "yes"}),
    ("2.5.1", "cpu", "libcusolver.so.11", {"cpu_torch": "yes", "lib_lock": "stackfix lock --torch 2.5.1 --cuda 12.4"}),
    ("2.1.1", "12.1", "libcudnn.so.8", {"pin": "8.9.2.26", "pinned_by": "torch 2.1.1"}),
    ("2.3.0", "12.1", "libnccl.so.2", {"package": "nvidia-nccl-cu12", "pin": "2.20.5"}),
])
def test_the_torch_that_is_named_is_held_against_the_library(torch: str, cuda: str, soname: str,
                                                             expected: dict[str, str]) -> None:
    told = missing_library({"soname": soname, "torch": torch, "cuda": cuda}, FACTS)
    assert {name: told.get(name) for name in expected} == expected
    same = not {"other_major", "cpu_torch"} & expected.keys()
    assert same == (not {"other_major", "cpu_torch"} & told.keys())


def test_folders_are_those_in_which_torch_looks() -> None:
    assert folders(("libcublasLt", "libcublas"), "12", FACTS) == ("nvidia/cublas/lib",)
    assert folders(("libcublas",), "13", FACTS) == ("nvidia/cu13/lib",)
    assert folders(("libcudnn_ops_infer", "libcudnn"), "12", FACTS) == ("nvidia/cudnn/lib",)
    assert "cusparselt/lib" in folders(("libcusparseLt",), "12", FACTS)     # where 0.6.2 has it
    assert folders(("libelse",), None, FACTS) == ()


def test_since_when_torch_looks_for_a_library_is_told_by_its_lists() -> None:
    lists = {each["name"]: [*each["libraries"], *each.get("optional", [])] for each in toml("imports.toml")["preload"]}
    rows = next(group for group in toml("imports.toml")["import"] if group["project"] == "torch")["rows"]
    for stem in ("libcusparseLt", "libcufft", "libnccl"):
        having = [row["versions"] for row in rows for step in row["steps"]
                  if any(f" {stem}.so" in line for line in lists.get(step.get("preload", ""), []))]
        first = min((match[1] for each in having if (match := re.search(r"[>=]=([\d.]+)", each))),
                    key=lambda each: [*map(int, each.split("."))])
        assert searched_since(stem, FACTS) == first


@pytest.mark.parametrize("soname", sorted(carriers()))
def test_a_torch_brings_a_library_only_where_its_metadata_asks_for_the_wheel(soname: str) -> None:
    told = missing_library({"soname": soname}, FACTS)
    asked = {re.split("[ =<>;]", line)[0] for pins in toml("torch.toml")["pins"].values() for line in pins["lines"]}
    assert ("torch_with" in told) == bool(asked & carriers()[soname])
    assert ("torch_none" in told) != ("torch_with" in told)


@pytest.mark.parametrize(("soname", "optional"), [
    ("libnccl-net.so", True), ("libnvrtc.so", False), ("libcublas.so.12", False), ("libcudnn_ops_infer.so.8", False),
])
def test_what_its_caller_does_without_is_told(soname: str, *, optional: bool) -> None:
    assert ("optional_for" in missing_library({"soname": soname}, FACTS)) is optional


def test_who_opens_a_library_by_name_is_told() -> None:
    assert "libcudnn_ops_infer.so.8 (<8.8)" in openers("libnvrtc.so", FACTS)
    assert "libctranslate2-*.so.4.*" in openers("libcublas.so.12", FACTS)
    assert "libctranslate2-*.so.4.*" not in openers("libcublas.so.11", FACTS)
    assert openers("libelse.so", FACTS) == ""


@pytest.mark.parametrize(("name", "stem", "version"), [
    ("libcudart.so.11.0", "libcudart", "11.0"), ("libcublas.so.*[0-9]", "libcublas", None),
    ("libnvrtc.so", "libnvrtc", None), ("libcublas-a1b2c3d4.so.12", "libcublas", "12"),
    ("libnvrtc-builtins.so.12.1", "libnvrtc-builtins", "12.1"),
    ("libstdc++.so.6", "libstdc++", "6"),
])
def test_a_file_name_is_its_stem_and_its_version(name: str, stem: str, version: str | None) -> None:
    match = SONAME.fullmatch(name)
    assert match is not None
    assert (match["stem"], match["version"]) == (stem, version)


@pytest.mark.parametrize(("soname", "everywhere", "cuda"), [
    ("libc10.so", True, False), ("libtorch_cpu.so", True, False), ("libtorch.so", True, False),
    ("libtorch_cuda.so", True, True), ("libc10_cuda.so", True, True), ("libtorch_cuda_cu.so", False, True),
    ("libtorch_nvshmem.so", False, True),
])
def test_a_library_of_torchs_is_told_with_its_releases(soname: str, *, everywhere: bool, cuda: bool) -> None:
    told = torch_library({"soname": soname}, FACTS)
    assert ("lib_everywhere" in told, "cuda_part" in told) == (everywhere, cuda)
    assert ("lib_lacking" in told) is not everywhere
    text = (FOLDER / "abi" / "core.tsv").read_text(encoding="utf-8")
    assert not soname.startswith("libc10") or soname in text


@pytest.mark.parametrize(("soname", "path", "told"), [
    ("libtorch_global_deps.so", "/e/lib/python3.9/site-packages/torch/lib/", ("gone_from",)),
    ("libtorch_global_deps.so", "/home/u/pytorch/torch/lib/", ("gone_from", "gone_tree")),
    ("libtorch_global_deps.so", "/opt/other/", ()), ("libtorch_global_deps.so", "", ()),
    ("libc10_cuda.so", "/e/lib/python3.9/site-packages/torch/lib/", ()),      # a CPU build has none
    ("libtorch_cuda_cu.so", "/e/lib/python3.9/site-packages/torch/lib/", ()),  # other releases have none
])
def test_a_file_of_torchs_own_folder_is_gone(soname: str, path: str, told: tuple[str, ...]) -> None:
    found = torch_library({"soname": soname, "path": path}, FACTS)
    assert tuple(name for name in ("gone_from", "gone_tree") if name in found) == told


def test_a_library_that_no_torch_has_is_told_so() -> None:
    assert torch_library({"soname": "libtorch_else.so"}, FACTS) == {"oldest": FACTS.books.torch.releases[0].minor}
    assert torch_library({}, FACTS) == {"oldest": FACTS.books.torch.releases[0].minor}


def test_nvrtc_of_a_cuda_release_is_that_of_its_toolkits() -> None:
    told: dict[str, set[str]] = {}
    for release, components in toml("cuda.toml")["toolkit"].items():
        minor = ".".join(release.split(".")[:2])
        told.setdefault(minor, set()).update(each.split()[1] for each in components if each.startswith("cuda-nvrtc "))
    for minor, versions in told.items():
        fields = {"soname": f"libnvrtc-builtins.so.{minor}", "builtins_cuda": minor}
        found = nvrtc_release({**fields, **missing_library(fields, FACTS)}, FACTS)
        package, _, version = found["nvrtc_pin"].partition("==")
        assert version == max(versions, key=lambda each: [int(part) for part in re.findall(r"\d+", each)])
        assert package == {"11": "nvidia-cuda-nvrtc-cu11", "12": "nvidia-cuda-nvrtc-cu12",
                           "13": "nvidia-cuda-nvrtc"}[minor.partition(".")[0]]
        assert f"--cuda {minor}" in found.get("nvrtc_lock", f"--cuda {minor}")
    assert nvrtc_release({"builtins_cuda": "9.9", "package": "nvidia-cuda-nvrtc"}, FACTS) == {}


@pytest.mark.parametrize(("soname", "wheels"), [
    ("libnvToolsExt.so.1", {"nvidia-nvtx", "nvidia-nvtx-cu11", "nvidia-nvtx-cu12"}),
    ("libnvshmem_host.so.3", {"nvidia-nvshmem-cu12", "nvidia-nvshmem-cu13"}),
])
def test_wheels_whose_files_the_almanac_has_not_read_are_told(soname: str, wheels: set[str]) -> None:
    assert not any(each.startswith(soname.partition(".")[0]) for each in carriers())
    told = missing_library({"soname": soname}, FACTS)
    assert listed(told["unread_wheels"]) == wheels
    assert "package" not in told
    assert told["unread_torch"].startswith("torch 2.")
    assert "unread_wheels" not in missing_library({"soname": "libcudart.so.10.1"}, FACTS)
