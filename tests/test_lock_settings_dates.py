"""Upload dates on replayed pages of the live index: in JSON, which states them, and in HTML, which does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judges.lockfile import read_entries
from tests.replay.pages import Page
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.variant_locks import Locker, settle

pytestmark = pytest.mark.recorded

ASKED = ("--torch", "2.3", "--python", "3.11", "--no-flash-attn", "--exclude-newer", "2024-06-20")
FORMATS = ("--format", "requirements")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settle(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "cache"


def uploads(store: Store, project: str) -> dict[str, str]:
    """file -> when it was uploaded, as the recorded page states it."""
    page = store.page(project)
    assert page is not None
    return {row["filename"]: row["upload-time"] for row in page.content["files"]}


def test_every_file_of_a_lock_is_old_enough(
    store: Store, index: ReplayServer, cache: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str],
) -> None:
    lock = Locker(index=index.url, cache=cache, capfd=capfd)
    found = lock(ASKED, tmp_path / "lock", None, formats=FORMATS)
    assert found.status == 0, found.said
    entries = read_entries(found.requirements)
    newest: dict[str, str] = {}
    for entry in entries:
        page = store.page(entry.name)
        assert page is not None
        own = [row for row in page.content["files"] if row["hashes"]["sha256"] in entry.hashes]
        assert own, entry.name
        newest[entry.name] = max(row["upload-time"] for row in own)
    assert max(newest.values()) < "2024-06-20"
    later = [name for name in newest if any(time >= "2024-06-20" for time in uploads(store, name).values())]
    assert len(later) > 5, "else the date decided nothing"
    assert "only files uploaded before" not in found.said, "the option needs no note"


def test_the_same_pages_in_html_are_refused(
    store: Store, cache: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str],
) -> None:
    with ReplayServer(store, html_only=True) as index:
        found = Locker(index=index.url, cache=cache, capfd=capfd)(ASKED, tmp_path / "lock", None, formats=FORMATS)
    assert found.status == 1, found.said
    assert f"{index.url} does not say when files of torch were uploaded" in found.said
    assert list((tmp_path / "lock").iterdir()) == []


def test_a_file_whose_time_is_taken_away_is_left_out(
    store: Store, index: ReplayServer, cache: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str],
) -> None:
    plain = Locker(index=index.url, cache=cache, capfd=capfd)(ASKED, tmp_path / "plain", None, formats=FORMATS)
    [before] = [entry for entry in read_entries(plain.requirements) if entry.name == "filelock"]

    def without_times(page: Page) -> None:
        for row in page["files"]:
            if f"-{before.version}" in row["filename"]:
                row.pop("upload-time", None)

    with ReplayServer(store, edits={"filelock": (without_times,)}) as edited:
        found = Locker(index=edited.url, cache=cache, capfd=capfd)(ASKED, tmp_path / "lock", None, formats=FORMATS)
    assert found.status == 0, found.said
    [after] = [entry for entry in read_entries(found.requirements) if entry.name == "filelock"]
    assert after.version != before.version
    assert f"filelock {after.version} was taken: {before.version} left out, since the index does not say" in found.said
