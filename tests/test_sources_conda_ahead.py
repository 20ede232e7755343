"""Reading ahead: what was read is not asked for again, and whatever goes wrong is told by who asks in earnest."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stackfix.conda.records import CondaAsk, CondaSolved, Spec
from stackfix.sources.conda_channels import CondaChannels
from stackfix.sources.conda_errors import BadChannel
from tests.conda_servers import Answer, answers, opened, row, serving
from tests.sources_servers import RawServer

ROWS = (row("app", "2.0", "lib >=2"), row("lib", "2.5"))


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    for _ in range(400):
        if holds():
            return
        time.sleep(0.05)
    pytest.fail("it never came to be")


def solve(channels: CondaChannels) -> object:
    return channels.solve(CondaAsk(platform="linux-64", channels=channels.channels,
                                   specs=(Spec(text="app", origin="--with app"),)))


def test_what_was_read_ahead_is_not_asked_again(tmp_path: Path) -> None:
    with serving(answers(*ROWS)) as server:
        channels = opened(tmp_path, f"{server.url}/c")
        channels.prefetch(channels.channels, "linux-64", ("app",))
        until(lambda: bool(server.asked))
        assert isinstance(solve(channels), CondaSolved)
        assert sorted(server.asked) == sorted(set(server.asked))
        channels.close()


def test_a_fault_is_told_by_who_asks_in_earnest(tmp_path: Path) -> None:
    with serving(lambda _: Answer(status=500)) as server:
        channels = opened(tmp_path, f"{server.url}/c")
        channels.prefetch(channels.channels, "linux-64", ("app", "no name at all !!"))
        until(lambda: bool(server.asked))
        with pytest.raises(BadChannel, match="answers 500"):
            solve(channels)
        channels.close()


def test_offline_nothing_is_read_ahead(tmp_path: Path) -> None:
    with serving(answers(*ROWS)) as server:
        channels = opened(tmp_path, f"{server.url}/c", offline=True)
        channels.prefetch(channels.channels, "linux-64", ("app",))
        channels.close()
        assert server.asked == []


def test_ending_meanwhile_waits_for_nobody_and_is_no_crash(tmp_path: Path) -> None:
    code = f"""
        import sys, time
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).resolve().parent.parent)!r})
        from tests.conda_servers import opened
        channels = opened(Path({str(tmp_path)!r}), sys.argv[1], condarc="remote_read_timeout_secs: 60\\n")
        channels.prefetch(channels.channels, "linux-64", ("app",))
        time.sleep(float(sys.argv[2]))
    """

    def silent(_head: str) -> list[bytes]:
        time.sleep(20)
        return []

    with RawServer(silent) as silence, serving(answers(*ROWS)) as server:
        for url in (silence.url, server.url):
            for pause in ("0", "0.1", "0.3"):
                done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), f"{url}/c", pause],
                                      capture_output=True, text=True, check=False, timeout=15)
                assert done.returncode == 0, done.stderr
                assert done.stderr == ""
