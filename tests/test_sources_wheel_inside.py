"""Wheels without a stated metadata file, many at once: what a server is asked for, and how often."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stackfix.sources.errors import BadMetadata
from stackfix.sources.index import PackageIndex
from stackfix.sources.records import IndexFile
from stackfix.sources.wheel_ways import TAIL, WIDE
from tests.sources_servers import RawServer, Reply, file_for, header_of, ok, path_of, settings_for, status

METADATA = b"Metadata-Version: 2.1\nName: Demo\nVersion: 1.0\nRequires-Dist: torch\n"
MANY = 12


def wheel(*, entries: int = 0, weights: int = 300_000, behind: int = 0) -> bytes:
    """A wheel with so many entries in its directory, which RECORD tells as well, and so many bytes behind METADATA."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("demo/weights", bytes(weights))
        for number in range(entries):
            archive.writestr(f"demo/{number:08}{'x' * 60}", b"")
        archive.writestr("demo-1.0.dist-info/METADATA", METADATA)
        archive.writestr("demo-1.0.dist-info/RECORD", b"x" * (60 * entries + behind))
    return stream.getvalue()


class Server:
    """Wheels, and perhaps files beside them: of all, of every second, or of none."""

    def __init__(self, content: bytes, *, beside: Callable[[int], bool] = lambda _: False, ranges: bool = True) -> None:
        self.content, self.beside, self.ranges = content, beside, ranges
        self.asked: list[tuple[str, str | None]] = []

    def __call__(self, head: str) -> Reply:
        path, wanted = path_of(head), header_of(head, "range")
        self.asked.append((path, wanted))
        if path.endswith(".metadata"):
            number = int(re.findall(r"\d+", path)[0])
            return ok(METADATA) if self.beside(number) else status("404 Not Found")
        if wanted is None or not self.ranges:
            return ok(self.content) if wanted is None or len(self.content) < 8_000_000 else status("501 Not Done")
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted).groups()  # type: ignore[union-attr]
        total = len(self.content)
        begin = int(first) if first else max(0, total - int(last))
        end = int(last) if first else total - 1
        return ok(self.content[begin:end + 1], status="206 Partial Content",
                  headers=(f"Content-Range: bytes {begin}-{end}/{total}",))

    def beside_asked(self) -> int:
        return sum(path.endswith(".metadata") for path, _ in self.asked)

    def ranges_asked(self) -> int:
        return sum(wanted is not None for _, wanted in self.asked)


def files_of(url: str, count: int, first: int = 0, size: int | None = None) -> tuple[IndexFile, ...]:
    """As many wheels of one project, each at an address of its own."""
    return tuple(file_for(f"{url}/{number}", sha256=f"{number:064x}", size=size)
                 for number in range(first, first + count))


@contextmanager
def opened(server: Server, folder: Path) -> Iterator[tuple[PackageIndex, str]]:
    with RawServer(server) as http, \
            PackageIndex(settings_for(http.url, retries=0), cache_dir=folder, offline=False) as index:
        yield index, http.url


def read(index: PackageIndex, files: tuple[IndexFile, ...]) -> set[str]:
    """How the metadata of all was found."""
    index.prefetch_metadata(files)
    found = [index.metadata(file) for file in files]
    assert {one.requires_dist for one in found} == {("torch",)}
    return {one.basis for one in found}


def test_a_server_without_files_beside_its_wheels_is_asked_for_few_of_them(tmp_path: Path) -> None:
    server = Server(wheel())
    with opened(server, tmp_path) as (index, url):
        assert read(index, files_of(url, MANY)) == {"range"}
    assert (server.beside_asked(), server.ranges_asked()) == (4, MANY)
    assert {wanted for _, wanted in server.asked if wanted} == {f"bytes=-{TAIL}"}


def test_a_server_that_has_them_all_is_asked_for_nothing_else(tmp_path: Path) -> None:
    server = Server(wheel(), beside=lambda _: True)
    with opened(server, tmp_path) as (index, url):
        read(index, files_of(url, 4))
        before = server.ranges_asked()
        assert read(index, files_of(url, MANY, first=4)) == {"unadvertised"}
        assert server.ranges_asked() == before


def test_where_one_is_missing_after_all_the_wheel_is_read_and_its_end_is_asked_for_from_then_on(tmp_path: Path) -> None:
    server = Server(wheel(), beside=lambda number: number != 4)
    with opened(server, tmp_path) as (index, url):
        read(index, files_of(url, 4))
        assert read(index, files_of(url, 1, first=4)) == {"range"}
        before = server.beside_asked()
        assert read(index, files_of(url, MANY, first=5)) == {"range"}
        assert server.beside_asked() == before


@pytest.mark.parametrize("entries", [1200, 8000])
def test_a_directory_that_is_longer_takes_one_range_more(entries: int, tmp_path: Path) -> None:
    content = wheel(entries=entries)
    server = Server(content)
    with opened(server, tmp_path) as (index, url):
        read(index, files_of(url, MANY, size=len(content)))
    assert server.ranges_asked() == 2 * MANY


def test_what_stands_far_before_the_end_is_had_alone(tmp_path: Path) -> None:
    content = wheel(behind=3_000_000)
    server = Server(content)
    with opened(server, tmp_path) as (index, url):
        read(index, files_of(url, MANY, size=len(content)))
    spans = [re.fullmatch(r"bytes=(\d+)-(\d+)", wanted or "") for _, wanted in server.asked]
    assert max(int(span[2]) - int(span[1]) for span in spans if span) < 4 * TAIL


def test_of_large_wheels_and_of_small_ones_more_is_asked_for(tmp_path: Path) -> None:
    server = Server(content := wheel(weights=60_000, behind=40_000))
    with opened(server, tmp_path) as (index, url):
        read(index, files_of(url, MANY, size=len(content)))
    assert {wanted for _, wanted in server.asked if wanted} == {f"bytes=-{WIDE}"}
    assert server.ranges_asked() == MANY


def test_without_ranges_the_file_beside_is_used_before_all_of_a_large_wheel_is_read(tmp_path: Path) -> None:
    server = Server(wheel(weights=9_000_000), beside=lambda number: number % 2 == 1, ranges=False)
    with opened(server, tmp_path) as (index, url):
        index.prefetch_metadata(files := files_of(url, MANY))
        for number, file in enumerate(files):
            if number % 2:
                assert index.metadata(file).basis == "unadvertised"
    assert server.beside_asked() <= 2 * MANY


@pytest.mark.parametrize("stated", ["bytes 0-9/10", "", "bytes 5-4/9", "bytes 0-99/100"])
def test_a_part_that_is_another_than_it_says_is_an_error_of_its_wheel(stated: str, tmp_path: Path) -> None:
    class Lying(Server):
        def __call__(self, head: str) -> Reply:
            if path_of(head).endswith(".metadata"):
                return status("404 Not Found")
            return ok(self.content, status="206 Partial Content", headers=(f"Content-Range: {stated}",))

    with opened(Lying(wheel()), tmp_path) as (index, url):
        index.prefetch_metadata(files := files_of(url, MANY))
        for file in files:
            with pytest.raises(BadMetadata):
                index.metadata(file)


def test_more_than_was_asked_for_is_not_held(tmp_path: Path) -> None:
    """Each answer is a hundred times as long as asked for: they are taken one at a time, and used."""
    class Generous(Server):
        def __call__(self, head: str) -> Reply:
            if path_of(head).endswith(".metadata"):
                return status("404 Not Found")
            total = len(self.content)
            return ok(self.content, status="206 Partial Content",
                      headers=(f"Content-Range: bytes 0-{total - 1}/{total}",))

    with opened(Generous(wheel(weights=6_000_000)), tmp_path) as (index, url):
        assert read(index, files_of(url, MANY)) == {"range"}
        held = index._metadata_source._inside._ends  # noqa: SLF001
        assert not held
