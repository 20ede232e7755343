"""Floors and ceilings that the symbols of NVIDIA's wheels set, with the matrix's rules switched off or beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from stackfix.resolve.limits import SYMBOLS, limits_of
from tests.resolve_world import MATRIX, FakeIndex, Release, asked, lock, pins, projects, refusal, rule, wheel_tags
from tests.symbol_books import SYMBOL, Library, Use, books, cusparse, nvjitlink
from tests.test_resolve_explain import facts, named

NO_RULES = replace(MATRIX, rules=())
JITLINK = "nvidia-nvjitlink-cu12"


def test_without_any_rule_the_symbols_refuse(tmp_path: Path) -> None:
    error = refusal(asked(f"{JITLINK}==12.0.140", torch="==2.3.1"), matrix=NO_RULES,
                    books=books(tmp_path, nvjitlink(), cusparse()))
    assert named(error) == {"torch 2.3.1", f"requirement {JITLINK}==12.0.140"}
    assert f"nvidia-cusparse-cu12 12.1.0.106 needs {JITLINK}>=12.1.55: libcusparse.so.12 uses" in facts(error)
    assert f"{SYMBOL}_12_1, absent in 12.0.140" in facts(error)
    assert SYMBOLS in {cause.source for cause in error.causes}
    assert error.nearest
    assert pins(lock(asked(f"{JITLINK}==12.0.140", torch="==2.3.1"), matrix=NO_RULES))[JITLINK] == "12.0.140"


def test_what_the_symbols_refuse_is_never_chosen(tmp_path: Path) -> None:
    request = asked(torch="==2.3.1", kept=(("torch", "2.3.1"), (JITLINK, "12.0.140")))
    found = lock(request, matrix=NO_RULES, books=books(tmp_path, nvjitlink(), cusparse()))
    assert pins(found)[JITLINK] == "12.1.105"
    assert any(f"{JITLINK} 12.1.105 was chosen by symbols" in note and SYMBOL in note for note in found.notes)
    assert pins(lock(request, matrix=NO_RULES))[JITLINK] == "12.0.140"


def test_of_a_rule_and_the_symbols_the_symbols_decide(tmp_path: Path) -> None:
    """A rule that asks for more than the symbols, and one that asks for less."""
    known = books(tmp_path, nvjitlink({"12.0.140": "_12_1", "12.1.55": "_12_1", "12.1.105": "_12_1", "12.4.127": ""}),
                  cusparse())
    request = asked(f"{JITLINK}==12.0.140", torch="==2.3.1")
    assert pins(lock(request, books=known))[JITLINK] == "12.0.140"
    error = refusal(asked(f"{JITLINK}==12.4.127", torch="==2.3.1"), books=known)
    assert f"needs {JITLINK}<=12.1.105: libcusparse.so.12 uses {SYMBOL}_12_1, gone in 12.4.127" in facts(error)


def test_a_rule_that_the_symbols_know_no_reason_for(tmp_path: Path) -> None:
    """Of read versions all suffice, so that the rule is left with those that nobody read."""
    known = books(tmp_path, nvjitlink(), cusparse(v12_1_0_106=("base",)))
    assert pins(lock(asked(f"{JITLINK}==12.0.140", torch="==2.3.1"), books=known))[JITLINK] == "12.0.140"
    [limit] = limits_of(MATRIX, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.106")
    assert limit.rule in MATRIX.rules
    assert not limit.admits(Version("12.0.1"))
    assert limits_of(NO_RULES, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.106") == ()
    exclusive = replace(MATRIX, rules=(rule("nvidia-cusparse-cu12", ">=0", f"{JITLINK}<0"),))
    assert not limits_of(exclusive, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.106")[0].admits(Version("12.0.140"))


@pytest.mark.parametrize(("version", "told", "admitted"), [
    ("12.0.100", None, False),      # older than all that were read: the rule
    ("12.0.140", False, False),
    ("12.1.20", None, False),       # its neighbours differ: the rule
    ("12.1.57", None, True),        # the same, and the rule lets it in
    ("12.1.80", True, True),        # between two read ones that agree
    ("12.4.127", True, True),
    ("12.9.1", None, True),         # newer than all that were read
])
def test_of_a_version_that_nobody_read(version: str, told: bool | None, admitted: bool, tmp_path: Path) -> None:
    known = books(tmp_path, nvjitlink({"12.0.140": "", "12.1.60": "_12_1", "12.1.105": "_12_1", "12.4.127": "_12_1"}),
                  cusparse())
    [limit] = limits_of(MATRIX, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.106")
    assert limit.by_symbols(Version(version)) is told
    assert limit.admits(Version(version)) is admitted
    assert not limit.undecided(Version(version))
    [alone] = limits_of(NO_RULES, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.106")
    assert alone.admits(Version(version)) is (told is not False)
    assert alone.undecided(Version(version)) is (told is None)


def test_what_nobody_read_and_no_rule_covers_is_told(tmp_path: Path) -> None:
    known = books(tmp_path, nvjitlink({"12.0.140": "", "12.1.55": "_12_1"}), cusparse())
    found = lock(asked(torch="==2.3.1"), matrix=NO_RULES, books=known)
    assert pins(found)[JITLINK] == "12.1.105"
    assert any(f"nobody read whether {JITLINK} 12.1.105 has all" in note and "low" in note for note in found.notes)
    found = lock(asked(torch="==2.3.1"), books=known)
    assert not any("nobody read" in note for note in found.notes)


def test_a_pin_of_the_makers_is_no_guess(tmp_path: Path) -> None:
    world = projects()
    world["nvidia-cusparse-cu12"]["12.1.0.106"] = Release(requires=(f"{JITLINK}==12.1.105",))
    known = books(tmp_path, nvjitlink({"12.0.140": "", "12.1.55": "_12_1"}), cusparse())
    found = lock(asked(torch="==2.3.1"), FakeIndex(world), matrix=NO_RULES, books=known)
    assert not any("nobody read" in note for note in found.notes)


@pytest.mark.parametrize(("newer", "told"), [("_12_1", True), ("_12_4", False)])
def test_of_a_consumer_that_nobody_read_what_its_neighbours_agree_on(newer: str, told: bool, tmp_path: Path) -> None:
    known = books(tmp_path, nvjitlink(), cusparse(
        v12_1_0_100=(f"{SYMBOL}_12_1",), v12_1_0_110=(f"{SYMBOL}{newer}",),
    ))
    found = limits_of(NO_RULES, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.106")
    assert [limit.rule.needs for limit in found] == [f"{JITLINK}>=12.1.55"] * told
    for limit in found:
        assert "as read of nvidia-cusparse-cu12 12.1.0.100 and 12.1.0.110" in limit.rule.why
        assert limit.rule.confidence == "high"
    assert limits_of(NO_RULES, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.111") == ()


def test_a_consumer_that_nobody_read_is_told(tmp_path: Path) -> None:
    known = books(tmp_path, nvjitlink(), cusparse(v12_0_0=("base",), v12_1_0_100=(f"{SYMBOL}_12_1",)))
    found = lock(asked(torch="==2.3.1"), matrix=NO_RULES, books=known)
    [note] = [note for note in found.notes if "nobody read what" in note]
    assert note.startswith(f"nobody read what nvidia-cusparse-cu12 12.1.0.106 uses of {JITLINK} 12.1.105")
    assert f"nvidia-cusparse-cu12 12.1.0.100 needs {JITLINK}>=12.1.55" in note
    assert not any("nobody read" in note for note in lock(asked(torch="==2.3.1"), books=known).notes)


def test_names_that_no_read_version_has_decide_nothing(tmp_path: Path) -> None:
    known = books(tmp_path, nvjitlink(), cusparse(v12_1_0_106=("madeUpName",)))
    assert limits_of(NO_RULES, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.106") == ()


def test_a_rule_about_another_project_stays(tmp_path: Path) -> None:
    known = books(tmp_path, nvjitlink(), cusparse())
    matrix = replace(MATRIX, rules=(rule("nvidia-cusparse-cu12", ">=0", "numpy<2"), *MATRIX.rules))
    found = limits_of(matrix, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.106")
    assert [(limit.name, limit.rule.source) for limit in found] == [(JITLINK, SYMBOLS), ("numpy", "symbols")]


def test_cusolver_over_an_older_cublas(tmp_path: Path) -> None:
    """The case of CUDA 12.9, whose cuSOLVER asks for no version of cuBLAS in its metadata."""
    world = projects()
    cusolver, cublas = "nvidia-cusolver-cu12", "nvidia-cublas-cu12"
    world["torch"]["2.3.1"] = Release(requires=(f"{cusolver}==11.7.5.82",), tags=wheel_tags(("3.10",)))
    world[cusolver] = {"11.7.5.82": Release(requires=(cublas,))}
    world[cublas] = {version: Release() for version in ("12.8.5.5", "12.9.0.13", "12.9.1.4")}
    known = books(
        tmp_path,
        {cublas: Library(soname="libcublas.so.12", versions={
            "12.8.5.5": ("cublasCreate_v2",), "12.9.0.13": ("cublasCreate_v2", "cublasSetEnvironmentMode"),
            "12.9.1.4": ("cublasCreate_v2", "cublasSetEnvironmentMode"),
        })},
        {cusolver: Use(file="libcusolver.so.11", soname="libcublas.so.12", names={
            "11.7.5.82": ("cublasCreate_v2", "cublasSetEnvironmentMode"),
        })},
    )
    request = asked(f"{cublas}==12.8.5.5", torch="==2.3.1")
    error = refusal(request, FakeIndex(world), matrix=NO_RULES, books=known)
    assert f"{cusolver} 11.7.5.82 needs {cublas}>=12.9.0.13: libcusolver.so.11 uses cublasSetEnvironmentMode" \
        in facts(error)
    assert any(offer.change.startswith(f"{cublas}==12.9.1.4 in place of") for offer in error.nearest)
    kept = asked(torch="==2.3.1", kept=((cublas, "12.8.5.5"), ("torch", "2.3.1")))
    assert pins(lock(kept, FakeIndex(world), matrix=NO_RULES, books=known))[cublas] == "12.9.1.4"


def test_a_limit_as_a_specifier_takes_exactly_what_it_admits(tmp_path: Path) -> None:
    """Also a version in between, and post-releases, which `>` of PEP 440 would leave out."""
    known = books(tmp_path, nvjitlink({
        "12.0": "", "12.1": "_12_1", "12.2": "", "12.2.post1": "_12_1", "12.3": "_12_1", "12.4": "",
    }), cusparse())
    [limit] = limits_of(NO_RULES, known.nvidia, "nvidia-cusparse-cu12", "12.1.0.106")
    texts = ("12.5", "12.4", "12.3", "12.2.post2", "12.2.post1", "12.2", "12.1.post1", "12.1", "12.0.post1", "12.0")
    versions = tuple(map(Version, texts))
    taken = [str(version) for version in versions if version in limit.specifier(versions)]
    assert taken == ["12.5", "12.3", "12.2.post2", "12.2.post1", "12.1.post1", "12.1", "12.0.post1"]
    assert taken == [str(version) for version in versions if limit.admits(version)]
    assert not [version for version in versions[-1:] if version in limit.specifier(versions[-1:])]
