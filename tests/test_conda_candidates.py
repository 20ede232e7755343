"""Which torch builds of channels are tried, in which order, and with which channels around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.conda.candidates import Choice, choices, searched
from stackfix.sources.conda_channels import CondaChannels
from tests.conda_channels import bundled_channels
from tests.conda_servers import channel_folder, opened, row


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> CondaChannels:
    return bundled_channels(tmp_path_factory.mktemp("bundled"))


def words(choice: Choice) -> tuple[str, str, tuple[str, ...]]:
    return choice.torch.cuda, choice.spec, tuple(channel.name for channel in choice.channels)


def test_the_wheels_cuda_goes_first_whichever_channel_has_it(bundled: CondaChannels) -> None:
    found = choices(bundled, platform="linux-64", python="3.11", version="2.3.1", cuda="12.1")
    assert [words(choice) for choice in found] == [
        ("12.1", "pytorch ==2.3.1 py3.11_cuda12.1*", ("pytorch", "nvidia", "conda-forge")),
        ("12.0", "pytorch ==2.3.1 cuda120*", ("conda-forge",)),
    ]


def test_another_major_is_none(bundled: CondaChannels) -> None:
    found = choices(bundled, platform="linux-64", python="3.11", version="2.3.1", cuda="11.8")
    assert [choice.torch.cuda for choice in found] == ["11.8"]
    assert choices(bundled, platform="linux-64", python="3.11", version="2.3.1", cuda="13.0") == ()
    assert {choice.torch.cuda for choice in choices(bundled, platform="linux-64", python="3.11", cuda="cpu")} == {"cpu"}


def test_conda_forge_goes_first_where_both_have_a_cuda(bundled: CondaChannels) -> None:
    found = choices(bundled, platform="linux-64", python="3.11", version="2.3.0", cuda="11.8")
    assert [choice.channel.name for choice in found] == ["conda-forge"]
    both = choices(bundled, platform="linux-64", python="3.10", version="2.3.0", cuda="12.1")
    assert [choice.channel.name for choice in both] == ["pytorch"]


def test_only_the_channels_that_were_named(tmp_path: Path) -> None:
    forge = bundled_channels(tmp_path, "conda-forge")
    assert [channel.name for channel in searched(forge)] == ["conda-forge"]
    found = choices(forge, platform="linux-64", python="3.11", version="2.3.1", cuda="12.1")
    assert [choice.torch.cuda for choice in found] == ["12.0"]


def torch(build: str, version: str = "2.3.1") -> dict[str, object]:
    return row("pytorch", version, "python >=3.11,<3.12.0a0", build=build)


def test_a_channel_that_would_hide_the_build_is_left_out(tmp_path: Path) -> None:
    first = channel_folder(tmp_path / "first", torch("cpu_generic_py311h1234567_0"))
    helper = channel_folder(tmp_path / "helper", row("numpy"))
    second = channel_folder(tmp_path / "second", torch("cuda120_py311h1234567_300"))
    channels = opened(tmp_path, *(folder.as_uri() for folder in (first, helper, second)))
    (found,) = choices(channels, platform="linux-64", python="3.11", cuda="12.0")
    assert [Path(channel.url).name for channel in found.channels] == ["helper", "second"]
    (other,) = choices(channels, platform="linux-64", python="3.11", cuda="cpu")
    assert [Path(channel.url).name for channel in other.channels] == ["first", "helper", "second"]


def test_newest_release_first_without_one(bundled: CondaChannels) -> None:
    found = choices(bundled, platform="linux-64", python="3.11", cuda="12.9")
    versions = [choice.torch.record.version for choice in found]
    assert versions[:3] == ["2.12.0", "2.11.0", "2.10.0"]
    assert len(versions) == len({(choice.torch.record.version, choice.torch.cuda) for choice in found})
