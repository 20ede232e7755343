"""Each `stackfix lock` that an explanation proposes is one that lock takes, and that the matrix does not refuse."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import click
import pytest
from packaging.requirements import Requirement

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.cli.lock import command
from stackfix.explain.derive import DERIVE
from stackfix.explain.derive.releases import public
from stackfix.explain.explain import explain
from stackfix.explain.records import Rule
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text
from stackfix.matrix.query import (
    companion,
    companion_fits,
    cuda_matches,
    driver_supports,
    flash_attn_wheels_for,
    gpu_runs,
)
from stackfix.matrix.records import TorchBuild, TorchIndexWheel
from stackfix.matrix.torch_index import load_torch_index

RULES = read_rules()
FACTS = MatrixFacts(None)
PLATFORM = "linux-64"


def locks_of(rule: Rule) -> Iterator[str]:
    """What is proposed for the rule's examples."""
    for example in rule.examples:
        explanation = explain(read_text(example.text.encode()), RULES, FACTS, DERIVE)
        yield from (each.avoid for each in explanation.causes if each.avoid)


@dataclass(frozen=True, slots=True)
class Asked:
    """The options that a command gives, as `lock` itself reads them."""

    options: Mapping[str, Any]

    def one(self, name: str) -> str | None:
        return self.options.get(name) or None

    def several(self, name: str) -> tuple[str, ...]:
        return tuple(self.options.get(name) or ())


def refusal(lock: str) -> str | None:
    """Why the matrix would refuse the command; None where it would not."""
    words = shlex.split(lock)
    if words[:2] != ["stackfix", "lock"]:
        return "no lock"
    asked = Asked(command.make_context("stackfix lock", words[2:]).params)
    found = builds(asked)
    had = [each for each in found if has_wheel(each)]
    if found and not had:
        return "no wheel of it is known"
    return next(faults(asked, had), None) if found else "no such build of torch"


def has_wheel(build: TorchBuild) -> bool:
    """Whether `lock` has a file for a build where it cannot ask the torch index: a row of that index, read in full."""
    return build.index == "default" or any(
        wheel.project == "torch" and public(wheel.version) == build.version and wheel.file.endswith("x86_64.whl")
        for wheel in rows(build.index))


@cache
def rows(path: str) -> tuple[TorchIndexWheel, ...]:
    return load_torch_index(path)


def builds(asked: Asked) -> list[TorchBuild]:
    """Builds of torch that are as asked."""
    torch, cuda = asked.one("torch"), asked.one("cuda")
    return [each for each in FACTS.matrix.torch if each.platform == PLATFORM
            and (torch is None or each.version == torch or each.version.startswith(f"{torch}."))
            and (cuda is None or cuda_matches(cuda, each.cuda))
            and set(asked.several("pythons")) <= set(each.pythons)]


def faults(asked: Asked, found: list[TorchBuild]) -> Iterator[str]:
    """What none of the builds meets."""
    for requirement in map(Requirement, asked.several("with_")):
        rows = [companion(FACTS.matrix, requirement.name, each.version) for each in requirement.specifier]
        if any(row is not None and all(companion_fits(row, each) for each in found) for row in rows):
            yield f"{requirement} fits none of them"
    flash, driver = asked.one("flash_attn"), asked.one("driver")
    if flash and flash not in {wheel.version for each in found for python in asked.several("pythons") or each.pythons
                               for wheel in flash_attn_wheels_for(FACTS.matrix, each, python, PLATFORM)}:
        yield f"no wheel of flash-attn {flash}"
    for arch in asked.several("gpu_archs"):
        # "auto" is what the machine has; an empty list means that nobody read it
        if arch != "auto" and not any(gpu_runs(each.gpu_archs, arch) or not each.gpu_archs for each in found):
            yield f"no code for {arch}"
    if driver and driver != "auto" and not any(driver_supports(FACTS.matrix, driver, each.cuda) for each in found):
        yield f"too new for driver {driver}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_lock_that_is_proposed_is_one_that_can_be_had(rule: Rule) -> None:
    assert [(lock, why) for lock in locks_of(rule) if (why := refusal(lock)) is not None] == []


@pytest.mark.parametrize(("lock", "why"), [
    ("stackfix lock --torch 2.3.1 --cuda 12.6", "no such build of torch"),
    ("stackfix lock --torch 2.3.1 --cuda 12.1 --python 3.14", "no such build of torch"),
    ("stackfix lock --torch 2.3.1 --cuda 12.1 --flash-attn 2.8.3", "no wheel of flash-attn 2.8.3"),
    ("stackfix lock --torch 2.3.1 --cuda 12.1 --with torchvision==0.20.1", "torchvision==0.20.1 fits none of them"),
    ("stackfix lock --torch 2.3.1 --cuda 12.1 --gpu-arch sm_120", "no code for sm_120"),
    ("stackfix lock --cuda 12.1 --driver 470.57", "too new for driver 470.57"),
    ("stackfix lock --torch 2.14.1 --cuda 12.6", "no wheel of it is known"),
    ("stackfix lock --torch 2.11.0 --cuda 12.6 --driver 570", "no wheel of it is known"),
    ("stackfix repair", "no lock"),
])
def test_a_lock_that_cannot_be_had_is_seen(lock: str, why: str) -> None:
    assert refusal(lock) == why


def test_an_option_that_lock_has_not_is_seen() -> None:
    with pytest.raises(click.NoSuchOption):
        refusal("stackfix lock --torch 2.3.1 --flash 2.5.8")
