"""File names of the lockfiles of one lock."""

from __future__ import annotations

import re

from stackfix.errors import BadInput
from stackfix.resolve.records import Target

SECOND_STEP = "flash-attn"
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
TARGET = re.compile(r"(?:^|-)cp3\d+(?:-[a-z]+-[a-z0-9]+(?:-cpu)?)?$")


def check_name(name: str | None) -> None:
    """Raises BadInput unless `name` can be part of file names and mistaken for no other part of one."""
    if name is None:
        return
    if NAME.fullmatch(name) is None:
        raise BadInput(f"--name {name}", "a name is made of letters, digits, '-' and '_' (at most 64)",
                       "it becomes part of file names: requirements-NAME.txt, pylock.NAME.toml")
    if name == SECOND_STEP or name.startswith(SECOND_STEP + "-"):
        raise BadInput(f"--name {name}", f"requirements-{SECOND_STEP}… is the name of a second step", "choose another")
    if TARGET.search(name):
        raise BadInput(f"--name {name}", "reads like a target, which is added where there are several",
                       "choose another")


def tag_of(target: Target) -> str:
    """`cp311-linux-64`; `cp311-linux-64-cpu` where the CPU build is asked for on this platform alone."""
    return f"{python_tag(target)}-{target.place}"


def suffix_of(name: str | None, target: Target | None) -> str:
    """What follows the base name: `` or `train` or `cp311-linux-64` or `train-cp311-linux-64`."""
    return joined(name, tag_of(target) if target else None)


def joined(*parts: str | None) -> str:
    """The parts that there are, with a dash between them."""
    return "-".join(part for part in parts if part)


def requirements_name(suffix: str, *, step: int = 1) -> str:
    """`requirements-train.txt`; of the second step `requirements-flash-attn-train.txt`."""
    parts = ("requirements", SECOND_STEP if step > 1 else "", suffix)
    return "-".join(part for part in parts if part) + ".txt"


def pylock_name(suffix: str) -> str:
    """`pylock.train.toml`: PEP 751 allows one part between the dots."""
    return f"pylock.{suffix}.toml" if suffix else "pylock.toml"


def constraints_name(suffix: str) -> str:
    """`constraints-train.txt`."""
    return f"constraints-{suffix}.txt" if suffix else "constraints.txt"


def prefix_of(name: str | None, part: str | None) -> str:
    """What stands before the name of a conda file: `` or `train.` or `cp311.` or `train-cp311.`."""
    words = joined(name, part)
    return f"{words}." if words else ""


def python_tag(target: Target) -> str:
    """`cp311`."""
    return f"cp{target.python.replace('.', '')}"


def conda_lock_name(name: str | None, python: str | None = None) -> str:
    """`train.conda-lock.yml`; one file a Python: `train-cp311.conda-lock.yml`."""
    return f"{prefix_of(name, python)}conda-lock.yml"


def explicit_name(name: str | None, platform: str, python: str | None = None) -> str:
    """`train.conda-linux-64.lock`."""
    return f"{prefix_of(name, python)}conda-{platform}.lock"


def pixi_name(name: str | None) -> str:
    """`train.pixi.lock`: one file holds all targets."""
    return f"{prefix_of(name, None)}pixi.lock"


def environment_name(suffix: str) -> str:
    """`environment-train.yml`."""
    return f"environment-{suffix}.yml" if suffix else "environment.yml"
