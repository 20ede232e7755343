"""Answers of the matrix on small made-up rows, and on the real ones where the rows are the point."""

from __future__ import annotations

from dataclasses import replace

import pytest
from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.load import load_matrix
from stackfix.matrix.records import Companion, TorchBuild

MATRIX = load_matrix()


def build(version: str, platform: str = "linux-64", index: str = "default") -> TorchBuild:
    return next(
        row for row in MATRIX.torch if (row.version, row.platform, row.index) == (version, platform, index)
    )


def test_releases_are_newest_first_by_version_not_by_text() -> None:
    versions = query.torch_releases(MATRIX)
    assert versions == tuple(sorted(versions, key=Version, reverse=True))
    assert versions.index("2.10.0") < versions.index("2.9.1")


def test_builds_can_be_narrowed_and_put_the_default_index_first() -> None:
    rows = query.builds(MATRIX, platform="linux-64")
    assert {row.platform for row in rows} == {"linux-64"}
    assert [row.version for row in rows] == sorted((row.version for row in rows), key=Version, reverse=True)
    assert next(row.index for row in rows if row.version == "2.3.1") == "default"
    assert {row.index for row in query.builds(MATRIX, index="cu118")} == {"cu118"}


def test_builds_of_a_shuffled_matrix_are_in_the_same_order_of_versions() -> None:
    shuffled = replace(MATRIX, torch=tuple(reversed(MATRIX.torch)))
    assert [row.version for row in query.builds(shuffled)] == [row.version for row in query.builds(MATRIX)]


def test_preferred_versions_hold_the_toolkits_nvjitlink_and_the_wheels_own_pins() -> None:
    versions = query.preferred_versions(MATRIX, build("2.3.1"))
    assert versions["nvidia-nvjitlink-cu12"] == "12.1.105"
    assert versions["nvidia-cudnn-cu12"] == "8.9.2.26"
    assert versions["nvidia-nccl-cu12"] == "2.20.5"
    assert query.preferred_versions(MATRIX, build("2.7.1"))["nvidia-cuda-nvrtc-cu12"] == "12.6.77"
    assert query.preferred_versions(MATRIX, build("2.3.1", "linux-aarch64")) == {}


def test_a_component_of_no_toolkit_is_unknown() -> None:
    assert query.component_version(MATRIX, "12.7.0", "nvidia-nvjitlink-cu12") is None
    assert query.component_version(MATRIX, "12.1.1", "nvidia-cudnn-cu12") is None


def test_rules_take_the_version_as_a_version() -> None:
    assert query.rules_for(MATRIX, "nvidia-cusparse-cu12", "12.1.0.106")
    assert query.rules_for(MATRIX, "nvidia-cusparse-cu12", "12.1.0.106.0")
    assert query.rules_for(MATRIX, "nvidia-cusparse-cu12", "12.1.0.107") == ()
    assert query.rules_for(MATRIX, "no-such-package", "1") == ()


def test_companions() -> None:
    row = query.companion(MATRIX, "torchvision", "0.18.1")
    assert row is not None
    assert row.torch == "==2.3.1"
    assert query.companion(MATRIX, "torchvision", "9.9") is None
    versions = query.companion_versions(MATRIX, "xformers")
    assert versions == tuple(sorted(versions, key=Version, reverse=True))
    assert query.companion_versions(MATRIX, "no-such-package") == ()


def made(**changes: object) -> Companion:
    row = Companion(
        package="vision", version="1", torch=">=2.3", cuda="12.1", same_cuda="minor", requires=(), source="made up",
        confidence="certain",
    )
    return replace(row, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "torch", "reason"),
    [
        ({}, "2.3.1", None),
        ({"torch": "==2.4.0"}, "2.3.1", "vision 1 requires torch==2.4.0, not 2.3.1"),
        ({"torch": None}, "2.3.1", None),
        ({"cuda": "12.4"}, "2.3.1", "vision 1 is built for CUDA 12.4, torch 2.3.1 for CUDA 12.1"),
        ({"cuda": "12.4", "same_cuda": "major"}, "2.3.1", None),
        ({"cuda": "11.8", "same_cuda": "major"}, "2.3.1", "vision 1 is built for CUDA 11.8, torch 2.3.1 for CUDA 12.1"),
        ({"cuda": "11.8", "same_cuda": "any"}, "2.3.1", None),
        ({"cuda": None}, "2.3.1", None),
    ],
)
def test_companion_fits_or_the_reason(changes: dict[str, object], torch: str, reason: str | None) -> None:
    assert query.companion_fits(made(**changes), build(torch)) == reason


def test_the_cuda_of_a_companion_says_nothing_about_a_cpu_build() -> None:
    assert query.companion_fits(made(cuda="13.0"), build("2.3.1", "linux-aarch64")) is None


def names(version: str, python: str, platform: str = "linux-64", index: str = "default") -> list[tuple[str, str]]:
    wheels = query.flash_attn_wheels_for(MATRIX, build(version, platform, index), python, platform)
    return [(wheel.version, wheel.cuda_tag) for wheel in wheels]


def test_flash_attn_wheels_of_torch_2_3() -> None:
    found = names("2.3.1", "3.10")
    assert found[0] == ("2.7.4.post1", "cu12")
    assert ("2.5.8", "cu122") in found
    assert ("2.6.3", "cu123") in found
    assert not [tag for _, tag in found if tag in {"cu118", "cu11"}]
    versions = [Version(version) for version, _ in found]
    assert versions == sorted(versions, reverse=True)


def test_flash_attn_has_the_abi_of_the_build() -> None:
    for version in ("2.6.0", "2.7.1"):
        row = build(version)
        wheels = query.flash_attn_wheels_for(MATRIX, row, "3.11", "linux-64")
        assert {wheel.cxx11_abi for wheel in wheels} == {row.cxx11_abi}


def test_a_cu12_asset_does_not_fit_cuda_13() -> None:
    assert names("2.10.0", "3.12") == [("2.8.1", "cu12")]
    assert names("2.10.0", "3.12", index="cu130") == [("2.8.3", "cu13")]
    assert names("2.11.0", "3.12") == []


def test_the_tag_that_setup_py_would_choose_comes_first() -> None:
    both = [tag for version, tag in names("2.1.2", "3.10") if version == "2.2.0"]
    assert both == ["cu121", "cu122"]
    assert next(tag for version, tag in names("2.0.1", "3.10") if version == "2.3.5") == "cu117"


@pytest.mark.parametrize(
    ("version", "python", "platform"),
    [("2.3.1", "3.13", "linux-64"), ("2.3.1", "3.10", "linux-aarch64"), ("2.15.0", "3.13", "linux-64")],
)
def test_no_flash_attn_wheel(version: str, python: str, platform: str) -> None:
    assert names(version, python, platform) == []


def test_no_flash_attn_wheel_where_the_abi_is_unread() -> None:
    row = replace(build("2.3.1"), cxx11_abi=None)
    assert query.flash_attn_wheels_for(MATRIX, row, "3.10", "linux-64") == ()


def test_no_flash_attn_wheel_for_another_platform_than_the_builds() -> None:
    assert query.flash_attn_wheels_for(MATRIX, build("2.3.1"), "3.10", "linux-aarch64") == ()


def test_flash_attn_release() -> None:
    row = query.flash_attn_release(MATRIX, "2.5.8")
    assert row is not None
    assert row.sdist
    assert query.flash_attn_release(MATRIX, "2.99") is None
    assert query.flash_attn_versions(MATRIX)[0] == "2.8.3.post2"


def test_driver_floors_are_of_the_major() -> None:
    floor = query.driver_floor(MATRIX, "12.1")
    assert floor is not None
    assert floor.floor == "525.60.13"
    assert query.driver_floor(MATRIX, "cpu") is None
    assert query.driver_floor(MATRIX, "99.0") is None


@pytest.mark.parametrize(
    ("driver", "cuda", "supported"),
    [
        ("470.82.01", "12.1", False),
        ("525.60.13", "12.9", True),
        ("525.60.11", "12.0", False),
        ("525", "12.0", True),
        ("525.0", "12.0", False),
        ("524", "12.0", False),
        ("535.54.03", "11.8", True),
        ("579.99", "13.0", False),
        ("580.65.06", "13.2", True),
        ("1", "cpu", True),
        ("999", "99.0", None),
    ],
)
def test_driver_supports(driver: str, cuda: str, supported: bool | None) -> None:
    assert query.driver_supports(MATRIX, driver, cuda) is supported


def test_windows_has_floors_of_its_own() -> None:
    assert query.driver_supports(MATRIX, "526.98", "12.8") is True
    assert query.driver_supports(MATRIX, "526.98", "12.8", "win-64") is False
    for driver, runs in (("525.60.13", False), ("579.99", False), ("580.88", True), ("591.0", True)):
        assert query.driver_supports(MATRIX, driver, "13.0", "win-64") is runs      # the branch alone is known
    floor = query.driver_floor(MATRIX, "11.8", "win-64")
    assert floor is not None
    assert floor.floor == "452.39"


def test_newest_cuda_of_a_driver_and_the_newest_whose_ptx_it_compiles() -> None:
    assert query.newest_cuda_for_driver(MATRIX, "535.54.03") == "12.9"
    assert query.jit_cuda_of_driver(MATRIX, "535.54.03") == "12.2"
    assert query.newest_cuda_for_driver(MATRIX, "470.82.01") == "11.8"
    assert query.newest_cuda_for_driver(MATRIX, "390.1") is None
    assert query.jit_cuda_of_driver(MATRIX, "390.1") is None


@pytest.mark.parametrize(
    ("archs", "gpu", "runs"),
    [
        (("sm_80",), "sm_80", True),
        (("sm_80",), "sm_86", True),
        (("sm_86",), "sm_80", False),
        (("sm_80",), "sm_90", False),
        (("sm_80", "compute_80"), "sm_90", True),
        (("compute_90",), "sm_80", False),
        (("compute_90",), "sm_120", True),
        (("sm_90a",), "sm_90", True),
        (("sm_100f",), "sm_103", False),
        (("compute_90a",), "sm_100", False),
        (("sm_100",), "sm_120", False),
        (("sm_120",), "12.0", True),
        (("sm_80",), "86", True),
        (("sm_80",), "8.6", True),
        ((), "sm_80", False),
        (("sm_80",), "ampere", False),
        (("nonsense",), "sm_80", False),
    ],
)
def test_gpu_runs(archs: tuple[str, ...], gpu: str, runs: bool) -> None:
    assert query.gpu_runs(archs, gpu) is runs


@pytest.mark.parametrize(
    ("asked", "cuda", "matches"),
    [
        ("12", "12.1", True),
        ("12.1", "12.1", True),
        ("12.1", "12.10", False),
        ("12.1", "12.4", False),
        ("12.1.1", "12.1", True),
        ("1", "12.1", False),
        ("cpu", "cpu", True),
        ("cpu", "12.1", False),
        ("12", "cpu", False),
    ],
)
def test_cuda_matches(asked: str, cuda: str, matches: bool) -> None:
    assert query.cuda_matches(asked, cuda) is matches


def test_a_closure_is_followed_to_its_end_and_names_each_project_once() -> None:
    matrix = replace(MATRIX, closures=(("a", ("b", "x")), ("b", ("a", "y")), ("c", ("z",))))
    assert query.closure_hint(matrix, ("a", "unknown")) == ("a", "b", "y", "x", "unknown")


def test_the_closure_of_real_projects() -> None:
    hinted = query.closure_hint(MATRIX, ("torchvision", "transformers"))
    assert {"torch", "pillow", "sympy", "mpmath", "tokenizers", "huggingface-hub"} <= set(hinted)
    assert len(set(hinted)) == len(hinted)


def test_the_libraries_of_a_build() -> None:
    assert "nvidia-nvjitlink-cu12" in query.library_hint(MATRIX, build("2.3.1"))
    found = set(query.library_hint(MATRIX, build("2.15.0")))
    assert {"cuda-toolkit", "nvidia-cublas", "nvidia-cuda-runtime", "nvidia-nvjitlink", "nvidia-cudnn-cu13"} <= found
    assert query.library_hint(MATRIX, build("2.3.1", "linux-aarch64")) == ()
