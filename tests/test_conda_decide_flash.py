"""What is tried of flash-attn where only conda formats are asked for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from stackfix.conda.decide_flash import flash_choices
from stackfix.conda.names import NameBook
from stackfix.conda.partner import CondaSide
from stackfix.conda.virtual import virtual_packages
from stackfix.errors import Unreachable
from stackfix.matrix.conda_names import load_conda_names
from stackfix.matrix.load import load_matrix
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.question import parse_request
from stackfix.resolve.records import StackRequest
from stackfix.resolve.stack import Stack
from tests.conda_stacks import Decider, NoIndex, NoReleases
from tests.resolve_world import torch_build


def tried(folder: Path, version: str, cuda: str, python: str = "3.12", *, abi: bool = True, **asked: object) -> list[
    tuple[str | None, str | None]
]:
    """(release, why it is left out) in order, for a torch of channels."""
    matrix = load_matrix()
    question = parse_request(StackRequest(pythons=(python,), **asked))  # type: ignore[arg-type]
    parsed = parse_version(version)
    assert parsed is not None
    build = torch_build(version, cuda, None, index="forge", cxx11_abi=abi, pythons=(python,))
    side = CondaSide(opened=Decider(folder=folder).channels, names=NameBook(load_conda_names()),
                     virtual=partial(virtual_packages, matrix=matrix, environ={}))
    flash = FlashAttn(Evidence(matrix, NoIndex(), NoReleases(), None))
    stack = Stack(version=parsed, text=version, builds={"linux-64": build})
    found = flash_choices(flash, question, side, stack, [question.target(python, "linux-64")])
    return [(choice.release, choice.out) for choice in found]


def test_the_channels_own_release_goes_first(tmp_path: Path) -> None:
    found = tried(tmp_path, "2.5.1", "12.6")
    assert found[0] == ("2.7.2", None)
    assert found[-1][0] is None


def test_no_release_for_another_torch(tmp_path: Path) -> None:
    releases = [release for release, _ in tried(tmp_path, "2.12.0", "12.9")]
    assert releases == [None]
    assert "2.7.2" not in [release for release, _ in tried(tmp_path, "2.6.0", "12.6", abi=True)]


def test_leaving_it_out_says_why(tmp_path: Path) -> None:
    assert tried(tmp_path, "2.12.0", "12.9")[-1][1] == (
        "no channel has it for torch 2.12.0 (CUDA 12.9), and it has no prebuilt wheel for such a build")
    assert tried(tmp_path, "2.12.0", "cpu")[-1][1] == "it has no CPU build"


def test_nothing_is_tried_where_it_is_not_wanted(tmp_path: Path) -> None:
    assert tried(tmp_path, "2.5.1", "12.6", no_flash_attn=True) == [(None, None)]


def test_what_was_asked_for_is_not_left_out(tmp_path: Path) -> None:
    assert tried(tmp_path, "2.5.1", "12.6", flash_attn="==2.7.2") == [("2.7.2", None)]


def test_an_index_out_of_reach_matters_where_it_was_asked_for(tmp_path: Path) -> None:
    """Its wheels for torch 2.3 have no known hash for each Python: the sdist would do, and nobody lists it here."""
    found = tried(tmp_path, "2.3.1", "12.1", "3.11", abi=False)
    assert found[-1][0] is None
    assert "nothing could be learnt of its wheels" in (found[-1][1] or "")
    with pytest.raises(Unreachable):
        tried(tmp_path, "2.3.1", "12.1", "3.11", abi=False, flash_attn="==2.5.8")
