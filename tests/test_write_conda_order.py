"""The order of explicit files is that of conda's own sort, cycles included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.write.conda_order import install_order
from tests.judges.conda_lock import part

NAMES = ("python", "pip", "a", "b", "c", "d", "e", "_f", "__cuda", "setuptools")


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4)))
def test_as_conda_sorts(depends: dict[str, list[str]]) -> None:
    sort = part("interfaces.vendored_conda").toposort
    theirs = [name for name in sort({name: set(needs) for name, needs in depends.items()}) if name in depends]
    assert list(install_order(depends)) == theirs


@pytest.mark.parametrize(("depends", "order"), [
    ({}, ()),
    ({"b": ["a"], "a": []}, ("a", "b")),
    ({"b": ["__cuda"], "c": []}, ("c", "b")),
    ({"python": ["pip"], "pip": ["python"]}, ("python", "pip")),
    ({"a": ["b"], "b": ["a"], "c": ["a"]}, ("a", "b", "c")),
    ({"a": ["a"]}, ("a",)),
])
def test_order(depends: dict[str, list[str]], order: tuple[str, ...]) -> None:
    assert install_order(depends) == order
