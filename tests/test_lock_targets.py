"""`stackfix lock` for many targets in one run: each as it would be locked alone, and nothing asked twice for it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from stackfix.resolve.records import Target
from stackfix.resolve.target import TargetView
from tests.judges.lockfile import Entry, read_entries
from tests.judges.pages import Pages
from tests.judges.tags import files_of
from tests.judges.uv import UvJudge
from tests.replay.index import ADVERTISED
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.variant_locks import NOBODY, Locker, settle

pytestmark = pytest.mark.recorded

REQUIREMENTS = ("--format", "requirements")
PLACES = ("linux-64", "linux-64-cpu", "linux-aarch64-cpu", "win-64-cpu", "osx-arm64")
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")


def options(flag: str, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for value in values for word in (flag, value))


def body(path: Path) -> list[str]:
    """The lines of a requirements file below its header, who asks for what among them."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def entry(path: Path, name: str) -> Entry:
    return next(each for each in read_entries(path) if each.name == name)


def test_each_place_is_locked_as_it_would_be_alone(lock: Locker, tmp_path: Path) -> None:
    asked = ("--torch", "2.8", "--python", "3.11", "--no-flash-attn", "--with", "torchvision", "--with", "pandas")
    together = lock((*asked, *options("--platform", PLACES)), tmp_path / "all", NOBODY, formats=REQUIREMENTS)
    assert together.status == 0, together.said
    assert set(together.files) == {f"requirements-cp311-{place}.txt" for place in PLACES}
    for place in PLACES:
        alone = lock((*asked, "--platform", place), tmp_path / place, NOBODY, formats=REQUIREMENTS)
        assert alone.status == 0, alone.said
        assert body(together.folder / f"requirements-cp311-{place}.txt") == body(alone.requirements), place
    torch = {place: entry(together.folder / f"requirements-cp311-{place}.txt", "torch") for place in PLACES}
    assert [place for place in PLACES if torch[place].url is not None] == ["linux-64-cpu"]
    assert {torch[place].version for place in PLACES if place != "linux-64-cpu"} == {"2.8.0"}
    libraries = {place for place in PLACES
                 if "nvidia-" in (together.folder / f"requirements-cp311-{place}.txt").read_text(encoding="utf-8")}
    assert libraries == {"linux-64"}


def test_each_python_is_locked_as_it_would_be_alone(lock: Locker, tmp_path: Path) -> None:
    asked = ("--torch", "2.8", "--cuda", "12.8", "--no-flash-attn", "--with", "pandas")
    together = lock((*asked, *options("--python", PYTHONS)), tmp_path / "all", NOBODY, formats=REQUIREMENTS)
    assert together.status == 0, together.said
    for python in PYTHONS:
        alone = lock((*asked, "--python", python), tmp_path / python, NOBODY, formats=REQUIREMENTS)
        name = f"requirements-cp{python.replace('.', '')}-linux-64.txt"
        assert body(together.folder / name) == body(alone.requirements), python
    note = next(line for line in together.said.splitlines() if "of other versions on some targets" in line)
    assert re.search(r"\bnumpy 2\.0\.2 for Python 3\.9, ", note)


def test_nothing_is_asked_twice_however_many_targets_there_are(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    settle(monkeypatch)
    asked = ("--torch", "2.8", "--cuda", "cpu", "--no-flash-attn", "--with", "transformers")
    targets = (*options("--python", ("3.11", "3.12")), *options("--platform", ("linux-64", "win-64", "osx-arm64")))
    counts = {}
    for name, words in (("one", ("--python", "3.11", "--platform", "linux-64")), ("all", targets)):
        with ReplayServer(store, metadata=ADVERTISED, cache_headers=True) as server:
            fresh = Locker(index=server.url, cache=tmp_path / f"cache-{name}", capfd=capfd)
            done = fresh((*asked, *words), tmp_path / name, NOBODY, formats=REQUIREMENTS)
            assert done.status == 0, done.said
            paths = Counter(path for _, path, _ in server.requests)
        assert [path for path, count in paths.items() if count > 1] == []
        counts[name] = {kind: sum(1 for path in paths if path.endswith("/") is (kind == "pages"))
                        for kind in ("pages", "metadata")}
    assert counts["all"]["pages"] <= counts["one"]["pages"] + 1        # colorama, for Windows
    assert counts["all"]["metadata"] < 3 * counts["one"]["metadata"]     # of six targets


def test_a_label_of_the_cpu_is_plain_where_no_such_wheel_is(lock: Locker, tmp_path: Path) -> None:
    """No wheel with +cpu is for a Mac, nor, of that release, for aarch64: a lock of +cpu for all fits neither."""
    places = ("linux-64", "linux-aarch64", "osx-arm64")
    words = ("--with", "torch==2.4.1+cpu", "--python", "3.11", "--no-flash-attn", *options("--platform", places))
    done = lock(words, tmp_path, NOBODY, formats=REQUIREMENTS)
    assert done.status == 0, done.said
    found = {place: entry(tmp_path / f"requirements-cp311-{place}.txt", "torch") for place in places}
    assert str(found["linux-64"].url).endswith("/cpu/torch-2.4.1%2Bcpu-cp311-cp311-linux_x86_64.whl")
    assert [(found[place].url, found[place].version) for place in places[1:]] == [(None, "2.4.1")] * 2


def test_an_older_macos_has_the_wheels_that_it_takes(
    lock: Locker, tmp_path: Path, pages: Pages, index: ReplayServer, uv_cache: Path
) -> None:
    words = ("--torch", "2.8", "--python", "3.12", "--no-flash-attn", "--with", "scipy", "--platform", "osx-arm64")
    files = {}
    for macos in ("13.0", "14.0"):
        done = lock((*words, "--macos", macos), tmp_path / macos, NOBODY, formats=REQUIREMENTS)
        assert done.status == 0, done.said
        files[macos] = set(files_of(entry(done.requirements, "scipy"), pages))
        view = TargetView(Target(python="3.12", platform="osx-arm64", glibc="2.28", macos=macos))
        assert all(view.rank(file) for file in files[macos])
        judge = UvJudge(index_url=index.url, cache=uv_cache, python="3.12", platform="osx-arm64", macos=macos)
        assert judge.dry_run(done.requirements, tmp_path / macos).status == 0
    assert files["13.0"] < files["14.0"]
    assert {file for file in files["14.0"] if "macosx_14_0_arm64" in file} == files["14.0"] - files["13.0"]


def test_the_document_says_what_each_target_is(lock: Locker, tmp_path: Path) -> None:
    words = ("--torch", "2.8", "--cuda", "12.8", "--python", "3.11", "--no-flash-attn", "--json", "--macos", "13",
             *options("--platform", ("linux-64", "linux-64-cpu", "win-64", "osx-arm64")))
    done = lock(words, tmp_path, NOBODY, formats=REQUIREMENTS)
    document = json.loads(done.said)
    assert document["stack"]["platforms"] == ["linux-64", "linux-64-cpu", "osx-arm64", "win-64"]
    told = [{key: value for key, value in target.items() if key != "packages"} for target in document["targets"]]
    assert told == [
        {"python": "3.11", "platform": "linux-64", "glibc": "2.28", "cuda": "12.8"},
        {"python": "3.11", "platform": "linux-64", "variant": "cpu", "glibc": "2.28", "cuda": "cpu"},
        {"python": "3.11", "platform": "osx-arm64", "macos": "13.0", "cuda": "cpu"},
        {"python": "3.11", "platform": "win-64", "cuda": "12.8"},
    ]
    assert any("on Windows CUDA 12.8 needs driver" in note for note in document["notes"])


def test_the_command_in_the_header_gives_the_same_files(lock: Locker, tmp_path: Path) -> None:
    words = ("--torch", "2.8", "--python", "3.11", "--no-flash-attn", "--macos", "13",
             *options("--platform", ("osx-arm64", "linux-64-cpu")))
    first = lock(words, tmp_path / "first", NOBODY, formats=REQUIREMENTS)
    text = (tmp_path / "first" / "requirements-cp311-osx-arm64.txt").read_text(encoding="utf-8")
    command = re.search(r"stackfix lock (.*)", text)
    assert command is not None
    assert "--platform linux-64-cpu --platform osx-arm64 --macos 13.0" in command[1]
    assert lock(command[1].split(), tmp_path / "second", NOBODY, formats=()).files == first.files


def test_places_without_channels_are_left_out_of_the_conda_files_and_named(lock: Locker, tmp_path: Path) -> None:
    asked = ("--torch", "2.3", "--python", "3.11", "--no-flash-attn")
    both = ("--platform", "linux-64", "--platform", "win-64-cpu")
    alone = lock((*asked, "--platform", "linux-64"), tmp_path / "linux", NOBODY, formats=("--format", "conda-lock"))
    of_channels = lock((*asked, *both), tmp_path / "channels", NOBODY, formats=("--format", "conda-lock"))
    assert (alone.status, of_channels.status) == (0, 0), of_channels.said
    assert of_channels.files == alone.files     # for channels alone nothing else is locked, or stands in the way
    assert "no conda file has win-64-cpu: stackfix has no records of channels for it" in of_channels.said
    every = lock((*asked, *both), tmp_path / "every", NOBODY, formats=())
    assert set(every.files) == {"requirements-cp311-linux-64.txt", "requirements-cp311-win-64-cpu.txt", "pylock.toml",
                                "conda-lock.yml"}
    assert "no conda file has win-64-cpu" in every.said
    mac = lock((*asked, "--platform", "osx-arm64"), tmp_path / "mac", NOBODY, formats=())
    assert set(mac.files) == {"requirements.txt", "pylock.toml"}
    assert "no conda file has osx-arm64" in mac.said
    refused = lock((*asked, "--platform", "osx-arm64"), tmp_path / "no", NOBODY, formats=("--format", "pixi"))
    assert (refused.status, refused.files) == (2, {})
    assert "--format pixi: no records of channels are for osx-arm64" in refused.said
