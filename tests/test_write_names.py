"""File names per target and name."""

from __future__ import annotations

import pytest

from stackfix.errors import BadInput
from stackfix.resolve.records import Target
from stackfix.write.names import (
    check_name,
    conda_lock_name,
    constraints_name,
    environment_name,
    explicit_name,
    pixi_name,
    pylock_name,
    requirements_name,
    suffix_of,
)

TARGET = Target(python="3.11", platform="linux-64", glibc="2.28")
CPU = Target(python="3.12", platform="win-64", glibc="2.28", variant="cpu")


@pytest.mark.parametrize(
    ("name", "target", "names"),
    [
        (None, None, ("requirements.txt", "requirements-flash-attn.txt", "pylock.toml", "constraints.txt")),
        ("train", None, ("requirements-train.txt", "requirements-flash-attn-train.txt", "pylock.train.toml",
                         "constraints-train.txt")),
        (None, TARGET, ("requirements-cp311-linux-64.txt", "requirements-flash-attn-cp311-linux-64.txt",
                        "pylock.cp311-linux-64.toml", "constraints-cp311-linux-64.txt")),
        ("train", TARGET, ("requirements-train-cp311-linux-64.txt",
                           "requirements-flash-attn-train-cp311-linux-64.txt",
                           "pylock.train-cp311-linux-64.toml", "constraints-train-cp311-linux-64.txt")),
        ("train", CPU, ("requirements-train-cp312-win-64-cpu.txt",
                        "requirements-flash-attn-train-cp312-win-64-cpu.txt",
                        "pylock.train-cp312-win-64-cpu.toml", "constraints-train-cp312-win-64-cpu.txt")),
    ],
)
def test_names(name: str | None, target: Target | None, names: tuple[str, ...]) -> None:
    suffix = suffix_of(name, target)
    assert names == (requirements_name(suffix), requirements_name(suffix, step=2), pylock_name(suffix),
                     constraints_name(suffix))


@pytest.mark.parametrize(
    ("name", "python", "names"),
    [
        (None, None, ("conda-lock.yml", "conda-linux-64.lock", "pixi.lock")),
        ("train", None, ("train.conda-lock.yml", "train.conda-linux-64.lock", "train.pixi.lock")),
        (None, "cp311", ("cp311.conda-lock.yml", "cp311.conda-linux-64.lock", "pixi.lock")),
        ("train", "cp311", ("train-cp311.conda-lock.yml", "train-cp311.conda-linux-64.lock", "train.pixi.lock")),
    ],
)
def test_names_of_conda_files(name: str | None, python: str | None, names: tuple[str, ...]) -> None:
    assert names == (conda_lock_name(name, python), explicit_name(name, "linux-64", python), pixi_name(name))


def test_names_of_environment_files() -> None:
    assert environment_name("") == "environment.yml"
    assert environment_name(suffix_of("train", TARGET)) == "environment-train-cp311-linux-64.yml"


@pytest.mark.parametrize("name", ["train", "a", "GPU_2", "cp", "a-b", "cp311-new", "cpu", "train-cpu"])
def test_a_name_that_can_be_part_of_file_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a.b", "-a", "a-", "../x", "a\n", "ä", "x" * 65, "flash-attn",
                                  "flash-attn-2", "cp311-linux-64", "a-cp312-linux-aarch64", "cp311",
                                  "a-cp312", "cp311-win-64-cpu", "a-cp312-osx-arm64-cpu"])
def test_a_name_that_cannot(name: str) -> None:
    with pytest.raises(BadInput, match="--name"):
        check_name(name)
