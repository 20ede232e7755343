"""Links that are broken or gone, and names without a version."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.links import find_broken_links
from stackfix.diagnose.links_lost import lost_links
from stackfix.diagnose.links_python import find_lost_python
from stackfix.diagnose.links_unversioned import find_missing_names
from stackfix.diagnose.ownership import find_damaged_packages
from stackfix.inspect.machine_records import Undecided
from tests.diagnose_machines import with_machine
from tests.diagnose_world import SYSTEM, World, lib
from tests.inspect_trees import HERMETIC, SITE, UV, conda_package, look, make_venv, run_tool, write

STDCXX = "libstdc++.so.6"
FILE = f"{STDCXX}.0.34"
CUDNN, NVRTC = "nvidia/cudnn/lib", "nvidia/cuda_nvrtc/lib"
INFER = f"{CUDNN}/libcudnn_cnn_infer.so.8"
GONE = "No such file or directory"
NEW = tuple(f"GLIBCXX_3.4.{minor}" for minor in (30, 32, 34))


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


# --- soname links ---


@pytest.fixture
def conda(tmp_path: Path) -> World:
    """A conda prefix with its own libstdc++, link and all, and a system with an older one."""
    world = World(tmp_path, conda=True)
    folder = world.host(f"{world.prefix}/lib")
    world.library(f"{world.prefix}/lib/{FILE}", lib(soname=STDCXX, versions=("GLIBCXX_3.4", *NEW),
                                                     offers=("std_new@GLIBCXX_3.4.30",)))
    world.link(f"{world.prefix}/lib/{STDCXX}", FILE)
    content = (folder / FILE).read_bytes()
    paths = [{"_path": f"lib/{FILE}", "path_type": "hardlink", "size_in_bytes": len(content)},
             {"_path": f"lib/{STDCXX}", "path_type": "softlink"}]
    conda_package(world.host(world.prefix), "libstdcxx", "15.1.0", {}, more={
        "paths_data": {"paths": paths, "paths_version": 1}})
    world.library(f"{SYSTEM}/{STDCXX}", lib(versions=("GLIBCXX_3.4", "GLIBCXX_3.4.28")))
    world.wheel("torch", "2.7.1", {"torch/lib/libtorch_python.so": lib(
        needs=(STDCXX,), wants=(f"std_new@GLIBCXX_3.4.30@{STDCXX}",))})
    return world.opens("torch/lib/libtorch_python.so", project="torch")


def test_a_whole_prefix_has_no_finding(conda: World) -> None:
    view = conda.view()
    assert lost_links(view) == ()
    assert list(find_broken_links(view)) == []


def test_the_lost_link_of_libstdcxx(conda: World) -> None:
    """The loader passes over the newer file and takes the system's."""
    lost = f"{conda.prefix}/lib/{STDCXX}"
    view = conda.remove(lost).view()
    finding = only(list(find_broken_links(view)))
    assert (finding.code, finding.severity, finding.level) == ("SF801", "error", "environment")
    assert (finding.culprit.path, finding.culprit.package) == (lost, "libstdcxx 15.1.0")
    assert (finding.winner, finding.loser) == (f"{SYSTEM}/{STDCXX}", f"{conda.prefix}/lib/{FILE}")
    assert finding.requester is not None
    assert finding.requester.package == "torch 2.7.1"
    assert finding.error is not None
    assert finding.error.startswith(f"{SYSTEM}/{STDCXX}: version `GLIBCXX_3.4.30' not found (required by ")
    assert finding.cure[0] == f"ln -s {FILE} {lost}"
    assert finding.repairable
    assert list(find_damaged_packages(view)) == []      # the same root


def test_the_cure_is_a_cure(conda: World) -> None:
    lost = f"{conda.prefix}/lib/{STDCXX}"
    cure = only(list(find_broken_links(conda.remove(lost).view()))).cure[0]
    words = cure.replace(lost, str(conda.host(lost))).split()
    subprocess.run(words, check=True, timeout=10)
    view = conda.view()
    assert list(find_broken_links(view)) == []
    assert [each.outcome.failures for each in view.openings] == [()]


def test_a_lost_link_that_nothing_misses_yet_is_a_warning(conda: World) -> None:
    conda.library(f"{SYSTEM}/{STDCXX}", lib(offers=("std_new@GLIBCXX_3.4.30",), versions=("GLIBCXX_3.4",)))
    finding = only(list(find_broken_links(conda.remove(f"{conda.prefix}/lib/{STDCXX}").view())))
    assert (finding.severity, finding.error) == ("warning", None)


def test_a_full_name_that_nobody_ever_linked_is_no_finding(tmp_path: Path) -> None:
    """Wheels cannot hold links: some carry the full name only, and open it so."""
    world = World(tmp_path).wheel("tbb", "2021.13", {"x/libtbb.so.12.13": lib(soname="libtbb.so.12")})
    view = world.view()
    assert [each.soname for each in lost_links(view)] == ["libtbb.so.12"]
    assert list(find_broken_links(view)) == []


def test_a_bundled_copy_named_by_its_soname_is_no_lost_link(tmp_path: Path) -> None:
    name = "libgfortran-040039e1.so.5.0.0"
    world = World(tmp_path).wheel("numpy", "1.26.4", {f"numpy.libs/{name}": lib(soname=name)})
    assert lost_links(world.view()) == ()


# --- links to nowhere ---


def test_a_link_that_leads_nowhere_and_is_needed(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("x", "1", {"x/_x.so": lib(needs=("libgone.so.1",), runpath="$ORIGIN/../y")})
    world.link(f"{world.site}/y/libgone.so.1", "libgone.so.1.2").opens("x/_x.so")
    finding = only(list(find_broken_links(world.view())))
    assert (finding.code, finding.severity) == ("SF801", "error")
    assert finding.culprit.path == f"{world.site}/y/libgone.so.1"
    assert finding.requester is not None
    assert finding.requester.package == "x 1"
    assert finding.error == "libgone.so.1: cannot open shared object file: No such file or directory"


def test_a_dangling_name_for_compilers_is_a_note(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("x", "1", {"x/libx.so.1": lib()}).link("/venv/lib/python3.11/site-packages/x/libx.so",
                                                                        "libx.so.2")
    assert only(list(find_broken_links(world.view()))).severity == "note"


def test_a_loop_of_links_leads_nowhere(tmp_path: Path) -> None:
    world = World(tmp_path).link("/opt/loop", "loop").wheel("x", "1", {"x/__init__.py": ""})
    world.link(f"{world.site}/x/liby.so.1", "/opt/loop/liby.so.1")
    assert only(list(find_broken_links(world.view()))).severity == "note"


@pytest.mark.parametrize(("links", "why"), [
    ({"libnvx.so.1": "libnvx.so.1"}, "It names itself."),
    ({"libnvx.so.1": "libnvx.so.1.0", "libnvx.so.1.0": "libnvx.so.1"}, "It names libnvx.so.1.0, and there is no file."),
    ({"libnvx.so.1": "libnvx.so.1.0", "libnvx.so.1.0": "gone"}, "It names libnvx.so.1.0, and there is no file."),
])
@pytest.mark.parametrize("by_path", [False, True])
def test_links_that_lead_to_links_and_nowhere(tmp_path: Path, links: dict[str, str], why: str, by_path: bool) -> None:
    world = World(tmp_path).wheel("x", "1", {"x/_x.so": lib(needs=("libnvx.so.1",), runpath="$ORIGIN/../y")})
    for name, target in links.items():
        world.link(f"{world.site}/y/{name}", target)
    world.opens("y/libnvx.so.1" if by_path else "x/_x.so")
    found = {each.culprit.path: each for each in find_broken_links(world.view())}
    assert found.keys() == {f"{world.site}/y/{name}" for name in links}
    needed = found[f"{world.site}/y/libnvx.so.1"]
    assert (needed.severity, needed.why) == ("error", why)
    loop = links.get(links["libnvx.so.1"]) == "libnvx.so.1"
    assert needed.error == (f"{needed.culprit.path if by_path else 'libnvx.so.1'}: cannot open shared object file: "
                            f"{'Too many levels of symbolic links' if by_path and loop else GONE}")


def test_a_link_by_hand_that_leads_nowhere_has_a_right_target(tmp_path: Path) -> None:
    """A loop ends the loader's search, which would have come to the package's library next."""
    world = World(tmp_path)
    world.wheel("needed", "2", {"needed/lib/libneeded.so.1": lib()})
    world.wheel("ext", "1", {"ext/_C.so": lib(needs=("libneeded.so.1",), runpath="$ORIGIN:$ORIGIN/../needed/lib")})
    path = f"{world.site}/ext/libneeded.so.1"
    world.link(path, "libneeded.so.1").opens("ext/_C.so", project="ext", what="import ext")
    finding = only(list(find_broken_links(world.view())))
    assert (finding.code, finding.severity, finding.repairable) == ("SF801", "error", True)
    assert (finding.winner, finding.loser) == (path, world.inside("needed/lib/libneeded.so.1"))
    assert finding.cure == (f"ln -sfn ../needed/lib/libneeded.so.1 {path}",)
    assert "libneeded.so.1" in world.really()
    world.remove(path)
    world.link(path, "../needed/lib/libneeded.so.1")
    assert (list(find_broken_links(world.view())), world.really()) == ([], "")


def test_links_into_a_cache_that_was_cleared_are_one_finding(tmp_path: Path) -> None:
    """uv's `--link-mode symlink`: with the cache METADATA and RECORD are gone as well."""
    world = World(tmp_path)
    for name in ("a/_a.abi3.so", "a.libs/liba.so.1", "b/_b.abi3.so"):
        world.link(f"{world.site}/{name}", f"/cache/archive/{name}")
    world.opens("b/_b.abi3.so", phase="module")
    finding = only(list(find_broken_links(world.view())))
    assert (finding.severity, finding.culprit.path) == ("error", f"{world.site}/b/_b.abi3.so")
    assert finding.summary.endswith("is a link that leads nowhere, and so are 2 more")
    assert "below /cache/archive, which are not there" in finding.why
    assert finding.evidence[1] == f"{world.site}/a.libs/liba.so.1 -> /cache/archive/a.libs/liba.so.1"
    assert not any("rm " in each for each in finding.cure)
    assert not finding.repairable


def test_broken_links_of_one_package_are_one_finding(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("x", "y"):
        world.wheel(name, "1", {f"{name}/lib{name}{number}.so.1": lib() for number in range(2)})
        for number in range(2):
            world.remove(f"{name}/lib{name}{number}.so.1").link(f"{world.site}/{name}/lib{name}{number}.so.1", "gone")
    found = {each.culprit.package: each for each in find_broken_links(world.view())}
    assert {name: each.severity for name, each in found.items()} == {"x 1": "warning", "y 1": "warning"}
    assert found["x 1"].cure == (
        "/venv/bin/python -m pip install --force-reinstall --no-deps x==1",)
    assert found["x 1"].summary.endswith("leads nowhere, and so is 1 more")


def test_links_that_lead_somewhere(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("x", "1", {"x/libx.so.1": lib()}).library("/opt/liby.so.1", lib())
    world.link(f"{world.site}/x/libx.so", "libx.so.1").link(f"{world.site}/x/liby.so.1", "/opt/liby.so.1")
    world.link(f"{world.site}/x/liby.so", "liby.so.1")
    assert list(find_broken_links(world.view())) == []


# --- a venv's Python ---


def without_python(world: World, *, live: bool, target: str | None = "/opt/gone/bin/python3.11") -> list[Finding]:
    world.remove("/venv/bin/python")
    if target is not None:
        world.link("/venv/bin/python3.11", target).link("/venv/bin/python", "python3.11")
    return list(find_lost_python(with_machine(world.view(), live=live)))


def test_a_venv_whose_python_is_gone(tmp_path: Path) -> None:
    finding = only(without_python(World(tmp_path), live=True))
    assert (finding.code, finding.severity, finding.level) == ("SF801", "error", "environment")
    assert finding.culprit.path == "/venv/bin/python"
    assert finding.summary == ("/venv/bin/python is a link to /opt/gone/bin/python3.11, where nothing is: "
                               "nothing in the environment can be started")
    assert finding.cure == ("rm -f /venv/bin/python* && python3.11 -m venv --upgrade --without-pip /venv",
                            "or put Python 3.11.2 back into /usr/bin")


def test_a_venv_of_uv_is_made_again_by_uv(tmp_path: Path) -> None:
    world = World(tmp_path).write("/venv/pyvenv.cfg", "home = /opt/gone/bin\nuv = 0.5.9\nversion_info = 3.11.2\n"
                                                      "include-system-site-packages = true\n")
    assert only(without_python(world, live=True)).cure[0] == (
        "uv venv --allow-existing --system-site-packages --python 3.11 /venv")


def test_of_a_tree_the_python_may_have_been_left_out(tmp_path: Path) -> None:
    assert only(without_python(World(tmp_path / "a"), live=False)).severity == "warning"
    assert without_python(World(tmp_path / "b"), live=False, target=None) == []
    lost = only(without_python(World(tmp_path / "c"), live=True, target=None))
    assert lost.summary.startswith("/venv/bin/python is not there")


def test_a_python_that_is_there_is_no_finding(tmp_path: Path) -> None:
    for conda in (False, True):
        assert list(find_lost_python(with_machine(World(tmp_path / str(conda), conda=conda).view(), live=True))) == []


@pytest.mark.parametrize("with_uv", [False, True])
def test_the_cure_of_a_lost_python_cures(tmp_path: Path, with_uv: bool) -> None:
    """What is installed stays, and a link that is broken is replaced."""
    venv = tmp_path / "a venv"
    if with_uv:
        assert UV is not None
        run_tool(UV, "venv", "--offline", "--python", sys.executable, venv)
    else:
        make_venv(venv)
    kept = write(venv, f"{SITE}/kept.py", "x = 1\n")
    for name in [each for each in (venv / "bin").iterdir() if each.is_symlink()]:
        name.unlink()
        name.symlink_to("/gone/bin/python3")
    environ = {"PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"}
    view = World(tmp_path / "tree").view()
    view = replace(view, situation=replace(
        view.situation, environment=look(venv), machine=replace(view.machine, live=True)))
    command = only(list(find_lost_python(view))).cure[0].replace(f"python{SITE[10:14]} ", f"'{sys.executable}' ")
    subprocess.run(["sh", "-c", command], check=True, env={**HERMETIC, **environ}, timeout=120, capture_output=True)
    said = subprocess.run([venv / "bin/python", "-c", "import kept; print(kept.x)"], check=True, capture_output=True,
                          timeout=60)
    assert (said.stdout, kept.exists()) == (b"1\n", True)


# --- names without a version ---


@pytest.fixture
def cudnn8(tmp_path: Path) -> World:
    """cuDNN 8 opens libnvrtc.so, and the wheel of NVRTC has libnvrtc.so.12 only."""
    world = World(tmp_path).wheel("nvidia-cudnn-cu12", "8.9.2.26", {INFER: lib(runpath="$ORIGIN:$ORIGIN/../../cublas")})
    return world.wheel("nvidia-cuda-nvrtc-cu12", "12.1.105", {f"{NVRTC}/libnvrtc.so.12": lib()}).opens(
        INFER, project="torch")


def missing_names(world: World) -> list[Finding]:
    return [each for each in find_missing_names(world.view()) if isinstance(each, Finding)]


def test_a_name_without_version(cudnn8: World) -> None:
    cudnn8.opens("libnvrtc.so", caller=INFER, phase="first use")
    finding = only(missing_names(cudnn8))
    assert (finding.code, finding.severity, finding.level) == ("SF802", "warning", "cuda")
    assert finding.culprit.path == cudnn8.inside(f"{CUDNN}/libnvrtc.so")
    assert finding.loser == cudnn8.inside(f"{NVRTC}/libnvrtc.so.12")
    assert finding.requester is not None
    assert finding.requester.package == "nvidia-cudnn-cu12 8.9.2.26"
    assert finding.error == "libnvrtc.so: cannot open shared object file: No such file or directory"
    assert finding.cure == (f"ln -s ../../cuda_nvrtc/lib/libnvrtc.so.12 {finding.culprit.path}",)
    assert finding.repairable


def test_the_link_is_found(cudnn8: World) -> None:
    cudnn8.opens("libnvrtc.so", caller=INFER, phase="first use")
    cudnn8.link(cudnn8.inside(f"{CUDNN}/libnvrtc.so"), "../../cuda_nvrtc/lib/libnvrtc.so.12")
    view = cudnn8.view()
    assert missing_names(cudnn8) == []
    assert view.openings[-1].outcome.failures == ()


def test_what_may_fail_is_a_note(cudnn8: World) -> None:
    cudnn8.opens("libnvrtc.so", caller=INFER, phase="first use", may_fail="optional: fused kernels")
    finding = only(missing_names(cudnn8))
    assert (finding.severity, finding.why_not) == ("note", "nothing is broken: optional: fused kernels")


def test_a_name_that_nobody_has_in_any_version_is_left_to_others(cudnn8: World) -> None:
    cudnn8.opens("libother.so", caller=INFER)
    assert list(find_missing_names(cudnn8.view())) == []


def test_a_caller_that_searches_nowhere_inside(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("x", "1", {"x/libx.so": lib()}).wheel("y", "1", {"y/libnvrtc.so.12": lib()})
    world.opens("x/libx.so").opens("libnvrtc.so", caller="x/libx.so")
    finding = only(missing_names(world))
    assert (finding.severity, finding.repairable) == ("error", False)
    assert "LD_LIBRARY_PATH" in finding.cure[0]


def test_libcuda_without_a_driver_is_undecided(cudnn8: World) -> None:
    cudnn8.opens("libcuda.so", caller=INFER, phase="first use")
    answer, = find_missing_names(cudnn8.view())
    assert isinstance(answer, Undecided)
    assert answer.subject == "libcuda.so"


def test_libcuda_on_wsl(cudnn8: World) -> None:
    """The loader's cache has the versioned name only."""
    cudnn8.write("/proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n")
    cudnn8.library("/usr/lib/wsl/lib/libcuda.so.1", lib()).cached("/usr/lib/wsl/lib/libcuda.so.1", conf="ld.wsl.conf")
    cudnn8.opens("libcuda.so", caller=INFER, phase="first use")
    finding = only(missing_names(cudnn8))
    assert (finding.code, finding.severity, finding.level) == ("SF802", "warning", "driver")
    assert finding.culprit.path == cudnn8.inside(f"{CUDNN}/libcuda.so")
    assert finding.loser == "/usr/lib/wsl/lib/libcuda.so.1"
    assert finding.cure == (
        f"ln -s /usr/lib/wsl/lib/libcuda.so.1 {finding.culprit.path}",
        "export LD_LIBRARY_PATH=/usr/lib/wsl/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
        "or ask an administrator to make the link in /usr/lib/wsl/lib and to run ldconfig")
    assert "WSL" in finding.why
