"""Repairs as command lines, when the network goes, an archive is altered, or two are started at once."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli_world import World
from tests.real_environments.repaired import Shop
from tests.real_environments.scenarios import OTHER_CUDNN
from tests.real_environments.standins import write_wheels
from tests.real_environments.trees import differences, tree_of
from tests.real_environments.workshop import Made, Workshop
from tests.sources_servers import RawServer, path_of
from tests.test_repair_real import projects

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")


@dataclass
class Line:
    """The network: while it is `lost`, half of a wheel comes, and then nobody is there any more."""

    lost: bool = False
    hung_up: int = 0

    def halved(self, answer: bytes) -> Iterator[bytes]:
        self.hung_up += 1
        yield answer[: len(answer) // 2]
        raise ConnectionResetError


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shop, Line]]:
    folder = tmp_path_factory.mktemp("stand-ins")
    (folder / "made").mkdir()
    wheels = write_wheels(folder / "wheels")
    index, line = World(projects=projects(wheels)), Line()

    def reply(head: str) -> bytes | Iterator[bytes]:
        answer = index.reply(head)
        return line.halved(answer) if line.lost and path_of(head).endswith(".whl") else answer

    with RawServer(reply) as server:
        index.url = f"{server.url}/simple"
        yield Shop(workshop=Workshop(folder=folder / "made", wheels=wheels),
                   settings={"PIP_INDEX_URL": index.url, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}), line


def broken(shop: Shop) -> tuple[Made, dict[str, str]]:
    """An environment with another cuDNN than its torch needs: a wheel cures it."""
    made = shop.workshop.make(*OTHER_CUDNN.base, python=OTHER_CUDNN.python)
    return made, dict(OTHER_CUDNN.broken(shop.workshop, made))


def test_the_network_lost_in_the_middle_of_a_wheel_changes_nothing(served: tuple[Shop, Line], tmp_path: Path) -> None:
    shop, line = served
    made, variables = broken(shop)
    before = tree_of(made.prefix, shop.workshop.cache)
    line.lost = True
    try:
        done = shop.stackfix("repair", "--yes", "--prefix", made.prefix, **variables,
                             STACKFIX_CACHE_DIR=str(tmp_path / "cache"))
    finally:
        line.lost = False
    assert line.hung_up > 0
    assert done.status == 3, done
    assert "nvidia_cudnn_cu12" in done.stdout + done.stderr
    assert not differences(before, tree_of(made.prefix, shop.workshop.cache))
    done = shop.stackfix("repair", "--yes", "--prefix", made.prefix, **variables,
                         STACKFIX_CACHE_DIR=str(tmp_path / "cache"))
    assert done.status == 0, done
    shop.undo(made)
    assert not differences({path: each for path, each in before.items() if path.is_relative_to(made.prefix)},
                           tree_of(made.prefix))


@pytest.mark.parametrize("how", ["other bytes", "cut short"])
def test_an_archive_that_is_altered_between_plan_and_change_is_not_installed(how: str, served: tuple[Shop, Line],
                                                                              tmp_path: Path) -> None:
    """The plan is made, with the wheel in our cache; then it is another file."""
    shop, _ = served
    made, variables = broken(shop)
    own = {**variables, "STACKFIX_CACHE_DIR": str(tmp_path / "cache")}
    assert shop.stackfix("repair", "--dry-run", "--prefix", made.prefix, **own).status == 1
    before = tree_of(made.prefix)
    [archive] = [path for path in (tmp_path / "cache").rglob("*.whl") if "cudnn" in path.name]
    content = archive.read_bytes()
    archive.unlink()
    archive.write_bytes(content[:-99] if how == "cut short" else content[:-200] + bytes(len(content[-200:])))
    done = shop.stackfix("repair", "--yes", "--prefix", made.prefix, "--offline", **own)
    assert done.status in {1, 3}, done
    assert not differences(before, tree_of(made.prefix))
    done = shop.stackfix("repair", "--yes", "--prefix", made.prefix, **own)     # it is fetched anew
    assert done.status == 0, done
    shop.undo(made)
    assert not differences(before, tree_of(made.prefix))


def test_of_two_repairs_at_once_the_environment_gets_one(served: tuple[Shop, Line]) -> None:
    shop, _ = served
    made, variables = broken(shop)
    before = tree_of(made.prefix)
    environ = shop.workshop.quiet(**{**shop.settings, **variables, "UV_CACHE_DIR": str(shop.workshop.cache),
                                     "STACKFIX_CACHE_DIR": str(shop.workshop.folder / "own"), "NO_COLOR": "1",
                                     "UV_NO_CONFIG": "1", "PIP_CONFIG_FILE": os.devnull})
    words = [sys.executable, "-m", "stackfix", "repair", "--yes", "--prefix", str(made.prefix)]
    children = [subprocess.Popen(words, env=environ, cwd=shop.workshop.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True) for _ in range(3)]
    said = [child.communicate()[0] for child in children]
    assert 0 in [child.returncode for child in children], said
    assert {child.returncode for child in children} <= {0, 1, 3}, said
    assert not any("Traceback" in each for each in said), said
    listed = shop.stackfix("undo", "--list", "--json", "--prefix", made.prefix).json
    assert ([each["repair"] for each in listed["repairs"]], listed["unfinished"]) == ([1], None), said
    shop.undo(made)
    assert not differences(before, tree_of(made.prefix))
