"""Bad servers and bad input: one clear error each, the right exit status, nothing half written, no hang."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.judges.command import Run, stackfix
from tests.replay.faults import Fault
from tests.replay.index import ADVERTISED, UNADVERTISED
from tests.replay.pages import Edit, altered
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.wheels import make_wheel, zip_bytes

pytestmark = pytest.mark.recorded

ASKED = ("--torch", "2.3", "--python", "3.11", "--no-flash-attn")
PATIENCE = 150          # seconds: a read ends after the 2 below, a whole request after 120 at the latest
IMPATIENT = {"PIP_DEFAULT_TIMEOUT": "2", "PIP_RETRIES": "1"}
KEPT = "# an older lock\n"


@pytest.fixture(scope="module")
def good(store: Store, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One lock from a good server, after which the store knows the hash of the metadata that is asked for."""
    with ReplayServer(store, metadata=ADVERTISED) as server:
        assert lock(tmp_path_factory.mktemp("good"), server.url, *ASKED).status == 0


def lock(tmp_path: Path, index: str, *words: str) -> Run:
    """A lock with a cold cache, in a folder that holds older lockfiles."""
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    for name in ("requirements.txt", "pylock.toml"):
        (out / name).write_text(KEPT)
    return stackfix("lock", *words, "--index-url", index, "-o", out, "--format", "requirements", "--format", "pylock",
                    cwd=tmp_path, cache=tmp_path / "cache", env=IMPATIENT, timeout=PATIENCE)


def assert_one_clear_error(run: Run, tmp_path: Path, *, status: int, names: str) -> None:
    assert run.status == status, run
    assert "Traceback" not in run.stderr, run
    errors = [line for line in run.stderr.splitlines() if line.startswith("error")]
    assert len(errors) == 1, run
    assert names in run.stderr, run
    assert run.stdout == "", run
    left = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert left == ["pylock.toml", "requirements.txt"]
    assert {(tmp_path / "out" / name).read_text() for name in left} == {KEPT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """One way to be a bad server."""

    name: str
    faults: tuple[Fault, ...] = ()
    edits: tuple[Edit, ...] = ()        # of the page of filelock
    metadata: str = ADVERTISED
    wheels: Mapping[str, bytes] | None = None   # all of filelock that there is
    names: str = "filelock"             # what the error must name


def half(body: bytes) -> bytes:
    return body[: len(body) // 2]


PAGE, METADATA = "/simple/filelock/", "/files/filelock/*.metadata"
WHEEL = "filelock-4.0.0-py3-none-any.whl"
REFUSED = (
    Bad(name="truncated JSON", faults=(Fault(path=PAGE, body=half),)),
    Bad(name="JSON of another kind", faults=(Fault(path=PAGE, body=lambda body: b"[1, 2, 3]"),)),
    Bad(name="no JSON at all", faults=(Fault(path=PAGE, body=lambda body: b"<html>login</html>"),)),
    Bad(name="cut off", faults=(Fault(path=PAGE, cut=100),)),
    Bad(name="503 for ever", faults=(Fault(path=PAGE, status=503),)),
    Bad(name="403", faults=(Fault(path=PAGE, status=403),)),
    Bad(name="429 for an hour", faults=(Fault(path=PAGE, status=429, headers=(("Retry-After", "3600"),)),)),
    Bad(name="slow drip", faults=(Fault(path=PAGE, drip=0.5),)),
    Bad(name="wrong hash of metadata", faults=(Fault(path=METADATA, body=lambda body: body + b"\nX-Evil: yes"),)),
    Bad(name="metadata of another project", wheels={WHEEL: make_wheel(WHEEL, name="somethingelse")}),
    Bad(name="metadata of another version", wheels={WHEEL: make_wheel(WHEEL, version="0.0.1")}),
    Bad(name="metadata that is none", faults=(Fault(path=METADATA, body=lambda body: b"\x00" * 100),)),
    Bad(name="no metadata in the wheel", wheels={WHEEL: zip_bytes({"filelock.py": ""})}, metadata=UNADVERTISED),
    Bad(name="a wheel that is no archive", wheels={WHEEL: b"not a zip archive" * 50}, metadata=UNADVERTISED,
        faults=(Fault(path=METADATA, status=404),)),
    Bad(name="page of another project", edits=(lambda page: page.update(name="somethingelse"),)),
)


@pytest.mark.parametrize("bad", REFUSED, ids=lambda bad: bad.name)
def test_one_clear_error_and_nothing_written(bad: Bad, tmp_path: Path, store: Store, good: None) -> None:
    wheels = {} if bad.wheels is None else {"filelock": bad.wheels}
    with ReplayServer(store, metadata=bad.metadata, faults=bad.faults, edits={"filelock": bad.edits},
                      projects=wheels) as server:
        run = lock(tmp_path, server.url, *ASKED)
    assert_one_clear_error(run, tmp_path, status=3, names=bad.names)


PATIENT = (
    Bad(name="429 once, then well", faults=(Fault(path=PAGE, times=1, status=429, headers=(("Retry-After", "1"),)),)),
    Bad(name="503 once, then well", faults=(Fault(path=PAGE, times=1, status=503),)),
    Bad(name="cut off once", faults=(Fault(path=PAGE, times=1, cut=100),)),
    Bad(name="metadata 404 unadvertised", faults=(Fault(path=METADATA, status=404),), metadata=UNADVERTISED),
)


@pytest.mark.parametrize("bad", PATIENT, ids=lambda bad: bad.name)
def test_what_passes_by_itself_is_waited_for(bad: Bad, tmp_path: Path, store: Store) -> None:
    with ReplayServer(store, metadata=bad.metadata, faults=bad.faults) as server:
        run = lock(tmp_path, server.url, *ASKED)
    assert run.status == 0, run
    assert "filelock==" in (tmp_path / "out" / "requirements.txt").read_text()


def test_advertised_metadata_that_is_not_there_is_read_from_the_wheel_or_is_an_error(
    tmp_path: Path, store: Store,
) -> None:
    with ReplayServer(store, metadata=ADVERTISED, faults=(Fault(path=METADATA, status=404),)) as server:
        run = lock(tmp_path, server.url, *ASKED)
    if run.status == 0:
        assert "filelock==" in (tmp_path / "out" / "requirements.txt").read_text()
    else:
        assert_one_clear_error(run, tmp_path, status=3, names="filelock")


def escaping(filename: str) -> Edit:
    """An edit that renames the newest wheel of the page so that its name leaves the folder."""
    def edit(page: dict[str, object]) -> None:
        rows = page["files"]
        assert isinstance(rows, list)
        wheels = [row for row in rows if row["filename"].endswith(".whl")]
        for row in wheels:
            row["filename"] = filename.format(row["filename"])
    return edit


@pytest.mark.parametrize("form", ["../{}", "../../../../tmp/{}", "/etc/{}", "..\\{}", "a/../{}"])
def test_file_names_that_leave_the_folder_are_never_used(form: str, tmp_path: Path, store: Store) -> None:
    with ReplayServer(store, metadata=ADVERTISED, edits={"filelock": (escaping(form),)}) as server:
        run = lock(tmp_path, server.url, *ASKED)
    written = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*")}
    assert written <= {"out", "cache"}
    if run.status == 0:     # an sdist may be left
        assert ".." not in (tmp_path / "out" / "pylock.toml").read_text()
    else:
        assert_one_clear_error(run, tmp_path, status=run.status, names="filelock")


def test_a_file_without_hash_is_never_pinned(tmp_path: Path, store: Store) -> None:
    edit = altered(lambda name: True, hashes={})
    with ReplayServer(store, metadata=ADVERTISED, edits={"filelock": (edit,)}) as server:
        run = lock(tmp_path, server.url, *ASKED)
    assert run.status in {1, 3}, run
    assert_one_clear_error(run, tmp_path, status=run.status, names="filelock")


def test_nobody_listens(tmp_path: Path) -> None:
    run = lock(tmp_path, "http://127.0.0.1:9/simple", *ASKED)
    assert_one_clear_error(run, tmp_path, status=3, names="127.0.0.1:9")


def test_offline_with_an_empty_cache(tmp_path: Path, index: ReplayServer) -> None:
    run = lock(tmp_path, index.url, *ASKED, "--offline")
    assert_one_clear_error(run, tmp_path, status=3, names="--offline")


def test_offline_with_a_filled_cache_gives_the_same_bytes(tmp_path: Path, index: ReplayServer) -> None:
    assert lock(tmp_path, index.url, *ASKED).status == 0
    first = (tmp_path / "out" / "pylock.toml").read_bytes()
    asked = len(index.requests)
    again = lock(tmp_path, index.url, *ASKED, "--offline")
    assert again.status == 0, again
    assert (tmp_path / "out" / "pylock.toml").read_bytes() == first
    assert len(index.requests) == asked


def broken_requirements(folder: Path) -> tuple[str, ...]:
    (folder / "bad.in").write_text("numpy\ntransformers>=>4\n")
    return ("--torch", "2.3", "-r", "bad.in")


def broken_project(folder: Path) -> tuple[str, ...]:
    (folder / "stackfix.toml").write_text("torch = [unclosed\n")
    return ()


def missing_matrix(folder: Path) -> tuple[str, ...]:
    return ("--torch", "2.3", "--matrix", str(folder / "nowhere"))


def plain(*words: str) -> Callable[[Path], tuple[str, ...]]:
    return lambda folder: words


@pytest.mark.parametrize(("words", "names"), [
    (plain("--torch", "not a version"), "--torch"),
    (plain("--torch", "2.3", "--cuda", "twelve"), "--cuda"),
    (plain("--torch", "2.3", "--python", "snake"), "--python"),
    (plain("--torch", "2.3", "--platform", "win-3.11"), "--platform"),
    (plain("--torch", "2.3", "--with", "numpy>>2"), "numpy>>2"),
    (plain("--torch", "2.3", "--format", "cookbook"), "cookbook"),
    (plain("--torch", "2.3", "--gpu-arch", "sm_banana"), "sm_banana"),
    (plain("--torch", "2.3", "--driver", "newest"), "--driver"),
    (plain("--torch", "2.3", "--exclude-newer", "yesterday"), "--exclude-newer"),
    (plain("--torch", "2.3", "-r", "nowhere.in"), "nowhere.in"),
    (broken_requirements, "bad.in"),
    (broken_project, "stackfix.toml"),
    (missing_matrix, "nowhere"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_bad_input_is_one_clear_error(
    words: Callable[[Path], tuple[str, ...]], names: str, tmp_path: Path, index: ReplayServer,
) -> None:
    run = lock(tmp_path, index.url, *words(tmp_path))
    assert_one_clear_error(run, tmp_path, status=2, names=names)
