"""What is told of failed builds agrees with the matrix's files, read here without its parsers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive.builds import (
    build_subject,
    flash_attn_subject,
    nvcc_architecture,
    prebuilt_wheel,
    toolkit_pair,
    wheel_name,
)
from tests import explain_oracle as oracle

FACTS = MatrixFacts(None)


def flash_rows(version: str) -> dict[str, Any]:
    return next(row for row in oracle.toml("flash_attn.toml")["release"] if row["version"] == version)


def torch_builds(cuda: str) -> set[str]:
    """Releases of torch with a build for a CUDA, on Linux x86-64."""
    return {version for version, row in oracle.torch_rows().items()
            if any(each["cuda"] == cuda and each["platform"] == "linux-64" for each in row["builds"])}


def named(text: str) -> list[str]:
    """The versions of "2.0.0 to 2.3.1, 2.6.0": its ends."""
    return re.findall(r"[\d.]+", text)


@pytest.mark.parametrize(("subject", "package", "version"), [
    ("flash-attn==2.8.3", "flash-attn", "2.8.3"), ("flash_attn-2.7.2.post1", "flash-attn", "2.7.2.post1"),
    ("causal-conv1d@1.4.0", "causal-conv1d", "1.4.0"), ("mamba_ssm", "mamba-ssm", None),
    ("psycopg2==2.9", "psycopg2", "2.9"),
])
def test_the_package_that_was_built(subject: str, package: str, version: str | None) -> None:
    found = build_subject({"subject": subject}, FACTS)
    assert (found["package"], found.get("version")) == (package, version)
    assert ("stack" in found) is (package != "psycopg2")


def test_nothing_is_told_of_no_package() -> None:
    assert build_subject({}, FACTS) == {}
    assert prebuilt_wheel({"package": "psycopg2", "torch": "2.3.1"}, FACTS) == {}


def test_what_the_build_of_flash_attn_needs_is_the_rows() -> None:
    found = flash_attn_subject({"subject": "FlashAttention"}, FACTS)
    assert found["package"] == "flash-attn"
    found = build_subject({"subject": "flash_attn-2.5.8"}, FACTS)
    assert found["build_requires"].split() == flash_rows("2.5.8")["build_requires"]


@pytest.mark.parametrize(("torch", "version", "python"), [
    ("2.3.1+cu121", "2.5.8", "3.10"), ("2.5.1", "2.7.3", "3.12"), ("2.2.2+cu118", "2.5.6", "3.9"),
])
def test_the_prebuilt_wheel_is_one_of_the_release(torch: str, version: str, python: str) -> None:
    found = prebuilt_wheel({"package": "flash-attn", "torch": torch, "version": version, "python": python}, FACTS)
    name = re.match(r"flash_attn-([\w.]+)\+cu(\d+)torch([\d.]+)cxx11abi(TRUE|FALSE)-cp3(\d+)-cp3\d+-linux_x86_64",
                        found["wheel"])
    assert name is not None
    assert (name[1], name[3], f"3.{name[5]}") == (version, torch.rpartition(".")[0], python)
    groups = flash_rows(version)["wheels"]
    assert any(name[2] in each["cuda"].split() and name[3] in each["torch"].split() and name[4] in each["abi"].split()
               and python in each["pythons"].split() and each.get("basis") != "planned" for each in groups)
    assert found["lock"].endswith(f"--python {python} --flash-attn {version}")
    assert f"--torch {torch.partition('+')[0]} " in found["lock"]


def test_where_no_wheel_fits_the_nearest_torch_that_has_one_is_named() -> None:
    found = prebuilt_wheel({"package": "flash-attn", "torch": "2.9.1", "version": "2.5.8"}, FACTS)
    known = {torch for group in flash_rows("2.5.8")["wheels"] for torch in group["torch"].split()}
    assert "wheel" in found or (found["no_wheel"] and set(named(found["wheel_torch"])) <= known)
    older = prebuilt_wheel({"package": "flash-attn", "torch": "1.13.1", "version": "2.8.3"}, FACTS)
    assert older.get("no_wheel") == "yes" or older["wheel_version"] != "2.8.3"


def test_without_a_torch_all_that_have_a_wheel_are_told() -> None:
    found = prebuilt_wheel({"package": "flash-attn", "version": "2.5.8"}, FACTS)
    known = {torch for group in flash_rows("2.5.8")["wheels"] for torch in group["torch"].split()}
    assert (found["wheel_version"], set(named(found["wheel_torch"])) <= known) == ("2.5.8", True)
    assert "wheel" not in found


@pytest.mark.parametrize("cuda", ["11.8", "12.1", "12.4", "12.6", "13.0"])
def test_the_releases_of_torch_for_an_nvcc_are_those_with_such_a_build(cuda: str) -> None:
    found = toolkit_pair({"nvcc": cuda, "torch_cuda": "12.1"}, FACTS)
    expected = torch_builds(cuda)
    assert set(named(found["torch_for_nvcc"])) <= expected
    assert {min(expected, key=oracle.number), max(expected, key=oracle.number)} <= set(named(found["torch_for_nvcc"]))
    assert found["lock"] == f"stackfix lock --torch {found['torch_near']} --cuda {cuda}"


def test_the_release_that_the_text_names_is_kept_where_it_has_such_a_build() -> None:
    assert toolkit_pair({"nvcc": "11.8", "torch_cuda": "12.1", "torch": "2.3.1"}, FACTS)["torch_near"] == "2.3.1"


def test_of_a_cuda_without_any_torch_nothing_is_told() -> None:
    assert toolkit_pair({"nvcc": "12.3", "torch_cuda": "11.8"}, FACTS) == {}
    assert toolkit_pair({"nvcc": "99.1"}, FACTS) == {}


def archs(code: str) -> set[str]:
    """CUDAs of the builds of torch that hold code for an architecture."""
    return {each["cuda"] for row in oracle.torch_rows().values() for each in row["builds"]
            if each["platform"] == "linux-64"
            and re.search(rf"(?<!\d){code}(?!\d)", each.get("archs", ""))}


@pytest.mark.parametrize("code", ["90", "100", "120", "50", "37"])
def test_the_cudas_of_an_architecture_are_those_of_the_builds_with_it(code: str) -> None:
    found = nvcc_architecture({"arch": code}, FACTS)
    cudas = archs(code)
    assert found["arch_since"] == min(cudas, key=oracle.number)
    assert ("arch_until" in found) is ("arch_now" not in found)
    if "arch_until" in found:
        assert found["arch_until"] == max(cudas, key=oracle.number)
    assert found["lock"].endswith(f"--gpu-arch sm_{code}")


def test_of_an_architecture_that_no_build_has_nothing_is_told() -> None:
    assert nvcc_architecture({"arch": "20"}, FACTS) == {}


def test_the_name_of_an_asset_tells_what_it_is_for() -> None:
    asset = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
    found = wheel_name({"asset": asset}, FACTS)
    assert (found["version"], found["asset_torch"], found["asset_cuda"], found["asset_abi"], found["python"],
            found["listed"]) == ("2.5.8", "2.3", "122", "old", "3.10", "yes")
    assert "listed" not in wheel_name({"asset": asset.replace("2.5.8", "2.5.99")}, FACTS)
    assert wheel_name({"asset": "torch-2.3.1-cp310-cp310-linux_x86_64.whl"}, FACTS) == {}
