"""Drivers: what is derived of them is what cuda.toml and torch.toml say, and every number and name finds its rule."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.derive.driver import driver_of_cuda, found_cuda, ptx_pair, torch_for_driver
from stackfix.explain.explain import explain
from stackfix.explain.records import Explanation
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from stackfix.matrix.toml_files import matrix_directory, parse_toml

RULES, FACTS = read_rules(), MatrixFacts(None)
RULE_OF = {     # number -> the rule that explains it
    3: "driver-not-initialised", 34: "stub-driver", 35: "driver-insufficient", 36: "call-requires-newer-driver",
    46: "devices-busy", 98: "kernel-image-invalid", 100: "no-device", 101: "device-ordinal",
    200: "kernel-image-invalid", 209: "no-kernel-image", 218: "kernel-image-invalid", 221: "jit-compiler-missing",
    222: "ptx-too-new", 223: "jit-compiler-missing", 227: "call-requires-newer-driver", 300: "kernel-image-invalid",
    303: "shared-object-303", 304: "operating-system-call", 500: "named-symbol", 802: "system-not-ready",
    803: "driver-mismatch", 804: "compat-library", 805: "mps", 806: "mps", 807: "mps", 808: "mps", 809: "mps",
    810: "mps", 999: "cuda-unknown-error",
}
NOT_OURS = (1, 2, 700, 701, 710, 716, 719, 720)     # of programs and of memory
TOO_SHORT = {303, 999}      # their words, "unknown error" and the like, stand in errors of anybody


def raw(name: str) -> dict[str, Any]:
    return parse_toml(name, (matrix_directory() / name).read_bytes())


DRIVERS = raw("cuda.toml")["driver"]
FLOORS = {row["major"]: row["floor"] for row in DRIVERS["families"]}
ERRORS = {error.number: error for error in FACTS.codes.cuda}


def explained(text: str) -> Explanation:
    return explain(read_text(text.encode()), RULES, FACTS, DERIVE)


def rules_of(text: str) -> list[str]:
    return [message.rule for message in explained(text).messages]


def forms(number: int) -> Iterator[str]:
    """How torch, CuPy, JAX, numba, TensorFlow and plain programs print an error."""
    error = ERRORS[number]
    yield f"cudaGetDeviceCount returned {number}"
    yield f"CUDA error code={number}"
    yield f"Unexpected error from cudaGetDeviceCount(). Error {number}: something"
    yield f"cuInit failed with error {number}"
    yield f"[{number}] Call to cuInit results in UNKNOWN_CUDA_ERROR"
    if error.runtime:
        yield f"cupy_backends.cuda.api.runtime.CUDARuntimeError: {error.runtime}: words"
    if error.driver:
        yield f"failed call to cuInit: {error.driver}"
    if error.text and number not in TOO_SHORT:
        yield f"RuntimeError: CUDA error: {error.text}"


@pytest.mark.parametrize("number", RULE_OF)
def test_an_error_is_explained_however_it_is_printed(number: int) -> None:
    wrong = [form for form in forms(number) if RULE_OF[number] not in rules_of(form)]
    assert wrong == []


@pytest.mark.parametrize("number", NOT_OURS)
def test_errors_of_programs_are_not_claimed(number: int) -> None:
    assert {form: rules_of(form) for form in forms(number) if explained(form).causes} == {}


@pytest.mark.parametrize("number", RULE_OF)
def test_a_number_that_is_none_of_cuda_is_not_claimed(number: int) -> None:
    assert rules_of(f"HTTP error {number}: try again") == []
    assert rules_of(f"step {number} loss 0.1, {number} images read") == []


@pytest.mark.parametrize("row", DRIVERS["toolkits"], ids=lambda row: f"{row['cuda']} {row['update']}")
def test_the_number_that_torch_prints_leads_to_the_branch(row: dict[str, str]) -> None:
    major, minor = row["cuda"].split(".")
    fields = dict(found_cuda({"found": f"{major}0{minor}0"}, FACTS))
    fields |= driver_of_cuda(fields, FACTS)
    same = [each["driver"] for each in DRIVERS["toolkits"] if each["cuda"] == row["cuda"]]
    assert fields["serves"] == row["cuda"]
    assert fields["branch"] in {each.split(".")[0] for each in same}
    assert fields["shipped_driver"] in same
    assert fields.get("next_floor") == FLOORS.get(max(int(major) + 1, min(FLOORS)))


@pytest.mark.parametrize("serves", ["11.4", "11.8", "12.0", "12.7", "12.9", "13.2"])
def test_a_build_for_a_driver_runs_with_it(serves: str) -> None:
    fields = torch_for_driver({"serves": serves, "branch": "1"}, FACTS)
    words = shlex.split(fields["lock"])
    torch, cuda = words[words.index("--torch") + 1], words[words.index("--cuda") + 1]
    release = next(each for each in raw("torch.toml")["release"] if each["version"] == torch)
    assert cuda in [build["cuda"] for build in release["builds"] if build["platform"] == "linux-64"]
    assert int(cuda.split(".")[0]) <= int(serves.partition(".")[0])


@pytest.mark.parametrize("serves", ["9.0", "10.2"])
def test_for_a_driver_that_is_too_old_for_all_no_lock_is_named(serves: str) -> None:
    assert "lock" not in torch_for_driver({"serves": serves}, FACTS)


def test_the_release_of_the_text_is_kept_where_it_has_a_build() -> None:
    fields = torch_for_driver({"serves": "11.4", "torch": "2.1.0", "cuda": "12.1", "driver": "470.86"}, FACTS)
    assert fields["named_build"] == "torch 2.1.0 for CUDA 12.1"
    assert fields["named_floor"] == FLOORS[12]
    assert fields["lock"] == "stackfix lock --torch 2.1.0 --cuda 11.8 --driver 470.86"


@pytest.mark.parametrize("found", ["", "11", "x", "110400", "11041"])
def test_a_number_that_is_no_driver_s_tells_nothing(found: str) -> None:
    assert found_cuda({"found": found}, FACTS) == {}


def test_ptx_is_told_by_the_toolkit_that_first_wrote_it() -> None:
    for line in raw("codes.toml")["ptx"]["releases"]:
        isa, cuda = line.split(" ")
        fields = ptx_pair({"ptx_wanted": isa, "ptx_served": "7.0"}, FACTS)
        assert fields["ptx_wanted_cuda"] == cuda
        shipped = [row["driver"] for row in DRIVERS["toolkits"] if row["cuda"] == cuda]
        assert fields.get("ptx_wanted_driver", shipped[0] if shipped else None) in [*shipped, None]


def test_ptx_that_the_matrix_does_not_know_is_not_guessed() -> None:
    assert ptx_pair({"ptx_wanted": "99.9", "ptx_served": "99.8"}, FACTS) == {}


@pytest.mark.parametrize("area", ["cudnn", "devices", "driver", "frameworks"])
def test_no_rule_states_a_release_by_itself(area: str) -> None:
    """Releases come from the matrix: a text may name majors, and what is no release."""
    stated = []
    for rule in raw(f"errors/{area}.toml")["rule"]:
        for cause in rule["cause"]:
            texts = [cause["summary"], cause["cure"], *cause.get("because", ()), cause.get("avoid", "")]
            stated += [(rule["name"], found) for text in texts
                       for found in re.findall(r"(?<![\w.{/-])\d+\.\d+(?:\.\d+)*(?![\w}])", text)]
    assert stated == []


@pytest.mark.parametrize("number", RULE_OF)
@pytest.mark.parametrize("line", [
    "curl: custom error {}: could not resolve host", "cuda step 12 loss 0.25 code {}",
    "exit code {} of the current job",
    "error {} in cursor, table gpu_jobs", "CUDA 12.4: {} kernels, no error",
])
def test_numbers_beside_other_words_are_not_claimed(number: int, line: str) -> None:
    assert rules_of(line.format(number)) == []


@pytest.mark.parametrize(("driver", "cuda", "short"), [
    ("550.54.15", "13.0", "yes"), ("580.65.06", "13.0", "no"), ("470.86", "12.1", "yes"), ("535.183.01", "12.8", "no"),
    ("580.65.05", "13.0", "yes"), ("525.60.13", "12.6", "no"),
])
def test_a_driver_that_the_text_names_is_held_against_the_floor(driver: str, cuda: str, short: str) -> None:
    torch = next(release["version"] for release in raw("torch.toml")["release"]
                 if cuda in {build["cuda"] for build in release["builds"] if build["platform"] == "linux-64"})
    fields = torch_for_driver({"torch": torch, "cuda": cuda, "driver": driver}, FACTS)
    assert fields["driver_short"] == short
    assert f"--driver {driver}" in fields["lock"]
    major = int(shlex.split(fields["lock"])[5].split(".")[0])
    assert tuple(map(int, driver.split("."))) >= tuple(map(int, FLOORS[major].split(".")))


@pytest.mark.parametrize("driver", ["", "not a driver", "5", "550.54.15; rm -rf"])
def test_what_is_no_driver_is_not_held_against_anything(driver: str) -> None:
    assert "driver_short" not in torch_for_driver({"torch": "2.8.0", "cuda": "12.8", "driver": driver}, FACTS)
