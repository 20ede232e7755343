"""Channels as a decision sees them: the bundled records, and folders."""

from __future__ import annotations

from pathlib import Path

from stackfix.conda.records import CondaAsk, CondaConflict, CondaSolved, Spec, VirtualPackage
from tests.conda_channels import bundled_channels

LINUX = (("__unix", "0", "0"), ("__linux", "5.15", "0"), ("__glibc", "2.35", "0"), ("__archspec", "1", "x86_64_v3"))


def virtual(cuda: str | None) -> tuple[VirtualPackage, ...]:
    every = (*LINUX, ("__cuda", cuda, "0")) if cuda else LINUX
    return tuple(VirtualPackage(name=name, version=version, build=build) for name, version, build in every)


def test_offline_the_bundled_records_answer(tmp_path: Path) -> None:
    channels = bundled_channels(tmp_path)
    assert [channel.name for channel in channels.channels] == ["conda-forge"]
    before = channels.snapshot
    assert before is None
    ask = CondaAsk(platform="linux-64", channels=channels.channels, virtual=virtual("12.8"),
                   specs=(Spec(text="pytorch 2.5.* cuda*", origin="--torch 2.5"),))
    answer = channels.solve(ask)
    assert isinstance(answer, CondaSolved)
    torch = next(record for record in answer.records if record.name == "pytorch")
    assert torch.version == "2.5.1"
    assert torch.url == f"{channels.channels[0].url}/linux-64/{torch.file_name}"
    assert torch in channels.records(channels.channels, "linux-64", "pytorch")
    after = channels.snapshot
    assert after is not None
    assert after.reason == "--offline"


def test_without_a_driver_there_is_no_gpu_build(tmp_path: Path) -> None:
    channels = bundled_channels(tmp_path)
    answer = channels.solve(CondaAsk(platform="linux-64", channels=channels.channels, virtual=virtual(None),
                                     specs=(Spec(text="pytorch 2.6.* cuda*", origin="--torch 2.6"),)))
    assert isinstance(answer, CondaConflict)
    assert "__cuda" in answer.raw
