"""What the end of a child comes to, by the words that torch, cuDNN and the loader use."""

from __future__ import annotations

from typing import Any

import pytest

from stackfix.inspect.plain import from_json, to_json
from stackfix.verify.ended import Ended
from stackfix.verify.judge import judge, step_of
from stackfix.verify.probe import told_of, whole
from stackfix.verify.records import REASONS, VERDICTS, Probe, ProbeStep


def of(answer: dict[str, Any] | None = None, *, status: int = 0, said: str = "", stage: str | None = "rnn",
       timed_out: bool = False, left_behind: int | None = None) -> Ended:
    return Ended(answer=answer, stage=stage, mapped=("/lib/libcuda.so.1",), status=status, timed_out=timed_out,
                 left_behind=left_behind, said=said, seconds=1.23456)


@pytest.mark.parametrize(("text", "verdict", "reason"), [
    ("CUDA error: CUDA driver version is insufficient for CUDA runtime version", "fails", "driver-too-old"),
    ("The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
     "fails", "driver-too-old"),
    ("CUDA error: the provided PTX was compiled with an unsupported toolchain.", "fails", "driver-too-old"),
    ("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", "cannot-tell", "no-driver"),
    ("No CUDA GPUs are available", "cannot-tell", "no-gpu"),
    ("Error 803: system has unsupported display driver / cuda driver combination", "fails", "library-conflict"),
    ("Error 804: forward compatibility was attempted on non supported HW", "fails", "library-conflict"),
    ("Error 34: CUDA driver is a stub library", "fails", "library-conflict"),
    ("CUDA error: no kernel image is available for execution on the device", "fails",
     "no-kernel-for-this-architecture"),
    ("FlashAttention only supports Ampere GPUs or newer.", "fails", "no-kernel-for-this-architecture"),
    ("Torch not compiled with CUDA enabled", "fails", "no-kernel-for-this-architecture"),
    ("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED_CUDART", "fails", "error"),
    ("cuDNN error: CUDNN_STATUS_ARCH_MISMATCH", "fails", "no-kernel-for-this-architecture"),
    ("cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "fails", "library-conflict"),
    ("cuDNN version incompatibility: PyTorch was compiled  against (8, 9, 2) but found runtime version (8, 6, 0)",
     "fails", "library-conflict"),
    ("libcudnn.so.9: cannot open shared object file: No such file or directory", "fails", "library-conflict"),
    ("/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by x.so)", "fails", "library-conflict"),
    ("libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12", "fails",
     "library-conflict"),
    ("libtorch_cpu.so: cannot allocate memory in static TLS block", "fails", "library-conflict"),
    ("CUDA error: out of memory", "cannot-tell", "error"),
    ("CUDA error: all CUDA-capable devices are busy or unavailable", "cannot-tell", "error"),
    ("CUDA error: an illegal memory access was encountered", "fails", "error"),
    ("name 'x' is not defined", "fails", "error"),
])
def test_words_of_an_error_are_told_apart(text: str, verdict: str, reason: str) -> None:
    found = judge(of({"raised": [{"type": "RuntimeError", "text": text}]}), 60, "")
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.verdict in VERDICTS
    assert found.reason in REASONS
    assert text in found.detail


def test_the_cause_of_an_error_is_told_behind_it() -> None:
    found = judge(of({"raised": [{"type": "ImportError", "text": "cannot import name '_C'"},
                                 {"type": "OSError", "text": "x.so: undefined symbol: f"}]}), 60, "")
    assert (found.reason, found.detail) == (
        "library-conflict", "ImportError: cannot import name '_C' (x.so: undefined symbol: f)")


@pytest.mark.parametrize(("ended", "reason", "detail"), [
    (of(status=-11), "crashed", "SIGSEGV in rnn"),
    (of(status=-9, stage=None), "crashed", "SIGKILL, as when memory runs out, in its start"),
    (of(status=-60), "crashed", "signal 60 in rnn"),
    (of(status=-6, said="Could not load symbol cudnnGetLibConfig. Error: x\n\n"), "library-conflict",
     "SIGABRT in rnn: Could not load symbol cudnnGetLibConfig. Error: x"),
    (of(status=-11, said="CUDA out of memory"), "crashed", "SIGSEGV in rnn: CUDA out of memory"),
    (of(status=127, said="python: symbol lookup error: a: undefined symbol: b"), "library-conflict",
     "ended with status 127 in rnn: python: symbol lookup error: a: undefined symbol: b"),
    (of(status=1, stage=None), "error", "ended with status 1 in its start"),
    (of(status=-9, timed_out=True), "timed-out", "no end after 60 s, in rnn"),
    (of({}, status=-9, timed_out=True), "timed-out", "no end after 60 s, while it ended"),
    (of(timed_out=True, left_behind=77), "timed-out", "no end after 60 s, in rnn; process 77 could not be ended"),
    (of({"accuracy": []}, status=-11), "crashed", "SIGSEGV while it ended, after its answer"),
])
def test_an_end_without_a_last_word_fails(ended: Ended, reason: str, detail: str) -> None:
    found = judge(ended, 60, "")
    assert (found.verdict, found.reason, found.detail) == ("fails", reason, detail)


def numbers(error: float, tolerance: float, nan: int = 0, infinite: int = 0, of: str = "x") -> dict[str, Any]:
    return {"of": of, "largest_error": error, "tolerance": tolerance, "relative": True, "nan": nan,
            "infinite": infinite}


@pytest.mark.parametrize(("told", "reason", "detail"), [
    ([numbers(0.5, 1)], None, "x: relative error 0.5, 1 allowed"),
    ([numbers(1, 1)], None, "x: relative error 1, 1 allowed"),
    ([numbers(1.01, 1)], "wrong-numbers", "x: relative error 1, 1 allowed"),
    ([numbers(0, 0)], None, "x: relative error 0, 0 allowed"),
    ([numbers(1e-30, 0)], "wrong-numbers", "x: relative error 1e-30, 0 allowed"),
    ([numbers(0.9, 1), numbers(0.1, 1, nan=1, of="y")], "wrong-numbers", "y: relative error 0.1, 1 allowed, 1 NaN"),
    ([numbers(0.9, 1), numbers(0.01, 0.0101, of="y")], None, "y: relative error 0.01, 0.01 allowed"),
    ([numbers(0, 1, infinite=2)], "wrong-numbers", "x: relative error 0, 1 allowed, 2 infinite"),
])
def test_the_worst_of_the_numbers_decides(told: list[dict[str, Any]], reason: str | None, detail: str) -> None:
    found = judge(of({"accuracy": told}), 60, "")
    assert (found.verdict, found.reason) == ("works" if reason is None else "fails", reason)
    assert found.detail == detail


def test_a_long_text_of_many_lines_is_one_line_and_short() -> None:
    step = step_of("x", of({"raised": [{"type": "E", "text": "a\n\tb " * 1000}]}), timeout=60)
    assert "\n" not in step.detail
    assert len(step.detail) == 300
    assert step.seconds == 1.235


def test_an_error_beyond_all_numbers_still_has_a_number() -> None:
    found = step_of("x", of({"accuracy": [numbers(float("inf"), 1)]}), timeout=60)
    assert found.reason == "wrong-numbers"
    assert found.accuracy is not None
    assert found.accuracy.largest_error < float("inf")


def step(verdict: str, reason: str | None, *, counts: bool = True) -> ProbeStep:
    return ProbeStep(name="x", verdict=verdict, reason=reason, detail="", accuracy=None, seconds=0.5, libraries=(),
                     counts=counts)


@pytest.mark.parametrize(("steps", "verdict", "reason"), [
    ([step("works", None), step("cannot-tell", "no-gpu"), step("fails", "crashed"), step("fails", "error")],
     "fails", "crashed"),
    ([step("works", None), step("cannot-tell", "no-gpu")], "cannot-tell", "no-gpu"),
    ([step("works", None), step("cannot-tell", "not-installed", counts=False)], "works", None),
    ([step("cannot-tell", "not-installed", counts=False)], "cannot-tell", "not-installed"),
    ([], "cannot-tell", "not-installed"),
])
def test_the_whole_is_the_worst_that_counts(steps: list[ProbeStep], verdict: str, reason: str | None) -> None:
    found = whole(steps, None)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert from_json(to_json(found), Probe) == found


def test_what_works_without_numbers_says_what_it_is() -> None:
    assert told_of("load", {"module": "torch"}, {"version": "2.3.1"}) == "torch 2.3.1"
    assert told_of("load", {"module": "x"}, {"version": ""}) == "x"
    device = {"name": "NVIDIA H200", "capability": "9.0"}
    assert told_of("driver", {}, {"devices": [device, device], "cuda": "12.8", "kernel_module": "570.86.15"}) == (
        "NVIDIA H200, compute capability 9.0, driver 570.86.15 (the first of 2)")
    assert told_of("driver", {}, {"devices": [device], "cuda": "12.8", "kernel_module": ""}) == (
        "NVIDIA H200, compute capability 9.0, driver for CUDA 12.8")
