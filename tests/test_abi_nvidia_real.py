"""The floors and ceilings of the book equal what the real loader says of real wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.abi.nvidia_book import open_nvidia_book
from tests.abi_nvidia_pairs import PAIRS, Pair, outcome_of, row
from tests.almanac_wheels import needs_gcc


@pytest.mark.real
@needs_gcc
@pytest.mark.parametrize("pair", PAIRS, ids=lambda each: f"{each.consumer} with {each.package} {each.version}")
def test_the_loader_says_what_the_book_says(pair: Pair, tmp_path: Path) -> None:
    outcome = outcome_of(pair, open_nvidia_book(), tmp_path)
    assert outcome.error is None or outcome.symbol is not None, outcome.error
    assert outcome.agrees, row(outcome)


def test_the_pairs_are_ten_and_more_and_of_each_there_is_one_that_loads_and_one_that_does_not() -> None:
    book = open_nvidia_book()
    sides = {(pair.consumer, pair.soname): set[bool]() for pair in PAIRS}
    for pair in PAIRS:
        told = book.provides(pair.package, pair.version, pair.soname, pair.wanted(book))
        assert told.unsure == ()
        sides[pair.consumer, pair.soname].add(bool(told.missing))
    assert len(PAIRS) >= 10
    assert all(told == {False, True} for told in sides.values()), sides
