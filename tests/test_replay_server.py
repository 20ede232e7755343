"""The loopback index says what it was told to say: the other tests stand on it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.replay.faults import Fault
from tests.replay.index import ADVERTISED, parse_range
from tests.replay.pages import JSON_TYPE, altered, without
from tests.replay.releases import ReleaseServer
from tests.replay.server import ReplayServer
from tests.replay.store import NotRecorded, Store
from tests.replay.wheels import make_wheel

WHEEL = "demo_pkg-1.0-py3-none-any.whl"
OLD = "demo_pkg-0.9-py3-none-any.whl"
BODIES = {WHEEL: make_wheel(WHEEL, requires=["six>=1"]), OLD: make_wheel(OLD)}
ACCEPT = {"Accept": JSON_TYPE}


class CountingUpstream:
    """A live index of one project, counting what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.body = BODIES[WHEEL]

    def page(self, project: str) -> bytes | None:
        self.asked.append(f"page {project}")
        if project != "demo-pkg":
            return None
        row = {"filename": WHEEL, "url": "u", "hashes": {"sha256": hashlib.sha256(self.body).hexdigest()}}
        return json.dumps({"name": project, "files": [row]}).encode()

    def metadata(self, url: str) -> bytes | None:
        self.asked.append("metadata")
        return None

    def span(self, url: str, start: int, stop: int) -> bytes:
        self.asked.append("span")
        return self.body[start:stop]

    def size(self, url: str) -> int:
        self.asked.append("size")
        return len(self.body)


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(headers=ACCEPT, trust_env=False) as client:
        yield client


def local(tmp_path: Path, **how: Any) -> ReplayServer:
    return ReplayServer(Store(tmp_path), projects={"demo-pkg": BODIES}, **how)


def test_each_answer_is_asked_from_the_live_index_once_and_kept(tmp_path: Path, client: httpx.Client) -> None:
    upstream = CountingUpstream()
    for store in (Store(tmp_path, upstream), Store(tmp_path)):
        with ReplayServer(store, metadata=ADVERTISED) as server:
            for _ in range(2):
                file = client.get(f"{server.url}/demo-pkg/").json()["files"][0]
                assert "Requires-Dist: six>=1" in client.get(file["url"] + ".metadata").text
                assert client.get(f"{server.url}/other/").status_code == 404
    assert sorted(upstream.asked) == ["metadata", "page demo-pkg", "page other", "size", "span"]


def test_what_is_not_recorded_is_said(tmp_path: Path, client: httpx.Client) -> None:
    with ReplayServer(Store(tmp_path)) as server:
        answer = client.get(f"{server.url}/demo-pkg/")
    assert (answer.status_code, "not recorded" in answer.text) == (501, True)
    with pytest.raises(NotRecorded):
        Store(tmp_path).page("../etc")


def test_advertised_metadata_is_the_wheels_own(tmp_path: Path, client: httpx.Client) -> None:
    with local(tmp_path, metadata=ADVERTISED) as server:
        file = client.get(f"{server.url}/demo-pkg/").json()["files"][0]
        body = client.get(file["url"] + ".metadata").content
    assert file["core-metadata"]["sha256"] == hashlib.sha256(body).hexdigest()
    assert b"Requires-Dist: six>=1" in body


def test_html_states_the_same_files(tmp_path: Path, client: httpx.Client) -> None:
    with local(tmp_path, html_only=True) as server:
        answer = client.get(f"{server.url}/demo-pkg/")
    assert answer.headers["content-type"].startswith("application/vnd.pypi.simple.v1+html")
    assert f"/{WHEEL}#sha256={hashlib.sha256(BODIES[WHEEL]).hexdigest()}" in answer.text


@pytest.mark.parametrize(("asked", "bounds"), [
    ("bytes=-4", (6, 10)), ("bytes=2-3", (2, 4)), ("bytes=7-", (7, 10)), ("bytes=0-99", (0, 10)),
    ("bytes=10-", None), ("bytes=-", None), ("lines=1-2", None), ("bytes=-99", (0, 10)),
])
def test_range(asked: str, bounds: tuple[int, int] | None) -> None:
    assert parse_range(asked, 10) == bounds


def test_ranges_give_the_files_bytes(tmp_path: Path, client: httpx.Client) -> None:
    with local(tmp_path) as server:
        url = client.get(f"{server.url}/demo-pkg/").json()["files"][0]["url"]
        tail = client.get(url, headers={"Range": "bytes=-20"})
        whole = client.get(url)
    assert (tail.status_code, tail.content) == (206, BODIES[WHEEL][-20:])
    assert whole.content == BODIES[WHEEL]


def test_cache_headers_and_revalidation(tmp_path: Path, client: httpx.Client) -> None:
    with local(tmp_path, cache_headers=True) as server:
        first = client.get(f"{server.url}/demo-pkg/")
        again = client.get(f"{server.url}/demo-pkg/", headers={"If-None-Match": first.headers["etag"]})
    assert "max-age" in first.headers["cache-control"]
    assert (again.status_code, again.content) == (304, b"")
    with local(tmp_path) as server:
        assert "etag" not in client.get(f"{server.url}/demo-pkg/").headers


def test_edits_change_the_page(tmp_path: Path, client: httpx.Client) -> None:
    edits = {"demo-pkg": (without(OLD.__eq__), altered(WHEEL.__eq__, requires_python=">=4"))}
    with local(tmp_path, edits=edits) as server:
        files = client.get(f"{server.url}/demo-pkg/").json()["files"]
    assert [(file["filename"], file["requires-python"]) for file in files] == [(WHEEL, ">=4")]


def test_faults_strike_as_often_as_told(tmp_path: Path, client: httpx.Client) -> None:
    fault = Fault(path="/simple/demo-pkg/", times=2, status=429, headers=(("Retry-After", "1"),))
    with local(tmp_path, faults=(fault,)) as server:
        answers = [client.get(f"{server.url}/demo-pkg/").status_code for _ in range(3)]
    assert answers == [429, 429, 200]


def test_a_cut_answer_ends_early(tmp_path: Path, client: httpx.Client) -> None:
    with local(tmp_path, faults=(Fault(path="/simple/*", cut=10),)) as server, pytest.raises(httpx.RemoteProtocolError):
        client.get(f"{server.url}/demo-pkg/")


def test_releases_state_digests_of_what_they_serve(client: httpx.Client) -> None:
    file = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    with ReleaseServer({"2.5.8": (file,)}) as server:
        asset = client.get(f"{server.url}/repos/any/releases/tags/v2.5.8").json()["assets"][0]
        wheel = client.get(asset["browser_download_url"])
        assert client.get(f"{server.url}/repos/any/releases/tags/v9").status_code == 404
    assert "%2B" in asset["browser_download_url"]
    assert asset["digest"] == f"sha256:{hashlib.sha256(wheel.content).hexdigest()}"
