"""Metadata that asks for ever more: refused by name, where a solver would go on and on."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from stackfix.resolve.pep508 import lines_of_extra
from stackfix.sources.errors import BadMetadata
from tests.resolve_world import FakeIndex, Release, asked, lock, pins, projects

EXTRAS = tuple(f"e{one}" for one in range(1_200))


def world(requires: Iterable[str]) -> FakeIndex:
    """An index on which `demo` requires these lines."""
    found = projects()
    found["demo"] = {"1.0": Release(requires=tuple(requires), extras=EXTRAS)}
    for name in ("einops", "ninja", "wheel", "packaging"):
        found[name] = {"1.0": Release(extras=EXTRAS)}
    return FakeIndex(found)


def chain(length: int) -> Iterable[str]:
    """An extra that asks for the next one, and so on."""
    return (f"demo[e0{one + 1}] ; extra == 'e0{one}'" for one in range(length))


@pytest.mark.parametrize(("requires", "reason"), [
    ((f"einops[e{one}]>=1" for one in range(1_200)), "requires einops 1200 times"),
    ((f"einops>=0.{one}" for one in range(501)), "requires einops 501 times"),
    ((f"einops[{','.join(EXTRAS[:501])}]",), "one more than 500 extras of einops"),
    (("demo[e00]", *chain(501)), "one more than 500 extras of demo"),
    ((f"{name}[{','.join(EXTRAS[:300])}]" for name in ("einops", "ninja", "wheel", "packaging")),
     "one more than 1000 extras of all projects of one stack"),
], ids=["lines with extras", "lines", "one line", "chain", "several projects"])
def test_what_no_real_release_asks_for_is_refused(requires: Iterable[str], reason: str) -> None:
    with pytest.raises(BadMetadata, match=reason) as fault:
        lock(asked("demo"), world(requires))
    assert "metadata of demo-1.0-py3-none-any.whl" in str(fault.value)


def test_many_extras_are_locked() -> None:
    requires = ("einops ; extra == 'e149'", f"demo[{','.join(EXTRAS[:150])}] ; extra == 'all'")
    found = lock(asked("demo[all]"), world(requires))
    demo = next(package for package in found.targets[0].packages if package.name == "demo")
    assert set(demo.extras) == {"all", *EXTRAS[:150]}
    assert "einops" in pins(found)


@pytest.mark.parametrize("line", [
    "x ; extra == 'big'", 'x ; "big" == extra', "x ; extra == 'Big' or extra == 'other'", "x ; extra in 'big'",
    "x ; extra != 'big'", "x ; extra == ''", "x ; extra != '' and python_version > '3'",
    "x ; extra == 'extra' or extra == 'big'",
    "x ; python_version < '3' and extra == \"big\"", "x ; (extra=='big')", "x ; extra === 'big'",
])
def test_a_line_that_may_be_of_an_extra_is_looked_at(line: str) -> None:
    assert lines_of_extra(("torch", line, "y ; sys_platform == 'extra'"), "big")[0] == line


@pytest.mark.parametrize("line", [
    "x", "x ; python_version > '3'", "x ; extra == 'other'", "x ; extra == 'a' or extra == 'b'",
])
def test_a_line_of_other_extras_is_passed_over(line: str) -> None:
    assert lines_of_extra((line,), "big") == []


def test_lines_keep_their_order() -> None:
    lines = ("a ; extra == 'big'", "b ; 'big' == extra", "c ; extra == 'other'", "d ; extra == 'big'")
    assert lines_of_extra(lines, "big") == [lines[0], lines[1], lines[3]]
