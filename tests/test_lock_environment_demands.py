"""What an environment.yml demands of the stack's own packages: it holds, or the answer is no with its causes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stackfix.write.conda_read import read_conda_file
from tests.cli_world import Say, World

CONDA = ("--format", "conda-lock")
PIP = ("--format", "requirements")


def asked(*dependencies: str, channels: tuple[str, ...] = ()) -> tuple[str, ...]:
    lines = [f"  - {one}" for one in ("python=3.11", *dependencies)]
    named = ["channels:", *(f"  - {one}" for one in channels)] if channels else []
    Path("environment.yml").write_text("\n".join([*named, "dependencies:", *lines, ""]), encoding="utf-8")
    return ("lock", "-r", "environment.yml", "--no-flash-attn")


def locked() -> dict[str, str]:
    """Packages of channels in the lock."""
    environment = read_conda_file(Path("conda-lock.yml")).environments[0]
    return {pin.name: pin.version for pin in environment.conda}


@pytest.mark.parametrize("formats", [(), PIP, (*CONDA, "--layout", "wheels")])
def test_another_cudnn_than_torch_takes_is_refused_on_every_side(
    formats: tuple[str, ...], world: World, say: Say,
) -> None:
    said = say(*asked("pytorch=2.3", "cudnn>=9"), *formats)
    assert said.status == 1, said
    assert "cudnn >=9 (environment.yml line 4)" in said.err
    assert "torch 2.3.1 requires nvidia-cudnn-cu12==8.9.2.26" in said.err
    assert not list(Path().glob("*lock*"))
    assert not Path("requirements.txt").exists()


def test_a_cudnn_that_torch_has_inside_is_not_another_one(world: World, say: Say) -> None:
    said = say(*asked("pytorch=2.3.1=py3.11_cuda12.1*", "cudnn>=9"), *CONDA)
    assert said.status == 1, said
    assert "cudnn >=9 is asked for, and torch 2.3.1 of this channel has cuDNN 8.9.2 linked in" in said.err


def test_the_channels_cudnn_is_the_one_that_is_asked_for(world: World, say: Say) -> None:
    said = say(*asked("pytorch=2.3", "cudnn=8.9.7"), *CONDA)
    assert said.status == 0, said
    assert locked()["cudnn"].startswith("8.9.7.")


def test_a_build_of_torch_is_the_one_that_is_asked_for(world: World, say: Say) -> None:
    dependencies = "pytorch=2.4.0=cuda118*", "pytorch-gpu"
    assert say(*asked(*dependencies), *CONDA).status == 0
    environment = read_conda_file(Path("conda-lock.yml")).environments[0]
    torch = next(pin for pin in environment.conda if pin.name == "pytorch")
    assert torch.build is not None
    assert torch.build.startswith("cuda118")
    assert "pytorch-gpu" in locked()


def test_no_wheel_is_a_build_of_channels(world: World, say: Say) -> None:
    said = say(*asked("pytorch=2.3.1=py3.11_cuda12.1*"), *CONDA, "--layout", "wheels")
    assert said.status == 1, said
    assert "pytorch ==2.3.1 py3.11_cuda12.1* is a package of channels, and torch would come from pip" in said.err
    said = say(*asked("pytorch=2.3.1=py3.11_cuda12.1*"))
    assert (said.status, "layout native" in said.err) == (0, True), said


def test_a_version_with_a_build_is_exact_and_said_to_be(world: World, say: Say) -> None:
    assert say(*asked("pytorch=2.3.*=py3.11_cuda12.1*")).status == 0
    assert say(*asked("pytorch=2.4=cuda118*"), *CONDA).status == 0      # conda orders 2.4 and 2.4.0 as one
    said = say(*asked("cmake=3=h*"), *CONDA)
    assert said.status == 1, said
    assert "no package of conda-forge, pytorch, nvidia is cmake ==3 h*" in said.err
    assert "cmake=3.*=h* is any release of it" in said.err


def test_what_no_channel_has_is_told_before_anything_is_solved(world: World, say: Say) -> None:
    said = say(*asked("pytorch=2.3", "cmake<2"))
    assert said.status == 1, said
    assert "is cmake <2: they have" in said.err
    assert "likewise" not in said.err       # it has nothing to do with torch


@pytest.mark.parametrize(("line", "held"), [("cuda-version=12.0", "12.0"), ("cuda-version>=12.3,<12.4", "12.3")])
def test_the_cuda_version_of_channels_is_the_one_that_is_asked_for(
    line: str, held: str, world: World, say: Say,
) -> None:
    said = say(*asked("pytorch=2.3.1=cuda120*", line), *CONDA)
    assert said.status == 0, said
    assert locked()["cuda-version"] == held


def test_wheels_for_another_cuda_than_the_range_are_no_layout(world: World, say: Say) -> None:
    assert say(*asked("pytorch=2.3", "cuda-version>=12.0"), *CONDA, "--layout", "wheels").status == 0
    said = say(*asked("pytorch=2.3", "cuda-version>=12.4"), *CONDA, "--layout", "wheels")
    assert said.status == 1, said
    assert "cuda-version >=12.4 is asked for, and pip's torch is built for CUDA 12.1" in said.err


def test_a_cuda_that_no_wheel_has_is_refused_with_its_link_and_by_its_line(world: World, say: Say) -> None:
    said = say(*asked("pytorch=2.3", "cuda-version=12.4"), *PIP)
    assert said.status == 1, said
    assert "asked: CUDA 12.4 (environment.yml line 4: cuda-version=12.4)" in said.err
    causes = said.err.partition("nearest")[0].split("because")[1].strip().splitlines()
    assert any("asked:" not in cause for cause in causes), causes


def test_an_offer_asks_by_the_file_what_only_it_can_say(world: World, say: Say) -> None:
    said = say(*asked("pytorch=2.3", "cudnn>=9", "cmake"))
    assert said.status == 1, said
    assert "without cudnn >=9 (environment.yml line 4), once the file says so" in said.err
    assert "stackfix lock --no-flash-attn -r environment.yml" in said.err


def test_a_release_of_python_is_the_one_that_is_asked_for(world: World, say: Say) -> None:
    Path("environment.yml").write_text("dependencies:\n  - python=3.11.8\n  - pytorch=2.3\n", encoding="utf-8")
    said = say("lock", "-r", "environment.yml", "--no-flash-attn", *CONDA)
    assert said.status == 0, said
    assert locked()["python"] == "3.11.8"


def test_what_bundled_records_lack_is_not_said_of_the_channels(world: World, say: Say) -> None:
    said = say(*asked("pytorch=2.3.0=*cuda99*"), *CONDA)
    assert said.status == 1, said
    line = next(line for line in said.err.splitlines() if "no package of conda-forge, pytorch, nvidia is" in line)
    day = r"as bundled on \d{4}-\d\d-\d\d"
    assert re.search(rf"\({day}, with holes: no channel was asked\) \[records of pytorch in .*, {day}\]", line), line
