"""Metadata of one file: every way to it, and every lie on the way."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import struct
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from stackfix.errors import StackfixError
from stackfix.sources.answers import LIMITS
from stackfix.sources.cache import Cache
from stackfix.sources.errors import (
    BadMetadata,
    HashMismatch,
    IndexUnreachable,
    RequestFailed,
    SdistNeedsBuild,
    TooLarge,
)
from stackfix.sources.metadata import MetadataSource
from stackfix.sources.records import CoreMetadata
from stackfix.sources.transport import Transport
from stackfix.sources.wheel_ways import TAIL
from stackfix.sources.workers import Task
from tests.replay.wheels import make_wheel, zip_bytes
from tests.sources_servers import RawServer, Reply, file_for, header_of, ok, path_of, settings_for, status

NAME = "demo-1.0-py3-none-any.whl"
METADATA = b"""\
Metadata-Version: 2.1
Name: Demo
Version: 1.0
Requires-Dist: torch (>=2)
Requires-Python: >=3.8

text
"""
WHEEL = make_wheel(NAME, requires=("torch (>=2)",), requires_python=">=3.8")
Source = Callable[[], MetadataSource]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def start(work: Callable[[], CoreMetadata]) -> Task[CoreMetadata]:
    task = Task(work)
    threading.Thread(target=task.run, daemon=True).start()
    return task


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    """Makes metadata sources over one cache."""
    clients: list[Transport] = []

    def make() -> MetadataSource:
        clients.append(Transport(settings_for(retries=0)))
        return MetadataSource(clients[-1], Cache(tmp_path / "cache"), LIMITS, start)

    yield make
    for client in clients:
        client.close()


class Files:
    """Answers for RawServer: files with range requests, as most servers do them."""

    def __init__(self, wheel: bytes = WHEEL, *, metadata: bytes | None = None, ranges: bool = True,
                 suffixes: bool = True) -> None:
        self.wheel, self.metadata, self.ranges, self.suffixes = wheel, metadata, ranges, suffixes

    def __call__(self, head: str) -> Reply:
        if path_of(head).endswith(".metadata"):
            return status("404 Not Found") if self.metadata is None else ok(self.metadata)
        wanted = header_of(head, "range")
        if wanted is None or not self.ranges:
            return ok(self.wheel)
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted).groups()  # type: ignore[union-attr]
        total = len(self.wheel)
        if not first and not self.suffixes:
            return status("416 Range Not Satisfiable")
        begin = int(first) if first else max(0, total - int(last))
        end = min(total - 1, int(last)) if first else total - 1
        return ok(self.wheel[begin:end + 1], status="206 Partial Content",
                  headers=(f"Content-Range: bytes {begin}-{end}/{total}",))


def big_wheel(after: int = 0, entries: int = 0) -> bytes:
    """A wheel of several hundred kilobytes: so many bytes after METADATA, so many more entries in its directory."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("demo/weights", bytes(300_000))
        archive.writestr("demo-1.0.dist-info/METADATA", METADATA)
        for number in range(entries):
            archive.writestr(f"demo/{number:08}{'x' * 60}", b"")
        archive.writestr("demo/more", bytes(after))
    return stream.getvalue()


def test_advertised_metadata_is_checked_against_its_hash(source: Source) -> None:
    with RawServer(Files(metadata=METADATA)) as server:
        found = source().fetch(file_for(server.url, core_metadata=sha256(METADATA)))
        assert found == CoreMetadata(
            name="demo", version="1.0", requires_dist=("torch (>=2)",), requires_python=">=3.8", provides_extra=(),
            basis="advertised")
        with pytest.raises(HashMismatch) as fault:
            source().fetch(file_for(server.url, core_metadata="0" * 64))
        assert NAME in str(fault.value)
        assert sha256(METADATA) in str(fault.value)


def test_advertised_without_a_hash_is_not_called_checked(source: Source) -> None:
    with RawServer(Files(metadata=METADATA)) as server:
        assert source().fetch(file_for(server.url, core_metadata=True)).basis == "unadvertised"


@pytest.mark.parametrize("advertised", [sha256(METADATA), True, None])
def test_where_the_metadata_file_is_missing_the_wheel_is_read(advertised: str | bool | None, source: Source) -> None:
    with RawServer(Files(big_wheel())) as server:
        found = source().fetch(file_for(server.url, core_metadata=advertised))
        assert (found.basis, found.requires_dist) == ("range", ("torch (>=2)",))
        ranges = [value for value in server.header("range") if value]
        assert ranges == [f"bytes=-{TAIL}"]


def test_metadata_that_is_there_unadvertised_is_used(source: Source) -> None:
    with RawServer(Files(metadata=METADATA)) as server:
        assert source().fetch(file_for(server.url)).basis == "unadvertised"


@pytest.mark.parametrize("body", [b"<html>not found</html>", METADATA.replace(b"Demo", b"Other"), b""])
def test_a_page_in_place_of_unadvertised_metadata_is_passed_over(body: bytes, source: Source) -> None:
    with RawServer(Files(metadata=body)) as server:
        assert source().fetch(file_for(server.url)).basis == "range"


@pytest.mark.parametrize(("after", "entries"), [(200_000, 0), (0, 2000), (200_000, 2000)])
def test_a_second_range_is_asked_where_the_end_is_not_enough(after: int, entries: int, source: Source) -> None:
    wheel = big_wheel(after, entries)
    with RawServer(Files(wheel)) as server:
        found = source().fetch(file_for(server.url, size=len(wheel)))
        assert (found.basis, found.requires_dist) == ("range", ("torch (>=2)",))
        assert 2 <= len([value for value in server.header("range") if value]) <= 3


def test_a_server_that_knows_no_suffix_ranges_is_asked_by_size(source: Source) -> None:
    wheel = big_wheel()
    with RawServer(Files(wheel, suffixes=False)) as server:
        assert source().fetch(file_for(server.url, size=len(wheel))).basis == "range"
        assert source().fetch(file_for(server.url, size=None, sha256=sha256(wheel))).basis == "file"


def test_without_ranges_a_small_file_is_read_whole_and_checked(source: Source) -> None:
    with RawServer(Files(ranges=False)) as server:
        assert source().fetch(file_for(server.url, sha256=sha256(WHEEL))).basis == "file"
        with pytest.raises(HashMismatch):
            source().fetch(file_for(server.url, sha256="0" * 64))


@pytest.mark.parametrize("size", [800_000_000_000, None])
def test_without_ranges_a_large_file_is_not_read(size: int | None, source: Source) -> None:
    def huge(head: str) -> Reply:
        if path_of(head).endswith(".metadata"):
            return status("404 Not Found")
        return b"HTTP/1.1 200 OK\r\nContent-Length: 800000000000\r\n\r\n"

    with RawServer(huge) as server, pytest.raises((BadMetadata, TooLarge), match="800000000000 bytes"):
        source().fetch(file_for(server.url, size=size))


@pytest.mark.parametrize(("metadata", "reason"), [
    (METADATA.replace(b"Demo", b"other"), "is about 'other'"),
    (METADATA.replace(b"1.0", b"1.1", 1), "is about version '1.1'"),
    (METADATA.replace(b"Version: 1.0", b"Version: nonsense"), "is about version 'nonsense'"),
    (METADATA.replace(b"2.1", b"9.0", 1), "unknown metadata version '9.0'"),
    (METADATA.replace(b"Name: Demo\n", b""), "states no name"),
    (b"Name: demo\n" + METADATA, "more than one name"),
    (b"", "states no metadata-version"), (b"\x00\xff" * 100, "states no metadata-version"),
    (METADATA.replace(b"\n\n", b"\nRequires-Dist: x" * 20_000 + b"\n\n"), "more than 10000 times"),
    (METADATA.replace(b"\n\n", b"\nRequires-Dist: x[a, b]" * 1_001 + b"\n\n"), "more than 2000 extras of projects"),
])
def test_metadata_that_disagrees_with_its_file_is_refused(metadata: bytes, reason: str, source: Source) -> None:
    with RawServer(Files(metadata=metadata)) as server, pytest.raises(BadMetadata, match=reason) as fault:
        source().fetch(file_for(server.url, core_metadata=sha256(metadata)))
    assert f"metadata of {NAME}" in str(fault.value)


@pytest.mark.parametrize(("version", "written"), [("1.0", "1.0.0"), ("1.0+cu121", "1.0+CU121"), ("1.0.post1", "1.0-1")])
def test_one_version_may_be_spelled_in_several_ways(version: str, written: str, source: Source) -> None:
    metadata = METADATA.replace(b"Version: 1.0", b"Version: " + written.encode())
    with RawServer(Files(metadata=metadata)) as server:
        assert source().fetch(file_for(server.url, version=version, core_metadata=True)).version == written


def test_folded_headers_and_odd_line_ends_are_read(source: Source) -> None:
    lines = (b"Metadata-Version: 2.1", b"NAME: demo", b"Version: 1.0", b"Requires-Dist: torch", b"  >=2", b"Summary: a",
             b" b", b"Provides-Extra: cuda", b"", b"Requires-Dist: no", b"")
    metadata = b"\r\n".join(lines)
    with RawServer(Files(metadata=metadata)) as server:
        found = source().fetch(file_for(server.url, core_metadata=True))
        assert (found.requires_dist, found.provides_extra) == (("torch >=2",), ("cuda",))


def hostile_wheels() -> Iterator[tuple[str, bytes]]:
    yield "cut short", WHEEL[:-40]
    yield "no zip", b"x" * 5000
    yield "empty", b""
    yield "no metadata", zip_bytes({"demo/__init__.py": ""})
    yield "other project", zip_bytes({"other-1.0.dist-info/METADATA": METADATA.decode()})
    yield "path", zip_bytes({"../demo-1.0.dist-info/METADATA": METADATA.decode()})
    yield "twice", zip_bytes({f"{name}-1.0.dist-info/METADATA": METADATA.decode() for name in ("demo", "Demo")})
    yield "bomb", zip_bytes({"demo-1.0.dist-info/METADATA": METADATA.decode() + "x" * 20_000_000})
    damaged = bytearray(WHEEL)
    at = WHEEL.index(b"dist-info/METADATA") + 30
    damaged[at:at + 20] = bytes(20)
    yield "damaged content", bytes(damaged)
    directory = WHEEL.rindex(b"PK\x05\x06")
    for field, place in (("size", 12), ("offset", 16)):
        bent = bytearray(WHEEL)
        struct.pack_into("<I", bent, directory + place, 0x7FFFFFF0)
        yield f"hostile directory {field}", bytes(bent)
    local = bytearray(WHEEL)
    for found in re.finditer(rb"PK\x01\x02", WHEEL):
        struct.pack_into("<I", local, found.start() + 42, 0x7FFFFF00)
    yield "hostile header offset", bytes(local)


HOSTILE = dict(hostile_wheels())


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("ranges", [True, False])
def test_a_hostile_wheel_is_an_error_about_that_wheel(kind: str, ranges: bool, source: Source) -> None:
    wheel = HOSTILE[kind]
    with RawServer(Files(wheel, ranges=ranges)) as server, pytest.raises((BadMetadata, RequestFailed)) as fault:
        source().fetch(file_for(server.url, sha256=sha256(wheel)))
    assert NAME in str(fault.value)


@pytest.mark.parametrize("content_range", [
    "", "bytes 0-9/*", "bytes 0-9/5", "bytes 9-0/100", "bytes 0-99999/1000000", "bytes 5-1/3", "items 0-9/10",
    f"bytes 0-{len(WHEEL) - 1}/99999999999999999999",
])
def test_a_part_that_is_not_what_it_says_is_refused(content_range: str, source: Source) -> None:
    def bent(head: str) -> Reply:
        if path_of(head).endswith(".metadata"):
            return status("404 Not Found")
        return ok(WHEEL, status="206 Partial Content", headers=(f"Content-Range: {content_range}",))

    with RawServer(bent) as server, pytest.raises(BadMetadata, match="part of the file"):
        source().fetch(file_for(server.url))


def test_a_file_of_another_size_than_stated_is_refused(source: Source) -> None:
    with RawServer(Files()) as server, pytest.raises(BadMetadata, match="the index page states 7"):
        source().fetch(file_for(server.url, size=7))


def test_a_server_that_fails_is_named(source: Source) -> None:
    with RawServer(lambda head: status("500 Oops")) as server, pytest.raises(IndexUnreachable, match="500"):
        source().fetch(file_for(server.url))
    with RawServer(lambda head: status("401 No")) as server, pytest.raises(RequestFailed, match="401") as fault:
        source().fetch(file_for(server.url, core_metadata=True))
    assert "netrc" in str(fault.value.next_step())


def sdist(pkg_info: bytes, *, name: str = "demo-1.0/PKG-INFO", kind: str = "tar.gz") -> bytes:
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(name, pkg_info)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for path, content in (("demo-1.0/demo.egg-info/PKG-INFO", b"wrong one"), (name, pkg_info)):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


STATIC = METADATA.replace(b"2.1", b"2.2", 1)


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_static_metadata_of_an_sdist_is_read_from_the_checked_file(kind: str, source: Source) -> None:
    content = sdist(STATIC, kind=kind)
    with RawServer(Files(content)) as server:
        found = source().fetch(file_for(server.url, f"demo-1.0.{kind}", sha256=sha256(content)))
        assert (found.basis, found.requires_dist) == ("sdist", ("torch (>=2)",))
        with pytest.raises(HashMismatch):
            source().fetch(file_for(server.url, f"demo-1.0.{kind}", sha256="0" * 64))


@pytest.mark.parametrize(("pkg_info", "reason"), [
    (METADATA, r"version 2\.1, before static metadata came"),
    (STATIC.replace(b"Name", b"Dynamic: Requires-Dist\nName"), "declares requires-dist as dynamic"),
    (STATIC.replace(b"Name", b"Dynamic: requires-python\nName"), "declares requires-python as dynamic"),
])
def test_an_sdist_that_needs_a_build_says_so_every_time(pkg_info: bytes, reason: str, source: Source) -> None:
    content = sdist(pkg_info)
    with RawServer(Files(content)) as server:
        file = file_for(server.url, "demo-1.0.tar.gz", sha256=sha256(content))
        with pytest.raises(SdistNeedsBuild, match=reason) as fault:
            source().fetch(file)
        assert (fault.value.project, fault.value.version, fault.value.exit_status) == ("demo", "1.0", 1)
        with pytest.raises(SdistNeedsBuild, match=reason):
            source().kept(file)


@pytest.mark.parametrize("content", [
    sdist(STATIC, name="demo-1.0/other"), sdist(STATIC, name="PKG-INFO"), sdist(STATIC, name="../PKG-INFO"),
    b"no archive", sdist(STATIC)[:60], gzip.compress(b"x" * 2000), sdist(STATIC.replace(b"Demo", b"other")),
], ids=range(7))
def test_a_damaged_sdist_is_an_error_about_that_sdist(content: bytes, source: Source) -> None:
    with RawServer(Files(content)) as server, pytest.raises(BadMetadata, match=r"metadata of demo-1\.0\.tar\.gz"):
        source().fetch(file_for(server.url, "demo-1.0.tar.gz", sha256=sha256(content)))


def test_an_sdist_bomb_is_stopped(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stackfix.sources.archives._MAX_UNPACKED", 1_000_000)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("demo-1.0/zeros")
        member.size = 50_000_000
        archive.addfile(member, io.BytesIO(bytes(member.size)))
    content = stream.getvalue()
    with RawServer(Files(content)) as server, pytest.raises(BadMetadata, match="unpacks to more than"):
        source().fetch(file_for(server.url, "demo-1.0.tar.gz", sha256=sha256(content)))


def test_metadata_is_kept_by_the_hash_of_its_file(source: Source) -> None:
    with RawServer(Files(metadata=METADATA)) as server:
        file = file_for(server.url, sha256=sha256(WHEEL), core_metadata=sha256(METADATA))
        assert source().kept(file) is None
        found = source().fetch(file)
    assert source().kept(file) == found
    assert source().kept(file_for("http://elsewhere", sha256=sha256(WHEEL), core_metadata=sha256(METADATA))) == found


def test_what_no_hash_covers_is_kept_for_its_server_alone(source: Source) -> None:
    with RawServer(Files(metadata=METADATA.replace(b"torch", b"lies"))) as liar:
        for advertised in (None, True):
            file = file_for(liar.url, sha256=sha256(WHEEL), core_metadata=advertised)
            assert source().fetch(file).requires_dist == ("lies (>=2)",)
            assert source().kept(file) is not None
    # This one says that it has metadata with the right hash, has not, and shows another wheel's end instead.
    other = big_wheel().replace(b"torch (>=2)", b"lies! (>=2)")
    with RawServer(Files(unchecked(other))) as liar:
        file = file_for(liar.url, sha256=sha256(WHEEL), core_metadata=sha256(METADATA))
        assert source().fetch(file).requires_dist == ("lies! (>=2)",)
        assert source().kept(file) is not None
    claims: tuple[str | bool | None, ...] = (None, True, sha256(METADATA))
    for claim in claims:
        honest = file_for("http://honest.example", sha256=sha256(WHEEL), core_metadata=claim)
        assert source().kept(honest) is None


def unchecked(wheel: bytes) -> bytes:
    """The wheel with the CRC of METADATA made right again after an edit."""
    stream = io.BytesIO(wheel)
    with zipfile.ZipFile(stream) as archive:
        info = archive.getinfo("demo-1.0.dist-info/METADATA")
    begin = info.header_offset + 30 + len(info.filename)
    fresh = io.BytesIO()
    with zipfile.ZipFile(fresh, "w") as archive:
        archive.writestr(info.filename, wheel[begin:begin + info.file_size])
    return fresh.getvalue()


@pytest.mark.parametrize("damage", [
    {"name": "other"}, {"version": "9"}, {"requires_dist": "torch"}, {"requires_dist": [1]}, {"requires_python": 3},
    {"basis": None},
])
def test_a_kept_record_is_checked_before_it_is_used(damage: dict[str, object], source: Source, tmp_path: Path) -> None:
    with RawServer(Files(metadata=METADATA)) as server:
        file = file_for(server.url, sha256=sha256(WHEEL), core_metadata=sha256(METADATA))
        source().fetch(file)
    (entry,) = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    cache = Cache(tmp_path / "cache")
    about = cache.record("metadata-v1", entry.name)
    assert about is not None
    cache.keep_record("metadata-v1", entry.name, {**about, **damage})
    assert source().kept(file) is None


def either(beside: bytes, inside: bytes, head: str) -> bytes:
    return beside if path_of(head).endswith(".metadata") else inside


def test_every_fault_is_one_of_ours(source: Source) -> None:
    """Any answer to any of the requests: a record or a clear error, never a traceback."""
    answers = [status("404 No"), status("206 P"), ok(b"x"), ok(WHEEL), ok(WHEEL[:50], status="206 P"), b"",
               b"bad\r\n\r\n", status("204 No"), status("304 No"), status("302 F"), ok(METADATA), status("416 R"),
               status("403 F")]
    for beside in answers:
        for inside in answers:
            with RawServer(partial(either, beside, inside)) as server:
                try:
                    assert source().fetch(file_for(server.url)).name == "demo"
                except StackfixError as fault:
                    assert NAME in str(fault)  # noqa: PT017  # either way out is right
