"""Each rule of docs/consistency.md is decided as it is written; each difference has the reason that records give."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.conda.consistent import RULES, departures
from stackfix.conda.names import Shelf
from stackfix.conda.records import CondaRecord, CondaTarget, Departure, Snapshot, Spec
from stackfix.resolve.records import TargetLock
from tests.conda_shelf import ODD, record, shelf
from tests.conda_sides import (
    BOOK,
    FORGE,
    FORGE_TORCH,
    MATRIX,
    OLD_TORCH,
    PYTORCH,
    conda_lock,
    package,
    pip_lock,
    without,
)

DOCUMENT = Path(__file__).parent.parent / "docs" / "consistency.md"
ABI_TRUE = "flash_attn-2.5.8+cu122torch2.3cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"
ABI_FALSE = ABI_TRUE.replace("TRUE", "FALSE")


def pinned(pip: TargetLock, **versions: str) -> TargetLock:
    """The pip lock with other versions of NVIDIA's libraries: cudnn="9.1.0.70"."""
    other = {f"nvidia-{name}-cu12": version for name, version in versions.items()}
    return replace(pip, packages=tuple(replace(one, version=other.get(one.name, one.version)) for one in pip.packages))


def between(conda: CondaTarget, pip: TargetLock | None = None, shelf: Shelf | None = None) -> list[Departure]:
    return list(departures(pip or pip_lock(), conda, MATRIX, BOOK, shelf=shelf))


def broken(conda: CondaTarget, pip: TargetLock | None = None) -> set[str]:
    return {one.about for one in between(conda, pip) if one.breaks}


def told(conda: CondaTarget, about: str, pip: TargetLock | None = None, shelf: Shelf | None = None) -> Departure:
    (found,) = [one for one in between(conda, pip, shelf) if one.about == about]
    return found


def test_the_document_states_the_rules_that_the_code_decides() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows[: len(RULES)] == [(rule.about, rule.says) for rule in RULES]


def test_sides_that_agree_differ_in_what_must_be_told_alone() -> None:
    found = between(conda_lock(torch=OLD_TORCH))
    assert found == []
    assert {one.about for one in between(conda_lock())} == {"cuda", "c++ abi", "cudnn"}
    assert broken(conda_lock()) == set()


def test_another_release_of_torch_breaks() -> None:
    other = pip_lock(torch="2.3.0")
    assert broken(conda_lock(), other) == {"torch"}
    assert broken(without(conda_lock(torch=None), "pytorch")) == {"torch"}


def test_another_python_breaks() -> None:
    assert broken(conda_lock(record("python", "3.12.1"))) == {"python"}
    assert broken(without(conda_lock(), "python")) == {"python"}
    assert broken(conda_lock(torch="linux-64/pytorch-2.5.1-cuda126_mkl_py312_hdbe889e_310.conda"),
                  pip_lock(torch="2.5.1", cuda="12.4")) >= {"python"}


def test_another_minor_of_cuda_is_told_with_the_proof_of_the_matrix() -> None:
    one = told(conda_lock(), "cuda")
    assert (one.pip, one.conda, one.breaks) == ("12.1", "12.0", False)
    assert "both run on the same drivers, 525.60.13 and newer" in one.reason


def test_another_major_of_cuda_breaks() -> None:
    torch = "linux-64/pytorch-2.3.1-py3.11_cuda11.8_cudnn8.7.0_0.tar.bz2"
    assert "cuda" in broken(conda_lock(record("pytorch-cuda", "11.8"), torch=torch))


def test_without_a_row_for_the_driver_another_minor_breaks() -> None:
    bare = replace(MATRIX, driver_families=())
    found = departures(pip_lock(), conda_lock(), bare, BOOK)
    assert {one.about for one in found if one.breaks} == {"cuda"}


def test_a_cpu_build_beside_one_for_cuda_breaks() -> None:
    cpu = replace(shelf()["linux-64/pytorch-2.4.1-cpu_generic_py311h71636e0_0.conda"], version="2.3.1")
    assert broken(conda_lock(cpu)) == {"cuda"}


def test_the_reason_of_another_cuda_are_the_builds_that_the_channels_have() -> None:
    def records(name: str) -> tuple[CondaRecord, ...]:
        return tuple(one for one in shelf().values() if one.name == name and one.channel == FORGE.url)

    one = told(conda_lock(), "cuda", shelf=records)
    assert one.reason.startswith(
        "conda-forge has torch 2.3.1 for Python 3.11 on linux-64 for CUDA 12.0 only, and not for CUDA 12.1; ")
    snapshot = Snapshot(date="2026-11-29", digest="0", holes=(), reason="--offline")
    bundled = told(replace(conda_lock(), snapshot=snapshot), "cuda", shelf=records)
    assert bundled.source == "records of pytorch in conda-forge, as bundled on 2026-11-29"
    every = told(conda_lock(channels=(FORGE, PYTORCH)), "cuda",
                 shelf=lambda name: tuple(one for one in shelf().values() if one.name == name))
    other = "pytorch-2.3.1-py3.11_cuda12.1_cudnn8.9.2_0.tar.bz2"
    assert f"have a build for CUDA 12.1 ({other}), which was not taken" in every.reason


def test_pytorch_cuda_must_be_of_the_builds_minor() -> None:
    assert broken(conda_lock(record("pytorch-cuda", "11.8"), torch=OLD_TORCH)) == {"cuda"}


def test_cuda_version_is_told_and_not_compared() -> None:
    newer = [one for one in between(conda_lock(record("cuda-version", "12.9"))) if one.conda == "cuda-version 12.9"]
    assert [(one.breaks, one.reason) for one in newer] == [
        (False, "the libraries are of CUDA 12.9, and torch is built for 12.0")]
    beside = conda_lock(record("cuda-version", "12.8"), record("libcurand", "10.3", depends=("cuda-version >=12",)),
                        torch=OLD_TORCH)
    assert told(beside, "cuda").reason == "it comes with libcurand; of this build pytorch-cuda is the CUDA"


def test_another_major_of_cudnn_breaks() -> None:
    pip = pinned(pip_lock(), cudnn="9.1.0.70")
    assert broken(conda_lock(), pip) == {"cudnn"}
    assert broken(conda_lock(torch=OLD_TORCH), pip) == {"cudnn"}


def test_a_cudnn_that_torch_does_not_ask_for_breaks() -> None:
    one = told(conda_lock(record("cudnn", "8.8.0.121")), "cudnn")
    assert (one.breaks, one.conda, one.reason) == (True, "8.8.0.121", "torch 2.3.1 needs cudnn >=8.9.7.29,<9.0a0")
    assert broken(without(conda_lock(), "libcudnn")) == {"cudnn"}


def test_another_cudnn_of_the_major_is_told_with_the_bound() -> None:
    one = told(conda_lock(), "cudnn")
    assert (one.pip, one.conda, one.breaks) == ("8.9.2.26", "8.9.7.29", False)
    assert one.reason == "pytorch 2.3.1 needs cudnn >=8.9.7.29,<9.0a0, which excludes 8.9.2.26"


def test_cudnn_of_the_build_string_is_as_exact_as_it_is_told() -> None:
    assert "cudnn" not in {one.about for one in between(conda_lock(torch=OLD_TORCH))}


@pytest.mark.parametrize(("version", "breaks"), [("12.0.140", True), ("12.1.105", False), ("12.9.86", False)])
def test_the_floor_of_nvjitlink(version: str, *, breaks: bool) -> None:
    found = between(conda_lock(record("libnvjitlink", version)))
    assert any(one.about == "nvjitlink" and one.breaks for one in found) is breaks
    if breaks:
        reason = next(one.reason for one in found if one.about == "nvjitlink" and one.breaks)
        assert reason.startswith("libcusparse 12.1.0.106 needs nvidia-nvjitlink-cu12>=12.1.55")


def test_the_floor_of_nvjitlink_holds_on_pips_side_too() -> None:
    low = pinned(pip_lock(), nvjitlink="12.0.140")
    (one,) = [one for one in between(conda_lock(), low) if one.breaks]
    assert (one.about, one.pip, one.conda) == ("nvjitlink", "12.0.140", None)
    assert broken(without(conda_lock(), "libnvjitlink")) == {"nvjitlink"}


def test_flash_attn_of_one_release() -> None:
    pip = pip_lock(package("flash-attn", "2.5.8", by="stackfix", file=ABI_FALSE, direct=True))
    wheel = package("flash-attn", "2.5.8", by="stackfix", file=ABI_TRUE, direct=True)
    assert broken(conda_lock(pip=(wheel,), layout="mixed"), pip) == set()
    assert broken(conda_lock(), pip) == {"flash-attn"}
    assert broken(conda_lock(record("flash-attn", "2.5.8", depends=("python >=3.11",))), pip) == set()
    assert broken(conda_lock(record("flash-attn", "2.6.3", depends=("python >=3.11",))), pip) == {"flash-attn"}


def test_a_flash_attn_wheel_for_the_other_abi_breaks() -> None:
    pip = pip_lock(package("flash-attn", "2.5.8", by="stackfix", file=ABI_FALSE, direct=True))
    wrong = package("flash-attn", "2.5.8", by="stackfix", file=ABI_FALSE, direct=True)
    one = told(conda_lock(pip=(wrong,), layout="mixed"), "flash-attn", pip)
    assert one.breaks
    assert "is for torch 2.3 and the old C++ ABI, and torch 2.3.1 for CUDA 12.0 has the new one" in one.reason
    assert broken(conda_lock(pip=(wrong,), torch=OLD_TORCH, layout="mixed"), pip) == set()


def test_what_was_asked_for_is_on_both_sides() -> None:
    pip = pip_lock(package("transformers", "4.40.2", by="--with transformers"),
                   package("tokenizers", "0.19.1", by="transformers"))
    assert broken(conda_lock(), pip) == {"transformers"}
    other = record("transformers", "4.41.0", depends=("python >=3.8",))
    one = told(conda_lock(other, specs=(Spec(text="transformers >=4.41", origin="--with transformers>=4.41"),)),
               "transformers", pip)
    assert (one.breaks, one.pip, one.conda) == (False, "4.40.2", "4.41.0")
    assert one.reason == "transformers >=4.41 is asked for (--with transformers>=4.41), which excludes 4.40.2"


def test_what_pip_brings_to_both_sides_is_of_one_release() -> None:
    pip = pip_lock(package("peft", "0.11.0", by="--with peft"))
    assert broken(conda_lock(pip=(package("peft", "0.11.0"),), layout="mixed"), pip) == set()
    assert broken(conda_lock(pip=(package("peft", "0.10.0"),), layout="mixed"), pip) == {"peft"}


def test_nothing_is_brought_twice() -> None:
    numpy = record("numpy", "1.26.4", depends=("python >=3.11",))
    one = told(conda_lock(numpy, pip=(package("numpy", "1.26.4"),), layout="mixed"), "numpy")
    assert one.breaks
    assert "pip would overwrite its files" in one.reason


REAL_BOUNDS = "linux-64/pytorch-cuda-12.1-ha16c6d3_6.tar.bz2"


def test_the_libraries_of_pytorch_cuda_are_told_with_the_bound_that_excludes_pips() -> None:
    """The pins of the cu121 wheels are the first that pytorch-cuda 12.1 keeps out."""
    conda = conda_lock(shelf()[REAL_BOUNDS], record("libcublas", "12.1.0.26"), record("libcusparse", "12.0.2.55"),
                       torch=OLD_TORCH, channels=(PYTORCH, FORGE))
    one = told(conda, "libcublas")
    assert (one.pip, one.conda, one.breaks) == ("12.1.3.1", "12.1.0.26", False)
    assert one.reason == "pytorch-cuda 12.1 needs libcublas >=12.1.0.26,<12.1.3.1, which excludes 12.1.3.1"
    assert one.source == "pytorch-cuda-12.1-ha16c6d3_6.tar.bz2"
    assert told(conda, "libcusparse").reason.endswith("which excludes 12.1.0.106")


def test_absence_and_what_the_other_version_would_need_are_reasons() -> None:
    conda = conda_lock(record("libcublas", "12.9.1.4"), record("cuda-version", "12.9"))
    there = record("libcublas", "12.1.3.1", depends=("cuda-version >=12.1,<12.2.0a0",))
    assert told(conda, "libcublas", shelf=lambda _: ()).reason == "conda-forge has no libcublas 12.1.3.1 for linux-64"
    assert told(conda, "libcublas", shelf=lambda _: (there,)).reason == (
        "libcublas 12.1.3.1 needs cuda-version >=12.1,<12.2.0a0, and here it is cuda-version 12.9")
    bare = record("libcublas", "12.1.3.1")
    assert "the channels' solver took another" in told(conda, "libcublas", shelf=lambda _: (bare,)).reason
    assert "was not asked" in told(conda, "libcublas").reason


def test_a_package_with_a_part_more_is_the_same_release() -> None:
    assert "nccl" not in {one.about for one in between(conda_lock(record("nccl", "2.20.5.1")))}
    one = told(conda_lock(record("nccl", "2.21.5.1")), "nccl")
    assert (one.pip, one.conda) == ("2.20.5", "2.21.5")


@given(place=st.integers(0, 6), version=ODD, depends=st.lists(ODD, max_size=2).map(tuple))
def test_hostile_records_are_compared_without_a_fault(place: int, version: str, depends: tuple[str, ...]) -> None:
    conda = conda_lock(record("transformers", "4.40.0", depends=("python",)))
    records = list(conda.records)
    records[place] = replace(records[place], version=version, depends=(*depends, *records[place].depends))
    odd = replace(conda, records=tuple(records))
    for pip in (None, pip_lock(package("transformers", "4.40.0", by="--with transformers"))):
        for one in departures(pip, odd, MATRIX, BOOK, shelf=lambda _: tuple(records)):
            assert one.reason
            assert one.source


def test_the_conda_side_alone_is_held_against_the_rules_that_need_no_other() -> None:
    assert departures(None, conda_lock(), MATRIX, BOOK) == ()
    low = conda_lock(record("libnvjitlink", "12.0.140"), record("cudnn", "8.8.0.121"), record("python", "3.12.1"))
    assert {one.about for one in departures(None, low, MATRIX, BOOK)} == {"python", "cudnn", "nvjitlink"}


def test_wheels_beside_a_channels_python_are_held_against_the_same_rules() -> None:
    pip = pip_lock()
    conda = without(conda_lock(torch=None, pip=pip.packages, layout="wheels"), "libcublas", "libcusparse",
                    "libnvjitlink", "cuda-version", "libcudnn")
    assert between(conda, pip) == []
    other = tuple(replace(one, version="2.3.0") if one.name == "torch" else one for one in pip.packages)
    assert broken(replace(conda, pip=other), pip) == {"torch"}
    assert FORGE_TORCH in shelf()
