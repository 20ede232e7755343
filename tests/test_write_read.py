"""Pins of the lock that is there already."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.write import read as module
from stackfix.write.files import plan_files, write_files
from stackfix.write.foreign import pylock_is_ours
from stackfix.write.read import read_kept_pins, requirements_pins, wheel_version
from tests.lock_samples import COMMAND, NOWHERE, index_file, lock_of, package, sample_packages, target_lock

PINS = (("einops", "0.8.1"), ("filelock", "3.29.0"), ("flash-attn", "2.5.8"), ("tiny-server", "1.0"),
        ("torch", "2.3.1"))


@pytest.mark.parametrize("lead", ["requirements", "pylock"])
@pytest.mark.parametrize("name", [None, "train"])
def test_pins_of_what_was_written(tmp_path: Path, lead: str, name: str | None) -> None:
    lock = lock_of(target_lock(sample_packages(NOWHERE)))
    write_files(tmp_path, plan_files(lock, formats=(lead,), name=name, command=COMMAND))
    assert read_kept_pins(tmp_path, name) == PINS
    assert read_kept_pins(tmp_path, "train" if name is None else None) == ()


def test_pins_of_the_second_step_and_of_other_targets(tmp_path: Path) -> None:
    (tmp_path / "requirements-flash-attn.txt").write_text("flash-attn==2.5.8 \\\n    --hash=sha256:00\n")
    (tmp_path / "requirements-cp311-linux-64.txt").write_text("torch==2.3.1\n")
    (tmp_path / "requirements-cp312-linux-64.txt").write_text("torch==2.3.0\n")
    (tmp_path / "requirements-train.txt").write_text("other==1\n")
    (tmp_path / "requirements-dev.in").write_text("other==1\n")
    assert read_kept_pins(tmp_path, None) == (("flash-attn", "2.5.8"), ("torch", "2.3.0"), ("torch", "2.3.1"))


def test_requirements_come_before_pylock(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("a==1\n")
    (tmp_path / "pylock.toml").write_text('[[packages]]\nname = "a"\nversion = "2"\n')
    assert read_kept_pins(tmp_path, None) == (("a", "1"),)


def test_a_file_by_hand_gives_the_pins_it_has() -> None:
    lines = (
        "# comment==1", "-r other.txt", "--index-url https://x", "Torch_Vision == 0.18.1  # why", "a>=1", "b==2.*",
        "c[x,y]==3 ; python_version < '3.9'", "d==4,<5", "e==5 \\", "f", "g @ https://h/g-7+cu12-py3-none-any.whl",
        "h @ https://h/h.tar.gz", "i==9 --hash=sha256:00",
    )
    assert list(requirements_pins("\n".join(lines))) == [
        ("torch-vision", "0.18.1"), ("c", "3"), ("e", "5"), ("g", "7"), ("i", "9")]


def test_no_folder_no_pins(tmp_path: Path) -> None:
    assert read_kept_pins(tmp_path / "nothing", None) == ()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("requirements.txt", b"a==1\n\xff\n", "requirements.txt line 2: is not UTF-8"),
        ("pylock.toml", b"a = 1\n\xff\n", "pylock.toml line 2: is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=reason):
        read_kept_pins(tmp_path, None)


def test_a_huge_file(tmp_path: Path) -> None:
    with (tmp_path / "requirements.txt").open("wb") as stream:
        os.truncate(stream.fileno(), module.LARGEST + 1)
    with pytest.raises(BadInput, match="is larger than 32 MB"):
        read_kept_pins(tmp_path, None)


@pytest.mark.parametrize("content", ["packages = 1", "packages = [1]", "[[packages]]\nname = 1",
                                     '[[packages]]\nname = "a"\nversion = 1', '[[packages]]\nname = "a"',
                                     '[[packages]]\nname = "a"\narchive = 1',
                                     '[[packages]]\nname = "a"\nversion="\\n"'])
def test_a_strange_pylock_gives_no_pins(tmp_path: Path, content: str) -> None:
    (tmp_path / "pylock.toml").write_text(content)
    assert read_kept_pins(tmp_path, None) == ()


@pytest.mark.parametrize(
    ("url", "version"),
    [
        ("https://h/v2.5.8/flash_attn-2.5.8%2Bcu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl", "2.5.8"),
        ("https://h/a-1.0-1-py3-none-any.whl", "1.0"),
        ("https://h/a-1.0.tar.gz", None),
        ("https://h/a.whl", None),
        ("", None),
    ],
)
def test_the_version_in_a_wheels_name(url: str, version: str | None) -> None:
    assert wheel_version(url) == version


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    for name, version in requirements_pins(text):
        assert name
        assert version


def test_a_named_pipe_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "requirements.txt")
    assert read_kept_pins(tmp_path, None) == ()


def test_pins_of_an_sdist(tmp_path: Path) -> None:
    lock = lock_of(target_lock((package("a", "1", (index_file("a", "a-1.tar.gz", b"x"),)),)))
    write_files(tmp_path, plan_files(lock, formats=("pylock",), name=None, command=COMMAND))
    assert read_kept_pins(tmp_path, None) == (("a", "1"),)


@pytest.mark.parametrize("content", [b"[[packages", b"a = " + b"[" * 5000, b"numpy==1.26.4\n"])
def test_a_pylock_that_is_no_toml_pins_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pylock.toml").write_bytes(content)
    assert read_kept_pins(tmp_path, None) == ()


def test_a_number_that_nobody_writes_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "pylock.toml").write_text(f"a = {'1' * 5001}\n")
    assert read_kept_pins(tmp_path, None) == ()
    assert not pylock_is_ours(f"a = {'1' * 5001}\n")
