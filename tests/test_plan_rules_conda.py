"""Commands for packages of conda: exact, for each program at hand, from the channel that a package came from."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from stackfix.cli.inspecting import Asked, open_view
from stackfix.cli.repairing_conda import KINDS, programs_at_hand
from stackfix.diagnose.situation import View
from stackfix.inspect.places import Root
from stackfix.matrix.libraries import load_libraries
from stackfix.matrix.load import load_matrix
from stackfix.plan.rules_conda import Program, WantedConda, by_programs
from tests.case_worlds import TAG, nvjitlink
from tests.conda_packages import JIT, Package
from tests.conda_world import install, served
from tests.diagnose_world import World, lib
from tests.plan_world import advice, kinds, plan_of, shelf_for, whole
from tests.test_cases_k1 import SONAME

JIT_NAME = "libnvjitlink"
CONDA, MICRO = Program(kind="conda", word="conda"), Program(kind="micromamba", word="/opt/my tools/micromamba")
FORGE = dict(load_matrix().sources.conda_channels)["conda-forge"]


def prefix_with(folder: Path, prefix: str = "/opt/env") -> World:
    """A prefix of conda with one package of conda-forge's, as conda-meta tells."""
    world = World(folder, conda=True, prefix=prefix)
    world.conda("libnvjitlink", "12.4.127", {f"lib/{SONAME}": nvjitlink("12.4.127")})
    [record] = world.host(f"{prefix}/conda-meta").glob("libnvjitlink-*.json")
    stated = json.loads(record.read_text())
    record.write_text(json.dumps({**stated, "channel": FORGE, "build": "h5888daf_1", "build_number": 1}))
    return world


def lines(world: World, line: str, *programs: Program) -> list[str]:
    return list(by_programs(world.view(load_libraries()), line, programs))


def test_a_package_comes_again_as_it_is(tmp_path: Path) -> None:
    world = prefix_with(tmp_path)
    said = lines(world, "conda install --prefix /opt/env --force-reinstall libnvjitlink=12.4.127", CONDA, MICRO)
    tail = f" install --prefix /opt/env libnvjitlink=12.4.127=h5888daf_1 --force-reinstall --no-deps --channel {FORGE}"
    assert said == [f"conda{tail}", f"'/opt/my tools/micromamba'{tail}"]


def test_a_range_leaves_all_else_as_it_is(tmp_path: Path) -> None:
    said = lines(prefix_with(tmp_path), "conda install --prefix /opt/env 'libnvjitlink>=12.5,<13' cudnn", CONDA)
    assert said == [
        f"conda install --prefix /opt/env 'libnvjitlink>=12.5,<13' cudnn --freeze-installed --channel {FORGE}"]


def test_without_a_program_the_line_is_condas(tmp_path: Path) -> None:
    said = lines(prefix_with(tmp_path), "conda remove --prefix /opt/env --force libnvjitlink")
    assert said == ["conda remove --prefix /opt/env libnvjitlink --force"]


@pytest.mark.parametrize(("line", "said"), [
    ("--force-reinstall libnvjitlink=12.4.127",
     "pixi reinstall --manifest-path '/home/me/my work' --environment gpu libnvjitlink"),
    ("'libnvjitlink>=12.5'", "pixi add --manifest-path '/home/me/my work' 'libnvjitlink>=12.5'"),
])
def test_a_workspace_of_pixi_is_changed_with_pixi(line: str, said: str, tmp_path: Path) -> None:
    world = prefix_with(tmp_path, "/home/me/my work/.pixi/envs/gpu")
    assert lines(world, f"conda install --prefix {shlex.quote(world.prefix)} {line}", CONDA) == [said]


@pytest.mark.parametrize("line", ["uv pip install x", "conda", "conda env config vars set A=1", "unset LD_LIBRARY_PATH",
                                  "replace it by a version that isn't older"])
def test_other_lines_stay(line: str, tmp_path: Path) -> None:
    assert lines(prefix_with(tmp_path), line, CONDA, MICRO) == [line]


def with_needs(world: World, minor: int) -> World:
    """A package of conda's that needs the nvJitLink of a CUDA 12."""
    world.conda("libcusparse", "12.5.1", {"lib/libcusparse.so.12": lib(
        needs=(SONAME,), wants=(f"__nvJitLinkAddData_12_{minor}@{SONAME}",), rpath="$ORIGIN",
        offers=("cusparseCreate@libcusparse.so.12",))})
    return whole(world.conda("some", "1.0", {f"lib/python3.11/site-packages/some/_ext.{TAG}": lib(
        needs=("libcusparse.so.12",), wants=("cusparseCreate@libcusparse.so.12",), rpath="$ORIGIN/../../..")}))


def test_what_conda_does_not_bring_is_printed_for_each_program(tmp_path: Path) -> None:
    world = with_needs(prefix_with(tmp_path / "machine"), 5)
    shelf = shelf_for(world)
    shelf.programs = (CONDA, MICRO)
    plan = plan_of(world, shelf)
    assert ([each.code for each in plan.left], kinds(plan), shelf.asked) == (["SF201"], (), [])
    [wanted] = shelf.wanted_of_conda
    assert (wanted.package, wanted.specifier[:6]) == (JIT_NAME, ">=12.5")
    for word in ("conda", "'/opt/my tools/micromamba'"):
        assert f"{word} install --prefix /opt/env '{JIT_NAME}{wanted.specifier}'" in advice(plan)
    assert advice(plan).count(f" --freeze-installed --channel {FORGE}") == 2


def test_a_file_that_is_gone_asks_for_the_same_release(tmp_path: Path) -> None:
    world = with_needs(prefix_with(tmp_path / "machine"), 4)
    world.remove(f"/opt/env/lib/{SONAME}")
    shelf = shelf_for(world)
    plan = plan_of(world, shelf)
    assert (kinds(plan), shelf.asked) == ((), [])
    assert shelf.wanted_of_conda == [WantedConda(package=JIT_NAME, specifier="")]
    assert f"{JIT_NAME}=12.4.127=h5888daf_1 --force-reinstall" in advice(plan)


# --- the programs at hand ---


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_programs_are_found_on_path_and_behind_shell_functions(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "micromamba")
    conda = program(tmp_path / "opt" / "conda")
    environ = {"PATH": str(tmp_path / "bin"), "CONDA_EXE": str(conda), "MAMBA_EXE": str(tmp_path / "gone" / "mamba")}
    assert programs_at_hand(environ) == (Program(kind="conda", word=str(conda)),
                                         Program(kind="micromamba", word="micromamba"))
    assert programs_at_hand({"PATH": str(tmp_path / "none"), "CONDA_EXE": "conda", "MAMBA_EXE": "/bin/sh"}) == ()
    assert programs_at_hand({"PATH": f"{tmp_path}/bin:{conda.parent}", "CONDA_EXE": str(conda)}) == (
        Program(kind="conda", word="conda"), Program(kind="micromamba", word="micromamba"))


@pytest.mark.skipif(not any(shutil.which(each) for each in KINDS), reason="no conda, mamba or micromamba on PATH")
def test_what_is_printed_works(tmp_path: Path) -> None:
    """As each program at hand runs it: a file comes back, a range is followed, and all else stays."""
    packages = [Package(name=name, version=version, files={file: version.encode()}) for name, file, versions in (
        (JIT_NAME, f"lib/{JIT}", ("12.0", "12.4")), ("other", "share/other", ("1.0", "2.0"))) for version in versions]
    with served(tmp_path / "channel", packages) as channel:
        for each in programs_at_hand(os.environ):
            prefix = install(tmp_path / f"an env of {each.kind}", channel, (f"{JIT_NAME}=12.0", "other=1.0"),
                             tmp_path / "cache")
            file = prefix / "lib" / JIT
            before = file.read_bytes()
            file.unlink()
            view = view_of(prefix)
            for line in (f"--force-reinstall {JIT_NAME}=12.0", f"'{JIT_NAME}>=12.4'"):
                [command] = by_programs(view, f"conda install --prefix {shlex.quote(str(prefix))} {line}", (each,))
                done = subprocess.run(["/bin/sh", "-c", f"{command} --yes"], capture_output=True, text=True,
                                      check=False, env=only_here(tmp_path), timeout=300)
                assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
                assert (file.read_bytes() == before) == ("reinstall" in line), command
            assert (prefix / "share" / "other").read_bytes() == b"1.0"


def only_here(folder: Path) -> dict[str, str]:
    """Variables with which conda's programs keep all that is their own in a folder."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "CONDA_PKGS_DIRS": str(folder / "pkgs"),
            "CONDA_REGISTER_ENVS": "false", "CONDA_SOLVER": os.environ.get("CONDA_SOLVER", "libmamba"),
            "MAMBA_ROOT_PREFIX": str(folder / "mamba"), "NO_PROXY": "127.0.0.1"}


def view_of(prefix: Path) -> View:
    """What is installed there; nothing is run."""
    with open_view(Asked(root=Root(), environ={}, cwd="/", prefix=str(prefix), python=None, extensions=(), wheels=(),
                         deep=False)) as view:
        return view
