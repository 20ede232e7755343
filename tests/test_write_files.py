"""Which files a lock becomes, and what of them is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.resolve.records import TargetLock
from stackfix.write.compare import compare
from stackfix.write.files import PlannedFile, check_formats, plan_files, write_files
from tests.lock_samples import COMMAND, HERE, NOWHERE, TAG, index_file, lock_of, package, sample_packages, target_lock

ALL = ("requirements", "pylock", "constraints")


def paths(*targets: TargetLock, formats: tuple[str, ...] = ALL, name: str | None = None) -> list[str]:
    return [file.path for file in plan_files(lock_of(*targets), formats=formats, name=name, command=COMMAND)]


def plain() -> TargetLock:
    return target_lock(sample_packages(NOWHERE))


def two_step() -> TargetLock:
    sdist = index_file("flash-attn", "flash_attn-2.5.8.tar.gz", b"x")
    others = tuple(package for package in sample_packages(NOWHERE) if package.name != "flash-attn")
    return target_lock((*others, package("flash-attn", "2.5.8", (sdist,), step=2)))


def test_one_target() -> None:
    assert paths(plain()) == ["requirements.txt", "pylock.toml", "constraints.txt"]
    assert check_formats(()) == ("requirements", "pylock", "conda-lock")
    assert paths(plain(), formats=("constraints", "constraints")) == ["constraints.txt"]
    assert paths(plain(), name="train") == ["requirements-train.txt", "pylock.train.toml", "constraints-train.txt"]


def test_several_targets() -> None:
    arm = replace(plain(), target=replace(HERE, platform="linux-aarch64"))
    assert paths(plain(), arm, formats=("requirements", "pylock")) == [
        f"requirements-cp{TAG}-linux-64.txt", f"requirements-cp{TAG}-linux-aarch64.txt", "pylock.toml",
    ]


def test_two_targets_that_no_marker_tells_apart_have_a_pylock_each() -> None:
    cpu, arm = (replace(plain(), target=replace(HERE, **more)) for more in (
        {"variant": "cpu"}, {"platform": "linux-aarch64", "variant": "cpu"}))
    assert paths(plain(), cpu, formats=("requirements", "pylock")) == [
        f"requirements-cp{TAG}-linux-64.txt", f"requirements-cp{TAG}-linux-64-cpu.txt", "pylock.toml",
        "pylock.cpu.toml"]
    assert paths(plain(), arm, formats=("pylock",)) == ["pylock.toml"]
    assert paths(arm, plain(), cpu, formats=("pylock",), name="train") == ["pylock.train.toml", "pylock.train-cpu.toml"]
    assert paths(cpu) == ["requirements.txt", "pylock.toml", "constraints.txt"]


def test_the_second_step_of_one_target_follows_its_pylock() -> None:
    cpu = replace(two_step(), target=replace(HERE, variant="cpu"))
    files = {file.path: file.text for file in plan_files(
        lock_of(plain(), cpu), formats=("pylock",), name=None, command=COMMAND)}
    later = f"requirements-flash-attn-cp{TAG}-linux-64-cpu.txt"
    assert set(files) == {"pylock.toml", "pylock.cpu.toml", later}
    assert "# second step of: pylock.cpu.toml\n" in files[later]
    assert f'second-step = "{later}"' in files["pylock.cpu.toml"]
    assert "second-step" not in files["pylock.toml"]


@pytest.mark.parametrize("lead", ["requirements", "pylock"])
def test_the_second_step_goes_with_either_lock(lead: str) -> None:
    files = {file.path: file.text
             for file in plan_files(lock_of(two_step()), formats=(lead,), name="train", command=COMMAND)}
    assert "requirements-flash-attn-train.txt" in files
    first = next(path for path in files if "flash-attn" not in path)
    assert "requirements-flash-attn-train.txt" in files[first]
    assert f"# second step of: {first}\n" in files["requirements-flash-attn-train.txt"]
    assert "flash-attn==" not in files[first]


def test_constraints_alone_need_no_second_step() -> None:
    assert paths(two_step(), formats=("constraints",)) == ["constraints.txt"]


@pytest.mark.parametrize("name", ["conda-lock", "explicit", "pixi", "environment"])
def test_a_conda_format_of_a_lock_without_conda_side_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"--format {name}: nothing was decided for conda"):
        paths(plain(), formats=("requirements", name))


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(BadInput, match="--format poetry: no such format"):
        paths(plain(), formats=("poetry",))


def test_the_same_lock_gives_the_same_bytes() -> None:
    shuffled = replace(plain(), packages=tuple(
        replace(package, files=package.files[::-1], requires=package.requires[::-1]) for package in plain().packages
    )[::-1])
    direct = [package.name for package in plain().packages if package.direct]
    assert direct == ["flash-attn"]
    one = plan_files(lock_of(plain()), formats=ALL, name=None, command=COMMAND)
    assert one == plan_files(lock_of(shuffled), formats=ALL, name=None, command=COMMAND)


def test_files_are_written_and_written_again(tmp_path: Path) -> None:
    files = plan_files(lock_of(plain()), formats=ALL, name=None, command=COMMAND)
    write_files(tmp_path / "new" / "folder", files)
    found = {path.name: path.read_text() for path in (tmp_path / "new" / "folder").iterdir()}
    assert found == {file.path: file.text for file in files}
    write_files(tmp_path / "new" / "folder", [PlannedFile(path="requirements.txt", text="other\n")])
    assert (tmp_path / "new" / "folder" / "requirements.txt").read_text() == "other\n"


def test_a_second_step_that_is_none_any_more_goes(tmp_path: Path) -> None:
    old = plan_files(lock_of(two_step()), formats=("requirements", "pylock"), name=None, command=COMMAND)
    write_files(tmp_path, old)
    others = {"requirements-flash-attn-train.txt": "# second step of: requirements-train.txt\n",
              "requirements-flash-attn-mine.txt": "flash-attn\n# second step of: requirements.txt\n"}
    for name, text in others.items():
        (tmp_path / name).write_text(text)
    write_files(tmp_path, plan_files(lock_of(plain()), formats=("constraints",), name=None, command=COMMAND))
    assert (tmp_path / "requirements-flash-attn.txt").exists()
    new = plan_files(lock_of(plain()), formats=("requirements",), name=None, command=COMMAND)
    difference = compare(tmp_path, new)[-1]
    assert (difference.path, difference.found) == (
        "requirements-flash-attn.txt", "# second step of: requirements.txt")
    write_files(tmp_path, new)
    assert not (tmp_path / "requirements-flash-attn.txt").exists()
    assert compare(tmp_path, new) == ()
    assert {name: (tmp_path / name).read_text() for name in others} == others


def test_an_input_is_never_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "requirements.txt"
    mine.write_text("transformers\n")
    files = plan_files(lock_of(plain()), formats=ALL, name=None, command=COMMAND)
    with pytest.raises(BadInput, match="is an input of this lock"):
        write_files(tmp_path, files, inputs=[tmp_path / "." / "requirements.txt"])
    assert mine.read_text() == "transformers\n"
    assert [path.name for path in tmp_path.iterdir()] == ["requirements.txt"]
