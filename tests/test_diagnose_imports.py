"""What imports open: rows of the matrix step by step, other extension modules by themselves, libraries by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.diagnose.imports import simulate_imports, start_interpreter
from stackfix.diagnose.imports_projects import required_names
from stackfix.diagnose.imports_undecided import find_undecided_imports
from stackfix.diagnose.releases import admits, release_of
from stackfix.diagnose.situation import Opening, View
from stackfix.matrix.libraries import load_libraries
from stackfix.matrix.library_records import ImportLoads, ImportStep, Libraries, OpenedByName
from tests.diagnose_world import World, lib
from tests.loader_oracle.graph import Library

REAL = load_libraries()
IMPORTS = replace(REAL, opened=())
GLOBAL_DEPS, MODULE = "torch/lib/libtorch_global_deps.so", "torch/_C.cpython-311-x86_64-linux-gnu.so"
WHEELS = {                      # folder below nvidia, library
    "nvidia-cublas-cu12": ("cublas", "libcublas.so.12"),
    "nvidia-cudnn-cu12": ("cudnn", "libcudnn.so.8"),
    "nvidia-cuda-nvrtc-cu12": ("cuda_nvrtc", "libnvrtc.so.12"),
    "nvidia-cuda-runtime-cu12": ("cuda_runtime", "libcudart.so.12"),
    "nvidia-cuda-cupti-cu12": ("cuda_cupti", "libcupti.so.12"),
    "nvidia-cufft-cu12": ("cufft", "libcufft.so.11"),
    "nvidia-curand-cu12": ("curand", "libcurand.so.10"),
    "nvidia-nvjitlink-cu12": ("nvjitlink", "libnvJitLink.so.12"),
    "nvidia-cusparse-cu12": ("cusparse", "libcusparse.so.12"),
    "nvidia-cusolver-cu12": ("cusolver", "libcusolver.so.11"),
    "nvidia-nccl-cu12": ("nccl", "libnccl.so.2"),
    "nvidia-nvtx-cu12": ("nvtx", "libnvToolsExt.so.1"),
}
# A torch of CUDA 12 in its own words: opens what it is told, as `import torch` of these releases does before torch._C
CHILD = """
import ctypes, glob, os, sys

release, package, *folders = sys.argv[1:]
names = {"cublas": "cublas", "cudnn": "cudnn", "cuda_nvrtc": "nvrtc", "cuda_runtime": "cudart", "cuda_cupti": "cupti",
         "cufft": "cufft", "curand": "curand", "cusolver": "cusolver", "cusparse": "cusparse", "nccl": "nccl",
         "nvtx": "nvToolsExt"}

def by_path(folder, name):
    found = [path for each in folders for path in glob.glob(f"{each}/nvidia/{folder}/lib/lib{name}.so.*[0-9]")]
    ctypes.CDLL(found[0])

def global_deps():
    ctypes.CDLL(f"{package}/torch/lib/libtorch_global_deps.so", mode=ctypes.RTLD_GLOBAL)

try:
    try:
        global_deps()
        if release == "2.6.0" and "nvidia/cuda_runtime/lib/libcudart.so" in open("/proc/self/maps").read():
            by_path("cuda_nvrtc", "nvrtc")
            by_path("nvjitlink", "nvJitLink")
    except OSError as error:
        if not any(name in str(error) for name in names.values()):
            raise
        for folder, name in names.items():
            by_path(folder, name)
        global_deps()
    ctypes.CDLL(f"{package}/torch/_C.cpython-311-x86_64-linux-gnu.so")
except OSError as error:
    print("error", error)
for line in open("/proc/self/maps"):
    path = line.split(maxsplit=5)[-1].strip()
    if path.startswith(sys.argv[2].partition("/venv/")[0]):
        print(path)
"""


def add_torch(world: World, version: str, *, cuda_site: str | None = None) -> World:
    """A torch of CUDA 12 with its wheels: libcusparse needs nvJitLink through its RUNPATH, torch all by RPATH."""
    rpath = ":".join(f"$ORIGIN/../../nvidia/{folder}/lib" for folder, _ in WHEELS.values() if folder != "nvjitlink")
    needs = [name for folder, name in WHEELS.values() if folder not in {"nvjitlink", "cusolver", "cuda_nvrtc"}]
    world.wheel("torch", version, {
        GLOBAL_DEPS: lib(needs=("libcudart.so.12",), rpath=rpath),
        "torch/lib/libtorch_cuda.so": lib(needs=needs, rpath=f"{rpath}:$ORIGIN", offers=("_ZN2at4cudaEv",)),
        MODULE: lib(needs=("libtorch_cuda.so",), runpath="$ORIGIN/lib"),
    }, requires=[f"{wheel}==12.1.105" for wheel in WHEELS])
    for wheel, (folder, name) in WHEELS.items():
        needed = {"libcusparse.so.12": lib(needs=("libnvJitLink.so.12",), runpath="$ORIGIN/../../nvjitlink/lib",
                                           wants=("__nvJitLinkAddData_12_1@libnvJitLink.so.12",)),
                  "libcusolver.so.11": lib(needs=("libcusparse.so.12",), runpath="$ORIGIN/../../cusparse/lib"),
                  "libnvJitLink.so.12": lib(offers=("__nvJitLinkAddData_12_1@libnvJitLink.so.12",))}
        world.wheel(wheel, "12.1.105", {f"nvidia/{folder}/lib/{name}": needed.get(name, lib())}, site=cuda_site)
    return world


def openings(world: World, libraries: Libraries = IMPORTS) -> tuple[Opening, ...]:
    return tuple(world.view(libraries).openings)


def opened(found: Iterable[Opening], project: str, phase: str = "import") -> list[str]:
    """Names of the files that a project opens, in order."""
    return [each.request.name.rpartition("/")[2] for each in found if each.project == project and each.phase == phase]


def faults(found: Iterable[Opening]) -> list[str]:
    """What fails, and harms."""
    return [each.outcome.failures[0].message() for each in found if each.outcome.failures and each.may_fail is None]


def mapped(found: Iterable[Opening]) -> set[str]:
    """Real paths of what the last import leaves mapped."""
    last = [each for each in found if each.phase == "import"][-1]
    return {each.real_path for each in last.outcome.attempted.objects}


def really(world: World, version: str, *folders: str) -> tuple[set[str], list[str]]:
    """Files of the machine that a child maps, and its error."""
    environ = {name: ":".join(f"{world.folder}{each}" for each in value.split(":"))
               for name, value in world.variables.items() if name in {"LD_LIBRARY_PATH", "LD_PRELOAD"}}
    places = [f"{world.folder}{each}" for each in (world.site, *folders)]
    done = subprocess.run([sys.executable, "-S", "-c", CHILD, version, places[0], *places], env=environ, text=True,
                          capture_output=True, check=True, timeout=60)
    lines = done.stdout.replace(str(world.folder), "").splitlines()
    return {each for each in lines if each.startswith("/")}, [each for each in lines if not each.startswith("/")]


# --- the rows of torch, against the real loader ---


@pytest.mark.parametrize("version", ["2.3.1", "2.6.0"])
def test_the_load_set_of_torch_is_what_a_child_maps(version: str, tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), version)
    found = openings(world)
    assert faults(found) == []
    paths, errors = really(world, version)
    assert errors == []
    assert {each for each in mapped(found) if each.startswith(world.site)} == paths
    assert any(each.endswith("libnvrtc.so.12") for each in paths) is (version == "2.6.0")


@pytest.mark.parametrize("version", ["2.3.1", "2.6.0"])
def test_an_old_nvjitlink_on_the_path_breaks_torch_before_2_6(version: str, tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), version)
    world.library("/cuda/lib64/libnvJitLink.so.12", lib(offers=("__nvJitLinkAddData_12_0@libnvJitLink.so.12",)))
    world.environ(LD_LIBRARY_PATH="/cuda/lib64")
    found, (paths, errors) = openings(world), really(world, version)
    if version == "2.3.1":
        said = "undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12"
        assert faults(found) == [f"{world.site}/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: {said}"]
        assert errors == [f"error {each}" for each in faults(found)]
    else:
        assert (faults(found), errors) == ([], [])
        assert {each for each in mapped(found) if each.startswith(("/venv", "/cuda"))} == paths
        assert "/cuda/lib64/libnvJitLink.so.12" not in paths


def test_wheels_in_another_folder_are_opened_one_by_one(tmp_path: Path) -> None:
    """The relative RPATH of torch leads nowhere; torch then opens its libraries by their path, and tries again."""
    other = "/usr/lib/python3/dist-packages"
    world = add_torch(World(tmp_path), "2.3.1", cuda_site=other)
    world.write(f"{world.site}/other.pth", f"{other}\n")
    found, (paths, errors) = openings(world), really(world, "2.3.1", other)
    assert opened(found, "torch") == [
        "libtorch_global_deps.so", "libcublas.so.12", "libcudnn.so.8", "libnvrtc.so.12", "libcudart.so.12",
        "libcupti.so.12", "libcufft.so.11", "libcurand.so.10", "libcusolver.so.11", "libcusparse.so.12", "libnccl.so.2",
        "libnvToolsExt.so.1", "libtorch_global_deps.so", MODULE.rpartition("/")[2]]
    first = next(each for each in found if each.project == "torch")
    assert first.outcome.failures
    assert "tries again" in (first.may_fail or "")
    assert (faults(found), errors) == ([], [])
    assert {each for each in mapped(found) if each.startswith((world.site, other))} == paths


def test_an_error_about_something_else_is_raised_as_it_is(tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), "2.3.1")
    world.library(GLOBAL_DEPS, lib(needs=("libgomp-a34b3233.so.1",)))
    found = openings(world)
    assert opened(found, "torch") == ["libtorch_global_deps.so", MODULE.rpartition("/")[2]]
    assert faults(found)[0].startswith("libgomp-a34b3233.so.1: cannot open shared object file")


def test_a_wheel_that_is_not_found_while_others_are_opened_is_a_fault(tmp_path: Path) -> None:
    other = "/usr/lib/python3/dist-packages"
    world = add_torch(World(tmp_path), "2.3.1", cuda_site=other)
    world.write(f"{world.site}/other.pth", f"{other}\n").remove(f"{other}/nvidia/cufft/lib/libcufft.so.11")
    assert faults(openings(world))[0].startswith("libcufft.so.*[0-9]: cannot open")


def test_preloads_end_unnoticed_at_the_first_that_is_not_there(tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), "2.10.0")
    before = opened(openings(world), "torch")
    assert before[1:2] == [MODULE.rpartition("/")[2]]       # no libcublasLt: nothing is preloaded
    world.library("nvidia/cublas/lib/libcublasLt.so.12", lib())
    found = openings(world)
    assert opened(found, "torch")[1:4] == ["libcublasLt.so.12", "libcublas.so.12", "libcudnn.so.8"]
    assert "libcudart.so.12" not in opened(found, "torch")  # no libnvrtc-builtins before it
    assert faults(found) == []


def test_from_2_14_preloads_pass_over_what_is_not_there(tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), "2.14.0")
    assert opened(openings(world), "torch")[1:4] == ["libcublas.so.12", "libcudnn.so.8", "libnvrtc.so.12"]


def test_preloads_are_found_in_the_layout_of_cuda_13(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("nvidia-cuda-runtime", "13.0.96", {"nvidia/cu13/lib/libcudart.so.13": lib(),
                                                   "nvidia/cu13/lib/libcublas.so.13": lib()})
    world.wheel("nvidia-cublas-cu12", "12.8.4.1", {"nvidia/cu12/lib/libcufft.so.11": lib()})
    world.wheel("torch", "2.14.0", {
        GLOBAL_DEPS: lib(needs=("libcudart.so.13",), rpath="$ORIGIN/../../nvidia/cu13/lib"), MODULE: lib(),
    }, requires=("cuda-toolkit[cudart,cublas]==13.0.3",))
    found = openings(world)
    assert faults(found) == []
    assert opened(found, "torch") == ["libtorch_global_deps.so", "libcublas.so.13", "libcudart.so.13",
                                      MODULE.rpartition("/")[2]]


def test_numpy_is_imported_by_torch_and_may_fail(tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), "2.3.1")
    umath = "numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so"
    world.wheel("numpy", "2.1.0", {umath: lib(needs=("libopenblas.so.0",))})
    found = [each for each in openings(world) if each.project == "numpy"]
    assert [each.may_fail for each in found] == [None, "torch does without numpy"]
    assert [len(each.outcome.attempted.objects) > 10 for each in found] == [False, True]


# --- other extension modules ---


def modules(**files: Library) -> dict[str, Library]:
    """Extension modules of one package."""
    return {f"{name}.cpython-311-x86_64-linux-gnu.so": library for name, library in files.items()}


def test_a_module_is_opened_after_the_imports_of_what_its_project_requires(tmp_path: Path) -> None:
    """Also through a package that has no extension itself; and not after torch where nothing requires it."""
    world = add_torch(World(tmp_path), "2.3.1")
    world.wheel("middle", "1.0", {}, requires=("torch>=2", "late; extra == 'all'"))
    world.wheel("late", "1.0", modules(_late=lib(needs=("libtorch_cuda.so",))), requires=("Middle",))
    world.wheel("alone", "1.0", modules(_alone=lib()), requires=("torch ; extra == 'gpu'",))
    found = openings(world)
    assert faults(found) == []
    late, alone = (next(each for each in found if each.project == name) for name in ("late", "alone"))
    assert (late.phase, late.what) == ("module", "_late.cpython-311-x86_64-linux-gnu.so")
    assert late.outcome.attempted.find("libtorch_cuda.so") is not None
    assert alone.outcome.attempted.find("libtorch_cuda.so") is None
    assert [len(each.outcome.loaded) for each in (late, alone)] == [1, 1]


def test_a_module_that_needs_torch_is_opened_after_it_whatever_is_declared(tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), "2.3.1")
    world.wheel("undeclared", "1.0", modules(_c=lib(needs=("libtorch_cuda.so",), wants=("_ZN2at4cudaEv",))))
    world.library("mine.abi3.so", lib(needs=("libtorch_cuda.so",), wants=("_ZN2at4cudaEi",)))
    found = openings(world)
    assert faults(found) == [f"{world.site}/mine.abi3.so: undefined symbol: _ZN2at4cudaEi"]
    assert [each.project for each in found if each.phase == "module"] == ["undeclared", None]


def test_a_file_that_is_named_is_judged_after_torch(tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), "2.3.1").library("/build/foo.so", lib(needs=("libtorch_cuda.so",)))
    view = world.view(IMPORTS)
    situation = replace(view.situation, extra=("/build/foo.so",))
    found = simulate_imports(situation, IMPORTS, view.files)[1]
    assert (found[-1].project, found[-1].what, found[-1].phase) == (None, "/build/foo.so", "module")
    assert faults(found) == []


def test_modules_for_other_interpreters_are_not_opened(tmp_path: Path) -> None:
    broken = lib(needs=("libgone.so.1",))
    world = World(tmp_path).wheel("several", "1.0", {
        "several/_a.cpython-310-x86_64-linux-gnu.so": broken, "several/_a.cpython-311-x86_64-linux-gnu.so": lib(),
        "several/_b.cpython-311t-x86_64-linux-gnu.so": broken, "several/_c.abi3.so": lib(), "several/_d.so": lib(),
        "several/_e.pypy311-pp73-x86_64-linux-gnu.so": broken, "several/libplugin.so": broken,
    })
    found = openings(world)
    assert opened(found, "several", "module") == ["_a.cpython-311-x86_64-linux-gnu.so", "_c.abi3.so", "_d.so"]
    assert faults(found) == []


def test_cycles_and_odd_requirements_do_no_harm(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("a", "1.0", modules(_a=lib()), requires=("b", "???", "a"))
    world.wheel("b", "1.0", modules(_b=lib()), requires=("c>=1",))
    world.wheel("c", "1.0", modules(_c=lib()), requires=("A (>=1)", "gone"))
    assert sorted(each.project or "" for each in openings(world)) == ["a", "b", "c"]
    assert list(required_names(("Foo_Bar.baz [x] >=1", "b; python_version<'3'", "c ; extra=='d'"))) == [
        "foo-bar-baz", "b"]


def test_a_library_that_a_sibling_has_loaded_is_found(tmp_path: Path) -> None:
    """Nothing but the first module leads to the library; the second finds it mapped, as in the real process."""
    world = World(tmp_path).wheel("pair", "1.0", {
        "pair/_base.so": lib(needs=("libshared.so.1",), runpath="$ORIGIN/lib"), "pair/lib/libshared.so.1": lib(),
        "pair/_a.so": lib(needs=("libshared.so.1",)),
    })
    world.wheel("child", "1.0", {"child/_c.so": lib(needs=("libshared.so.1",))}, requires=("pair",))
    world.wheel("stranger", "1.0", {"stranger/_s.so": lib(needs=("libshared.so.1",))})
    found = openings(world)
    assert [each.project for each in found if each.outcome.failures] == ["stranger"]


def test_what_the_package_may_open_itself_is_not_decided(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("own", "1.0", {
        "own/_c.so": lib(needs=("libown.so.1",)), "own/lib/libown.so.1": lib()})
    view = world.view(IMPORTS)
    assert faults(view.openings) == []
    assert [each.subject for each in find_undecided_imports(view)] == ["own/_c.so"]
    world.remove("own/lib/libown.so.1")
    view = world.view(IMPORTS)
    assert len(faults(view.openings)) == 1
    assert list(find_undecided_imports(view)) == []


def test_variants_that_a_row_tries_harm_nobody(tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), "2.3.1")
    world.wheel("torchaudio", "2.3.1", {
        "torchaudio/lib/libtorchaudio.so": lib(needs=("libtorch_cuda.so",)),
        "torchaudio/lib/_torchaudio.so": lib(needs=("libtorchaudio.so",)),
        "torio/lib/libtorio_ffmpeg6.so": lib(needs=("libavutil.so.58",)),
        "torio/lib/_torio_ffmpeg6.so": lib(needs=("libtorio_ffmpeg6.so",)),
    }, requires=("torch==2.3.1",))
    found = openings(world)
    assert faults(found) == []
    assert opened(found, "torchaudio") == ["libtorchaudio.so", "_torchaudio.so"]
    assert opened(found, "torchaudio", "first use") == ["libtorio_ffmpeg6.so", "_torio_ffmpeg6.so"]
    assert opened(found, "torchaudio", "module") == []


def test_the_library_for_the_cuda_of_torch_is_opened(tmp_path: Path) -> None:
    world = add_torch(World(tmp_path), "2.3.1")
    world.wheel("bitsandbytes", "0.45.5", {
        "bitsandbytes/libbitsandbytes_cpu.so": lib(), "bitsandbytes/libbitsandbytes_cuda121.so": lib(),
        "bitsandbytes/libbitsandbytes_cuda124.so": lib()}, requires=("torch<3",))
    found = openings(world)
    assert opened(found, "bitsandbytes", "first use") == ["libbitsandbytes_cuda121.so"]
    world.remove("bitsandbytes/libbitsandbytes_cuda121.so")
    said = "cannot open shared object file: No such file or directory"
    assert faults(openings(world)) == [f"{world.site}/bitsandbytes/libbitsandbytes_cuda121.so: {said}"]
    world.wheel("torch", "2.3.1+cpu", {})
    assert opened(openings(world), "bitsandbytes", "first use") == []


# --- libraries that are opened by name ---


def named(library: str, names: str, **more: object) -> OpenedByName:
    fields: Mapping[str, object] = {"versions": None, "when": "first use", "optional": False, **more}
    return OpenedByName(library=library, names=tuple(names.split()), why="tests", source="tests",
                        confidence="certain", **fields)    # type: ignore[arg-type]


def opening_rows(*rows: OpenedByName, imports: tuple[ImportLoads, ...] = ()) -> Libraries:
    return Libraries(families=(), opened=rows, imports=imports)


def test_a_library_opens_others_with_its_own_search_path(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cudnn-cu12", "9.1.0.70", {
        "nvidia/cudnn/lib/libcudnn.so.9": lib(runpath="$ORIGIN"), "nvidia/cudnn/lib/libcudnn_ops.so.9": lib(),
        "_m.so": lib(needs=("libcudnn.so.9",), runpath="$ORIGIN/nvidia/cudnn/lib")})
    rows = opening_rows(named("libcudnn.so.9", "libcudnn_ops.so.9 libcudnn_cnn.so.9"),
                        named("libcudnn_ops.so.9", "libz.so.1", optional=True))
    found = openings(world, rows)
    assert [(each.what, each.phase, bool(each.outcome.failures)) for each in found] == [
        ("_m.so", "module", False),
        ("libcudnn.so.9 opens libcudnn_ops.so.9", "first use", False),
        ("libcudnn.so.9 opens libcudnn_cnn.so.9", "first use", True),
        ("libcudnn_ops.so.9 opens libz.so.1", "first use", True),
    ]
    assert [each.may_fail for each in found] == [None, None, None, "optional: tests"]
    assert found[1].outcome.attempted.objects[found[1].outcome.loaded[0]].found_via.step == "RUNPATH"


def test_what_a_library_opens_while_it_is_loaded_is_there_for_the_next(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("early", "1.0", {
        "early/_a.so": lib(), "early/libearly.so.1": lib(needs=("libhelp.so.1",), runpath="$ORIGIN"),
        "early/libhelp.so.1": lib(runpath="$ORIGIN"), "early/libplug.so.1": lib()})
    row = ImportLoads(project="early", module="early", versions=None, after=(), source="tests", confidence="certain",
                      steps=(ImportStep(file="early/libearly.so.1"), ImportStep(file="libplug.so.1")))
    rows = opening_rows(named("libhelp.so.1", "libplug.so.1", when="load"), imports=(row,))
    found = openings(world, rows)
    assert faults(found) == []
    assert [each.phase for each in found] == ["import", "import", "import", "module"]
    assert [len(each.outcome.loaded) for each in found] == [2, 1, 0, 1]


@pytest.mark.parametrize(("versions", "count"), [(">=9.2", 0), ("<9.2", 1), (None, 1)])
def test_a_row_is_for_a_range_of_the_callers_versions(versions: str | None, count: int, tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cudnn-cu12", "9.1.0.70", {
        "nvidia/cudnn/lib/libcudnn.so.9": lib(runpath="$ORIGIN"),
        "_m.so": lib(needs=("libcudnn.so.9",), runpath="$ORIGIN/nvidia/cudnn/lib")})
    found = openings(world, opening_rows(named("libcudnn.so.9", "libextra.so.1", versions=versions)))
    assert opened(found, "nvidia-cudnn-cu12", "first use") == ["libextra.so.1"] * count


def test_the_version_of_a_system_library_is_in_the_name_of_its_file(tmp_path: Path) -> None:
    system = "/usr/lib/x86_64-linux-gnu"
    world = World(tmp_path).library(f"{system}/libcudnn.so.9.1.0", lib(soname="libcudnn.so.9"))
    world.link(f"{system}/libcudnn.so.9", "libcudnn.so.9.1.0")
    world.wheel("m", "1.0", {"_m.so": lib(needs=("libcudnn.so.9",))})
    rows = opening_rows(named("libcudnn.so.9", "libold.so.1", versions="<9.2"),
                        named("libcudnn.so.9", "libnew.so.1", versions=">=9.2"),
                        named("libcudnn.so.9", "libcuda{cuda}.so.1", cuda=">=12"))
    assert opened(openings(world, rows), "m", "first use") == ["libold.so.1"]


def test_the_cuda_of_a_caller_is_that_of_its_wheel(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cudnn-cu11", "8.9.2.26", {
        "nvidia/cudnn/lib/libcudnn.so.8": lib(),
        "_m.so": lib(needs=("libcudnn.so.8",), runpath="$ORIGIN/nvidia/cudnn/lib")})
    rows = opening_rows(named("libcudnn.so.8", "libcublas.so.{cuda}", cuda=">=11"),
                        named("libcudnn.so.8", "libcublas.so.12", cuda="==12.*"))
    assert opened(openings(world, rows), "nvidia-cudnn-cu11", "first use") == ["libcublas.so.11"]


def test_an_answer_is_given_once(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("twice", "1.0", {
        "libcudnn.so.9": lib(), "_a.so": lib(needs=("libcudnn.so.9",), runpath="$ORIGIN"),
        "_b.so": lib(needs=("libcudnn.so.9",), runpath="$ORIGIN")})
    found = openings(world, opening_rows(named("libcudnn.so.9", "libcudnn_ops.so.9")))
    assert opened(found, "twice", "first use") == ["libcudnn_ops.so.9"]


# --- the interpreter ---


def test_the_start_is_what_the_interpreter_maps(tmp_path: Path) -> None:
    view = World(tmp_path).view(IMPORTS)
    assert [each.path.rpartition("/")[2] for each in view.start.objects] == [
        "python3.11", "ld-linux-x86-64.so.2", "libc.so.6"]
    outcome = start_interpreter(view.situation, view.files)
    assert outcome is not None
    assert outcome.attempted == view.start


def test_without_an_interpreter_its_symbols_are_not_judged(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("a", "1.0", {"_a.so": lib(
        needs=("libc.so.6",), wants=("PyList_New", "_Py_NoneStruct"))})
    assert len(faults(openings(world))) == 1                        # this interpreter has no symbols
    world.host("/usr/bin/python3.11").unlink()
    view = world.view(IMPORTS)
    assert view.start.objects == ()
    assert faults(view.openings) == []
    assert "interpreter is not there" in next(iter(find_undecided_imports(view))).reason
    closed = replace(view.environment.python, lost=None, executable_reaches=None)       # type: ignore[type-var]
    view = replace(view, situation=replace(view.situation, environment=replace(view.environment, python=closed)))
    assert "interpreter may not be read by this user" in next(iter(find_undecided_imports(view))).reason


def test_a_program_that_is_no_elf_file_is_as_none(tmp_path: Path) -> None:
    world = World(tmp_path).write("/usr/bin/python3.11", "#!/bin/sh\n").wheel("a", "1.0", {"_a.so": lib()})
    view = world.view(IMPORTS)
    assert view.start.objects == ()
    assert len(view.openings) == 1


def test_a_prefix_without_python_imports_nothing(tmp_path: Path) -> None:
    view: View = World(tmp_path).view(IMPORTS)
    situation = replace(view.situation, environment=replace(view.environment, python=None))
    start, found = simulate_imports(situation, IMPORTS, view.files)
    assert (start.objects, found) == ((), ())
    said = list(find_undecided_imports(replace(view, situation=situation, start=start, openings=found)))
    assert "no Python" in said[0].reason


def test_a_package_may_open_libraries_at_first_use_only(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.wheel("late", "1.0", {"late/liblate.so.1": lib(needs=("libdeep.so.1",), runpath="$ORIGIN"),
                                "late/libdeep.so.1": lib()})
    row = ImportLoads(project="late", module="late", versions=None, after=(), source="tests", confidence="certain",
                      steps=(ImportStep(file="late/liblate.so.1", when="first use"),))
    found = openings(world, replace(REAL, imports=(row,), opened=()))
    assert faults(found) == []
    assert [(each.phase, len(each.outcome.loaded)) for each in found] == [("first use", 2)]


def test_a_line_that_python_executes_at_its_start_may_load_libraries(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(f"{world.site}/preload.pth", "import ctypes; ctypes.CDLL('libearly.so')\n")
    world.write(f"{world.site}/harmless.pth", "import os; enabled = os.environ.get('X')\n")
    assert [each.subject for each in find_undecided_imports(world.view(IMPORTS))] == [f"{world.site}/preload.pth"]


# --- ranges of releases ---


@pytest.mark.parametrize(("specifier", "version", "expected"), [
    (">=2.1,<2.5", "2.4.1", True), (">=2.1,<2.5", "2.5.0", False), (">=2.1,<2.5", "2.5.0a0+git", False),
    ("==2.5.0", "2.5.0+cu121", True), ("==2.5", "2.5.0", True), ("==8.*", "8.9.2.26", True), ("==8.*", "9.1", False),
    ("!=8.*", "8.0", False), ("~=2.2", "2.9", True), ("~=2.2", "3.0", False), ("~=2.2.1", "2.3", False),
    ("<=12.1", "12.1.0", True), (">12", "12", False), ("==12.0.*", "12", True), (">=1", "unknown", False),
])
def test_a_range_admits_releases(specifier: str, version: str, *, expected: bool) -> None:
    assert admits(specifier, version) is expected


def test_a_release_is_its_numbers() -> None:
    assert [release_of(each) for each in ("2.3.1+cu121", "12.0", "v1.2rc1", "1!3.4", "git")] == [
        (2, 3, 1), (12,), (1, 2), (3, 4), None]
