"""What an environment holds is read from its records, whatever state they are in."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from stackfix.sync.changes import describe, is_met
from stackfix.sync.installed import read_installed
from stackfix.sync.records import Change, Installed
from stackfix.write.records import Entry


def make(site: Path, folder: str, **files: str) -> None:
    (site / folder).mkdir(parents=True)
    for name, text in files.items():
        (site / folder / name.replace("_json", "_url.json")).write_text(text)


def test_this_environment_is_read_as_importlib_reads_it() -> None:
    sites = [path for path in sys.path if path.endswith("site-packages")]
    known = {canonicalize_name(found.metadata["Name"]): found.version for found in distributions(path=sites)}
    assert {name: one.version for name, one in read_installed(sites).items()} == known
    assert known


def test_records_in_any_state(tmp_path: Path) -> None:
    make(tmp_path, "Flash_Attn-2.5.8.dist-info", METADATA="Metadata-Version: 2.1\nName: Flash_Attn\nVersion: 2.5.8\n\n"
         "Version: 9\n", direct_json='{"url": "https://h/f.whl", "archive_info": {}}')
    make(tmp_path, "bare-1.0.dist-info")
    make(tmp_path, "old-0.1-py3.11.egg-info", **{"PKG-INFO": "Name: old\nVersion: 0.1\n"})
    (tmp_path / "file-3-py3.11.egg-info").write_text("Name: file\nVersion: 3\n")
    make(tmp_path, "broken-1.0.dist-info", METADATA="\x00\xff", direct_json="[" * 100_000)
    make(tmp_path, ".dist-info")
    make(tmp_path, "~umpy-1.0.dist-info.tmp")
    assert read_installed([str(tmp_path), str(tmp_path / "missing")]) == {
        "flash-attn": Installed(name="flash-attn", version="2.5.8", url="https://h/f.whl"),
        "bare": Installed(name="bare", version="1.0", url=None), "old": Installed(name="old", version="0.1", url=None),
        "file": Installed(name="file", version="3", url=None),
        "broken": Installed(name="broken", version="1.0", url=None),
    }


WHEEL = "https://h/flash_attn-2.5.8%2Bcu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"


@pytest.mark.parametrize(("version", "url", "found", "source", "by_pip", "by_uv"), [
    ("2.3.1", None, "2.3.1", None, True, True),
    ("2.3.1", None, "2.3.1+cu121", None, True, True),
    ("2.3.1", None, "2.3.2", None, False, False),
    ("2.3.1", None, "no version", None, False, False),
    ("2.3.1", None, None, None, False, False),
    (None, WHEEL, "2.5.8", WHEEL, True, True),
    (None, WHEEL, "2.5.8", None, True, False),
    (None, WHEEL, "2.5.7", WHEEL.replace("2.5.8", "2.5.7"), False, False),
    (None, "https://h/f.tar.gz", "1.0", None, False, False),
])
def test_what_is_kept(
    version: str | None, url: str | None, found: str | None, source: str | None, *, by_pip: bool, by_uv: bool,
) -> None:
    entry = Entry(name="x", version=version, url=url, sha256=("0" * 64,))
    installed = Installed(name="x", version=found, url=source)
    assert is_met(entry, installed, "pip") is by_pip
    assert is_met(entry, installed, "uv") is by_uv


def test_a_change_in_words() -> None:
    change = Change(action="change", name="numpy", installed="2.0.0", locked="1.26.4", build=False)
    assert describe(change) == "change numpy 2.0.0 -> 1.26.4"
    assert describe(Change(action="keep", name="a", installed="1+local", locked="1", build=True)) == "keep a 1+local"
