"""Activation scripts, sourced in real shells: the variables before, in, and after. PowerShell is not to be had here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackfix.diagnose.plumbing_scripts import activated_path
from stackfix.diagnose.situation import View
from stackfix.errors import BadInput
from stackfix.inspect.environment_activation import read_activation
from stackfix.inspect.places import Root
from stackfix.plan.activation import Activation, Script, activation_steps, variables_activated
from stackfix.plan.effect_records import Variable
from tests.shell_world import SHELLS, Shell, is_here, run

NAME = "LD_LIBRARY_PATH"
HOME = "CONDA_PREFIX"


@pytest.fixture(params=[*SHELLS, "pwsh"])
def shell(request: pytest.FixtureRequest) -> Shell:
    if request.param == "pwsh" or not is_here(request.param):
        pytest.skip(f"no {request.param} here")
    return SHELLS[request.param]


def laid(folder: Path, activation: Activation) -> dict[str, Path]:
    """The files below a folder, by their path in the prefix."""
    found = {}
    for step in activation.steps:
        path = found[step.path] = folder / step.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text, encoding="utf-8", newline="")
    return found


def conda_lines(folder: Path, shell: Shell, prefix: str, variables: Sequence[Variable],
                before: Mapping[str, str]) -> tuple[str, str]:
    """The lines that source both scripts of an activation."""
    files = laid(folder, activation_steps(prefix, "conda", variables, (), before=before))
    return tuple(shell.source.format(files[f"etc/conda/{phase}.d/zz-stackfix{shell.suffix}"])   # type: ignore[return-value]
                 for phase in ("activate", "deactivate"))


def first(prefix: str, *folders: str, without: tuple[str, ...] = ()) -> Variable:
    return Variable(name=NAME, first=tuple(f"{prefix}/{each}" for each in folders), without=without)


@pytest.mark.parametrize("before", [None, "", "/a", "/a:/b", "/bad:", "/bad/:/a;/bad", ":/a", "/a:", "/p/jit/lib:/a"])
def test_what_was_there_comes_back(shell: Shell, before: str | None, tmp_path: Path) -> None:
    variable = first("/p", "jit/lib", "fft/lib", without=("/bad",))
    environ = {HOME: "/p"} | ({} if before is None else {NAME: before})
    go, back = conda_lines(tmp_path, shell, "/p", [variable], environ)
    start, inside, again, after = run(shell, ["?", go, "?", go, "?", back, "?"], environ, tmp_path)
    assert inside[NAME] == variables_activated([variable], environ)[NAME]
    assert inside[NAME].startswith("/p/jit/lib:/p/fft/lib")
    assert "/bad" not in inside[NAME]
    assert again == inside
    assert after == start


def test_only_taking_out(shell: Shell, tmp_path: Path) -> None:
    """What is left empty is unset, and comes back."""
    environ = {HOME: "/p", NAME: "/bad"}
    go, back = conda_lines(tmp_path, shell, "/p", [Variable(name=NAME, without=("/bad",))], environ)
    start, inside, after = run(shell, ["?", go, "?", back, "?"], environ, tmp_path)
    assert inside.get(NAME, "") == ""
    assert after == start


def test_several_variables_and_a_value(shell: Shell, tmp_path: Path) -> None:
    variables = [first("/p", "jit/lib"), Variable(name="LD_PRELOAD", without=("/bad.so",)),
                 Variable(name="PYTHONPATH", without=("", "/old site")), Variable(name="PYTHONNOUSERSITE", value="1")]
    environ = {HOME: "/p", "PYTHONPATH": "/old site::/new;x", "PYTHONNOUSERSITE": ""}
    go, back = conda_lines(tmp_path, shell, "/p", variables, environ)
    start, inside, after = run(shell, ["?", go, "?", back, "?"], environ, tmp_path)
    assert {name: inside.get(name) for name in ("PYTHONPATH", "PYTHONNOUSERSITE", "LD_PRELOAD", NAME)} == {
        "PYTHONPATH": "/new;x", "PYTHONNOUSERSITE": "1", "LD_PRELOAD": None, NAME: "/p/jit/lib"}
    assert after == start


def test_a_prefix_that_was_moved(shell: Shell, tmp_path: Path) -> None:
    environ = {HOME: "/else where", NAME: "/else where/jit/lib/:/x"}
    go, back = conda_lines(tmp_path, shell, "/p", [first("/p", "jit/lib")], {})
    start, inside, after = run(shell, ["?", go, "?", back, "?"], environ, tmp_path)
    assert inside[NAME] == "/else where/jit/lib:/x"
    assert after == start


def test_without_the_prefix_variable_nothing_happens(shell: Shell, tmp_path: Path) -> None:
    go, back = conda_lines(tmp_path, shell, "/p", [first("/p", "jit/lib")], {})
    start, inside, after = run(shell, ["?", go, "?", back, "?"], {NAME: "/x"}, tmp_path)
    assert start == inside == after


@pytest.mark.parametrize("order", ["last first", "first first"])
def test_two_environments_at_once(shell: Shell, order: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    environ = {HOME: "/a", "OTHER": "/b", "ONE": "/a", NAME: "/x"}
    go_a, back_a = conda_lines(tmp_path / "a", shell, "/a", [first("/a", "lib/jit")], environ)
    go_b, back_b = conda_lines(tmp_path / "b", shell, "/b", [first("/b", "lib/jit")], environ)
    to_a, to_b = shell.assign.format(HOME, "ONE"), shell.assign.format(HOME, "OTHER")
    ways = [to_b, back_b, to_a, back_a] if order == "last first" else [to_a, back_a, to_b, back_b, to_a]
    start, both, after = run(shell, ["?", go_a, to_b, go_b, "?", *ways, "?"], environ, tmp_path)
    assert both[NAME] == "/b/lib/jit:/a/lib/jit:/x"
    assert after == start


def test_what_was_changed_meanwhile_is_kept(shell: Shell, tmp_path: Path) -> None:
    environ = {HOME: "/p", NAME: "/x", "MORE": "/module/lib:/p/lib/jit:/x"}
    go, back = conda_lines(tmp_path, shell, "/p", [first("/p", "lib/jit")], environ)
    (after,) = run(shell, [go, shell.assign.format(NAME, "MORE"), back, "?"], environ, tmp_path)
    assert after[NAME] == "/module/lib:/x"
    assert not [name for name in after if "STACKFIX" in name.upper()]


def test_deactivated_in_a_child(shell: Shell, tmp_path: Path) -> None:
    """`conda deactivate` works in a shell that was started from an activated one: what is remembered is exported."""
    environ = {HOME: "/p", NAME: "/x"}
    go, back = conda_lines(tmp_path, shell, "/p", [first("/p", "lib/jit")], environ)
    (tmp_path / "child").mkdir()
    (inside,) = run(shell, [go, "?"], environ, tmp_path)
    (after,) = run(shell, [back, "?"], inside, tmp_path / "child")
    assert (after[NAME], [name for name in after if "STACKFIX" in name.upper()]) == ("/x", [])


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="/:;\x7f", min_codepoint=32), min_size=1,
               max_size=8).filter(lambda part: part not in {".", ".."})
NAMES = ("it's", 'a "quote"', "$HOME", "`id`", "$(id)", "!!", "a!b", "\\", "back\\slash", "*", "?", "~", "-n", "%s",
         "a  b ", " lead", "{a,b}", "#no", "(x)", "[y]", "&", "|", "<", "=", "\u2019", "é", "'\\''", "$$", "\\!", "a\\",
         "@x", "^", "-", "--", "a\\'", '\\"', "\\$x", "\\`", "'\\", "!'", "'!", "$", "'", '"', "\\\\")
PART = TEXT | st.sampled_from(NAMES)
FOLDER = st.lists(PART, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts)).filter(
    lambda folder: "$ORIGIN" not in folder and "$LIB" not in folder and "$PLATFORM" not in folder)
VALUES = st.none() | st.lists(FOLDER | st.just(""), max_size=4).map(":".join)


def test_each_of_these_names_comes_through(shell: Shell, tmp_path: Path) -> None:
    environ = {HOME: "/p/it's", NAME: ":".join(f"/bad/{each}" for each in NAMES) + ":/x"}
    variable = first("/p/it's", *(f"x/{each}" for each in NAMES), without=tuple(f"/bad/{each}" for each in NAMES))
    go, back = conda_lines(tmp_path, shell, "/p/it's", [variable], environ)
    start, inside, after = run(shell, ["?", go, "?", back, "?"], environ, tmp_path)
    assert inside[NAME].split(":") == [*(f"/p/it's/x/{each}" for each in NAMES), "/x"]
    assert after == start


@pytest.mark.parametrize("name", SHELLS)
def test_any_name_comes_through(name: str, tmp_path: Path) -> None:
    """Laws: inside is what the model says; after is what was before."""
    if not is_here(name):
        pytest.skip(f"no {name} here")
    shell = SHELLS[name]

    @settings(max_examples=30)
    @given(prefix=FOLDER, inside=st.lists(FOLDER, max_size=2, unique=True), bad=st.lists(FOLDER, max_size=2),
           before=VALUES)
    def law(prefix: str, inside: list[str], bad: list[str], before: str | None) -> None:
        variable = Variable(name=NAME, first=tuple(f"{prefix}/x{each}" for each in inside), without=tuple(bad))
        value = before if before is None else ":".join([*bad[:1], before, prefix + "/x/own", *bad[1:]])
        environ = {HOME: prefix} | ({} if value is None else {NAME: value})
        go, back = conda_lines(tmp_path, shell, prefix, [variable], environ)
        start, activated, after = run(shell, ["?", go, "?", back, "?"], environ, tmp_path)
        assert activated.get(NAME) == variables_activated([variable], environ)[NAME]
        assert after == start

    law()


@pytest.mark.parametrize("variable", [
    first("/p", "lib"), first("/p", "lib64"), Variable(name=NAME, first=("/p",)), first("/p", "a:b"),
    first("/p", "a;b"), first("/p", "a\nb"), first("/p", "a/../b"), first("/p", "a\udcff"),
    Variable(name=NAME, first=("lib/a",)), Variable(name=NAME, first=("",)), first("/p", "a/$ORIGIN/b"),
    first("/p", "${LIB}/b"), Variable(name="A B", value="1"), Variable(name=NAME, without=("/a\rb",)),
    Variable(name="LD_PRELOAD", first=("/p/a b.so",)),
    Variable(name="X", value="1\n2"),
], ids=str)
def test_what_no_shell_could_set_is_refused(variable: Variable) -> None:
    with pytest.raises(BadInput):
        activation_steps("/p", "conda", [variable], ())


def test_the_script_comes_after_all_others() -> None:
    def names(*others: str) -> set[str]:
        scripts = [Script(path=f"etc/conda/activate.d/{each}", text="") for each in others]
        steps = activation_steps("/p", "conda", [first("/p", "jit/lib")], scripts).steps
        return {step.path.rpartition("/")[2].rpartition(".")[0] for step in steps}

    assert names() == names("env_vars.sh", "zz-stackfix.sh") == {"zz-stackfix"}
    assert names("zzz_cuda.sh") == {"zzzz-stackfix"}
    assert names("zzzzzz.sh") == {"~stackfix"}


def test_nothing_to_do() -> None:
    assert activation_steps("/p", "conda", [], ()) == Activation(steps=())


def test_check_reads_what_they_put_first(tmp_path: Path) -> None:
    """A diagnosis reads scripts and does not run them: after a repair it is to see the order that this one makes."""
    prefix = "/p/it's"
    made = activation_steps(prefix, "conda", [first(prefix, "site/jit/lib", "site/fft $x/lib")], ())
    laid(tmp_path / prefix[1:], made)
    scripts = tuple(read_activation(Root(str(tmp_path)), prefix, []))
    view = cast("View", SimpleNamespace(variables={}, environment=SimpleNamespace(
        prefix=prefix, home=None, library_folders=(), sites=(), activation=scripts)))
    found = activated_path(view)
    assert found is not None
    assert [each.folder for each in found.elements][:1] == [f"{prefix}/site/jit/lib"]
    assert found.before == len(found.elements) == 2
    assert any(NAME in text for each in scripts if each.phase == "deactivate" for _, text in each.lines)
