"""The process that asks ahead: the same pages, metadata, errors and cache as without it, whatever the server does."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stackfix.sources.arena import Arena
from tests.cli_world import ASKED, World, settle
from tests.replay.wheels import make_wheel
from tests.sources_servers import JSON, RawServer, Reply, header_of, make_certificate, ok, path_of, status

ROOT = Path(__file__).resolve().parent.parent
WHEEL = "demo-1.0-py3-none-any.whl"
NAMES = ("demo", "other", "missing")
CAN = sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
pytestmark = pytest.mark.skipif(not CAN, reason="one processor, or no Linux: there is no other process")
Changes = Mapping[str, "Reply | Callable[[str], Reply]"]


def wheel(filename: str, **metadata: Any) -> bytes:
    return make_wheel(filename, **metadata)


class Server:
    """A small index. `changes`: what it answers at some paths in place of what it would say."""

    def __init__(self, *, ranges: bool = True, advertised: bool = False, beside: bool = True,
                 changes: Changes | None = None) -> None:
        self.ranges, self.advertised, self.beside, self.changes = ranges, advertised, beside, changes or {}
        big = wheel("other-2.0-py3-none-any.whl", requires=("demo>=1", "idna; extra == 'x'"),
                    contents={f"other/{number}.py": os.urandom(3000).hex() for number in range(90)})
        self.files = {"demo": {WHEEL: wheel(WHEEL, requires=("other",)),
                               "demo-1.1-py3-none-any.whl": wheel("demo-1.1-py3-none-any.whl")},
                      "other": {"other-2.0-py3-none-any.whl": big}}
        self.url = ""

    def __call__(self, head: str) -> Reply:
        path = path_of(head)
        change = self.changes.get(path)
        if change is not None:
            return change(head) if callable(change) else change
        kind, _, rest = path[1:].partition("/")
        project, _, name = rest.partition("/")
        files = self.files.get(project, {})
        if kind == "simple":
            return ok(page(self.url, project, files, advertised=self.advertised)) if files else status("404 Not Found")
        content = files.get(name.removesuffix(".metadata"))
        if content is None or (name.endswith(".metadata") and not self.beside):
            return status("404 Not Found")
        if name.endswith(".metadata"):
            return ok(metadata_of(content), kind="text/plain")
        return part(content, header_of(head, "Range")) if self.ranges else ok(content, kind="application/zip")


def metadata_of(content: bytes) -> bytes:
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("METADATA")))


def part(content: bytes, wanted: str | None) -> bytes:
    """The answer to a range request."""
    if wanted is None:
        return ok(content, kind="application/zip")
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(0, len(content) - int(last))
    end = min(int(last), len(content) - 1) if first and last else len(content) - 1
    return ok(content[start:end + 1], kind="application/zip", status="206 Partial Content",
              headers=(f"Content-Range: bytes {start}-{end}/{len(content)}",))


def page(url: str, project: str, files: Mapping[str, bytes], *, advertised: bool = False, **more: Any) -> bytes:
    entries = [{"filename": name, "url": f"{url}/files/{project}/{name}", "size": len(content),
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                **({"core-metadata": {"sha256": hashlib.sha256(metadata_of(content)).hexdigest()}} if advertised
                   else {})} for name, content in files.items()]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": entries, **more}).encode()


def client(url: str, cache: Path, *, beside: bool, **asked: Any) -> Any:
    """What tests.asker_client says."""
    words = {"url": f"{url}/simple", "cache": str(cache), "names": NAMES, "beside": beside, **asked}
    done = subprocess.run([sys.executable, "-m", "tests.asker_client"], input=json.dumps(words), cwd=ROOT, timeout=120,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return json.loads(done.stdout)


def kept(cache: Path) -> dict[str, Any]:
    """The entries of the cache, without the times in them."""
    found: dict[str, Any] = {}
    for path in cache.rglob("*"):
        if path.is_file():
            _, line, content = path.read_bytes().split(b"\n", 2)
            about = {key: value for key, value in json.loads(line).items() if key not in ("stored", "until")}
            found[str(path.relative_to(cache))] = about, content
    return found


def both(server: Server, tmp_path: Path, **asked: Any) -> tuple[Any, list[str], list[str]]:
    """What is said with the other process, which must be what is said without it; and the requests of both."""
    with RawServer(server) as running:
        server.url = running.url
        without = client(running.url, tmp_path / "without", beside=False, **asked)
        first, running.heads[:] = list(running.heads), []
        found = client(running.url, tmp_path / "with", beside=True, **asked)
        second = list(running.heads)
    assert (without["beside"], found["beside"]) == (False, True)
    assert found["found"] == without["found"]
    assert found["answers"] == without["answers"]
    assert kept(tmp_path / "with") == kept(tmp_path / "without")
    return found, first, second


def asked_for(heads: list[str]) -> Counter[tuple[str, str | None]]:
    return Counter((path_of(head), header_of(head, "Range")) for head in heads)


@pytest.mark.parametrize("how", [
    {"advertised": True}, {"beside": False}, {"beside": True}, {"beside": False, "ranges": False},
    {"advertised": True, "beside": False},
], ids=str)
def test_all_kinds_of_indexes(how: dict[str, Any], tmp_path: Path) -> None:
    found, first, second = both(Server(**how), tmp_path)
    assert found["told"]["page"] == 2
    assert found["told"]["answer"] >= 1, "of the project that is not there"
    files = found["found"]["other"]["files"]
    assert files[0][1]["requires_dist"] == ["demo>=1", "idna; extra == 'x'"]
    assert asked_for(second) == asked_for(first), "nothing is asked twice"


def test_advertised_metadata_is_read_there(tmp_path: Path) -> None:
    found, _, _ = both(Server(advertised=True), tmp_path)
    assert found["told"] == {"page": 2, "metadata": 3, "answer": 1, "kept": 1}


def many(count: int) -> dict[str, dict[str, bytes]]:
    """Projects whose wheels have their METADATA far from the end: a second part is needed."""
    return {f"many{number}": {f"many{number}-1-py3-none-any.whl": wheel(
        f"many{number}-1-py3-none-any.whl", requires=("demo",),
        contents={f"many/{file}{'x' * 150}.py": "" for file in range(700)})} for number in range(count)}


def test_two_parts_of_a_wheel(tmp_path: Path) -> None:
    server = Server(beside=False)
    server.files = many(9)
    found, first, second = both(server, tmp_path, names=tuple(server.files))
    assert found["told"]["metadata"] == 5, "of the first four both ways are tried"
    assert sum("Range" in head for head in second) == 18
    assert asked_for(second) == asked_for(first)


def packed(body: bytes, **how: Any) -> bytes:
    return ok(gzip.compress(body), headers=("Content-Encoding: gzip",), **how)


def chunked(body: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return (f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n\r\n".encode() +
            b"%x\r\n%s\r\n%s" % (len(body), body, end))


def to_the_end(body: bytes) -> list[bytes]:
    return [f"HTTP/1.0 200 OK\r\nContent-Type: {JSON}\r\n\r\n".encode() + body]


DEMO = page("http://127.0.0.1:9", "demo", {})
ONE = page("http://127.0.0.1:9", "demo", {WHEEL: wheel(WHEEL)})
PAGES: dict[str, Changes] = {
    "gzipped": {"/simple/demo/": packed(ONE)},
    "chunked": {"/simple/demo/": chunked(ONE)},
    "chunked, with a trailer": {"/simple/demo/": chunked(ONE, b"0\r\nX: y\r\n\r\n")},
    "HTML": {"/simple/demo/": ok(f'<a href="/files/demo/{WHEEL}#sha256={"0" * 64}">{WHEEL}</a>'.encode(),
                                 kind="text/html")},
    "of no known type": {"/simple/demo/": ok(b"x", kind="text/plain")},
    "no JSON": {"/simple/demo/": ok(b"{")},
    "of another project": {"/simple/demo/": ok(page("http://127.0.0.1:9", "else", {}))},
    "without files": {"/simple/demo/": ok(DEMO)},
    "with other letters": {"/simple/demo/": ok(ONE.replace(b'"meta"', '"über": 1, "meta"'.encode()))},
    "damaged gzip": {"/simple/demo/": ok(b"no gzip", headers=("Content-Encoding: gzip",))},
    "another coding": {"/simple/demo/": ok(ONE, headers=("Content-Encoding: br",))},
    "a bomb": {"/simple/demo/": ok(gzip.compress(b" " * (65 << 20)), headers=("Content-Encoding: gzip",))},
    "forbidden": {"/simple/demo/": status("403 Forbidden")},
    "broken": {"/simple/demo/": status("500 Broken")},
    "moved": {"/simple/demo/": status("302 Found", "Location: /simple/other/")},
    "gone": {"/simple/demo/": status("410 Gone")},
    "cut short": {"/simple/demo/": lambda _: [ok(ONE)[:-5], b""]},
    "nonsense": {"/simple/demo/": b"nonsense\r\n\r\n"},
    "with a secret": {"/simple/demo/": ok(ONE.replace(b'.whl", "size', b'.whl?token=x", "size'))},
    "not to be kept": {"/simple/demo/": ok(ONE, headers=("Cache-Control: no-store",))},
    "to be used for a while": {"/simple/demo/": ok(ONE, headers=("Cache-Control: max-age=600", 'ETag: "a"'))},
}


@pytest.mark.parametrize("changes", PAGES.values(), ids=PAGES)
def test_pages_of_all_kinds(changes: Changes, tmp_path: Path) -> None:
    both(Server(changes=changes), tmp_path, settings={"retries": 0})


def test_a_page_that_ends_where_its_server_hangs_up(tmp_path: Path) -> None:
    class Ending(RawServer):
        def _sends(self, connection: Any, piece: bytes) -> bool:
            super()._sends(connection, piece)
            return not piece.startswith(b"HTTP/1.0")

    with Ending(Server(changes={"/simple/demo/": to_the_end(ONE)})) as running:
        found = client(running.url, tmp_path / "cache", beside=True, names=("demo",))
        assert sum(path_of(head) == "/simple/demo/" for head in running.heads) == 1
    assert found["told"]["page"] == 1
    assert found["found"]["demo"]["versions"] == ["1.0"]


METADATA = f"/files/demo/{WHEEL}.metadata"
WRONG: dict[str, tuple[Changes, dict[str, Any]]] = {
    "other bytes than stated": ({METADATA: ok(b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")},
                                {"advertised": True}),
    "not there though stated": ({METADATA: status("404 Not Found")}, {"advertised": True}),
    "a page in its place": ({METADATA: ok(b"<html>", kind="text/html")}, {}),
    "of another project": ({METADATA: ok(b"Metadata-Version: 2.1\nName: else\nVersion: 1.0\n")}, {}),
    "spelled otherwise": ({METADATA: ok(b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0\n")}, {}),
    "a part of something else": ({f"/files/demo/{WHEEL}": ok(
        b"x" * 200, status="206 Partial Content", headers=("Content-Range: bytes 100-299/300",))}, {"beside": False}),
    "a part of nothing": ({f"/files/demo/{WHEEL}": ok(b"x" * 200, status="206 Partial Content")}, {"beside": False}),
    "no range that is wanted": ({f"/files/demo/{WHEEL}": status("416 Range Not Satisfiable")}, {"beside": False}),
}


@pytest.mark.parametrize(("changes", "how"), WRONG.values(), ids=WRONG)
def test_metadata_that_is_not_as_it_should_be(changes: Changes, how: dict[str, Any], tmp_path: Path) -> None:
    server = Server(changes=changes, **how)
    server.files["demo"] = {WHEEL: server.files["demo"][WHEEL]}
    both(server, tmp_path, settings={"retries": 0})


def test_a_server_that_says_come_back_is_asked_again(tmp_path: Path) -> None:
    said: list[str] = []

    def busy(head: str) -> Reply:
        said.append(head)
        return status("503 Busy", "Retry-After: 0") if len(said) % 2 else ok(ONE)

    both(Server(changes={"/simple/demo/": busy}), tmp_path)
    assert len(said) == 4, "twice each: the other process's answer counts as the first"


def test_where_there_is_no_room_for_texts(tmp_path: Path) -> None:
    server = Server(changes={"/simple/demo/": packed(ONE)})
    found, _, _ = both(server, tmp_path, arena=1)
    assert found["told"]["page"] == 1, "one that did not travel packed is sent as it is"


def test_large_answers_do_not_stop_each_other(tmp_path: Path) -> None:
    """More than may wait to be read, all of a kind that the other process passes on; and of some nobody wants any."""
    names = tuple(f"large{number}" for number in range(12))
    filler = b'<a href="x">x</a>' * 200_000
    changes = {f"/simple/{name}/": ok(filler + f'<a href="{name}-1.tar.gz">{name}-1.tar.gz</a>'.encode(),
                                      kind="text/html") for name in names}
    found, _, _ = both(Server(changes=changes), tmp_path, names=names)
    assert found["told"]["answer"] == 12
    assert {tuple(of["versions"]) for of in found["found"].values()} == {("1",)}


def test_both_processes_may_have_much_to_say_at_once(tmp_path: Path) -> None:
    """More than their sockets take, in both directions: neither waits for the other to be heard."""
    body = json.loads(ONE)
    body["files"] = [{"filename": f"demo-1.{number}-py3-none-any.whl", "url": f"/{'x' * 9000}/{number}",
                      "hashes": {"sha256": "0" * 64}} for number in range(100)]
    large = ok(b"z" * 60_000, status="206 Partial Content", headers=("Content-Range: bytes 0-59999/60001",))
    server = Server(changes={"/simple/demo/": ok(json.dumps(body).encode())})
    with RawServer(lambda head: large if path_of(head).startswith("/xx") else server(head)) as running:
        found = client(running.url, tmp_path, beside=True, names=("demo",), settings={"retries": 0})
    assert len(found["found"]["demo"]["files"]) == 100
    assert found["told"]["answer"] > 80


def test_one_address_for_many_files_is_asked_for_by_each(tmp_path: Path) -> None:
    """What is large and answers nobody is given back: more than may wait does not stop what comes behind it."""
    names = tuple(f"one{number}" for number in range(10))
    about = {name: {"filename": f"{name}-1.0-py3-none-any.whl", "url": "/files/same.whl", "core-metadata": True,
                    "hashes": {"sha256": "0" * 64}} for name in names}
    pages = {f"/simple/{name}/": ok(json.dumps({
        "meta": {"api-version": "1.1"}, "name": name, "files": [entry]}).encode()) for name, entry in about.items()}
    junk = ok(b"x" * (5 << 20), kind="text/plain")
    server = Server(advertised=True, changes={**pages, "/files/same.whl.metadata": junk})
    with RawServer(server) as running:
        server.url = running.url
        found = client(running.url, tmp_path, beside=True, names=(*names, "demo"), at_once=True)["found"]
    assert all("states no metadata-version" in found[name]["files"][0][1] for name in names)
    assert found["demo"]["files"][0][1]["requires_dist"] == ["other"]


def test_tls_and_a_login(tmp_path: Path) -> None:
    certificate, context = make_certificate(tmp_path)
    server = Server(advertised=True)
    with RawServer(server, tls=context) as running:
        server.url = running.url
        url = running.url.replace("://", "://me:secret@")
        found = client(url, tmp_path / "cache", beside=True, settings={"cert": str(certificate)})
        assert set(running.header("Authorization")) == {"Basic bWU6c2VjcmV0"}
    assert found["told"]["page"] == 2
    assert found["told"]["metadata"] == 3
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and b"secret" in path.read_bytes()]


def test_a_process_that_is_gone_is_done_without(tmp_path: Path) -> None:
    found, _, _ = both(Server(), tmp_path, signal=signal.SIGKILL)
    assert not found["told"]


def test_one_that_does_not_move_is_ended(tmp_path: Path) -> None:
    """Nothing was asked of it; the client waits for its end, which does not come by itself."""
    found = client("http://127.0.0.1:9", tmp_path, beside=True, names=(), signal=signal.SIGSTOP, patience=0.2)
    assert (found["beside"], found["told"]) == (True, {})


def test_an_answer_that_pauses_is_asked_for_once(tmp_path: Path) -> None:
    def pausing(_: str) -> Iterator[bytes]:
        answer = ok(ONE)
        yield answer[:-10]
        time.sleep(1.5)
        yield answer[-10:]

    with RawServer(Server(changes={"/simple/demo/": pausing})) as running:
        found = client(running.url, tmp_path, beside=True, names=("demo",))
        assert [path_of(head) for head in running.heads].count("/simple/demo/") == 1
    assert found["told"]["page"] == 1


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    cache = tmp_path / "file"
    cache.write_text("")
    server = Server()
    with RawServer(server) as running:
        server.url = running.url
        found = client(running.url, cache / "below", beside=True)
    assert "cannot be written" in found["problem"]
    assert found["found"]["demo"]["files"]


def test_it_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
    with RawServer(lambda _: b"") as running:
        words = {"url": f"{running.url}/simple", "cache": str(tmp_path), "names": NAMES, "beside": True, "stay": True}
        process = subprocess.Popen([sys.executable, "-m", "tests.asker_client"], cwd=ROOT, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(words))
            process.stdin.close()
            other = int(process.stdout.readline())
            assert is_running(other)
            process.kill()
        until = time.monotonic() + 20
        while is_running(other) and time.monotonic() < until:
            time.sleep(0.02)
        assert not is_running(other)


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended; one that nobody has waited for does not count."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


PROGRAM = """
import os, sys
sys.argv = ["stackfix", *sys.argv[1:]]
if os.environ.pop("ALONE"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import stackfix.sources.asker as asker
begun = asker.begin_asker
def begin(*about):
    made = begun(*about)
    sys.stderr.write(f"BESIDE {made is not None}\\n")
    return made
asker.begin_asker = begin
import stackfix.cli
stackfix.cli.main()
"""


@pytest.mark.parametrize("words", [("lock", *ASKED), ("lock",), ("lock", "-r", "requirements.in", *ASKED)], ids=str)
def test_the_program_locks_the_same(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with World().served() as world:
        said = []
        for alone in ("", "1"):
            folder = tmp_path / f"project{alone}"
            folder.mkdir()
            settle(monkeypatch, folder, world.url)
            Path("requirements.in").write_text("idna\n")
            Path("stackfix.toml").write_text('torch = "2.3"\npython = ["3.11"]\nflash-attn = false\n')
            done = subprocess.run([sys.executable, "-c", PROGRAM, *words, "--format", "requirements"], check=False,
                                  capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "ALONE": alone, "PYTHONPATH": str(ROOT)})
            assert done.returncode == 0, done.stderr
            first, _, rest = done.stderr.partition("\n")
            assert first == f"BESIDE {not alone}"
            said.append((done.stdout, rest, Path("requirements.txt").read_bytes(), kept(folder / ".cache" / "pages-v1"),
                         kept(folder / ".cache" / "metadata-v1"),
                         Counter(path for path in world.asked if path.startswith("/simple/"))))
            assert set(Counter(world.asked).values()) == {1}, "which wheels are asked for in two ways is chance"
            world.asked.clear()
        assert said[0] == said[1]


# -- shared memory ---------------------------------------------------------------------------------------------------

def test_a_text_in_shared_memory_is_read_as_a_str_is() -> None:
    text = '{"a": "x"}{"b": "y"}'
    arena = Arena(64)
    assert arena.put(b"before") == 0
    begin = arena.put(text.encode())
    assert begin == 6
    assert arena.put(b"z" * 40) is None, "there is no room, and nothing is written over"
    there = arena.text(begin, len(text))
    assert (str(there.get()), len(there)) == (text, len(text))
    for start in range(len(text) + 1):
        for end in range(len(text) + 3):
            assert there[start:end] == text[start:end]
            assert there.rfind('"', start, end) == text.rfind('"', start, end)
            assert tried(there.rindex, '{"', start, end) == tried(text.rindex, '{"', start, end)
        assert tried(there.index, "y", start) == tried(text.index, "y", start)


def tried(find: Callable[..., int], *words: Any) -> int | None:
    try:
        return find(*words)
    except ValueError:
        return None


def test_what_is_kept_can_be_unpacked(tmp_path: Path) -> None:
    both(Server(changes={"/simple/demo/": packed(ONE)}), tmp_path)
    stored = [content for about, content in kept(tmp_path / "with").values() if about.get("gzipped")]
    assert [zlib.decompress(content, 31) for content in stored] == [ONE]
