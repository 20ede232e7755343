"""Activation scripts, broad folders and empty elements on LD_LIBRARY_PATH, and Jupyter kernels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.plumbing import find_broad_paths, find_current_folder, find_kernels_without_path
from stackfix.diagnose.plumbing_activation import find_activation_order, requirement_of
from stackfix.diagnose.plumbing_scripts import activated_path, assignments
from stackfix.inspect.machine_records import Undecided
from tests.diagnose_world import SYSTEM, World, lib

CUDNN = "nvidia/cudnn/lib"
HOSTILE = """
import sys
from stackfix.diagnose.plumbing_scripts import COMMAND, RECIPE, VARIABLE, assignments
text = sys.argv[1]
list(assignments(text))
for each in (COMMAND, RECIPE, VARIABLE):
    each.sub("", text)
"""
RECIPE = 'CUDNN_PATH=$(dirname $(python -c "import nvidia.cudnn;print(nvidia.cudnn.__file__)"))\n'
GUIDE = RECIPE + "export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$CONDA_PREFIX/lib/:$CUDNN_PATH/lib\n"


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An environment after an old installation guide: cuDNN 8.6 of pip, and 8.1 of conda."""
    world = World(tmp_path, conda=True)
    world.conda("cudnn", "8.1.0.77", {"lib/libcudnn.so.8": lib()})
    world.wheel("nvidia-cudnn-cu11", "8.6.0.163", {f"{CUDNN}/libcudnn.so.8": lib(), "nvidia/cudnn/__init__.py": ""})
    return world.wheel("tensorflow", "2.12.0", {"tensorflow/tf.so": lib(needs=("libcudnn.so.8",))},
                       requires=("nvidia-cudnn-cu11>=8.6",))


def activate(world: World, text: str, name: str = "env_vars.sh", *, and_back: bool = True) -> World:
    world.write(f"{world.prefix}/etc/conda/activate.d/{name}", text)
    if and_back:
        world.write(f"{world.prefix}/etc/conda/deactivate.d/{name}", "unset LD_LIBRARY_PATH\n")
    return world


def orders(world: World) -> list[Finding]:
    return [each for each in find_activation_order(world.view()) if isinstance(each, Finding)]


# --- activation ---


def test_the_guides_line_puts_the_older_library_first(world: World) -> None:
    finding = only(orders(activate(world, GUIDE)))
    script = f"{world.prefix}/etc/conda/activate.d/env_vars.sh"
    assert (finding.code, finding.severity, finding.level) == ("SF1101", "error", "cudnn")
    assert (finding.culprit.path, finding.culprit.variable) == (script, "LD_LIBRARY_PATH")
    assert finding.winner == f"{world.prefix}/lib/libcudnn.so.8"
    assert finding.loser == world.inside(f"{CUDNN}/libcudnn.so.8")
    assert finding.requester is not None
    assert finding.requester.package == "tensorflow 2.12.0"
    assert finding.evidence[0].startswith(f"{script}:2: export LD_LIBRARY_PATH=")
    assert any("8.1.0.77" in each and "8.6.0.163" in each for each in finding.evidence)
    assert "what LD_LIBRARY_PATH held before stays in front of all" in finding.evidence
    assert finding.cure[0].startswith(f"in {script}: put {world.site}/{CUDNN} before {world.prefix}/lib")


def test_the_specific_folder_first_is_no_finding(world: World) -> None:
    activate(world, RECIPE + "export LD_LIBRARY_PATH=$CUDNN_PATH/lib:$CONDA_PREFIX/lib:$LD_LIBRARY_PATH\n")
    assert orders(world) == []


def test_an_older_library_that_meets_the_requirement_is_a_warning(world: World) -> None:
    world.wheel("tensorflow", "2.12.0", {}, requires=("nvidia-cudnn-cu11>=8",))
    assert only(orders(activate(world, GUIDE))).severity == "warning"


def test_the_conda_folder_alone_hides_the_wheels(world: World) -> None:
    """What the wheels' RUNPATH would find comes after the variable."""
    finding = only(orders(activate(world, 'export LD_LIBRARY_PATH="$CONDA_PREFIX/lib"\n')))
    assert finding.severity == "error"
    assert "not on the path at all" in finding.why


def test_later_scripts_build_on_earlier_ones(world: World) -> None:
    activate(world, RECIPE + "export LD_LIBRARY_PATH=$CUDNN_PATH/lib:$LD_LIBRARY_PATH\n", "a.sh")
    activate(world, "export LD_LIBRARY_PATH=${CONDA_PREFIX}/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n", "b.sh")
    assert only(orders(world)).culprit.path == f"{world.prefix}/etc/conda/activate.d/b.sh"
    path = activated_path(world.view())
    assert path is not None
    assert [each.folder for each in path.elements] == [f"{world.prefix}/lib", f"{world.site}/{CUDNN}"]
    assert path.before == 2


def test_what_only_running_the_script_would_tell_is_undecided(world: World) -> None:
    activate(world, "export LD_LIBRARY_PATH=$(find-cuda --lib):$LD_LIBRARY_PATH\n")
    answer, = find_activation_order(world.view())
    assert isinstance(answer, Undecided)
    assert answer.subject.endswith("env_vars.sh:1")
    assert "$(find-cuda --lib)" in answer.reason


def test_a_home_that_nobody_named_is_undecided_and_one_that_is_known_is_not_reported(world: World) -> None:
    activate(world, "export LD_LIBRARY_PATH=$HOME/cuda/lib64:$LD_LIBRARY_PATH\n")
    assert [type(each) for each in find_activation_order(world.view())] == [Undecided]
    view = world.environ(HOME="/home/me").view()
    assert list(find_activation_order(view)) == []
    assert "HOME" not in view.variables


def test_questions_about_files_come_before_those_about_the_machine(world: World) -> None:
    """Without -v only the first are shown, and a machine without a GPU has many of its own."""
    activate(world, "export LD_LIBRARY_PATH=$(find-cuda --lib):$LD_LIBRARY_PATH\n")
    subjects = [each.subject for each in diagnose(world.view()).undecided]
    assert subjects[0].endswith("env_vars.sh:1")
    assert "driver" in subjects[1:]


def test_what_is_not_taken_back_is_a_note(world: World) -> None:
    text = "export LD_LIBRARY_PATH=/opt/cuda/lib64:$LD_LIBRARY_PATH\n"
    assert orders(activate(world, text)) == []
    world.remove(f"{world.prefix}/etc/conda/deactivate.d/env_vars.sh")
    finding = only(orders(world))
    assert (finding.severity, finding.repairable) == ("note", False)
    assert "deactivate.d" in finding.cure[0]


def test_scripts_without_the_variable_are_no_finding(world: World) -> None:
    assert orders(activate(world, "export CUDA_HOME=$CONDA_PREFIX\n", and_back=False)) == []


def test_a_venv_is_read_like_conda(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cudnn-cu12", "9.1.0.70", {f"{CUDNN}/libcudnn.so.9": lib()})
    world.library("/opt/cudnn/libcudnn.so.9.0.0", lib(soname="libcudnn.so.9")).link(
        "/opt/cudnn/libcudnn.so.9", "libcudnn.so.9.0.0")
    world.write("/venv/bin/activate", 'export LD_LIBRARY_PATH="/opt/cudnn:$LD_LIBRARY_PATH"\n')
    finding = only(orders(world))
    assert (finding.severity, finding.winner) == ("warning", "/opt/cudnn/libcudnn.so.9")


def test_the_fish_script_of_an_environment(world: World) -> None:
    activate(world, "set -gx LD_LIBRARY_PATH $CONDA_PREFIX/lib $LD_LIBRARY_PATH\n", "x.fish")
    assert only(orders(world)).winner == f"{world.prefix}/lib/libcudnn.so.8"


@pytest.mark.parametrize(("line", "expected"), [
    ("export A=1", [("A", "1")]), ('A="x y"; B=2', [("A", "x y"), ("B", "2")]), ("setenv A /b", [("A", "/b")]),
    ("set -gx A /b /c", [("A", "/b:/c")]), ("A=$(f x; g y) && B=2", [("A", "$(f x; g y)"), ("B", "2")]),
    ("export A=/x:$A # put first", [("A", "/x:$A")]), ("echo $LD_LIBRARY_PATH", []), ("A='b", [("A", "'b")]),
])
def test_assignments_of_a_line(line: str, expected: list[tuple[str, str]]) -> None:
    assert list(assignments(line)) == expected


@pytest.mark.parametrize(("line", "expected"), [
    ("nvidia-cudnn-cu11==8.6.0.163", ("nvidia-cudnn-cu11", "==8.6.0.163")), ("A_b (>=1,<2)", ("a-b", ">=1,<2")),
    ('a[x]>=1; python_version>"3"', ("a", ">=1")), ("a; extra == 'x'", ("", None)), ("a", ("a", None)),
    ("a @ https://a.test/a.whl", ("a", None)), ("a===x", ("a", None)),
    (f"a{'=' * 2000}(", ("a", None)), ("", ("", None)),
])
def test_requirements(line: str, expected: tuple[str, str | None]) -> None:
    assert requirement_of(line) == expected


@pytest.mark.parametrize("text", ["$(" * 1000, "$((" * 600 + ")" * 600, "`" * 2000, "export A=" + "${" * 900,
                                  "$(dirname " * 200, "A='" + "\\" * 1900, "export LD_LIBRARY_PATH=" + "$(a(b(c" * 250])
def test_hostile_lines_end(tmp_path: Path, text: str) -> None:
    """They are tried in a child, whose end is waited for."""
    world = activate(World(tmp_path, conda=True), f"export LD_LIBRARY_PATH={text}\n{text}\n")
    done = subprocess.run([sys.executable, "-c", HOSTILE, text], capture_output=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    assert list(find_activation_order(world.view())) != []


@pytest.mark.parametrize("value", [
    "$LD_LIBRARY_PATH:/a:/b", "/a:$LD_LIBRARY_PATH", "/a${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:/b",
    "${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/a", '"/x y:/a"', "/a", "$CONDA_PREFIX/lib/:${CONDA_PREFIX}/x",
    "$HOME/cuda/lib64:${HOME}/b:$LD_LIBRARY_PATH",
])
def test_a_line_means_what_a_shell_makes_of_it(tmp_path: Path, value: str) -> None:
    """Beside the real shell."""
    world = activate(World(tmp_path, conda=True).environ(HOME="/home/me"), f"export LD_LIBRARY_PATH={value}\n")
    found = activated_path(world.view())
    assert found is not None
    folders = [each.folder for each in found.elements]
    if found.before is not None:
        folders.insert(found.before, "/before")
    done = subprocess.run(
        ["sh", "-c", f'. "{world.host(world.prefix)}/etc/conda/activate.d/env_vars.sh"; printf %s "$LD_LIBRARY_PATH"'],
        env={"LD_LIBRARY_PATH": "/before", "CONDA_PREFIX": world.prefix, "HOME": "/home/me"}, capture_output=True,
        text=True, check=True, timeout=10)
    assert [str(Path(each)) for each in done.stdout.split(":")] == folders


# --- broad folders ---


@pytest.fixture
def broad(tmp_path: Path) -> World:
    """torch with a cuDNN of its own, and a system with another one."""
    world = World(tmp_path).wheel("nvidia-cudnn-cu12", "9.1.0.70", {f"{CUDNN}/libcudnn.so.9": lib()})
    world.wheel("torch", "2.4.0", {"torch/lib/libtorch.so": lib(
        needs=("libcudnn.so.9",), runpath="$ORIGIN/../../nvidia/cudnn/lib")})
    return world.opens("torch/lib/libtorch.so", project="torch")


def system_cudnn(world: World, version: str) -> World:
    return world.library(f"{SYSTEM}/libcudnn.so.{version}", lib(soname="libcudnn.so.9")).link(
        f"{SYSTEM}/libcudnn.so.9", f"libcudnn.so.{version}")


def test_specific_folders_are_no_finding(broad: World) -> None:
    assert list(find_broad_paths(broad.environ(LD_LIBRARY_PATH="/opt/cuda/lib64").view())) == []
    assert list(find_broad_paths(broad.environ(LD_LIBRARY_PATH="").view())) == []


@pytest.mark.parametrize("folder", [SYSTEM, "/usr/lib/", "/usr/local/lib", "/lib64"])
def test_a_whole_folder_is_a_note(broad: World, folder: str) -> None:
    finding = only(list(find_broad_paths(broad.environ(LD_LIBRARY_PATH=folder).view())))
    assert (finding.code, finding.severity, finding.repairable) == ("SF1102", "note", False)
    assert finding.culprit.variable == "LD_LIBRARY_PATH"


def test_the_lib_folder_of_the_conda_prefix(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True).environ(LD_LIBRARY_PATH="/opt/conda/envs/train/lib")
    assert only(list(find_broad_paths(world.view()))).severity == "note"


def test_a_whole_folder_that_puts_an_older_library_first_is_a_warning(broad: World) -> None:
    system_cudnn(broad, "9.0.0").environ(LD_LIBRARY_PATH=SYSTEM)
    finding = only(list(find_broad_paths(broad.view())))
    assert finding.severity == "warning"
    assert (finding.winner, finding.loser) == (f"{SYSTEM}/libcudnn.so.9", broad.inside(f"{CUDNN}/libcudnn.so.9"))
    assert finding.requester is not None
    assert finding.requester.package == "torch 2.4.0"
    assert not finding.repairable
    broad.write("/venv/bin/activate", f"export LD_LIBRARY_PATH={SYSTEM}\n")
    finding = only(list(find_broad_paths(broad.view())))
    assert finding.repairable
    assert finding.cure[0] == "change line 1 of /venv/bin/activate, then activate the environment again"


def test_a_whole_folder_with_a_newer_library_stays_a_note(broad: World) -> None:
    system_cudnn(broad, "9.5.0").environ(LD_LIBRARY_PATH=SYSTEM)
    assert only(list(find_broad_paths(broad.view()))).severity == "note"


# --- the current folder ---


def test_an_empty_element_is_a_note(broad: World) -> None:
    finding = only(list(find_current_folder(broad.environ(LD_LIBRARY_PATH="/opt/x:").view())))
    assert (finding.code, finding.severity) == ("SF1103", "note")
    assert list(find_current_folder(broad.environ(LD_LIBRARY_PATH="").view())) == []
    assert list(find_current_folder(broad.environ(LD_LIBRARY_PATH="/opt/x").view())) == []


def test_a_library_from_the_current_folder_is_a_warning(broad: World) -> None:
    broad.library("/libcudnn.so.9", lib()).environ(LD_LIBRARY_PATH=":/opt/x")
    finding = only(list(find_current_folder(broad.view())))
    assert (finding.severity, finding.winner) == ("warning", "/libcudnn.so.9")
    assert not finding.repairable
    broad.write("/venv/bin/activate", "export LD_LIBRARY_PATH=/opt/x:$LD_LIBRARY_PATH\n")
    assert only(list(find_current_folder(broad.view()))).repairable


# --- kernels ---


def with_kernel(world: World, **variables: str) -> World:
    return world.write(f"{world.prefix}/share/jupyter/kernels/python3/kernel.json", json.dumps(
        {"argv": ["python", "-m", "ipykernel_launcher"], "env": variables}))


@pytest.fixture
def needy(tmp_path: Path) -> World:
    """An extension that finds its library through LD_LIBRARY_PATH only."""
    world = World(tmp_path).library("/opt/x/libneeded.so.1", lib())
    world.wheel("ext", "1", {"ext/_C.so": lib(needs=("libneeded.so.1",))}).opens("ext/_C.so", what="import ext")
    return with_kernel(world)


def test_a_kernel_without_the_variable(needy: World) -> None:
    finding = only(list(find_kernels_without_path(needy.environ(LD_LIBRARY_PATH="/opt/x").view())))
    assert (finding.code, finding.severity) == ("SF1104", "warning")
    assert finding.culprit.path == "/venv/share/jupyter/kernels/python3/kernel.json"
    assert "import ext" in finding.summary
    assert finding.repairable


def test_a_kernel_where_the_wheels_find_their_own(broad: World) -> None:
    view = with_kernel(broad).environ(LD_LIBRARY_PATH=f"{broad.site}/{CUDNN}").view()
    assert list(find_kernels_without_path(view)) == []


@pytest.mark.parametrize(("program", "count"), [("/venv/bin/python", 1), ("/opt/other/bin/python", 0), ("python", 0)])
def test_a_kernel_of_the_user(needy: World, program: str, count: int) -> None:
    """It is this environment's where it starts its Python, and is left alone."""
    needy.remove("/venv/share/jupyter/kernels/python3/kernel.json").environ(HOME="/home/me", LD_LIBRARY_PATH="/opt/x")
    needy.write("/home/me/.local/share/jupyter/kernels/mine/kernel.json", json.dumps({"argv": [program]}))
    findings = list(find_kernels_without_path(needy.view()))
    assert [each.repairable for each in findings] == [False] * count


def test_a_kernel_that_has_the_variable(needy: World) -> None:
    with_kernel(needy, LD_LIBRARY_PATH="/opt/x").environ(LD_LIBRARY_PATH="/opt/x")
    assert list(find_kernels_without_path(needy.view())) == []


def test_a_kernel_that_would_need_the_activation_script(needy: World) -> None:
    needy.write("/venv/bin/activate", "export LD_LIBRARY_PATH=/opt/x\n")
    finding = only(list(find_kernels_without_path(needy.view())))
    assert "/venv/bin/activate" in finding.evidence[0]


