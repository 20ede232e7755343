"""Missing, changed and overwritten files, projects installed twice, and the user's own site folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.missing import find_missing
from stackfix.diagnose.ownership import find_damaged_packages
from stackfix.diagnose.ownership_copies import find_two_installations, find_user_site_first
from stackfix.diagnose.ownership_shared import find_overwritten_files
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import FileFault, Owner
from stackfix.inspect.machine_records import Undecided
from stackfix.matrix.library_records import OpenedByName
from tests.diagnose_world import LIBRARIES, World, lib

CUDNN = "nvidia/cudnn/lib"
MAIN, OPS = f"{CUDNN}/libcudnn.so.9", f"{CUDNN}/libcudnn_ops.so.9"
TORCH = "torch/lib/libtorch_cuda.so"


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


def damage(view: View) -> list[Finding]:
    return [each for each in find_damaged_packages(view) if isinstance(each, Finding)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """torch, and the cuDNN that it requires."""
    world = World(tmp_path).wheel("nvidia-cudnn-cu12", "9.1.0.70", {
        MAIN: lib(runpath="$ORIGIN"), OPS: lib(), "nvidia/cudnn/include/cudnn.h": "x\n", "nvidia/__init__.py": ""})
    return world.wheel("torch", "2.4.0", {
        TORCH: lib(needs=("libcudnn.so.9",), rpath="$ORIGIN/../../nvidia/cudnn/lib"),
        "torch/__init__.py": "import nothing\n", "torch/share/names.txt": "a\n"},
        requires=("nvidia-cudnn-cu12==9.1.0.70",)).opens(TORCH, project="torch")


# --- damaged packages ---


def test_what_is_as_installed_is_no_finding(world: World) -> None:
    assert damage(world.view()) == []


def test_missing_files_of_which_an_import_needs_one_are_told_as_a_missing_library(world: World) -> None:
    """SF401 names it, and all else that is gone of the package."""
    view = world.remove(MAIN).remove("nvidia/cudnn/include/cudnn.h").view()
    assert damage(view) == []
    finding = only([each for each in find_missing(view) if isinstance(each, Finding)])
    assert (finding.code, finding.culprit.package) == ("SF401", "nvidia-cudnn-cu12 9.1.0.70")
    assert f"gone: {world.inside('nvidia/cudnn/include/cudnn.h')}" in finding.evidence


def test_a_missing_library(world: World) -> None:
    finding = only(damage(world.remove(OPS).view()))
    assert (finding.code, finding.severity, finding.level) == ("SF702", "warning", "cudnn")
    assert finding.culprit.path == world.inside(OPS)
    assert finding.culprit.package == "nvidia-cudnn-cu12 9.1.0.70"
    assert finding.requester is not None
    assert (finding.requester.path, finding.requester.package) == (None, "torch 2.4.0")
    assert "required by torch 2.4.0" in finding.evidence
    assert finding.cure == (
        "/venv/bin/python -m pip install --force-reinstall --no-deps nvidia-cudnn-cu12==9.1.0.70",)
    assert finding.repairable


def test_a_missing_library_that_the_one_beside_it_opens(world: World) -> None:
    world.remove(OPS)
    assert only(damage(world.view())).severity == "warning"        # nothing is known to need it
    rows = (OpenedByName(library="libcudnn.so.9", versions=None, names=("libcudnn_ops.so.9",), when="first use",
                         optional=False, why="every call", source="tests", confidence="certain"),)
    finding = only(damage(world.view(dataclasses.replace(LIBRARIES, opened=rows))))
    assert finding.severity == "error"
    assert finding.requester is not None
    assert finding.requester.path == world.inside(MAIN)
    optional = (dataclasses.replace(rows[0], optional=True),)
    assert only(damage(world.view(dataclasses.replace(LIBRARIES, opened=optional)))).severity == "warning"


def test_half_of_a_package_is_one_finding(world: World) -> None:
    world.opens_nothing()
    for each in (MAIN, OPS, "nvidia/cudnn/include/cudnn.h"):
        world.remove(each)
    finding = only(damage(world.view()))
    assert "3 files are missing" in finding.summary
    assert [each for each in finding.evidence if each.startswith("missing: ")] == [
        f"missing: {world.inside(each)}" for each in (MAIN, OPS, "nvidia/cudnn/include/cudnn.h")]


@pytest.mark.parametrize(("path", "severity"), [
    ("torch/share/names.txt", "note"), ("torch/__init__.py", "warning"), ("nvidia/cudnn/include/cudnn.h", "note"),
])
def test_how_much_a_missing_file_matters(world: World, path: str, severity: str) -> None:
    finding = only(damage(world.remove(path).view()))
    assert (finding.severity, finding.culprit.path) == (severity, world.inside(path))


@pytest.mark.parametrize("path", ["x/tests/test_a.py", "x/tests/_a.cpython-311-x86_64-linux-gnu.so", "x/docs/conf.py",
                                  "x/core/_multiarray_tests.cpython-311-x86_64-linux-gnu.so", "x/examples/run.py"])
def test_images_leave_tests_and_examples_out(tmp_path: Path, path: str) -> None:
    world = World(tmp_path).wheel("x", "1", {path: "x\n", "x/__init__.py": ""}).remove(path)
    assert only(damage(world.view())).severity == "note"


@pytest.mark.parametrize(("path", "severity"), [
    ("torch/share/names.txt", "note"), ("torch/__init__.py", "note"), (TORCH, "warning"),
])
def test_changed_files(world: World, path: str, severity: str) -> None:
    """A stripped library still loads, and people put prints into Python files."""
    host = world.host(world.inside(path))
    host.write_bytes(host.read_bytes() + b"\n")
    finding = only(damage(world.view()))
    assert finding.severity == severity
    assert finding.evidence[0].startswith(f"of another size: {world.inside(path)}, ")


def test_many_changed_python_files_are_no_edits_by_hand(tmp_path: Path) -> None:
    files = {f"x/m{number}.py": "x = 1\n" for number in range(12)}
    world = World(tmp_path).wheel("x", "1", files)
    for each in files:
        world.write(world.inside(each), "x = 22\n")
    assert only(damage(world.view())).severity == "warning"


def test_a_changed_library_that_no_longer_loads(world: World) -> None:
    world.write(world.inside(MAIN), b"garbage")
    finding = only(damage(world.view()))
    assert finding.severity == "error"
    assert finding.error is not None
    assert finding.error.startswith(world.inside(MAIN).rpartition("/nvidia")[0])


def test_a_library_whose_end_is_gone_is_damaged_also_where_nothing_opens_it(tmp_path: Path) -> None:
    """A strip leaves no segment that ends behind the file."""
    world = World(tmp_path).wheel("x", "1", {"x/libx.so": lib(offers=("here",))}).opens_nothing()
    host = world.host(world.inside("x/libx.so"))
    host.write_bytes(host.read_bytes()[:-8])
    finding = only(damage(world.view()))
    assert (finding.severity, finding.error) == ("error", None)
    assert " libx.so is cut short: " in finding.why


def test_a_folder_in_the_place_of_a_library_was_not_deleted(world: World) -> None:
    world.remove(MAIN).write(f"{world.inside(MAIN)}/x", "")
    finding = only(damage(world.view()))
    assert finding.severity == "error"
    assert finding.why.startswith("Something else, such as a folder, lies where its installer recorded a file.")
    assert finding.why.endswith("libcudnn.so.9 cannot be loaded: cannot read file data: Is a directory.")
    assert "deleted" not in finding.why
    assert f"not a file: {world.inside(MAIN)}" in finding.evidence


def test_what_cannot_be_read_is_undecided(world: World) -> None:
    view = world.view()
    fault = FileFault(path="/venv/x", owner=Owner(manager="pip", name="torch", version="2.4.0"), kind="unreadable",
                      expected=None, found="Permission denied")
    environment = dataclasses.replace(view.environment, file_faults=(fault,))
    view = dataclasses.replace(view, situation=dataclasses.replace(view.situation, environment=environment))
    answer, = find_damaged_packages(view)
    assert isinstance(answer, Undecided)
    assert answer.subject == "files of torch 2.4.0"


def test_rows_that_leave_the_prefix_are_a_note(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("x", "1", {"x/__init__.py": ""})
    world.write(f"{world.site}/x-1.dist-info/RECORD", "../../../../etc/x,,\n")
    finding = only(damage(world.view()))
    assert (finding.severity, finding.cure) == ("note", ())


def test_the_installers_own_command(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("x", "1", {"x/a.py": "x\n"}, installer="uv").remove("x/a.py")
    assert only(damage(world.view())).cure == (
        "uv pip install --python /venv/bin/python --reinstall --no-deps x==1",)


def test_a_conda_package(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True).conda("libx", "1.2", {"lib/libx.so.1": lib()})
    world.remove(f"{world.prefix}/lib/libx.so.1")
    finding = only(damage(world.view()))
    assert (finding.severity, finding.culprit.package) == ("warning", "libx 1.2")
    assert finding.cure == (f"conda install --prefix {world.prefix} --force-reinstall libx=1.2",)


# --- overwritten files ---


def overwrite(world: World) -> World:
    """The CUDA 13 build of cuDNN, installed over the other: its library is larger."""
    return world.wheel("nvidia-cudnn-cu13", "9.13.0.50", {
        MAIN: lib(runpath="$ORIGIN", offers=("cudnnNew@libcudnn.so.9",)), "nvidia/__init__.py": ""})


def test_equal_files_of_two_packages_are_no_finding(world: World) -> None:
    world.wheel("nvidia-nccl-cu12", "2.20.5", {"nvidia/__init__.py": ""})
    assert list(find_overwritten_files(world.view())) == []


def test_a_library_overwritten_by_a_package_that_nobody_asked_for(world: World) -> None:
    view = overwrite(world).view()
    finding = only(list(find_overwritten_files(view)))
    assert (finding.code, finding.severity, finding.level) == ("SF701", "error", "cudnn")
    assert finding.culprit.path == world.inside(MAIN)
    assert finding.culprit.package == "nvidia-cudnn-cu13 9.13.0.50"
    assert finding.requester is not None
    assert finding.requester.package == "nvidia-cudnn-cu12 9.1.0.70"
    assert "its content is gone" in finding.why
    assert finding.cure[0].startswith("/venv/bin/python -m pip uninstall -y")
    assert "nvidia-cudnn-cu12==9.1.0.70" in finding.cure[1]
    assert damage(view) == []               # the same root


def test_what_an_extra_asked_for_is_not_to_be_removed(world: World) -> None:
    """Nothing records which extras were asked for."""
    world.wheel("onnxruntime-gpu", "1.22.0", {}, requires=('nvidia-cudnn-cu13 ; extra == "cudnn"',))
    finding = only(list(find_overwritten_files(overwrite(world).view())))
    assert "nvidia-cudnn-cu13 9.13.0.50 is required by an extra of onnxruntime-gpu 1.22.0" in finding.evidence
    assert finding.cure[-1] == "keep nvidia-cudnn-cu13 9.13.0.50 in an environment of its own"
    assert not any(" uninstall " in each or "# then" in each for each in finding.cure)


def test_the_required_content_on_top_is_a_warning(world: World) -> None:
    body = world.host(world.inside(MAIN)).read_bytes()
    overwrite(world).write(world.inside(MAIN), body)
    finding = only(list(find_overwritten_files(world.view())))
    assert finding.severity == "warning"
    assert "What lies there is that of nvidia-cudnn-cu12 9.1.0.70" in finding.why


def test_one_half_uninstalled_is_damage_with_a_requester(world: World) -> None:
    """pip removes what its RECORD names, whoever else has it."""
    overwrite(world)
    for each in world.host(world.site).glob("nvidia_cudnn_cu13-*/*"):
        each.unlink()
    for each in world.host(world.site).glob("nvidia_cudnn_cu13-*"):
        each.rmdir()
    view = world.remove(MAIN).remove("nvidia/__init__.py").view()
    assert list(find_overwritten_files(view)) == []
    assert damage(view) == []
    finding = only([each for each in find_missing(view) if isinstance(each, Finding)])
    assert (finding.severity, finding.culprit.package) == ("error", "nvidia-cudnn-cu12 9.1.0.70")
    assert finding.requester is not None
    assert finding.requester.package == "torch 2.4.0"


CUTE = "nvidia_cutlass_dsl/lib/libcute_dsl_runtime.so"


def cutlass(tmp_path: Path, *order: str) -> World:
    """Two required wheels that own one path; installers that work in parallel extract them in any order."""
    world = World(tmp_path).wheel("nvidia-cutlass-dsl", "4.5.1", {}, requires=(
        "nvidia-cutlass-dsl-libs-base==4.5.1", 'nvidia-cutlass-dsl-libs-cu13==4.5.1; extra == "cu13"'))
    for each in order:
        world.wheel(f"nvidia-cutlass-dsl-libs-{each}", "4.5.1", {
            CUTE: lib(offers=("a",) if each == "base" else ("a", "much_longer"))},
            requires=() if each == "base" else ("nvidia-cutlass-dsl-libs-base==4.5.1",))
    return world.opens(CUTE, project="nvidia-cutlass-dsl-libs-base", phase="module")


def test_the_package_that_builds_on_the_other_is_wanted(tmp_path: Path) -> None:
    finding = only(list(find_overwritten_files(cutlass(tmp_path, "cu13", "base").view())))
    assert finding.severity == "error"
    assert finding.culprit.path == f"/venv/lib/python3.11/site-packages/{CUTE}"
    assert finding.culprit.package == "nvidia-cutlass-dsl-libs-base 4.5.1"
    assert finding.requester is not None
    assert finding.requester.package == "nvidia-cutlass-dsl-libs-cu13 4.5.1"
    assert "nvidia-cutlass-dsl-libs-base 4.5.1 and nvidia-cutlass-dsl-libs-cu13 4.5.1" in finding.summary
    assert any("--force-reinstall --no-deps nvidia-cutlass-dsl-libs-cu13==4.5.1" in each for each in finding.cure)
    assert not any(" uninstall " in each or "# then" in each for each in finding.cure)


def test_the_package_that_builds_on_the_other_and_lies_on_top_is_as_it_should_be(tmp_path: Path) -> None:
    finding = only(list(find_overwritten_files(cutlass(tmp_path, "base", "cu13").view())))
    assert (finding.severity, finding.why_not) == ("note", "nothing is broken")


def test_two_packages_that_one_project_requires(tmp_path: Path) -> None:
    """Which one is right cannot be told, and the last one wins."""
    world = World(tmp_path).wheel("both", "1", {}, requires=("a", "b")).wheel("b", "1", {"x/libx.so": lib()}).wheel(
        "a", "1", {"x/libx.so": lib(offers=("longer",))})
    finding = only(list(find_overwritten_files(world.view())))
    assert (finding.severity, finding.culprit.package) == ("warning", "a 1")
    assert "What lies there is that of a 1" in finding.why
    assert finding.why_not == "which of the packages is wanted cannot be told"
    assert len(finding.cure) == 2


def test_equal_sizes_do_not_tell_whose_content_it_is(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("a", "1", {"x/libx.so": b"aaaa"}).wheel("b", "1", {"x/libx.so": b"bbbb"})
    assert "--deep" in only(list(find_overwritten_files(world.view()))).why


def test_data_and_tests_of_two_packages_are_a_note(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("a", "1", {"tests/__init__.py": "a", "LICENSE": "a"}).wheel(
        "b", "1", {"tests/__init__.py": "bb", "LICENSE": "bb"})
    finding = only(list(find_overwritten_files(world.view())))
    assert (finding.severity, finding.repairable) == ("note", False)


def test_pip_wrote_over_a_torch_of_conda_that_it_did_not_see(tmp_path: Path) -> None:
    """An old build of conda's without dist-info: the two metadata never meet, the files do."""
    world = World(tmp_path, conda=True)
    site = world.site.removeprefix(f"{world.prefix}/")
    world.conda("pytorch", "1.12.1", {f"{site}/{TORCH}": lib(), f"{site}/torch/version.py": "1.12.1\n"})
    world.wheel("torch", "2.0.1", {TORCH: lib(offers=("more",)), "torch/version.py": "2.0.1+cu117\n"}).opens(
        TORCH, project="torch")
    view = world.view()
    finding = only(list(find_overwritten_files(view)))
    assert "pytorch 1.12.1 (conda)" in finding.summary
    assert "torch 2.0.1" in finding.summary
    assert finding.severity == "error"
    assert finding.requester is not None
    assert finding.requester.package == "torch 2.0.1"
    assert finding.culprit.package == "pytorch 1.12.1"
    assert damage(view) == []


# --- two installations ---


def test_conda_and_pip_have_one_project(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True)
    site = world.site.removeprefix(f"{world.prefix}/")
    metadata = "Metadata-Version: 2.1\nName: torch\nVersion: 2.3.1\n"
    world.conda("pytorch", "2.3.1", {f"{site}/torch-2.3.1.dist-info/METADATA": metadata,
                                     f"{site}/{TORCH}": lib(), f"{site}/torch/lib/libleft.so": lib()})
    assert list(find_two_installations(world.view())) == []
    for each in world.host(world.site).glob("torch-*/*"):
        each.unlink()
    next(world.host(world.site).glob("torch-*")).rmdir()
    world.wheel("torch", "2.4.0", {TORCH: lib(offers=("more",))})
    view = world.view()
    finding = only(list(find_two_installations(view)))
    assert (finding.code, finding.severity, finding.level) == ("SF703", "error", "torch")
    assert "torch 2.4.0 and pytorch 2.3.1 (conda)" in finding.summary
    assert f"of both: {world.inside('torch/lib/libleft.so')}" in finding.evidence
    assert any(each.endswith("# keep conda's") for each in finding.cure)
    assert list(find_overwritten_files(view)) == []     # the same root
    assert damage(view) == []


def test_pip_that_upgraded_itself_over_condas_is_daily_life(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True)
    site = world.site.removeprefix(f"{world.prefix}/")
    world.conda("pip", "23.0", {f"{site}/pip-23.0.dist-info/METADATA": "Name: pip\nVersion: 23.0\n",
                                f"{site}/pip/__init__.py": "old\n"})
    for each in world.host(world.site).glob("pip-*/*"):
        each.unlink()
    next(world.host(world.site).glob("pip-*")).rmdir()
    world.wheel("pip", "24.0", {"pip/__init__.py": "newer\n"})
    assert only(list(find_two_installations(world.view()))).severity == "note"


def test_two_metadata_folders_in_one_site(world: World) -> None:
    world.write(f"{world.site}/torch-2.3.1.dist-info/METADATA", "Name: torch\nVersion: 2.3.1\n")
    world.write(f"{world.site}/torch-2.3.1.dist-info/RECORD", f"{TORCH},sha256=AAAA,3\n")
    view = world.view()
    finding = only(list(find_two_installations(view)))
    assert finding.severity == "error"
    assert finding.requester is not None
    assert any("torch-2.3.1.dist-info" in each for each in finding.evidence)
    assert list(find_overwritten_files(view)) == []


def test_system_packages_under_a_venv_are_one_note(tmp_path: Path) -> None:
    world = World(tmp_path).write("/venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = true\n")
    for name in ("torch", "numpy"):
        world.wheel(name, "1.0", {f"{name}/__init__.py": ""}).wheel(
            name, "2.0", {f"{name}/__init__.py": "x\n"}, site="/usr/local/lib/python3.11/site-packages")
    finding = only(list(find_two_installations(world.view())))
    assert finding.severity == "note"
    assert "2 projects" in finding.summary


# --- the user's own site ---


def test_a_folder_of_pythonpath_hides_the_environments_torch(world: World) -> None:
    world.wheel("torch", "2.1.0", {"torch/__init__.py": "x = 1\n"}, site="/home/me/libs").environ(
        PYTHONPATH="/home/me/libs")
    view = world.view()
    finding = only(list(find_user_site_first(view)))
    assert (finding.code, finding.severity, finding.level) == ("SF704", "warning", "torch")
    assert finding.culprit.variable == "PYTHONPATH"
    assert finding.culprit.package == "torch 2.1.0"
    assert finding.loser == f"{world.site}/torch-2.4.0.dist-info"
    assert finding.cure[0] == "take /home/me/libs out of PYTHONPATH"
    assert list(find_two_installations(view)) == []


def test_the_user_site_hides_a_conda_environments_copies(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True)
    user = "/home/me/.local/lib/python3.11/site-packages"
    world.wheel("torch", "2.4.0", {"torch/a.py": ""}).wheel("six", "1.16", {"six.py": ""})
    world.wheel("torch", "2.1.0", {"torch/a.py": "x\n"}, site=user).wheel("six", "1.15", {"six.py": "x\n"}, site=user)
    world.environ(HOME="/home/me")
    stack, rest = find_user_site_first(world.view())
    assert (stack.severity, stack.culprit.package, stack.culprit.variable) == ("warning", "torch 2.1.0", None)
    assert "PYTHONNOUSERSITE=1" in stack.cure[0]
    assert (rest.severity, rest.culprit.package) == ("note", "six 1.15")


def test_the_same_version_in_the_user_site_is_a_note(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True)
    world.wheel("torch", "2.4.0", {"torch/a.py": ""}).wheel(
        "torch", "2.4.0", {"torch/a.py": ""}, site="/home/me/.local/lib/python3.11/site-packages")
    assert only(list(find_user_site_first(world.environ(HOME="/home/me").view()))).severity == "note"
