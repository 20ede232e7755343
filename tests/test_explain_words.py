"""Lines by their words: all of them, of very many the first and the last; and which tracebacks belong together."""

from __future__ import annotations

from stackfix.explain import text_words
from stackfix.explain.text import read_text
from stackfix.explain.text_chains import chains
from stackfix.explain.text_words import FIRST, LAST, SHORT, Words

BEGIN = "Traceback (most recent call last):"
CAUSED = "The above exception was the direct cause of the following exception:"
DURING = "During handling of the above exception, another exception occurred:"


def words_of(*lines: str) -> Words:
    return Words(read_text("\n".join(lines).encode()))


def test_lines_are_found_by_any_of_the_words_in_any_case() -> None:
    words = words_of("one CUDA cuda", "two", "\u0130 cuDNN", "three cuda")
    assert words.places(("cuda", "cudnn")) == [0, 2, 3]
    assert words.places(("none",)) == []
    assert words.places(("",)) == [0, 1, 2, 3]


def test_of_very_many_lines_the_first_and_the_last_are_looked_at() -> None:
    count = FIRST + LAST + 500
    words = words_of(*(f"cuda {number}" for number in range(count)))
    assert words.places(("cuda",)) == [*range(FIRST), *range(count - LAST, count)]
    assert words.places(("cuda", f" {FIRST + 3}")) == [*range(FIRST), *range(count - LAST, count)]
    exact = words_of(*(f"cuda {number}" for number in range(FIRST + LAST)))
    assert exact.places(("cuda",)) == list(range(FIRST + LAST))


def test_a_long_line_is_looked_at_in_part_once_much_was() -> None:
    words = words_of("x" * 4000)
    assert len(words.look(0)) == 4000
    while words._spent <= text_words.BUDGET:        # noqa: SLF001 - a billion looks would take long
        words._spent += 4000 ** 2                   # noqa: SLF001
    assert len(words.look(0)) == SHORT


def test_tracebacks_that_a_line_links_are_a_chain() -> None:
    found = chains(words_of(BEGIN, "A: a", CAUSED, BEGIN, "B: b", DURING, BEGIN, "C: c", BEGIN, "D: d"))
    assert {place: found.get(place) for place in (1, 4, 7, 9)} == {1: 0, 4: 0, 7: 0, 9: None}


def test_no_traceback_is_no_chain() -> None:
    assert chains(words_of("A: a", CAUSED)) == {}
