"""Laws of the resolver over drawn worlds: judged by a checker and a brute force that share no code with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement as Parsed
from packaging.version import Version

from stackfix.matrix.records import Matrix
from stackfix.resolve.records import NoConsistentStack, StackRequest
from tests.resolve_world import (
    MATRIX,
    FakeIndex,
    Release,
    asked,
    lock,
    pins,
    rule,
    torch_build,
    wheel_tags,
)

NAMES = ("a", "b", "c", "d")
VERSIONS = ("1.0", "2.0", "3.0")
TORCH = ("2.3.0", "2.3.1", "2.4.1")
World = dict[str, dict[str, Release]]

SPECS = st.sampled_from(["", "==1.0", "==2.0", ">=2.0", "<3.0", "<2.0", "!=2.0", ">=2.0,<3.0"])
LINES = st.builds(lambda name, spec: f"{name}{spec}", st.sampled_from(NAMES), SPECS)
TORCH_LINES = st.sampled_from(["torch", "torch==2.3.1", "torch>=2.3.1", "torch<2.4", "torch==2.3.0"])
RELEASES = st.builds(
    lambda lines, torch: Release(requires=tuple(dict.fromkeys([*lines, *torch]))),
    st.lists(LINES, max_size=2), st.lists(TORCH_LINES, max_size=1),
)
PROJECTS = st.fixed_dictionaries({
    name: st.dictionaries(st.sampled_from(VERSIONS), RELEASES, min_size=1, max_size=3) for name in NAMES
})
RULES = st.lists(st.builds(
    lambda package, versions, needs: rule(package, versions or ">=0", needs), st.sampled_from(NAMES), SPECS, LINES,
), max_size=2)
ASKED = st.lists(st.one_of(LINES, TORCH_LINES), min_size=1, max_size=3, unique=True)
TORCHES = st.fixed_dictionaries({version: st.lists(LINES, max_size=1) for version in TORCH})
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def matrix_of(rules: list[object]) -> Matrix:
    torch = tuple(torch_build(version, "12.1", "12.1.1", pythons=("3.10",)) for version in TORCH)
    return replace(MATRIX, torch=torch, rules=tuple(rules), components=(), companions=())  # type: ignore[arg-type]


def world_of(projects: World, torches: Mapping[str, list[str]]) -> World:
    return {**projects, "torch": {
        version: Release(requires=tuple(lines), tags=wheel_tags(("3.10",))) for version, lines in torches.items()
    }}


def holds(line: str, chosen: Mapping[str, str]) -> bool:
    requirement = Parsed(line)
    return requirement.name in chosen and requirement.specifier.contains(Version(chosen[requirement.name]))


def consistent(world: World, matrix: Matrix, lines: tuple[str, ...], chosen: Mapping[str, str]) -> bool:
    """Whether the set meets every requirement of its members, of the request, and every rule about its members."""
    wanted = [line for name, version in chosen.items() for line in world[name][version].requires]
    ruled = [
        one.needs for one in matrix.rules
        if one.package in chosen and Parsed(f"x{one.versions}").specifier.contains(Version(chosen[one.package]))
        and Parsed(one.needs).name in chosen
    ]
    return "torch" in chosen and all(holds(line, chosen) for line in [*wanted, *ruled, *lines])


def all_sets(world: World) -> Iterator[dict[str, str]]:
    options = [[None, *world[name]] if name != "torch" else list(world[name]) for name in world]
    for versions in itertools.product(*options):
        yield {name: version for name, version in zip(world, versions, strict=True) if version is not None}


def solvable(world: World, matrix: Matrix, lines: tuple[str, ...]) -> bool:
    return any(consistent(world, matrix, lines, chosen) for chosen in all_sets(world))


def needed(world: World, lines: tuple[str, ...], chosen: Mapping[str, str]) -> set[str]:
    """What torch and the request pull in."""
    seen: set[str] = set()
    waiting = ["torch", *(Parsed(line).name for line in lines)]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(Parsed(line).name for line in world[name][chosen[name]].requires)
    return seen


@SLOW
@given(PROJECTS, TORCHES, RULES, ASKED)
def test_a_lock_is_consistent_and_a_refusal_is_true_and_minimal(
    projects: World, torches: dict[str, list[str]], rules: list[object], lines: list[str]
) -> None:
    world, matrix, wanted = world_of(projects, torches), matrix_of(rules), tuple(lines)
    try:
        chosen = pins(lock(asked(*wanted), FakeIndex(world), matrix=matrix))
    except NoConsistentStack as error:
        judge_refusal(error, world, matrix, wanted)
        return
    assert consistent(world, matrix, wanted, chosen)
    assert needed(world, wanted, chosen) == set(chosen)


def judge_refusal(error: NoConsistentStack, world: World, matrix: Matrix, wanted: tuple[str, ...]) -> None:
    assert not solvable(world, matrix, wanted)
    named = tuple(
        cause.asked.value for cause in error.causes if cause.asked is not None and cause.asked.kind == "requirement"
    )
    assert set(named) <= set(wanted)
    assert not solvable(world, matrix, named)
    for one in named:
        assert solvable(world, matrix, tuple(line for line in named if line != one))


@SLOW
@given(PROJECTS, TORCHES, RULES, ASKED)
def test_same_twice_and_whatever_the_order(
    projects: World, torches: dict[str, list[str]], rules: list[object], lines: list[str]
) -> None:
    world, matrix = world_of(projects, torches), matrix_of(rules)
    turned = {name: dict(reversed(releases.items())) for name, releases in reversed(world.items())}
    assert outcome(asked(*lines), world, matrix) == outcome(asked(*lines), turned, matrix)


def outcome(request: StackRequest, world: World, matrix: Matrix) -> object:
    try:
        return lock(request, FakeIndex(world), matrix=matrix)
    except NoConsistentStack as error:
        return error.headline, error.causes, error.nearest


@SLOW
@given(PROJECTS, TORCHES, RULES, ASKED)
def test_pins_of_a_lock_are_kept_by_the_next(
    projects: World, torches: dict[str, list[str]], rules: list[object], lines: list[str]
) -> None:
    world, matrix, request = world_of(projects, torches), matrix_of(rules), asked(*lines)
    # pins of an older day: the index had no third release yet
    older = {
        name: {v: r for v, r in releases.items() if v != "3.0" or name == "torch"} for name, releases in world.items()
    }
    try:
        before = pins(lock(request, FakeIndex(older), matrix=matrix))
    except NoConsistentStack:
        return
    kept = tuple(sorted(before.items()))
    assert pins(lock(request.with_(kept=kept), FakeIndex(world), matrix=matrix)) == before
