"""Needs that no metadata states are held against packages of channels too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.conda.builds import torch_builds
from stackfix.conda.consistent import departures
from stackfix.conda.matching import admits_version
from stackfix.conda.records import CondaRecord
from stackfix.conda.rules import broken_rules, outside, rule_bounds
from tests.conda_shelf import record, shelf
from tests.conda_sides import BOOK, FORGE_TORCH, MATRIX, OLD_TORCH, conda_lock, package, pip_lock

PYTHON = ("python >=3.11,<3.12.0a0",)
PARTS = st.tuples(st.integers(0, 6), st.integers(0, 30), st.integers(0, 3))
RELEASES = PARTS.map(lambda parts: ".".join(map(str, parts)))


def transformers(version: str) -> CondaRecord:
    return record("transformers", version, depends=PYTHON)


def bounds(*records: CondaRecord, torch: str = FORGE_TORCH, flash_attn: str | None = None) -> list[str]:
    (build,) = torch_builds([shelf()[torch]])
    found = rule_bounds((build.record, *records), build, flash_attn, MATRIX, BOOK)
    return [spec.text for spec in found]


@pytest.mark.parametrize(("version", "fits"), [("4.57.0", True), ("5.0.0", True), ("5.1.0", False), ("5.6.2", False),
                                               ("5.15.0", False), ("6.0.0", False)])
def test_a_release_that_refuses_this_torch_is_bounded_away(version: str, *, fits: bool) -> None:
    found = bounds(transformers(version))
    assert (found == []) is fits
    if not fits:
        admitted = [text for text in found if admits_version(text, version) is False]
        assert admitted
        assert all(admits_version(text, "5.0.3") for text in found)     # and the newest that fits stays in all of them
        assert not all(admits_version(text, "5.30.0") for text in found)


def test_torch_built_for_numpy_1_bounds_numpy() -> None:
    """The pytorch channel's records name no numpy at all."""
    old = "linux-64/pytorch-2.0.0-cuda118py39h06e0762_304.conda"
    assert bounds(record("numpy", "2.1.0", depends=PYTHON), torch=old) == ["numpy <2a0"]
    assert bounds(record("numpy", "1.26.4", depends=PYTHON), torch=old) == []
    assert bounds(record("numpy", "2.1.0", depends=PYTHON), torch=OLD_TORCH) == []


def test_flash_attn_bounds_what_asks_more_of_it() -> None:
    assert bounds(transformers("4.40.0"), flash_attn="2.5.8") == []
    assert bounds(transformers("4.40.0"), flash_attn="2.0.9") != []


def test_what_the_channels_build_is_linked_with_is_its_records_affair() -> None:
    versions = {"torch": "2.3.1", "nvidia-nccl-cu12": "2.18.1"}
    assert list(broken_rules(versions, MATRIX)) == []


def test_a_broken_rule_breaks_consistency() -> None:
    pip = pip_lock(package("transformers", "5.0.0", by="--with transformers"))
    found = departures(pip, conda_lock(transformers("5.6.2")), MATRIX, BOOK)
    (broken,) = [one for one in found if one.breaks]
    assert (broken.about, broken.pip, broken.conda) == ("transformers", "5.0.0", "5.6.2")
    assert broken.reason.startswith("needs torch>=2.4")
    fine = departures(pip, conda_lock(transformers("5.0.0")), MATRIX, BOOK)
    assert not any(one.breaks for one in fine)


@given(version=RELEASES, low=RELEASES, high=RELEASES)
def test_outside_is_what_a_specifier_does_not_admit(version: str, low: str, high: str) -> None:
    minor = f"{Version(low).major}.{Version(low).minor}"
    for text in (f">={low},<{high}", f"=={low}", f"<={low}", f">{low}", f"=={minor}.*"):
        complement = outside(SpecifierSet(text))
        inside = SpecifierSet(text).contains(version)
        if complement is None:
            assert inside
        else:
            assert admits_version(f"x {complement}", version) is not inside


def test_what_admits_everything_has_no_outside() -> None:
    assert outside(SpecifierSet(">=0")) is None
    assert outside(SpecifierSet("~=1.2")) is None       # said of as nothing rather than wrongly
    assert outside(SpecifierSet(">=5.1,<5.15")) == "<5.1a0|>=5.15"
