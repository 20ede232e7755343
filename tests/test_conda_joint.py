"""Stacks of the recorded package index and the bundled conda records: both locks are of one stack, and stay so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from stackfix.conda.names import NameBook
from stackfix.matrix.conda_names import load_conda_names
from stackfix.write.conda_read import read_conda_file
from stackfix.write.records import CondaLockFile
from tests.judges.command import stackfix
from tests.judges.table import STACKS
from tests.replay.server import ReplayServer

pytestmark = pytest.mark.recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """One request and the layout in which the channels hold it."""

    words: tuple[str, ...]
    layout: str
    flash_attn: bool = True
    packages: tuple[str, ...] = ()


JOINT = (
    Joint(words=("--torch", "2.3", "--cuda", "12.1", "--python", "3.11"), layout="mixed"),
    Joint(words=("--torch", "2.3", "--cuda", "12.1", "--python", "3.11", "--with", "xformers"), layout="mixed"),
    Joint(words=("--torch", "2.3", "--python", "3.12", "--with", "transformers"), layout="mixed",
          packages=("transformers",)),
    Joint(words=("--torch", "2.3", "--python", "3.11", "--layout", "native"), layout="native", flash_attn=False),
    Joint(words=("--torch", "2.4", "--python", "3.11", "--with", "torchvision"), layout="wheels"),
    Joint(words=("--torch", "2.5", "--python", "3.12"), layout="mixed"),
    Joint(words=("--torch", "2.5", "--python", "3.12", "--flash-attn", "2.7.4.post1"), layout="mixed"),
    Joint(words=("--torch", "2.10", "--python", "3.11", "--no-flash-attn", "--with", "transformers", "--with",
                 "accelerate"), layout="native", flash_attn=False, packages=("transformers", "accelerate")),
    Joint(words=("--torch", "2.11", "--python", "3.11", "--platform", "linux-64", "--platform", "linux-aarch64"),
          layout="wheels", flash_attn=False),
)


def pinned(folder: Path) -> dict[str, str]:
    """name -> version of every requirements file, the second step's too."""
    texts = [path.read_text() for path in sorted(folder.glob("requirements*.txt"))]
    found = [pin for text in texts for pin in re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==([^ \n]+)", text, re.MULTILINE)]
    urls = [pin for text in texts for pin in re.findall(r"^([a-z0-9-]+) @ \S*?/\w+-([0-9.post]+)%2B", text,
                                                       re.MULTILINE)]
    return dict([*found, *urls])



def complaints(lock: CondaLockFile, folder: Path, asked: Joint) -> list[str]:
    """Where the conda lock is not the stack of the pip lock."""
    found, pip = [], pinned(folder)
    book = NameBook(load_conda_names())
    for environment in lock.environments:
        conda = {pin.name: pin.version for pin in environment.conda}
        beside = {pin.name: pin.version for pin in environment.pip}
        torch = beside.get("torch") or conda.get("pytorch")
        if torch != pip["torch"]:
            found.append(f"torch {torch} and {pip['torch']}")
        twice = {project for name in conda for project in (name, *(
            package.name for package in book.packages(name, "12.1") if package.sure))} & beside.keys()
        if twice:
            found.append(f"from both: {sorted(twice)}")
        missing = [name for name in asked.packages if name not in conda and name not in beside]
        if missing:
            found.append(f"missing: {missing}")
        flash = beside.get("flash-attn") or conda.get("flash-attn")
        if flash is not None and flash != pip.get("flash-attn"):
            found.append(f"flash-attn {flash} and {pip.get('flash-attn')}")
        if asked.layout == "wheels":
            found += [f"{name} {version} is not in the pip lock" for name, version in beside.items()
                      if pip.get(name) != version]
    return found


@pytest.mark.parametrize("joint", JOINT, ids=lambda joint: " ".join(joint.words).replace("--", ""))
def test_both_locks_are_of_one_stack(
    joint: Joint, index: ReplayServer, stackfix_cache: Path, tmp_path: Path, pytestconfig: pytest.Config,
) -> None:
    words = ("lock", *joint.words, "--index-url", index.url, "--format", "requirements", "--format", "conda-lock")
    done = stackfix(*words, "--json", cwd=tmp_path, cache=stackfix_cache)
    assert done.status == 0, done
    said = done.json
    assert {target["conda"]["layout"] for target in said["targets"]} == {joint.layout}, done
    assert (said["stack"]["flash_attn"] is not None) == joint.flash_attn, done
    assert complaints(read_conda_file(tmp_path / "conda-lock.yml"), tmp_path, joint) == []
    held = stackfix(*words, "--check", cwd=tmp_path, cache=stackfix_cache)
    assert (held.status, held.stdout) == (0, ""), held
    side = said["targets"][0]["conda"]
    torch = next((one for one in said["targets"][0]["packages"] if one["name"] == "pytorch"), None)
    pytestconfig.stash[STACKS].append((
        " ".join(joint.words).replace("--", ""), f"torch {said['stack']['torch']}",
        torch["build"] if torch is not None else "wheel", side["channels"][0]["name"], side["priority"],
        f"layout {side['layout']}", f"{len(side['departures'])} differences told"))
