"""`matrix why` and `matrix show` tell what symbols set, with their source."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.report.matrix import show_document, show_lines, why_lines
from stackfix.resolve.limits import SYMBOLS
from stackfix.resolve.why import why
from stackfix.resolve.why_symbols import symbol_points
from tests.resolve_world import MATRIX, companion, torch_build
from tests.symbol_books import SYMBOL, books, cusparse, judged_wheel, nvjitlink

CUSPARSE, JITLINK = "nvidia-cusparse-cu12", "nvidia-nvjitlink-cu12"
NO_RULES = replace(MATRIX, rules=())


def test_floors_of_a_torch_are_told_with_their_symbol_and_source(tmp_path: Path) -> None:
    verdict = why(NO_RULES, {"torch": "2.3.1"}, books(tmp_path, nvjitlink(), cusparse()))
    assert verdict.fits is True
    [point] = [point for point in verdict.points if point.source == SYMBOLS]
    assert point.text.startswith(f"{CUSPARSE} 12.1.0.106 needs {JITLINK}>=12.1.55, and 12.1.105 is there: ")
    assert f"{SYMBOL}_12_1, absent in 12.0.140" in point.text
    assert f"[{SYMBOLS}; confidence certain]" in "\n".join(why_lines(verdict))
    assert [point for point in why(NO_RULES, {"torch": "2.3.1"}).points if point.source == SYMBOLS] == []


@pytest.mark.parametrize(("pairs", "fits"), [
    ({JITLINK: "12.0.140"}, False),
    ({JITLINK: "12.4.127"}, True),
    ({JITLINK: "12.0.140", CUSPARSE: "12.0.2.55"}, None),       # of which nothing is known
    ({JITLINK: "12.0.140", CUSPARSE: "12.1.0.106"}, False),
])
def test_libraries_by_name(pairs: dict[str, str], fits: bool | None, tmp_path: Path) -> None:
    verdict = why(NO_RULES, {"torch": "2.3.1", **pairs}, books(tmp_path, nvjitlink(), cusparse()))
    assert verdict.fits is fits


def test_a_library_that_torch_pins_otherwise(tmp_path: Path) -> None:
    matrix = replace(NO_RULES, torch=(torch_build("2.3.1", "12.1", "12.1.1", requires=(f"{CUSPARSE}==12.1.0.106",)),))
    for version, fits in (("12.1.0.106", True), ("12.3.1.170", False)):
        verdict = why(matrix, {"torch": "2.3.1", CUSPARSE: version}, books(tmp_path, nvjitlink(), cusparse()))
        assert verdict.fits is fits
        assert f"torch 2.3.1 requires {CUSPARSE}==12.1.0.106" in [point.text for point in verdict.points]


def test_a_rule_of_the_matrix_speaks_where_nobody_read() -> None:
    verdict = why(MATRIX, {"torch": "2.3.1", JITLINK: "12.0.140"})
    assert verdict.fits is False
    assert {point.source for point in verdict.points if point.holds is False} == {"symbols"}


def test_a_library_wants_a_version() -> None:
    with pytest.raises(BadInput, match="is no version"):
        why(MATRIX, {JITLINK: ">=12"})
    with pytest.raises(BadInput, match="is not a key"):
        why(MATRIX, {"nvjitlink": "12.0"})


def test_a_companion_whose_symbols_say_otherwise(tmp_path: Path) -> None:
    matrix = replace(MATRIX, companions=(companion("torchaudio", "2.3.1", ">=2.0", None),))
    wheel = judged_wheel("torchaudio-2.3.1-cp310-cp310-manylinux_2_17_x86_64.whl", "0" * 64, "2.4", declares=">=2.0")
    for torch, fits in (("2.3.1", False), ("2.4.1", True)):
        verdict = why(matrix, {"torch": torch, "torchaudio": "2.3.1"}, books(tmp_path, judged=(wheel,)))
        assert verdict.fits is fits
    verdict = why(matrix, {"torch": "2.3.1", "torchaudio": "2.3.1"}, books(tmp_path, judged=(wheel,)))
    [point] = [point for point in verdict.points if point.about == "torchaudio"]
    assert (point.source, point.text) == (
        SYMBOLS, "torchaudio 2.3.1 declares torch>=2.0, its symbols can load with torch 2.4 only")


def test_the_table_tells_them_once_below(tmp_path: Path) -> None:
    known = books(tmp_path, nvjitlink(), cusparse())
    lines = list(show_lines(NO_RULES, {"torch": "2.3"}, lambda build: symbol_points(NO_RULES, known, build, {})))
    assert len(lines) == 1 + 3 + 1
    assert SYMBOL in lines[-1]
    assert SYMBOLS in lines[-1]
    document = show_document(NO_RULES, {"torch": "2.3"}, lambda build: symbol_points(NO_RULES, known, build, {}))
    [build, *_] = [entry for entry in document["builds"] if entry["torch"] == "2.3.1"]
    assert build["library_needs"] == [asdict(point) for point in symbol_points(
        NO_RULES, known, next(one for one in NO_RULES.torch if one.version == "2.3.1"), {})]
    assert "library_needs" not in show_document(NO_RULES, {})["builds"][0]
