"""`stackfix lock --prove` of the real wheels, from the tables that ship: nothing of them is downloaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from stackfix.matrix.toml_files import matrix_directory
from tests.cli_world import Said, Say, settle
from tests.judges.command import stackfix
from tests.prove_index import ShippedIndex
from tests.real_environments.scenarios import NVJITLINK_12_1
from tests.replay.server import ReplayServer

COMMON = ("--python", "3.11", "--no-flash-attn", "--format", "requirements", "--prove", "--json")
NEWER_CUSOLVER = "nvidia-cusolver-cu12==11.7.5.82"


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the matrix without its rules of cuSPARSE, nvJitLink, cuSOLVER and cuBLAS, and without their symbols."""
    folder = tmp_path_factory.mktemp("matrix") / "copy"
    shutil.copytree(matrix_directory(), folder)
    rules = folder / "rules.toml"
    kept = [line for line in rules.read_text().splitlines()
            if not any(word in line for word in ("__nvJitLink", "cublasSetEnvironmentMode"))]
    rules.write_text("\n".join(kept))
    uses = folder / "abi" / "uses.tsv"
    uses.write_text("".join(line for line in uses.read_text().splitlines(keepends=True) if line.startswith("#")))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShippedIndex]:
    """The index, and an empty working directory."""
    with ShippedIndex(folder=tmp_path / "tables").served() as served:
        settle(monkeypatch, tmp_path, served.url)
        yield served


def causes(said: Said) -> str:
    return "\n".join(each["text"] for each in said.json["error"]["causes"])


def environments(said: Said) -> dict[str, Any]:
    return {each["name"]: each for each in said.json["proof"]["targets"][0]["environments"]}


@pytest.mark.parametrize("torch", ["2.1.2", "2.3.1", "2.5.1", "2.8.0"])
def test_a_healthy_stack_is_proven_without_a_download(torch: str, shipped: ShippedIndex, say: Say) -> None:
    said = say("lock", "--torch", torch, *COMMON)
    assert said.status == 0, said
    assert environments(said)["clean"]["verdict"] == "loads", environments(said)["clean"]
    assert not [path for path in shipped.asked if path.endswith(".whl")]
    assert environments(said)["no-driver"]["verdict"] == "loads"


def test_torch_2_3_1_over_an_older_nvjitlink_is_refused_by_symbols(shipped: ShippedIndex, blind: Path,
                                                                  say: Say) -> None:
    words = ("--torch", "2.3.1", "--with", "nvidia-nvjitlink-cu12==12.0.140", "--matrix", blind)
    assert say("lock", *(each for each in (*words, *COMMON) if each != "--prove")).status == 0
    Path("requirements.txt").unlink()
    said = say("lock", *words, *COMMON)
    assert said.status == 1, said
    assert said.json["error"]["code"] == "stack-does-not-load"
    assert all(symbol in causes(said) for symbol in NVJITLINK_12_1)
    assert "nvidia/cusparse/lib/libcusparse.so.12" in causes(said)
    assert "nvidia-nvjitlink-cu12 12.0.140" in causes(said)
    assert "nvidia-nvjitlink-cu12 12.1.105 has what is needed" in causes(said)
    assert {path.name for path in Path().iterdir()} & {"requirements.txt", "stack-proof.json"} == set()


def loosened(release: str, requires: tuple[str, ...]) -> Sequence[str]:
    """torch 2.8.0 as if it took any cuSOLVER: its own pin keeps such a stack away."""
    return [each.replace("==11.7.3.90", ">=11.7.3.90") if release == "torch 2.8.0" else each for each in requires]


def test_a_newer_cusolver_over_cublas_12_8_is_refused_by_symbols(shipped: ShippedIndex, blind: Path, say: Say) -> None:
    shipped.edit = loosened
    said = say("lock", "--torch", "2.8.0", "--with", NEWER_CUSOLVER, "--matrix", blind, *COMMON)
    assert said.status == 1, said
    assert said.json["error"]["code"] == "stack-does-not-load", said.json["error"]
    assert "cublasSetEnvironmentMode" in causes(said)
    assert "nvidia-cublas-cu12 12.8.4.1" in causes(said)
    assert "nvidia-cusolver-cu12 11.7.5.82" in "".join(each["source"] for each in said.json["error"]["causes"])
    assert "12.9.0.13" in causes(said)


def test_a_system_cuda_of_another_minor_is_told_with_what_helps(shipped: ShippedIndex, say: Say) -> None:
    said = say("lock", "--torch", "2.3.1", *COMMON)
    older = environments(said)["older-toolkit"]
    assert older["verdict"] == "fails"
    assert "nvidia-nvjitlink-cu12 12.0.140" in older["holds"]
    assert set(older["troubles"][0]["symbols"]) >= NVJITLINK_12_1
    assert "unset LD_LIBRARY_PATH" in older["troubles"][0]["avoid"]
    target = json.loads(Path("stack-proof.json").read_text())["targets"][0]
    assert target["verdict"] == "loads"


def test_the_same_lock_has_the_same_proof_wherever_it_is_made(shipped: ShippedIndex, say: Say, tmp_path: Path) -> None:
    proofs = []
    for name in ("one", "other"):
        said = say("lock", "--torch", "2.3.1", *COMMON, "-o", name, "--cache-dir", tmp_path / f"cache-{name}")
        assert said.status == 0, said
        proofs.append((Path(name) / "stack-proof.json").read_bytes())
    assert proofs[0] == proofs[1]
    assert str(tmp_path).encode() not in proofs[0]
    assert b"127.0.0.1" not in proofs[0]


@pytest.mark.recorded
def test_the_index_itself_gives_the_same_answers(index: ReplayServer, blind: Path, tmp_path: Path,
                                                 stackfix_cache: Path) -> None:
    words = ("--torch", "2.3.1", "--matrix", blind, *COMMON)
    refused = stackfix("lock", *words, "--with", "nvidia-nvjitlink-cu12==12.0.140", "--index-url", index.url,
                       cwd=tmp_path, cache=stackfix_cache)
    assert refused.status == 1, refused
    assert refused.json["error"]["code"] == "stack-does-not-load"
    assert "__nvJitLinkAddData_12_1" in json.dumps(refused.json["error"]["causes"])
