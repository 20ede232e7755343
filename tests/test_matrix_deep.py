"""What packaging refuses although it looks right, and what points nowhere."""

from __future__ import annotations

from dataclasses import replace

from stackfix.matrix.deep import deep_faults
from stackfix.matrix.load import load_matrix
from stackfix.matrix.records import Matrix

MATRIX = load_matrix()


def only(matrix: Matrix) -> str:
    faults = deep_faults(matrix)
    assert len(faults) == 1, faults
    return faults[0]


def test_a_requirement_whose_marker_is_no_marker() -> None:
    first = replace(MATRIX.torch[0], requires=("filelock ; os is fine",))
    assert "'filelock ; os is fine' is not a requirement" in only(replace(MATRIX, torch=(first, *MATRIX.torch[1:])))


def test_versions_and_specifiers() -> None:
    release = replace(MATRIX.flash_attn[0], version="2.x")
    assert "'2.x' is not a version" in only(replace(MATRIX, flash_attn=(release, *MATRIX.flash_attn[1:])))
    rule = replace(MATRIX.rules[0], versions="about 12")
    assert "'about 12' is not a version specifier" in only(replace(MATRIX, rules=(rule, *MATRIX.rules[1:])))


def test_a_toolkit_that_cuda_toml_does_not_have() -> None:
    first = replace(MATRIX.torch[0], toolkit="99.0.0")
    assert "toolkit 99.0.0 is not in cuda.toml" in only(replace(MATRIX, torch=(first, *MATRIX.torch[1:])))


def test_a_rule_about_something_unknown() -> None:
    rule = replace(MATRIX.rules[0], needs="nvidia-nvjitlnk-cu12>=12.1")
    assert "nothing in the matrix is called nvidia-nvjitlnk-cu12" in only(
        replace(MATRIX, rules=(rule, *MATRIX.rules[1:]))
    )


def test_a_cuda_without_a_driver_family() -> None:
    families = tuple(row for row in MATRIX.driver_families if row.cuda_major != 11)
    faults = deep_faults(replace(MATRIX, driver_families=families))
    assert {fault.partition(":")[0] for fault in faults} == {"CUDA 11.6", "CUDA 11.7", "CUDA 11.8"}
