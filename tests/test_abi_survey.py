"""The almanac on published wheels, by the names that were kept of them: no download."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from stackfix.abi.can_load import CAN, CANNOT
from stackfix.abi.records import JudgedWheel
from stackfix.almanac.extensions_judge import judge
from stackfix.almanac.manifest import read_manifest
from stackfix.matrix.toml_files import matrix_directory
from tests.abi_survey.kept import read_survey, render
from tests.abi_survey.report import PAGE, Measured, measure, with_tables
from tests.abi_survey.rules import WHOLE, WITHOUT

DIRECTORY = matrix_directory() / "abi"


@pytest.fixture(scope="module")
def measured() -> Measured:
    return measure()


def row(measured: Measured, package: str, version: str) -> JudgedWheel:
    found, = (each for each in measured.judged if (each.package, each.version) == (package, version))
    return found


def test_manifest_table_and_kept_names_are_of_the_same_wheels(measured: Measured) -> None:
    manifest = {each.sha256: each.file for each in read_manifest(DIRECTORY / "extensions.toml")}
    assert {each.sha256: each.file for each in measured.judged} == manifest
    assert {each.wheel.sha256: each.wheel.file for each in measured.survey.wheels} == manifest


def test_none_of_them_is_what_the_almanac_is_made_of() -> None:
    own = {each.sha256 for name in ("torch.toml", "nvidia.toml") for each in read_manifest(DIRECTORY / name)}
    assert own
    assert not own & {each.sha256 for each in read_manifest(DIRECTORY / "extensions.toml")}


def test_the_table_is_what_the_symbols_say(measured: Measured) -> None:
    """Every wheel judged anew by the bundled almanac."""
    again = {each.wheel.sha256: judge(each, measured.book) for each in measured.survey.wheels}
    assert [again[each.sha256] for each in measured.judged] == list(measured.judged)


# Nothing that they declare can load them. torch-tensorrt 2.3.0 was built with a nightly: it wants names that end with
# 2.3, and names that begin with 2.4, as `ldd -r` says too. nvfuser-cu121-torch21 was built with 2.2.
WHOLLY_WRONG = {("torch-tensorrt", "2.3.0"): (), ("nvfuser-cu121-torch21", "0.1.6.dev20240313"): ("2.2",)}


def test_at_least_eighty_declare_a_torch_and_every_set_holds_one_that_is_declared(measured: Measured) -> None:
    declared = [each for each in measured.judged if measured.declared(each)]
    without = {(each.package, each.version): each.torch for each in declared
               if not {*measured.admits(each)} & {*each.torch}}
    assert len(declared) >= 120
    assert without == WHOLLY_WRONG


def test_a_wheel_of_a_nightly_wants_what_no_single_release_has(measured: Measured) -> None:
    wheel, = (each for each in measured.survey.wheels if each.wheel.file.startswith("torch_tensorrt-2.3.0-"))
    wanted = {name.name for library in wheel.libraries for name in library.wanted}
    begins, ends = "_ZNK3c105Error4whatEv", "_ZN5torch3jit11parseSchemaERKSs"
    assert {begins, ends} <= wanted
    assert (measured.book.minors(begins)[0], measured.book.minors(ends)[-1]) == ("2.4", "2.3")


def test_most_sets_are_a_single_minor(measured: Measured) -> None:
    single = [each for each in measured.judged if len(measured.on_index(each)) == 1]
    alone = [each for each in measured.judged if len(each.torch) == 1]
    declared = [each for each in measured.judged if measured.declared(each)]
    of_declared = [each for each in declared if each in single]
    assert len(of_declared) / len(declared) >= 0.6
    # as docs/abi-survey.md says
    assert (len(alone), len(single), len(measured.judged)) == (129, 148, 254)
    assert (len(of_declared), len(declared)) == (137, 219)


@pytest.mark.parametrize(("package", "version", "disproved", "left"), [
    ("torchaudio", "2.11.1", ("2.11", "2.12"), ("2.13", "2.14", "2.15")),
    ("vllm", "0.2.0", ("2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14",
                       "2.15"), ("2.0", "2.1")),
])
def test_declarations_that_are_disproved(package: str, version: str, disproved: tuple[str, ...], left: tuple[str, ...],
                                         measured: Measured) -> None:
    found = row(measured, package, version)
    assert (found.disproved, found.torch) == (disproved, left)


def test_no_exact_pin_is_disproved(measured: Measured) -> None:
    assert [each.file for each in measured.judged if each.disproved and (each.declares or "").startswith("==")] == []


def test_the_verdict_is_that_of_a_real_loader_in_every_decidable_case(measured: Measured) -> None:
    decidable = [case for case in measured.cases if case.verdict != "asks nothing" and case.agrees is not None]
    assert {case.torch for case in decidable} == {"2.3.1", "2.4.0"}
    assert len(decidable) >= 180
    assert [(case.path, case.wheel, case.torch, case.verdict, case.symbol) for case in decidable
            if not case.agrees] == []
    for torch in ("2.3.1", "2.4.0"):        # neither answer is the only one
        assert {case.verdict for case in decidable if case.torch == torch} == {CAN, CANNOT}


def test_a_file_that_asks_nothing_misses_nothing_of_torch(measured: Measured) -> None:
    assert [case for case in measured.cases if case.verdict == "asks nothing" and case.seen == "torch symbol"] == []


# Rules that change the set of no wheel here; tests/test_abi_names.py shows what they are for.
NO_MATTER_HERE = {"noise", "c10d", "at"}


@pytest.mark.parametrize(("name", "package", "version", "right", "wrong"), [
    ("standard", "torchaudio", "2.11.0", ("2.11", "2.12", "2.13", "2.14", "2.15"), ("2.11",)),
    ("foreign", "fbgemm-gpu", "1.0.0", ("2.5",), ()),       # NCCL's names, which only torch 1.13 exports
    ("moved", "torchvision", "0.14.1", ("1.13",), ()),
    ("weak", "xformers", "0.0.25", ("2.2",), ()),
    ("siblings", "torchaudio", "2.3.1", ("2.3",), ()),
    ("versioned", "torchvision", "0.20.1", ("2.5",), ()),
])
def test_a_wheel_that_gets_a_wrong_set_without_a_filter(name: str, package: str, version: str, right: tuple[str, ...],
                                                        wrong: tuple[str, ...], measured: Measured) -> None:
    file = row(measured, package, version).file
    assert (measured.sets[WHOLE][file], measured.sets[name][file]) == (right, wrong)


def test_the_filters_that_change_a_set(measured: Measured) -> None:
    changing = {name for name in WITHOUT if measured.sets[name] != measured.sets[WHOLE]}
    assert {*WITHOUT} - changing == NO_MATTER_HERE


def test_the_rule_here_is_that_of_the_almanac(measured: Measured) -> None:
    assert measured.sets[WHOLE] == {each.file: measured.on_index(each) for each in measured.judged}


def test_the_page_shows_what_was_measured(measured: Measured) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page, measured) == page


def test_what_is_kept_is_what_is_read_back(tmp_path: Path, measured: Measured) -> None:
    again = tmp_path / "names.txt.xz"
    again.write_bytes(lzma.compress("".join(f"{line}\n" for line in render(measured.survey)).encode()))
    assert read_survey(again) == measured.survey
