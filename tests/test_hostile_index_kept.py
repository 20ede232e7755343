"""What is kept of servers: believed only where nobody else can have written it, and without what gives access."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from stackfix.sources.cache import Cache, holds_secret, is_ours
from stackfix.sources.connect import leads_to_loopback
from stackfix.sources.errors import RequestFailed
from stackfix.sources.transport import Transport
from tests.cli_world import ASKED, Say, World
from tests.replay.wheels import make_wheel
from tests.sources_servers import RawServer, page_json, settings_for, status

URL = "https://index.invalid/simple/demo/"
LOCK = ("lock", *ASKED, "--format", "requirements", "--with", "idna", "-o", "out")


def kept(folder: Path) -> Path:
    """The file of a page that was kept."""
    cache = Cache(folder)
    cache.keep_page(URL, final=URL, headers={"content-type": "text/html", "cache-control": "max-age=600"},
                    content=b"page")
    [entry] = (folder / "pages-v1").iterdir()
    assert cache.page(URL) is not None
    return entry


def open_to_all(entry: Path) -> None:
    entry.chmod(0o666)


def open_to_the_group(entry: Path) -> None:
    entry.chmod(0o660)


def in_an_open_folder(entry: Path) -> None:
    entry.parent.chmod(0o777)


def in_a_folder_of_the_group(entry: Path) -> None:
    entry.parent.chmod(0o770)


def behind_a_link(entry: Path) -> None:
    moved = entry.with_name("moved")
    entry.rename(moved)
    entry.symlink_to(moved)


def in_a_linked_folder(entry: Path) -> None:
    folder = entry.parent
    moved = folder.with_name("moved")
    folder.rename(moved)
    moved.chmod(0o777)
    folder.symlink_to(moved)


CHANGES = (open_to_all, open_to_the_group, in_an_open_folder, in_a_folder_of_the_group, behind_a_link,
           in_a_linked_folder)


@pytest.mark.parametrize("change", CHANGES)
def test_a_page_that_others_can_have_written_is_not_believed(change: Callable[[Path], None], tmp_path: Path) -> None:
    change(kept(tmp_path))
    assert Cache(tmp_path).page(URL) is None


def test_a_file_of_another_user_is_not_believed(tmp_path: Path) -> None:
    found = list(kept(tmp_path).stat())
    assert is_ours(os.stat_result(found))
    found[4] += 1       # st_uid
    assert not is_ours(os.stat_result(found))


def test_a_forged_page_in_an_open_folder_is_in_no_lock(world: World, say: Say, tmp_path: Path) -> None:
    """All that is kept is replaced by an index that has one project more."""
    assert say(*LOCK).status == 0
    folder = tmp_path / ".cache" / "pages-v1"
    forged = Cache(tmp_path / "forged")
    page = world.page("idna", {"idna-99.0-py3-none-any.whl": b"evil"})
    forged.keep_page(f"{world.url}/idna/", final=f"{world.url}/idna/", content=page,
                     headers={"content-type": "application/vnd.pypi.simple.v1+json", "cache-control": "max-age=600"})
    [entry] = (tmp_path / "forged" / "pages-v1").iterdir()
    (folder / entry.name).write_bytes(entry.read_bytes())
    folder.chmod(0o777)
    (tmp_path / "out" / "requirements.txt").unlink()
    assert say(*LOCK).status == 0
    assert "idna==3.7" in (tmp_path / "out" / "requirements.txt").read_text()


def test_offline_a_private_name_is_not_taken_from_the_default_index(world: World, say: Say, tmp_path: Path) -> None:
    """Its page on the private index is not kept (no-store), that of the default index is, from an earlier lock."""
    name = "internal-{}-py3-none-any.whl"
    world.projects["internal"] = {name.format("9.0"): make_wheel(name.format("9.0"))}
    private = World(projects={"internal": {name.format("1.0"): make_wheel(name.format("1.0"))}})
    ask = (*LOCK, "--with", "internal")
    assert say(*ask).status == 0
    with RawServer(lambda head: private.reply(head).replace(b"\r\n\r\n", b"\r\nCache-Control: no-store\r\n\r\n", 1)
                   ) as server:
        private.url = f"{server.url}/simple"
        assert say(*ask, "--extra-index-url", private.url, "--offline", "--upgrade").status == 3
        assert say(*ask, "--extra-index-url", private.url, "--upgrade").status == 0
        locked = (tmp_path / "out" / "requirements.txt").read_text()
        assert "internal==1.0" in locked
        said = say(*ask, "--extra-index-url", private.url, "--offline", "--upgrade")
    assert said.status == 3
    assert f"on {private.url}" in said.err
    assert (tmp_path / "out" / "requirements.txt").read_text() == locked


@pytest.mark.parametrize("text", [
    "https://me:secret@files.invalid/x.whl", "https://token@files.invalid/x.whl", "http://a:b@[::1]/",
    "x.whl?X-Amz-Signature=1", "x.whl?a=b&sig=1", "x.whl?access_token=1", "x.whl?API-KEY=1", "x.whl?jwt=1",
    "x.whl?Policy=1&Key-Pair-Id=2&Signature=3",
])
def test_what_gives_access_is_seen(text: str) -> None:
    assert holds_secret(f'{{"url": "{text}"}}'.encode())
    assert holds_secret(f"<a href='{text}#sha256=0'>".encode())


@pytest.mark.parametrize("text", [
    "https://files.invalid/x.whl", "mail me@example.invalid", "x.whl?file=1", "why?", "https://files.invalid/@scope/x",
    "is the token gone? no", "/x.whl#sha256=00&signature=1",
])
def test_what_gives_no_access_is_kept(text: str) -> None:
    assert not holds_secret(f'{{"url": "{text}"}}'.encode())


def test_marks_of_a_query_without_end_are_read_in_one_pass() -> None:
    assert not holds_secret(b"?" * 2_000_000 + b"@" * 2_000_000 + b"://" * 700_000)


@pytest.mark.parametrize("host", [
    "127.0.0.1:9", "localhost:9", "[::1]:9", "0.0.0.0:9", "127.1:9", "api.localhost", "2130706433", "0", "0x7f.1",
    "[::]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]", "LOCALHOST.", "ip6-localhost", "017700000001",
])
def test_no_index_elsewhere_leads_to_this_machine(host: str) -> None:
    """The index is asked through a proxy, so that it may have a name of its own."""
    with RawServer(lambda _: status("302 Found", f"Location: http://{host}/")) as proxy:
        transport = Transport(settings_for("http://index.invalid", proxies=(("http", proxy.url),)))
        with pytest.raises(RequestFailed) as fault:
            transport.get("http://index.invalid/demo/", limit=1000)
        transport.close()
    assert "redirects to this machine" in fault.value.what()
    assert len(proxy.heads) == 1


def test_a_name_elsewhere_that_leads_to_this_machine_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        place = {"evil.example": "::ffff:127.0.0.1", "files.example": "192.0.2.7"}[host]
        return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", (place, 0, 0, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert leads_to_loopback("evil.example")
    assert not leads_to_loopback("files.example")


def test_an_index_on_this_machine_may_lead_to_another_there() -> None:
    with RawServer(lambda _: page_answer()) as other, RawServer(
            lambda _: status("302 Found", f"Location: {other.url}/")) as server:
        transport = Transport(settings_for(server.url))
        assert transport.get(f"{server.url}/demo/", limit=1000).status == 200
        transport.close()


def page_answer() -> bytes:
    body = page_json("demo")
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
