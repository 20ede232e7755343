"""Which conda files a lock becomes, what they are called, and that they are known again."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.conda.records import CondaTarget
from stackfix.errors import BadInput
from stackfix.resolve.records import Lock
from stackfix.write.compare import compare
from stackfix.write.conda_files import CONDA_FORMATS, plan_conda
from stackfix.write.files import plan_files, write_files
from stackfix.write.foreign import refuse_foreign
from stackfix.write.records import PlannedFile
from tests.conda_samples import ARM, COMMAND, X86, pip_part, target
from tests.judges.command import clean_environment, run
from tests.lock_samples import NOWHERE, PYTHON, TAG, index_file, lock_of, package, sample_packages, target_lock

ROOT = Path(__file__).resolve().parent.parent
OTHER = replace(X86, python="3.9")
SDIST = package("flash-attn", "2.5.8", (index_file("flash-attn", "flash_attn-2.5.8.tar.gz", b"x"),), step=2,
                requires=("torch",))
TWO_STEPS = (*pip_part()[:2], SDIST)


def plan(*targets: CondaTarget, formats: tuple[str, ...] = CONDA_FORMATS, name: str | None = None) -> list[PlannedFile]:
    return list(plan_conda(targets, formats=formats, name=name, command=COMMAND))


def paths(*targets: CondaTarget, formats: tuple[str, ...] = CONDA_FORMATS, name: str | None = None) -> list[str]:
    return [file.path for file in plan(*targets, formats=formats, name=name)]


def test_one_target() -> None:
    assert paths(target()) == ["conda-lock.yml", "conda-linux-64.lock", "environment.yml", "pixi.lock"]
    assert paths(target(), name="train") == ["train.conda-lock.yml", "train.conda-linux-64.lock",
                                             "environment-train.yml", "train.pixi.lock"]
    assert paths(target(), formats=("requirements", "pixi")) == ["pixi.lock"]
    assert paths(target(), formats=("requirements",)) == []
    assert paths(formats=("requirements",)) == []


def test_platforms_of_one_python_share_conda_lock_and_pixi() -> None:
    assert paths(target(where=ARM), target()) == [
        "conda-lock.yml", "conda-linux-64.lock", f"environment-cp{TAG}-linux-64.yml", "conda-linux-aarch64.lock",
        f"environment-cp{TAG}-linux-aarch64.yml", "pixi.lock"]


def test_several_pythons_share_pixi_alone() -> None:
    assert paths(target(), target(where=OTHER), formats=("conda-lock", "explicit", "pixi"), name="train") == [
        "train-cp39.conda-lock.yml", "train-cp39.conda-linux-64.lock", f"train-cp{TAG}.conda-lock.yml",
        f"train-cp{TAG}.conda-linux-64.lock", "train.pixi.lock"]


def test_the_sources_of_conda_lock_are_the_environment_files() -> None:
    for targets in ((target(),), (target(), target(where=ARM))):
        files = plan(*targets, name="train")
        environments = [file.path for file in files if file.path.startswith("environment")]
        sources = "".join(f"  - {path}\n" for path in environments)
        assert f"  sources:\n{sources}  custom_metadata:" in files[0].text


@pytest.mark.parametrize("kind", CONDA_FORMATS)
def test_a_second_step_goes_with_each_kind_alone(kind: str) -> None:
    first, second = plan(target(pip=TWO_STEPS), formats=(kind,), name="train")
    assert second.path == "requirements-flash-attn-train.txt"
    assert f"# second step of: {first.path}\n" in second.text
    assert f"# second step: {second.path}\n" in first.text
    assert "flash-attn==2.5.8 \\\n    --hash=sha256:" in second.text
    assert "flash_attn" not in first.text


def test_several_targets_have_a_second_step_each() -> None:
    files = {file.path: file.text for file in plan(target(pip=TWO_STEPS), target(where=ARM, pip=TWO_STEPS))}
    steps = [f"requirements-flash-attn-cp{TAG}-{platform}.txt" for platform in ("linux-64", "linux-aarch64")]
    assert [path for path in files if path.startswith("requirements")] == steps
    for step in steps:
        assert f"# second step: {step}\n" in files["conda-lock.yml"]
        assert f"# second step: {step}\n" in files["pixi.lock"]
    assert [line for line in files["conda-linux-64.lock"].splitlines() if "second step" in line] == [
        f"# second step: {steps[0]}"]


def joint(conda: CondaTarget, *, pip: bool) -> Lock:
    lock = lock_of(*((target_lock((*sample_packages(NOWHERE)[:2], SDIST)),) if pip else ()))
    return replace(lock, conda=(conda,))


def plan_joint(lock: Lock, *formats: str) -> tuple[PlannedFile, ...]:
    return plan_files(lock, formats=formats, name=None, command=COMMAND)


def test_the_second_step_of_a_joint_lock_is_written_once() -> None:
    files = plan_joint(joint(target(pip=TWO_STEPS), pip=True), "requirements", "conda-lock")
    assert [file.path for file in files] == ["requirements.txt", "requirements-flash-attn.txt", "conda-lock.yml"]
    alone = plan_joint(joint(target(pip=TWO_STEPS), pip=False), "conda-lock")
    assert [file.path for file in alone] == ["conda-lock.yml", "requirements-flash-attn.txt"]


def test_the_second_step_of_one_target_of_several_is_the_one_that_its_wheels_have() -> None:
    """Channels have nothing for macOS: the conda files are as for one target, the second step is not."""
    mac = target_lock(sample_packages(NOWHERE)[:2], replace(X86, platform="osx-arm64"))
    both = joint(target(pip=TWO_STEPS), pip=True)
    files = plan_joint(replace(both, targets=(*both.targets, mac)), "requirements", "conda-lock", "environment")
    later = f"requirements-flash-attn-cp{TAG}-linux-64.txt"
    assert [file.path for file in files] == [
        f"requirements-cp{TAG}-linux-64.txt", f"requirements-cp{TAG}-osx-arm64.txt", later, "conda-lock.yml",
        "environment.yml"]
    assert [later in file.text for file in files] == [True, False, False, True, True]


def test_every_file_is_known_again_and_holds_what_was_planned(tmp_path: Path) -> None:
    files = plan(target(pip=TWO_STEPS), target(where=OTHER))
    write_files(tmp_path, files)
    refuse_foreign(tmp_path, [file.path for file in files])
    write_files(tmp_path, files)
    assert compare(tmp_path, files) == ()


@pytest.mark.parametrize(("name", "content"), [
    ("conda-lock.yml", "# Generated by conda-lock\nversion: 1\n"), ("environment.yml", "dependencies: []\n"),
    ("pixi.lock", "version: 6\n"), ("conda-linux-64.lock", "# platform: linux-64\n@EXPLICIT\n"),
])
def test_what_another_wrote_is_not_overwritten_unasked(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match="was not written by stackfix"):
        write_files(tmp_path, plan(target()))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    write_files(tmp_path, plan(target()), overwrite=True)
    assert PYTHON in (tmp_path / name).read_text(encoding="utf-8")


def test_a_second_step_that_is_none_any_more_is_removed(tmp_path: Path) -> None:
    write_files(tmp_path, plan(target(pip=TWO_STEPS)))
    assert (tmp_path / "requirements-flash-attn.txt").exists()
    assert [difference.path for difference in compare(tmp_path, plan(target())) if "second step of" in (
        difference.found or "")] == ["requirements-flash-attn.txt"]
    write_files(tmp_path, plan(target()))
    assert not (tmp_path / "requirements-flash-attn.txt").exists()


RENDERED = """
import hashlib
from tests.conda_samples import ARM, COMMAND, target
from stackfix.write.conda_files import CONDA_FORMATS, plan_conda
for file in plan_conda((target(where=ARM), target()), formats=CONDA_FORMATS, name=None, command=COMMAND):
    print(file.path, hashlib.sha256(file.text.encode()).hexdigest())
"""


def test_another_process_on_another_machine_gives_the_same_bytes(tmp_path: Path) -> None:
    """Nothing of the hash seed, the folder, the home, the user, the locale or the clock is in a file."""
    said = set()
    for seed, machine in (("0", {"HOME": "/nowhere", "USER": "somebody", "LC_ALL": "C", "TZ": "Pacific/Apia"}),
                          ("1", {"HOME": str(tmp_path), "LANG": "C.UTF-8", "SOURCE_DATE_EPOCH": "1"})):
        done = run([sys.executable, "-c", RENDERED], cwd=ROOT, env=clean_environment(
            PYTHONHASHSEED=seed, PYTHONPATH=str(ROOT), **machine))
        assert done.status == 0, done
        said.add(done.stdout)
    assert len(said) == 1
    text = "".join(file.text for file in plan(target(), target(where=ARM)))
    for word in (str(Path.home()), socket.gethostname(), str(tmp_path)):
        assert len(word) < 4 or word not in text


def test_another_command_is_no_difference_and_anything_else_is(tmp_path: Path) -> None:
    write_files(tmp_path, plan(target()))
    again = list(plan_conda((target(),), formats=CONDA_FORMATS, name=None, command="stackfix lock --name train"))
    assert compare(tmp_path, again) == ()
    assert compare(tmp_path, plan(target(layout="native"))) != ()
