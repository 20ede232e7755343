"""Stacks drawn at test time, one from each stretch of torch's releases, to be locked, installed and found healthy."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypeVar

from stackfix.matrix.load import load_matrix
from stackfix.matrix.query import builds, minor_of

Item = TypeVar("Item")
COMPANIONS = ("torchvision", "torchaudio", "numpy", "transformers", "accelerate")
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What one lock asks for."""

    seed: int
    torch: str
    python: str
    with_: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([f"seed {self.seed}: torch {self.torch} py{self.python}", *self.with_])


def draw(seed: int, count: int, pythons: Collection[str] = PYTHONS) -> tuple[Draw, ...]:
    """`count` stacks, oldest first, over all CUDA releases of the default index that one of the Pythons can have."""
    rng = random.Random(seed)       # noqa: S311 - no secret: the same seed must draw the same
    known = [build for build in builds(load_matrix(), platform="linux-64", index="default")
             if build.cuda != "cpu" and set(pythons) & set(build.pythons)]
    minors = [list(group) for _, group in groupby(reversed(known), key=lambda build: minor_of(build.version))]
    found = []
    for stretch in split(minors, count):
        build = rng.choice(rng.choice(stretch))
        python = rng.choice([each for each in PYTHONS if each in pythons and each in build.pythons])
        with_ = tuple(sorted(rng.sample(COMPANIONS, rng.randint(0, 2))))
        found.append(Draw(seed=seed, torch=build.version, python=python, with_=with_))
    return tuple(found)


def split(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """`count` stretches of about the same length, in order."""
    edges = [round(len(items) * number / count) for number in range(count + 1)]
    return [items[start:end] for start, end in pairwise(edges)]


def seed_of_this_run() -> int:
    """A fresh one, or that of STACKFIX_SEED."""
    return int(os.environ.get("STACKFIX_SEED") or random.SystemRandom().randrange(1_000_000))
