"""`stackfix repair` of environments that uv makes from the package index, broken as people break them.

Each is planned on a tree that cannot be written, repaired, used by a process that has nothing but the hostile
variables, checked, and undone: the tree and uv's cache are then what they were. By default all is made of stand-ins of
the wheels and an index on loopback; `nox -s real` takes the real ones.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli_world import World
from tests.real_environments.announce import say
from tests.real_environments.asked import check
from tests.real_environments.cures import CURES, Cure, judge
from tests.real_environments.judge import judge_healthy
from tests.real_environments.repaired import Shop, born
from tests.real_environments.scenarios import OTHER_CUDNN, SHADOWED, TORCH_231, Scenario
from tests.real_environments.standins import write_wheels
from tests.real_environments.trees import differences, tree_of
from tests.real_environments.workshop import Workshop

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")
NEEDED_BYTES = 25 << 30


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Where environments are made of real wheels; all of it is gone afterwards."""
    folder = tmp_path_factory.mktemp("repaired")
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        pytest.skip(f"{free >> 30} GiB free at {folder}, {NEEDED_BYTES >> 30} GiB needed")
    (folder / "made").mkdir()
    yield Shop(workshop=Workshop(folder=folder / "made"))
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def standins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The same of wheels of our own, with an index that has them."""
    folder = tmp_path_factory.mktemp("stand-ins")
    (folder / "made").mkdir()
    wheels = write_wheels(folder / "wheels")
    with World(projects=projects(wheels)).served() as index:
        yield Shop(workshop=Workshop(folder=folder / "made", wheels=wheels),
                   settings={"PIP_INDEX_URL": index.url, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"})


def projects(wheels: Path) -> dict[str, dict[str, bytes]]:
    """Project -> file name -> bytes."""
    found = defaultdict[str, dict[str, bytes]](dict)
    for path in wheels.glob("*.whl"):
        found[path.name.partition("-")[0].replace("_", "-")][path.name] = path.read_bytes()
    return dict(found)


@pytest.mark.parametrize("cure", CURES, ids=str)
def test_a_stand_in_is_repaired_and_given_back(cure: Cure, standins: Shop) -> None:
    judge(cure, standins)


@pytest.mark.real
@pytest.mark.parametrize("cure", CURES, ids=str)
def test_a_broken_environment_is_repaired_and_given_back(cure: Cure, shop: Shop,
                                                         request: pytest.FixtureRequest) -> None:
    say(request.config, f"{cure}: {judge(cure, shop)}")


def test_a_healthy_stand_in_is_left_alone(standins: Shop) -> None:
    judge_healthy_is_left(standins)


@pytest.mark.real
def test_a_healthy_environment_is_left_alone(shop: Shop) -> None:
    judge_healthy_is_left(shop)


def judge_healthy_is_left(shop: Shop) -> None:
    """Nothing is planned, made or kept."""
    made = shop.workshop.make(*TORCH_231, python="3.11")
    before = tree_of(made.prefix)
    for answer in (shop.plan(made), shop.repair(made), shop.repair(made, "--method", "activate")):
        assert (answer.run.status, answer.said["plan"]["actions"], answer.left) == (0, [], ()), answer.told()
    assert not differences(before, tree_of(made.prefix))
    assert born(made, shop.workshop.folder, ("torch",), {}).error is None
    judge_healthy(check(shop.workshop, made))


def test_without_the_network_the_command_is_advised(standins: Shop) -> None:
    made = standins.workshop.make(*OTHER_CUDNN.base, python=OTHER_CUDNN.python)
    OTHER_CUDNN.broken(standins.workshop, made)
    before = tree_of(made.prefix)
    nowhere = standins.stackfix("repair", "--json", "--yes", "--offline", "--prefix", made.prefix,
                                STACKFIX_CACHE_DIR=str(standins.workshop.folder / "empty"))
    assert nowhere.status == 3, nowhere
    [left] = nowhere.json["plan"]["left"]
    assert "offline" in left["reason"]
    commands = [each["command"] for each in nowhere.json["plan"]["actions"] if not each["changes"]]
    assert any("'nvidia-cudnn-cu12==8.9.2.26'" in each for each in commands), nowhere
    # torch is not even imported without libcudnn.so.8: a switch of its own would never be reached
    assert not any("torch.backends.cudnn.enabled = False" in str(each) for each in commands), nowhere
    assert not differences(before, tree_of(made.prefix))


@pytest.mark.parametrize(("scenario", "load"), [(SHADOWED, "cannot-tell"), (OTHER_CUDNN, "fails")], ids=str)
def test_a_module_that_was_never_there_is_no_fault_of_a_repair_without_packages(scenario: Scenario, load: str,
                                                                                standins: Shop) -> None:
    made = standins.workshop.make(*scenario.base, python=scenario.python)
    variables = scenario.broken(standins.workshop, made)
    init = made.site / "torch" / "__init__.py"
    text = init.read_text(encoding="utf-8")
    init.unlink()       # its bytes are uv's, too
    init.write_text(f"{text}\nimport never_installed\n", encoding="utf-8")
    done = standins.repair(made, **variables)
    assert done.said["verified"]["load"] == load, done.told()
    assert done.run.status == (1 if load == "fails" else 0), done.told()
    [step] = done.said["verified"]["steps"]
    assert "never_installed" in step["detail"], done.told()


def test_a_requirement_that_a_package_lacks_leaves_its_load_untold(standins: Shop) -> None:
    """The one wheel is right, and what its importer requires was missing before: that is no fault of the repair."""
    made = standins.workshop.make(*OTHER_CUDNN.base, python=OTHER_CUDNN.python)
    OTHER_CUDNN.broken(standins.workshop, made)
    [metadata] = made.site.glob("torch-*.dist-info/METADATA")
    for path, text in ((made.site / "torch" / "__init__.py", "{}\nimport never_installed\n"),
                       (metadata, "Requires-Dist: never-installed>=1\n{}")):
        before = path.read_text(encoding="utf-8")
        path.unlink()       # its bytes are uv's, too
        path.write_text(text.format(before), encoding="utf-8")
    done = standins.repair(made)
    assert done.said["verified"]["load"] == "cannot-tell", done.told()
    [step] = done.said["verified"]["steps"]
    assert "No module named 'never_installed': torch " in step["detail"], done.told()
    assert step["detail"].endswith("requires never-installed>=1, and it is not installed"), done.told()


@pytest.mark.parametrize("change", ["bytes", "mode", "link", "target", "more", "less"])
def test_the_comparison_of_trees_sees(change: str, tmp_path: Path) -> None:
    file, link = tmp_path / "tree" / "file", tmp_path / "tree" / "link"
    file.parent.mkdir()
    file.write_text("before")
    link.symlink_to("file")
    before, times = tree_of(file.parent), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    assert not differences(before, tree_of(file.parent))
    if change == "bytes":
        file.write_text("behind")
        os.utime(file, ns=times)
    elif change == "mode":
        file.chmod(0o600)
    elif change == "link":
        os.link(file, tmp_path / "outside")
    elif change == "target":
        link.unlink()
        link.symlink_to("./file")
    elif change == "more":
        (tmp_path / "tree" / "new").mkdir()
    else:
        link.unlink()
    assert differences(before, tree_of(file.parent))
