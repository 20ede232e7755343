"""`stackfix sync` of conda lockfiles never touches what is the user's, or lies outside of the prefix."""

from __future__ import annotations

import bz2
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stackfix.conda.records import CondaRecord
from stackfix.errors import Unreachable
from stackfix.sync import conda_link, conda_room
from stackfix.sync.conda_bytes import is_from
from stackfix.sync.conda_mark import MARK
from tests.cli_world import Say, settle
from tests.conda_packages import SUBDIR
from tests.conda_sync_world import Files, Shelf, archive, shelf

SITE = "lib/python3.11/site-packages"
MANY: Files = {f"share/many/{number}.txt": b"%d" % number for number in range(3000)}
# Syncs, and kills itself without warning once some files of the last package are linked
KILLED = """
import os, signal, sys, threading
from pathlib import Path
def watch():
    while not Path("env/share/many").is_dir() or len(os.listdir("env/share/many")) < 20:
        pass
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=watch, daemon=True).start()
from stackfix.cli.app import run
sys.exit(run(["sync", "new.lock", "--prefix", "env"]))
"""


@pytest.fixture
def channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """An empty channel, and an empty working directory."""
    settle(monkeypatch, tmp_path, "http://127.0.0.1:9/simple")
    with shelf() as found:
        yield found


def put(channel: Shelf, name: str, files: Files, links: Mapping[str, str] | None = None) -> CondaRecord:
    record = CondaRecord(name=name, version="1.0", build="0", build_number=0, subdir=SUBDIR, channel="", file_name="",
                         url="", md5=None, sha256=None, depends=(), constrains=())
    return channel.put(record, archive(record, files, links or {}))


def lock(name: str, *records: CondaRecord) -> str:
    Path(name).write_text("@EXPLICIT\n" + "".join(f"{record.url}#{record.md5}\n" for record in records))
    return name


def files_in(folder: str) -> dict[str, bytes | str]:
    """Path -> bytes, or where a link leads."""
    return {str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
            for path in Path(folder).rglob("*") if path.is_symlink() or path.is_file()}


def names(prefix: str) -> set[str]:
    return {json.loads(path.read_bytes())["name"] for path in Path(prefix, "conda-meta").glob("*.json")}


def user(path: str, text: str = "precious") -> Path:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


@pytest.fixture
def env(channel: Shelf, say: Say) -> CondaRecord:
    """The one package of an environment `env`."""
    record = put(channel, "bb", {"share/bb.txt": b"bb"})
    assert say("sync", lock("old.lock", record), "--prefix", "env").status == 0
    return record


@pytest.mark.parametrize(("mine", "owner"), [
    ("etc/settings.cfg", "of no package"),          # the file itself
    ("etc/settings.cfg/more.txt", "of no package"),  # a folder at its place
    ("etc", "of no package"),                       # a file where its folder is to be
])
def test_a_file_of_the_user_is_never_overwritten(
    mine: str, owner: str, channel: Shelf, env: CondaRecord, say: Say,
) -> None:
    place = user(f"env/{mine}")
    before = files_in("env")
    lock("new.lock", put(channel, "aa", {"etc/settings.cfg": b"packaged"}), env)
    for _ in range(2):
        said = say("sync", "new.lock", "--prefix", "env")
        assert (said.status, f"({owner}; aa brings another)" in said.err, "--set-aside" in said.err) == (2, True, True)
        assert files_in("env") == before
    said = say("sync", "new.lock", "--prefix", "env", "--set-aside")
    assert said.status == 0, said
    assert Path("env/etc/settings.cfg").read_bytes() == b"packaged"
    assert not place.is_file() or place.read_bytes() == b"packaged"
    assert Path("env/.stackfix-sync-kept", mine).read_text() == "precious"
    assert "was moved to" in said.err
    assert say("sync", "old.lock", "--prefix", "env").status == 0
    assert Path("env/.stackfix-sync-kept", mine).read_text() == "precious"


def test_files_that_have_the_same_bytes_are_in_nobodys_way(channel: Shelf, env: CondaRecord, say: Say) -> None:
    user("env/etc/settings.cfg", "packaged")
    Path("env/etc/link").symlink_to("settings.cfg")
    user("env/lib/__pycache__/a.cpython-311.pyc", "compiled by Python")
    record = put(channel, "aa", {"etc/settings.cfg": b"packaged", "lib/__pycache__/a.cpython-311.pyc": b"other"},
                 {"etc/link": "settings.cfg"})
    said = say("sync", lock("new.lock", record, env), "--prefix", "env")
    assert said.status == 0, said
    assert not Path("env/.stackfix-sync-kept").exists()


def test_the_place_for_what_is_moved_is_no_way_out(channel: Shelf, env: CondaRecord, say: Say) -> None:
    user("env/etc/settings.cfg")
    Path("elsewhere").mkdir()
    Path("env/.stackfix-sync-kept").symlink_to(Path("elsewhere").absolute())
    lock("new.lock", put(channel, "aa", {"etc/settings.cfg": b"packaged"}), env)
    said = say("sync", "new.lock", "--prefix", "env", "--set-aside")
    assert (said.status, list(Path("elsewhere").iterdir())) == (3, []), said
    assert Path("env/etc/settings.cfg").read_text() == "precious"


def test_files_of_pip_are_named_with_their_project(channel: Shelf, env: CondaRecord, say: Say) -> None:
    user(f"env/{SITE}/mine-1.dist-info/METADATA", "Name: mine\nVersion: 1\n")
    user(f"env/{SITE}/mine-1.dist-info/RECORD", "numpy/core.py,,\n../../../../../outside.py,,\n")
    user(f"env/{SITE}/numpy/core.py")
    lock("new.lock", put(channel, "numpy", {f"{SITE}/numpy/core.py": b"numpy"}), env)
    said = say("sync", "new.lock", "--prefix", "env")
    assert (said.status, "numpy/core.py (of mine of pip; numpy brings another)" in said.err) == (2, True), said
    assert Path(f"env/{SITE}/numpy/core.py").read_text() == "precious"


def test_a_users_link_out_of_the_prefix_is_followed_neither_in_nor_out(
    channel: Shelf, env: CondaRecord, say: Say,
) -> None:
    old = put(channel, "dd", {"data/mine.txt": b"packaged"})
    lock("new.lock", old, env)
    mine = user("disk/mine.txt")
    Path("env/data").symlink_to(Path("disk").absolute())
    said = say("sync", "new.lock", "--prefix", "env", "--set-aside")
    assert (said.status, "env/data: is a link out of the environment" in said.err) == (2, True), said
    assert (mine.read_text(), names("env")) == ("precious", {"bb"})
    # one that was put in the place of a package's folder: nothing is removed through it
    Path("env/data").unlink()
    assert say("sync", "new.lock", "--prefix", "env").status == 0
    Path("env/data/mine.txt").unlink()
    Path("env/data").rmdir()
    Path("env/data").symlink_to(Path("disk").absolute())
    said = say("sync", "old.lock", "--prefix", "env")
    assert (said.status, "env/data: is a link out of the environment" in said.err) == (2, True), said
    assert (mine.read_text(), names("env")) == ("precious", {"bb", "dd"})


@pytest.mark.parametrize("path", ["../precious.txt", "share/../../precious.txt", "/ABSOLUTE/precious.txt"])
@pytest.mark.parametrize("key", ["files", "paths_data"])
def test_a_record_that_names_a_file_outside_is_an_error(
    key: str, path: str, channel: Shelf, env: CondaRecord, say: Say,
) -> None:
    mine = user("precious.txt")
    record = Path("env/conda-meta/bb-1.0-0.json")
    stated: dict[str, Any] = json.loads(record.read_bytes())
    path = path.replace("/ABSOLUTE", str(Path.cwd()))
    if key == "files":
        stated["files"].append(path)
    else:
        stated[key]["paths"].append({**stated[key]["paths"][0], "_path": path})
    record.write_text(json.dumps(stated))
    said = say("sync", lock("new.lock", put(channel, "aa", {"share/aa.txt": b"aa"})), "--prefix", "env")
    assert said.status == 3, said
    assert f"bb-1.0-0.json: says that {path!r} is of bb, which is outside of the environment" in said.err
    assert (mine.read_text(), names("env")) == ("precious", {"bb"})


CHAINS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "link through a link": ({}, {"x/y/up": "../..", "p": "x/y/up/../../../out"}, "p"),
    "through one of a kept package": ({"x/y/up": "../.."}, {"p": "x/y/up/../out"}, "p"),
    "round": ({}, {"p": "q", "q": "p"}, "p"),
    "absolute": ({}, {"p": "/ABSOLUTE"}, "p"),
    "kept": ({"p": "../../out"}, {}, "p"),
}


@pytest.mark.parametrize("case", CHAINS)
def test_no_file_goes_through_a_chain_of_links_that_leads_out(case: str, channel: Shelf, say: Say) -> None:
    kept, links, link = CHAINS[case]
    links = {path: target.replace("/ABSOLUTE", str(Path.cwd())) for path, target in links.items()}
    first = put(channel, "first", {"x/y/about.txt": b"x"}, kept)
    assert say("sync", lock("old.lock", first), "--prefix", "env").status == 0
    before = files_in("env")
    bad = put(channel, "second", {"share/second.txt": b"x"}, links)
    said = say("sync", lock("new.lock", first, bad, put(channel, "third", {f"{link}/outside.txt": b"out"})),
               "--prefix", "env")
    assert said.status == (2 if case == "kept" else 3), said
    assert "third" in said.err
    assert "out of the environment" in said.err
    assert files_in("env") == before


def test_links_that_stay_inside_are_followed(channel: Shelf, say: Say) -> None:
    first = put(channel, "first", {"lib/about.txt": b"x"}, {"lib64": "lib", "x/y/up": "../.."})
    assert say("sync", lock("old.lock", first), "--prefix", "env").status == 0
    Path("env/mine").symlink_to(Path("env/lib").absolute())
    second = put(channel, "second", {"mine/second.txt": b"x"})
    assert say("sync", lock("new.lock", first, second), "--prefix", "env").status == 0
    assert Path("env/lib/second.txt").read_bytes() == b"x"


def killed_sync(say: Say, again: Callable[[], object] = lambda: None) -> None:
    """`new.lock`, killed between its first file and its record. `again`: makes what must be there before it."""
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", KILLED], check=False, capture_output=True, timeout=120)
        if names("env") == {"bb"} and Path("env/conda-meta", MARK).is_file():
            assert done.returncode == -signal.SIGKILL, done
            return
        assert say("sync", "old.lock", "--prefix", "env").status == 0       # it was killed too late
        again()
    pytest.fail("it was over before it was killed, five times")


def test_after_a_kill_nothing_of_the_user_is_taken_away(channel: Shelf, env: CondaRecord, say: Say) -> None:
    there = user("env/etc/there.cfg", "packaged")       # before the sync: with the package's own bytes
    record = put(channel, "zz", {**MANY, "etc/there.cfg": b"packaged", "etc/after.cfg": b"packaged",
                                 "etc/more/after.cfg": b"packaged"})
    lock("new.lock", record, env)
    killed_sync(say, lambda: user("env/etc/there.cfg", "packaged"))
    Path("env/etc/after.cfg").unlink(missing_ok=True)
    user("env/etc/after.cfg")
    Path("env/share/many/0.txt").unlink(missing_ok=True)
    user("env/share/many/0.txt", "0, and more")
    said = say("sync", "old.lock", "--prefix", "env")
    assert said.status == 0, said
    assert there.read_text() == "packaged"
    found = {path: text for path, text in files_in("env").items() if not path.startswith("conda-meta/")}
    assert found == {"share/bb.txt": b"bb", "CACHEDIR.TAG": found["CACHEDIR.TAG"], "etc/there.cfg": b"packaged",
                     ".stackfix-sync-kept/etc/after.cfg": b"precious",
                     ".stackfix-sync-kept/share/many/0.txt": b"0, and more"}
    assert "env/.stackfix-sync-kept/etc/after.cfg" in said.err


def test_after_a_kill_what_pip_installed_since_stays(channel: Shelf, env: CondaRecord, say: Say) -> None:
    lock("new.lock", put(channel, "numpy", {**MANY, f"{SITE}/numpy/core.py": b"conda"}), env)
    killed_sync(say)
    Path(f"env/{SITE}/numpy/core.py").unlink(missing_ok=True)
    core = user(f"env/{SITE}/numpy/core.py", "pip")
    user(f"env/{SITE}/numpy-2.dist-info/METADATA", "Name: numpy\nVersion: 2\n")
    user(f"env/{SITE}/numpy-2.dist-info/RECORD", "numpy/core.py,,\n")
    said = say("sync", "old.lock", "--prefix", "env")
    assert said.status == 0, said
    assert core.read_text() == "pip"
    assert not Path("env/share/many").exists()
    assert not Path("env/.stackfix-sync-kept").exists()


def test_a_second_sync_waits_and_plans_anew(channel: Shelf, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    aa, bb, cc = (put(channel, name, {f"share/{name}.txt": name.encode()}) for name in ("aa", "bb", "cc"))
    first, second = lock("first.lock", aa, bb), lock("second.lock", bb, cc)
    Path("env/conda-meta").mkdir(parents=True)
    held = os.open("env/conda-meta", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    words = [sys.executable, "-m", "stackfix", "sync", first, "--prefix", "env"]
    # each with a cache of its own: it is the prefix that is locked
    with subprocess.Popen([*words, "--cache-dir", "one"], stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        assert "env: waiting for another sync that is at work there" in other.stderr.readline()
        assert names("env") == set()
        monkeypatch.setattr("stackfix.sync.conda.turn", unlocked)
        assert say("sync", second, "--prefix", "env").status == 0
        assert names("env") == {"bb", "cc"}
        os.close(held)
        assert (other.wait(60), other.stderr.read().count("packages of channels, 1 others are removed")) == (0, 1)
    assert names("env") == {"aa", "bb"}
    assert {path for path in files_in("env") if path.startswith("share/")} == {"share/aa.txt", "share/bb.txt"}


class unlocked:  # noqa: N801 - stands for a function
    """In the place of `turn`, for a test that holds the prefix itself."""

    def __init__(self, prefix: Path, *, quiet: bool) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def test_many_syncs_at_once_leave_what_one_of_them_leaves(channel: Shelf, say: Say) -> None:
    sets = [[put(channel, f"{letter}{number}", {f"share/{letter}{number}.txt": b"x"}) for number in range(6)]
            for letter in "pqr"]
    words = [sys.executable, "-m", "stackfix", "sync", "--prefix", "deep/env"]
    running = [subprocess.Popen([*words, lock(f"{index}.lock", *records), "--cache-dir", f"cache{index}"],
                                stderr=subprocess.PIPE, text=True) for index, records in enumerate(sets)]
    ended = [(one.communicate(timeout=120)[1], one.returncode) for one in running]
    assert [status for _, status in ended] == [0, 0, 0], ended
    there = names("deep/env")
    assert there in [{record.name for record in records} for records in sets]
    assert {path for path in files_in("deep/env") if path.startswith("share/")} == {f"share/{name}.txt"
                                                                                  for name in there}


def test_a_panic_of_rattler_is_an_error_about_the_prefix(
    channel: Shelf, env: CondaRecord, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    class RustPanic(BaseException):
        pass

    def panic(*_: object, **__: object) -> None:
        raise RustPanic("rust future panicked: unknown error")

    lock("new.lock", put(channel, "aa", {"share/aa.txt": b"aa"}), env)
    with monkeypatch.context() as patch:
        patch.setattr("rattler.install", panic)
        said = say("sync", "new.lock", "--prefix", "env")
    assert said.status == 3, said
    assert "env: rattler cannot link it: rust future panicked" in said.err
    assert conda_link.AGAIN in said.err
    assert say("sync", "new.lock", "--prefix", "env").status == 0
    assert names("env") == {"aa", "bb"}


def naming(content: bytes, placeholder: str) -> bytes:
    """The archive, its files said to name the prefix: bin/… as binaries, others as texts."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(content)) as old, tarfile.open(fileobj=packed, mode="w") as new:
        for info in old.getmembers():
            stream = old.extractfile(info)
            body = stream.read() if stream else b""
            if info.name == "info/paths.json":
                stated = json.loads(body)
                for row in stated["paths"]:
                    mode = "binary" if row["_path"].startswith("bin/") else "text"
                    row.update(prefix_placeholder=placeholder, file_mode=mode)
                body = json.dumps(stated).encode()
                info.size = len(body)
            new.addfile(info, io.BytesIO(body))
    return bz2.compress(packed.getvalue(), 1)


def test_what_names_the_prefix_is_known_for_the_packages_own(channel: Shelf, say: Say) -> None:
    placeholder = "/placeholder" * 20
    held = placeholder.encode()
    files: Files = {"share/a.txt": b"prefix=%b\nlibdir=%b/lib\n" % (held, held), "share/b.txt": b"none",
                    "bin/a": b"\x7fELF\0%b/lib:%b/share\0more\0%b\0end" % (held, held, held)}
    record = put(channel, "named", files)
    record = channel.put(record, naming(archive(record, files, {}), placeholder))
    assert say("sync", lock("a.lock", record), "--prefix", "env").status == 0
    [folder] = Path(".cache/conda-packages-v1").glob("named-*-0")
    prefix = Path("env").absolute()
    assert str(prefix).encode() in Path("env/bin/a").read_bytes()
    for path in files:
        assert is_from(prefix / path, folder, path, prefix), path
        place = prefix / path
        whole = place.read_bytes()
        place.unlink()          # the cache shares it
        place.write_bytes(whole[:-2])
        assert is_from(place, folder, path, prefix, part=True), path
        assert not is_from(place, folder, path, prefix), path
        place.write_bytes(whole[:-2] + b"!?")
        assert not is_from(place, folder, path, prefix, part=True), path


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_package_whose_files_were_taken_away_or_changed_is_linked_anew(
    damage: str, channel: Shelf, say: Say,
) -> None:
    record = put(channel, "numpy", {f"{SITE}/numpy/core.py": b"conda", f"{SITE}/numpy/more.py": b"more",
                                    "etc/numpy.cfg": b"setting"})
    name = lock("a.lock", record)
    assert say("sync", name, "--prefix", "env").status == 0
    user("env/etc/numpy.cfg", "a setting that the user changed")
    user(f"env/{SITE}/numpy/__pycache__/core.cpython-311.pyc", "")
    assert say("sync", name, "--prefix", "env", "--dry-run").status == 0
    core = Path(f"env/{SITE}/numpy/core.py")
    core.unlink()
    if damage == "changed":
        core.write_text("CONDA")
        assert say("sync", name, "--prefix", "env", "--dry-run").status == 0       # as long: only existence and size
        core.write_text("another")
    for dry, status in (("--dry-run", 1), ("-v", 0)):
        said = say("sync", name, "--prefix", "env", dry)
        reason = "is missing" if damage == "missing" else "was changed"
        assert (said.status, f"numpy: {SITE}/numpy/core.py {reason}; it is linked anew" in said.err) == (status, True)
    assert core.read_bytes() == b"conda"
    kept = Path(f"env/.stackfix-sync-kept/{SITE}/numpy/core.py")
    assert (kept.read_text() if kept.exists() else None) == ("another" if damage == "changed" else None)
    assert say("sync", name, "--prefix", "env", "--dry-run").status == 0


def test_two_packages_with_one_path_are_named_and_stay(channel: Shelf, say: Say) -> None:
    name = lock("a.lock", put(channel, "xx", {"share/common.txt": b"of xx"}),
                put(channel, "yy", {"share/common.txt": b"of yy, longer"}))
    said = say("sync", name, "--prefix", "env")
    assert (said.status, "share/common.txt is in xx and in yy" in said.err) == (0, True), said
    assert say("sync", name, "--prefix", "env", "--dry-run").status == 0


def test_room_and_rights_are_looked_at_first(
    channel: Shelf, env: CondaRecord, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock("new.lock", put(channel, "aa", {"share/aa.txt": b"a" * 5000}), env)
    before = files_in("env")
    full = os.statvfs_result((4096, 4096, 100, 0, 0, 0, 0, 0, 0, 255))
    with monkeypatch.context() as patch:
        patch.setattr("stackfix.sync.conda_room.os.statvfs", lambda _path: full)
        patch.setattr(conda_room, "is_shared", lambda _prefix, _store: False)
        said = say("sync", "new.lock", "--prefix", "env")
        assert (said.status, "has room for 0.0 MB, and 0.0 MB are needed" in said.err) == (3, True), said
    with monkeypatch.context() as patch:
        patch.setattr("stackfix.sync.conda_room.os.access", lambda path, _mode: Path(path).name != "share")
        said = say("sync", "new.lock", "--prefix", "env")
        assert (said.status, "env/share: cannot be written" in said.err) == (3, True), said
    assert files_in("env") == before
    assert say("sync", "new.lock", "--prefix", "env").status == 0


def test_a_sync_that_only_removes_needs_no_room(
    channel: Shelf, env: CondaRecord, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock("new.lock", put(channel, "aa", {"share/aa.txt": b"aa"}), env)
    assert say("sync", "new.lock", "--prefix", "env").status == 0

    def full(*_: object) -> None:
        raise Unreachable("disk", "No space left on device")

    monkeypatch.setattr(conda_link, "write_mark", full)
    said = say("sync", "old.lock", "--prefix", "env")
    assert said.status == 0, said
    assert names("env") == {"bb"}
