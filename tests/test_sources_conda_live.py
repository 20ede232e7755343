"""Channels as they are now: what servers answer, and what is said where they do not."""

from __future__ import annotations

import asyncio
import bz2
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from base64 import b64encode
from pathlib import Path

import pytest
from rattler.index import index_fs

from stackfix.conda.records import CondaAsk, CondaConflict, CondaSolved, Spec
from stackfix.errors import BadInput, Unreachable
from stackfix.matrix.toml_files import matrix_directory
from stackfix.sources.conda_channels import CondaChannels
from stackfix.sources.conda_errors import BadChannel, ChannelUnreachable
from tests.conda_packages import SUBDIR, Package
from tests.conda_servers import Answer, Reply, answers, channel_folder, make_authority, opened, repodata, row, serving
from tests.sources_servers import RawServer

ROWS = (row("app", "1.0", "lib >=1"), row("app", "2.0", "lib >=2"), row("lib", "1.5"), row("lib", "2.5"))
NOBODY = "http://127.0.0.1:9/conda-forge"      # the discard port, on which nobody listens


def solve(channels: CondaChannels, *specs: str, platform: str = "linux-64",
          **more: object) -> CondaSolved | CondaConflict:
    ask = CondaAsk(platform=platform, channels=channels.channels,
                   specs=tuple(Spec(text=text, origin="--with") for text in specs), **more)  # type: ignore[arg-type]
    return channels.solve(ask)


def versions(answer: CondaSolved | CondaConflict) -> dict[str, str]:
    assert isinstance(answer, CondaSolved), answer.raw
    return {record.name: record.version for record in answer.records}


def test_a_server_and_a_folder_give_the_same_answer(tmp_path: Path) -> None:
    folder = channel_folder(tmp_path / "chan", *ROWS)
    with serving(answers(*ROWS)) as server:
        live = opened(tmp_path, f"{server.url}/chan")
        local = opened(tmp_path, folder.as_uri())
        assert versions(solve(live, "app")) == versions(solve(local, "app")) == {"app": "2.0", "lib": "2.5"}
        assert live.snapshot is None
    [first, *_] = live.records(live.channels, "linux-64", "lib")
    assert first.url == f"{server.url}/chan/linux-64/{first.file_name}"
    assert first.channel == f"{server.url}/chan"
    assert first.sha256 == row("lib", first.version)["sha256"]


def test_a_record_that_is_gone_changes_the_answer(tmp_path: Path) -> None:
    with serving(answers(*ROWS)) as whole, serving(answers(*ROWS[:3])) as less:
        assert versions(solve(opened(tmp_path, f"{whole.url}/c"), "app"))["app"] == "2.0"
        assert versions(solve(opened(tmp_path, f"{less.url}/c"), "app"))["app"] == "1.0"


def test_the_next_run_sees_what_has_changed(tmp_path: Path) -> None:
    rows = list(ROWS)

    def reply(path: str) -> Answer:
        return answers(*rows)(path)

    with serving(reply) as server:
        assert versions(solve(opened(tmp_path, f"{server.url}/c"), "app"))["app"] == "2.0"
        del rows[1]
        assert versions(solve(opened(tmp_path, f"{server.url}/c"), "app"))["app"] == "1.0"


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    with serving(answers(*ROWS)) as server:
        channels = opened(tmp_path, f"{server.url}/c")
        solve(channels, "app")
        asked = len(server.asked)
        solve(channels, "lib")
        channels.records(channels.channels, "linux-64", "app")
        assert len(server.asked) == asked


def test_packed_repodata_is_taken_where_there_is_some(tmp_path: Path) -> None:
    def reply(path: str) -> Answer:
        if not path.endswith("repodata.json.bz2"):
            return Answer(status=404)
        return Answer(body=bz2.compress(answers(*ROWS)(path.removesuffix(".bz2")).body))

    with serving(reply) as server:
        assert versions(solve(opened(tmp_path, f"{server.url}/c"), "app"))["app"] == "2.0"


@pytest.mark.parametrize("shards", [True, False], ids=["shards", "zst"])
def test_a_channel_as_it_is_indexed_today(shards: bool, tmp_path: Path) -> None:
    folder = tmp_path / "indexed"
    for subdir in (SUBDIR, "noarch"):
        (folder / subdir).mkdir(parents=True)
    for package in (Package(name="app", version="2.0", depends=("lib >=2",)), Package(name="lib", version="2.5")):
        (folder / SUBDIR / package.file).write_bytes(package.archive())
    asyncio.run(index_fs(folder, write_zst=True, write_shards=shards))
    for path in folder.glob("*/repodata.json"):
        path.unlink()

    def reply(path: str) -> Answer:
        file = folder / path.removeprefix("/c/")
        return Answer(body=file.read_bytes()) if file.is_file() else Answer(status=404)

    with serving(reply) as server:
        channels = opened(tmp_path, f"{server.url}/c")
        answer = solve(channels, "app", platform=SUBDIR)
        assert versions(answer) == {"app": "2.0", "lib": "2.5"}
    assert isinstance(answer, CondaSolved)
    assert answer.records[0].url == f"{server.url}/c/{SUBDIR}/{answer.records[0].file_name}"
    assert any("/shards/" in path for path in server.asked) is shards


def test_with_nobody_there_the_bundled_records_stand_in(tmp_path: Path) -> None:
    channels = opened(tmp_path, condarc=f"custom_channels:\n  conda-forge: {NOBODY.rpartition('/')[0]}\n",
                      snapshot=matrix_directory() / "conda")
    found = channels.records(channels.channels, "linux-64", "libtorch")
    assert found
    assert found[0].url == f"{NOBODY}/linux-64/{found[0].file_name}"
    snapshot = channels.snapshot
    assert snapshot is not None
    assert snapshot.reason == "conda-forge cannot be reached (Connection refused)"


def test_a_channel_of_which_no_records_are_bundled_is_an_error(tmp_path: Path) -> None:
    channels = opened(tmp_path, NOBODY.replace("conda-forge", "ours"), snapshot=matrix_directory() / "conda")
    with pytest.raises(ChannelUnreachable, match=r"9/ours: cannot be reached \(Connection refused\)") as fault:
        channels.records(channels.channels, "linux-64", "app")
    assert fault.value.exit_status == 3


def without_noarch(path: str) -> Answer:
    return answers(*ROWS)(path) if "linux-64" in path else Answer(status=404)


def endless(path: str) -> Answer:
    return Answer(endless=b" " * 64) if path.endswith("repodata.json") else Answer(status=404)


def of_repodata(**answer: object) -> Reply:
    return lambda path: Answer(**answer) if path.endswith("repodata.json") else Answer(status=404)  # type: ignore[arg-type]


BAD = {
    "500": (lambda _: Answer(status=500, body=b"oops"), "answers 500 Internal Server Error"),
    "503": (lambda _: Answer(status=503), "answers 503 Service Unavailable"),
    "401": (lambda _: Answer(status=401), "asks for a login although its address holds a login or token"),
    "403": (lambda _: Answer(status=403), "refuses access although its address holds a login or token (403 Forbidden)"),
    "407": (lambda _: Answer(status=407), "is behind a proxy that asks for a login (407"),
    "404": (lambda _: Answer(status=404), "has no noarch/repodata.json (404 Not Found): it is no conda channel"),
    "no noarch": (without_noarch, "has no noarch/repodata.json"),
    "a page": (of_repodata(body=b"<html>welcome</html>"), "its repodata cannot be read"),
    "a page for everything": (lambda _: Answer(body=b"<html>welcome</html>"), "its repodata cannot be read"),
    "a part": (of_repodata(body=repodata(*ROWS)[:-9]), "its repodata cannot be read"),
    "cut off": (of_repodata(body=repodata(*ROWS), length=10**6), "answer to the end"),
    "a bad record": (of_repodata(body=repodata({**row("python"), "version": 5})), "its repodata cannot be read"),
    "an empty object": (of_repodata(body=b"[]"), "its repodata cannot be read"),
    "no end": (endless, "did not answer to the end within 2 s"),
}


@pytest.mark.parametrize(("reply", "said"), BAD.values(), ids=BAD)
def test_a_bad_answer_is_one_error_about_the_channel(reply: Reply, said: str, tmp_path: Path) -> None:
    """Nothing bundled stands in: a channel that answers nonsense is no channel that cannot be reached."""
    with serving(reply) as server:
        base = server.url.replace("://", "://me:secret@")
        channels = opened(tmp_path, condarc=f"custom_channels:\n  conda-forge: {base}/t/hidden\n",
                          snapshot=matrix_directory() / "conda")
        with pytest.raises(BadChannel) as fault:
            channels.records(channels.channels, "linux-64", "python")
    text = f"{fault.value.what()} {fault.value.next_step()}"
    assert fault.value.what().startswith("conda-forge: ")
    assert said in text
    assert "\n" not in text
    assert "secret" not in text
    assert "hidden" not in text
    assert channels.snapshot is None


@pytest.mark.parametrize(("status", "said"), [
    (401, "asks for a login (401 Unauthorized)|into ~/.netrc"),
    (503, "answers 503 Service Unavailable: its server has failed|try again later"),
], ids=["401", "503"])
def test_what_was_read_ahead_hides_no_reason(status: int, said: str, tmp_path: Path) -> None:
    """Who asks for what is being read already learns from rattler only that this failed."""
    def reply(path: str) -> Answer:
        time.sleep(0.2)
        return Answer(status=status)

    with serving(reply) as server:
        channels = opened(tmp_path, f"{server.url}/c", condarc="remote_read_timeout_secs: 2\n")
        channels.prefetch(channels.channels, "linux-64", ("app",))
        while not server.asked:
            time.sleep(0.01)
        with pytest.raises(BadChannel) as fault:
            channels.records(channels.channels, "linux-64", "python")
        channels.close()
    what, step = said.split("|")
    assert what in fault.value.what()
    assert step in str(fault.value.next_step())
    assert "--offline" not in str(fault.value.next_step())      # no records of this one come with stackfix


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}


def test_what_is_kept_of_channels_is_for_the_user_alone(tmp_path: Path) -> None:
    """rattler notes addresses with their logins and tokens beside the answers."""
    kept = tmp_path / "cache" / "conda-repodata-v1"
    kept.mkdir(parents=True, mode=0o755)
    (kept / "of-before.info.json").write_text("{}")
    (kept / "of-before.info.json").chmod(0o644)
    seen: set[int] = set()

    def reply(path: str) -> Answer:
        seen.add(kept.stat().st_mode & 0o777)
        return answers(*ROWS)(path)

    with serving(reply) as server:
        address = server.url.replace("://", "://me:s3cret@")
        channels = opened(tmp_path, f"{address}/t/hidden-1/c")
        solve(channels, "app")
        channels.close()
    assert seen == {0o700}
    assert any(b"s3cret" in path.read_bytes() or b"hidden-1" in path.read_bytes()
               for path in kept.rglob("*") if path.is_file())
    found = modes(kept)
    assert len(found) > 2
    assert not [name for name, mode in found.items() if mode & 0o077], found


def test_a_cache_that_cannot_be_closed_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "conda-repodata-v1").write_text("no folder")
    temporary = set(Path(tempfile.gettempdir()).glob("stackfix-*"))
    with serving(answers(*ROWS)) as server:
        channels = opened(tmp_path, f"{server.url}/c")
        assert versions(solve(channels, "app"))["app"] == "2.0"
        channels.close()
    assert set(Path(tempfile.gettempdir()).glob("stackfix-*")) <= temporary


def test_a_server_that_says_nothing_is_out_of_reach(tmp_path: Path) -> None:
    wait = threading.Event()

    def silent(_head: str) -> list[bytes]:
        wait.wait(20)
        return []

    with RawServer(silent) as server:
        channels = opened(tmp_path, condarc=f"custom_channels:\n  conda-forge: {server.url}\n",
                          snapshot=matrix_directory() / "conda")
        assert channels.records(channels.channels, "linux-64", "python")
        wait.set()
    snapshot = channels.snapshot
    assert snapshot is not None
    assert "timed out" in snapshot.reason


def test_a_channel_lost_on_the_way_is_no_mixture(tmp_path: Path) -> None:
    """What was read of it and the bundled records of another platform do not go together."""
    with serving(answers(row("python", "3.11"))) as server:
        channels = opened(tmp_path, condarc=f"custom_channels:\n  conda-forge: {server.url}\n",
                          snapshot=matrix_directory() / "conda")
        assert len(channels.records(channels.channels, "linux-64", "python")) == 1
    with pytest.raises(Unreachable, match="conda-forge"):
        channels.records(channels.channels, "linux-aarch64", "python")


def test_offline_takes_what_the_cache_holds_of_other_channels(tmp_path: Path) -> None:
    with serving(answers(*ROWS)) as server:
        solve(opened(tmp_path, f"{server.url}/c"), "app")
    again = opened(tmp_path, f"{server.url}/c", offline=True, snapshot=matrix_directory() / "conda")
    assert versions(solve(again, "app"))["app"] == "2.0"
    other = opened(tmp_path, f"{server.url}/never", offline=True, snapshot=matrix_directory() / "conda")
    with pytest.raises(ChannelUnreachable, match="is not in the cache, and --offline forbids asking for it"):
        solve(other, "app")


@pytest.mark.parametrize(("environ", "condarc", "told"), [
    ({"CONDA_OFFLINE": "true"}, "", "CONDA_OFFLINE"), ({}, "offline: true\n", "offline of .condarc"),
], ids=["variable", "condarc"])
def test_conda_may_be_told_to_stay_offline(environ: dict[str, str], condarc: str, told: str, tmp_path: Path) -> None:
    channels = opened(tmp_path, condarc=condarc, environ=environ, snapshot=matrix_directory() / "conda")
    channels.records(channels.channels, "linux-64", "python")
    snapshot = channels.snapshot
    assert snapshot is not None
    assert snapshot.reason == told


def test_a_login_goes_to_the_server_and_into_no_record(tmp_path: Path) -> None:
    with serving(answers(*ROWS, row("gone", "1", "nothing-has-this"))) as server:
        base = server.url.replace("://", "://me:secret@")
        channels = opened(tmp_path, f"{base}/t/hidden-1/c")
        answer = solve(channels, "app")
        failed = solve(channels, "gone")
    assert isinstance(answer, CondaSolved)
    assert isinstance(failed, CondaConflict)
    assert all(headers["authorization"].startswith("Basic ") for headers in server.headers)
    assert all(path.startswith("/t/hidden-1/c/") for path in server.asked)
    said = repr((channels.channels, answer, failed, channels.records(channels.channels, "linux-64", "lib")))
    assert "secret" not in said
    assert "hidden" not in said
    assert {record.url for record in answer.records} >= {f"{server.url}/c/linux-64/app-2.0-0.conda"}


def test_rattlers_own_store_of_logins_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "logins.json"
    store.write_text(json.dumps({"127.0.0.1": {"BearerToken": "from-the-store"}}), encoding="utf-8")
    monkeypatch.setenv("RATTLER_AUTH_FILE", str(store))
    with serving(answers(*ROWS)) as server:
        solve(opened(tmp_path, f"{server.url}/c"), "app")
        store.write_text("{no json", encoding="utf-8")
        with pytest.raises(Exception, match="rattler's store of logins") as fault:
            solve(opened(tmp_path, f"{server.url}/d"), "app")
    assert server.headers[0]["authorization"] == "Bearer from-the-store"
    assert getattr(fault.value, "exit_status", None) == 2


def test_netrc_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n", encoding="utf-8")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(answers(*ROWS)) as server:
        solve(opened(tmp_path, f"{server.url}/c"), "app")
    assert server.headers[0]["authorization"] == "Basic " + b64encode(b"me:secret").decode()


def test_certificates_are_checked_as_condarc_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    authority, tls = make_authority(tmp_path / "pki")
    with serving(answers(*ROWS), tls) as server:
        url = f"{server.url}/c"
        with pytest.raises(BadChannel, match="its certificate is not trusted") as fault:
            solve(opened(tmp_path, url), "app")
        assert "ssl_verify" in str(fault.value.next_step())
        for condarc in (f"ssl_verify: {authority}\n", "ssl_verify: false\n"):
            assert versions(solve(opened(tmp_path, url, condarc=condarc), "app"))["app"] == "2.0"
        usual = {"REQUESTS_CA_BUNDLE": str(authority)}
        assert versions(solve(opened(tmp_path, url, environ=usual), "app"))["app"] == "2.0"
        with pytest.raises(BadInput, match="no such file"):
            solve(opened(tmp_path, url, condarc="ssl_verify: /no/such/file\n"), "app")
    assert "SSL_CERT_FILE" not in os.environ


def test_a_mirror_is_read_and_the_channels_own_address_written_down(tmp_path: Path) -> None:
    with serving(answers(row("python", "3.11"))) as server:
        mirrors = "\n".join(f"    - {server.url}/{name}" for name in ("m", "n"))
        channels = opened(tmp_path, condarc=f"mirrored_channels:\n  conda-forge:\n{mirrors}\n")
        [record] = channels.records(channels.channels, "linux-64", "python")
    assert record.url == f"https://forge.invalid/conda-forge/linux-64/{record.file_name}"
    assert any(path.startswith("/m/") for path in server.asked)


def test_a_proxy_of_condarc_is_asked(tmp_path: Path) -> None:
    with serving(answers(row("python", "3.11"))) as proxy:
        channels = opened(tmp_path, "http://far.invalid/c", condarc=f"proxy_servers:\n  http: {proxy.url}\n")
        assert len(channels.records(channels.channels, "linux-64", "python")) == 1
    assert proxy.asked[0].startswith("http://far.invalid/c/")


def test_the_newest_that_is_allowed(tmp_path: Path) -> None:
    """A date stands for its end; what states no time is never early enough."""
    day = 1_700_006_400_000         # the first moment of 2023-11-15
    rows = (row("app", "1", timestamp=day - 1), row("app", "2", timestamp=day),
            row("app", "3", timestamp=day + 86_400_000), row("bare", "1", timestamp=None))
    channels = opened(tmp_path, channel_folder(tmp_path / "c", *rows).as_uri())
    assert versions(solve(channels, "app", exclude_newer="2023-11-14")) == {"app": "1"}
    assert versions(solve(channels, "app", exclude_newer="2023-11-15")) == {"app": "2"}
    assert versions(solve(channels, "app", exclude_newer="2023-11-15T00:00:00Z")) == {"app": "1"}
    refused = solve(channels, "bare", exclude_newer="2026-01-01")
    assert isinstance(refused, CondaConflict)
    assert refused.causes[-1].text == "bare 1 states no time, and --exclude-newer leaves out what states none"


def test_what_is_locked_is_kept_while_it_fits(tmp_path: Path) -> None:
    channels = opened(tmp_path, channel_folder(tmp_path / "c", *ROWS).as_uri())
    old = next(record for record in channels.records(channels.channels, "linux-64", "app") if record.version == "1.0")
    locked = ((old.url, "app"), (f"{channels.channels[0].url}/linux-64/lib-9-0.conda", "lib"))
    assert versions(solve(channels, "app", locked=locked)) == {"app": "1.0", "lib": "2.5"}
    assert versions(solve(channels, "app >=2", locked=locked)) == {"app": "2.0", "lib": "2.5"}


def test_hashes_that_a_record_lacks_are_none(tmp_path: Path) -> None:
    bare = row("bare", "1")
    del bare["md5"], bare["sha256"], bare["size"], bare["timestamp"]
    channels = opened(tmp_path, channel_folder(tmp_path / "c", bare).as_uri())
    [record] = channels.records(channels.channels, "linux-64", "bare")
    assert (record.md5, record.sha256, record.size, record.timestamp) == (None, None, None, None)


def test_ending_at_once_is_no_crash(tmp_path: Path) -> None:
    """py-rattler's threads are still in Python when the answer is there: without care one run in four dies of it."""
    code = f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).resolve().parent.parent)!r})
        from stackfix.errors import BadInput, Unreachable
        from tests.conda_servers import opened
        proxy = "proxy_servers: {{http: 'http://127.0.0.1:9'}}\\n"
        channels = opened(Path({str(tmp_path)!r}), "http://127.0.0.1:9/x", condarc=proxy)
        try:
            channels.records(channels.channels, "linux-64", "python")
        except Unreachable:
            print("told")
    """
    for _ in range(8):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
                              check=False, timeout=60)
        assert (done.returncode, done.stdout) == (0, "told\n"), done.stderr
