"""The lines by which our own activation scripts say what they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.plumbing_marks import Mark, mark_lines, marks_in
from stackfix.diagnose.plumbing_scripts import activated_path
from stackfix.plan.activation import Script, activation_steps
from stackfix.plan.effect_records import Variable
from tests.diagnose_world import World

PATH = "LD_LIBRARY_PATH"
WORD = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(WORD, unique=True, max_size=3), st.lists(WORD, unique=True, max_size=3), WORD)
def test_what_is_said_is_what_is_read(first: list[str], without: list[str], value: str) -> None:
    marks = (Mark(name=PATH, first=tuple(f"/p/{each}" for each in first), without=tuple(without)),
             Mark(name="OTHER", value=value))
    lines = list(mark_lines(marks, "/p"))
    assert all(line.isascii() and line.isprintable() and not set("'`!") & set(line) for line in lines)
    assert marks_in(lines, "/p") == (marks if first or without else marks[1:])
    moved = marks_in(lines, "/else/where")
    assert [each.first for each in moved if each.name == PATH and each.first] == (
        [tuple(f"/else/where/{each}" for each in first)] if first else [])


@pytest.mark.parametrize("line", [
    "# stackfix sets LD_LIBRARY_PATH first", "# stackfix sets LD_LIBRARY_PATH first [1]", "# stackfix sets A first {",
    '# stackfix sets 1A first "x"', '# stackfix sets A last "x"', 'echo # stackfix sets A first "x"'])
def test_what_cannot_be_read_says_nothing(line: str) -> None:
    assert marks_in([line], "/p") == ()


def read(world: World) -> tuple[str | None, ...] | None:
    found = activated_path(world.view())
    return None if found is None else tuple(each.folder for each in found.elements)


@pytest.mark.parametrize("conda", [False, True])
def test_a_check_reads_what_our_scripts_take_out_and_put_first(conda: bool, tmp_path: Path) -> None:
    """Theirs puts two folders on the path, ours takes one of them out again: code with a loop, which nobody reads."""
    world = World(tmp_path, conda=conda)
    theirs = 'export LD_LIBRARY_PATH="/opt/bad:/opt/good:$LD_LIBRARY_PATH"\n'
    made = f"deactivate () {{\n    true\n}}\nVIRTUAL_ENV={world.prefix}\n{theirs}" if not conda else theirs
    place = "etc/conda/activate.d/a.sh" if conda else "bin/activate"
    world.write(f"{world.prefix}/{place}", made)
    assert read(world) == ("/opt/bad", "/opt/good")
    scripts = () if conda else (Script(path=place, text=made),)
    variables = [Variable(name=PATH, first=(f"{world.prefix}/own",), without=("/opt/bad/",))]
    for step in activation_steps(world.prefix, "conda" if conda else "venv", variables, scripts).steps:
        world.write(f"{world.prefix}/{step.path}", step.text)
    assert read(world) == (f"{world.prefix}/own", "/opt/good")
    assert [each for each in diagnose(world.view()).undecided if "activate" in each.subject] == []
