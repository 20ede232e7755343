"""Metadata that a build tells: what its code sees, what stops it, and that nothing of it stays behind."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stackfix.errors import Unreachable
from stackfix.sources import sdist_build_child
from stackfix.sources.credentials import Credentials
from stackfix.sources.errors import HashMismatch, NotAllowedOffline, SdistBuildFailed
from stackfix.sources.index import PackageIndex
from stackfix.sources.records import CoreMetadata, IndexFile, IndexPolicy, IndexSettings, Route
from stackfix.sources.sdist_build import Allowed, remove_tree
from stackfix.sources.sdist_build_child import living
from stackfix.sources.sdist_build_hooks import NO_ROOM
from stackfix.sources.sdist_build_install import (
    NotFollowed,
    installer_environment,
    refuse_pinned,
    with_logins,
    without_secrets,
)
from stackfix.sources.sdist_build_python import machine_name
from tests.replay.wheels import make_wheel
from tests.sdists import metadata, sdist, tar
from tests.sources_servers import RawServer, file_for, ok, page_json, path_of, settings_for, status

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
NAME = "demo-1.0.tar.gz"
SECRET = "hunter2-of-the-index"
LEAKY = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "UV_INDEX_MINE_PASSWORD": SECRET,
         "GITHUB_TOKEN": SECRET, "PIP_INDEX_URL": f"https://user:{SECRET}@index.example/simple",
         "AWS_SECRET_ACCESS_KEY": SECRET, "PYTHONPATH": "/nowhere", "HTTPS_PROXY": f"http://user:{SECRET}@proxy.example"}


@dataclass(kw_only=True)
class Place:
    """A server with files, a cache, and what was said."""

    cache: Path
    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)           # path below the server -> content
    said: list[str] = field(default_factory=list)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    seconds: float = 60.0
    settings: Callable[..., IndexSettings] = settings_for

    def reply(self, head: str) -> bytes:
        content = self.files.get(path_of(head))
        return status("404 Not Found") if content is None else ok(content, kind=(
            "application/octet-stream" if "." in path_of(head) else "application/vnd.pypi.simple.v1+json"))

    def serve(self, name: str, content: bytes) -> IndexFile:
        """The file of project demo, on the server."""
        self.files[f"/{name}"] = content
        return file_for(self.url, name, sha256=hashlib.sha256(content).hexdigest())

    def offer(self, project: str, name: str, content: bytes) -> None:
        """A project on the index at `/simple`."""
        self.files[f"/files/{name}"] = content
        self.files[f"/simple/{project}/"] = page_json(project, {
            "filename": name, "url": f"{self.url}/files/{name}",
            "hashes": {"sha256": hashlib.sha256(content).hexdigest()}})

    def built(self, file: IndexFile, python: str = HERE, **how: Any) -> CoreMetadata:
        """What a build of the file says."""
        allowed = Allowed(projects=frozenset({"demo"}), environ=self.environ, tell=self.said.append,
                          complain=self.said.append, seconds=self.seconds)
        index = PackageIndex(self.settings(f"{self.url}/simple", retries=0), cache_dir=self.cache,
                             **{"offline": False, "builds": allowed, **how})
        with index:
            return index.built_metadata(file, python)

    def build(self, content: bytes, name: str = NAME) -> CoreMetadata:
        return self.built(self.serve(name, content))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The server; afterwards no scratch folder is left, and nobody who was started in one."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    made = Place(cache=tmp_path / "cache")
    with RawServer(made.reply) as server:
        made.url = server.url
        yield made
    assert list(temporary.iterdir()) == []
    assert list(running(str(temporary))) == []


def running(word: str) -> Iterator[int]:
    """Processes that have `word` in their command line, their folder or their environment."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            if word.encode() in found and int(entry.name) != os.getpid():
                yield int(entry.name)


def test_a_build_tells_what_an_sdist_requires(place: Place) -> None:
    found = place.build(sdist(told=metadata("Demo", "1.0", ["torch>=2", "rich; extra == 'x'"], Provides_Extra="x",
                                            Requires_Python=">=3.9")))
    assert found == CoreMetadata(
        name="demo", version="1.0", requires_dist=("torch>=2", "rich; extra == 'x'"), requires_python=">=3.9",
        provides_extra=("x",), basis="built", built_on=machine_name())
    assert place.said == [f"building demo 1.0 for Python {HERE} to read its requirements: its code runs"]


def test_it_is_built_once_for_each_python_and_never_offline(place: Place) -> None:
    file = place.serve(NAME, sdist(requires=["torch"]))
    with pytest.raises(NotAllowedOffline, match=rf"what a build of {NAME} for Python {HERE} says"):
        place.built(file, offline=True)
    first = place.built(file)
    place.files.clear()
    assert (place.built(file), place.built(file, offline=True)) == (first, first)
    assert len(place.said) == 1
    with pytest.raises(NotAllowedOffline):
        place.built(file, "3.99", offline=True)


def test_a_backend_without_the_hook_builds_the_wheel(place: Place) -> None:
    wheel = make_wheel("demo-1.0-py3-none-any.whl", requires=["torch"])
    backend = ("import pathlib\ndef build_wheel(folder, config_settings=None, metadata_directory=None):\n"
               f"    pathlib.Path(folder, 'demo-1.0-py3-none-any.whl').write_bytes({wheel!r})\n"
               "    return 'demo-1.0-py3-none-any.whl'\n")
    project = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    assert place.build(sdist(files={"pyproject.toml": project, "own.py": backend})).requires_dist == ("torch",)


@pytest.mark.parametrize("uv", [True, False])
def test_build_requirements_come_from_the_index_alone_and_its_login_reaches_no_code_of_the_sdist(
    place: Place, tmp_path: Path, uv: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not uv:
        monkeypatch.setattr("stackfix.sources.sdist_build_install.find_uv", lambda environ: None)
    place.offer("helper", "helper-1.0-py3-none-any.whl", make_wheel("helper-1.0-py3-none-any.whl"))
    place.offer("later", "later-1.0-py3-none-any.whl", make_wheel("later-1.0-py3-none-any.whl"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "helper-9.0-py3-none-any.whl").write_bytes(make_wheel("helper-9.0-py3-none-any.whl"))
    place.environ = {**LEAKY, "PIP_FIND_LINKS": str(elsewhere), "UV_FIND_LINKS": str(elsewhere),
                     "PIP_INDEX_URL": f"http://user:{SECRET}@127.0.0.1:9/", "UV_INDEX_URL": "http://127.0.0.1:9/"}
    heads: list[str] = []
    plain = place.reply

    def closed(head: str) -> bytes:
        heads.append(head)
        asked = path_of(head).startswith("/simple")
        return status("401 Unauthorized", 'WWW-Authenticate: Basic realm="x"') if (
            asked and "authorization" not in head.lower()) else plain(head)

    later = ["later"] if uv else []                 # pip takes seconds, and the second time shows nothing of it
    look = ("import glob; seen = str(dict(os.environ)) + ''.join(open(p, errors='replace').read() for p in"
            " glob.glob('../../**', recursive=True) + glob.glob(os.path.expanduser('~/.*')) if os.path.isfile(p)"
            " and 'environment' not in p); global METADATA; METADATA += 'Requires-Dist: ' + ("
            f"'leak' if {SECRET[::-1]!r}[::-1] in seen else 'clean') + chr(10)")
    told = "METADATA += f'Requires-Dist: helper=={version(\"helper\")}' + chr(10)"
    content = sdist(build_requires=["helper>=1; python_version > '3'", "nothing; python_version < '3'"],
                    own_requires=later, before="from importlib.metadata import version",
                    during=f"import {', '.join(['helper', *later])}; {look}; {told}")
    with RawServer(closed) as server:
        host = server.url.removeprefix("http://")
        place.settings = lambda *_, **changes: settings_for(f"http://me:{SECRET}@{host}/simple", **changes)
        assert place.build(content).requires_dist == ("clean", "helper==1.0")
    assert any("authorization" in head.lower() for head in heads)


@pytest.mark.parametrize("uv", [True, False])
def test_code_that_ran_does_not_lie_in_wait_for_the_installer(
    place: Place, tmp_path: Path, uv: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first hook of a build may leave something in its environment for the one that comes next with a login."""
    if not uv:
        monkeypatch.setattr("stackfix.sources.sdist_build_install.find_uv", lambda environ: None)
    place.offer("helper", "helper-1.0-py3-none-any.whl", make_wheel("helper-1.0-py3-none-any.whl"))
    leak = tmp_path / "leak"
    place.settings = lambda url, **changes: settings_for(url.replace("//", f"//me:{SECRET}@"), **changes)
    place.environ = LEAKY
    trap = ("import sysconfig; open(sysconfig.get_path('purelib') + '/trap.pth', 'w').write("
            f"\"import os; open({str(leak)!r}, 'a').write(str(dict(os.environ)))\")")
    assert place.build(sdist(own_requires=["helper"], before=trap, during=(
        "import helper; subprocess.run([sys.executable, '-c', ''])"))).name == "demo"
    assert "PIP_NO_INDEX" in leak.read_text()           # it does spring
    assert SECRET not in leak.read_text()


def test_the_installer_is_told_each_login_that_our_own_client_would_use(tmp_path: Path) -> None:
    settings = settings_for(
        "https://a.example/simple", "https://me:old@never.example/simple", "https://b.example/simple",
        netrc=(("a.example", "user", "p@ss/w"), ("other.example", "spare", "spare-word")),
        policies=(IndexPolicy(base="https://never.example/simple", origin="uv.toml", authenticate="never"),))
    told = installer_environment({}, tmp_path, with_logins(settings, Credentials(settings)))
    assert told["UV_INDEX"] == "https://user:p%40ss%2Fw@a.example/simple https://never.example/simple"
    assert told["UV_DEFAULT_INDEX"] == told["PIP_INDEX_URL"] == "https://b.example/simple"
    with_login = with_logins(settings, Credentials(settings))
    assert without_secrets("p@ss/w p%40ss%2Fw spare-word", with_login) == "**** **** ****"


def test_a_build_requirement_with_an_index_of_its_own_is_not_looked_up_elsewhere(place: Place) -> None:
    route = Route(project="helper", indexes=("https://b.example/simple",), why="uv.toml pins it")
    place.offer("helper", "helper-1.0-py3-none-any.whl", make_wheel("helper-1.0-py3-none-any.whl"))
    place.settings = lambda url, **changes: settings_for(url, routes=(route,), **changes)
    with pytest.raises(SdistBuildFailed, match="Helper is pinned to an index of its own"):
        place.build(sdist(build_requires=["Helper"]))


@pytest.mark.parametrize("uv", [True, False])
def test_nor_is_one_that_a_build_requirement_requires(place: Place, uv: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installer knows of no pins: what it took from elsewhere never runs."""
    if not uv:
        monkeypatch.setattr("stackfix.sources.sdist_build_install.find_uv", lambda environ: None)
    route = Route(project="secret-lib", indexes=("https://b.example/simple",), why="uv.toml pins it")
    helper = "helper-1.0-py3-none-any.whl"
    place.offer("helper", helper, make_wheel(helper, requires=["Secret.Lib"]))
    place.offer("secret-lib", "secret_lib-9.0-py3-none-any.whl", make_wheel("secret_lib-9.0-py3-none-any.whl"))
    place.settings = lambda url, **changes: settings_for(url, routes=(route,), **changes)
    with pytest.raises(SdistBuildFailed, match="ask for secret_lib, which is pinned to an index of its own"):
        place.build(sdist(build_requires=["helper"], before="raise SystemExit('ran')"))
    assert not [line for line in place.said if "ran" in line.split()]


@pytest.mark.parametrize(("installed", "refused"), [
    ("lib/python3.11/site-packages/a-1.0.dist-info", True),
    ("lib64/python3.11/site-packages/A-1.0-1.dist-info", True),
    ("Lib/site-packages/b.c-1.0.dist-info", True),
    ("lib/python3.11/site-packages/b-c-1.0.dist-info", True),
    ("lib/python3.11/site-packages/a_b-1.0.dist-info", False),
    ("lib/python3.11/site-packages/setuptools/_vendor/a-1.0.dist-info", False),
])
def test_what_was_installed_is_known_by_its_folder(tmp_path: Path, installed: str, refused: bool) -> None:
    (tmp_path / installed).mkdir(parents=True)
    settings = settings_for(routes=tuple(Route(project=name, indexes=(), why="") for name in ("a", "b-c")))
    with pytest.raises(NotFollowed) if refused else nullcontext():
        refuse_pinned(tmp_path, settings)


def test_the_code_has_a_home_of_its_own_and_no_index(place: Place, tmp_path: Path) -> None:
    place.environ = {**LEAKY, "HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir()
    code = ("pathlib.Path(os.path.expanduser('~/.bashrc')).write_text('x'); names = 'PIP_NO_INDEX UV_OFFLINE'.split();"
            "global METADATA; METADATA += ''.join(f'Requires-Dist: a=={len(os.environ[n])}' + chr(10) for n in names)")
    assert len(place.build(sdist(during=code)).requires_dist) == 2
    assert list((tmp_path / "home").iterdir()) == []


def test_what_a_failed_build_said_is_shown_without_logins_or_orders_to_the_terminal(place: Place) -> None:
    place.environ = LEAKY
    during = "print('\\x1b[2J' + str(dict(os.environ))); sys.stderr.write('first\\n' * 100); raise ValueError('why')"
    with pytest.raises(SdistBuildFailed) as fault:
        place.build(sdist(during=during))
    assert fault.value.what() == "the sdist of demo 1.0: its build ended in an error: ValueError: why"
    assert fault.value.exit_status == 3
    shown = place.said[1:]
    assert len(shown) == 15
    assert shown[-1] == "  | ValueError: why"
    assert "\x1b" not in "".join(shown)
    assert SECRET not in "".join(shown)


@pytest.mark.parametrize(("content", "reason"), [
    (sdist(during="raise SystemExit(3)"), "its build ended in an error"),
    (sdist(during="import torch_that_is_not_there"),
     "its build imports torch_that_is_not_there, which its build requirements leave out"),
    (sdist(during="import pkg_resources"), "pkg_resources, which newer releases of setuptools do not have"),
    (sdist(during="os.kill(os.getpid(), 9)"), "its build ended in an error"),
    (sdist(during="os.kill(os.getppid(), 9)"), "its build ended in an error"),
    (sdist(before="print('x' * 50_000_000); raise ValueError('enough')"), "ValueError: enough"),
    (sdist(during="open('large', 'w').truncate(3 << 30)"), "its build ended in an error"),
    (sdist(told=metadata("other", "1.0")), "the metadata that its build made is about 'other'"),
    (sdist(told=metadata("demo", "2.0")), "the metadata that its build made is about version '2.0'"),
    (sdist(told="nothing"), "the metadata that its build made states no metadata-version"),
    (sdist(during="return '../../home'"), "no metadata where it says"),
    (sdist(during="return '/etc'"), "no metadata where it says"),
    (sdist(during="return 7"), "no answer that can be read"),
    (sdist(during="(info / 'METADATA').symlink_to('/etc/passwd'); return info.name"), "no metadata where it says"),
    (sdist(during="os.mkfifo(info / 'METADATA'); return info.name"), "no metadata where it says"),
    (sdist(during="(info / 'METADATA').mkdir(); return info.name"), "no metadata where it says"),
    (sdist(during="(info / 'METADATA').write_text('x' * 17_000_000); return info.name"), "more than 16777216 bytes"),
    (sdist(build_requires=["--index-url=http://127.0.0.1:9"]), "is no requirement"),
    (sdist(build_requires=["helper @ http://127.0.0.1:9/helper-1.0-py3-none-any.whl"]), "an address of its own"),
    (sdist(own_requires=["-r /etc/passwd"]), "is no requirement"),
    (sdist(build_requires=["helper"]), "its build requirements cannot be installed from wheels of the index"),
    (sdist(files={"pyproject.toml": "[build-system"}), r"its pyproject.toml cannot be used \(Failed to parse"),
    (sdist(files={"pyproject.toml": "[build-system]\n"}), "`requires` is a required property"),
    (sdist(files={"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "none"\n'}), "'none' is not avail"),
    (sdist(files={"pyproject.toml": '[build-system]\nrequires = []\nbackend-path = ["../.."]\n'}),
     "its pyproject.toml cannot be used"),
    (sdist(files={"README": ""}), "neither pyproject.toml nor setup.py"),
    (tar({"../setup.py": ""}), "lies outside of it"),
], ids=range(27))
def test_what_no_build_can_tell_is_one_error_about_the_sdist(place: Place, content: bytes, reason: str) -> None:
    with pytest.raises(SdistBuildFailed, match=reason) as fault:
        place.build(content)
    assert fault.value.what().startswith("the sdist of demo 1.0: ")
    assert "\n" not in fault.value.what()
    assert fault.value.next_step()


def test_build_requirements_are_never_built_themselves(place: Place) -> None:
    trap = sdist("helper", "1.0", before="raise SystemExit('the code of another project ran')")
    place.offer("helper", "helper-1.0.tar.gz", trap)
    with pytest.raises(SdistBuildFailed, match="cannot be installed from wheels of the index"):
        place.build(sdist(build_requires=["helper"]))
    assert not [line for line in place.said if "another project ran" in line]


def test_pip_with_several_indexes_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stackfix.sources.sdist_build_install.find_uv", lambda environ: None)
    place.settings = lambda url, **changes: settings_for(f"{url}/private", url, **changes)
    with pytest.raises(SdistBuildFailed, match="pip would mix their files") as fault:
        place.build(sdist(build_requires=["helper"]))
    assert "install uv" in str(fault.value.next_step())


def test_without_any_index_only_a_build_that_requires_nothing_can_be(place: Place) -> None:
    place.settings = lambda *_, **changes: settings_for(**changes)
    assert place.build(sdist()).name == "demo"
    with pytest.raises(SdistBuildFailed, match="no index is set"):
        place.build(sdist(build_requires=["helper"]))


def test_the_first_index_that_has_a_build_requirement_wins(place: Place) -> None:
    place.offer("helper", "helper-1.0-py3-none-any.whl", make_wheel("helper-1.0-py3-none-any.whl"))
    place.files["/private/helper/"] = place.files.pop("/simple/helper/")
    place.offer("helper", "helper-9.0-py3-none-any.whl", make_wheel("helper-9.0-py3-none-any.whl"))
    place.settings = lambda url, **changes: settings_for(url.replace("/simple", "/private"), url, **changes)
    told = "global METADATA; METADATA += 'Requires-Dist: helper==' + importlib.metadata.version('helper') + chr(10)"
    content = sdist(build_requires=["helper"], before="import importlib.metadata", during=told)
    assert place.build(content).requires_dist == ("helper==1.0",)


def test_other_bytes_than_the_index_states_are_not_even_unpacked(place: Place) -> None:
    file = place.serve(NAME, sdist())
    place.files[f"/{NAME}"] = sdist(before="raise SystemExit")
    with pytest.raises(HashMismatch):
        place.built(file)
    assert place.said == []


def test_a_python_that_is_not_here_is_named_with_the_way_to_it(place: Place) -> None:
    file = place.serve(NAME, sdist())
    with pytest.raises(SdistBuildFailed, match=r"needs a Python 3\.99, and none is found here") as fault:
        place.built(file, "3.99")
    assert "uv python install 3.99" in str(fault.value.next_step())
    assert place.said == []


def test_a_full_disk_is_not_blamed_on_the_sdist(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SdistBuildFailed, match=r"its build ended in an error: OSError: .*No space left") as told:
        place.build(sdist(during="open('/dev/full', 'w', buffering=1).write('x' * 9999 + chr(10))"))
    assert told.value.next_step() == NO_ROOM
    temporary, opened = Path(str(tempfile.tempdir)), Path.open

    def full(path: Path, *how: Any, **more: Any) -> Any:
        if path.name == "own.py":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return opened(path, *how, **more)

    for folder, patched, named, reason in (
        (temporary, full, f"the temporary folder {temporary}", errno.ENOSPC),
        (temporary / "none", opened, "the temporary folder", errno.ENOENT),
    ):
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        monkeypatch.setattr(Path, "open", patched)
        with pytest.raises(Unreachable) as fault:
            place.build(sdist())
        assert (fault.value.what(), fault.value.next_step()) == (f"{named}: {os.strerror(reason)}", NO_ROOM)
        assert type(fault.value) is Unreachable


LEAVES = {              # ways to leave a build's process: none gets away
    "ignores": "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); [os.fork() for _ in range(4)]",
    "closes": "os.close(1); os.close(2)",
}
DAEMON = """if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    """


@pytest.mark.parametrize("way", LEAVES)
def test_a_build_that_never_ends_is_ended(
    place: Place, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time is over once its code runs, however slow the machine is until then."""
    begun, now = tmp_path / "begun", time.monotonic
    monkeypatch.setattr("stackfix.sources.sdist_build_run.time", SimpleNamespace(
        monotonic=lambda: now() + (place.seconds if begun.exists() else 0)))
    with pytest.raises(SdistBuildFailed, match="its build was not done after 60 seconds") as fault:
        place.build(sdist(during=f"{DAEMON}{LEAVES[way]}; pathlib.Path({str(begun)!r}).touch(); time.sleep(600)"))
    assert begun.exists()
    assert "STACKFIX_BUILD_SECONDS" in str(fault.value.next_step())


def test_a_daemon_does_not_outlive_the_build_that_started_it(place: Place) -> None:
    assert place.build(sdist(during=f"{DAEMON}pass")).name == "demo"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who adopts orphans")
def test_a_look_that_misses_a_daemon_is_not_the_last(tmp_path: Path) -> None:
    """As happens where its parent ends between two reads of /proc."""
    daemon = f"import os, time\nif True:\n    {DAEMON}pass\n"
    missing = (f"import sys; sys.path.insert(0, {str(Path(sdist_build_child.__file__).parent)!r})\n"
               "import sdist_build_child as child\nreal, looks = child.descendants, [[]]\n"
               "child.descendants = lambda: looks.pop() if looks else real()\n"
               f"sys.exit(child.main(['', sys.executable, '-c', {daemon!r}, {str(tmp_path)!r}]))")
    watcher = subprocess.Popen([sys.executable, "-c", missing], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert watcher.wait(60) == 0
    watcher.communicate()
    assert list(running(str(tmp_path))) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who adopts orphans")
@pytest.mark.parametrize("within", ["during", "before"])
def test_whoever_kills_its_watcher_does_not_outlive_the_build(place: Place, tmp_path: Path, within: str) -> None:
    killed, ran = tmp_path / "killed", tmp_path / "ran"
    code = KILLER.format(killed=str(killed), ran=str(ran))
    with pytest.raises(SdistBuildFailed, match="its build ended in an error"):
        place.build(sdist(before=code) if within == "before" else sdist(during=f"exec({code!r})"))
    assert killed.exists()
    assert not ran.exists()
    assert children_in_other_sessions() == []


KILLER = """
import os, pathlib, signal, time
if os.fork() == 0:
    os.setsid()
    found = os.getpid()
    while found > 1:
        found = int(open(f'/proc/{{found}}/stat').read().rpartition(')')[2].split()[1])
        if b'sdist_build_child.py' in open(f'/proc/{{found}}/cmdline', 'rb').read():
            os.kill(found, signal.SIGKILL)
            pathlib.Path({killed!r}).touch()
            break
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    time.sleep(600)
    pathlib.Path({ran!r}).touch()
time.sleep(600)
"""


def children_in_other_sessions() -> list[int]:
    """Living children of this process that were made by none of its own programs."""
    return [pid for pid, (parent, _, session) in living().items() if parent == os.getpid() and session != os.getsid(0)]


def test_whoever_closes_itself_in_is_removed(tmp_path: Path) -> None:
    inner = tmp_path / "scratch" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    (tmp_path / "scratch" / "link").symlink_to(tmp_path)
    for folder in (inner, inner.parent):
        folder.chmod(0)
    remove_tree(tmp_path / "scratch")
    assert list(tmp_path.iterdir()) == []


def test_no_folder_is_too_deep_to_be_removed(place: Place) -> None:
    deep = "for _ in range(3000): os.mkdir('d'); os.chdir('d')"
    with pytest.raises(SdistBuildFailed, match="ValueError: deep"):
        place.build(sdist(before=f"{deep}\nraise ValueError('deep')"))


BUILDING = """
import sys
from pathlib import Path
from tests.test_sources_sdist_build import Place
place = Place(cache=Path(sys.argv[1]), url=sys.argv[2])
place.built(place.serve("demo-1.0.tar.gz", Path(sys.argv[3]).read_bytes()))
"""


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_runs_on_when_the_one_who_asked_is_gone(place: Place, tmp_path: Path, kind: signal.Signals) -> None:
    content, begun = tmp_path / "content", tmp_path / "begun"
    content.write_bytes(sdist(during=f"{DAEMON}pathlib.Path({str(begun)!r}).touch(); time.sleep(600)"))
    place.serve(NAME, content.read_bytes())
    asking = subprocess.Popen([sys.executable, "-c", BUILDING, str(tmp_path / "cache"), place.url, str(content)],
                              env={**os.environ, "TMPDIR": str(tmp_path / "temporary")}, stderr=subprocess.PIPE)
    wait_for(begun.exists)
    assert list(running(str(tmp_path / "temporary")))
    asking.send_signal(kind)
    asking.communicate()
    wait_for(lambda: not list(running(str(tmp_path / "temporary"))))
    wait_for(lambda: not list((tmp_path / "temporary").iterdir()))


def wait_for(there: Callable[[], bool], seconds: float = 60.0) -> None:
    """Returns once it is so."""
    until = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.recorded
def test_a_setup_py_of_old_is_built_with_setuptools(place: Place, index: Any) -> None:
    place.settings = lambda *_, **changes: settings_for(index.url, timeout=60.0, **changes)
    setup = "from setuptools import setup\nsetup(name='demo', version='1.0', install_requires=['torch>=2', 'ninja'])\n"
    assert place.build(sdist(files={"setup.py": setup})).requires_dist == ("torch>=2", "ninja")
