"""What is rendered reads back as it was, and a matrix file rendered again is the same bytes."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.matrix.load import FILES, matrix_directory
from stackfix.matrix.toml_text import header_of, render_toml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
FLAT = st.dictionaries(TEXTS, st.one_of(TEXTS, st.booleans(), st.integers(0, 10**6), st.lists(TEXTS)), max_size=4)
TABLES = st.dictionaries(
    TEXTS,
    st.one_of(
        TEXTS, st.lists(TEXTS, max_size=30), FLAT, st.lists(FLAT, max_size=3),
        st.dictionaries(TEXTS, st.one_of(FLAT, st.lists(FLAT, min_size=1, max_size=3)), max_size=3),
    ),
    max_size=5,
)


@given(TABLES)
def test_reads_back(document: dict[str, Any]) -> None:
    assert tomllib.loads(render_toml(("# header", "# lines"), document)) == document


@given(TABLES)
def test_header_is_kept(document: dict[str, Any]) -> None:
    header = ("# one", "", "# two")
    assert header_of(render_toml(header, document)) == header


@pytest.mark.parametrize("name", FILES)
def test_matrix_files_are_in_the_form_that_is_written(name: str) -> None:
    text = (matrix_directory() / name).read_text(encoding="utf-8")
    assert render_toml(header_of(text), tomllib.loads(text)) == text


def test_rows_of_a_table_stand_one_a_line() -> None:
    text = render_toml((), {"a": {"rows": [{"x": "1"}, {"x": "2"}]}})
    assert text == '\n[a]\nrows = [\n    { x = "1" },\n    { x = "2" },\n]\n'
