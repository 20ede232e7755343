"""Texts of pages that were let go come back as they were."""

from __future__ import annotations

import gzip
import json

import pytest

from stackfix.sources import page_text
from stackfix.sources.page import parse_page
from stackfix.sources.page_text import Held, PageText

TEXTS = [letter * size for letter, size in (("a", 100), ("é", 60), ("c", 40))]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    made = Held(150)
    monkeypatch.setattr(page_text, "HELD", made)
    return made


@pytest.mark.usefixtures("held")
def test_what_was_let_go_is_unpacked_again() -> None:
    pages = [PageText(text, gzip.compress(text.encode())) for text in TEXTS]
    dropped = [page for page in pages if page._text is None]  # noqa: SLF001 - what is in memory is what this is about
    assert dropped == pages[:1], "the one that was not used for longest"
    for _ in range(3):
        assert [page.get() for page in pages] == TEXTS


@pytest.mark.usefixtures("held")
def test_a_text_that_did_not_travel_packed_stays() -> None:
    plain = [PageText(text, None) for text in TEXTS]
    assert [page._text for page in plain] == TEXTS  # noqa: SLF001
    assert [page.get() for page in plain] == TEXTS


@pytest.mark.usefixtures("held")
def test_files_of_a_page_whose_text_was_let_go() -> None:
    def page(project: str) -> bytes:
        names = {number: f"{project}-{number}.0-py3-none-any.whl" for number in range(1, 30)}
        files = [{"filename": name, "url": f"../{name}", "hashes": {"sha256": f"{number:064x}"}}
                 for number, name in names.items()]
        return json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": files}).encode()

    pages = {project: parse_page(page(project), "application/json", project=project, index="https://x.example",
                                 url=f"https://x.example/{project}/", packed=gzip.compress(page(project)))
             for project in ("one", "two", "three")}
    for number in (1, 15, 29):
        for project, parsed in pages.items():
            (file,) = parsed.files(f"{number}.0")
            assert (file.filename, file.sha256) == (f"{project}-{number}.0-py3-none-any.whl", f"{number:064x}")
