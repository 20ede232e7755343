"""Numbers and names of errors, GPUs and frameworks: what the files say is read, and faults name their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.matrix.code_records import Architecture
from stackfix.matrix.codes import load_codes
from stackfix.matrix.lazy import open_matrix
from stackfix.matrix.load import load_matrix
from stackfix.matrix.toml_files import matrix_directory

CODES, FRAMEWORKS, MATRIX = load_codes(), open_matrix().frameworks, load_matrix()
NUMBERS = (1, 2, 3, 34, 35, 36, 46, 98, 100, 101, 200, 209, 218, 219, 220, 221, 222, 223, 300, 301, 302, 303, 304,
           500, 700, 701, 719, 720, 802, 803, 804, 805, 999)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_errors_that_people_meet_are_known(number: int) -> None:
    found = next(each for each in CODES.cuda if each.number == number)
    assert found.runtime or found.driver


def test_runtime_and_driver_agree_on_numbers() -> None:
    by_number = {each.number: each for each in CODES.cuda}
    assert by_number[35].runtime == "cudaErrorInsufficientDriver"
    assert by_number[35].driver is None
    assert (by_number[803].runtime, by_number[803].driver) == (
        "cudaErrorSystemDriverMismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")
    assert by_number[209].text == "no kernel image is available for execution on the device"


def test_cudnn_9_has_numbers_of_its_own() -> None:
    numbers = {each.major: {row.name: row.number for row in CODES.cudnn if row.major == each.major}
               for each in CODES.cudnn}
    assert numbers[8]["NOT_INITIALIZED"] == 1
    assert numbers[9]["NOT_INITIALIZED"] == 1001
    assert numbers[9]["SUBLIBRARY_VERSION_MISMATCH"] == 1002
    assert "VERSION_MISMATCH" not in numbers[9]
    loading = next(row for row in CODES.cudnn if row.name == "SUBLIBRARY_LOADING_FAILED")
    assert (loading.number, loading.since) == (1008, "9.2")


def test_each_toolkit_that_is_named_is_one() -> None:
    minors = {row.cuda for row in MATRIX.toolkit_drivers} | {"9.0", "10.0"}
    named = {each.first_cuda for each in CODES.architectures} | {each.last_cuda for each in CODES.architectures}
    assert named - {None} <= minors
    assert {cuda for _, cuda in CODES.ptx} <= minors | {"12.7"}     # 12.7 was a driver's alone


def test_torch_compiles_only_for_what_its_toolkit_knows() -> None:
    targets = {each.arch: each for each in CODES.architectures}
    wrong = [(build.version, build.cuda, arch) for build in MATRIX.torch for arch in build.gpu_archs
             if not arch.startswith("compute_") and not compiles(targets[arch.rstrip("af")], build.cuda)]
    assert wrong == []


def compiles(target: Architecture, cuda: str) -> bool:
    first, last = target.first_cuda, target.last_cuda
    return (first is None or minor(first) <= minor(cuda)) and (last is None or minor(cuda) <= minor(last))


def minor(cuda: str) -> tuple[int, ...]:
    return tuple(map(int, cuda.split(".")))


def test_rows_of_a_framework_follow_each_other() -> None:
    for project in {each.project for each in FRAMEWORKS.frameworks}:
        ends = [end for each in FRAMEWORKS.frameworks if each.project == project for end in (each.first, each.last)]
        assert [minor(each) for each in ends] == sorted(minor(each) for each in ends)


def test_cudnn_that_a_framework_pins_is_of_its_cuda() -> None:
    for each in FRAMEWORKS.frameworks:
        assert each.cudnn is None or each.cudnn.startswith(f"nvidia-cudnn-cu{each.cuda}")


@pytest.mark.parametrize(("file", "old", "new", "told"), [
    ("codes.toml", '"35 cudaErrorInsufficientDriver', '"35cudaErrorInsufficientDriver', "is no number with names"),
    ("codes.toml", '"1 NOT_INITIALIZED"', '"NOT_INITIALIZED"', "is no number with a name"),
    ("codes.toml", '"8.4 12.4"', '"8.4"', "is no version of PTX"),
    ("codes.toml", '"8.4 12.4"', '"8.3 12.4"', "ptx: one of them is given twice"),
    ("codes.toml", 'arch = "120"', 'arch = "x"', "is not a GPU architecture"),
    ("frameworks.toml", 'first = "2.18"', 'first = "two"', "is not digits and dots"),
    ("frameworks.toml", "cuda = 11,", 'cuda = "11",', "is not a whole number"),
    ("frameworks.toml", 'project = "ctranslate2"', 'project = "ctranslate2"\ncolour = "red"', "unknown key 'colour'"),
])
def test_faults_are_told(tmp_path: Path, file: str, old: str, new: str, told: str) -> None:
    text = (matrix_directory() / file).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadInput) as error:
        _ = load_codes(tmp_path) if file == "codes.toml" else open_matrix(tmp_path).frameworks
    assert told in str(error.value)
