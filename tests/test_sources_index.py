"""The index as the resolver sees it, over real servers."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stackfix.sources.errors import (
    BadPage,
    Closed,
    HashMismatch,
    IndexUnreachable,
    NoSuchProject,
    NotAllowedOffline,
    RequestFailed,
)
from stackfix.sources.index import PackageIndex
from stackfix.sources.page import Page
from stackfix.sources.records import CoreMetadata, IndexFile, IndexPolicy
from tests.replay.faults import Fault
from tests.replay.index import ABSENT, ADVERTISED, UNADVERTISED
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.wheels import make_wheel
from tests.sources_servers import RawServer, header_of, ok, page_json, path_of, settings_for, status

WHEEL = "demo-1.0-py3-none-any.whl"
PROJECTS = {
    "demo": {WHEEL: make_wheel(WHEEL, requires=("base>=1",)),
             "demo-2.0-py3-none-any.whl": make_wheel("demo-2.0-py3-none-any.whl")},
    "base": {"base-1.5-py3-none-any.whl": make_wheel("base-1.5-py3-none-any.whl")},
}
Open = Callable[..., PackageIndex]


@pytest.fixture
def open_index(tmp_path: Path) -> Iterator[Open]:
    """Opens indexes over one cache folder, and closes them after the test."""
    opened: list[PackageIndex] = []

    def make(*urls: str, offline: bool = False, refresh: bool = False, **more: Any) -> PackageIndex:
        limits = {name: more.pop(name) for name in ("progress", "limits", "workers") if name in more}
        opened.append(PackageIndex(settings_for(*urls, **{"retries": 0, **more}), cache_dir=tmp_path / "cache",
                                   offline=offline, refresh=refresh, **limits))
        return opened[-1]

    yield make
    for index in opened:
        index.close()


def loopback(tmp_path: Path, **how: Any) -> ReplayServer:
    return ReplayServer(Store(tmp_path / "recordings", None), projects=how.pop("projects", PROJECTS), **how)


def pages_asked(server: ReplayServer) -> list[str]:
    return [path for _, path, _ in server.requests if path.startswith("/simple/")]


@pytest.mark.parametrize("metadata", [ADVERTISED, UNADVERTISED, ABSENT])
@pytest.mark.parametrize("html_only", [False, True])
@pytest.mark.parametrize("compress", [False, True])
def test_pages_and_metadata_of_every_kind_of_index(
    metadata: str, html_only: bool, compress: bool, tmp_path: Path, open_index: Open,
) -> None:
    with loopback(tmp_path, metadata=metadata, html_only=html_only, compress=compress) as server, \
            open_index(server.url) as index:
        page = index.page("Demo")
        assert set(page.version_strings()) == {"1.0", "2.0"}
        (file,) = page.files("1.0")
        assert file.sha256 == hashlib.sha256(PROJECTS["demo"][WHEEL]).hexdigest()
        found = index.metadata(file)
        assert found.requires_dist == ("base>=1",)
        assert found.basis == {ADVERTISED: "advertised", UNADVERTISED: "unadvertised", ABSENT: "range"}[metadata] \
            or found.basis == "file"


def test_each_thing_is_asked_once_however_often_it_is_wanted(tmp_path: Path, open_index: Open) -> None:
    with loopback(tmp_path, metadata=ADVERTISED) as server:
        index = open_index(server.url)
        index.prefetch_pages(("demo", "base", "Demo", "DEMO"))
        threads = [threading.Thread(target=index.page, args=("demo",)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        file = index.page("demo").files("1.0")[0]
        index.prefetch_metadata((file, file))
        assert index.metadata(file) is index.metadata(file)
        index.page("base")
        assert sorted(pages_asked(server)) == ["/simple/base/", "/simple/demo/"]
        assert len(server.requests) == 3


def test_the_first_index_that_has_the_project_wins(tmp_path: Path, open_index: Open) -> None:
    own = {"demo": {"demo-0.1-py3-none-any.whl": make_wheel("demo-0.1-py3-none-any.whl")}}
    nowhere = Fault(path="/simple/nowhere/", status=404)
    with loopback(tmp_path, projects=own, faults=(Fault(path="/simple/base/", status=404), nowhere)) as first, \
            loopback(tmp_path, faults=(nowhere,)) as second:
        index = open_index(first.url, second.url)
        assert index.page("demo").version_strings() == ("0.1",)
        assert index.page("base").files("1.5")[0].index == second.url
        assert pages_asked(second) == ["/simple/base/"]
        with pytest.raises(NoSuchProject) as fault:
            index.page("nowhere")
        assert fault.value.exit_status == 1
        assert first.url in str(fault.value)
        assert second.url in str(fault.value)


@pytest.mark.parametrize("code", [401, 403, 500, 503])
def test_an_index_that_fails_is_not_passed_over(code: int, tmp_path: Path, open_index: Open) -> None:
    """Else a project that the first index holds back would silently come from the next."""
    with loopback(tmp_path, faults=(Fault(path="/simple/*", status=code),)) as first, loopback(tmp_path) as second:
        with pytest.raises(RequestFailed, match=str(code)):
            open_index(first.url, second.url).page("demo")
        assert not second.requests


def test_an_index_with_an_etag_is_asked_whether_it_changed(tmp_path: Path, open_index: Open) -> None:
    body = page_json("demo", {"filename": WHEEL, "url": WHEEL, "hashes": {}})

    def tagged(head: str) -> bytes:
        if header_of(head, "if-none-match") == '"v1"':
            return status("304 Not Modified", 'ETag: "v1"')
        return ok(body, headers=('ETag: "v1"',))

    with RawServer(tagged) as server:
        for _ in range(3):
            with open_index(server.url) as index:
                assert index.page("demo").version_strings() == ("1.0",)
        assert server.header("if-none-match") == [None, '"v1"', '"v1"']


def test_a_fresh_page_is_not_asked_again_unless_refreshed(tmp_path: Path, open_index: Open) -> None:
    with loopback(tmp_path, cache_headers=True) as server:
        for _ in range(3):
            with open_index(server.url) as index:
                index.page("demo")
        assert len(pages_asked(server)) == 1
        open_index(server.url, refresh=True).page("demo")
        assert len(pages_asked(server)) == 2


def test_an_index_without_cache_headers_is_asked_for_pages_alone(tmp_path: Path, open_index: Open) -> None:
    with loopback(tmp_path) as server:
        for _ in range(2):
            with open_index(server.url) as index:
                assert index.metadata(index.page("demo").files("1.0")[0]).requires_dist == ("base>=1",)
        files = [path for _, path, _ in server.requests if path.startswith("/files/")]
        assert len(pages_asked(server)) == 2
        assert len(files) <= 2  # one run's worth: .metadata, and perhaps the end of the wheel


def test_offline_uses_what_is_there_and_names_what_is_not(tmp_path: Path, open_index: Open) -> None:
    with loopback(tmp_path) as server:
        url = server.url
        with open_index(url) as index:
            file = index.page("demo").files("1.0")[0]
            found = index.metadata(file)
    offline = open_index(url, offline=True)
    assert offline.page("demo").files("1.0") == (file,)
    assert offline.metadata(file) == found
    with pytest.raises(NotAllowedOffline, match="index page of base: not in the cache"):
        offline.page("base")
    with pytest.raises(NotAllowedOffline, match=r"metadata of demo-2\.0-py3-none-any\.whl"):
        offline.metadata(offline.page("demo").files("2.0")[0])


def test_offline_what_an_earlier_index_was_never_asked_for_is_not_taken_from_the_next(
    tmp_path: Path, open_index: Open
) -> None:
    """The private index may have it: another's project of that name would be pinned."""
    with loopback(tmp_path) as private, loopback(tmp_path) as public:
        with open_index(public.url) as index:
            index.page("demo")
        offline = open_index(private.url, public.url, offline=True)
        with pytest.raises(NotAllowedOffline, match=f"index page of demo on {private.url}: not in the cache"):
            offline.page("demo")


@pytest.mark.parametrize("code", [404, 410, 403])
def test_offline_an_index_that_had_not_got_it_is_passed_over(code: int, tmp_path: Path, open_index: Open) -> None:
    with loopback(tmp_path, faults=(Fault(path="/simple/*", status=code),)) as first, loopback(tmp_path) as second:
        policies = (IndexPolicy(base=first.url, origin="x", passed_over=(403,)),)
        with open_index(first.url, second.url, policies=policies) as index:
            index.page("demo")
        with open_index(first.url, second.url, policies=policies, offline=True) as offline:
            assert offline.page("demo").files("1.0")[0].index == second.url
            assert [answer.status for answer in offline.answers()] == [code, 200]
            assert all(Path(answer.entry or "").is_file() for answer in offline.answers())
        if code == 403:         # as the settings are now, it would not be passed over
            with pytest.raises(NotAllowedOffline, match=f"of demo on {first.url}"):
                open_index(first.url, second.url, offline=True).page("demo")


@pytest.mark.parametrize("then", [
    ok(page_json("demo"), headers=("Cache-Control: no-store",)), status("404 Not Found", "Cache-Control: no-store"),
    ok(page_json("demo", {"filename": WHEEL, "url": f"{WHEEL}?X-Amz-Signature=1", "hashes": {}})),
], ids=["page", "none", "signed"])
def test_offline_that_an_index_had_it_not_holds_no_longer_than_it_says(
    then: bytes, tmp_path: Path, open_index: Open
) -> None:
    """Later it has the project, and what it says then is not kept."""
    with RawServer(lambda _: status("404 Not Found")) as first, loopback(tmp_path) as second:
        with open_index(first.url, second.url) as index:
            index.page("demo")
        first.reply = lambda _: then
        with open_index(first.url, second.url) as index:
            index.page("demo")
        with pytest.raises(NotAllowedOffline, match=f"of demo on {first.url}"):
            open_index(first.url, second.url, offline=True).page("demo")


def test_a_project_that_came_or_went_is_kept_as_it_is_now(tmp_path: Path, open_index: Open) -> None:
    there = ok(page_json("demo", {"filename": WHEEL, "url": WHEEL, "hashes": {}}))
    with RawServer(lambda _: there) as server:
        for answer in (there, status("404 Not Found"), there):
            server.reply = lambda _, answer=answer: answer      # type: ignore[misc]
            with open_index(server.url) as index, suppress(NoSuchProject):
                index.page("demo")
            with open_index(server.url, offline=True) as offline:
                if answer == there:
                    assert offline.page("demo").version_strings() == ("1.0",)
                else:
                    with pytest.raises(NoSuchProject):
                        offline.page("demo")


def test_what_signs_the_address_that_a_page_leads_to_is_kept_nowhere(tmp_path: Path, open_index: Open) -> None:
    """Indexes in front of an object store redirect each page to a signed address of it."""
    page = ok(page_json("demo", {"filename": WHEEL, "url": f"../../files/{WHEEL}", "hashes": {}}))
    with RawServer(lambda _: page) as store, RawServer(
            lambda _: status("302 Found", f"Location: {store.url}/a/b/c?X-Amz-Signature=S3cr3t")) as server:
        with open_index(server.url) as index:
            online = index.page("demo").files("1.0")
            assert [answer.final for answer in index.answers()] == [f"{store.url}/a/b/c"]
        files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
        assert files
        assert not [path for path in files if b"S3cr3t" in path.read_bytes()]
        assert online[0].url == f"{store.url}/files/{WHEEL}"
        assert open_index(server.url, offline=True).page("demo").files("1.0") == online


def test_the_cache_serves_another_run_only_with_sound_entries(tmp_path: Path, open_index: Open) -> None:
    with loopback(tmp_path, cache_headers=True) as server:
        with open_index(server.url) as index:
            index.page("demo")
        for path in (tmp_path / "cache").rglob("*"):
            if path.is_file():
                path.write_bytes(path.read_bytes()[:-20])
        assert set(open_index(server.url).page("demo").version_strings()) == {"1.0", "2.0"}
        assert len(pages_asked(server)) == 2


@pytest.mark.parametrize(("fault", "kind", "text"), [
    (Fault(path="/simple/demo/", cut=40), IndexUnreachable, "still to come"),
    (Fault(path="/simple/demo/", body=lambda body: body[:-5]), BadPage, "cut short"),
    (Fault(path="/simple/demo/", body=lambda body: body.replace(b'"demo-1.0', b'"../demo-1.0')), BadPage, "impossible"),
    (Fault(path="/simple/demo/", body=lambda body: b"<html>login</html>"), BadPage, "no valid JSON"),
    (Fault(path="*.metadata", body=lambda body: body.replace(b"base", b"evil")), HashMismatch, "sha256"),
])
def test_bad_answers_are_one_clear_error(
    fault: Fault, kind: type[Exception], text: str, tmp_path: Path, open_index: Open,
) -> None:
    with loopback(tmp_path, metadata=ADVERTISED, faults=(fault,)) as server:
        index = open_index(server.url)
        with pytest.raises(kind, match=text) as error:
            index.metadata(index.page("demo").files("1.0")[0])
        assert "demo" in str(error.value)
        index.close()
    assert not list((tmp_path / "cache").rglob("*/*/.*"))


def test_a_bad_page_is_not_kept(tmp_path: Path, open_index: Open) -> None:
    once = Fault(path="*", times=1, body=lambda body: body[:-5])
    with loopback(tmp_path, cache_headers=True, faults=(once,)) as server:
        with pytest.raises(BadPage):
            open_index(server.url).page("demo")
        assert open_index(server.url).page("demo").version_strings()


def test_a_passing_rate_limit_is_waited_out(tmp_path: Path, open_index: Open) -> None:
    faults = (Fault(path="/simple/*", times=2, status=429, headers=(("Retry-After", "0"),)),)
    with loopback(tmp_path, faults=faults) as server:
        assert open_index(server.url, retries=2).page("demo").version_strings()


def test_watchers_hear_of_each_answer_and_can_ask_for_more(tmp_path: Path, open_index: Open) -> None:
    with loopback(tmp_path, metadata=ADVERTISED) as server:
        index = open_index(server.url)

        def on_page(page: Page) -> None:
            index.prefetch_metadata(tuple(file for text in page.version_strings() for file in page.files(text)))

        def on_metadata(file: IndexFile, found: CoreMetadata) -> None:
            heard.append(file.filename)
            index.prefetch_pages(tuple(line.partition(">")[0] for line in found.requires_dist))

        heard: list[str] = []
        index.watch(on_page=on_page, on_metadata=on_metadata)
        index.prefetch_pages(("demo",))
        while len(heard) < 3:
            threading.Event().wait(0.01)
        assert sorted(heard) == ["base-1.5-py3-none-any.whl", WHEEL, "demo-2.0-py3-none-any.whl"]
        assert index.page_ready("base")
        assert not index.page_ready("other")
        asked = len(server.requests)
        assert index.metadata_ready(index.page("base").files("1.5")[0])
        index.metadata(index.page("base").files("1.5")[0])
        assert len(server.requests) == asked


def test_a_watcher_that_comes_late_hears_of_pages_that_are_there(tmp_path: Path, open_index: Open) -> None:
    with loopback(tmp_path) as server:
        index = open_index(server.url)
        index.page("demo")
        with pytest.raises(RequestFailed):
            index.page("missing")
        heard: list[str] = []
        index.watch(on_page=lambda page: heard.append(page.name))
        assert heard == ["demo"]


def test_a_defect_of_a_watcher_is_not_swallowed(tmp_path: Path, open_index: Open) -> None:
    def broken(page: Page) -> None:
        raise ZeroDivisionError

    with loopback(tmp_path) as server:
        index = open_index(server.url)
        index.watch(on_page=broken)
        with pytest.raises(ZeroDivisionError):
            index.page("demo")


def test_more_is_wanted_than_there_are_threads(tmp_path: Path, open_index: Open) -> None:
    """Metadata that waits for a second request of its own must not wait for a thread."""
    names = [f"p{number}" for number in range(20)]
    projects = {name: {f"{name}-1.0-py3-none-any.whl": make_wheel(f"{name}-1.0-py3-none-any.whl")} for name in names}
    with loopback(tmp_path, metadata=ABSENT, projects=projects) as server:
        index = open_index(server.url, workers=2)
        index.prefetch_pages(tuple(names))
        files = [index.page(name).files("1.0")[0] for name in names]
        index.prefetch_metadata(tuple(files))
        assert [index.metadata(file).name for file in files] == names


def test_progress_is_told(tmp_path: Path, open_index: Open) -> None:
    told: list[tuple[int, int]] = []
    with loopback(tmp_path) as server:
        index = open_index(server.url, progress=lambda done, asked: told.append((done, asked)))
        index.page("demo")
        index.page("base")
    assert (2, 2) in told
    assert all(done <= asked for done, asked in told)


def test_close_ends_waiting_and_later_calls(tmp_path: Path, open_index: Open) -> None:
    hold = threading.Event()

    def slow(head: str) -> Iterator[bytes]:
        hold.wait(20)
        yield b""

    with RawServer(slow) as server:
        index = open_index(server.url, workers=1, timeout=60.0)
        index.prefetch_pages(("a", "b", "c"))
        while not server.heads:
            threading.Event().wait(0.01)
        index.close()
        for name in ("a", "b", "c"):
            with pytest.raises(Closed):
                index.page(name)
        hold.set()


def test_a_login_is_used_and_shown_nowhere(tmp_path: Path, open_index: Open) -> None:
    def guarded(head: str) -> bytes:
        if header_of(head, "authorization") is None:
            return status("401 Login")
        if path_of(head).endswith("/demo/"):
            return ok(page_json("demo", {"filename": WHEEL, "url": f"http://u:s3cret@127.0.0.1/{WHEEL}", "hashes": {}}))
        return status("404 No")

    with RawServer(guarded) as server:
        index = open_index(server.url.replace("http://", "http://me:s3cret@") + "/simple")
        (file,) = index.page("demo").files("1.0")
        assert (file.url, file.index) == (f"http://127.0.0.1/{WHEEL}", f"{server.url}/simple")
        with pytest.raises(NoSuchProject) as fault:
            index.page("none")
        assert "s3cret" not in f"{fault.value} {fault.value!r}"
        index.close()
    for path in (tmp_path / "cache").rglob("*"):
        assert path.is_dir() or b"me:s3cret" not in path.read_bytes()


@pytest.mark.recorded
@pytest.mark.parametrize("name", ["iniconfig", "pluggy"])
def test_real_answers_are_understood(
    name: str, index: ReplayServer, plain_index: ReplayServer, open_index: Open,
) -> None:
    """Pages and metadata of the live index, with metadata advertised and not."""
    found = []
    for server in (index, plain_index):
        client = open_index(server.url)
        page = client.page(name)
        file = next(file for text in page.version_strings() for file in page.files(text) if file.is_wheel)
        assert file.sha256 is not None
        found.append(client.metadata(file))
    assert [(record.name, record.requires_dist) for record in found] == [(name, found[0].requires_dist)] * 2
