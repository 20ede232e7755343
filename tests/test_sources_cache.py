"""What is kept between runs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.sources.cache import Cache, directives, lifetime
from stackfix.sources.cache_place import default_cache_dir

URL = "https://me:s3cret@index.example/simple/demo/"


def keep(cache: Cache, content: bytes = b"page", **headers: str) -> None:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    cache.keep_page(URL, final=URL, headers={"content-type": "x", **said}, content=content)


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_page_comes_back_with_its_age_and_etag(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    assert cache.page(URL) is None
    keep(cache, etag='"1"', cache_control="max-age=60")
    page = cache.page(URL)
    assert page is not None
    assert (page.content, page.content_type, page.etag, page.fresh) == (b"page", "x", '"1"', True)
    keep(cache, b"newer")
    page = cache.page(URL)
    assert page is not None
    assert (page.content, page.etag, page.fresh) == (b"newer", None, False)


def test_no_store_is_obeyed(tmp_path: Path) -> None:
    keep(Cache(tmp_path), cache_control="no-store, max-age=60")
    assert entries(tmp_path) == []


def test_a_renewed_page_keeps_its_content_and_etag(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    keep(cache, etag='"1"')
    page = cache.page(URL)
    assert page is not None
    cache.renew_page(URL, page, {"cache-control": "max-age=60"})
    renewed = cache.page(URL)
    assert renewed is not None
    assert (renewed.content, renewed.etag, renewed.fresh) == (b"page", '"1"', True)


@pytest.mark.parametrize(("text", "age", "seconds"), [
    ("max-age=600, public", None, 600), ("max-age=600", "590", 10), ("max-age=600", "700", 0), ('max-age="5"', None, 5),
    ("MAX-AGE=5", None, 5), ("no-cache, max-age=600", None, 0), ("", None, 0), ("public", None, 0),
    ("max-age=-1", None, 0),
    ("max-age=" + "9" * 50, None, 365 * 86400), ("max-age=5", "soon", 5),
])
def test_cache_control_says_how_long(text: str, age: str | None, seconds: float) -> None:
    assert lifetime(directives(text), age) == seconds


def test_nothing_kept_names_a_credential_and_only_the_user_may_read_it(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    keep(cache, etag="x")
    for path in entries(tmp_path):
        assert b"s3cret" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    page = cache.page("https://other:login@index.example/simple/demo/")
    assert page is not None
    assert "@" not in page.url


@pytest.mark.parametrize("damage", [
    lambda raw: raw[:-1], lambda raw: raw[1:], lambda raw: b"", lambda raw: raw.replace(b"page", b"evil"),
    lambda raw: b"\x00" * len(raw), lambda raw: raw + b"x",
])
def test_a_damaged_entry_is_dropped(damage: object, tmp_path: Path) -> None:
    assert callable(damage)
    cache = Cache(tmp_path)
    keep(cache)
    (path,) = entries(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.page(URL) is None
    assert entries(tmp_path) == []
    keep(cache)
    assert cache.page(URL) is not None


@given(st.dictionaries(st.text(), st.none() | st.text() | st.lists(st.text())))
def test_records_come_back_equal(about: dict[str, object]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        cache.keep_record("metadata-v1", "abc", about)
        assert cache.record("metadata-v1", "abc") == about


def test_a_folder_that_cannot_be_written_is_a_problem_and_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file")
    keep(cache)
    assert cache.page(URL) is None
    assert cache.problem is not None
    assert str(tmp_path / "file") in cache.problem


def test_processes_may_write_and_read_one_entry_at_once(tmp_path: Path) -> None:
    """Each reads only whole entries of one writer, whatever the others do meanwhile."""
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from stackfix.sources.cache import Cache
        cache, letter = Cache(Path(sys.argv[1])), sys.argv[2].encode()
        for _ in range(150):
            cache.keep_page("https://x/", final="https://x/", headers={"content-type": "x"}, content=letter * 200_000)
            page = cache.page("https://x/")
            assert page is not None and len(page.content) == 200_000 and len(set(page.content)) == 1, "torn"
        assert cache.problem is None, cache.problem
    """)
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), letter]) for letter in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(entries(tmp_path)) == 1  # nothing half written is left


@pytest.mark.parametrize(("environ", "platform", "expected"), [
    ({"STACKFIX_CACHE_DIR": "there", "XDG_CACHE_HOME": "/xdg"}, "linux", "there"),
    ({"XDG_CACHE_HOME": "/xdg"}, "linux", "/xdg/stackfix"),
    ({"XDG_CACHE_HOME": "relative"}, "linux", "/h/.cache/stackfix"),
    ({}, "linux", "/h/.cache/stackfix"), ({}, "darwin", "/h/Library/Caches/stackfix"),
    ({"LOCALAPPDATA": "/local"}, "win32", "/local/stackfix/Cache"), ({}, "win32", "/h/AppData/Local/stackfix/Cache"),
])
def test_the_folder_is_the_platforms(environ: dict[str, str], platform: str, expected: str) -> None:
    assert default_cache_dir(environ, Path("/h"), platform) == Path(expected)


def test_a_reader_never_sees_a_half_written_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    keep(cache)
    (path,) = entries(tmp_path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.1")
    beside.write_bytes(b"half")     # what a killed process leaves
    page = cache.page(URL)
    assert page is not None
    assert page.content == b"page"


def test_what_was_kept_since_the_folder_was_listed_is_found(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    assert cache.record("metadata-v1", "one") is None
    assert not cache.has_record("metadata-v1", "one")
    cache.keep_record("metadata-v1", "one", {"a": "b"})
    assert cache.record("metadata-v1", "one") == {"a": "b"}
    assert Cache(tmp_path / "cache").has_record("metadata-v1", "one")
