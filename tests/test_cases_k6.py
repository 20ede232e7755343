"""Public reports on pip resolution and locking, each with its right answer.

Those on conda stand in test_cases_k6_conda.py, those on several platforms and the torch index in
test_cases_k6_platforms.py.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tests.judges.command import Run, clean_environment, run, stackfix
from tests.judges.uv import loopback_urls
from tests.replay.index import ADVERTISED
from tests.replay.releases import ReleaseServer, stand_in
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.wheels import make_wheel

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
FLASH = "flash_attn-2.7.3+cu12torch2.5cxx11abiFALSE-cp{tag}-cp{tag}-linux_x86_64.whl"


def lock(folder: Path, *words: str | Path, index: ReplayServer, cache: Path) -> Run:
    return stackfix("lock", *words, "--json", "--format", "requirements", "--format", "pylock",
                    "--index-url", index.url, "-o", folder, cwd=folder, cache=cache)


def versions(run_: Run) -> dict[str, str]:
    assert run_.status == 0, run_
    return {package["name"]: package["version"] for package in run_.json["targets"][0]["packages"]}


# -- apple/axlearn#858: torch 2.1.1 pins cuDNN 8.9.2.26, jax[cuda12] 0.4.33 needs cuDNN 9.1 or newer ------------------

@pytest.mark.recorded
def test_torch_2_1_and_jax_0_4_33_want_two_cudnns(tmp_path: Path, index: ReplayServer, stackfix_cache: Path) -> None:
    refused = lock(tmp_path, "--torch", "2.1.1", "--with", "torchvision==0.16.1", "--with", "jax[cuda12]==0.4.33",
                   "--python", "3.11", "--no-flash-attn", index=index, cache=stackfix_cache)
    assert refused.status == 1, refused
    error = refused.json["error"]
    texts = " ".join(cause["text"] for cause in error["causes"])
    assert "nvidia-cudnn-cu12" in texts
    assert "8.9.2.26" in texts
    assert re.search(r">=\s*9\.1", texts), texts
    assert error["nearest"]


@pytest.mark.recorded
@pytest.mark.parametrize(("torch", "jax", "pins"), [
    ("2.5.1", "0.4.33", {"nvidia-cudnn-cu12": "9.1.0.70", "nvidia-cusparse-cu12": "12.3.1.170",
                         "nvidia-nvjitlink-cu12": "12.4.127"}),
    ("2.8.0", "0.6.0", {"nvidia-cudnn-cu12": "9.10.2.21"}),
])
def test_torch_and_jax_that_share_a_cudnn(
    torch: str, jax: str, pins: dict[str, str], tmp_path: Path, index: ReplayServer, stackfix_cache: Path,
) -> None:
    found = versions(lock(tmp_path, "--torch", torch, "--with", f"jax[cuda12]=={jax}", "--python", "3.11",
                          "--no-flash-attn", index=index, cache=stackfix_cache))
    assert found["jax"] == jax
    assert {name: found[name] for name in pins} == pins


# -- astral-sh/uv#12282: a release wheel whose file name has a local version that its metadata has not ----------------

@pytest.fixture(scope="module")
def flash_lock(index: ReplayServer, stackfix_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lock of flash-attn 2.7.3 for the running Python: its wheel by URL, its hash from the matrix."""
    folder = tmp_path_factory.mktemp("flash")
    with ReleaseServer({}, status=503) as releases:
        made = lock(folder, "--torch", "2.5.1", "--flash-attn", "2.7.3", "--python", RUNNING,
                    "--flash-attn-source", releases.url, index=index, cache=stackfix_cache)
    assert versions(made)["flash-attn"] == "2.7.3"
    return folder


def flash_line(folder: Path) -> str:
    """The entry of flash-attn with its continuation lines."""
    found = re.search(r"^flash-attn @ (?:.*\\\n)*.*\n", (folder / "requirements.txt").read_text(), re.MULTILINE)
    assert found is not None
    return found[0]


@pytest.mark.recorded
def test_the_lock_names_the_wheel_by_url_and_hash_and_not_by_version(flash_lock: Path) -> None:
    line = flash_line(flash_lock)
    assert re.match(r"flash-attn @ \S+/flash_attn-2\.7\.3%2Bcu12torch2\.5cxx11abiFALSE-\S+\.whl", line)
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", line)) == 1
    table = re.search(r'name = "flash-attn"\n(?:(?!\[\[packages).*\n)*', (flash_lock / "pylock.toml").read_text())
    assert table is not None
    assert "version =" not in table[0]
    assert "archive" in table[0]


@pytest.mark.recorded
@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_installers_take_the_entry(flash_lock: Path, tool: str, tmp_path: Path) -> None:
    only, target = tmp_path / "flash.txt", tmp_path / "target"
    only.write_text(flash_line(flash_lock), encoding="utf-8")
    program = [str(shutil.which("uv"))] if tool == "uv" else [sys.executable, "-m"]
    python = ["--python", sys.executable] if tool == "uv" else []
    with loopback_urls(only, tmp_path / "loopback.txt") as judged:
        done = run([*program, "pip", "install", *python, "--require-hashes", "--no-deps", "--target", target,
                    "-r", judged], cwd=tmp_path, env=clean_environment(UV_CACHE_DIR=str(tmp_path / "uv")))
    assert done.status == 0, done
    assert [path.name for path in target.glob("flash_attn-*.dist-info")] == ["flash_attn-2.7.3.dist-info"]


def test_uv_locks_and_syncs_such_a_wheel(tmp_path: Path) -> None:
    """What uv itself does with it today: the premise of writing it by URL."""
    file = FLASH.format(tag=RUNNING.replace(".", ""))
    small = {"torch": {"torch-2.5.1-py3-none-any.whl": make_wheel("torch-2.5.1-py3-none-any.whl")},
             "einops": {"einops-0.8.0-py3-none-any.whl": make_wheel("einops-0.8.0-py3-none-any.whl")}}
    with ReleaseServer({"2.7.3": (file,)}) as releases, ReplayServer(
        Store(tmp_path / "store"), projects=small, metadata=ADVERTISED,
    ) as local:
        url = f"{releases.url}/releases/download/v2.7.3/{file.replace('+', '%2B')}"
        project: dict[str, Any] = {
            "project": {"name": "demo", "version": "0", "requires-python": f"=={RUNNING}.*",
                        "dependencies": ["flash-attn", "torch==2.5.1"]},
            "tool": {"uv": {"sources": {"flash-attn": {"url": url}},
                            "index": [{"url": local.url, "default": True}]}},
        }
        (tmp_path / "pyproject.toml").write_text(tomli_w.dumps(project), encoding="utf-8")
        for words in (["lock"], ["lock", "--check"], ["sync"]):
            environment = {name: value for name, value in
                           clean_environment(UV_CACHE_DIR=str(tmp_path / "uv")).items() if name != "UV_NO_CONFIG"}
            done = run([str(shutil.which("uv")), *words, "--python", sys.executable], cwd=tmp_path, env=environment)
            assert done.status == 0, done
    locked = (tmp_path / "uv.lock").read_text()
    assert f"sha256:{hashlib.sha256(stand_in(file)).hexdigest()}" in locked
    installed = [path.name for path in (tmp_path / ".venv").rglob("flash_attn-*.dist-info")]
    assert installed == ["flash_attn-2.7.3.dist-info"]
