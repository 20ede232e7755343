"""Sets of releases as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.almanac.intervals import make_room, parse_set, render_set

RELEASES = ("1.13", "2.0", "2.1", "2.2", "2.3")


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (0b11111, "1.13-"),
        (0b10000, "2.3-"),
        (0b01000, "2.2"),
        (0b00001, "1.13"),
        (0b01110, "2.0-2.2"),
        (0b01111, "1.13-2.2"),
        (0b11011, "1.13-2.0,2.2-"),
        (0b10101, "1.13,2.1,2.3-"),
    ],
)
def test_a_set_and_its_text(mask: int, text: str) -> None:
    assert render_set(mask, RELEASES) == text
    assert parse_set(text, RELEASES) == mask


def test_a_name_that_lives_on_has_the_same_text_in_a_longer_list() -> None:
    longer = (*RELEASES, "2.4")
    assert render_set(0b111100, longer) == render_set(0b11100, RELEASES) == "2.1-"
    assert render_set(0b011100, longer) == "2.1-2.3"


@given(st.integers(1, (1 << 20) - 1), st.integers(0, 20))
def test_texts_are_read_back_and_room_is_made(mask: int, place: int) -> None:
    releases = tuple(f"2.{number}" for number in range(20))
    assert parse_set(render_set(mask, releases), releases) == mask
    widened = make_room(mask, place)
    assert [bit for bit in range(21) if bit != place and widened >> bit & 1] == [
        bit + (bit >= place) for bit in range(20) if mask >> bit & 1]
    assert not widened >> place & 1


@pytest.mark.parametrize("text", ["", "2.4", "2.4-", "2.1-2.0", "2.0-2.0", "2.2-2.3", "2.3", "1.13-,2.1-", "2.1,2.0",
                                  "1.13,2.0", "2.0-2.1-2.2", "-2.1", "2.0,", " 2.0", "2.0-2.1,2.1-2.2"])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"interval|how a set"):
        parse_set(text, RELEASES)


@pytest.mark.parametrize("mask", [0, -1, 1 << 5])
def test_what_is_no_set_of_these_releases_is_refused(mask: int) -> None:
    with pytest.raises(ValueError, match="no set"):
        render_set(mask, RELEASES)
