"""Wheels through the real pip, from a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stackfix.almanac.fetch import WrongWheel, chosen, download, no_answer, resolve, tag_options
from stackfix.almanac.records import ManifestWheel
from stackfix.errors import BadInput, Unreachable
from tests.almanac_wheels import only_from, wheel


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ManifestWheel]:
    """Three files of one release; pip prefers the last."""
    only_from(tmp_path / "index", monkeypatch)
    return [wheel(tmp_path / "index", "some-thing", "2.10.0", {"x.txt": str(build).encode()}, build=build)
            for build in (None, "1", "3")]


def test_the_file_of_the_manifest_comes_whatever_pip_prefers(builds: list[ManifestWheel], tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    found = download(builds[1], tmp_path / "here")
    assert found == tmp_path / "here" / "some_thing-2.10.0-1-cp311-cp311-manylinux1_x86_64.whl"
    assert found.read_bytes() == (tmp_path / "index" / builds[1].file).read_bytes()
    assert list((tmp_path / "here").iterdir()) == [found]


def test_another_hash_stops_everything_and_keeps_nothing(builds: list[ManifestWheel], tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    wrong = replace(builds[2], sha256="0" * 64)
    with pytest.raises(WrongWheel) as caught:
        download(wrong, tmp_path / "here")
    assert caught.value.what() == (
        f"{wrong.file}: its sha256 is {builds[2].sha256}, not {'0' * 64} as the manifest says")
    assert list((tmp_path / "here").iterdir()) == []


def test_another_file_of_this_hash_is_not_taken(builds: list[ManifestWheel], tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with pytest.raises(WrongWheel, match=rf"pip gives {builds[0].file} for it"):
        download(replace(builds[0], file=builds[1].file), tmp_path / "here")
    assert list((tmp_path / "here").iterdir()) == []


def test_a_release_that_is_not_there(builds: list[ManifestWheel], tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    gone = replace(builds[0], version="2.11.0", file=builds[0].file.replace("2.10.0", "2.11.0"))
    with pytest.raises(Unreachable, match=r"pip does not get it: .*some-thing==2\.11\.0") as caught:
        download(gone, tmp_path / "here")
    assert "pip config list" in str(caught.value.next_step())
    assert list((tmp_path / "here").iterdir()) == []


def test_a_requirement_gives_the_row_of_what_pip_would_install(builds: list[ManifestWheel]) -> None:
    assert resolve("some_thing==2.10") == builds[2]


def test_a_wheel_for_another_python_is_asked_for_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_from(tmp_path / "index", monkeypatch)
    old = wheel(tmp_path / "index", "some", "1.0", {}, tags="cp38-cp38-manylinux_2_17_aarch64.manylinux2014_aarch64")
    with pytest.raises(Unreachable):
        resolve("some")
    assert resolve("some", python="3.8", machine="aarch64") == old
    assert download(old, tmp_path).name == old.file


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("a-1-cp311-cp311-manylinux1_x86_64.whl", "3.11 cp311 manylinux1_x86_64"),
        ("a-1-3-cp310-cp310-manylinux_2_28_x86_64.whl", "3.10 cp310 manylinux_2_28_x86_64"),
        ("a-1-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
         "3.11 none manylinux2014_x86_64 manylinux_2_17_x86_64"),
        ("a-1-cp38-abi3-linux_x86_64.whl", "3.11 abi3 linux_x86_64"),
        ("a-1-py2.py3-none-any.whl", "3.11 none"),
    ],
)
def test_what_pip_is_told_of_a_file(file: str, words: str) -> None:
    options = tag_options(file)
    assert [each for each in options[2:] if not each.startswith("--")] == words.split()
    assert options[:2] == ["--implementation", "cp"]


@pytest.mark.parametrize("file", ["a-1.tar.gz", "a-1-cp311-none.whl", "a-1-1-2-cp311-cp311-any.whl", ""])
def test_what_is_no_wheel_is_not_asked_for(file: str) -> None:
    with pytest.raises(BadInput, match="no name of a wheel"):
        tag_options(file)


def item(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "Some.Thing", "version": "1.0"}, "download_info": {
        "url": "https://packages.example/x/some_thing-1.0-py3-none-any.whl#sha256=0",
        "archive_info": {"hashes": {"sha256": "0" * 64}}}, **more}


def test_an_installation_report_is_read() -> None:
    assert chosen("some.thing", {"install": [item()]}) == ManifestWheel(
        package="some-thing", version="1.0", file="some_thing-1.0-py3-none-any.whl", sha256="0" * 64)


@pytest.mark.parametrize(
    "report",
    [{}, {"install": []}, {"install": [item(), item()]}, {"install": [item(download_info={"url": "x"})]},
     {"install": [item(metadata={"name": "other", "version": "1.0"})]}, {"install": None}],
)
def test_a_report_that_names_no_single_file_with_a_hash(report: dict[str, Any]) -> None:
    with pytest.raises(Unreachable, match=r"^some"):
        chosen("some", report)


def test_no_credentials_of_an_index_are_shown() -> None:
    told = "WARNING: x\nERROR: Could not find a version (from https://user:secret@packages.example/simple)\n"
    error = no_answer("some", told)
    assert "packages.example" in error.what()
    assert "secret" not in error.what()
    assert "--store" in str(no_answer("some", "ERROR: [Errno 28] No space left on device").next_step())
