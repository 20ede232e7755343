"""torch's steps: their logic with a torch of a few lines that misbehaves, their arithmetic with the real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.verify import child_torch, probe
from stackfix.verify.load import load_check
from stackfix.verify.probe import FLASH_ATTN, TORCH, Session
from stackfix.verify.records import Probe, ProbeStep
from tests.real_environments.scenarios import TORCH_231
from tests.real_environments.workshop import Workshop
from tests.verify_libcuda import make_libcuda, needs_gcc
from tests.verify_torch import make_torch

OURS = ("STANDIN_", "FAKE_", "LD_", "CUDA_", "PYTHON")
BASE = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
NO_CPU_KERNEL = {"sdpa.efficient", "sdpa.cudnn"}       # for a CPU torch has no such backend


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of a process that has the stand-ins for libcuda and for torch."""
    folder = tmp_path_factory.mktemp("fake")
    return {**BASE, "PYTHONPATH": str(make_torch(folder / "site")),
            "LD_LIBRARY_PATH": str(make_libcuda(folder / "libcuda"))}


def probed(fake: dict[str, str], how: str, monkeypatch: pytest.MonkeyPatch, *, timeout: float = 60) -> Probe:
    monkeypatch.setattr(probe, "TORCH", ("matmul.fp32", "matmul.bf16"))
    return probe.probe(sys.executable, {**fake, "FAKE_TORCH": how}, timeout=timeout)


def steps(found: Probe) -> list[tuple[str, str, str | None]]:
    return [(each.name, each.verdict, each.reason) for each in found.steps if each.name.startswith("torch.")]


@needs_gcc
def test_a_torch_that_works(fake: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = probed(fake, "", monkeypatch)
    assert (found.verdict, found.reason) == ("works", None), found
    assert [each.name for each in found.steps] == [
        "driver", "driver.kernels.0", "torch.load", "torch.start", "torch.matmul.fp32", "torch.matmul.bf16",
        "flash-attn.load"]
    assert found.steps[-1].reason == "not-installed"
    assert not found.steps[-1].counts


@needs_gcc
@pytest.mark.parametrize(("how", "reason", "said"), [
    ("import error", "library-conflict", "__nvJitLinkComplete_12_4"),
    ("crash", "crashed", "SIGSEGV in import torch"),
    ("exit", "error", "SystemExit: good bye"),
    ("silent exit", "error", "ended with status 0 in import torch"),
])
def test_an_import_that_fails_is_the_last_of_torch(how: str, reason: str, said: str, fake: dict[str, str],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    found = probed(fake, how, monkeypatch)
    assert steps(found) == [("torch.load", "fails", reason)]
    assert (found.verdict, found.reason) == ("fails", reason)
    assert said in found.steps[-1].detail


@needs_gcc
@pytest.mark.parametrize(("how", "verdict", "reason"), [
    ("old driver", "fails", "driver-too-old"), ("no gpu", "fails", "no-gpu"),
    ("cpu build", "fails", "no-kernel-for-this-architecture"), ("rocm", "fails", "no-kernel-for-this-architecture")])
def test_a_torch_that_does_not_start_runs_no_kernel(how: str, verdict: str, reason: str, fake: dict[str, str],
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    found = probed(fake, how, monkeypatch)
    assert steps(found) == [("torch.load", "works", None), ("torch.start", verdict, reason)]
    assert (found.verdict, found.reason) == (verdict, reason)


@needs_gcc
@pytest.mark.parametrize(("how", "verdict", "reason", "said"), [
    ("nan", "fails", "wrong-numbers", "NaN"),
    ("inf", "fails", "wrong-numbers", "49152 infinite"),
    ("wrong", "fails", "wrong-numbers", "product: relative error 0.01"),
    ("no image", "fails", "no-kernel-for-this-architecture", "no kernel image"),
    ("out of memory", "cannot-tell", "error", "another process has the GPU"),
    ("cudnn aborts", "fails", "library-conflict", "SIGABRT in matmul.fp32: Could not load library libcudnn_cnn"),
    ("lacks a function", "fails", "library-conflict", "status 127 in matmul.fp32: python: symbol lookup error"),
    ("crashes at exit", "fails", "crashed", "SIGSEGV while it ended, after its answer"),
])
def test_a_kernel_that_fails_is_told(how: str, verdict: str, reason: str, said: str, fake: dict[str, str],
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    found = probed(fake, how, monkeypatch)
    assert steps(found)[2:] == [("torch.matmul.fp32", verdict, reason), ("torch.matmul.bf16", verdict, reason)]
    assert (found.verdict, found.reason) == (verdict, reason)
    assert said in found.steps[4].detail, found.steps[4]


@needs_gcc
def test_kernels_that_hang_end_the_probe(fake: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = probed(fake, "kernel hangs", monkeypatch, timeout=2)
    assert [each.reason for each in found.steps[-2:]] == ["timed-out", "timed-out"]
    assert found.steps[-1].name == "torch.matmul.bf16"


def test_without_a_gpu_the_import_is_tried_and_no_kernel(fake: dict[str, str]) -> None:
    environ = {**fake, "STANDIN_FAIL": "cuInit:100"}
    found = probe.probe(sys.executable, environ)
    assert (found.verdict, found.reason) == ("cannot-tell", "no-gpu")
    assert steps(found) == [("torch.load", "works", None)]
    broken = probe.probe(sys.executable, {**environ, "FAKE_TORCH": "import error"})
    assert (broken.verdict, broken.reason) == ("fails", "library-conflict")


def test_a_missing_driver_is_no_fault_of_a_package_that_needs_it(tmp_path: Path) -> None:
    (tmp_path / "needy.py").write_text("raise OSError('libcuda.so.1: cannot open shared object file: No such file')\n")
    found = load_check(sys.executable, ["needy"], {**BASE, "PYTHONPATH": str(tmp_path)})
    assert (found.verdict, found.reason) == ("cannot-tell", "no-driver")


def test_packages_are_imported_each_in_its_own_child(fake: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text("__version__ = '2.0'\n")
    (tmp_path / "second.py").write_text("import os\nos.abort()\n")
    (tmp_path / "third.py").write_text("import sys\nassert 'first' not in sys.modules\n")
    found = load_check(sys.executable, ["first", "second", "absent", "third"], {**BASE, "PYTHONPATH": str(tmp_path)})
    assert [(each.name, each.verdict, each.reason) for each in found.steps] == [
        ("load first", "works", None), ("load second", "fails", "crashed"), ("load absent", "fails", "not-installed"),
        ("load third", "works", None)]
    assert found.steps[0].detail == "first 2.0"
    assert (found.verdict, found.reason, found.device) == ("fails", "crashed", None)


@needs_gcc
def test_what_an_import_maps_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "with a blank"
    folder.mkdir()
    for name in ("libcublas.so.12", "libother.so.1", "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"):
        subprocess.run(["gcc", "-shared", "-o", name, "-x", "c", "/dev/null"], cwd=folder, check=True, timeout=60)
    (tmp_path / "opener.py").write_text(textwrap.dedent(f"""
        import ctypes, os
        for name in os.listdir({str(folder)!r}):
            ctypes.CDLL(os.path.join({str(folder)!r}, name))
        """))
    found = load_check(sys.executable, ["opener"], {**BASE, "PYTHONPATH": str(tmp_path)})
    assert {path for path in found.steps[0].libraries if path.startswith(str(tmp_path))} == {
        str(folder / "libcublas.so.12"), str(folder / "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so")}


def test_the_steps_are_the_tasks_that_a_child_knows() -> None:
    assert {*TORCH, *FLASH_ATTN, "start"} == set(child_torch.TASKS)


@pytest.fixture(scope="module")
def torch_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Python of STACKFIX_TORCH_PYTHON, which has torch 2.3.1, else of an environment that is made now: 3 GB."""
    given = os.environ.get("STACKFIX_TORCH_PYTHON")
    if given:
        yield Path(given)
        return
    workshop = Workshop(folder=tmp_path_factory.mktemp("torch"))
    yield workshop.make(*TORCH_231, python="3.11").python
    workshop.clear()


FLASH_ATTN_SOURCE = """
import math, os, torch
__version__ = "2.5.8"
def flash_attn_func(query, key, value, causal):
    if os.environ.get("FAKE_FLASH") == "turing":
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")
    query, key, value = (each.transpose(1, 2).float() for each in (query, key, value))
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if causal and os.environ.get("FAKE_FLASH") != "forgets the mask":
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return (torch.softmax(scores, -1) @ value).transpose(1, 2).half()
"""
BREAKS = """
import torch
matmul, conv2d = torch.Tensor.__matmul__, torch.nn.functional.conv2d
def late(result):
    if result.dtype != torch.float64:
        result.view(-1)[3] += 0.5 * result.abs().max()
    return result
torch.Tensor.__matmul__ = lambda left, right: late(matmul(left, right))
torch.nn.functional.conv2d = lambda *words, **named: conv2d(*words, **named) * (1.001 if words[0].dtype == torch.float32
                                                                               else 1)
"""


@pytest.mark.real
@pytest.mark.torch
@needs_gcc
def test_the_whole_probe_with_a_real_torch_on_the_cpu(torch_python: Path, tmp_path: Path) -> None:
    """What it would be on a GPU, on the CPU: every step within its tolerance, flash-attn by its definition."""
    (tmp_path / "flash_attn.py").write_text(FLASH_ATTN_SOURCE)
    environ = {**BASE, "PYTHONPATH": str(tmp_path), "LD_LIBRARY_PATH": str(make_libcuda(tmp_path / "lib"))}
    told: list[ProbeStep] = []
    found = probe.probe(str(torch_python), environ, device="cpu", tell=told.append, timeout=300)
    assert (found.verdict, found.reason) == ("works", None), json.dumps([str(each) for each in found.steps], indent=1)
    assert tuple(told) == found.steps
    by_name = {each.name: each for each in found.steps}
    assert list(by_name) == ["driver", "driver.kernels.0", "torch.load", "torch.start",
                             *(f"torch.{each}" for each in TORCH), "flash-attn.load", *FLASH_ATTN]
    for name, step in by_name.items():
        if name.removeprefix("torch.") in NO_CPU_KERNEL:
            assert (step.verdict, step.counts) == ("cannot-tell", False), step
        else:
            assert step.verdict == "works", step
    for task in (*TORCH, *FLASH_ATTN):
        accuracy = by_name[task if task in FLASH_ATTN else f"torch.{task}"].accuracy
        assert (accuracy is None) == (task in NO_CPU_KERNEL)
        assert accuracy is None or 0 < accuracy.largest_error <= accuracy.tolerance
    assert any(path.endswith("nvjitlink/lib/libnvJitLink.so.12") for path in by_name["torch.load"].libraries)


@pytest.mark.real
@pytest.mark.torch
def test_a_real_torch_whose_numbers_are_off_is_seen(torch_python: Path, tmp_path: Path) -> None:
    """One element of a product by half of the largest, a convolution by a thousandth, attention without its mask."""
    (tmp_path / "sitecustomize.py").write_text(BREAKS)
    (tmp_path / "flash_attn.py").write_text(FLASH_ATTN_SOURCE)
    environ = {**BASE, "PYTHONPATH": str(tmp_path), "FAKE_FLASH": "forgets the mask"}
    session = Session(python=str(torch_python), environ=environ, timeout=300, device="cpu")
    for task in ("matmul.bf16", "conv2d.forward", "conv2d.backward"):
        session.ask(task, "torch", task=task, device="cpu")
    (tmp_path / "sitecustomize.py").unlink()
    for task in FLASH_ATTN:
        session.ask(task, "torch", task=task, device="cpu")
    assert [each.reason for each in session.steps] == ["wrong-numbers"] * 5, session.steps
    turing = Session(python=str(torch_python), environ={**environ, "FAKE_FLASH": "turing"}, timeout=300, device="cpu")
    turing.ask("flash-attn.forward", "torch", task="flash-attn.forward", device="cpu")
    assert (turing.steps[0].verdict, turing.steps[0].reason) == ("fails", "no-kernel-for-this-architecture")


@pytest.mark.gpu
def test_the_probe_on_this_machines_gpu() -> None:
    """With the Python of STACKFIX_TORCH_PYTHON, else the one of the tests: the driver's kernels at least."""
    python = os.environ.get("STACKFIX_TORCH_PYTHON", sys.executable)
    found = probe.probe(python, dict(os.environ), timeout=300)
    assert found.verdict == "works", json.dumps([str(each) for each in found.steps], indent=1)
    assert found.device is not None
    assert found.steps[1].accuracy is not None
