"""Frameworks: what they want is what frameworks.toml says, and each lock that is named is one that `lock` takes."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from stackfix.cli import lock
from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.derive.cuda_numbers import cuda_text, cupy_package, jax_versions
from stackfix.explain.derive.frameworks import (
    bitsandbytes_libraries,
    cuda_build,
    framework_lock,
    nccl_torch,
    onnxruntime_wants,
    tensorflow_cuda,
    xla_cudnn,
)
from stackfix.explain.explain import explain
from stackfix.explain.records import Rule
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from stackfix.matrix.toml_files import matrix_directory, parse_toml

RULES, FACTS = read_rules(), MatrixFacts(None)


def raw(name: str) -> dict[str, Any]:
    return parse_toml(name, (matrix_directory() / name).read_bytes())


AREAS = ("cudnn", "devices", "driver", "frameworks")
OURS = {rule["name"] for area in AREAS for rule in raw(f"errors/{area}.toml")["rule"]}
BUILDS = {(release["version"], build["cuda"]): build for release in raw("torch.toml")["release"]
          for build in release["builds"] if build["platform"] == "linux-64"}
FRAMEWORKS = {group["project"]: group["rows"] for group in raw("frameworks.toml")["framework"]}
BITSANDBYTES = raw("frameworks.toml")["bitsandbytes"]["rows"]


def options(command: str) -> dict[str, str]:
    words = shlex.split(command)
    assert words[:2] == ["stackfix", "lock"]
    return dict(zip(words[2::2], words[3::2], strict=False))


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.name in OURS], ids=lambda rule: rule.name)
def test_every_lock_that_is_named_is_one_that_lock_takes(rule: Rule) -> None:
    """Its options exist, and the matrix has the build that it asks for, with code for the GPU that it names."""
    for example in rule.examples:
        for cause in explain(read_text(example.text.encode()), RULES, FACTS, DERIVE).causes:
            if cause.avoid is None:
                continue
            words = shlex.split(cause.avoid)
            lock.command.make_context("lock", words[2:])
            if "--torch" in words:
                given = options(" ".join(map(shlex.quote, [word for word in words if word != "--no-flash-attn"])))
                assert (given["--torch"], given["--cuda"]) in BUILDS
                Requirement(given.get("--with", "torch"))


def test_a_lock_beside_a_framework_has_a_cudnn_that_it_takes() -> None:
    fields = framework_lock({}, FACTS)
    for name, project in (("jax_lock", "jax-cuda12-plugin"), ("tensorflow_lock", "tensorflow")):
        given, row = options(fields[name]), FRAMEWORKS[project][-1]
        build = next(each for each in FACTS.torch if each.platform == "linux-64"
                     and (each.version, each.cuda) == (given["--torch"], given["--cuda"]))
        assert build.cudnn is not None
        assert build.cudnn in Requirement(row["cudnn"]).specifier
        assert build.cuda.startswith(f"{row['cuda']}.")
        assert Requirement(given["--with"]).name in project
    assert fields["xla_lock"] == fields["tensorflow_lock"]
    assert framework_lock({"jax_named": "jax"}, FACTS)["xla_lock"] == fields["jax_lock"]


@pytest.mark.parametrize("row", FRAMEWORKS["onnxruntime-gpu"], ids=lambda row: row["first"])
def test_onnxruntime_for_the_cuda_that_it_wants(row: dict[str, Any]) -> None:
    fields = onnxruntime_wants({"wants_cuda": str(row["cuda"])}, FACTS)
    assert f"{row['first']} to {row['last']} CUDA {row['cuda']}" in fields["onnxruntime_wants"]
    given = options(fields["onnxruntime_lock"])
    assert given["--cuda"].startswith(f"{row['cuda']}.")
    wanted = Requirement(given["--with"])
    newest = [each for each in FRAMEWORKS["onnxruntime-gpu"] if each["cuda"] == row["cuda"]][-1]
    assert newest["last"] in wanted.specifier
    assert f"{newest['last']}.9" in wanted.specifier


def test_a_cuda_that_no_onnxruntime_is_for_gets_no_lock() -> None:
    assert "onnxruntime_lock" not in onnxruntime_wants({"wants_cuda": "10"}, FACTS)


@pytest.mark.parametrize("digits", ["117", "118", "121", "124", "126", "128", "129", "130", "131", "132"])
def test_bitsandbytes_that_has_the_library(digits: str) -> None:
    cuda = f"{digits[:-1]}.{digits[-1]}"
    having = [row for row in BITSANDBYTES if cuda in row["cuda"].split()]
    fields = bitsandbytes_libraries({"bnb_digits": digits}, FACTS)
    assert fields["bnb_cuda"] == cuda
    if not having:
        assert "bnb_with" not in fields
        assert re.fullmatch(rf"{digits[:-1]}\d", fields["bnb_same_major"])
        return
    spans = [SpecifierSet(f">={part.split(' to ')[0]},<={part.split(' to ')[-1]}")
             for part in fields["bnb_with"].split(", ")]
    for row in BITSANDBYTES:
        assert any(row["first"] in span and row["last"] in span for span in spans) is (row in having)


@pytest.mark.parametrize(("torch", "cuda"), [("2.3.1", "12.1"), ("2.7.0", "12.6"), ("2.15.0", "13.2")])
def test_a_build_with_cuda_in_place_of_one_for_the_cpu(torch: str, cuda: str) -> None:
    fields = cuda_build({"torch": torch, "cuda": "cpu"}, FACTS)
    given = options(fields["lock"])
    assert (given["--torch"], given["--cuda"]) == (torch, cuda)
    assert f"--force-reinstall 'torch=={torch}'" in fields["reinstall"]     # the default index has no local versions


def test_a_build_with_cuda_for_a_driver_that_nobody_named() -> None:
    assert cuda_build({}, FACTS)["lock"] == "stackfix lock --driver auto"


def test_a_build_with_cuda_that_the_driver_serves() -> None:
    fields = cuda_build({"torch": "2.11.0", "cuda": "cpu", "driver": "570.124.06"}, FACTS)
    assert fields["lock"] == "stackfix lock --torch 2.11.0 --cuda 12.8 --driver 570.124.06"
    assert "cu128" in fields["reinstall"]
    assert "'torch==2.11.0+cu128'" in fields["reinstall"]


@pytest.mark.parametrize(("library", "major"), [("libcudart.so.11.0", "11"), ("libcublasLt.so.12", "12")])
def test_releases_of_tensorflow_that_open_a_library(library: str, major: str) -> None:
    rows = [row for row in FACTS.frameworks.frameworks if row.project == "tensorflow" and row.cuda == int(major)]
    fields = tensorflow_cuda({"tf_library": library}, FACTS)
    assert (fields["tf_cuda"], fields["tf_like"]) == (major, f"{rows[0].first} to {rows[-1].last}")
    assert "tf_like" not in tensorflow_cuda({"tf_library": "libcusolver.so.11"}, FACTS)     # of CUDA 11 and of 12


def test_nccl_leads_to_the_torch_that_pins_it() -> None:
    fields = nccl_torch({"nccl_version": "2.19.3"}, FACTS)
    pinned = {each.version for each in FACTS.torch if each.nccl == "2.19.3" and each.index == "default"}
    assert {version for version in pinned if version in fields["nccl_torch"]} >= {min(pinned), max(pinned)}
    assert nccl_torch({"nccl_version": "1.0.0"}, FACTS) == {}


@pytest.mark.parametrize(("library", "built", "found", "releases"), [
    ("cuDNN", "8904", "8700", ("8.9.4", "8.7.0")), ("cuDNN", "90300", "90100", ("9.3.0", "9.1.0")),
    ("CUDA", "12020", "12010", ("12.2", "12.1")), ("cuBLAS", "120205", "120103", ("12.2.5", "12.1.3")),
    ("cuBLAS", "111103", "11201", ("11.11.3", "11.2.1")), ("cuSOLVER", "11502", "11405", ("11.5.2", "11.4.5")),
])
def test_numbers_that_jax_prints(library: str, built: str, found: str, releases: tuple[str, str]) -> None:
    fields = jax_versions({"library": library, "jax_built": built, "jax_found": found}, FACTS)
    assert (fields["jax_built_version"], fields["jax_found_version"]) == releases


@pytest.mark.parametrize("fields", [{}, {"library": "cuDNN", "jax_built": "8904"}])
def test_half_of_the_numbers_tells_nothing(fields: dict[str, str]) -> None:
    assert jax_versions(fields, FACTS) == {}


def test_words_of_cuda_lead_to_number_and_name() -> None:
    for error in FACTS.codes.cuda:
        if error.text and sum(each.text == error.text for each in FACTS.codes.cuda) == 1:
            assert cuda_text({"cuda_text": error.text}, FACTS)["cuda_code"] == str(error.number)
            assert cuda_text({"cuda_number": str(error.number)}, FACTS)["cuda_name"] in {error.runtime, error.driver}
    assert cuda_text({"cuda_text": "no such words"}, FACTS) == {}
    assert cuda_text({}, FACTS) == {}


@pytest.mark.parametrize(("library", "package"), [
    ("libcudart.so.12", "cupy-cuda12x"), ("libnvrtc.so.13", "cupy-cuda13x"), ("libcudart.so.11.0", "cupy-cuda11x"),
])
def test_cupy_for_the_major_of_the_library(library: str, package: str) -> None:
    assert cupy_package({"cupy_library": library}, FACTS)["cupy_fits"] == package


@pytest.mark.parametrize("library", ["libcudart.so.7.5", "libfoo.so", ""])
def test_cupy_for_a_major_that_is_not_known_is_not_guessed(library: str) -> None:
    assert cupy_package({"cupy_library": library}, FACTS) == {}


@pytest.mark.parametrize("compiled", ["8.1.0", "8.6.0", "8.9.4", "9.3.0", "9.13.0"])
def test_tensorflow_that_was_compiled_with_a_cudnn(compiled: str) -> None:
    like = xla_cudnn({"compiled_version": compiled}, FACTS).get("compiled_like", "")
    minor = ".".join(compiled.split(".")[:2])
    rows = [row for row in FRAMEWORKS["tensorflow"] if re.search(rf"=={minor}\.|>={minor}[.,]", row["cudnn"])]
    assert re.findall(r"\((nvidia-\S+)\)", like) == [row["cudnn"] for row in rows]
