"""The flash-attn release source: API, listing, folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stackfix.errors import BadInput, StackfixError
from stackfix.matrix.records import Sources
from stackfix.sources.errors import (
    BadRelease,
    IndexUnreachable,
    NotAllowedOffline,
    RateLimited,
    RequestFailed,
    TooLarge,
)
from stackfix.sources.records import ReleaseAsset
from stackfix.sources.releases import AnyReleases, open_releases
from tests.replay.releases import ReleaseServer, stand_in
from tests.sources_servers import RawServer, ok, path_of, settings_for, status

FILE = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
SHA256 = hashlib.sha256(stand_in(FILE)).hexdigest()
ASSETS = {"2.5.8": (FILE,), "2.6.3": ()}
Open = Callable[..., AnyReleases]


def sources_at(api: str) -> Sources:
    return Sources(torch_index="http://x", release_api=api, release_download="http://x", conda_channels=())


@pytest.fixture
def open_source(tmp_path: Path) -> Iterator[Open]:
    """Opens release sources over one cache, and closes them after the test."""
    opened: list[AnyReleases] = []

    def make(source: str | None, *, api: str = "http://127.0.0.1:9/api", offline: bool = False, progress: Any = None,
             **changes: Any) -> AnyReleases:
        opened.append(open_releases(source, sources=sources_at(api), settings=settings_for(**changes),
                                    cache_dir=tmp_path / "cache", offline=offline, progress=progress))
        return opened[-1]

    yield make
    for releases in opened:
        releases.close()


@pytest.mark.parametrize("own", [True, False])
def test_the_api_lists_a_release_with_its_hashes(own: bool, open_source: Open) -> None:
    with ReleaseServer(ASSETS) as server:
        releases = open_source(None, api=server.url) if own else open_source(server.url + "/")
        found = releases.assets(("2.5.8", "2.6.3", "9.9"))
        (asset,) = found.pop("2.5.8")
        assert found == {"2.6.3": (), "9.9": ()}
        assert (asset.version, asset.file, asset.sha256, asset.size) == ("2.5.8", FILE, SHA256, len(stand_in(FILE)))
        assert asset.url == f"{server.url}/releases/download/v2.5.8/{FILE.replace('+', '%2B')}"
        asked = len(server.requests)
        assert releases.sha256(asset) == SHA256
        assert len(server.requests) == asked


def test_without_a_digest_the_file_is_hashed_once(open_source: Open) -> None:
    told: list[tuple[str, int, int | None]] = []
    with ReleaseServer(ASSETS, digest=False) as server:
        releases = open_source(server.url, progress=lambda *what: told.append(what))
        (asset,) = releases.assets(("2.5.8",))["2.5.8"]
        assert asset.sha256 is None
        assert releases.sha256(asset) == releases.sha256(asset) == SHA256
        assert open_source(server.url).sha256(asset) == SHA256
        assert len([path for _, path, _ in server.requests if path.endswith(".whl")]) == 1
        assert told[-1] == (FILE, len(stand_in(FILE)), len(stand_in(FILE)))
        changed = ReleaseAsset(version="2.5.8", file=FILE, url=asset.url, sha256=None, size=asset.size,
                               updated_at="2025-01-01T00:00:00Z")
        open_source(server.url).sha256(changed)
        assert len([path for _, path, _ in server.requests if path.endswith(".whl")]) == 2
        assert open_source(server.url, offline=True).sha256(asset) == SHA256


def test_that_a_wheel_is_not_there_is_never_kept(open_source: Open) -> None:
    with ReleaseServer({"2.5.8": ()}) as server:
        assert open_source(server.url).assets(("2.5.8", "2.6.3")) == {"2.5.8": (), "2.6.3": ()}
        server.releases.assets = ASSETS
        assert open_source(server.url).assets(("2.5.8",))["2.5.8"][0].file == FILE


def test_offline_nothing_is_asked(open_source: Open) -> None:
    with ReleaseServer(ASSETS) as server:
        with pytest.raises(NotAllowedOffline):
            open_source(server.url, offline=True).assets(("2.5.8",))
        assert not server.requests


@pytest.mark.parametrize(("code", "kind"), [(503, IndexUnreachable), (403, RequestFailed), (500, IndexUnreachable)])
def test_a_source_that_fails_is_unreachable(code: int, kind: type[StackfixError], open_source: Open) -> None:
    with ReleaseServer(ASSETS, status=code) as server, pytest.raises(kind, match=str(code)) as fault:
        open_source(server.url).assets(("2.5.8",))
    assert fault.value.exit_status == 3


def test_nobody_there_is_said_without_waiting(open_source: Open) -> None:
    with RawServer(lambda head: status("404 No")) as server:
        url = server.url
    with pytest.raises(IndexUnreachable, match="refused") as fault:
        open_source(None, api=url).assets(("2.5.8",))
    assert "times" not in str(fault.value)


def test_a_used_up_limit_says_how_to_raise_it(open_source: Open) -> None:
    limited = status("403 rate limit exceeded", "X-RateLimit-Remaining: 0")
    with RawServer(lambda head: limited) as server, pytest.raises(RateLimited) as fault:
        open_source(None, api=server.url).assets(("2.5.8",))
    assert "GITHUB_TOKEN" in str(fault.value.next_step())


def test_the_token_goes_to_the_api_alone(open_source: Open) -> None:
    with RawServer(lambda head: ok(b"x" * 9)) as files, RawServer(lambda head: status("404 No")) as other, \
            RawServer(lambda head: release({"browser_download_url": f"{files.url}/{FILE}", "size": 9})) as api:
        releases = open_source(None, api=api.url + "/repos/x", release_token="t0ken")
        (asset,) = releases.assets(("2.5.8",))["2.5.8"]
        releases.sha256(asset)
        open_source(other.url, api=api.url, release_token="t0ken").assets(("2.5.8",))
        assert api.header("authorization") == ["Bearer t0ken"]
        assert files.header("authorization") == [None]
        assert set(other.header("authorization")) == {None}


def release(asset: dict[str, Any], *, name: object = FILE) -> bytes:
    entry = {"name": name, "digest": None, "size": 9, "updated_at": "2024", **asset}
    return ok(json.dumps({"assets": [entry]}).encode())


@pytest.mark.parametrize(("reply", "reason"), [
    (ok(b"{"), "no valid JSON"), (ok(b"[]"), "describes no release"), (ok(b'{"assets": 1}'), "describes no release"),
    (release({}, name="../x.whl"), "impossible name"), (release({}, name="a/b.whl"), "impossible name"),
    (release({"browser_download_url": "file:///etc/passwd"}), "its address of"), (release({}), "its address of"),
    (release({"browser_download_url": "http://x/y", "digest": "sha256:zz"}), "no sha256"),
])
def test_a_bad_answer_of_the_api_is_named(reply: bytes, reason: str, open_source: Open) -> None:
    with RawServer(lambda head: reply) as server, pytest.raises(BadRelease, match=reason):
        open_source(None, api=server.url).assets(("2.5.8",))


@pytest.mark.parametrize("asset", [{"name": "x.tar.gz"}, {"state": "starter"}, {"name": None}])
def test_other_files_of_a_release_do_not_matter(asset: dict[str, Any], open_source: Open) -> None:
    with RawServer(lambda head: release(asset)) as server:
        assert open_source(None, api=server.url).assets(("2.5.8",)) == {"2.5.8": ()}


def test_another_kind_of_digest_is_none(open_source: Open) -> None:
    with RawServer(lambda head: release({"browser_download_url": "http://x/y", "digest": "sha512:00"})) as server:
        assert open_source(None, api=server.url).assets(("2.5.8",))["2.5.8"][0].sha256 is None


@pytest.mark.parametrize(("size", "kind"), [(5, TooLarge), (12, BadRelease)])
def test_a_download_of_another_size_gives_no_hash(size: int, kind: type[StackfixError], open_source: Open) -> None:
    with RawServer(lambda head: ok(b"x" * 9)) as server:
        asset = ReleaseAsset(
            version="2.5.8", file=FILE, url=f"{server.url}/x", sha256=None, size=size, updated_at="2024")
        with pytest.raises(kind):
            open_source(server.url).sha256(asset)


LISTING = f"""<html><a href="../">up</a><a href="{FILE.replace('+', '%2B')}#sha256={SHA256}">{FILE}</a>
<a href="flash_attn-2.6.3%2Bcu123torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl">x</a>
<a href="other-1.0-py3-none-any.whl">x</a></html>""".encode()


@pytest.mark.parametrize("elsewhere", [status("404 No"), ok(LISTING, kind="text/html")])
def test_a_mirror_may_be_a_page_of_links(elsewhere: bytes, open_source: Open) -> None:
    listing = ok(LISTING, kind="text/html")
    with RawServer(lambda head: listing if path_of(head) == "/mirror/" else elsewhere) as server:
        found = open_source(f"{server.url}/mirror").assets(("2.5.8", "2.6.3", "2.4"))
        assert found["2.4"] == ()
        assert [(asset.file, asset.sha256, asset.url) for asset in found["2.5.8"]] == [
            (FILE, SHA256, f"{server.url}/mirror/{FILE.replace('+', '%2B')}")]
        assert [asset.sha256 for asset in found["2.6.3"]] == [None]


def test_a_page_that_is_neither_is_said(open_source: Open) -> None:
    with RawServer(lambda head: ok(b"<html>welcome</html>", kind="text/html")) as server, \
            pytest.raises(BadRelease, match="no valid JSON"):
        open_source(server.url).assets(("2.5.8",))


def test_a_folder_is_hashed_here(tmp_path: Path, open_source: Open) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / FILE).write_bytes(stand_in(FILE))
    (folder / "other-1.0-py3-none-any.whl").write_bytes(b"")
    for offline in (False, True):
        releases = open_source(str(folder), offline=offline)
        found = releases.assets(("2.5.8", "2.6.3"))
        (asset,) = found["2.5.8"]
        assert (asset.file, asset.size, found["2.6.3"]) == (FILE, len(stand_in(FILE)), ())
        assert asset.url.startswith("file://")
        assert releases.sha256(asset) == SHA256


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, open_source: Open) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"x")
    (folder / FILE).symlink_to(tmp_path / "secret")
    with pytest.raises(BadInput, match="link out of its folder"):
        open_source(str(folder)).assets(("2.5.8",))
    assert open_source(str(folder)).assets(("2.6.3",)) == {"2.6.3": ()}


@pytest.mark.parametrize("source", ["no/such/folder", "file:///srv", "ftp://x", "https://"])
def test_a_source_of_no_known_kind_is_refused(source: str, open_source: Open) -> None:
    with pytest.raises(BadInput, match="--flash-attn-source"):
        open_source(source)


def test_an_api_without_the_release_may_welcome_at_its_root(open_source: Open) -> None:
    def reply(head: str) -> bytes:
        return ok(b"<html>welcome</html>", kind="text/html") if path_of(head) == "/" else status("404 No")

    with RawServer(reply) as server:
        assert open_source(server.url).assets(("2.5.8",)) == {"2.5.8": ()}
