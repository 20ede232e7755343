"""What is named as the nearest release, over every wheel that was read: a lock takes it, by the matrix's own rules."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from packaging.requirements import Requirement

from stackfix.abi.books import open_books
from stackfix.abi.nearest import DEFAULT, TorchThere, nearest_torch
from stackfix.abi.records import JudgedWheel, TorchRange
from stackfix.diagnose.nearest_release import Known, is_locked_with, nearest_release
from stackfix.matrix.load import load_matrix
from stackfix.matrix.query import companion, companion_fits, rules_for
from stackfix.matrix.records import Companion, TorchBuild

MATRIX, JUDGED = load_matrix(), open_books().judged
ROWS = [(wheel, row) for package in JUDGED.packages for wheel in JUDGED.of(package)
        if (row := companion(MATRIX, package, wheel.version)) is not None]
TORCHES = ("2.1.2", "2.3.1", "2.6.0", "2.8.0", "2.10.0", "2.13.0", "2.14.1", "2.15.0")


def default_build(version: str) -> TorchBuild:
    build, = (each for each in MATRIX.torch
              if (each.version, each.index, each.platform) == (version, DEFAULT, "linux-64"))
    return build


def span(wheel: JudgedWheel) -> TorchRange:
    """What its symbols say, as the table has it."""
    minors = tuple(each for each in wheel.torch if each.count(".") == 1)
    patches = tuple(each for each in wheel.torch if each.count(".") == 2)
    return TorchRange(asked=9, minors=minors, known=minors, string_abi=None, floor=(), ceiling=(), index_minors=minors,
                      unknown=(), cuda_torch=bool(wheel.cuda), patches=patches, exceptions=())


@pytest.mark.parametrize("torch", TORCHES)
def test_the_nearest_torch_is_one_that_a_lock_takes(torch: str) -> None:
    seen = 0
    for wheel, row in ROWS:
        known = Known(wheel.package, wheel.version)
        found = nearest_torch(span(wheel), torch, MATRIX.torch, cuda=wheel.cuda,
                              locked=partial(is_locked_with, known=known, matrix=MATRIX))
        could = any(each.index == DEFAULT and wheel.loads(each.version) and companion_fits(row, each) is None
                    for each in MATRIX.torch)
        if found is not None and found.build is None and could:
            assert companion_fits(row, default_build(found.version)) is None, (wheel, found)
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("torch", TORCHES)
def test_the_nearest_release_is_for_the_torchs_cuda(torch: str) -> None:
    build, seen = default_build(torch), 0
    there = TorchThere(release=torch, cuda=int(build.cuda.partition(".")[0]))
    for wheel, _ in ROWS:
        found = nearest_release(Known(wheel.package, wheel.version), there, build.cuda, MATRIX,
                                JUDGED.of(wheel.package))
        row = companion(MATRIX, found.package, found.version) if found else None
        if row is not None:
            assert companion_fits(replace(row, torch=None), build) is None, (wheel, found)
            seen += 1
    assert seen > 5


EVERY = [wheel for package in JUDGED.packages for wheel in JUDGED.of(package)]


def admitted(package: str, version: str, torch: str) -> bool:
    """Whether all rules of the matrix about a release admit a torch."""
    needed = [Requirement(each.needs) for each in rules_for(MATRIX, package, version)]
    return all(each.specifier.contains(torch) for each in needed if each.name == "torch")


@pytest.mark.parametrize("torch", TORCHES)
def test_the_nearest_torch_is_one_that_the_rules_admit(torch: str) -> None:
    """torchcodec 0.1.1 has the symbols of torch 2.4 to 2.9; its README says 2.5, and a lock goes by that."""
    seen = set[str]()
    for wheel in EVERY:
        found = nearest_torch(span(wheel), torch, MATRIX.torch, cuda=wheel.cuda, locked=partial(
            is_locked_with, known=Known(wheel.package, wheel.version), matrix=MATRIX))
        if found is not None and any(each.index == DEFAULT and wheel.loads(each.version) and admitted(
                wheel.package, wheel.version, each.version) for each in MATRIX.torch):
            assert admitted(wheel.package, wheel.version, found.version), (wheel, found)
            seen.add(wheel.package)
    assert "torchcodec" in seen


@pytest.mark.parametrize("torch", ["2.6.0", "2.8.0"])
def test_the_nearest_release_is_one_whose_rules_admit_the_torch(torch: str) -> None:
    """torchcodec 0.4.0, too, has the symbols of torch 2.8, and is built for 2.7."""
    found = nearest_release(Known("torchcodec", "0.1.1"), TorchThere(release=torch), None, MATRIX,
                            JUDGED.of("torchcodec"))
    assert found is not None
    assert admitted("torchcodec", found.version, torch), found


def test_a_rule_of_the_matrix_decides_between_torches_that_all_have_the_symbols() -> None:
    """A package that is built for CUDA 13.2 and compares the minor is locked with no torch for 13.0."""
    row = Companion(package="ext", version="1.0", torch=None, cuda="13.2", same_cuda="minor", requires=(),
                    source="test", confidence="certain")
    wheel = replace(ROWS[0][0], package="ext", version="1.0", torch=("2.13", "2.14", "2.15"), cuda=(13,))
    for same_cuda, nearest in (("minor", "2.15.0"), ("major", "2.13.0")):
        matrix = replace(MATRIX, companions=(replace(row, same_cuda=same_cuda),))
        found = nearest_torch(span(wheel), "2.3.1", matrix.torch, cuda=(13,),
                              locked=partial(is_locked_with, known=Known("ext", "1.0"), matrix=matrix))
        assert found is not None
        assert found.version == nearest
        there = TorchThere(release="2.13.0", cuda=13)
        other = nearest_release(Known("ext", "0.9"), there, "13.0", replace(matrix, companions=(
            *matrix.companions, replace(row, version="0.9", torch="==2.1.0"))), [wheel])
        assert (other is not None) is (same_cuda == "major")
