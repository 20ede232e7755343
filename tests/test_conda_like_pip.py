"""The channels' side is as near to the pip lock as it can be, and what is not so is told with a reason of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.conda.consistent import departures
from stackfix.conda.names import NameBook
from stackfix.conda.notes import conda_notes
from stackfix.conda.records import CondaRecord, CondaTarget, Departure, Snapshot, Spec
from stackfix.errors import StackfixError
from stackfix.matrix.conda_names import load_conda_names
from stackfix.resolve.records import Lock, NoConsistentStack, TargetLock
from tests.conda_shelf import record
from tests.conda_sides import BOOK, FORGE_TORCH, MATRIX, conda_lock, package, pip_lock
from tests.conda_stacks import Asked, Decider
from tests.judges.command import stackfix
from tests.replay.server import ReplayServer

SNAPSHOT = Snapshot(date="2026-11-29", digest="0", holes=(), reason="--offline")


@pytest.fixture(scope="module")
def decider(tmp_path_factory: pytest.TempPathFactory) -> Decider:
    return Decider(folder=tmp_path_factory.mktemp("bundled"))


def version_of(lock: Lock, name: str) -> str:
    return next(one.version for one in lock.conda[0].records if one.name == name)


def depending(name: str, version: str, *depends: str) -> CondaRecord:
    return replace(record(name, version), depends=depends)


def told(conda: CondaTarget, about: str, pip: TargetLock, *shelf: CondaRecord) -> Departure:
    def records(name: str) -> tuple[CondaRecord, ...]:
        return tuple(one for one in shelf if one.name == name)

    (found,) = [one for one in departures(pip, conda, MATRIX, BOOK, shelf=records) if one.about == about]
    return found


def with_cudnn(version: str) -> TargetLock:
    pip = pip_lock()
    return replace(pip, packages=tuple(
        replace(one, version=version) if one.name == "nvidia-cudnn-cu12" else one for one in pip.packages))


# --- the nearest CUDA ---


@pytest.mark.parametrize(("asked", "cuda"), [
    (Asked(torch="2.10", cuda="13.0", python=("3.13",)), "13.2"),   # 13.0 and 13.1 do not solve, 13.3 is there
    (Asked(torch="2.4", cuda="12.0", python=("3.12",)), "12.0"),
    (Asked(torch="2.6", cuda="12.6", python=("3.12",)), "12.6"),
])
def test_cuda_version_is_the_nearest_that_solves(asked: Asked, cuda: str, decider: Decider) -> None:
    assert version_of(decider.decide(asked), "cuda-version") == cuda


def test_a_cuda_version_that_is_not_torchs_own_has_its_reason(decider: Decider) -> None:
    (side,) = decider.decide(Asked(torch="2.10", cuda="13.0", python=("3.13",))).conda
    one = next(one for one in side.departures if one.about == "cuda")
    assert one.conda == "cuda-version 13.2"
    assert "cuda-version 13.0.* cannot be had beside the rest: pytorch 2.10.0 needs" in one.reason


# --- reasons ---


def test_what_is_there_for_a_package_alone_is_no_reason_for_its_version() -> None:
    newer = (
        depending("cudnn", "8.9.7.29", "libcudnn-dev 8.9.7.29 0"), record("libcudnn", "8.9.7.29"),
        depending("libcudnn-dev", "8.9.7.29", "libcudnn 8.9.7.29 0"),
    )
    one = told(conda_lock(*newer), "cudnn", with_cudnn("8.8.0.121"), *newer, record("libcudnn", "8.8.0.121"))
    assert "libcudnn-dev" not in one.reason
    assert "solver took another" in one.reason or "pytorch 2.3.1 needs" in one.reason


def test_the_bound_of_torch_goes_before_that_of_others() -> None:
    conda = conda_lock(depending("aaa", "1.0", "nccl >=2.25,<3"), depending("nccl", "2.30.7.1"),
                       specs=(Spec(text="pytorch ==2.3.1", origin="the stack"), Spec(text="aaa", origin="--with aaa")))
    torch = next(one for one in conda.records if one.name == "pytorch")
    bounded = replace(torch, depends=(*(line for line in torch.depends if not line.startswith("nccl")),
                                      "nccl >=2.26,<3"))
    conda = replace(conda, records=tuple(bounded if one.name == "pytorch" else one for one in conda.records))
    one = told(conda, "nccl", pip_lock(), record("nccl", "2.20.5.1"))
    assert one.reason == "pytorch 2.3.1 needs nccl >=2.26,<3, which excludes 2.20.5"
    assert one.source == Path(FORGE_TORCH).name


def test_absence_from_the_bundled_records_names_their_date() -> None:
    conda = replace(conda_lock(record("libcublas", "12.9.2.10")), snapshot=SNAPSHOT)
    one = told(conda, "libcublas", pip_lock(), record("libcublas", "12.9.2.10"))
    assert one.reason == "conda-forge has no libcublas 12.1.3.1 for linux-64 in the records bundled on 2026-11-29"


def test_what_nobody_named_is_told_where_it_differs() -> None:
    pip = pip_lock(package("triton", "2.3.1"), package("filelock", "3.20"), package("sympy", "1.13"))
    conda = conda_lock(depending("triton", "2.3.0", "python"), depending("sympy", "1.13", "python"),
                       depending("filelock", "3.19", "python"))
    found = {one.about: one for one in departures(pip, conda, MATRIX, BOOK)}
    assert (found["triton"].pip, found["triton"].conda, found["triton"].breaks) == ("2.3.1", "2.3.0", False)
    assert "filelock" in found
    assert "sympy" not in found


def test_what_pip_brings_on_both_sides_is_told_with_what_the_channels_bring_of_its_needs() -> None:
    pip = pip_lock(package("odd-pip", "5.24.0", by="peft"), package("peft", "1", by="--with peft"),
                   package("huggingface-hub", "2.4.0"))
    beside = (replace(package("odd-pip", "5.17.0", by="peft"), requires=("huggingface-hub",)),
              package("peft", "1", by="--with peft"))
    conda = conda_lock(depending("huggingface_hub", "1.11.0", "python"), pip=beside)
    one = next(one for one in departures(pip, conda, MATRIX, BOOK) if one.about == "odd-pip")
    assert (one.pip, one.conda, one.breaks) == ("5.24.0", "5.17.0", False)
    assert "the channels bring huggingface-hub 1.11.0, not 2.4.0" in one.reason


# --- notes and refusals ---


def test_a_second_step_is_told_where_conda_formats_alone_are_asked_for() -> None:
    flash = replace(package("flash-attn", "2.7.3", by="stackfix"), step=2)
    conda = conda_lock(pip=(flash,), layout="mixed")
    alone, beside = conda_notes([conda], beside=False), conda_notes([conda], beside=True)
    assert any(note.startswith("flash-attn 2.7.3 is the second step") for note in alone)
    assert not any("second step" in note for note in beside)


def test_layouts_that_do_not_hold_are_told(decider: Decider) -> None:
    conda = replace(conda_lock(), passed=(("native", "peft is in no channel"),), also_cuda=("12.6", "12.9"))
    found = conda_notes([conda], beside=True)
    assert "layout native does not hold: peft is in no channel" in found
    assert any("the channels have it for CUDA 12.6, 12.9" in note for note in found)


def test_a_machine_without_a_driver_is_named_by_what_took_it(tmp_path: Path) -> None:
    bare = Decider(folder=tmp_path, environ={"CONDA_OVERRIDE_CUDA": ""})
    with pytest.raises(StackfixError) as caught:
        bare.decide(Asked(torch="2.6", cuda="12.6", python=("3.12",)))
    assert isinstance(caught.value, NoConsistentStack)
    cause = next(one for one in caught.value.causes if "without __cuda" in one.text)
    assert cause.source == "CONDA_OVERRIDE_CUDA"
    assert "--driver 525.60.13 or newer" in cause.text


def test_a_layout_mixed_that_is_native_rests_on_no_flash_attn(decider: Decider) -> None:
    with pytest.raises(NoConsistentStack) as caught:
        decider.decide(Asked(torch="2.8", python=("3.12",), layout="mixed"))
    assert any(one.text.startswith("nothing of the request is left to pip (flash-attn is left out, as asked): torch "
                                   "2.8.0 is held by the layout native") for one in caught.value.causes)


# --- both locks ---


@pytest.mark.recorded
def test_releases_of_the_pip_lock_are_taken_where_they_fit(
    index: ReplayServer, stackfix_cache: Path, tmp_path: Path,
) -> None:
    done = stackfix("lock", "--torch", "2.10", "--python", "3.11", "--no-flash-attn", "--index-url", index.url,
                    "--with", "transformers", "--with", "accelerate", "--format", "requirements",
                    "--format", "conda-lock", "--json", cwd=tmp_path, cache=stackfix_cache)
    assert done.status == 0, done
    (target,) = done.json["targets"]
    version = {one["name"]: one["version"] for one in target["packages"] if one["manager"] == "conda"}
    pip = {one["name"]: one["version"] for one in target["packages"] if one["manager"] == "pip"}
    book = NameBook(load_conda_names())
    assert version["libcudnn"] == pip["nvidia-cudnn-cu12"]
    differing = {one["about"] for one in target["conda"]["departures"]}
    for project, release in pip.items():
        there = next((name.name for name in book.packages(project, "12.8") if name.name in version), None)
        if there is not None and not project.startswith(("torch", "nvidia")) and version[there] != release:
            assert {project, there} & differing, (project, release, version[there])
