"""requirements.txt as pip-compile would write it, and as pip, uv and pip-sync take it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.sync.parse import parse_requirements_lock
from stackfix.write.records import Entry
from stackfix.write.requirements import render_requirements, requirements_entries, via_of
from tests.judges.command import Run, clean_environment, run
from tests.lock_samples import (
    COMMAND,
    FLASH,
    HERE,
    NOWHERE,
    Loopback,
    index_file,
    loopback,
    package,
    sample_packages,
    target_lock,
)

BAIT = b"bait"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("store")) as started:
        yield started


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment."""
    folder = tmp_path_factory.mktemp("venv") / "v"
    done = run([sys.executable, "-m", "venv", folder], cwd=folder.parent)     # with pip: pip-sync asks for it
    assert done.status == 0, done
    return folder


def written(servers: Loopback, folder: Path, text: str | None = None) -> Path:
    lock = target_lock(sample_packages(servers))
    path = folder / "requirements.txt"
    path.write_text(text or render_requirements(requirements_entries(lock), HERE, command=COMMAND), encoding="utf-8")
    return path


def render(*entries: Entry, command: str = COMMAND) -> str:
    return render_requirements(entries, HERE, command=command)


def uv(requirements: Path, servers: Loopback, venv: Path, cache: Path, *words: str) -> Run:
    return run([sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--require-hashes", "-r", requirements,
                "--python", venv, "--index-url", servers.index_url, *words],
               cwd=venv, env=clean_environment(UV_CACHE_DIR=str(cache)))


def pip(requirements: Path, servers: Loopback, venv: Path, *words: str) -> Run:
    return run([sys.executable, "-m", "pip", "--python", venv, "install", "--dry-run", "--require-hashes", "-r",
                requirements, "--index-url", servers.index_url, "--no-cache-dir", *words], cwd=venv)


def pip_sync(requirements: Path, servers: Loopback, venv: Path) -> Run:
    return run([sys.executable, "-m", "piptools", "sync", "--dry-run", "--python-executable", venv / "bin" / "python",
                "--index-url", servers.index_url, requirements], cwd=venv)


def test_uv_takes_the_file(servers: Loopback, venv: Path, tmp_path: Path) -> None:
    done = uv(written(servers, tmp_path), servers, venv, tmp_path / "cache")
    assert done.status == 0, done
    assert "Would install 5 packages" in done.stderr
    assert f"{servers.release_url}/releases/download/v2.5.8/{FLASH.replace('+', '%2B')}" in done.stderr, done


def test_pip_takes_the_file(servers: Loopback, venv: Path, tmp_path: Path) -> None:
    done = pip(written(servers, tmp_path), servers, venv)
    assert done.status == 0, done
    assert "Would install einops-0.8.1 filelock-3.29.0 flash-attn-2.5.8 tiny-server-1.0 torch-2.3.1" in done.stdout


def test_pip_sync_takes_the_file(servers: Loopback, venv: Path, tmp_path: Path) -> None:
    done = pip_sync(written(servers, tmp_path), servers, venv)
    assert done.status == 1, done       # pip-sync's word for "there is something to do"
    assert "Would install:" in done.stdout
    for pin in ("einops==0.8.1", "flash-attn @ http", "tiny-server[fast]==1.0", "torch==2.3.1"):
        assert pin in done.stdout, done


def test_pip_refuses_one_altered_digit(servers: Loopback, venv: Path, tmp_path: Path) -> None:
    text = written(servers, tmp_path).read_text()
    digest = text.partition("torch==2.3.1 \\\n    --hash=sha256:")[2][:64]
    altered = ("0" if digest[0] != "0" else "1") + digest[1:]
    done = pip(written(servers, tmp_path, text.replace(digest, altered)), servers, venv)
    assert done.status != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr


def test_uv_refuses_a_missing_pin(servers: Loopback, venv: Path, tmp_path: Path) -> None:
    lines = written(servers, tmp_path).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("filelock=="))
    end = next(i for i, line in enumerate(lines) if line.startswith("flash-attn @"))
    cut = written(servers, tmp_path, "\n".join(lines[:start] + lines[end:]) + "\n")
    done = uv(cut, servers, venv, tmp_path / "cache")
    assert done.status != 0
    assert "filelock" in done.stderr


def test_the_text_is_pip_compiles_style() -> None:
    text = render_requirements(requirements_entries(target_lock(sample_packages(NOWHERE))), HERE, command=COMMAND)
    header, _, body = text.partition("#\neinops")
    assert header.splitlines()[:6] == [
        "#", f"# This file is locked by stackfix for cp{HERE.python.replace('.', '')}-linux-64",
        f"# (Python {HERE.python} on linux-64, glibc 2.28 or newer)", "# by the following command:", "#",
        f"#    {COMMAND}",
    ]
    assert "filelock==3.29.0 \\\n    --hash=sha256:" in body
    assert "\n    # via\n    #   tiny-server\n    #   torch\nflash-attn @ " in body
    assert "tiny-server[fast]==1.0 \\\n" in body
    assert f"/v2.5.8/{FLASH.replace('+', '%2B')} \\\n    --hash=sha256:" in body
    assert text.endswith("\n")
    assert "\n\n" not in text


def test_hashes_are_sorted_and_said_once() -> None:
    files = tuple(index_file("a", f"a-1-py3-none-{n}.whl", n.encode()) for n in ("any", "x", "y"))
    entry, = requirements_entries(target_lock((package("a", "1", (*files, files[0])),)))
    assert entry.sha256 == tuple(sorted({file.sha256 or "" for file in files}))
    assert len(entry.sha256) == 3


def test_a_direct_package_states_the_hash_of_the_file_it_names() -> None:
    one, other = index_file("a", "a-1+x-py3-none-any.whl", b"1"), index_file("a", "a-1+y-py3-none-any.whl", b"2")
    entry, = requirements_entries(target_lock((package("a", "1", (one, other), direct=True),)))
    assert entry.sha256 == (one.sha256,)
    assert entry.version is None


@pytest.mark.parametrize("sha256", [None, "", "0" * 63, "g" * 64, "0" * 64 + "\n--index-url x"])
def test_a_file_without_a_sha256_is_never_locked(sha256: str | None) -> None:
    file = index_file("a", "a-1-py3-none-any.whl", BAIT, sha256=sha256)
    with pytest.raises(BadInput, match=r"a-1-py3-none-any\.whl: the index states no usable sha256"):
        requirements_entries(target_lock((package("a", "1", (file,)),)))


def test_the_second_step_is_a_file_of_its_own() -> None:
    sdist = index_file("flash-attn", "flash_attn-2.5.8.tar.gz", BAIT)
    lock = target_lock((package("flash-attn", "2.5.8", (sdist,), step=2, requires=("torch",)),
                        package("torch", "2.3.1", (index_file("torch", "torch-2.3.1-py3-none-any.whl", BAIT),))))
    assert [entry.name for entry in requirements_entries(lock)] == ["torch"]
    later = requirements_entries(lock, step=2)
    assert [(entry.name, entry.version, entry.url) for entry in later] == [("flash-attn", "2.5.8", None)]
    assert requirements_entries(lock)[0].via == ("flash-attn",)
    text = render_requirements(later, HERE, command=COMMAND, after="requirements.txt")
    assert "# second step of: requirements.txt\n" in text
    assert "--no-build-isolation" in text


@pytest.mark.parametrize(
    ("origin", "via"),
    [
        ("requirements.in line 3", "-r requirements.in"),
        ("deps/base.in line 12", "-r deps/base.in"),
        ("/home/someone/project/requirements.in line 3", "-r requirements.in"),
        ("--with transformers>=4.40", "--with transformers>=4.40"),
        ("torch", "torch"),
        ("pyproject.toml [tool.stackfix.stacks.train]", "pyproject.toml [tool.stackfix.stacks.train]"),
        ("--with x @ https://user:word@host/x.whl", "--with x @ https://host/x.whl"),
        ("--with x\n--index-url https://evil", "--with x --index-url https://evil"),
        ("--with x \\", "--with x"),
    ],
)
def test_what_via_says_of_a_root(origin: str, via: str) -> None:
    assert via_of(origin) == via


def test_the_header_holds_no_credential_and_no_path_outside() -> None:
    text = render(command="stackfix lock -r /home/someone/deps/a.in --index-url https://me:secret@host/simple --with x")
    assert "#    stackfix lock -r a.in --index-url https://host/simple --with x\n" in text


NAMES = st.from_regex(r"[a-z0-9](?:[a-z0-9]|-(?=[a-z0-9])){0,20}", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}(?:\.post[0-9]|rc[0-9]|\+cu12[0-9])?", fullmatch=True)
DIGESTS = st.sets(st.from_regex(r"[0-9a-f]{64}", fullmatch=True), min_size=1, max_size=4).map(sorted).map(tuple)
URLS = st.from_regex(r"https://[a-z]{1,9}\.example/[A-Za-z0-9_.%/-]{0,30}\.whl", fullmatch=True)
VIAS = st.text(min_size=1).map(via_of).filter(bool)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    url = draw(st.none() | URLS)
    return Entry(
        name=draw(NAMES), version=None if url else draw(VERSIONS), url=url, sha256=draw(DIGESTS),
        extras=tuple(sorted(draw(st.sets(NAMES, max_size=3)))), via=tuple(sorted(draw(st.sets(VIAS, max_size=4)))),
    )


@given(st.lists(entries(), unique_by=lambda entry: entry.name), st.text())
def test_the_text_parses_back_to_equal_records(pins: list[Entry], command: str) -> None:
    read = parse_requirements_lock(render(*pins, command=command), "requirements.txt")
    assert read.entries == tuple(pins)
    assert read.target == (HERE.python, HERE.platform)
    assert not read.is_second_step
    assert read.second_step is None


@given(st.sampled_from(["requirements-flash-attn.txt", "requirements-flash-attn-train-cp311-linux-64.txt"]))
def test_the_second_step_parses_back(name: str) -> None:
    text = render_requirements((), HERE, command=COMMAND, second_step=name)
    assert parse_requirements_lock(text, "x").second_step == name
    assert parse_requirements_lock(render_requirements((), HERE, command=COMMAND, after="x.txt"), "x").is_second_step
