"""Why a conda solve has no answer: the true reason in a few lines, over the bundled records."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.conda.records import CondaAsk, CondaConflict, CondaSolved, Spec, VirtualPackage
from stackfix.sources.conda_causes import MOST
from stackfix.sources.conda_channels import CondaChannels
from tests.conda_channels import bundled_channels
from tests.conda_servers import channel_folder, opened, row

FORGE, PYTORCH = ("conda-forge",), ("pytorch", "nvidia", "conda-forge")
ARCHSPEC = {"linux-64": "x86_64_v3", "linux-aarch64": "aarch64"}


@pytest.fixture(scope="module")
def channels(tmp_path_factory: pytest.TempPathFactory) -> CondaChannels:
    return bundled_channels(tmp_path_factory.mktemp("cache"))


def machine(cuda: str | None, platform: str) -> tuple[VirtualPackage, ...]:
    found = [("__unix", "0", "0"), ("__linux", "5.15", "0"), ("__glibc", "2.35", "0"),
             ("__archspec", "1", ARCHSPEC[platform]), *([("__cuda", cuda, "0")] if cuda else [])]
    return tuple(VirtualPackage(name=name, version=version, build=build, origin="the test")
                 for name, version, build in found)


def solve(channels: CondaChannels, *specs: str, names: tuple[str, ...] = FORGE, cuda: str | None = "12.8",
          platform: str = "linux-64", limits: tuple[str, ...] = ()) -> CondaSolved | CondaConflict:
    return channels.solve(CondaAsk(
        platform=platform, channels=tuple(map(channels.named, names)), virtual=machine(cuda, platform),
        specs=tuple(Spec(text=text, origin=f"line {at}") for at, text in enumerate(specs, start=1)),
        constraints=tuple(Spec(text=text, origin="-c") for text in limits)))


# Source: the stacks by which the bundled records were judged when they were put together
SOLVED = {
    "torch 2.1, CUDA 11.8": (("python=3.11", "pytorch=2.1.*=cuda118*"), FORGE, "12.8"),
    "torch 2.1, CUDA 12.0": (("python=3.11", "pytorch=2.1.*=cuda120*"), FORGE, "12.8"),
    "torch 2.3, cudnn 8": (("python=3.12", "pytorch=2.3.*=cuda*", "cudnn<9"), FORGE, "12.8"),
    "torch 2.4, CUDA 11.8": (("pytorch=2.4.*=cuda118*",), FORGE, "12.8"),
    "torch 2.5, CUDA 12": (("python=3.11", "pytorch=2.5.*=cuda*", "cuda-version=12.*"), FORGE, "12.8"),
    "torchvision": (("python=3.12", "pytorch-gpu=2.5.*", "torchvision", "numpy=1.26.*"), FORGE, "12.8"),
    "flash-attn": (("python=3.12", "flash-attn", "pytorch=*=cuda*", "cuda-version=12.6.*"), FORGE, "12.8"),
    "xformers": (("xformers", "pytorch=*=cuda*"), FORGE, "12.8"),
    "torch 2.6": (("python=3.10", "pytorch=2.6.*=cuda126*", "cuda-version=12.6.*"), FORGE, "12.8"),
    "python 3.13": (("python=3.13", "pytorch-gpu=2.7.*"), FORGE, "12.8"),
    "triton": (("python=3.12", "pytorch=2.8.*=cuda*", "triton"), FORGE, "12.8"),
    "torch 2.9": (("pytorch=2.9.*=cuda*", "cuda-version=12.9.*"), FORGE, "12.8"),
    "newest": (("python=3.12", "pytorch=*=cuda*"), FORGE, "12.8"),
    "transformers": (("python=3.11", "pytorch=*=cuda*", "transformers", "accelerate"), FORGE, "12.8"),
    "CUDA 13": (("python=3.13", "pytorch=*=cuda130*", "cuda-version=13.*"), FORGE, "13.0"),
    "cpu": (("python=3.12", "pytorch=2.7.*=cpu*"), FORGE, None),
    "pytorch 2.0, 11.8": (("pytorch=2.0.1", "pytorch-cuda=11.8"), PYTORCH, "12.8"),
    "pytorch 2.2, 11.8": (("python=3.11", "pytorch=2.2.2", "pytorch-cuda=11.8"), PYTORCH, "12.8"),
    "pytorch 2.3, 12.1": (("pytorch=2.3.1=*cuda*", "pytorch-cuda=12.1", "torchvision"), PYTORCH, "12.8"),
    "pytorch 2.4, 12.4": (("pytorch=2.4.*=*cuda*", "pytorch-cuda=12.4", "numpy=1.26.*"), PYTORCH, "12.8"),
    "pytorch 2.5, 12.1": (("python=3.11", "pytorch=2.5.1=*cuda*", "pytorch-cuda=12.1"), PYTORCH, "12.8"),
    "pytorch 2.5, 12.4": (("python=3.12", "pytorch=2.5.1=*cuda*", "pytorch-cuda=12.4"), PYTORCH, "12.8"),
}

# Specs, channels, __cuda, and what is told, in this order, among the causes
REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...], str | None, tuple[str, ...]]] = {
    "cudnn 8 with torch 2.6": (("pytorch=2.6.*=cuda*", "cudnn<9"), FORGE, "12.8", (
        "pytorch=2.6.*=cuda* is asked for",
        "pytorch 2.6.0 needs cudnn >=9.8.0.87,<10.0a0 (other builds: cudnn >=9.7.1.26,<10.0a0)",
        "cudnn<9 is asked for")),
    "flash-attn with torch 2.7": (("flash-attn", "pytorch=2.7.*"), FORGE, "12.8", (
        "flash-attn is asked for", "flash-attn 2.7.2 needs pytorch >=2.5.1,<2.6.0a0", "pytorch=2.7.* is asked for")),
    "CUDA 13 torch with CUDA 12": (("pytorch=*=cuda130*", "cuda-version=12.*"), FORGE, "13.0", (
        "pytorch=*=cuda130* is asked for", "pytorch 2.10.0 needs cuda-version >=13.0,<14",
        "cuda-version=12.* is asked for")),
    "GPU torch, no driver": (("pytorch=2.6.*=cuda*",), FORGE, None, (
        "pytorch=2.6.*=cuda* is asked for", "pytorch 2.6.0 needs __cuda",
        "the lock is for a machine without __cuda")),
    "11.8 build with pytorch-cuda 12.1": (("pytorch=2.3.1=*cuda11.8*", "pytorch-cuda=12.1"), PYTORCH, "12.8", (
        "pytorch=2.3.1=*cuda11.8* is asked for", "pytorch 2.3.1 needs pytorch-cuda >=11.8,<11.9",
        "pytorch-cuda=12.1 is asked for")),
    "strict priority hides libjpeg-turbo": (
        ("pytorch=2.4.*=*cuda*", "pytorch-cuda=12.4", "torchvision"), PYTORCH, "12.8", (
            "torchvision is asked for", "torchvision 0.19.0 needs pillow >=5.3.0,!=8.3.*",
            "pillow 12.3.0 needs libjpeg-turbo >=3.1.4.1,<4.0a0",
            "conda-forge has libjpeg-turbo 3.1.4.1, 3.2.0, but strict channel priority takes the pytorch channel's")),
    # and some more
    "a driver that is too old": (("pytorch=*=cuda130*",), FORGE, "12.8", (
        "pytorch=*=cuda130* is asked for", "the lock is for a machine with __cuda 12.8")),
    "a Python that the release never had": (("pytorch=2.6.*=cuda*", "python=3.9.*"), FORGE, "12.8", (
        "pytorch=2.6.*=cuda* is asked for", "python=3.9.* is asked for")),
    "no such package": (("nosuchpackage",), FORGE, "12.8", (
        "nosuchpackage is asked for", "no channel that was asked has a package nosuchpackage")),
    "no such release": (("pytorch ==99",), FORGE, "12.8", ("pytorch ==99 is asked for",)),
    "xformers of another torch": (("xformers", "pytorch=2.12.*"), FORGE, "12.8", (
        "xformers is asked for", "xformers 0.0.27 needs pytorch >=2.4.0,<2.5.0a0", "pytorch=2.12.* is asked for")),
    "two CUDAs": (("cuda-cudart=12.0.*", "libcublas==12.4.2.65"), FORGE, "12.8", (
        "cuda-cudart=12.0.* is asked for", "cuda-cudart 12.0.107 needs cuda-version >=12.0,<12.1.0a0",
        "libcublas==12.4.2.65 is asked for", "libcublas 12.4.2.65 needs cuda-version >=12.4,<12.5.0a0")),
    "a glibc that is too new": (("__glibc >=2.40",), FORGE, "12.8", (
        "__glibc >=2.40 is asked for", "the lock is for a machine with __glibc 2.35")),
}


@pytest.mark.parametrize("name", SOLVED)
def test_the_bundled_records_hold_real_stacks(name: str, channels: CondaChannels) -> None:
    specs, names, cuda = SOLVED[name]
    answer = solve(channels, *specs, names=names, cuda=cuda)
    assert isinstance(answer, CondaSolved), answer.raw
    assert all(record.md5 for record in answer.records)
    assert [record.name for record in answer.records] == sorted(record.name for record in answer.records)


def test_the_bundled_records_hold_a_stack_for_arm(channels: CondaChannels) -> None:
    answer = solve(channels, "python=3.12", "pytorch=2.8.*=cuda*", cuda="12.9", platform="linux-aarch64")
    assert isinstance(answer, CondaSolved)
    assert {record.subdir for record in answer.records} == {"linux-aarch64", "noarch"}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_told_by_its_true_reason(name: str, channels: CondaChannels) -> None:
    specs, names, cuda, told = REFUSED[name]
    answer = solve(channels, *specs, names=names, cuda=cuda)
    assert isinstance(answer, CondaConflict)
    texts = [cause.text for cause in answer.causes]
    assert [text for text in texts if text in told] == list(told)
    assert len(texts) <= MOST
    assert "://" not in f"{texts}{answer.raw}"
    for cause in answer.causes:
        assert (cause.spec is not None) == cause.text.endswith(("is asked for", "is allowed"))
        assert cause.spec is None or (cause.source == cause.spec.origin and cause.spec.text in specs)


def test_a_step_names_a_file_that_says_so(channels: CondaChannels) -> None:
    answer = solve(channels, "flash-attn", "pytorch=2.7.*")
    assert isinstance(answer, CondaConflict)
    [file] = [cause.source for cause in answer.causes if " needs " in cause.text]
    [record] = channels.records(channels.channels, "linux-64", "flash-attn")
    assert record.file_name == file
    assert "pytorch >=2.5.1,<2.6.0a0" in record.depends


def test_what_only_limits_is_told_as_such(channels: CondaChannels) -> None:
    answer = solve(channels, "pytorch=2.6.*=cuda*", limits=("cudnn <9",))
    assert isinstance(answer, CondaConflict)
    assert [cause.text for cause in answer.causes] == [
        "pytorch=2.6.*=cuda* is asked for", "pytorch 2.6.0 needs cudnn >=9.8.0.87,<10.0a0", "only cudnn <9 is allowed"]


def test_without_strict_priority_the_other_channel_is_taken(channels: CondaChannels) -> None:
    specs = ("pytorch=2.4.*=*cuda*", "pytorch-cuda=12.4", "torchvision")
    answer = channels.solve(CondaAsk(
        platform="linux-64", channels=tuple(map(channels.named, PYTORCH)), virtual=machine("12.8", "linux-64"),
        specs=tuple(Spec(text=text, origin="--with") for text in specs), priority="disabled"))
    assert isinstance(answer, CondaSolved)
    [jpeg] = [record for record in answer.records if record.name == "libjpeg-turbo"]
    assert jpeg.channel == channels.named("conda-forge").url


def test_no_path_of_this_machine_is_told(tmp_path: Path) -> None:
    secret = tmp_path / "home-of-somebody"
    first = channel_folder(secret / "first", row("lib", "1.0"))
    second = channel_folder(secret / "second", row("app", "1.0", "lib >=2"), row("lib", "2.0"))
    channels = opened(tmp_path, first.as_uri(), second.as_uri())
    answer = channels.solve(CondaAsk(platform="linux-64", channels=channels.channels,
                                     specs=(Spec(text="app", origin="--with app"),)))
    assert isinstance(answer, CondaConflict)
    assert answer.causes[-1].text == "second has lib 2.0, but strict channel priority takes the first channel's"
    assert "home-of-somebody" not in repr(answer)
