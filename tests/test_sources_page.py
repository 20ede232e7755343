"""Project pages: what is read, what is passed over, what is refused."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.sources.errors import BadPage
from stackfix.sources.page import Page, parse_page
from stackfix.sources.page_html import tags
from stackfix.sources.page_json import find_entries
from tests.sources_servers import JSON, page_json

A, B, C = "a" * 64, "b" * 64, "c" * 64
URL = "https://index.example/simple/demo/"


def parse(content: bytes, kind: str = JSON, project: str = "demo") -> Page:
    return parse_page(content, kind, project=project, index="https://index.example/simple", url=URL)


def row(filename: str, **more: Any) -> dict[str, Any]:
    return {"filename": filename, "url": f"../../files/{filename}", "hashes": {"sha256": A}, **more}


def test_a_json_page_becomes_records() -> None:
    page = parse(page_json("Demo", row(
        "demo-1.0-py3-none-any.whl", size=7, yanked="broken", **{
            "requires-python": ">=3.8", "upload-time": "2024-01-01T00:00:00Z", "core-metadata": {"sha256": B},
        })))
    (file,) = page.files("1.0")
    assert (file.project, file.filename, file.version) == ("demo", "demo-1.0-py3-none-any.whl", "1.0")
    assert file.url == "https://index.example/files/demo-1.0-py3-none-any.whl"
    assert (file.sha256, file.size, file.yanked, file.core_metadata) == (A, 7, "broken", B)
    assert (file.requires_python, file.upload_time) == (">=3.8", "2024-01-01T00:00:00Z")
    assert file.index == "https://index.example/simple"


def test_files_are_grouped_by_the_version_in_their_names() -> None:
    names = ["my_demo-1.0-py3-none-any.whl", "My.Demo-1.0.tar.gz", "my-demo-2.0rc1.zip",
             "my_demo-1.0-1-py3-none-any.whl", "my_demo-3-py2.egg", "my-demo-1.0.exe",
             "my-demo-extra-4.0.tar.gz", "other-5.0-py3-none-any.whl",
             "my_demo-6+cu121-cp311-cp311-linux_x86_64.whl", "my_demo-7.whl", "my-demo-latest.tar.gz"]
    page = parse(page_json("my-demo", *map(row, names)), project="my-demo")
    found = {version: [file.filename for file in page.files(version)] for version in page.version_strings()}
    assert found == {"1.0": [names[0], names[1], names[3]], "2.0rc1": [names[2]], "6+cu121": [names[8]]}
    assert page.files("9") == ()


@pytest.mark.parametrize(("yanked", "expected"), [
    (False, None), (True, ""), ("why", "why"), ("", None), (None, None),
])
def test_yanked_has_three_forms(yanked: object, expected: str | None) -> None:
    assert parse(page_json("demo", row("demo-1.0-py3-none-any.whl", yanked=yanked))).files("1.0")[0].yanked == expected


@pytest.mark.parametrize(("key", "value", "expected"), [
    ("core-metadata", True, True), ("core-metadata", False, None), ("core-metadata", {}, None),
    ("core-metadata", {"md5": "x"}, True), ("dist-info-metadata", {"sha256": B}, B),
])
def test_metadata_is_advertised_in_several_forms(key: str, value: object, expected: object) -> None:
    assert parse(page_json("demo", row("demo-1.0-py3-none-any.whl", **{key: value}))).files("1.0")[0].core_metadata \
        == expected


def test_without_a_sha256_a_file_has_none() -> None:
    page = parse(page_json("demo", {"filename": "demo-1.0.tar.gz", "url": "x", "hashes": {"md5": "0"}}))
    assert page.files("1.0")[0].sha256 is None


@pytest.mark.parametrize("name", [
    "../demo-1.0.tar.gz", "demo-1.0-py3-none-any/../../x.whl", "demo-1.0-py3-none-..any.whl",
    "..\\demo-1.0-py3-none-any.whl", "demo-1.0-py3-none-\nany.whl", "demo-1.0-py3-none-any\x00.whl",
    "../../etc/cron.d/demo-1.0-py3-none-any.whl", "demo-1.0/../../x.tar.gz", "demo-1.0-py3-none-" + "a" * 500 + ".whl",
])
def test_file_names_that_are_paths_are_refused(name: str) -> None:
    with pytest.raises(BadPage, match="impossible name"):
        read_all(parse(page_json("demo", row(name))))


def read_all(page: Page) -> None:
    for version in page.version_strings():
        page.files(version)


@pytest.mark.parametrize("change", [
    {"url": "file:///etc/passwd"}, {"url": "ftp://x/y"}, {"url": None}, {"url": "http://[/"}, {"url": "http:///x"},
    {"hashes": {"sha256": "abc"}}, {"hashes": {"sha256": "g" * 64}}, {"hashes": "x"}, {"hashes": {"sha256": 1}},
    {"requires-python": 3}, {"upload-time": []}, {"core-metadata": {"sha256": "zz"}},
])
def test_a_file_is_checked_when_it_is_used(change: dict[str, Any]) -> None:
    good, bad = row("demo-1.0-py3-none-any.whl"), {**row("demo-2.0-py3-none-any.whl"), **change}
    page = parse(page_json("demo", good, bad))
    assert len(page.files("1.0")) == 1
    with pytest.raises(BadPage, match=r"page of demo on https://index\.example/simple: .*demo-2\.0-py3-none-any\.whl"):
        page.files("2.0")


def test_the_same_file_twice_needs_the_same_hash() -> None:
    name = "demo-1.0-py3-none-any.whl"
    assert len(parse(page_json("demo", row(name), row(name))).files("1.0")) == 1
    with pytest.raises(BadPage, match="twice, with different hashes"):
        parse(page_json("demo", row(name), row(name, hashes={"sha256": B}))).files("1.0")


@pytest.mark.parametrize(("content", "kind", "reason"), [
    (page_json("demo", row("demo-1.0.tar.gz"))[:-3], JSON, "no valid JSON, or was cut short"),
    (b"", JSON, "no valid JSON"), (b"\xff\xfe\x00", JSON, "no valid JSON"), (b"[" * 100_000, JSON, "no valid JSON"),
    (b"[]", JSON, "not the shape"), (b"{}", JSON, "not the shape"), (b'{"meta":{"api-version":"1.0"}}', JSON, "shape"),
    (page_json("demo", version="2.0"), JSON, "version '2.0'"),
    (page_json("other"), JSON, "is about 'other'"),
    (b'{"meta":{"api-version":"1.0"},"files":[1]}', JSON, "without a name"),
    (b'{"meta":{"api-version":"1.0"},"files":[{"filename":null}]}', JSON, "without a name"),
    (b'{"meta":{"api-version":"1.0"},"files":{}}', JSON, "not the shape"),
    (page_json("demo"), "text/plain", "type 'text/plain'"), (page_json("demo"), "", "no index page"),
    (b"just text", "text/html", "is no HTML"),
    (b'<meta name="pypi:repository-version" content="2.0"><a href="x">x</a>', "text/html", "version '2.0'"),
])
def test_what_is_no_index_page_is_refused(content: bytes, kind: str, reason: str) -> None:
    with pytest.raises(BadPage, match=reason) as fault:
        parse(content, kind)
    assert "page of demo on https://index.example/simple" in str(fault.value)


PAGE = f"""<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.1">
<!-- <a href="demo-9.tar.gz"> -->
<base href="https://files.example/root/"></head><body><a href="../">up</a>
<a href="demo-1.0-py3-none-any.whl#sha256={A}" data-requires-python="&gt;=3.8,&lt;4" data-yanked="old &amp; bad">x</a>
<A HREF='sub/demo-1.0.tar.gz#md5=0&amp;sha256={B}' data-yanked
   data-dist-info-metadata=true>y</A>
<a data-requires-python=">=3.9" data-core-metadata="sha256={C}" href="/abs/demo-1.0-1-py3-none-any.whl">z</a>
<a href="demo%2D2.0.zip">w</a></body></html>""".encode()


def test_an_html_page_becomes_the_same_records() -> None:
    page = parse(PAGE, "text/html; charset=UTF-8")
    one, two, three = page.files("1.0")
    assert (one.url, one.sha256) == ("https://files.example/root/demo-1.0-py3-none-any.whl", A)
    assert (one.requires_python, one.yanked, one.core_metadata) == (">=3.8,<4", "old & bad", None)
    assert (two.url, two.sha256) == ("https://files.example/root/sub/demo-1.0.tar.gz", B)
    assert (two.yanked, two.core_metadata) == ("", True)
    assert (three.url, three.sha256) == ("https://files.example/abs/demo-1.0-1-py3-none-any.whl", None)
    assert (three.requires_python, three.core_metadata) == (">=3.9", C)
    assert page.files("2.0")[0].filename == "demo-2.0.zip"
    assert set(page.version_strings()) == {"1.0", "2.0"}


def test_an_html_name_that_is_a_path_is_refused() -> None:
    with pytest.raises(BadPage, match="impossible name"):
        parse(b'<a href="https://x/%2E%2E%2Fdemo-1.0-py3-none-any.whl">x</a>', "text/html")


TRAPS = ('"filename":"x"', '{"filename": "demo-1.0.tar.gz"}', "}", "{", '"', "\\")
FIELDS = st.fixed_dictionaries({
    "filename": st.sampled_from(["demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz", "demo-2.0.zip", "demo-1.0{}.tar.gz"]),
    "url": st.just("x"), "hashes": st.dictionaries(st.sampled_from(["sha256", "md5"]), st.sampled_from([A, B])),
}, optional={
    "yanked": st.booleans() | st.text() | st.sampled_from(TRAPS),
    "core-metadata": st.booleans() | st.just({"sha256": A}), "size": st.integers(), "requires-python": st.text(),
})


@given(files=st.lists(FIELDS.flatmap(lambda file: st.permutations(list(file.items())).map(dict)), max_size=5),
       ascii_only=st.booleans(), compact=st.booleans(), last=st.booleans())
def test_the_search_finds_what_decoding_finds(
    files: list[dict[str, Any]], ascii_only: bool, compact: bool, last: bool,
) -> None:
    frame: dict[str, Any] = {"meta": {"api-version": "1.1"}, "name": "demo"}
    page = {**frame, "files": files} if last else {"files": files, **frame}
    text = json.dumps(page, ensure_ascii=ascii_only, separators=(",", ":") if compact else None)
    found = find_entries(text)
    if found is None:
        assert not files or text.count('"filename"') != len(files)
        return
    assert found[0] == {**page, "files": []}
    assert list(found[1].of(found[1].starts, None)) == files


@pytest.mark.parametrize("cut", range(1, 300, 7))
def test_a_page_that_was_cut_anywhere_is_noticed(cut: int) -> None:
    whole = page_json("demo", row("demo-1.0-py3-none-any.whl", **{"core-metadata": {"sha256": B}}), row("demo-2.0.zip"))
    with pytest.raises(BadPage, match="cut short"):
        parse(whole[:-cut])


def test_a_damaged_entry_is_an_error_about_that_file() -> None:
    rows = [row(f"demo-{number}.0.zip", mark=number) for number in (1, 2, 3)]
    page = parse(page_json("demo", *rows).replace(b'"mark": 2', b'"mark" 2'))
    assert [len(page.files(version)) for version in ("1.0", "3.0")] == [1, 1]
    with pytest.raises(BadPage, match=r"demo-2\.0\.zip' that is no valid JSON"):
        page.files("2.0")


@pytest.mark.parametrize("broken", [
    "<a " * 200_000, "<a href=" * 200_000, "<!--" * 200_000, '<a href="' * 200_001, "<a '\"" * 200_000, "<" * 800_000,
    "<a href='" + '<a href="' * 100_000, "<a" + " b=c" * 200_000 + ">", "<a" + ' "' * 200_000 + ">",
])
def test_broken_markup_of_any_kind_is_read_in_one_pass(broken: str) -> None:
    list(tags(broken))  # a quadratic reader would need minutes here


NAMES = st.sampled_from(["href", "data-yanked", "x"])


@given(st.lists(st.tuples(NAMES, st.text(min_size=1)), unique_by=lambda pair: pair[0]))
def test_attributes_survive_escaping(pairs: list[tuple[str, str]]) -> None:
    text = "<p><a " + " ".join(f'{name}="{html.escape(value)}"' for name, value in pairs) + " >"
    assert list(tags(text)) == [("a", {name: html.unescape(html.escape(value)) for name, value in pairs})]


KEYS = st.sampled_from(["filename", "url", "hashes", "sha256", "yanked", "core-metadata", "size"])
PLAIN = st.none() | st.booleans() | st.integers() | st.text()


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_any_json_is_a_page_or_a_clear_error(files: object) -> None:
    content = json.dumps({"meta": {"api-version": "1.0"}, "files": files}).encode()
    try:
        read_all(parse(content))
    except BadPage as fault:
        assert "page of demo" in str(fault)  # noqa: PT017  # the other way out is no error at all


@pytest.mark.parametrize("body", [
    b"<html><body><form action='/login'>Sign in</form></body></html>", b"<html></html>",
    b'<a href="https://h/other-1.0-py3-none-any.whl">other</a>', b'<a href="/demo/">demo</a>',
    b'<a href="demonstration-1.0.tar.gz">another project</a>', b"<a href='http://[/demo-1.0.tar.gz'>x</a>",
    b'<meta name="viewport" content="1.0"><a href="/demo-login.html">x</a>',
])
def test_html_that_lists_no_file_of_the_project_is_no_index_page(body: bytes) -> None:
    with pytest.raises(BadPage, match="is no index page: it lists no file of demo; a login page answers so"):
        parse(body, "text/html")


@pytest.mark.parametrize(("body", "kind"), [
    (b'<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.0"></head></html>', "text/html"),
    (b'<a href="demo-1.0-py2.7.egg">only an old kind</a>', "text/html"),
    (b'<a href="Demo-1.0.tar.bz2">only an old kind</a>', "text/html"),
    (b'{"meta": {"api-version": "1.0"}, "name": "demo", "files": []}', "application/vnd.pypi.simple.v1+json"),
])
def test_a_legal_page_without_usable_files_has_none(body: bytes, kind: str) -> None:
    assert parse(body, kind).version_strings() == ()


def test_files_left_out_by_name_are_not_read() -> None:
    wanted = "demo-1.0-py3-none-any.whl"
    broken = row("demo-1.0-cp311-cp311-win_amd64.whl", hashes={"sha256": "no hash"})
    page = parse(page_json("demo", row(wanted), broken))
    assert [file.filename for file in page.files_named("1.0", lambda name: name == wanted)] == [wanted]
    with pytest.raises(BadPage, match="no sha256"):
        page.files("1.0")
    with pytest.raises(BadPage, match="no sha256"):
        page.files_named("1.0", lambda name: True)
