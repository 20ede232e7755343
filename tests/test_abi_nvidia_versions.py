"""Order of versions as packaging has it, and runs of versions written and read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from stackfix.abi.nvidia_versions import mask_of, runs, sorted_versions, spans_of, version_key

NUMBERS = st.integers(0, 40)
PARTS = st.one_of(st.just(""), st.builds("rc{}".format, NUMBERS), st.builds("a{}".format, NUMBERS))
VERSIONS = st.builds(
    lambda release, phase, post, dev: ".".join(map(str, release)) + phase + post + dev,
    st.lists(NUMBERS, min_size=1, max_size=4), PARTS,
    st.one_of(st.just(""), st.builds(".post{}".format, NUMBERS)),
    st.one_of(st.just(""), st.builds(".dev{}".format, NUMBERS)),
)
READ = tuple(f"12.{minor}" for minor in range(12))


@given(st.lists(VERSIONS, min_size=2, max_size=2))
def test_versions_compare_as_packaging_compares_them(pair: list[str]) -> None:
    left, right = pair
    mine, others = [version_key(each) for each in pair], [Version(each) for each in pair]
    assert mine[0] is not None
    assert mine[1] is not None
    assert (mine[0] < mine[1], mine[0] == mine[1]) == (others[0] < others[1], others[0] == others[1]), (left, right)


@pytest.mark.parametrize("text", ["", "12.x", "v12", "12.1+cu121", "12.1 ", "12..1", "1" * 30, "12.1RC1", "٣.1"])
def test_what_is_no_plain_version_has_no_key(text: str) -> None:
    assert version_key(text) is None


def test_versions_sort_by_number_and_what_is_none_is_refused() -> None:
    assert sorted_versions({"12.10", "12.9", "12.9rc1", "12.9.post1"}) == ("12.9rc1", "12.9", "12.9.post1", "12.10")
    with pytest.raises(ValueError, match="twelve"):
        sorted_versions(["12.1", "twelve"])


@given(st.integers(1, (1 << len(READ)) - 1))
def test_a_set_of_versions_is_read_back_as_it_was_written(mask: int) -> None:
    places = {version: place for place, version in enumerate(READ)}
    assert mask_of(spans_of(mask, READ), places) == mask
    assert sum((1 << last + 1) - (1 << first) for first, last in runs(mask)) == mask


@pytest.mark.parametrize(("spans", "versions"), [
    ("", READ), ("12.10-", ("12.10", "12.11")), ("12.2", ("12.2",)), ("12.0-12.1,12.11-", ("12.0", "12.1", "12.11")),
])
def test_spans_mean_these_versions(spans: str, versions: tuple[str, ...]) -> None:
    places = {version: place for place, version in enumerate(READ)}
    assert mask_of(spans, places) == sum(1 << places[version] for version in versions)


@pytest.mark.parametrize("spans", ["12.99", "12.3-12.1", "12.3,12.1", "12.3-,12.4", "12.1,12.2", ",", "-12.3", "12-x"])
def test_spans_that_no_generator_writes_are_refused(spans: str) -> None:
    with pytest.raises(ValueError, match=r"is not in order|is no version that was read"):
        mask_of(spans, {version: place for place, version in enumerate(READ)})
