"""A result beside the one that the CPU gets in float64. Runs in a child; see `child_talk`."""

from __future__ import annotations

import math
from typing import Any


class Declined(Exception):
    """torch, or the package, says itself that it does not do this on this GPU, or is too old to have it."""


def numbers(tensor: Any) -> list[float]:
    """All elements, in float64 on the CPU."""
    found: list[float] = tensor.detach().to("cpu").double().flatten().tolist()
    return found


def compared(of: str, got: Any, want: Any, tolerance: float, sizes: Any = None) -> dict[str, Any]:
    """How far `got` is from `want`, relative to `sizes`, an element each, else to the largest true element.

    NaN and infinities are counted, and the error is that of the finite elements.
    """
    results, truth = numbers(got), numbers(want)
    if len(results) != len(truth):
        raise ValueError(f"{of} has {len(results)} elements where {len(truth)} are true")
    largest = max(map(abs, truth), default=0.0)
    scales = numbers(sizes) if sizes is not None else [largest] * len(truth)
    finite = [each for each in zip(results, truth, scales) if math.isfinite(each[0])]       # noqa: B905
    errors = [abs(result - true) / scale if scale else abs(result - true) for result, true, scale in finite]
    return {"of": of, "largest_error": max(errors, default=0.0), "tolerance": tolerance, "relative": True,
            "nan": sum(map(math.isnan, results)), "infinite": sum(map(math.isinf, results))}


def made(torch: Any, *shape: int, seed: int = 0) -> Any:
    """Normally distributed float32 numbers on the CPU, the same each time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def gradients(operation: Any, inputs: list[Any], upstream: Any) -> list[Any]:
    """Of each of `inputs`."""
    leaves = [each.detach().clone().requires_grad_() for each in inputs]
    operation(*leaves).backward(upstream)
    return [each.grad for each in leaves]
