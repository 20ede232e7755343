"""`matrix why` and `matrix show` tell what symbols set, with their source."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from stackfix.abi.records import Books
from stackfix.errors import BadInput
from stackfix.matrix.records import Matrix
from stackfix.report.matrix import show_document, show_lines, why_lines
from stackfix.resolve.limits import SYMBOLS
from stackfix.resolve.why import why
from stackfix.resolve.why_pairs import KEYS, keys_of
from stackfix.resolve.why_symbols import symbol_points
from tests.resolve_world import MATRIX, companion, torch_build
from tests.symbol_books import SYMBOL, FakeTorchBook, books, cusparse, judged_wheel, nvjitlink

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
    assert point.source == SYMBOLS
    assert point.text == ("torchaudio 2.3.1 declares torch>=2.0, its symbols can load with torch 2.4 only"
                          " (read of torchaudio-2.3.1-cp310-cp310-manylinux_2_17_x86_64.whl)")


def told(torch: str, known: Books, about: str = "torchaudio", matrix: Matrix = MATRIX) -> list[tuple[bool | None, str]]:
    verdict = why(matrix, {"torch": torch, about: "2.3.1"}, known)
    return [(point.holds, point.text) for point in verdict.points if point.about == about]


def test_symbols_are_told_beside_what_the_matrix_says_against_a_companion(tmp_path: Path) -> None:
    """For another CUDA, and by its symbols for another torch: both are reasons, the symbols come first."""
    matrix = replace(MATRIX, companions=(companion("torchaudio", "2.3.1", ">=2.0", "12.4"),))
    file = "torchaudio-2.3.1-cp310-cp310-manylinux_2_17_x86_64.whl"
    known = books(tmp_path, judged=(judged_wheel(file, "0" * 64, "2.4", because=("torch_new_name",)),))
    [(first, symbols), (second, cuda)] = told("2.3.1", known, matrix=matrix)
    assert (first, second) == (False, False)
    assert "its symbols can load with torch 2.4 only: torch_new_name" in symbols
    assert "is built for CUDA 12.4" in cuda
    known = books(tmp_path, judged=(judged_wheel(file, "0" * 64, "2.3 2.4"),))
    assert told("2.3.1", known, matrix=matrix)[0] == (
        True, f"by its symbols torchaudio 2.3.1 can load with torch 2.3.1 (read of {file})")


EXTENSION = "ext-2.3.1-cp310-cp310-manylinux_2_17_{}.whl"


@pytest.mark.parametrize(("changes", "torch", "fits", "says"), [
    ({}, "2.3.1", True, "by its symbols ext 2.3.1 can load with torch 2.3.1"),
    ({}, "2.4.1", False, "its symbols can load with torch 2.3 only"),
    ({"declares": "<2.4,>=2.0"}, "2.3.1", True, "ext 2.3.1 requires torch<2.4,>=2.0"),
    ({"declares": "==2.3.0"}, "2.3.1", False, "ext 2.3.1 requires torch==2.3.0"),
    ({"declares": "*"}, "2.3.1", True, "by its symbols"),
    ({"string_abi": "new"}, "2.3.1", False, "is built with the new C++ ABI"),
    ({"string_abi": "both"}, "2.3.1", None, "its names are of both C++ ABIs"),
    ({"cuda": (10,)}, "2.3.1", False, "is linked against libraries of CUDA 10"),
])
def test_an_extension_that_the_matrix_does_not_have(
    changes: dict[str, object], torch: str, fits: bool | None, says: str, tmp_path: Path,
) -> None:
    known = books(tmp_path, judged=(judged_wheel(EXTENSION.format("x86_64"), "0" * 64, "2.3", **changes),))
    assert why(MATRIX, {"torch": torch, "ext": "2.3.1"}, known).fits is fits
    assert any(says in text and holds is fits for holds, text in told(torch, known, "ext"))


def test_of_what_was_not_read_of_an_extension_nothing_is_said(tmp_path: Path) -> None:
    for machine, torch, matrix, says in (
        ("aarch64", "2.3.1", MATRIX, "nobody read a wheel of ext 2.3.1 for linux-64"),
        ("x86_64", "2.9.9", replace(MATRIX, torch=(torch_build("2.9.9", "12.1", "12.1.1"),)),
         "nobody read torch 2.9.9"),
        ("x86_64", "2.3.1", replace(MATRIX, torch=(torch_build("2.3.1", "12.1", "12.1.1", cxx11_abi=None),)),
         "nobody read that of torch 2.3.1"),
    ):
        known = books(tmp_path, judged=(judged_wheel(EXTENSION.format(machine), "0" * 64, "2.3", string_abi="old"),))
        [(holds, text)] = told(torch, known, "ext", matrix)
        assert holds is None
        assert says in text
    known = books(tmp_path, judged=(judged_wheel(EXTENSION.format("x86_64"), "0" * 64, "2.3"),))
    verdict = why(MATRIX, {"torch": "2.3.1", "ext": "9.9"}, known)
    assert verdict.fits is None
    assert "nobody read a wheel of ext 9.9; read were those of 2.3.1" in [point.text for point in verdict.points]


def test_each_patch_is_told_by_itself(tmp_path: Path) -> None:
    matrix = replace(MATRIX, torch=tuple(torch_build(each, "12.1", "12.1.1") for each in ("2.3.2", "2.3.1", "2.3.0")))
    for able, told_of in (("2.3", (None, True, True)), ("2.3.0", (None, False, True)), ("2.3.1", (None, True, False))):
        known = replace(books(tmp_path, judged=(judged_wheel(EXTENSION.format("x86_64"), "0" * 64, able),)),
                        torch=FakeTorchBook(patches=("0",)))
        assert tuple(told(each.version, known, "ext", matrix)[0][0] for each in matrix.torch) == told_of


def test_the_release_that_fits_is_taken(tmp_path: Path) -> None:
    known = books(tmp_path, judged=tuple(
        judged_wheel(f"ext-{version}-cp310-cp310-linux_x86_64.whl", digit * 64, torch)
        for version, digit, torch in (("2.3.2", "1", "2.4"), ("2.3.1", "0", "2.3"))))
    verdict = why(MATRIX, {"torch": "2.3.1", "ext": "2.3"}, known)
    assert verdict.fits is True
    assert any("ext 2.3.1 can load" in point.text for point in verdict.points)


def test_the_keys_are_those_packages_too(tmp_path: Path) -> None:
    known = books(tmp_path, judged=(judged_wheel(EXTENSION.format("x86_64"), "0" * 64, "2.3"),))
    assert keys_of(known) == (*KEYS, "ext")
    assert keys_of(None) == KEYS
    with pytest.raises(BadInput, match="is not a key"):
        why(MATRIX, {"torch": "2.3.1", "ext": "1.0"})
    with pytest.raises(BadInput, match="is no version and no PEP 440 specifier"):
        why(MATRIX, {"torch": "2.3.1", "ext": "new"}, known)


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
