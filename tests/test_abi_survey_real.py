"""A random sample of the survey done again from downloads: `nox -s real`; STACKFIX_SEED repeats a draw."""

from __future__ import annotations

import json
import platform
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.abi.book import open_torch_book
from stackfix.abi.judged import open_judged_wheels
from stackfix.almanac.extensions_judge import judge
from stackfix.almanac.manifest import read_manifest
from stackfix.almanac.records import ManifestWheel
from stackfix.almanac.store import tables
from stackfix.matrix.toml_files import matrix_directory
from tests.abi_survey.compare import compare
from tests.abi_survey.dlopen import Loader, run
from tests.real_environments.draw import seed_of_this_run
from tests.real_environments.workshop import Workshop

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
                       reason="the wheels are for x86_64 and glibc"),
]
SEED = seed_of_this_run()
DRAWN = random.Random(SEED).sample(read_manifest(matrix_directory() / "abi" / "extensions.toml"), 4)  # noqa: S311


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module", params=["2.3.1", "2.4.0"])
def loader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loader]:
    """A process that has imported a real torch."""
    workshop = Workshop(folder=tmp_path_factory.mktemp("real"))
    made = workshop.make(f"torch=={request.param}", "numpy<2", python="3.11")
    loading = Loader(str(made.python), request.param)
    yield loading
    loading.close()
    workshop.clear()


@pytest.mark.parametrize("wheel", DRAWN, ids=lambda wheel: f"{SEED}-{wheel.file}")
def test_a_wheel_is_judged_as_its_row_says(wheel: ManifestWheel, store: Path) -> None:
    """Downloaded, by the hash of the manifest."""
    assert judge(tables(wheel, store, lambda path: True), open_torch_book()) == open_judged_wheels().wheel(wheel.sha256)


def test_the_loader_says_what_the_verdict_says(loader: Loader, store: Path, tmp_path: Path) -> None:
    """The same wheels, opened anew. A sample may have no decidable case."""
    results = tmp_path / "answers.jsonl"
    run(DRAWN, [loader], results)
    answers = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert {each["wheel"] for each in answers} == {each.file for each in DRAWN}
    read = [tables(wheel, store, lambda path: True) for wheel in DRAWN]
    cases = compare(read, answers, open_torch_book())
    assert [(SEED, case) for case in cases if case.agrees is False] == []
