"""Channels that mean harm, and interruptions: one error about the channel, and nothing of it in a record."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from stackfix.conda.records import CondaAsk, CondaConflict, CondaSolved, Spec
from stackfix.errors import StackfixError
from tests.conda_servers import channel_folder, opened, row
from tests.sources_servers import RawServer

APP, LIB = row("app", "1.0", "lib >=1"), row("lib", "1.0")


def solve(folder: Path, content: bytes) -> CondaSolved | CondaConflict:
    """What a solve comes to where the channel's linux-64 is this."""
    (channel_folder(folder / "chan") / "linux-64" / "repodata.json").write_bytes(content)
    channels = opened(folder, (folder / "chan").as_uri())
    channels.records(channels.channels, "linux-64", "app")
    return channels.solve(CondaAsk(platform="linux-64", channels=channels.channels,
                                   specs=(Spec(text="app", origin="--with app"),)))


def document(app: dict[str, Any], *, file: str = "app-1.0-0.conda", info: dict[str, Any] | None = None) -> bytes:
    return json.dumps({
        "info": {"subdir": "linux-64", **(info or {})}, "packages": {}, "repodata_version": 1,
        "packages.conda": {file: {**APP, **app}, "lib-1.0-0.conda": LIB}}).encode()


REFUSED = {
    "a build that leads out": document({"build": "../../x"}),
    "a subdir that leads out": document({"subdir": "../../etc"}),
    "a build with a line": document({"build": "0\nx"}), "an empty version": document({"version": ""}),
    "two versions": document({"version": "1.0 2.0"}), "a number as a dependency": document({"depends": [3]}),
    "no dependencies": document({"depends": None}), "a negative size": document({"size": -1}),
    "a short md5": document({"md5": "abc"}), "a time that is none": document({"timestamp": 10**18}),
    "no such kind": document({"noarch": "perhaps"}), "a file that is none": document({}, file="app.conda"),
    "half a letter": document({}).replace(b'"size": 1', b'"license": "\\ud800", "size": 1', 1),
    "deep": b"[" * 100_000, "deeper": b'{"info":' * 50_000, "nothing": b"",
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_what_no_channel_says_is_one_error(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(StackfixError) as fault:
        solve(tmp_path, content)
    assert "chan: " in fault.value.what()
    assert "\n" not in fault.value.what()
    assert fault.value.exit_status == 3


NOT_CHOSEN = {
    "a file that leads out": document({}, file="../../app-1.0-0.conda"), "another name": document({"name": "lib"}),
    "a name that leads out": document({"name": "../app"}),
    "a dependency that is none": document({"depends": ["lib >="]}),
    "a limit that is none": document({"constrains": ["!!!"]}),
}


@pytest.mark.parametrize("content", NOT_CHOSEN.values(), ids=NOT_CHOSEN)
def test_a_record_that_makes_no_sense_is_not_chosen(content: bytes, tmp_path: Path) -> None:
    answer = solve(tmp_path, content)
    assert isinstance(answer, CondaConflict)
    assert answer.causes[0].text == "app is asked for"


def test_a_license_is_kept_to_its_line(tmp_path: Path) -> None:
    answer = solve(tmp_path, document({"license": "MIT\nwith: more\u2028\x00"}))
    assert isinstance(answer, CondaSolved)
    assert answer.records[0].license == "MIT with: more"


@pytest.mark.parametrize(("base", "url"), [
    ("https://u:p@files.test/t/tok/x/", "https://files.test/x/app-1.0-0.conda"), ("../other/", None),
], ids=["another host", "another folder"])
def test_files_may_be_elsewhere_than_their_list(base: str, url: str | None, tmp_path: Path) -> None:
    answer = solve(tmp_path, document({}, info={"base_url": base}))
    assert isinstance(answer, CondaSolved)
    assert answer.records[0].channel == (tmp_path / "chan").as_uri()
    assert answer.records[0].url == (url or (tmp_path / "chan" / "other" / "app-1.0-0.conda").as_uri())


def test_an_interruption_ends_at_once(tmp_path: Path) -> None:
    """Also while a server keeps py-rattler waiting."""
    code = f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).resolve().parent.parent)!r})
        from tests.conda_servers import opened
        channels = opened(Path({str(tmp_path)!r}), sys.argv[1], condarc="remote_read_timeout_secs: 60\\n")
        try:
            channels.records(channels.channels, "linux-64", "app")
        except KeyboardInterrupt:
            print("interrupted")
    """

    def silent(_head: str) -> list[bytes]:
        time.sleep(20)
        return []

    with RawServer(silent) as server:
        command = [sys.executable, "-c", textwrap.dedent(code), f"{server.url}/c"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while not server.heads and child.poll() is None:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=15)
    assert (child.returncode, said) == (0, "interrupted\n")
