"""An unchanged request is answered from what was kept, in the same words; whatever changed leads to the whole way."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stackfix.cli import early, early_state, lock_answer
from stackfix.cli import early_said as said_early
from stackfix.cli.early import answered, escaped, unescaped
from stackfix.cli.early_state import steers
from stackfix.cli.early_words import cache_folder
from stackfix.sources.cache import Cache
from stackfix.sources.cache_place import default_cache_dir
from tests.cli_world import ASKED, Said, Say, World, settle, speaker
from tests.replay.wheels import make_wheel
from tests.sources_servers import JSON, path_of

ROOT = Path(__file__).resolve().parent.parent
LOCK = ("lock", *ASKED, "--format", "requirements")
SPEAKING = "Cache-Control: max-age=600"
LONG_AGO = 100.0        # seconds before the tests: what is read was not changed while a command ran


@dataclass(kw_only=True)
class Dated(World):
    """The small index, saying how long its pages may be used."""

    says: str = SPEAKING

    def reply(self, head: str) -> bytes:
        answer = super().reply(head)
        if self.says and path_of(head).startswith("/simple/"):
            return answer.replace(b"\r\nContent-Length", f"\r\n{self.says}\r\nContent-Length".encode(), 1)
        return answer


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dated]:
    with Dated().served() as world:
        assert isinstance(world, Dated)
        folder = tmp_path / "project"
        folder.mkdir()
        settle(monkeypatch, folder, world.url)
        monkeypatch.setenv("STACKFIX_CACHE_DIR", str(tmp_path / "cache"))
        yield world


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    return speaker(capfd)


@pytest.fixture
def early_said(capfd: pytest.CaptureFixture[str]) -> Callable[..., Said | None]:
    """What the quick way says to a command line; None where the whole way has to be gone."""
    def ask(*words: str | Path) -> Said | None:
        capfd.readouterr()
        status = answered([str(word) for word in words])
        captured = capfd.readouterr()
        if status is None:
            assert (captured.out, captured.err) == ("", ""), "nothing is said before the whole way is gone"
            return None
        return Said(status=status, out=captured.out, err=captured.err)

    return ask


Early = Callable[..., "Said | None"]


def written_before(path: str, text: str) -> None:
    """A file that was there long before the command began."""
    Path(path).write_text(text)
    os.utime(path, (time.time() - LONG_AGO,) * 2)


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The change time of a file cannot be set: a test's own files count as old."""
    monkeypatch.setattr(lock_answer, "TICK", -LONG_AGO)


# -- the same answer -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("more", [(), ("-q",), ("--json",), ("--with", "idna"), ("--offline",)])
def test_the_same_request_gets_the_same_answer(
    more: tuple[str, ...], world: Dated, say: Say, early_said: Early,
) -> None:
    if "--offline" in more:
        assert say(*LOCK).status == 0
    first = say(*LOCK, *more)
    content = Path("requirements.txt").read_bytes()
    second = say(*LOCK, *more)          # over its own lock: another request than the first
    assert first.status == second.status == 0
    asked = len(world.asked)
    assert early_said(*LOCK, *more) == second
    assert Path("requirements.txt").read_bytes() == content
    if "--offline" not in more:
        Path("requirements.txt").unlink()
        assert early_said(*LOCK, *more) == first
        assert Path("requirements.txt").read_bytes() == content
    assert len(world.asked) == asked, "nobody was asked"


def test_of_several_targets_too_and_never_for_another_macos(world: Dated, say: Say, early_said: Early) -> None:
    for tag in ("macosx_11_0_arm64", "macosx_15_0_arm64"):
        name = f"torch-2.3.1-cp311-none-{tag}.whl"
        world.projects["torch"][name] = make_wheel(name, requires=("filelock",))
    words = (*LOCK, "--platform", "linux-64", "--platform", "osx-arm64")
    assert say(*words, "--macos", "14").status == 0
    said = say(*words, "--macos", "14")
    content = Path("requirements-cp311-osx-arm64.txt").read_text()
    assert early_said(*words, "--macos", "14") == said
    assert early_said(*words, "--macos", "15") is None
    assert early_said(*LOCK, "--platform", "linux-64", "--platform", "linux-64-cpu") is None
    assert say(*words, "--macos", "15").status == 0
    assert Path("requirements-cp311-osx-arm64.txt").read_text() != content


def test_a_platform_or_a_macos_that_a_project_file_changes_is_seen(world: Dated, say: Say, early_said: Early) -> None:
    for tag in ("macosx_11_0_arm64", "macosx_15_0_arm64"):
        name = f"torch-2.3.1-cp311-none-{tag}.whl"
        world.projects["torch"][name] = make_wheel(name, requires=("filelock",))
    text = 'torch = "2.3"\npython = "3.11"\nno-flash-attn = true\nformat = "requirements"\nplatform = "osx-arm64"\n'
    written_before("stackfix.toml", f'{text}macos = "14.0"\n')
    for _ in range(2):
        said = say("lock")
        assert said.status == 0, said
    assert early_said("lock") == said
    content = Path("requirements.txt").read_text()
    written_before("stackfix.toml", f'{text}macos = "15.0"\n')
    assert early_said("lock") is None
    assert say("lock").status == 0
    assert Path("requirements.txt").read_text() != content
    written_before("stackfix.toml", f'{text.replace("osx-arm64", "linux-64")}macos = "15.0"\n')
    assert early_said("lock") is None


def test_offline_the_answer_of_channels_is_given_again_too(
    world: Dated, say: Say, early_said: Early, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert world.says
    condarc = tmp_path / "condarc"
    condarc.write_text("channels: [conda-forge]\n")
    monkeypatch.setenv("CONDARC", str(condarc))
    words = ("lock", *ASKED)
    assert say(*words, "--format", "requirements").status == 0
    for _ in range(3):
        said = say(*words, "--offline")
        assert said.status == 0, said
    assert "conda-lock.yml" in said.out
    assert early_said(*words, "--offline") == said
    condarc.write_text("channels: [conda-forge, nodefaults]\n")
    assert early_said(*words, "--offline") is None


def test_in_another_folder_it_is_the_same_answer(world: Dated, say: Say, early_said: Early, tmp_path: Path) -> None:
    assert world.says
    first = say(*LOCK, "-o", tmp_path / "a")
    other = early_said(*LOCK, "-o", tmp_path / "b" / "c")
    assert other is not None
    assert other.err == first.err
    assert other.out == f"{tmp_path}/b/c/requirements.txt\n"
    assert (tmp_path / "b/c/requirements.txt").read_bytes() == (tmp_path / "a/requirements.txt").read_bytes()


def test_a_check_is_answered_too(world: Dated, say: Say, early_said: Early) -> None:
    assert world.says
    assert say(*LOCK).status == 0
    first = say(*LOCK, "--check")
    assert first.status == 0
    assert early_said(*LOCK, "--check") == first
    path = Path("requirements.txt")
    text = path.read_text().replace("filelock==3.15.4", "filelock==3.12.0")
    path.write_text(text)
    assert early_said(*LOCK, "--check") is None
    second = say(*LOCK, "--check")
    assert (second.status, "filelock" in second.out) == (1, True)
    assert early_said(*LOCK, "--check") == second
    assert path.read_text() == text


def test_stacks_of_a_project_file(world: Dated, say: Say, early_said: Early) -> None:
    assert world.says
    written_before("stackfix.toml", """
torch = "2.3"
python = ["3.11"]
flash-attn = false
format = ["requirements"]
[stacks.train]
with = ["idna"]
[stacks.serve]
output = "serving"
""")
    assert say("lock").status == 0
    second = say("lock")
    assert early_said("lock") == second
    serving = Path("serving/requirements-serve.txt")
    text = serving.read_text()
    serving.write_text(text.replace("filelock==3.15.4", "filelock==3.12.0"))
    assert early_said("lock") is None
    serving.write_text(text)
    assert early_said("lock") == second
    written_before("stackfix.toml", Path("stackfix.toml").read_text().replace('["idna"]', '["idna<3.7"]'))
    assert early_said("lock") is None


# -- what changed ----------------------------------------------------------------------------------------------------

def a_variable(world: Dated) -> None:
    os.environ["UV_EXTRA_INDEX_URL"] = f"{world.url}/other"


def a_variable_of_a_requirement_file(_: Dated) -> None:
    os.environ["MINE"] = "3.7"


def a_requirement_file(_: Dated) -> None:
    Path("requirements.in").write_text("idna<3.7\n")


def a_requirement_file_that_went(_: Dated) -> None:
    Path("requirements.in").unlink()


def the_lock(_: Dated) -> None:
    path = Path("requirements.txt")
    path.write_text(path.read_text().replace("idna==3.7", "idna==3.6"))


def a_link_in_the_place_of_the_lock(_: Dated) -> None:
    path = Path("requirements.txt")
    path.replace("other.txt")
    path.symlink_to("other.txt")


def another_lock(_: Dated) -> None:
    Path("pylock.toml").write_text("")


def a_netrc(_: Dated) -> None:
    Path(os.environ["HOME"], ".netrc").write_text("machine x login a password b\n")


def another_page_in_the_cache(world: Dated) -> None:
    cache, url = Cache(Path(os.environ["STACKFIX_CACHE_DIR"])), f"{world.url}/sympy/"
    cache.keep_page(url, final=url, headers={"content-type": JSON, "cache-control": "max-age=600"}, packed="0" * 64,
                    content=world.page("sympy", {}))


def a_page_that_is_gone(world: Dated) -> None:
    Path(Cache(Path(os.environ["STACKFIX_CACHE_DIR"])).page_entry(f"{world.url}/idna/")).unlink()


def the_matrix(_: Dated) -> None:
    os.utime("matrix/closures.toml")


def a_new_file_of_the_matrix(_: Dated) -> None:
    Path("matrix/abi").mkdir()


def a_damaged_answer(_: Dated) -> None:
    for path in Path(os.environ["STACKFIX_CACHE_DIR"], "answers-v1").iterdir():
        if not path.suffix:
            path.write_bytes(path.read_bytes().replace(b"said", b"said ", 1))


def no_answer(_: Dated) -> None:
    for path in Path(os.environ["STACKFIX_CACHE_DIR"], "answers-v1").iterdir():
        path.unlink()


CHANGES = (
    a_variable, a_variable_of_a_requirement_file, a_requirement_file, a_requirement_file_that_went, the_lock,
    a_link_in_the_place_of_the_lock, another_lock, a_netrc, another_page_in_the_cache, a_page_that_is_gone, the_matrix,
    a_new_file_of_the_matrix, a_damaged_answer, no_answer,
)


def copy_of_the_matrix() -> None:
    """The files of the matrix, without the almanac."""
    Path("matrix").mkdir()
    for path in (ROOT / "matrices").glob("*.toml"):
        Path("matrix", path.name).write_bytes(path.read_bytes())


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_whatever_changed_is_decided_anew(
    change: Callable[[Dated], None], world: Dated, say: Say, early_said: Early, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MINE", "3.6")
    monkeypatch.setenv("UV_EXTRA_INDEX_URL", "")
    copy_of_the_matrix()
    written_before("requirements.in", "idna>=${MINE}\n")
    words = (*LOCK, "-r", "requirements.in", "--matrix", "matrix")
    assert say(*words).status == 0
    assert say(*words).status == 0
    assert early_said(*words) is not None
    change(world)
    assert early_said(*words) is None


def test_another_command_line_is_another_request(world: Dated, say: Say, early_said: Early) -> None:
    assert world.says
    assert say(*LOCK).status == 0
    others: tuple[tuple[str, ...], ...] = (
        (*LOCK, "--with", "idna"), LOCK[1:], (*LOCK[:-1], "pylock"), (*LOCK, "-o", "elsewhere"), (), ("lock",))
    for words in others:
        assert early_said(*words) is None


@pytest.mark.parametrize(("more", "files"), [
    (("-v",), {}), (("--upgrade-package", "idna", "--with", "idna"), {}), ((), {"requirements.in": "idna\n"}),
])
def test_what_cannot_be_told_is_not_kept(
    more: tuple[str, ...], files: dict[str, str], world: Dated, say: Say, early_said: Early,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With -v more is said than is kept; a file that was written while the command ran may have been read before."""
    assert world.says
    monkeypatch.setattr(lock_answer, "TICK", 0.05)
    monkeypatch.setattr(lock_answer, "module_files", lambda: iter(()))
    for name, text in files.items():
        Path(name).write_text(text)
        os.utime(name, (time.time() + 1,) * 2)
    words = (*LOCK, *more, *(word for name in files for word in ("-r", name)))
    for _ in range(2):
        assert say(*words).status == 0
    assert early_said(*words) is None


def test_a_failure_is_never_kept(world: Dated, say: Say, early_said: Early) -> None:
    del world.projects["idna"]
    for _ in range(2):
        assert say(*LOCK, "--with", "idna").status == 1
    assert early_said(*LOCK, "--with", "idna") is None


# -- pages that have to be asked for ---------------------------------------------------------------------------------

@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets the clock go on."""
    def go_on(seconds: float) -> None:
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + seconds)

    return go_on


@pytest.mark.parametrize("says", ["", "Cache-Control: no-cache", 'ETag: "a"'])
def test_an_index_that_lets_nothing_be_used_unasked_is_asked_for_its_pages_alone(
    says: str, world: Dated, say: Say, early_said: Early,
) -> None:
    world.says = says
    assert say(*LOCK).status == 0
    second = say(*LOCK)
    del world.asked[:]
    assert early_said(*LOCK) == second
    assert world.asked
    assert all(path.startswith("/simple/") for path in world.asked)
    assert len(world.asked) == len(set(world.asked))


def test_pages_are_asked_for_when_their_time_is_over_and_then_used_again(
    world: Dated, say: Say, early_said: Early, later: Callable[[float], None],
) -> None:
    assert say(*LOCK).status == 0
    second = say(*LOCK)
    later(1000)
    del world.asked[:]
    assert early_said(*LOCK) == second
    asked = len(world.asked)
    assert asked
    assert early_said(*LOCK) == second
    assert len(world.asked) == asked, "their time was renewed"


@pytest.mark.parametrize("says", [SPEAKING, ""])
def test_another_request_that_renewed_the_pages_changes_nothing(
    says: str, world: Dated, say: Say, early_said: Early, tmp_path: Path,
) -> None:
    world.says = says
    for _ in range(2):
        second = say(*LOCK)
    for page in (tmp_path / "cache" / "pages-v1").iterdir():
        content = page.read_bytes()
        page.unlink()
        page.write_bytes(content)
    asked = len(world.asked)
    assert early_said(*LOCK) == second
    assert (len(world.asked) == asked) == bool(says)


def test_a_clock_that_went_back_is_not_trusted(
    world: Dated, say: Say, early_said: Early, later: Callable[[float], None],
) -> None:
    for _ in range(2):
        assert say(*LOCK).status == 0
    later(-1000)
    del world.asked[:]
    assert early_said(*LOCK) is not None
    assert world.asked


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n", b"nonsense\r\n\r\n",
])
def test_a_page_that_is_not_as_it_was_leads_to_the_whole_way(
    answer: bytes, world: Dated, say: Say, early_said: Early, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    world.says = ""
    for _ in range(2):
        assert say(*LOCK).status == 0
    world.answers["/simple/sympy/"] = answer
    assert early_said(*LOCK) is None


def test_a_new_file_on_a_page_is_seen(world: Dated, say: Say, early_said: Early) -> None:
    world.says = ""
    for _ in range(2):
        assert say(*LOCK).status == 0
    files = world.projects["sympy"]
    files["sympy-3.0-py3-none-any.whl"] = next(iter(files.values()))
    assert early_said(*LOCK) is None


# -- others in the cache folder, and odd surroundings ----------------------------------------------------------------

def answers_folder() -> Path:
    return Path(os.environ["STACKFIX_CACHE_DIR"], "answers-v1")


@pytest.mark.parametrize("which", ["folder", "entry"])
def test_what_others_can_write_is_not_given(which: str, world: Dated, say: Say, early_said: Early) -> None:
    assert world.says
    for _ in range(2):
        assert say(*LOCK).status == 0
    assert early_said(*LOCK) is not None
    for path in [answers_folder()] if which == "folder" else list(answers_folder().iterdir()):
        path.chmod(path.stat().st_mode | 0o022)
    assert early_said(*LOCK) is None


def test_a_link_in_place_of_the_answers_is_not_tidied(
    world: Dated, say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert world.says
    monkeypatch.setattr(lock_answer, "MOST", 0)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo").write_text("")
    (tmp_path / "cache").mkdir()
    answers_folder().symlink_to(tmp_path / "mine")
    assert say(*LOCK).status == 0
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["photo"]


def test_a_link_in_place_of_a_new_entry_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / f"entry.{os.getpid()}").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="entry"):
        early.put(str(tmp_path / "entry"), b"other")
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["../x/requirements.txt", "/requirements.txt", ".bashrc", "requirements.sh"])
def test_only_locks_are_written(name: str) -> None:
    with pytest.raises(early_state.Changed):
        early_state.refuse_other_names(name)


@pytest.mark.parametrize("more", [(), ("--check",)])
def test_a_proof_in_another_folder_counts(
    more: tuple[str, ...], world: Dated, say: Say, early_said: Early, tmp_path: Path,
) -> None:
    assert world.says
    for _ in range(2):
        assert say(*LOCK, "-o", tmp_path / "a").status == 0
    assert say(*LOCK, *more, "-o", tmp_path / "a").status == 0
    (tmp_path / "b").mkdir()
    (tmp_path / "b/requirements.txt").write_bytes((tmp_path / "a/requirements.txt").read_bytes())
    assert early_said(*LOCK, *more, "-o", tmp_path / "b") is not None
    (tmp_path / "b/stack-proof.json").write_text("{}")
    assert early_said(*LOCK, *more, "-o", tmp_path / "b") is None


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
@pytest.mark.parametrize("inside", [False, True])
def test_a_name_that_is_no_text_is_no_crash(
    inside: bool, world: Dated, say: Say, tmp_path: Path,
) -> None:
    assert world.says
    odd = os.fsdecode(b"requirements\xff.txt")
    if inside:
        Path(odd).write_text("")
    assert say(*LOCK, *(() if inside else ("-q", "-o", tmp_path / odd))).status == 0


def test_a_file_that_became_a_pipe_is_not_waited_for(world: Dated, say: Say, early_said: Early) -> None:
    assert world.says
    written_before("requirements.in", "idna\n")
    for _ in range(2):
        assert say(*LOCK, "-r", "requirements.in").status == 0
    assert early_said(*LOCK, "-r", "requirements.in") is not None
    Path("requirements.in").unlink()
    os.mkfifo("requirements.in")
    assert early_said(*LOCK, "-r", "requirements.in") is None


def test_colour_that_is_asked_for_is_the_same_both_ways(world: Dated, say: Say, early_said: Early) -> None:
    assert world.says
    say(*LOCK)
    said = say(*LOCK, "--color", "always")
    said = say(*LOCK, "--color", "always")
    assert "\x1b[" in said.err
    assert early_said(*LOCK, "--color", "always") == said


@pytest.mark.parametrize(("encoding", "text", "fits"), [
    ("ascii", "torch \xb7 CUDA", False), ("latin-1", "torch \xb7 CUDA", False), ("utf-8", "torch \xb7 CUDA", True),
    ("ascii", "torch", True), ("utf-8", os.fsdecode(b"\xff"), False),
])
def test_what_a_stream_would_write_otherwise_is_told_the_whole_way(encoding: str, text: str, *, fits: bool) -> None:
    with io.TextIOWrapper(io.BytesIO(), encoding=encoding) as stream:
        if fits:
            said_early.refuse_unlike(stream, text)
            return
        with pytest.raises((early_state.Changed, ValueError)):
            said_early.refuse_unlike(stream, text)


# -- what may steer a lock -------------------------------------------------------------------------------------------

STAGES = ("cli", "sources", "request", "resolve", "conda", "matrix", "write", "abi")
NO_INFLUENCE = {        # on what a lock says: tokens change limits, python_full_version is of a marker
    "GITHUB_TOKEN", "GH_TOKEN", "PATH", "LD_LIBRARY_PATH", "SHELL", "python_full_version",
}


def names_asked(source: str) -> Iterator[str]:
    """Names of variables that a module asks its environment for by a literal."""
    for node in ast.walk(ast.parse(source)):
        name: ast.expr | None = None
        if isinstance(node, ast.Subscript) and "environ" in ast.unparse(node.value):
            name = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and (
                "environ" in ast.unparse(node.func.value)) and node.args:
            name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value


def test_every_variable_that_a_lock_asks_for_counts() -> None:
    paths = [path for stage in STAGES for path in (ROOT / "stackfix" / stage).glob("*.py")
             if not path.name.startswith(("repair", "run", "probe", "check", "undo", "sync", "explain"))]
    asked = {name for path in paths for name in names_asked(path.read_text(encoding="utf-8"))}
    assert {"NETRC", "CONDA_PREFIX", "UV_NO_CONFIG"} <= asked
    assert {name for name in asked if not steers(name)} <= NO_INFLUENCE


@pytest.mark.parametrize("environ", [
    {}, {"STACKFIX_CACHE_DIR": "/x"}, {"STACKFIX_CACHE_DIR": ""}, {"XDG_CACHE_HOME": "/y"}, {"XDG_CACHE_HOME": "y"},
])
def test_the_cache_is_where_the_whole_way_has_it(environ: dict[str, str]) -> None:
    assert Path(cache_folder(environ)) == default_cache_dir(environ, Path.home())


@pytest.mark.parametrize("text", ["", "a\tb\nc", "\\t", "\\\\n\\", "tab\t\\t\r"])
def test_text_survives_being_kept(text: str) -> None:
    assert unescaped(escaped(text)) == text
    assert "\t" not in escaped(text)
    assert "\n" not in escaped(text)


OPENED = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" and args[1] != "w" else None)
sys.argv = ["stackfix", *json.loads({words!r})]
import stackfix.cli
try:
    stackfix.cli.main()
except SystemExit as end:
    sys.stderr.write("OPENED " + json.dumps(["click" in sys.modules, end.code, sorted(set(opened))]))
"""


def in_a_process(*words: str) -> Any:
    """Whether click was imported, the exit status, and the files that were opened."""
    code = OPENED.format(words=json.dumps(words))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    return json.loads(done.stderr.rpartition("OPENED ")[2])


def test_every_file_that_a_lock_opens_is_looked_at_when_its_answer_is_given_again(world: Dated, tmp_path: Path) -> None:
    assert world.says
    written_before("requirements.in", "idna\n")
    time.sleep(0.2)         # more than the tick of the file system
    words = (*LOCK, "-r", "requirements.in", "-q")
    heavy, status, opened = in_a_process(*words)
    assert (heavy, status) == (True, 0)
    asked = early.Asked(words)
    kept = [unescaped(part) for path in (tmp_path / "cache" / "answers-v1").iterdir() if not path.suffix
            for line in path.read_text().split("\n") for part in line.split("\t")]
    assert asked.cache == str(tmp_path / "cache")
    elsewhere = (str(tmp_path / "cache"), "/dev/", "/proc/", str(Path(sys.base_prefix)), os.devnull)
    code = (".py", ".pyc", ".so", ".columns", "METADATA", ".pth", ".txt")
    files = {path for path in opened if path.startswith("/") and not path.startswith(elsewhere)
             and not path.endswith(code) and Path(path).is_file()}
    assert files - set(kept) <= {path for path in files if "site-packages" in path}
    assert {str(ROOT / "matrices/torch.toml")} <= set(kept)
    assert str(Path("requirements.in").resolve()) in kept
    heavy, status, opened = in_a_process(*words)
    assert status == 0


def test_the_quick_way_imports_nothing_heavy(world: Dated) -> None:
    assert world.says
    time.sleep(0.2)
    for _ in range(3):
        last = in_a_process(*LOCK, "-q")
    assert last[:2] == [False, 0]
