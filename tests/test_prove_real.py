"""Proofs of healthy locks beside what a real import of the really installed stack maps: gigabytes, one at a time."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from stackfix.prove.facts import Short, facts_of
from tests.judges.command import Run, stackfix
from tests.prove_world import real_stack
from tests.real_environments.announce import say
from tests.real_environments.child import Told, imports
from tests.real_environments.scenarios import NVJITLINK_FILE
from tests.real_environments.workshop import Made, Workshop

pytestmark = [pytest.mark.real, pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="the wheels are for x86_64 and glibc")]
PYTHON = "3.11"
NEEDED_BYTES = 16 << 30
TORCHES = ("2.1.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.8.0")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Workshop]:
    """Where environments are made; all of it is gone afterwards."""
    folder = tmp_path_factory.mktemp("proven")
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        pytest.skip(f"{free >> 30} GiB free at {folder}, {NEEDED_BYTES >> 30} GiB needed")
    made = Workshop(folder=folder)
    yield made
    made.clear()
    say(request.config, f"proven environments: {made.peak / 1e9:.1f} GB of disk at most")


@pytest.mark.parametrize("torch", TORCHES)
def test_a_proof_is_what_a_real_import_maps(torch: str, workshop: Workshop) -> None:
    made = workshop.make(python=PYTHON)
    locked = lock(torch, made, workshop)
    assert locked.status == 0, locked
    workshop.install(made, "--require-hashes", "-r", str(made.prefix / "requirements.txt"))
    target = json.loads((made.prefix / "stack-proof.json").read_text())["targets"][0]
    assert target["verdict"] == "loads"
    told = imports(workshop, made, "torch")
    assert told.error is None
    judge(target, told, made)
    judge_exact(target, made)
    judge_preloaded(target, workshop, made)
    expected = check(made, workshop)
    assert expected["deviations"] == []
    assert expected["proof"] == str(made.prefix / "stack-proof.json")


def lock(torch: str, made: Made, workshop: Workshop) -> Run:
    """`stackfix lock --prove` into the environment's own folder."""
    return stackfix("lock", "--torch", torch, "--python", PYTHON, "--no-flash-attn", "--format", "requirements",
                    "--with", "numpy<2", "--prove", "-o", made.prefix, cwd=workshop.folder,
                    cache=workshop.folder.with_name("proof-cache"))


def check(made: Made, workshop: Workshop) -> Mapping[str, Any]:
    """What `stackfix check --expect` says of it."""
    done = stackfix("check", "--prefix", made.prefix, "--expect", made.prefix / "requirements.txt", "--json",
                    cwd=workshop.folder, cache=workshop.folder.with_name("proof-cache"))
    assert done.status == 0, done
    expected: Mapping[str, Any] = done.json["expected"]
    return expected


def judge(target: Mapping[str, Any], told: Told, made: Made) -> None:
    """The files of the site folder that the child has mapped are those of the proof.

    Which extension modules of others Python code imports is no question to a loader: each of these is in the proof by
    itself, with what it maps.
    """
    site = f"{made.site.resolve()}/"
    mapped = {path.removeprefix(site) for path in told.mapped if path.startswith(site)}
    proven = maps(target, "torch", "import")
    imported = {name.partition(".")[0] for name, file in told.modules if str(Path(file).resolve()).startswith(site)}
    others = {path for each in imported - {"torch", "functorch"} for phase in ("import", "module")
              for path in maps(target, each, phase)}
    assert proven <= mapped, sorted(proven - mapped)
    assert mapped <= proven | others, sorted(mapped - proven - others)


def judge_exact(target: Mapping[str, Any], made: Made) -> None:
    """What ships of the wheels tells the same as their installed files do."""
    stack = real_stack(made.prefix)
    view = stack.view()
    facts = facts_of(view, Short(view, stack.base.libraries))
    exact = {(each.project, each.phase): (list(each.maps), [astuple(one) for one in each.resolved]) for each in facts}
    told = {(each["project"], each["phase"]): (each["maps"], [tuple(one.values()) for one in each["resolved"]])
            for each in target["imports"]}
    assert told == exact


def judge_preloaded(target: Mapping[str, Any], workshop: Workshop, made: Made) -> None:
    """An older nvJitLink before all others breaks the import where the proof says so, with its first symbol."""
    tried = next(each for each in target["environments"] if each["name"] == "preloaded-nvjitlink")
    if tried["verdict"] == "not-tried":
        return
    pin, = tried["holds"]
    library = workshop.unpack(pin.replace(" ", "=="), PYTHON) / NVJITLINK_FILE
    told = imports(workshop, made, "torch", LD_PRELOAD=str(library))
    assert (told.error is not None) is (tried["verdict"] == "fails"), (tried, told.error)
    if told.error is not None:
        assert any(symbol in told.error for symbol in tried["troubles"][0]["symbols"]), told.error


def maps(target: Mapping[str, Any], project: str, phase: str) -> set[str]:
    """Files that an import maps, by the proof."""
    return {path for each in target["imports"] if (each["project"], each["phase"]) == (project, phase)
            for path in each["maps"] if "/" in path}
