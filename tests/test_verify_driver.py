"""The driver through ctypes, with a small libcuda that gcc makes: each call failing in turn, and wrong numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest

from stackfix.verify.child import run_child
from stackfix.verify.judge import judge
from stackfix.verify.probe import probe
from stackfix.verify.records import REASONS, VERDICTS, Probe
from stackfix.verify.stack import STACK
from tests.verify_libcuda import CALLS, SOURCE, bare_python, make_libcuda, needs_gcc

pytestmark = needs_gcc
PYTHON: list[str] = []
OURS = ("STANDIN_", "LD_", "CUDA_", "PYTHON")
BASE = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}


@pytest.fixture(scope="module")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_libcuda(tmp_path_factory.mktemp("libcuda"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_python(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module", autouse=True)
def python(bare: Path) -> Iterator[None]:
    """All probes of this module are of the bare environment."""
    PYTHON.append(str(bare))
    yield
    PYTHON.clear()


def probed(libcuda: Path, *, timeout: float = 60, **variables: str) -> Probe:
    return probe(PYTHON[0], {**BASE, "LD_LIBRARY_PATH": str(libcuda), **variables}, timeout=timeout)


def first_bad(found: Probe) -> tuple[str, str, str | None]:
    step = next(each for each in found.steps if each.counts and each.verdict != "works")
    assert (found.verdict, found.reason) == (step.verdict, step.reason)
    return step.name, step.verdict, step.reason


def test_a_driver_that_works(libcuda: Path) -> None:
    found = probed(libcuda)
    assert (found.verdict, found.reason) == ("works", None), found
    assert found.device is not None
    assert found.device.startswith("Stand-in 0, compute capability 8.6, driver ")
    kernels = found.steps[1]
    assert kernels.name == "driver.kernels.0"
    assert kernels.libraries == (str(libcuda / "libcuda.so.1"),)
    assert kernels.accuracy is not None
    assert 0 < kernels.accuracy.largest_error < kernels.accuracy.tolerance < 1e-6


KINDS: dict[str, tuple[dict[str, str], str, str | None]] = {
    "works": ({}, "works", None),
    "no GPU": ({"STANDIN_FAIL": "cuInit:100"}, "cannot-tell", "no-gpu"),
    "no driver": ({"LD_LIBRARY_PATH": ""}, "cannot-tell", "no-driver"),
    "driver too old": ({"STANDIN_FAIL": "cuModuleLoadDataEx:222"}, "fails", "driver-too-old"),
    "no kernel for this architecture": ({"STANDIN_FAIL": "cuModuleLoadDataEx:209"}, "fails",
                                        "no-kernel-for-this-architecture"),
    "library conflict": ({"STANDIN_FAIL": "cuInit:803"}, "fails", "library-conflict"),
    "wrong numbers": ({"STANDIN_WRONG": "saxpy"}, "fails", "wrong-numbers"),
    "crashed": ({"STANDIN_CRASH": "cuModuleLoadDataEx"}, "fails", "crashed"),
    "timed out": ({"STANDIN_HANG": "cuCtxSynchronize"}, "fails", "timed-out"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_told_apart_by_the_whole_probe(kind: str, libcuda: Path) -> None:
    variables, verdict, reason = KINDS[kind]
    if kind == "no driver" and (list(Path("/dev").glob("nvidia*")) or find_library("cuda")):
        pytest.skip("this machine has a driver")
    found = probed(libcuda, timeout=2 if kind == "timed out" else 60, **variables)
    assert (found.verdict, found.reason) == (verdict, reason), found
    assert (verdict == "works") == (reason is None)


def test_each_kind_has_a_case_of_its_own_and_a_row_in_the_docs() -> None:
    reasons = {reason for _, _, reason in KINDS.values() if reason}
    assert reasons | {"not-installed", "error"} == set(REASONS)
    assert len(reasons) == len(KINDS) - 1
    page = (Path(__file__).parent.parent / "docs" / "probe.md").read_text(encoding="utf-8")
    table = page.partition("| reason | verdict | told by |")[2].partition("\n\n")[0]
    assert [row.split("`")[1] for row in table.splitlines() if row.startswith("| `")] == list(REASONS)


def test_each_device_gets_its_kernels(libcuda: Path) -> None:
    found = probed(libcuda, STANDIN_DEVICES="3")
    assert [each.name for each in found.steps][:4] == ["driver", *(f"driver.kernels.{each}" for each in range(3))]
    assert (found.device or "").endswith("(the first of 3)")


def test_the_calls_are_those_that_the_stand_in_has() -> None:
    assert set(CALLS) == {line.partition("(")[0].removeprefix("int ") for line in SOURCE.splitlines()
                          if line.startswith("int cu")} - {"cuGetErrorName"}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails_is_named_with_its_code(call: str, libcuda: Path) -> None:
    found = probed(libcuda, STANDIN_FAIL=f"{call}:719")
    assert first_bad(found)[1:] == ("fails", "error")
    step = next(each for each in found.steps if each.verdict == "fails")
    assert step.detail.startswith(f"{call}: CUDA_ERROR_X (719)"), step
    assert ("ptxas fatal: the log" in step.detail) == (call == "cuModuleLoadDataEx")


@pytest.mark.parametrize("call", ["cuInit", "cuLaunchKernel"])
def test_a_call_that_crashes_or_hangs_is_named(call: str, libcuda: Path) -> None:
    crashed = probed(libcuda, STANDIN_CRASH=call)
    assert first_bad(crashed)[1:] == ("fails", "crashed")
    assert f"SIGSEGV in {call}" in next(each.detail for each in crashed.steps if each.verdict == "fails")
    hung = probed(libcuda, STANDIN_HANG=call, timeout=1.5)
    assert first_bad(hung)[1:] == ("fails", "timed-out")
    step = next(each for each in hung.steps if each.verdict == "fails")
    assert step.detail == f"no end after 1.5 s, in {call}"
    assert step.libraries == (str(libcuda / "libcuda.so.1"),)


@pytest.mark.parametrize(("wrong", "said"), [
    ("saxpy", "saxpy: relative error 1e-05"), ("nan", "1 NaN"), ("inf", "2 infinite"),
    ("mirror", "integers: absolute error"), ("nothing", "error")])
def test_wrong_numbers_are_seen(wrong: str, said: str, libcuda: Path) -> None:
    found = probed(libcuda, STANDIN_WRONG=wrong)
    assert first_bad(found) == ("driver.kernels.0", "fails", "wrong-numbers")
    assert said in found.steps[1].detail


@pytest.mark.parametrize(("code", "verdict", "reason"), [
    (2, "cannot-tell", "error"), (34, "cannot-tell", "no-driver"), (35, "fails", "driver-too-old"),
    (36, "fails", "driver-too-old"), (46, "cannot-tell", "error"), (100, "cannot-tell", "no-gpu"),
    (209, "fails", "no-kernel-for-this-architecture"), (221, "fails", "library-conflict"),
    (222, "fails", "driver-too-old"), (223, "cannot-tell", "error"), (802, "fails", "error"),
    (803, "fails", "library-conflict"), (804, "fails", "library-conflict"), (999, "cannot-tell", "no-gpu"),
    (12345, "fails", "error")])
def test_codes_are_told_apart(code: int, verdict: str, reason: str, libcuda: Path) -> None:
    answer = asked(libcuda, STANDIN_FAIL=f"cuInit:{code}")
    answer["nodes"] = []        # as where no device file is: the machine of the tests may have some
    assert judged(answer) == (verdict, reason)


@pytest.mark.parametrize(("code", "verdict", "reason"), [
    (34, "fails", "library-conflict"), (100, "cannot-tell", "no-gpu"), (999, "fails", "error")])
def test_a_device_file_tells_that_a_gpu_is_here(code: int, verdict: str, reason: str, libcuda: Path) -> None:
    assert judged({**asked(libcuda, STANDIN_FAIL=f"cuInit:{code}"), "nodes": ["/dev/nvidia0"]}) == (verdict, reason)


def asked(libcuda: Path, **variables: str) -> dict[str, object]:
    done = run_child(sys.executable, "driver", {"task": "devices", "stack": STACK},
                     {**BASE, "LD_LIBRARY_PATH": str(libcuda), **variables}, timeout=60)
    assert done.answer is not None, done
    return done.answer


def judged(answer: dict[str, object]) -> tuple[str, str | None]:
    done = run_child("/bin/true", "driver", {}, BASE, timeout=60)
    found = judge(type(done)(answer=answer, stage=None, mapped=(), status=0, timed_out=False, left_behind=None,
                             said="", seconds=0), 60, "")
    assert found.verdict in VERDICTS
    assert found.reason in REASONS
    return found.verdict, found.reason


def test_a_driver_that_counts_nothing_has_no_gpu(libcuda: Path) -> None:
    assert first_bad(probed(libcuda, STANDIN_DEVICES="0")) == ("driver", "cannot-tell", "no-gpu")


def test_devices_that_a_variable_hides_are_told(libcuda: Path) -> None:
    found = probed(libcuda, STANDIN_FAIL="cuInit:100", CUDA_VISIBLE_DEVICES="")
    assert found.steps[0].detail == "cuInit: CUDA_ERROR_NO_DEVICE (100); CUDA_VISIBLE_DEVICES is ''"


def test_a_library_without_the_functions_is_no_drivers(tmp_path: Path) -> None:
    made = make_libcuda(tmp_path, "int cuInit(unsigned flags) { return 0; }")
    found = probed(made)
    assert first_bad(found) == ("driver", "fails", "library-conflict")
    assert "cuDriverGetVersion" in found.steps[0].detail


@pytest.mark.parametrize(("content", "said"), [
    (b"", "file too short"), (b"no library at all" * 100, "invalid ELF header"),
    (None, "undefined symbol: nothing_has")])
def test_a_library_that_is_broken_is_a_conflict(content: bytes | None, said: str, tmp_path: Path) -> None:
    if content is None:
        make_libcuda(tmp_path, "extern int nothing_has(void); int cuInit(unsigned flags) { return nothing_has(); }")
    else:
        (tmp_path / "libcuda.so.1").write_bytes(content)
    found = probed(tmp_path, LD_BIND_NOW="1")
    assert first_bad(found) == ("driver", "fails", "library-conflict")
    assert said in found.steps[0].detail


def test_no_library_is_no_driver_unless_a_gpu_is_here() -> None:
    error = "libcuda.so.1: cannot open shared object file: No such file or directory"
    assert judged({"not_loaded": error, "nodes": []}) == ("cannot-tell", "no-driver")
    assert judged({"not_loaded": error, "nodes": ["/dev/nvidia0"]}) == ("fails", "no-driver")


def test_two_that_hang_are_the_last(libcuda: Path, tmp_path: Path) -> None:
    found = probed(libcuda, STANDIN_DEVICES="5", STANDIN_HANG="cuDevicePrimaryCtxRetain", timeout=1)
    assert [each.reason for each in found.steps] == [None, "timed-out", "timed-out"]
    assert found.verdict == "fails"


def test_the_drivers_own_cache_is_not_that_of_the_user(libcuda: Path, tmp_path: Path) -> None:
    """What CUDA compiles goes into ~/.nv otherwise, and a kernel found there would prove nothing."""
    source = SOURCE.replace("int cuInit(unsigned flags) { CALL;", """int cuInit(unsigned flags) { CALL;
        char path[999];
        snprintf(path, 999, "%s/kept", getenv("CUDA_CACHE_PATH"));
        FILE *file = fopen(path, "w");
        if (!file) abort();
        fclose(file);""")
    found = probed(make_libcuda(tmp_path / "lib", source), CUDA_CACHE_PATH=str(tmp_path))
    assert found.verdict == "works", found
    assert [each.name for each in tmp_path.iterdir()] == ["lib"]
