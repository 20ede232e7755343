"""File names per target and name."""

from __future__ import annotations

import pytest

from stackfix.errors import BadInput
from stackfix.resolve.records import Target
from stackfix.write.names import check_name, constraints_name, pylock_name, requirements_name, suffix_of

TARGET = Target(python="3.11", platform="linux-64", glibc="2.28")


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
    ],
)
def test_names(name: str | None, target: Target | None, names: tuple[str, ...]) -> None:
    suffix = suffix_of(name, target)
    assert names == (requirements_name(suffix), requirements_name(suffix, step=2), pylock_name(suffix),
                     constraints_name(suffix))


@pytest.mark.parametrize("name", ["train", "a", "GPU_2", "cp311", "a-b"])
def test_a_name_that_can_be_part_of_file_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a.b", "-a", "a-", "../x", "a\n", "ä", "x" * 65, "flash-attn",
                                  "flash-attn-2", "cp311-linux-64", "a-cp312-linux-aarch64"])
def test_a_name_that_cannot(name: str) -> None:
    with pytest.raises(BadInput, match="--name"):
        check_name(name)
