"""Kernels in an environment's own Python: the driver without torch, torch, flash-attn, each in a child of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stackfix.verify.child import run_child
from stackfix.verify.ended import Ended
from stackfix.verify.judge import step_of
from stackfix.verify.records import Probe, ProbeStep
from stackfix.verify.stack import STACK

SECONDS = 120.0         # for each child: a cold torch on a network drive takes most of a minute to import
MOST_HANGS = 2          # children that may time out before nothing more is tried
TORCH = ("matmul.fp32", "matmul.tf32", "matmul.bf16", "matmul.fp16", "conv2d.forward", "conv2d.backward", "batch_norm",
         "rnn", "sdpa.math", "sdpa.flash", "sdpa.efficient", "sdpa.cudnn", "linalg", "fft", "sparse")
FLASH_ATTN = ("flash-attn.forward", "flash-attn.backward")


@dataclass(slots=True, kw_only=True)
class Session:
    """One environment that is probed, and what was found so far."""

    python: str
    environ: Mapping[str, str]
    timeout: float = SECONDS
    device: str = "cuda"            # of torch; "cpu" to try the arithmetic where there is no GPU
    tell: Callable[[ProbeStep], None] | None = None
    trying: Callable[[str], None] | None = None
    steps: list[ProbeStep] = field(default_factory=list)

    def ask(self, name: str, part: str, **request: Any) -> Ended | None:
        """A child with this request, whose step is kept; None where so many hung that no more are started."""
        if self.is_stuck():
            return None
        if self.trying is not None:
            self.trying(name)
        ended = run_child(self.python, part, {**request, "stack": STACK}, self.environ, timeout=self.timeout)
        step = step_of(name, ended, timeout=self.timeout, told=told_of(part, request, ended.answer or {}))
        if part == "torch" and step.reason in {"no-gpu", "no-driver"}:      # the driver has just shown one
            step = replace(step, verdict="fails")
        self.keep(step)
        return ended

    def keep(self, step: ProbeStep) -> None:
        self.steps.append(step)
        if self.tell is not None:
            self.tell(step)

    def is_stuck(self) -> bool:
        """Each further child would most likely hang, too."""
        hung = [each for each in self.steps if each.reason == "timed-out"]
        return len(hung) >= MOST_HANGS or any("could not be ended" in each.detail for each in hung)

    def works(self, name: str) -> bool:
        return any(each.name == name and each.verdict == "works" for each in self.steps)


def probe(python: str, environ: Mapping[str, str], *, timeout: float = SECONDS, device: str = "cuda",
          tell: Callable[[ProbeStep], None] | None = None, trying: Callable[[str], None] | None = None) -> Probe:
    """All that can be tried in the environment of `python` with these variables; `tell` is called with each step.

    Beside them CUDA_CACHE_PATH is set, so that kernels which the driver compiles are compiled here and now, and nothing
    is left in the home folder. Raises Unreachable where the Python cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="stackfix-probe-", ignore_cleanup_errors=True) as cache:
        session = Session(python=python, environ={**environ, "CUDA_CACHE_PATH": cache}, timeout=timeout, device=device,
                          tell=tell, trying=trying)
        name = ask_driver(session)
        ask_packages(session, gpu=session.works("driver"))
    return whole(session.steps, name)


def ask_driver(session: Session) -> str | None:
    """The first device in words; None where there is none."""
    ended = session.ask("driver", "driver", task="devices")
    answer = (ended.answer if ended else None) or {}
    devices = answer.get("devices")
    if not isinstance(devices, list) or not devices:
        return None
    for place in range(len(devices)):
        session.ask(f"driver.kernels.{place}", "driver", task="kernels", device=place)
    return in_words(devices, answer)


def ask_packages(session: Session, *, gpu: bool) -> None:
    """torch and flash-attn: their import also without a GPU, for it may fail all the same; kernels with one."""
    session.ask("torch.load", "load", module="torch")
    if not session.works("torch.load"):
        return
    if gpu:
        session.ask("torch.start", "torch", task="start", device=session.device)
        for task in TORCH if session.works("torch.start") else ():
            session.ask(f"torch.{task}", "torch", task=task, device=session.device)
    session.ask("flash-attn.load", "load", module="flash_attn")
    if session.works("flash-attn.load") and session.works("torch.start"):
        for task in FLASH_ATTN:
            session.ask(task, "torch", task=task, device=session.device)


def told_of(part: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """What is said of a child that works and compared no numbers."""
    if part == "driver":
        devices = answer.get("devices")
        return in_words(devices, answer) if isinstance(devices, list) and devices else ""
    version = answer.get("version")
    return f"{request.get('module')} {version}".strip() if version else str(request.get("module", ""))


def in_words(devices: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> str:
    """`NVIDIA H200, compute capability 9.0, driver 570.86` of the first, and how many more there are."""
    first = devices[0]
    driver = f"driver {answer['kernel_module']}" if answer.get("kernel_module") else f"driver for CUDA {answer['cuda']}"
    more = f" (the first of {len(devices)})" if len(devices) > 1 else ""
    return f"{first['name']}, compute capability {first['capability']}, {driver}{more}"


def whole(steps: Iterable[ProbeStep], device: str | None) -> Probe:
    """The worst of the steps that count: one that fails, else one that cannot tell."""
    kept = tuple(steps)
    counted = [each for each in kept if each.counts]
    worst = next((each for verdict in ("fails", "cannot-tell") for each in counted if each.verdict == verdict), None)
    if worst is None:
        # nothing that counts was tried: no pass
        return Probe(verdict="works" if counted else "cannot-tell", reason=None if counted else "not-installed",
                     device=device, steps=kept)
    return Probe(verdict=worst.verdict, reason=worst.reason, device=device, steps=kept)
