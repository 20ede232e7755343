"""Channels of the settings that nobody answers for and that have no bundled records."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.matrix.toml_files import matrix_directory
from stackfix.sources.conda_channels import CondaChannels, open_channels
from stackfix.sources.conda_errors import ChannelUnreachable
from tests.conda_servers import answers, row, serving

NOBODY = "http://127.0.0.1:9"       # the discard port, on which nobody listens
BASES = tuple((name, f"{NOBODY}/{name}") for name in ("conda-forge", "pytorch", "pkgs/main", "pkgs/r"))


def opened(folder: Path, *names: str, condarc: str = "", offline: bool = False) -> CondaChannels:
    (folder / ".condarc").write_text(f"remote_connect_timeout_secs: 1\nremote_max_retries: 0\n{condarc}")
    return open_channels(names, bases=BASES, environ={}, home=folder, cache_dir=folder / "cache", offline=offline,
                         snapshot_dir=matrix_directory() / "conda")


def pythons(channels: CondaChannels) -> int:
    return len(channels.records(channels.channels, "linux-64", "python"))


@pytest.mark.parametrize("offline", [True, False], ids=["--offline", "nobody answers"])
@pytest.mark.parametrize("order", ["[conda-forge, defaults]", "[defaults, conda-forge]"])
def test_defaults_are_left_out_where_the_bundled_records_stand_in(order: str, offline: bool, tmp_path: Path) -> None:
    channels = opened(tmp_path, condarc=f"channels: {order}\n", offline=offline)
    assert len(channels.channels) == 3
    assert pythons(channels) > 0
    assert [channel.name for channel in channels.channels] == ["conda-forge"]
    snapshot = channels.snapshot
    assert snapshot is not None
    why = "--offline" if offline else "conda-forge cannot be reached (Connection refused)"
    assert snapshot.reason == (
        f"{why}; defaults (pkgs/main, pkgs/r) is left out: no records of it come with stackfix")


@pytest.mark.parametrize(("names", "condarc", "says", "step"), [
    ((), "channels: [defaults]\n", "defaults (pkgs/main): cannot be reached", "lock without it: --channel conda-forge"),
    (("conda-forge", "defaults"), "", "defaults (pkgs/main): cannot be reached", "check the network"),
    ((), f"channels: [ours, conda-forge]\ncustom_channels: {{ours: '{NOBODY}'}}\n", "ours: cannot be reached",
     "lock without it: --channel conda-forge"),
    ((), (f"channels: [all]\ncustom_multichannels: {{all: [ours, conda-forge]}}\n"
          f"custom_channels: {{ours: '{NOBODY}'}}\n"), "all (ours): cannot be reached", "--channel conda-forge"),
], ids=["alone", "of the command line", "somebody's own", "of a group"])
def test_no_other_channel_is_left_out(
    names: tuple[str, ...], condarc: str, says: str, step: str, tmp_path: Path,
) -> None:
    with pytest.raises(ChannelUnreachable) as fault:
        pythons(opened(tmp_path, *names, condarc=condarc))
    assert says in fault.value.what()
    assert "no records of it come with stackfix" in fault.value.what()
    assert step in str(fault.value.next_step())
    assert ("--channel" in str(fault.value.next_step())) is not bool(names)


def test_defaults_are_not_left_out_beside_a_channel_as_it_is(tmp_path: Path) -> None:
    with serving(answers(row("python", "3.12"))) as server:
        channels = opened(tmp_path, condarc=f"channels: [defaults, conda-forge]\ncustom_channels:\n"
                                            f"  conda-forge: {server.url}\n")
        with pytest.raises(ChannelUnreachable, match="defaults") as fault:
            pythons(channels)
    assert "lock without it: --channel conda-forge" in str(fault.value.next_step())
