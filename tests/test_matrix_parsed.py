"""The rows kept in parsed form are the rows of the files, and never those of other files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.matrix.load import load_matrix
from stackfix.matrix.parsed import from_plain, parsed_once, to_plain
from stackfix.matrix.records import Matrix, Needs

NAME = f"matrix.{sys.implementation.cache_tag}.columns"


class Parser:
    """Parses what it is told, and counts."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix, self.times = matrix, 0

    def __call__(self) -> Matrix:
        self.times += 1
        return self.matrix


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Parser:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return Parser(load_matrix())


def test_every_row_comes_back(parser: Parser) -> None:
    assert len(parser.matrix.torch) > 50
    assert from_plain(to_plain(parser.matrix)) == parser.matrix


def test_records_in_columns_and_of_several_kinds_come_back() -> None:
    matrix = load_matrix()
    nested = tuple(Needs(companions=matrix.companions[:number], rules=matrix.rules[number:3]) for number in range(4))
    mixed = (*matrix.rules[:2], *matrix.companions[:2])
    for value in (nested, mixed, (nested, mixed), (), ((),), matrix.torch[:1]):
        assert from_plain(to_plain(value)) == value
    assert [type(one) for one in from_plain(to_plain(mixed))] == [type(one) for one in mixed]


def test_the_second_time_nothing_is_parsed(parser: Parser, tmp_path: Path) -> None:
    for _ in range(2):
        assert parsed_once("matrix", "a", parser, tmp_path / "new") == parser.matrix
    assert parser.times == 1


def test_other_texts_are_parsed_anew(parser: Parser, tmp_path: Path) -> None:
    parsed_once("matrix", "a", parser, tmp_path)
    other = Parser(replace(parser.matrix, torch=parser.matrix.torch[:3]))
    assert parsed_once("matrix", "b", other, tmp_path) == other.matrix
    assert other.times == 1


@pytest.mark.parametrize("place", [0, 40, 100, -1])
def test_a_damaged_file_is_parsed_anew(place: int, parser: Parser, tmp_path: Path) -> None:
    parsed_once("matrix", "a", parser, tmp_path)
    content = bytearray((tmp_path / NAME).read_bytes())
    content[place] ^= 1
    (tmp_path / NAME).write_bytes(content)
    assert parsed_once("matrix", "a", parser, tmp_path) == parser.matrix
    assert parser.times == 2


def test_a_folder_that_cannot_be_written_costs_only_time(parser: Parser, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert parsed_once("matrix", "a", parser, tmp_path / "file") == parser.matrix


def test_nothing_is_written_where_python_writes_no_modules(
    parser: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert parsed_once("matrix", "a", parser, tmp_path) == parser.matrix
    assert list(tmp_path.iterdir()) == []
