"""`stackfix check` on environments that uv makes from the package index: broken, named, cured, quiet.

Without options one torch is downloaded (2.3.1, about 3 GB): it is found healthy, its import maps what was predicted,
and three faults of nvJitLink and cuDNN are named; the other faults are made of stand-ins. `nox -s real` makes them of
the real wheels, and six stacks drawn from all the years of torch; STACKFIX_SEED repeats a draw.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.judges.command import Run, stackfix
from tests.real_environments.announce import say
from tests.real_environments.asked import check
from tests.real_environments.child import imports
from tests.real_environments.draw import Draw, draw, seed_of_this_run
from tests.real_environments.judge import SYMBOL, judge_broken, judge_healthy
from tests.real_environments.predict import predicted_map
from tests.real_environments.scenarios import (
    CUSPARSE_FILE,
    HEAVY,
    NVJITLINK_12_1,
    NVJITLINK_FILE,
    OWN_NVJITLINK,
    SHADOWED,
    TORCH_231,
    WITH_ONE_TORCH,
    Scenario,
)
from tests.real_environments.standins import write_wheels
from tests.real_environments.workshop import Made, Workshop
from tests.repair_world import bench_in, judge_cure

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")
PYTHON = "3.11"
NEEDED_BYTES = 16 << 30
SEED = seed_of_this_run()
DRAWN = draw(SEED, 6)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    """Where environments are made; all of it is gone afterwards."""
    folder = tmp_path_factory.mktemp("real")
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        pytest.skip(f"{free >> 30} GiB free at {folder}, {NEEDED_BYTES >> 30} GiB needed")
    made = Workshop(folder=folder)
    yield made
    made.clear()
    say(request.config, f"real environments: seed {SEED}, {made.peak / 1e9:.1f} GB of disk at most")


@pytest.fixture(scope="module")
def standins(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """The same from wheels of our own."""
    folder = tmp_path_factory.mktemp("stand-ins")
    (folder / "made").mkdir()
    return Workshop(folder=folder / "made", wheels=write_wheels(folder / "wheels"))


@pytest.mark.torch
def test_a_healthy_torch_is_quiet_and_maps_what_was_predicted(workshop: Workshop) -> None:
    made = workshop.make(*TORCH_231, python=PYTHON)
    told = imports(workshop, made, "torch")
    assert told.error is None
    judge_healthy(check(workshop, made))
    assert predicted_map(workshop, made, told) == told.mapped


@pytest.mark.torch
def test_the_loader_itself_names_the_same_symbols(workshop: Workshop) -> None:
    made = workshop.make(*TORCH_231, python=PYTHON)
    variables = SHADOWED.broken(workshop, made)
    said = subprocess.run(["ldd", "-r", made.site / CUSPARSE_FILE], capture_output=True, text=True, check=False,
                          timeout=60, env=workshop.quiet(**variables))
    assert set(SYMBOL.findall(said.stdout + said.stderr)) == NVJITLINK_12_1


@pytest.mark.torch
def test_a_copy_that_lacks_nothing_is_a_note(workshop: Workshop) -> None:
    made = workshop.make(*TORCH_231, python=PYTHON)
    copy = workshop.unpack(OWN_NVJITLINK, PYTHON) / NVJITLINK_FILE
    answer = check(workshop, made, LD_LIBRARY_PATH=str(copy.parent))
    judge_healthy(answer)
    assert [each["winner"] for each in answer.of("SF102")] == [str(copy)], answer.told()
    assert imports(workshop, made, "torch", LD_LIBRARY_PATH=str(copy.parent)).error is None


@pytest.mark.torch
@pytest.mark.parametrize("method", ["auto", "activate"])
def test_a_shadowed_torch_is_repaired_and_given_back(method: str, workshop: Workshop) -> None:
    judge_cure(bench_in(workshop), method)


@pytest.mark.torch
@pytest.mark.parametrize("scenario", WITH_ONE_TORCH, ids=str)
def test_a_broken_environment_is_named_and_the_cured_one_is_quiet(scenario: Scenario, workshop: Workshop) -> None:
    judge(scenario, workshop)


@pytest.mark.parametrize("scenario", [*WITH_ONE_TORCH, *HEAVY], ids=str)
def test_a_stand_in_is_named_and_the_cured_one_is_quiet(scenario: Scenario, standins: Workshop) -> None:
    judge(scenario, standins)


@pytest.mark.real
@pytest.mark.parametrize("scenario", HEAVY, ids=str)
def test_a_heavy_one_is_named_and_the_cured_one_is_quiet(scenario: Scenario, workshop: Workshop) -> None:
    judge(scenario, workshop)


@pytest.mark.real
@pytest.mark.parametrize("drawn", DRAWN, ids=str)
def test_a_drawn_lock_is_healthy_and_maps_what_was_predicted(drawn: Draw, workshop: Workshop) -> None:
    made = workshop.make(python=drawn.python)
    locked = lock(drawn, drawn.with_, made, workshop)
    if locked.status == 1:      # companions that this torch cannot have: no question for a check
        locked = lock(drawn, (), made, workshop)
    assert locked.status == 0, locked
    workshop.install(made, "--require-hashes", "-r", str(made.prefix / "requirements.txt"))
    told = imports(workshop, made, "torch")
    assert told.error is None
    judge_healthy(check(workshop, made))
    assert predicted_map(workshop, made, told) == told.mapped


def lock(drawn: Draw, with_: Sequence[str], made: Made, workshop: Workshop) -> Run:
    """`stackfix lock` of what was drawn, with these companions."""
    wanted = [word for name in with_ for word in ("--with", name)]
    return stackfix("lock", "--torch", drawn.torch, "--python", drawn.python, "--no-flash-attn", *wanted, "--format",
                    "requirements", "-o", made.prefix, cwd=workshop.folder, cache=workshop.folder / "lock-cache")


def judge(scenario: Scenario, workshop: Workshop) -> None:
    """Break it, look at it both ways, cure it, look again."""
    made = workshop.make(*scenario.base, python=scenario.python)
    variables = scenario.broken(workshop, made)
    told = imports(workshop, made, *scenario.imports, **variables)
    assert re.search(scenario.error, told.error or ""), told.error
    judge_broken(scenario, check(workshop, made, **variables), told, workshop, made)
    scenario.cured(workshop, made)
    assert imports(workshop, made, "torch").error is None
    judge_healthy(check(workshop, made))


def test_draws_cover_the_years_and_repeat() -> None:
    assert draw(7, 6) == draw(7, 6)
    assert len({each.torch.rpartition(".")[0] for each in draw(7, 6)}) == 6
    assert any(draw(seed, 6) != draw(7, 6) for seed in range(3))


def test_an_unreachable_index_is_told_from_a_failure(tmp_path: Path) -> None:
    workshop = Workshop(folder=tmp_path)
    with pytest.raises(pytest.skip.Exception):
        workshop.uv("pip", "install", "--index-url", "http://127.0.0.1:9/simple", "--target", "there", "absent")
    with pytest.raises(AssertionError):
        workshop.uv("pip", "install", "--no-index", "--target", "there", "absent")
