"""GPUs: every build that is named has code for them, by torch.toml read here."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.derive.devices import arch_floors, flash_attn_archs, gpu, gpu_by_name, newest_gpus, torch_for_gpu
from stackfix.explain.explain import explain
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from stackfix.matrix.records import TorchBuild
from stackfix.matrix.toml_files import matrix_directory, parse_toml

RULES, FACTS = read_rules(), MatrixFacts(None)


def raw(name: str) -> dict[str, Any]:
    return parse_toml(name, (matrix_directory() / name).read_bytes())


BUILDS = [{**build, "version": release["version"]} for release in raw("torch.toml")["release"]
          for build in release["builds"] if build["platform"] == "linux-64"]
WITH_CODE = [build for build in BUILDS if build.get("archs")]


def runs(archs: str, gpu_number: int) -> bool:
    """Machine code on its own major from its minor on, PTX on all newer ones."""
    for arch in archs.split():
        code = int(arch.partition("+")[0].rstrip("af"))
        if code // 10 == gpu_number // 10 and code <= gpu_number:
            return True
        if arch.endswith("+PTX") and code <= gpu_number:
            return True
    return False


def named(text: str) -> tuple[str, str]:
    match = re.match(r"torch (\S+) for CUDA (\S+)", text)
    assert match is not None
    return match[1], match[2]


def key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@pytest.mark.parametrize("number", [35, 37, 50, 52, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 120, 121])
def test_builds_that_are_named_run_on_the_gpu_and_no_others_are_nearer(number: int) -> None:
    fields = torch_for_gpu(gpu({"capability_read": f"sm_{number}"}, FACTS), FACTS)
    fitting = sorted((key(build["version"]), key(build["cuda"])) for build in WITH_CODE if runs(build["archs"], number))
    usual = sorted((key(build["version"]), key(build["cuda"])) for build in WITH_CODE
                   if runs(build["archs"], number) and build.get("index", "default") == "default")
    for name, expected in (("any", fitting), ("default", usual)):
        if expected:
            told = [tuple(map(key, named(fields[f"{end}_{name}"]))) for end in ("oldest", "newest")]
            assert told == [expected[0], expected[-1]]
        else:
            assert f"oldest_{name}" not in fields
    words = shlex.split(fields["lock"]) if fitting else []
    assert not fitting or (key(words[words.index("--torch") + 1]), key(words[words.index("--cuda") + 1])) in fitting


def test_a_gpu_that_no_build_has_gets_no_lock() -> None:
    assert torch_for_gpu(gpu({"capability_read": "3.0"}, FACTS), FACTS) == {}


@pytest.mark.parametrize(("torch", "cuda", "number", "answer"), [
    ("2.8.0", "12.8", 61, "no"), ("2.8.0", "12.8", 86, "yes"), ("2.7.1", "12.6", 61, "yes"),
    ("2.7.1", "12.6", 120, "no"), ("2.15.0", "13.2", 70, "no"), ("2.9.0", "13.0", 121, "yes"),
])
def test_whether_the_build_of_the_text_runs(torch: str, cuda: str, number: int, answer: str) -> None:
    row = next(build for build in WITH_CODE if (build["version"], build["cuda"]) == (torch, cuda))
    fields = torch_for_gpu({"torch": torch, "cuda": cuda, **gpu({"capability_read": f"sm_{number}"}, FACTS)}, FACTS)
    assert fields["named_runs"] == answer == ("yes" if runs(row["archs"], number) else "no")


def test_what_was_not_read_is_said_to_be_inferred() -> None:
    """Of torch 2.8.0 for CUDA 12.6 nothing is known here; the builds for 12.6 before and after it are alike."""
    class Unread(MatrixFacts):
        @property
        def torch(self) -> tuple[TorchBuild, ...]:
            return tuple(replace(each, gpu_archs=()) if (each.version, each.cuda) == ("2.8.0", "12.6") else each
                         for each in self.matrix.torch)

    fields = torch_for_gpu({"torch": "2.8.0", "cuda": "12.8", "arch": "sm_61"}, Unread(None))
    told = r"torch 2\.8\.0 for CUDA 12\.6 \(not read, but so in 2\.7\.1 and 2\.\d+\.\d+\)"
    assert re.search(told, fields["same_release"])
    assert "--torch 2.8.0 --cuda 12.6" in fields["lock"]


def test_floors_are_those_of_the_default_builds() -> None:
    fields = arch_floors({}, FACTS)
    usual = sorted((key(build["version"]), build["archs"]) for build in WITH_CODE
                   if build.get("index", "default") == "default")
    for run in fields["floors_default"].split("; "):
        match = re.fullmatch(r"(\S+) to (\S+) for sm_(\d+) to sm_(\d+)", run)
        assert match is not None
        inside = [archs for version, archs in usual if key(match[1]) <= version <= key(match[2])]
        ends = {(min(numbers(archs)), max(numbers(archs))) for archs in inside}
        assert ends == {(int(match[3]), int(match[4]))}


def numbers(archs: str) -> list[int]:
    return [int(arch.partition("+")[0].rstrip("af")) for arch in archs.split()]


@pytest.mark.parametrize(("name", "arch"), [
    ("NVIDIA GeForce RTX 5090", "sm_120"), ("NVIDIA GeForce RTX 4070 Ti SUPER", "sm_89"), ("Tesla T4", "sm_75"),
    ("NVIDIA A100-SXM4-80GB", "sm_80"), ("NVIDIA H100 80GB HBM3", "sm_90"), ("Tesla P100-PCIE-16GB", "sm_60"),
    ("NVIDIA GeForce GTX 1050", "sm_61"), ("Tesla V100-SXM2-16GB", "sm_70"), ("NVIDIA L40S", "sm_89"),
    ("NVIDIA RTX A6000", "sm_86"), ("NVIDIA RTX 6000 Ada Generation", "sm_89"), ("Quadro RTX 6000", "sm_75"),
    ("NVIDIA GeForce RTX 2080 Ti", "sm_75"), ("NVIDIA A10G", "sm_86"), ("NVIDIA GB10", "sm_121"),
    ("Tesla K80", "sm_37"),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "sm_120"), ("NVIDIA GeForce GTX 1660 Ti", "sm_75"),
])
def test_a_product_is_known_by_its_name(name: str, arch: str) -> None:
    assert gpu(gpu_by_name({"gpu_name": name}, FACTS), FACTS)["arch"] == arch


@pytest.mark.parametrize("name", ["", "AMD Radeon RX 7900 XTX", "NVIDIA Graphics Device", "Intel Arc A770"])
def test_a_name_that_is_not_known_is_not_guessed(name: str) -> None:
    assert gpu_by_name({"gpu_name": name}, FACTS) == {}


def test_toolkits_of_a_gpu_are_those_of_the_table() -> None:
    for row in raw("codes.toml")["gpu"]["architectures"]:
        fields = gpu({"capability_read": f"sm_{row['arch']}"}, FACTS)
        assert (fields.get("arch_cuda"), fields.get("arch_last")) == (row.get("cuda"), row.get("last"))
        assert fields["arch_family"] == row["family"]


def test_gpus_since_ampere_are_listed() -> None:
    told = newest_gpus({}, FACTS)["newest_gpus"]
    assert "sm_80 from CUDA 11.0 on" in told
    assert "sm_75" not in told


def test_flash_attn_s_gpus_are_those_of_its_rows() -> None:
    rows = raw("flash_attn.toml")
    listed = {each for release in rows["release"] for each in str(release.get("archs", "")).split()}
    fields = flash_attn_archs({"arch": "sm_90"}, FACTS)
    assert not listed or all(f"sm_{each}" in fields["flash_archs"] for each in listed)
    assert fields["flash_floor"] == "8.0"
    assert "flash_runs" not in flash_attn_archs({"arch": "sm_75"}, FACTS)


def causes(text: str) -> str:
    found = explain(read_text(text.encode()), RULES, FACTS, DERIVE)
    return "\n".join("\n".join((each.summary, *each.because, each.cure, each.avoid or "")) for each in found.causes)


def test_an_extension_is_suspected_where_torch_has_the_code() -> None:
    told = causes("GPU 0: NVIDIA GeForce RTX 3090\ntorch 2.8.0+cu128\n"
                  "RuntimeError: CUDA error: no kernel image is available for execution on the device")
    assert "another binary that has none: an extension" in told
    assert "TORCH_CUDA_ARCH_LIST=8.6" in told


@pytest.mark.parametrize("text", [
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23 GiB",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "RuntimeError: cuDNN error: CUDNN_STATUS_BAD_PARAM",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "loss is nan, stopping training",
])
def test_what_is_no_matter_of_the_stack_is_not_claimed(text: str) -> None:
    assert causes(text) == ""


def test_the_lock_for_a_gpu_is_one_that_the_driver_runs() -> None:
    fields = {"arch": "sm_75", "torch": "2.11.0", "cuda": "13.0"}
    assert "--cuda 13.0" in torch_for_gpu(fields, FACTS)["lock"]
    with_driver = torch_for_gpu({**fields, "driver": "535.183.01"}, FACTS)["lock"]
    assert re.search(r"--torch 2\.11\.0 --cuda 12\.\d --driver 535\.183\.01 --gpu-arch sm_75", with_driver)
