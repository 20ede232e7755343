"""`matrix why`: verdict and reasons from the matrix alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stackfix.errors import BadInput
from stackfix.matrix.load import load_matrix
from stackfix.platforms import PLATFORMS
from stackfix.resolve.records import Verdict
from stackfix.resolve.why import why
from stackfix.resolve.why_pairs import KEYS
from tests.resolve_world import MATRIX, torch_build

REAL = load_matrix()


def reasons(verdict: Verdict, holds: bool | None) -> str:
    return "\n".join(point.text for point in verdict.points if point.holds is holds)


def test_the_combination_of_the_documentation() -> None:
    verdict = why(REAL, {"torch": "2.9", "flash-attn": "2.6.3", "python": "3.13"})
    assert verdict.fits is False
    assert "flash-attn 2.6.3 has no prebuilt wheel for torch 2.9" in reasons(verdict, holds=False)
    assert "has wheels for Python" in reasons(verdict, holds=True)
    assert all(point.source and point.confidence for point in verdict.points)


@pytest.mark.parametrize(("pairs", "fits"), [
    ({"torch": "2.3", "cuda": "12.1"}, True),
    ({"torch": "2.3", "cuda": "11.8"}, True),           # on the torch index
    ({"torch": "2.3", "cuda": "13.0"}, False),
    ({"torch": "2.3", "python": "3.13"}, False),
    ({"torch": "2.3", "python": "3.10", "flash-attn": "2.5.8"}, True),
    ({"cuda": "12", "driver": "470.82.01"}, False),
    ({"cuda": "12", "driver": "535.54.03"}, True),
    ({"torch": "2.5", "gpu-arch": "sm_120"}, False),
    ({"torch": "2.8", "gpu-arch": "sm_120"}, True),
    ({"torch": "2.3", "transformers": "5.1.0"}, False),
    ({"torch": "2.3.1", "torchvision": "0.18.1"}, True),
    ({"torch": "2.3.1", "torchvision": "0.18.0"}, False),
    ({"torch": "2.3.1", "torchvision": "99.0"}, None),
    ({"torch": "99.1"}, None),
    ({"torch": "2.3", "flash-attn": "99.0"}, None),
    ({"torch": "2.3", "platform": "linux-aarch64", "gpu-arch": "sm_90", "cuda": "cpu"}, False),
    ({"torch": "2.3", "platform": "osx-64"}, False),
    ({"torch": "2.3", "platform": "win-64"}, True),
    ({"torch": "2.3", "platform": "win-64", "cuda": "12.1"}, True),             # on the torch index
    ({"torch": "2.8", "platform": "win-64", "cuda": "12.1"}, False),
    ({"torch": "2.8", "platform": "win-64", "cuda": "12.8", "driver": "526.98"}, False),
    ({"torch": "2.8", "platform": "win-64", "cuda": "12.8", "driver": "528.33"}, True),
    ({"torch": "2.10", "platform": "win-64", "cuda": "13.0", "driver": "528.33"}, False),
    ({"torch": "2.10", "platform": "win-64", "cuda": "13.0", "driver": "580.88"}, True),
    ({"torch": "2.8", "platform": "osx-arm64", "python": "3.13"}, True),
    ({"torch": "2.8", "platform": "osx-arm64", "cuda": "12.8"}, False),
    ({"torch": "2.8", "platform": "win-64", "torchvision": "0.23.0"}, True),
    ({"torch": "2.10", "platform": "win-64", "cuda": "cpu", "xformers": "0.0.34"}, False),      # which is for CUDA
    ({"torch": "2.10", "platform": "win-64", "cuda": "12.8", "xformers": "0.0.34"}, True),
    ({"torch": "2.8", "platform": "win-64", "flash-attn": "2.8.3"}, False),
    *(({"torch": "2.8", "platform": f"{platform}-cpu"}, True) for platform in PLATFORMS),
    ({"torch": "2.8", "platform": "win-64-cpu", "cuda": "cpu", "driver": "470.82.01"}, True),
    ({"torch": "2.8", "platform": "linux-64-cpu", "cuda": "12.8"}, False),
    ({"torch": "2.8", "platform": "linux-64-cpu", "gpu-arch": "sm_90"}, False),
    ({"torch": "2.8", "driver": "470.82.01"}, False),                           # which no CPU build answers
    ({"torch": "2.8", "platform": "win-64", "driver": "528.33"}, True),         # on the torch index
    ({"torch": "2.8", "platform": "osx-arm64", "driver": "550.54"}, False),
])
def test_verdicts(pairs: dict[str, str], fits: bool | None) -> None:
    verdict = why(REAL, pairs)
    assert verdict.fits is fits
    assert verdict.points
    assert verdict.combination == tuple(pairs.items())


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_cpu_on_one_platform_is_judged_by_the_build_that_a_lock_takes_there(platform: str) -> None:
    verdict = why(REAL, {"torch": "2.8", "platform": f"{platform}-cpu"})
    assert verdict.build is not None
    index = "cpu" if platform == "linux-64" else "default"
    assert (verdict.build.cuda, verdict.build.platform, verdict.build.index) == ("cpu", platform, index)
    assert f"has a CPU build for {platform}" in reasons(verdict, holds=True)


def test_a_cuda_that_is_named_is_judged_by_its_own_build() -> None:
    verdict = why(REAL, {"torch": "2.8", "cuda": "12.8", "platform": "win-64", "driver": "525.60.13"})
    assert verdict.build is not None
    assert (verdict.build.cuda, verdict.build.index) == ("12.8", "cu128")
    assert reasons(verdict, holds=False) == "CUDA 12.8 needs driver 527.41 or newer (minor-version compatibility)"


def test_a_place_without_such_a_build_is_told_by_what_is_missing() -> None:
    assert reasons(why(MATRIX, {"torch": "2.3.1", "platform": "linux-64-cpu"}), holds=False) == (
        "torch 2.3.1 has no CPU build for linux-64")
    assert reasons(why(REAL, {"torch": "2.8", "cuda": "12.8", "platform": "linux-64-cpu"}), holds=False) == (
        "torch 2.8.0 is taken for the CPU on linux-64-cpu, as that name asks")


def test_where_the_build_is_found_is_told() -> None:
    assert "on the torch index (cu118) only" in reasons(why(REAL, {"torch": "2.3", "cuda": "11.8"}), holds=True)


def test_what_nobody_read_is_no_answer() -> None:
    unread = replace(MATRIX, torch=(torch_build("2.3.1", "12.1", "12.1.1", cxx11_abi=None, gpu_archs=()),))
    for pairs in ({"flash-attn": "2.5.8"}, {"gpu-arch": "sm_90"}):
        verdict = why(unread, {"torch": "2.3", **pairs})
        assert verdict.fits is None
        assert "nobody read" in reasons(verdict, holds=None)
    no_floor = replace(MATRIX, driver_families=())
    assert why(no_floor, {"torch": "2.3", "driver": "535.54.03"}).fits is None


def test_the_build_that_fits_best_is_judged() -> None:
    verdict = why(MATRIX, {"flash-attn": "2.5.8", "python": "3.10"})
    assert verdict.build is not None
    assert (verdict.build.version, verdict.build.cuda) == ("2.3.1", "12.1")


@pytest.mark.parametrize(("pairs", "thing"), [
    ({"colour": "red"}, "'colour'"), ({"gpu-arch": "big"}, "gpu-arch=big"), ({"driver": "new"}, "driver=new"),
    ({"torch": "two"}, "torch=two"), ({"cuda": "12.x"}, "cuda=12.x"), ({"flash-attn": "=>2"}, "flash-attn==>2"),
])
def test_bad_value_is_one_clear_error(pairs: dict[str, str], thing: str) -> None:
    with pytest.raises(BadInput) as caught:
        why(MATRIX, pairs)
    assert caught.value.thing == thing


def test_every_key_has_a_judge() -> None:
    values = {"platform": "linux-64", "gpu-arch": "sm_90", "driver": "535.54.03", "cuda": "12.1", "python": "3.10"}
    for key in KEYS:
        assert why(MATRIX, {key: values.get(key, "2.3.1")}).points


def test_companion_of_another_minor_says_what_it_was_built_for() -> None:
    verdict = why(REAL, {"torch": "2.5.1", "xformers": "0.0.29.post1"})
    point = verdict.points[-1]
    assert (point.holds, point.confidence) == (True, "high")
    assert "built for CUDA 12.1, another minor of the same major, which is accepted" in point.text
    same = why(REAL, {"torch": "2.7.0", "xformers": "0.0.30"}).points[-1]
    assert (same.holds, same.confidence) == (True, "certain")
    assert "another minor" not in same.text


def test_bare_driver_branch_is_its_newest_release_and_says_so() -> None:
    point = why(REAL, {"torch": "2.15", "driver": "580"}).points[-1]
    assert point.holds is True
    assert "580 is taken as such a release of its branch" in point.text
    assert why(REAL, {"torch": "2.15", "driver": "580.0"}).points[-1].holds is False
    assert why(REAL, {"torch": "2.15", "driver": "575"}).points[-1].holds is False
    assert "branch" not in why(REAL, {"torch": "2.15", "driver": "590"}).points[-1].text
