"""The answer comes from the matrix and the index: change either, and it changes or fails."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from tests.judges.command import Run, stackfix
from tests.judges.lockfile import read_entries
from tests.replay.index import ADVERTISED
from tests.replay.pages import Edit, altered, without
from tests.replay.server import ReplayServer
from tests.replay.store import Store

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.recorded

MATRICES = Path(__file__).parent.parent / "matrices"
ASKED = ("--torch", "2.3", "--python", "3.11", "--no-flash-attn")
TORCH = "torch-2.3.1-cp311-cp311-manylinux1_x86_64.whl"


def lock(folder: Path, *words: str | Path, index: str, cache: Path) -> Run:
    folder.mkdir(exist_ok=True)
    return stackfix("lock", *words, "--json", "--format", "requirements", "--index-url", index, "-o", folder,
                    cwd=folder, cache=cache)


def versions(run: Run) -> dict[str, str]:
    assert run.status == 0, run
    return {package["name"]: package["version"] for package in run.json["targets"][0]["packages"]}


def matrix_with(folder: Path, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Path:
    """A copy of the matrix with its torch releases edited."""
    copy = folder / "matrix"
    shutil.copytree(MATRICES, copy)
    table = tomllib.loads((copy / "torch.toml").read_text(encoding="utf-8"))
    table["release"] = edit(table["release"])
    (copy / "torch.toml").write_text(tomli_w.dumps(table), encoding="utf-8")
    return copy


def test_an_unedited_copy_of_the_matrix_gives_the_same_lock(
    tmp_path: Path, index: ReplayServer, stackfix_cache: Path,
) -> None:
    copy = matrix_with(tmp_path, lambda releases: releases)
    plain = lock(tmp_path / "a", *ASKED, index=index.url, cache=stackfix_cache)
    copied = lock(tmp_path / "b", *ASKED, "--matrix", copy, index=index.url, cache=stackfix_cache)
    assert versions(plain) == versions(copied)
    assert versions(plain)["torch"] == "2.3.1"
    assert versions(plain)["nvidia-nvjitlink-cu12"] == "12.1.105"


def test_without_the_rows_of_torch_2_3_there_is_no_answer(
    tmp_path: Path, index: ReplayServer, stackfix_cache: Path,
) -> None:
    copy = matrix_with(tmp_path, lambda releases: [r for r in releases if not r["version"].startswith("2.3.")])
    run = lock(tmp_path / "a", *ASKED, "--matrix", copy, index=index.url, cache=stackfix_cache)
    assert run.status == 1, run
    assert run.json["error"]["code"] == "no-consistent-stack"
    assert not list((tmp_path / "a").iterdir())


def test_without_the_row_of_2_3_1_the_answer_is_2_3_0(
    tmp_path: Path, index: ReplayServer, stackfix_cache: Path,
) -> None:
    copy = matrix_with(tmp_path, lambda releases: [r for r in releases if r["version"] != "2.3.1"])
    run = lock(tmp_path / "a", *ASKED, "--matrix", copy, index=index.url, cache=stackfix_cache)
    assert versions(run)["torch"] == "2.3.0"


def build_of_2_3_1(releases: list[dict[str, Any]]) -> dict[str, Any]:
    """The x86_64 build on the default index."""
    release = next(release for release in releases if release["version"] == "2.3.1")
    build: dict[str, Any] = release["builds"][0]
    assert (build["platform"], build["cuda"]) == ("linux-64", "12.1")
    return build


def test_an_altered_toolkit_alters_the_components(tmp_path: Path, index: ReplayServer, stackfix_cache: Path) -> None:
    def of_cuda_12_4(releases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        build_of_2_3_1(releases).update(cuda="12.4", pins="CUDA 12.4.0, cuDNN 9.1.0.70, NCCL 2.20.5")
        release = next(release for release in releases if release["version"] == "2.3.1")
        release["builds"] = [build for build in release["builds"] if build.get("index") != "cu121"]
        return releases

    copy = matrix_with(tmp_path, of_cuda_12_4)
    altered_run = lock(tmp_path / "a", *ASKED, "--matrix", copy, index=index.url, cache=stackfix_cache)
    assert versions(altered_run)["nvidia-nvjitlink-cu12"] == "12.4.99"
    refused = lock(tmp_path / "b", *ASKED, "--cuda", "12.1", "--torch", "2.3.1", "--matrix", copy, index=index.url,
                   cache=stackfix_cache)
    assert refused.status == 1, refused


def test_altered_architectures_alter_the_version(tmp_path: Path, index: ReplayServer, stackfix_cache: Path) -> None:
    def no_sm_90(releases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        build_of_2_3_1(releases).update(archs="50 60 70 75 80 86")
        return releases

    copy = matrix_with(tmp_path, no_sm_90)
    for words, torch in (((), "2.3.1"), (("--matrix", copy), "2.3.0")):
        run = lock(tmp_path / torch, *ASKED, "--gpu-arch", "sm_90", *words, index=index.url, cache=stackfix_cache)
        assert versions(run)["torch"] == torch


EDITS: dict[str, tuple[str, Edit, dict[str, str]]] = {
    "no wheel of torch 2.3.1": ("torch", without(lambda name: name.startswith("torch-2.3.1-")), {"torch": "2.3.0"}),
    "torch 2.3.1 yanked": (
        "torch", altered(lambda name: name.startswith("torch-2.3.1-"), yanked="broken"), {"torch": "2.3.0"},
    ),
    "torch 2.3.1 for other Pythons": (
        "torch", altered(lambda name: name.startswith("torch-2.3.1-"), requires_python=">=3.12"), {"torch": "2.3.0"},
    ),
    "no newest sympy": (
        "sympy", without(lambda name: not name.startswith("sympy-1.12-")), {"sympy": "1.12", "torch": "2.3.1"},
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_index_page_alters_the_answer(name: str, tmp_path: Path, store: Store) -> None:
    project, edit, expected = EDITS[name]
    with ReplayServer(store, metadata=ADVERTISED, edits={project: (edit,)}) as edited:
        run = lock(tmp_path / "a", *ASKED, index=edited.url, cache=tmp_path / "cache")
    found = versions(run)
    assert {package: found[package] for package in expected} == expected


def test_the_pages_hash_is_the_locks_hash(tmp_path: Path, store: Store) -> None:
    edit = altered(lambda name: name == TORCH, hashes={"sha256": "ab" * 32})
    with ReplayServer(store, metadata=ADVERTISED, edits={"torch": (edit,)}) as edited:
        run = lock(tmp_path / "a", *ASKED, index=edited.url, cache=tmp_path / "cache")
    assert run.status == 0, run
    hashes = {entry.name: entry.hashes for entry in read_entries(tmp_path / "a" / "requirements.txt")}
    assert "ab" * 32 in hashes["torch"]


def test_an_index_without_the_component_of_the_toolkit_gives_another_that_meets_the_floor(
    tmp_path: Path, store: Store,
) -> None:
    edit = without(lambda name: name.startswith("nvidia_nvjitlink_cu12-12.1.105-"))
    with ReplayServer(store, metadata=ADVERTISED, edits={"nvidia-nvjitlink-cu12": (edit,)}) as edited:
        run = lock(tmp_path / "a", *ASKED, index=edited.url, cache=tmp_path / "cache")
    found = tuple(int(part) for part in versions(run)["nvidia-nvjitlink-cu12"].split("."))
    assert found > (12, 1, 105)


def test_an_index_without_a_component_that_torch_pins_gives_no_lock(tmp_path: Path, store: Store) -> None:
    edit = without(lambda name: name.startswith("nvidia_cudnn_cu12-8.9.2.26-"))
    with ReplayServer(store, metadata=ADVERTISED, edits={"nvidia-cudnn-cu12": (edit,)}) as edited:
        run = lock(tmp_path / "a", *ASKED, index=edited.url, cache=tmp_path / "cache")
    assert run.status == 1, run
    assert "nvidia-cudnn-cu12" in run.stdout
    assert not list((tmp_path / "a").iterdir())
