"""`stackfix sync` of conda lockfiles: real names, versions and dependencies of a real stack, from loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stackfix.sync.conda_mark import MARK
from tests.cli_world import Say, settle
from tests.conda_packages import NAME, SUBDIR, content_of
from tests.conda_sync_world import Files, Stack, archive, stack, write
from tests.lock_samples import Loopback, index_file, indexed, loopback, package

SITE = f"lib/{NAME}/site-packages"
LOCKS = {"conda-lock": "conda-lock.yml", "pixi": "pixi.lock", "explicit": f"conda-{SUBDIR}.lock"}
# Syncs, and kills itself without warning once some packages are linked: a poll of 0.1 ms in a process of 77 packages
KILLED = """
import os, signal, sys, threading
from pathlib import Path
def watch():
    while len(list(Path("env/conda-meta").glob("*.json"))) < 5:
        pass
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=watch, daemon=True).start()
from stackfix.cli.app import run
sys.exit(run(["sync", "conda-lock.yml", "--prefix", "env"]))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, stackfix_cache: Path) -> Iterator[Stack]:
    with stack(tmp_path_factory.mktemp("stack"), stackfix_cache) as found:
        yield found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("wheels")) as servers:
        yield servers


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Stack) -> Path:
    """An empty working directory with the lock of the whole stack, and no cache."""
    settle(monkeypatch, tmp_path, "http://127.0.0.1:9/simple")
    made.write(tmp_path, *LOCKS)
    return tmp_path


def records(prefix: Path) -> dict[str, dict[str, Any]]:
    """conda-meta by name."""
    found = [json.loads(path.read_bytes()) for path in (prefix / "conda-meta").glob("*.json")]
    return {one["name"]: one for one in found}


def assert_linked(prefix: Path, made: Stack) -> None:
    """The prefix holds what the archives hold, and its records say so."""
    linked = records(prefix)
    assert linked.keys() == {record.name for record in made.target.records}
    for record in made.target.records:
        stated = linked[record.name]
        for key in ("version", "build", "build_number", "subdir", "url", "md5", "sha256"):
            assert stated[key] == getattr(record, key), (record.name, key)
        assert stated["fn"] == record.file_name
        assert sorted(stated["depends"]) == sorted(record.depends), record.name
        files, links = made.files[record.name]
        placed = {path.replace("site-packages", SITE, 1) if record.noarch else path: body
                  for path, body in files.items()}
        assert {*placed, *links} <= set(stated["files"]), record.name
        for path, body in placed.items():
            assert (prefix / path).read_bytes() == content_of(body)[0], path
        assert all(str((prefix / path).readlink()) == target for path, target in links.items())


@pytest.mark.parametrize("kind", LOCKS)
def test_a_new_prefix_holds_what_the_archives_hold(kind: str, here: Path, made: Stack, say: Say) -> None:
    said = say("sync", LOCKS[kind], "--prefix", "env", "--dry-run")
    assert said.status == 1, said
    assert f"install pytorch {made.record('pytorch').version} {made.record('pytorch').build}\n" in said.out
    assert not Path("env").exists()
    said = say("sync", LOCKS[kind], "--prefix", "env")
    assert said.status == 0, said
    assert_linked(here / "env", made)
    assert not (here / "env" / "conda-meta" / MARK).exists()
    said = say("sync", LOCKS[kind], "--prefix", "env", "--dry-run")
    assert (said.status, {line.partition(" ")[0] for line in said.out.splitlines()}) == (0, {"keep"}), said
    if kind == "conda-lock":
        checked = say("check", "--prefix", "env", "--json")
        assert (checked.status, checked.json["findings"]) == (0, []), checked


def test_a_corrupted_package_is_refused_however_often(here: Path, made: Stack, say: Say) -> None:
    record = made.record("libnvjitlink")
    path = f"/{SUBDIR}/{record.file_name}"
    whole = made.shelf.files[path]
    files, links = made.files["libnvjitlink"]
    made.shelf.files[path] = archive(record, {**files, "share/more": b"more"}, links)
    try:
        for lock in (*LOCKS.values(), LOCKS["conda-lock"]):
            said = say("sync", lock, "--prefix", "env")
            assert said.status == 3, said
            assert f"libnvjitlink ({record.file_name}): has " in said.err
            assert not Path("env").exists()
    finally:
        made.shelf.files[path] = whole
    assert say("sync", "conda-lock.yml", "--prefix", "env").status == 0
    assert_linked(here / "env", made)


def test_a_package_that_was_changed_in_the_cache_is_fetched_anew(here: Path, made: Stack, say: Say) -> None:
    """As an edit in one environment changes it, which shares its files by hard links."""
    assert say("sync", "conda-lock.yml", "--prefix", "env").status == 0
    about = here / "env" / "share" / "libuv" / "about.txt"
    with about.open("r+b") as stream:
        stream.write(b"LIBUV")
    [cached] = (here / ".cache" / "conda-packages-v1").glob("libuv-*/share/libuv/about.txt")
    assert cached.read_bytes() == b"LIBUV"
    asked = len(made.shelf.asked)
    assert say("sync", "conda-lock.yml", "--prefix", "other").status == 0
    assert_linked(here / "other", made)
    assert made.shelf.asked[asked:] == [f"/chan/{SUBDIR}/{made.record('libuv').file_name}"]


def test_an_interrupted_sync_goes_on(here: Path, made: Stack, say: Say) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=here, check=False, capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done
    assert (here / "env" / "conda-meta" / MARK).is_file(), "it was over before it was killed"
    # what a killed process can leave of a record: nothing of it is believed
    one = next((here / "env" / "conda-meta").glob("*.json"))
    one.write_bytes(one.read_bytes()[:40])
    said = say("sync", "conda-lock.yml", "--prefix", "env")
    assert said.status == 0, said
    assert "an earlier sync was interrupted" in said.err
    assert_linked(here / "env", made)
    assert say("check", "--prefix", "env", "-q").status == 0
    assert not (here / "env" / "conda-meta" / MARK).exists()


def test_after_an_interruption_another_lock_leaves_nothing_of_the_first(here: Path, made: Stack, say: Say) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=here, check=False, capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done
    about = here / "env" / "share"
    half = {path.parent.name for path in about.glob("*/about.txt")} - {"python"}
    assert half, "it was killed before it linked anything"
    kept = tuple(record for record in made.target.records if record.name not in half)
    write(here, replace(made.target, records=kept), "conda-lock")
    said = say("sync", "conda-lock.yml", "--prefix", "env")
    assert said.status == 0, said
    assert {path.parent.name for path in about.glob("*/about.txt")} == {record.name for record in kept} - {"python"}
    owned = {path for record in records(here / "env").values() for path in record["files"]}
    there = {str(path.relative_to(here / "env")) for path in (here / "env").rglob("*")
             if not path.is_dir() or path.is_symlink()}
    assert {path for path in there - owned if "__pycache__" not in path and not path.startswith("conda-meta/")} <= {
        "CACHEDIR.TAG"}


def test_the_users_login_is_used_and_never_told(
    here: Path, made: Stack, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    condarc = here / "condarc.yml"
    condarc.write_text(f"channels:\n  - {made.shelf.url.replace('://', '://user:hidden@')}\n", encoding="utf-8")
    made.shelf.login = "user:hidden"
    try:
        refused = say("sync", "conda-lock.yml", "--prefix", "env")
        assert refused.status == 3, refused
        assert "401" in refused.err
        monkeypatch.setenv("CONDARC", str(condarc))
        said = say("sync", "conda-lock.yml", "--prefix", "env", "--json")
        assert said.status == 0, said
    finally:
        made.shelf.login = None
    assert_linked(here / "env", made)
    assert "hidden" not in said.out + said.err
    told = [path for path in (here / "env" / "conda-meta").iterdir() if b"hidden" in path.read_bytes()]
    assert told == []


def test_an_existing_prefix_is_brought_to_another_lock(here: Path, made: Stack, say: Say) -> None:
    assert say("sync", "conda-lock.yml", "--prefix", "env").status == 0
    before = made.record("libuv")
    newer = replace(before, version="9.9", depends=("libgcc >=14",))
    record = made.shelf.put(newer, archive(newer, {"share/libuv/new.txt": b"new"}, {}))
    target = replace(made.target, records=tuple(
        record if one.name == "libuv" else one for one in made.target.records if one.name != "networkx"))
    write(here, target, "conda-lock")
    said = say("sync", "conda-lock.yml", "--prefix", "env", "--json")
    assert said.status == 0, said
    changes = {one["name"]: one for one in said.json["changes"] if one["action"] != "keep"}
    networkx = made.record("networkx")
    assert changes == {
        "libuv": {"action": "change", "name": "libuv", "installed": f"{before.version} {before.build}",
                  "locked": f"9.9 {before.build}", "build": False, "manager": "conda"},
        "networkx": {"action": "remove", "name": "networkx", "installed": f"{networkx.version} {networkx.build}",
                     "locked": "", "build": False, "manager": "conda"}}
    assert "networkx" not in records(here / "env")
    assert not list((here / "env" / SITE).glob("networkx*"))
    assert (here / "env/share/libuv/new.txt").is_file()
    assert not (here / "env/share/libuv/about.txt").exists()


def test_pip_entries_come_after_the_packages_of_channels(
    here: Path, made: Stack, wheels: Loopback, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(here / "uv"))
    base = wheels.index_url.removesuffix("/simple")
    einops = indexed("einops", "0.8.1", base)
    made.write(here, "conda-lock", pip=(einops,))
    said = say("sync", "conda-lock.yml", "--prefix", "env", "--dry-run")
    assert "install einops 0.8.1\n" in said.out
    said = say("sync", "conda-lock.yml", "--prefix", "env")
    assert said.status == 0, said
    assert (here / "env" / SITE / "einops-0.8.1.dist-info" / "METADATA").is_file()
    assert say("sync", "conda-lock.yml", "--prefix", "env", "--dry-run").status == 0
    # now a channel has it: what pip installed goes first, so that no file belongs to both
    brought = replace(made.record("filelock"), name="einops", version="0.8.2", depends=("python",))
    files: Files = {"site-packages/einops/__init__.py": b"conda\n",
                    "site-packages/einops-0.8.2.dist-info/METADATA": b"Name: einops\nVersion: 0.8.2\n",
                    "site-packages/einops-0.8.2.dist-info/RECORD": b""}
    record = made.shelf.put(brought, archive(brought, files, {}))
    write(here, replace(made.target, records=tuple(sorted((*made.target.records, record),
                                                          key=lambda one: one.name))), "conda-lock")
    said = say("sync", "conda-lock.yml", "--prefix", "env")
    assert said.status == 0, said
    assert [path.name for path in (here / "env" / SITE).glob("einops-*")] == ["einops-0.8.2.dist-info"]


def test_what_pip_wrote_over_a_channels_package_is_linked_anew(here: Path, made: Stack, say: Say) -> None:
    assert say("sync", "conda-lock.yml", "--prefix", "env").status == 0
    site = here / "env" / SITE
    module = site / "numpy" / "__init__.py"
    module.unlink()
    info = site / "numpy-9.9.dist-info"
    info.mkdir()
    module.write_text("pip\n", encoding="utf-8")
    for name, text in (("METADATA", "Metadata-Version: 2.1\nName: numpy\nVersion: 9.9\n"), ("INSTALLER", "pip\n"),
                       ("RECORD", "".join(f"{path},,\n" for path in (
                           "numpy/__init__.py", *(f"{info.name}/{each}" for each in (
                               "METADATA", "INSTALLER", "RECORD")))))):
        (info / name).write_text(text, encoding="utf-8")
    for dry, status in (("--dry-run", 1), ("-v", 0)):
        said = say("sync", "conda-lock.yml", "--prefix", "env", dry)
        assert (said.status, "numpy: pip has installed numpy over it; it is linked anew" in said.err) == (status, True)
    assert not info.exists()
    assert_linked(here / "env", made)
    assert say("sync", "conda-lock.yml", "--prefix", "env", "--dry-run").status == 0


def test_the_second_step_is_read_with_the_lock(here: Path, made: Stack, say: Say) -> None:
    sdist = index_file("flash-attn", "flash_attn-2.5.8.tar.gz", b"sdist")
    made.write(here, "conda-lock", pip=(package("flash-attn", "2.5.8", (sdist,), step=2),))
    said = say("sync", "conda-lock.yml", "--prefix", "env", "--dry-run")
    assert "install flash-attn 2.5.8 (second step, built from source)\n" in said.out, said
    (here / "requirements-flash-attn.txt").unlink()
    said = say("sync", "conda-lock.yml", "--prefix", "env")
    assert (said.status, "requirements-flash-attn.txt: no such lockfile" in said.err) == (2, True), said
    assert not Path("env").exists()


def test_a_wheel_that_is_another_is_refused(
    here: Path, made: Stack, wheels: Loopback, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(here / "uv"))
    einops = indexed("einops", "0.8.1", wheels.index_url.removesuffix("/simple"))
    wrong = replace(einops, files=tuple(replace(file, sha256="0" * 64) for file in einops.files))
    made.write(here, "conda-lock", pip=(wrong,))
    said = say("sync", "conda-lock.yml", "--prefix", "env")
    assert said.status == 3, said
    assert not list((here / "env" / SITE).glob("einops*"))


HOSTILE: dict[str, tuple[Files, dict[str, str], tuple[str, ...], str]] = {
    "a path that leads out": ({}, {}, ("../../outside.txt",), "leads out of the environment"),
    "an absolute path": ({}, {}, ("/tmp/outside.txt",), "leads out of the environment"),  # noqa: S108 - never written
    "a record of another": ({"conda-meta/python-3.11-0.json": b"{}"}, {}, (), "passes for a record"),
    "a link that leads out, and a file through it": (
        {"lib/out/outside.txt": b"x"}, {"lib/out": "../../elsewhere"}, (), "link"),
    "a command that leads out": ({"info/link.json": json.dumps({"noarch": {
        "type": "python", "entry_points": ["../../outside = a:b"]}}).encode()}, {}, (), "has a command called"),
    "another package": ({}, {}, (), "holds other 1.0 0"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_package_that_means_harm_is_refused_before_anything_is_linked(
    case: str, here: Path, made: Stack, say: Say,
) -> None:
    files, links, rows, reason = HOSTILE[case]
    (here / "elsewhere").mkdir()
    record = replace(made.record("libuv"), version="6.6", depends=())
    inside = replace(record, name="other", version="1.0", build="0") if case == "another package" else record
    content = archive(inside, files, links, rows)
    bad = made.shelf.put(record, content)
    write(here, replace(made.target, records=tuple(bad if one.name == "libuv" else one
                                                   for one in made.target.records)), "conda-lock")
    said = say("sync", "conda-lock.yml", "--prefix", "deep/env")
    assert said.status == 3, said
    assert reason in said.err
    assert "libuv" in said.err
    assert not list(here.rglob("outside*"))
    assert not Path("deep").exists()


def explicit_without_hashes(text: str) -> str:
    return "\n".join(line.partition("#")[0] if "://" in line else line for line in text.splitlines())


REFUSED = {
    "no hash": ("explicit", explicit_without_hashes, 2, "has no hash"),
    "another platform": ("conda-lock", lambda text: text.replace(SUBDIR, "osx-arm64"), 1, "locked for osx-arm64"),
    "a way out of the channel": ("explicit", lambda text: text.replace("/libuv-", "/..%2f..%2flibuv-"), 2,
                                 "is no address of a conda package"),
    "an older machine": ("conda-lock", lambda text: text.replace("glibc 2.28 or", "glibc 9.9 or"), 1,
                         "__glibc >=9.9"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_lock_that_is_not_for_here_changes_nothing(case: str, here: Path, say: Say) -> None:
    kind, change, status, reason = REFUSED[case]
    lock = here / LOCKS[kind]
    text = lock.read_text(encoding="utf-8")
    assert change(text) != text
    lock.write_text(change(text), encoding="utf-8")
    said = say("sync", LOCKS[kind], "--prefix", "env")
    assert said.status == status, said
    assert reason in said.err
    assert not Path("env").exists()


def test_places_that_are_no_conda_environment_are_refused(here: Path, say: Say) -> None:
    Path("mine").mkdir()
    Path("mine/precious.txt").write_text("precious")
    assert say("sync", "conda-lock.yml", "--prefix", "mine").status == 2
    assert "--prefix" in say("sync", "conda-lock.yml").err
    assert say("sync", "conda-lock.yml", "--python", sys.executable).status == 2
    assert [path.name for path in Path("mine").iterdir()] == ["precious.txt"]


def test_offline_takes_what_is_in_the_cache(here: Path, made: Stack, say: Say) -> None:
    said = say("sync", "conda-lock.yml", "--prefix", "env", "--offline")
    assert said.status == 3
    assert "--offline forbids asking for it" in said.err
    assert say("sync", "conda-lock.yml", "--prefix", "env").status == 0
    assert say("sync", "conda-lock.yml", "--prefix", "other", "--offline").status == 0
    assert_linked(here / "other", made)
