"""What a child's end and its answer come to: a step of a probe. Pure."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stackfix.verify.ended import Ended
from stackfix.verify.reasons import ERROR, Reason, reason_of_code, reason_of_texts
from stackfix.verify.records import Accuracy, ProbeStep

NO_GPU = Reason(verdict="cannot-tell", reason="no-gpu")
NO_DRIVER = Reason(verdict="cannot-tell", reason="no-driver")
MOST = 300          # characters of a detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What it comes to, before it has a name and a time."""

    verdict: str
    reason: str | None
    detail: str
    accuracy: Accuracy | None = None
    counts: bool = True


def step_of(name: str, ended: Ended, *, timeout: float, told: str = "") -> ProbeStep:
    """The step. `told`: what is said of one that works, where the child itself measured nothing."""
    judged = judge(ended, timeout, told)
    return ProbeStep(name=name, verdict=judged.verdict, reason=judged.reason, detail=short(judged.detail),
                     accuracy=judged.accuracy, seconds=round(ended.seconds, 3), libraries=ended.mapped,
                     counts=judged.counts)


def judge(ended: Ended, timeout: float, told: str) -> Judged:
    """First how it ended: an answer of one that then crashed is not the last word."""
    if ended.timed_out:
        where = "while it ended" if ended.answer is not None else f"in {ended.stage or 'its start'}"
        left = f"; process {ended.left_behind} could not be ended" if ended.left_behind is not None else ""
        return Judged(verdict="fails", reason="timed-out", detail=f"no end after {timeout:g} s, {where}{left}")
    if ended.answer is None or ended.status != 0:
        return judge_death(ended)
    return judge_answer(ended.answer, told)


def judge_death(ended: Ended) -> Judged:
    """One that did not come to its own end."""
    where = "while it ended, after its answer" if ended.answer is not None else f"in {ended.stage or 'its start'}"
    last = last_line(ended.said)
    # cuDNN prints which library it cannot load and aborts; the loader ends a process that lacks a function.
    known = reason_of_texts(reversed(ended.said.splitlines()[-20:]))
    if ended.status < 0:
        detail = f"{name_of_signal(-ended.status)} {where}"
        reason = known.reason if known.reason == "library-conflict" else "crashed"
        return Judged(verdict="fails", reason=reason, detail=f"{detail}: {last}" if last else detail)
    detail = f"ended with status {ended.status} {where}"
    return Judged(verdict="fails", reason=known.reason, detail=f"{detail}: {last}" if last else detail)


def name_of_signal(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"{name}, as when memory runs out," if number == signal.SIGKILL else name


def judge_answer(answer: Mapping[str, Any], told: str) -> Judged:      # noqa: PLR0911 - a branch for each kind
    """What the child itself says."""
    if "raised" in answer:
        return judge_raised(answer["raised"])
    if "failed" in answer:
        return judge_call(answer, answer["failed"])
    if "not_loaded" in answer:
        return judge_missing_driver(answer, str(answer["not_loaded"]))
    if "lacks" in answer:
        return Judged(verdict="fails", reason="library-conflict", detail=f"no libcuda of a driver: {answer['lacks']}")
    if "absent" in answer:
        return Judged(verdict="cannot-tell", reason="not-installed", detail=f"{answer['absent']} is not installed",
                      counts=False)
    if "declined" in answer:
        return Judged(verdict="cannot-tell", reason="no-kernel-for-this-architecture", counts=False,
                      detail=f"not offered here: {answer['declined']}")
    if answer.get("devices") == []:
        return Judged(verdict="cannot-tell", reason="no-gpu", detail="the driver counts no device")
    if answer.get("without_cuda"):
        other = f"for ROCm {answer['hip']}" if answer.get("hip") else "without CUDA"
        return Judged(verdict="fails", reason="no-kernel-for-this-architecture",
                      detail=f"torch {answer.get('version')} is a build {other}")
    return judge_numbers(accuracies(answer.get("accuracy", ())), told)


def judge_raised(chain: Any) -> Judged:
    """An exception; what caused it stands behind it."""
    told = [(str(each.get("type")), str(each.get("text"))) for each in chain if isinstance(each, dict)]
    found = reason_of_texts(text for _, text in told)
    first = next((f"{kind}: {text}" for kind, text in told), "an exception")
    cause = next((text for _, text in told[1:] if reason_of_texts([text]) != ERROR), None)
    detail = first if cause is None or cause in first else f"{first} ({cause})"
    return Judged(verdict=found.verdict, reason=found.reason,
                  detail=f"{detail}; {found.because}" if found.because else detail)


def judge_call(answer: Mapping[str, Any], failed: Mapping[str, Any]) -> Judged:
    """A call of the driver that failed. Without a device there is no GPU, whatever a stub or a driver says of it."""
    code = int(failed["code"])
    found, name = reason_of_code(code), failed.get("name") or "an error without a name"
    detail = f"{failed['call']}: {name} ({code})"
    if not answer.get("nodes") and code in {34, 999}:
        found = NO_DRIVER if code == 34 else NO_GPU
        detail += ", and no GPU's device file is here"
    hidden = answer.get("visible") if code == 100 else None
    hint = f"CUDA_VISIBLE_DEVICES is {hidden!r}" if hidden is not None else None
    for more in (failed.get("log"), found.because, hint):
        detail += f"; {more}" if more else ""
    return Judged(verdict=found.verdict, reason=found.reason, detail=detail)


def judge_missing_driver(answer: Mapping[str, Any], error: str) -> Judged:
    """libcuda that could not be opened: it is not there, or it is and is no library that fits."""
    if not error.startswith("libcuda.so.1: cannot open shared object file: No such file"):
        return Judged(verdict="fails", reason="library-conflict", detail=error)
    nodes = answer.get("nodes")
    if nodes:       # a GPU without its library, as in a container that was given only the device
        return Judged(verdict="fails", reason="no-driver", detail=f"{error}; but a GPU is here: {', '.join(nodes)}")
    return Judged(verdict="cannot-tell", reason="no-driver", detail=error)


def accuracies(told: Iterable[Mapping[str, Any]]) -> list[tuple[str, Accuracy]]:
    return [(str(each["of"]), Accuracy(
        largest_error=min(float(each["largest_error"]), sys.float_info.max),    # JSON has no infinity
        tolerance=float(each["tolerance"]), relative=bool(each["relative"]),
        nan=int(each["nan"]), infinite=int(each["infinite"]))) for each in told]


def judge_numbers(found: list[tuple[str, Accuracy]], told: str) -> Judged:
    """The worst of the comparisons."""
    if not found:
        return Judged(verdict="works", reason=None, detail=told)
    of, worst = max(found, key=lambda each: badness(each[1]))
    right = badness(worst) <= (0, 1.0)
    kind = "relative" if worst.relative else "absolute"
    detail = f"{of}: {kind} error {worst.largest_error:.2g}, {worst.tolerance:.2g} allowed"
    for number, what in ((worst.nan, "NaN"), (worst.infinite, "infinite")):
        detail += f", {number} {what}" if number else ""
    return Judged(verdict="works" if right else "fails", reason=None if right else "wrong-numbers", detail=detail,
                  accuracy=worst)


def badness(accuracy: Accuracy) -> tuple[int, float]:
    """Up to (0, 1.0) it is right: no element is lost, and the error is within the tolerance."""
    error, tolerance = accuracy.largest_error, accuracy.tolerance
    share = error / tolerance if tolerance else (0.0 if error == 0 else math.inf)
    return accuracy.nan + accuracy.infinite, share


def last_line(said: str) -> str:
    """The last that it printed which says something."""
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST else f"{line[:MOST - 2]} …"
