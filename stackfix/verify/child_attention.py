"""Attention on the GPU: torch's backends, each alone, and flash-attn. Runs in a child; see `child_talk`."""

from __future__ import annotations

import importlib
import math
import warnings
from typing import Any

from stackfix.verify.child_compare import Declined, compared, gradients, made

# Relative to the largest true element: the weights of a row are rounded to the type, and so is the output.
FORWARD, BACKWARD = 5e-3, 2e-2
BACKENDS = {        # name -> (torch 2.3 and later, keyword before)
    "math": ("MATH", "enable_math"),
    "flash": ("FLASH_ATTENTION", "enable_flash"),
    "efficient": ("EFFICIENT_ATTENTION", "enable_mem_efficient"),
    "cudnn": ("CUDNN_ATTENTION", None),
}
# torch's words where every backend that is allowed declines
NONE_TAKES_IT = ("No available kernel", "No viable backend")


def exact_attention(torch: Any) -> Any:
    """Causal attention over (batch, head, place, feature), by its definition."""
    def operation(query: Any, key: Any, value: Any) -> Any:
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ value

    return operation


def only(torch: Any, backend: str) -> Any:
    """A context in which torch may take this backend alone. Raises Declined where this torch has no such thing."""
    name, keyword = BACKENDS[backend]
    too_old = Declined(f"torch {torch.__version__} has no such backend")
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        raise too_old
    try:
        module = importlib.import_module("torch.nn.attention")
    except ImportError:
        if keyword is None:
            raise too_old from None
        keywords = [each for _, each in BACKENDS.values() if each]
        return torch.backends.cuda.sdp_kernel(**{each: each == keyword for each in keywords})
    if not hasattr(module.SDPBackend, name):
        raise too_old
    return module.sdpa_kernel([getattr(module.SDPBackend, name)])


def attention(torch: Any, device: str, *, backend: str) -> Any:
    """Forward and backward of one of torch's backends."""
    kind = torch.float32 if device == "cpu" else torch.float16
    inputs = [made(torch, 2, 4, 128, 64, seed=seed).to(kind) for seed in range(3)]

    def operation(query: Any, key: Any, value: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")     # in which torch tells why a backend declines
        with only(torch, backend):
            try:
                results = both_ways(torch, operation, inputs, device)
            except RuntimeError as error:
                if not str(error).startswith(NONE_TAKES_IT):
                    raise
                reasons = [str(each.message).partition("(Triggered")[0].strip() for each in said]
                raise Declined("; ".join(dict.fromkeys(reasons)) or str(error)) from error
    exact = both_ways(torch, exact_attention(torch), [each.double() for each in inputs], "cpu")
    yield from differences(results, exact)


def both_ways(torch: Any, operation: Any, inputs: list[Any], device: str) -> list[Any]:
    """The output and the three gradients."""
    there = [each.to(device) for each in inputs]
    upstream = made(torch, *inputs[0].shape, seed=3).to(inputs[0].dtype).to(device)
    output = operation(*there)
    found = [output, *gradients(operation, there, upstream)]
    return [each.detach().to("cpu") for each in found]


def differences(results: list[Any], exact: list[Any]) -> Any:
    names = ("output", "gradient of the queries", "gradient of the keys", "gradient of the values")
    for name, got, want in zip(names, results, exact):      # noqa: B905 - strict came with Python 3.10
        yield compared(name, got, want, FORWARD if name == "output" else BACKWARD)


def flash_attention(torch: Any, device: str, *, backward: bool) -> Any:
    """flash-attn's own function over (batch, place, head, feature)."""
    flash_attn = importlib.import_module("flash_attn")
    function = getattr(flash_attn, "flash_attn_func", None)
    if function is None:
        raise Declined(f"flash-attn {getattr(flash_attn, '__version__', '')} has no flash_attn_func")
    inputs = [made(torch, 2, 4, 128, 64, seed=seed).to(torch.float16) for seed in range(3)]

    def operation(query: Any, key: Any, value: Any) -> Any:
        turned = [each.transpose(1, 2).contiguous() for each in (query, key, value)]
        return function(*turned, causal=True).transpose(1, 2)

    if backward:
        results = both_ways(torch, operation, inputs, device)[1:]
        exact = both_ways(torch, exact_attention(torch), [each.double() for each in inputs], "cpu")
        yield from differences([exact[0], *results], exact)
        return
    got = operation(*(each.to(device) for each in inputs))
    exact = exact_attention(torch)(*(each.double() for each in inputs))
    yield compared("output", got, exact, FORWARD)
