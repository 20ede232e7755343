"""Libraries of the environment that do not fit their consumers although the metadata allows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.finding_records import Finding, Install
from stackfix.diagnose.library_needs import is_above, parsed
from stackfix.diagnose.library_versions import find_library_versions
from stackfix.diagnose.shadows import find_shadows
from tests.diagnose_books import FakeNvidiaBook, books
from tests.diagnose_world import World, lib

PIP = "/venv/bin/python -m pip install --no-deps"
JIT, BLAS = "libnvJitLink.so.12", "libcublas.so.12"
NVJITLINK, CUSPARSE = f"nvidia/nvjitlink/lib/{JIT}", "nvidia/cusparse/lib/libcusparse.so.12"
CUBLAS, CUSOLVER = f"nvidia/cublas/lib/{BLAS}", "nvidia/cusolver/lib/libcusolver.so.11"
NCCL, TORCH_CUDA = "nvidia/nccl/lib/libnccl.so.2", "torch/lib/libtorch_cuda.so"
CUPTI = "nvidia/cuda_cupti/lib/libcupti.so.12"
FUNCTIONS = ("__nvJitLinkAddData", "__nvJitLinkGetErrorLogSize")
JITS = ("12.0.140", "12.1.55", "12.1.105", "12.4.99", "12.4.127", "12.8.61", "12.8.93", "12.9.41", "12.9.86")
BOOKS = books({}, nvidia=FakeNvidiaBook({
    JIT: ("nvidia-nvjitlink-cu12", JITS, {f"{name}_12_{minor}": f"{since}-" for name in FUNCTIONS for minor, since in (
        (1, "12.1.55"), (4, "12.4.99"), (7, "12.8.61"), (8, "12.8.61"), (9, "12.9.41"))}),
    BLAS: ("nvidia-cublas-cu12", ("12.1.3.1", "12.8.5.5", "12.9.0.13", "12.9.1.4"),
           {"cublasSetEnvironmentMode": "12.9.0.13-", "cublasCreate": ""}),
    "libnccl.so.2": ("nvidia-nccl-cu12", ("2.18.1", "2.19.3", "2.20.5", "2.23.4"),
                     {"ncclSend": "", "ncclCommRegister": "2.19.3-"}),
    "libcupti.so.12": ("nvidia-cuda-cupti-cu12", ("12.1.55", "12.1.105", "12.2.60", "12.4.127"),
                       {"cuptiDeviceGetTimestamp": "12.1.55-12.1.105", "cuptiNew": "12.2.60-", "cuptiAlways": ""}),
}))


def only(world: World) -> Finding:
    """The one finding, an error in the words of the real loader; nothing of it is a shadow."""
    view = world.view(load_books=lambda: BOOKS)
    assert list(find_shadows(view)) == []
    found = list(find_library_versions(view))
    assert len(found) == 1, found
    assert found[0].error == world.really().splitlines()[0]
    return found[0]


def sparse(world: World, version: str, minor: int, **more: bool) -> World:
    """A cuSPARSE wheel that asks for nvJitLink's functions of one CUDA minor."""
    wants = tuple(f"{name}_12_{minor}@{JIT}" for name in ("__nvJitLinkAddData", "__nvJitLinkGetErrorLogSize"))
    world.wheel("nvidia-cusparse-cu12", version, {CUSPARSE: lib(
        needs=(JIT,), wants=wants, runpath="$ORIGIN/../../nvjitlink/lib")}, requires=("nvidia-nvjitlink-cu12",))
    return world.opens(CUSPARSE, project="torch", what="import torch")


def jit(world: World, version: str, *minors: int) -> World:
    offers = tuple(f"{name}_12_{minor}@{JIT}" for minor in minors
                   for name in ("__nvJitLinkAddData", "__nvJitLinkGetErrorLogSize"))
    return world.wheel("nvidia-nvjitlink-cu12", version, {NVJITLINK: lib(offers=offers)})


def test_nvjitlink_that_pip_kept(tmp_path: Path) -> None:
    world = sparse(jit(World(tmp_path), "12.8.93", 7, 8), "12.5.10.65", 9)
    world.wheel("torch", "2.8.0", requires=("nvidia-nvjitlink-cu12==12.8.93 ; platform_system == 'Linux'",))
    finding = only(world)
    assert (finding.code, finding.severity, finding.level) == ("SF201", "error", "cuda")
    assert finding.culprit.package == "nvidia-nvjitlink-cu12 12.8.93"
    assert finding.culprit.path == world.inside(NVJITLINK)
    assert finding.requester is not None
    assert finding.requester.package == "nvidia-cusparse-cu12 12.5.10.65"
    assert finding.symbols == ("__nvJitLinkAddData_12_9", "__nvJitLinkGetErrorLogSize_12_9")
    assert finding.cure[0] == (f"{PIP} 'nvidia-nvjitlink-cu12==12.9.41'  # the oldest read version that has all that "
                               "is asked of it, by nvidia-cusparse-cu12 12.5.10.65")
    assert ("__nvJitLinkAddData_12_9 is in nvidia-nvjitlink-cu12 from 12.9.41 on, not in 12.8.93; 12.8.93 is installed"
            in finding.why)
    assert finding.installs == (Install(
        package="nvidia-nvjitlink-cu12", manager="pip", specifier=">=12.9.41", version="12.9.41",
        breaks=("torch 2.8.0 requires nvidia-nvjitlink-cu12==12.8.93",)),)
    assert any("torch 2.8.0 requires nvidia-nvjitlink-cu12==12.8.93" in each for each in finding.cure)
    assert "up to _12_8, and _12_9 is needed" in "\n".join(finding.evidence)
    assert "pip check is content" in finding.why
    assert "nvidia-cusparse-cu12 12.5.10.65 requires nvidia-nvjitlink-cu12 in any version" in finding.evidence
    assert finding.repairable


def test_functions_that_came_with_another_release_than_their_name_says(tmp_path: Path) -> None:
    """There was no CUDA 12.7: its functions came with 12.8."""
    finding = only(sparse(jit(World(tmp_path), "12.4.127", 4), "12.99.1", 7))
    assert finding.code == "SF201"
    assert finding.cure[0].startswith(f"{PIP} 'nvidia-nvjitlink-cu12==12.8.61'")
    assert "__nvJitLinkAddData_12_7 is in nvidia-nvjitlink-cu12 from 12.8.61 on, not in 12.4.127" in finding.why


def test_the_version_in_a_symbol_tells_where_no_release_was_read(tmp_path: Path) -> None:
    finding = only(sparse(jit(World(tmp_path), "12.9.86", 9), "12.99.1", 11))
    assert finding.code == "SF201"
    assert finding.cure[0] == f"{PIP} 'nvidia-nvjitlink-cu12>=12.11'"
    assert "__nvJitLinkAddData_12_11 came with 12.11" in finding.why


def test_all_who_ask_are_served(tmp_path: Path) -> None:
    """A second cuSPARSE, which nothing opens, would not be content with what the first one needs."""
    world = sparse(jit(World(tmp_path), "12.1.105", 1), "12.3.1.170", 4)
    wants = tuple(f"{name}_12_8@{JIT}" for name in FUNCTIONS)
    world.wheel("other", "3", {"other/libsparse.so": lib(needs=(JIT,), wants=wants)})
    finding = only(world)
    assert "from 12.4.99 on, not in 12.1.105" in finding.why
    assert ("nvidia-nvjitlink-cu12>=12.8.61 has all that is asked of it, by nvidia-cusparse-cu12 12.3.1.170, other 3"
            in finding.evidence)
    assert finding.cure[0] == (f"{PIP} 'nvidia-nvjitlink-cu12==12.8.61'  # the oldest read version that has all that "
                               "is asked of it, by nvidia-cusparse-cu12 12.3.1.170 and 1 more")


def test_a_pin_that_has_all_of_it_is_kept(tmp_path: Path) -> None:
    world = sparse(jit(World(tmp_path), "12.1.105", 1), "12.3.1.170", 4)
    world.wheel("torch", "2.5.1", requires=("nvidia-nvjitlink-cu12==12.4.127",))
    assert only(world).cure == (f"{PIP} 'nvidia-nvjitlink-cu12==12.4.127'  # torch 2.5.1 pins it",)


def test_a_pin_that_has_too_little_is_said_to_be_broken(tmp_path: Path) -> None:
    world = sparse(jit(World(tmp_path), "12.1.105", 1), "12.3.1.170", 4)
    world.wheel("torch", "2.4.1", requires=("nvidia-nvjitlink-cu12==12.1.105",))
    assert only(world).cure[0].startswith(f"{PIP} 'nvidia-nvjitlink-cu12==12.4.99'")
    assert only(world).cure[1] == "pip will warn that torch 2.4.1 requires nvidia-nvjitlink-cu12==12.1.105"


def test_requirements_that_are_no_pins_choose_among_what_fits(tmp_path: Path) -> None:
    world = sparse(jit(World(tmp_path), "12.1.105", 1), "12.3.1.170", 4)
    world.wheel("ranged", "1", requires=("nvidia-nvjitlink-cu12!=12.4.99,>=12.1",))
    assert only(world).cure[0].startswith(f"{PIP} 'nvidia-nvjitlink-cu12==12.4.127'")
    assert len(only(world).cure) == 1


def test_no_version_serves_all(tmp_path: Path) -> None:
    """One asks for what came with 12.2.60, the other for what went with it: who fails now is served, and it is said."""
    rpath = "$ORIGIN/../nvidia/cuda_cupti/lib"
    world = World(tmp_path).wheel("nvidia-cuda-cupti-cu12", "12.1.105", {CUPTI: lib(
        offers=("cuptiDeviceGetTimestamp@libcupti.so.12",))})
    for name, wants in (("old", "cuptiDeviceGetTimestamp"), ("new", "cuptiNew")):
        world.wheel(name, "1", {f"{name}/_p.abi3.so": lib(
            needs=("libcupti.so.12",), wants=(f"{wants}@libcupti.so.12",), rpath=rpath)})
        world.opens(f"{name}/_p.abi3.so", project=name)
    finding = only(world)
    assert "no version of nvidia-cuda-cupti-cu12 that was read has all that is asked of it, by new 1, old 1" in (
        finding.evidence)
    assert finding.cure[0].startswith(f"{PIP} 'nvidia-cuda-cupti-cu12==12.2.60'")


def test_cublas_under_cusolver(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cublas-cu12", "12.8.5.5", {CUBLAS: lib(offers=(f"cublasCreate@{BLAS}",))})
    world.wheel("nvidia-cusolver-cu12", "11.7.5.82", {CUSOLVER: lib(
        needs=(BLAS,), wants=(f"cublasSetEnvironmentMode@{BLAS}",), runpath="$ORIGIN/../../cublas/lib")})
    finding = only(world.opens(CUSOLVER))
    assert (finding.code, finding.culprit.package, finding.symbols) == (
        "SF201", "nvidia-cublas-cu12 12.8.5.5", ("cublasSetEnvironmentMode",))
    assert finding.cure[0].startswith(f"{PIP} 'nvidia-cublas-cu12==12.9.0.13'")


@pytest.fixture
def torch(tmp_path: Path) -> World:
    world = World(tmp_path).wheel("torch", "2.2.0", {TORCH_CUDA: lib(
        needs=("libnccl.so.2",), wants=("ncclSend", "ncclCommRegister"), rpath="$ORIGIN/../../nvidia/nccl/lib")},
        requires=("nvidia-nccl-cu12==2.19.3; platform_system == 'Linux' and platform_machine == 'x86_64'",))
    return world.opens(TORCH_CUDA, project="torch", what="import torch")


def test_nccl_under_torch(torch: World) -> None:
    torch.wheel("nvidia-nccl-cu12", "2.18.1", {NCCL: lib(offers=("ncclSend",))})
    finding = only(torch)
    assert (finding.code, finding.culprit.package, finding.symbols) == (
        "SF201", "nvidia-nccl-cu12 2.18.1", ("ncclCommRegister",))
    assert finding.cure == (f"{PIP} 'nvidia-nccl-cu12==2.19.3'  # torch 2.2.0 pins it",)
    assert "pip check" not in finding.why
    assert any("torch 2.2.0 requires nvidia-nccl-cu12==2.19.3" in each for each in finding.evidence)


def test_a_good_wheel_is_not_blamed_for_what_was_put_over_it(torch: World) -> None:
    torch.wheel("nvidia-nccl-cu12", "2.19.3", {NCCL: lib(offers=("ncclSend", "ncclCommRegister"))})
    torch.library(NCCL, lib(offers=("ncclSend",)))
    finding = only(torch)
    assert "is not the file of nvidia-nccl-cu12 2.19.3" in finding.summary
    again = f"{torch.prefix}/bin/python -m pip install --force-reinstall --no-deps nvidia-nccl-cu12==2.19.3"
    assert finding.cure == (again,)


def test_an_older_file_in_place_of_a_newer_is_not_too_new(tmp_path: Path) -> None:
    """nvJitLink 12.0's file under the name of 12.9.86; the toolkit of cuSPARSE 12.1 has 12.1.105."""
    world = sparse(jit(World(tmp_path), "12.9.86", *range(10)), "12.1.0.106", 1)
    world.library(NVJITLINK, lib(offers=(f"__nvJitLinkAddData_12_0@{JIT}",)))
    finding = only(world)
    assert finding.code == "SF201"
    assert finding.summary.startswith(f"{JIT} is not the file of nvidia-nvjitlink-cu12 12.9.86, and lacks 2 symbols")
    assert finding.cure == (
        f"{world.prefix}/bin/python -m pip install --force-reinstall --no-deps nvidia-nvjitlink-cu12==12.9.86",)
    view = world.view(load_books=lambda: BOOKS)
    assert [each.code for each in diagnose(view).findings] == ["SF201"]     # and no SF702 of the same file


def test_a_library_that_dropped_what_an_older_consumer_needs(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cuda-cupti-cu12", "12.4.127", {"nvidia/cuda_cupti/lib/libcupti.so.12": lib(
        versions=("libcupti.so.12",))})
    world.wheel("profiler", "1.0", {"profiler/_p.abi3.so": lib(
        needs=("libcupti.so.12",), wants=("cuptiDeviceGetTimestamp@libcupti.so.12",),
        rpath="$ORIGIN/../nvidia/cuda_cupti/lib")}, requires=("nvidia-cuda-cupti-cu12<=12.1.105",))
    finding = only(world.opens("profiler/_p.abi3.so", project="profiler"))
    assert (finding.code, finding.culprit.package) == ("SF202", "nvidia-cuda-cupti-cu12 12.4.127")
    assert "too new" in finding.summary
    newest = "the newest read version that has all that is asked of it, by profiler 1.0"
    assert finding.cure == (f"{PIP} 'nvidia-cuda-cupti-cu12==12.1.105'  # {newest}",)
    assert any("cuptiDeviceGetTimestamp is in nvidia-cuda-cupti-cu12 up to 12.1.105, not in 12.2.60" in each
               for each in finding.evidence)


def test_the_toolkit_of_both_decides_where_nothing_else_does(tmp_path: Path) -> None:
    """cuSOLVER of CUDA 12.1.1 beside a cuBLAS of 12.8."""
    world = World(tmp_path).wheel("nvidia-cublas-cu12", "12.8.4.1", {CUBLAS: lib(offers=(f"cublasCreate@{BLAS}",))})
    world.wheel("nvidia-cusolver-cu12", "11.4.5.107", {CUSOLVER: lib(
        needs=(BLAS,), wants=(f"cublasGone@{BLAS}",), runpath="$ORIGIN/../../cublas/lib")})
    finding = only(world.opens(CUSOLVER))
    assert finding.code == "SF202"
    assert "12.1.3.1" in finding.why


def test_what_nobody_states_is_not_guessed(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-nccl-cu12", "2.18.1", {NCCL: lib()})
    world.wheel("mine", "1.0", {"mine/_m.abi3.so": lib(
        needs=("libnccl.so.2",), wants=("ncclNeverHeardOf",), rpath="$ORIGIN/../nvidia/nccl/lib")})
    finding = only(world.opens("mine/_m.abi3.so", project="mine", phase="module"))
    assert "does not have what is needed by mine 1.0" in finding.summary
    assert "neither the matrix nor the metadata" in finding.why
    assert finding.severity == "error"


def test_a_version_node_that_is_not_there(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cublas-cu12", "12.1.3.1", {
        CUBLAS: lib(offers=("cublasCreate@libcublas.so.11",))})
    world.wheel("nvidia-cusolver-cu12", "11.4.5.107", {CUSOLVER: lib(
        needs=(BLAS,), wants=(f"cublasCreate@libcublas.so.13@{BLAS}",), runpath="$ORIGIN/../../cublas/lib")})
    finding = only(world.opens(CUSOLVER))
    assert (finding.code, finding.culprit.path) == ("SF201", world.inside(CUBLAS))
    assert "has no version libcublas.so.13" in finding.summary


def test_a_conda_package_is_brought_forward_by_conda(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True).conda("libnvjitlink", "12.1.105", {f"lib/{JIT}": lib(
        offers=(f"__nvJitLinkAddData_12_1@{JIT}",))})
    world.conda("libcusparse", "12.3.1.170", {"lib/libcusparse.so.12": lib(
        needs=(JIT,), wants=(f"__nvJitLinkAddData_12_4@{JIT}",), rpath="$ORIGIN")})
    finding = only(world.opens(f"{world.prefix}/lib/libcusparse.so.12"))
    assert (finding.code, finding.culprit.package) == ("SF201", "libnvjitlink 12.1.105")
    assert finding.cure == (f"conda install --prefix {world.prefix} 'libnvjitlink>=12.4.99,<13'",)


@pytest.mark.parametrize(("version", "specifier", "above"), [
    ("12.4.1", "<=12.1.105", True), ("12.4.1", "==12.1.105", True), ("12.0", "==12.1.105", False),
    ("12.0.140", ">=12.1.55", False), ("13.1", ">=12.1,<13", True), ("2.18.1", "==2.19.*", False),
    ("2.20.5", "==2.19.*", True),
])
def test_which_side_of_a_range_a_version_is_on(version: str, specifier: str, above: bool) -> None:
    assert is_above(version, specifier) is above


@pytest.mark.parametrize(("line", "name", "specifier"), [
    ("nvidia-nccl-cu12 (==2.19.3) ; platform_system == 'Linux'", "nvidia-nccl-cu12", "==2.19.3"),
    ("Nvidia_CuBLAS.cu12>=12.1, <13", "nvidia-cublas-cu12", ">=12.1,<13"), ("numpy", "numpy", ""),
    ("cuda-toolkit[nccl,nvtx]==13.0.3; python_version<'3.15'", "cuda-toolkit", "==13.0.3"),
    ("pytest>=8 ; extra == 'dev'", "", ""), ("", "", ""), ("?", "", ""),
    ("nvidia-nccl-cu12 @ https://example.test/nccl.whl", "nvidia-nccl-cu12", ""), ("a===1.0+x", "a", ""),
])
def test_requirements_are_read(line: str, name: str, specifier: str) -> None:
    assert parsed(line) == (name, specifier)
