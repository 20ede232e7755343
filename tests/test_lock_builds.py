"""`lock --allow-builds`: locks of sdists whose requirements only a build can tell, and the refusal without it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.resolve.closure import TooManyRounds
from stackfix.sources.sdist_build_python import find_python
from tests.cli_world import Say, World
from tests.replay.wheels import make_wheel
from tests.sdists import sdist

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
NAME = "built-1.0.tar.gz"
PYTHONS = ("--python", HERE)
STACK = ("--torch", "2.3", "--no-flash-attn", "--format", "requirements")
BUILDING = f"building built 1.0 for Python {HERE} to read its requirements: its code runs"


@pytest.fixture
def stack(world: World) -> tuple[str, ...]:
    """Options of a stack for this Python, or for the newest that torch 2.3 has; `built` is on the index as an sdist."""
    offer(world, sdist("built", requires=["idna<3.7", "nothing; python_version < '3'"]))
    return STACK


@pytest.fixture(autouse=True)
def python_of_torch() -> None:
    if sys.version_info >= (3, 13):
        pytest.skip("torch 2.3 has no wheel for this Python, and no other may be here to build with")


def offer(world: World, content: bytes, *, version: str = "1.0") -> None:
    world.projects.setdefault("built", {})[f"built-{version}.tar.gz"] = content


def test_without_the_option_nothing_is_run_and_the_refusal_names_it(world: World, say: Say, tmp_path: Path) -> None:
    offer(world, sdist("built", before=f"pathlib.Path({str(tmp_path / 'ran')!r}).touch()"))
    for words in ((), ("--allow-builds", "other")):
        said = say("lock", *STACK, *PYTHONS, "--with", "built", *words)
        assert said.status == 1
        assert "error: built 1.0 (asked for by --with built) has no usable wheel" in said.err
        assert "--allow-builds built builds the sdist to read its requirements, which runs its code here" in said.err
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "requirements.txt").exists()


@pytest.mark.parametrize("word", ["Built", ":all:"])
def test_a_lock_of_what_a_build_told(world: World, stack: tuple[str, ...], say: Say, tmp_path: Path, word: str) -> None:
    said = say("lock", *stack, *PYTHONS, "--with", "built", "--allow-builds", word)
    assert said.status == 0, said.err
    text = (tmp_path / "requirements.txt").read_text()
    digest = hashlib.sha256(world.projects["built"][NAME]).hexdigest()
    assert f"built==1.0 \\\n    --hash=sha256:{digest}\n    # via --with built\n" in text
    assert "idna==3.6 " in text                         # the newest, 3.7, is beyond what the build said
    assert f"--with built --allow-builds {word} --format" in text.replace("\n#", "")
    assert f"{BUILDING}\n" in said.err
    assert "note: the requirements of built 1.0 were read by building its sdist on linux-" in said.err
    assert "the lock does not pin what that build itself needs" in said.err


def test_an_offer_allows_what_the_request_did(world: World, stack: tuple[str, ...], say: Say) -> None:
    said = say("lock", *stack, *PYTHONS, "--with", "built", "--with", "idna>=3.7", "--allow-builds", "built")
    assert said.status == 1
    assert "built 1.0 requires idna<3.7 [metadata of built-1.0.tar.gz]" in said.err
    assert "--with built --allow-builds built" in said.err


def test_the_project_file_may_allow_it(world: World, stack: tuple[str, ...], say: Say, tmp_path: Path) -> None:
    (tmp_path / "stackfix.toml").write_text(
        f'torch = "2.3"\nflash-attn = false\npython = "{HERE}"\nformat = "requirements"\nwith = ["built"]\n'
        'allow-builds = ["built"]\n')
    allowed = say("lock")
    assert allowed.status == 0
    assert f"{BUILDING}, as allow-builds in stackfix.toml allows\n" in allowed.err
    assert "built==1.0" in (tmp_path / "requirements.txt").read_text()
    assert say("lock", "--check").status == 0
    (tmp_path / "stackfix.toml").write_text('torch = "2.3"\nallow-builds = ["built>1", ""]\n')
    said = say("lock")
    assert said.status == 2
    assert "allow-builds: 'built>1' is no project's name" in said.err


@pytest.mark.parametrize(("words", "environ", "reason"), [
    (("--allow-builds", "built==1.0"), "", "--allow-builds built==1.0: is no project's name"),
    (("--allow-builds", "all:"), "", "--allow-builds all:: is no project's name"),
    (("--allow-builds", ""), "", "--allow-builds: is empty"),
    (("--allow-builds", "built"), "soon", "STACKFIX_BUILD_SECONDS=soon: is no number of seconds"),
    (("--allow-builds", "built"), "nan", "STACKFIX_BUILD_SECONDS=nan: is no number of seconds"),
    (("--allow-builds", "built"), "-1", "STACKFIX_BUILD_SECONDS=-1: is no number of seconds"),
])
def test_what_makes_no_sense_is_refused(
    world: World, stack: tuple[str, ...], say: Say, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...],
    environ: str, reason: str,
) -> None:
    if environ:
        monkeypatch.setenv("STACKFIX_BUILD_SECONDS", environ)
    said = say("lock", *stack, *PYTHONS, "--with", "built", *words)
    assert (said.status, said.err.count("error:")) == (2, 1)
    assert reason in said.err
    assert not [path for path in world.asked if path.startswith("/files/built")]


def test_it_is_built_once_and_kept(world: World, stack: tuple[str, ...], say: Say, tmp_path: Path) -> None:
    words = ("lock", *stack, *PYTHONS, "--with", "built", "--allow-builds", "built")
    first = say(*words)
    text = (tmp_path / "requirements.txt").read_text()
    for again in ((), ("--offline",), ("-o", "other")):
        said = say(*words, *again)
        assert said.status == 0, said.err
        assert BUILDING not in said.err
    assert first.err.count(BUILDING) == 1
    assert (tmp_path / "requirements.txt").read_text() == text
    other = say(*words, "--cache-dir", tmp_path / "empty", "--offline")
    assert other.status == 3


def test_a_failed_build_ends_the_lock_and_shows_what_it_said(
    world: World, say: Say, tmp_path: Path,
) -> None:
    offer(world, sdist("built", during="print('so far so good'); raise OSError('the compiler is missing')"))
    said = say("lock", *STACK, *PYTHONS, "--with", "built", "--allow-builds", "built", "-q")
    assert said.status == 3
    assert "error: the sdist of built 1.0: its build ended in an error: OSError: the compiler is missing" in said.err
    assert "  | so far so good" in said.err
    assert "building" not in said.err.partition("  |")[0]       # -q says what failed alone
    assert not (tmp_path / "requirements.txt").exists()
    named = say("lock", *STACK, *PYTHONS, "--with", "built", "--allow-builds", "built", "--json")
    assert named.json["error"]["code"] == "sdist-build-failed"


def test_only_so_many_releases_of_a_project_are_built(world: World, say: Say, tmp_path: Path) -> None:
    counting = f"open({str(tmp_path / 'ran')!r}, 'a').write('x')"
    for minor in range(6):
        offer(world, sdist("built", f"1.{minor}", requires=["idna>9"], before=counting.replace("'x'", f"'{minor}'")),
              version=f"1.{minor}")
    said = say("lock", *STACK, *PYTHONS, "--with", "built", "--allow-builds", "built")
    assert said.status == 1
    assert set((tmp_path / "ran").read_text()) == {"5", "4", "3"}
    assert "idna" in said.err


def test_a_wheel_is_taken_before_any_build(world: World, say: Say, tmp_path: Path) -> None:
    offer(world, sdist("built", "2.0", before="raise SystemExit('ran')"), version="2.0")
    world.projects["built"]["built-1.0-py3-none-any.whl"] = make_wheel("built-1.0-py3-none-any.whl")
    said = say("lock", *STACK, *PYTHONS, "--with", "built", "--allow-builds", "built")
    assert said.status == 0, said.err
    assert "built==1.0" in (tmp_path / "requirements.txt").read_text()
    assert "building" not in said.err


def test_one_build_for_all_platforms_of_a_python(world: World, stack: tuple[str, ...], say: Say) -> None:
    said = say("lock", *stack, *PYTHONS, "--cuda", "12.1", "--platform", "linux-64", "--platform", "linux-64-cpu",
               "--with", "built", "--allow-builds", "built")
    assert said.err.count("building built") == 1, said.err


def test_each_python_is_built_for_by_its_own(world: World, say: Say, tmp_path: Path) -> None:
    others = (minor for minor in ("3.12", "3.10", "3.11") if minor != HERE)
    other = next((minor for minor in others if find_python(minor, os.environ, tmp_path) is not None), None)
    if other is None:
        pytest.skip("no other Python that torch 2.3 has wheels for is on this machine")
    wanted = f"'networkx' if sys.version_info[:2] == (3, {other[2:]}) else 'idna'"
    offer(world, sdist("built", during=f"global METADATA; METADATA += 'Requires-Dist: ' + ({wanted}) + chr(10)"))
    said = say("lock", *STACK, *PYTHONS, "--python", other, "--with", "built", "--allow-builds", "built")
    assert said.status == 0, said.err
    assert {line for line in said.err.splitlines() if line.startswith("building")} == {
        BUILDING, BUILDING.replace(f"Python {HERE}", f"Python {other}")}
    texts = {minor: (tmp_path / f"requirements-cp{minor.replace('.', '')}-linux-64.txt").read_text()
             for minor in (HERE, other)}
    assert ["idna==" in texts[minor] for minor in (HERE, other)] == [True, False]


def test_a_search_without_end_names_the_sdists_that_it_passed_over() -> None:
    assert TooManyRounds(3000).next_step() == "limit the versions of your own requirements"
    told = TooManyRounds(3000, ("pyairports", "built")).next_step()
    assert told.endswith("which runs their code: --allow-builds pyairports --allow-builds built")


def test_pip_installs_such_a_lock(world: World, stack: tuple[str, ...], say: Say, tmp_path: Path) -> None:
    """A judge of its own: pip builds the sdist once more, and finds the bytes and requirements that the lock has."""
    said = say("lock", *stack, *PYTHONS, "--with", "built", "--allow-builds", "built")
    assert said.status == 0, said.err
    text = (tmp_path / "requirements.txt").read_text()
    assert "--with built --allow-builds built --format" in text.replace("\n#", "")
    judged = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--require-hashes", "--quiet",
         "--no-cache-dir", "--index-url", world.url, "--report", str(tmp_path / "report.json"), "-r",
         str(tmp_path / "requirements.txt")], capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
             "HOME": str(tmp_path)})
    assert judged.returncode == 0, judged.stderr
    assert '"name": "built"' in (tmp_path / "report.json").read_text()
