"""torch's operations on the GPU beside the CPU in float64. Runs in a child; see `child_talk`.

A tolerance bounds what a right result can lose. Of sums of products it is relative to the sum of the products'
magnitudes, for that is what rounding is in proportion to (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
"""

from __future__ import annotations

import copy
import importlib
from typing import Any

from stackfix.verify.child_attention import attention, flash_attention
from stackfix.verify.child_compare import Declined, compared, gradients, made
from stackfix.verify.child_talk import Talk

TERMS = 512         # of one sum of a product
MATMUL = {          # name -> (type, tolerance): float32 sums, then one rounding of the type
    "fp32": ("float32", TERMS * 2.0 ** -24),
    "tf32": ("float32", 2 * 2.0 ** -11 + TERMS * 2.0 ** -24),       # both factors are rounded to 11 bits
    "bf16": ("bfloat16", 2.0 ** -8),
    "fp16": ("float16", 2.0 ** -11),
}
SUMS = 1e-4         # convolutions (Winograd's are less exact than sums), normalisation, recurrent networks: fp32
SOLVED = 1e-3       # of a well-conditioned system
FOURIER = 1e-5


def about_torch(request: dict[str, Any], talk: Talk) -> dict[str, Any]:
    """The part of a child that runs one operation of TASKS on `device`: "cuda", or "cpu" to try the arithmetic."""
    talk.at("import torch")
    torch = importlib.import_module("torch")
    device, task = request["device"], request["task"]
    talk.at(task)
    try:
        facts: dict[str, Any] = TASKS[task](torch, device, talk)
    except Declined as error:
        return {"declined": str(error)}
    return facts


def checked(name: str, device: str, talk: Talk, torch: Any, comparisons: Any) -> dict[str, Any]:
    """The comparisons, once the device has said that nothing failed."""
    talk.at(name)
    accuracy = list(comparisons(torch, device))
    if device != "cpu":
        torch.cuda.synchronize()
    return {"accuracy": accuracy}


def start(torch: Any, device: str, talk: Talk) -> dict[str, Any]:
    """One addition on the device; what torch says of itself and of it."""
    facts = {"version": str(torch.__version__), "cuda": getattr(torch.version, "cuda", None),
             "hip": getattr(torch.version, "hip", None)}
    if device != "cpu":
        if facts["cuda"] is None:
            return {**facts, "without_cuda": True}
        talk.at("torch.cuda.init")
        torch.cuda.init()
        facts["archs"] = list(torch.cuda.get_arch_list())
        facts["device"] = str(torch.cuda.get_device_name(0))
        facts["capability"] = ".".join(map(str, torch.cuda.get_device_capability(0)))
    talk.at("an addition")
    left = made(torch, 1000)
    got = left.to(device) + 1
    return {**facts, "accuracy": [compared("sum", got, left.double() + 1, 2.0 ** -23)]}


def matmul(torch: Any, device: str, kind: str) -> Any:
    name, tolerance = MATMUL[kind]
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    left, right = (made(torch, *shape).to(getattr(torch, name)) for shape in ((256, TERMS), (TERMS, 192)))
    got = left.to(device) @ right.to(device)
    exact = left.double(), right.double()
    yield compared("product", got, exact[0] @ exact[1], tolerance, exact[0].abs() @ exact[1].abs())


def must_have_cudnn(torch: Any, device: str) -> None:
    """Without it torch computes all the same, and nothing of cuDNN is shown."""
    torch.backends.cudnn.allow_tf32 = False
    if device != "cpu" and not (torch.backends.cudnn.enabled and torch.backends.cudnn.is_available()):
        raise RuntimeError("torch does not use cuDNN here")


def conv2d(torch: Any, device: str, *, backward: bool) -> Any:
    must_have_cudnn(torch, device)

    def operation(image: Any, weight: Any) -> Any:
        return torch.nn.functional.conv2d(image, weight, padding=1)

    inputs, upstream = [made(torch, 4, 16, 32, 32), made(torch, 32, 16, 3, 3)], made(torch, 4, 32, 32, 32)
    there, exact = [each.to(device) for each in inputs], [each.double() for each in inputs]
    sizes = [each.abs() for each in exact]
    if not backward:
        yield compared("output", operation(*there), operation(*exact), SUMS, operation(*sizes))
        return
    yield from compared_gradients(
        ("gradient of the image", "gradient of the weight"), gradients(operation, there, upstream.to(device)),
        gradients(operation, exact, upstream.double()),
        gradients(operation, sizes, upstream.double().abs()))


def compared_gradients(names: Any, got: Any, want: Any, sizes: Any) -> Any:
    for name, result, true, size in zip(names, got, want, sizes):       # noqa: B905 - strict came with Python 3.10
        yield compared(name, result, true, SUMS, size)


def batch_norm(torch: Any, device: str) -> Any:
    must_have_cudnn(torch, device)

    def operation(image: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.batch_norm(image, None, None, weight, bias, training=True)

    inputs, upstream = [made(torch, 8, 32, 16, 16) + 3, made(torch, 32), made(torch, 32, seed=1)], \
        made(torch, 8, 32, 16, 16, seed=1)
    there, exact = [each.to(device) for each in inputs], [each.double() for each in inputs]
    yield compared("output", operation(*there), operation(*exact), SUMS)
    yield from compared_gradients(
        ("gradient of the image", "gradient of the weight", "gradient of the bias"),
        gradients(operation, there, upstream.to(device)),
        gradients(operation, exact, upstream.double()), (None, None, None))


def rnn(torch: Any, device: str) -> Any:
    """An LSTM of two layers in both directions, forward and backward."""
    must_have_cudnn(torch, device)
    torch.manual_seed(0)
    network = torch.nn.LSTM(32, 48, num_layers=2, bidirectional=True)
    exact, there = copy.deepcopy(network).double(), network.to(device)
    words, upstream = made(torch, 20, 8, 32), made(torch, 20, 8, 96)

    def outputs(network: Any) -> Any:
        return lambda words: network(words)[0]

    yield compared("output", outputs(there)(words.to(device)), outputs(exact)(words.double()), SUMS)
    got = gradients(outputs(there), [words.to(device)], upstream.to(device))
    want = gradients(outputs(exact), [words.double()], upstream.double())
    yield compared("gradient of the words", got[0], want[0], SUMS)
    yield compared("gradient of a weight", there.weight_hh_l0.grad, exact.weight_hh_l0.grad, SUMS)


def linalg(torch: Any, device: str) -> Any:
    """A system of equations: cuSOLVER and cuBLAS."""
    left, right = made(torch, 96, 96) + 20 * torch.eye(96), made(torch, 96, 8)
    got = torch.linalg.solve(left.to(device), right.to(device))
    yield compared("solution", got, torch.linalg.solve(left.double(), right.double()), SOLVED)


def fft(torch: Any, device: str) -> Any:
    """A Fourier transform: cuFFT."""
    signal = made(torch, 4, 1000)
    got, want = torch.fft.rfft(signal.to(device)), torch.fft.rfft(signal.double())
    yield compared("real part", got.real, want.real, FOURIER)
    yield compared("imaginary part", got.imag, want.imag, FOURIER)


def sparse(torch: Any, device: str) -> Any:
    """A sparse matrix times a dense one: cuSPARSE, which needs nvJitLink."""
    left, right = made(torch, 128, 160), made(torch, 160, 24)
    left = left * (left > 1)
    got = torch.sparse.mm(left.to(device).to_sparse(), right.to(device))
    yield compared("product", got, left.double() @ right.double(), TERMS * 2.0 ** -24,
                   left.double().abs() @ right.double().abs())


def plain(name: str, comparisons: Any, **options: Any) -> Any:
    """A task that yields comparisons."""
    return lambda torch, device, talk: checked(name, device, talk, torch,
                                               lambda torch, device: comparisons(torch, device, **options))


TASKS: dict[str, Any] = {
    "start": start,
    **{"matmul." + kind: plain("matmul." + kind, matmul, kind=kind) for kind in MATMUL},
    "conv2d.forward": plain("conv2d.forward", conv2d, backward=False),
    "conv2d.backward": plain("conv2d.backward", conv2d, backward=True),
    "batch_norm": plain("batch_norm", batch_norm),
    "rnn": plain("rnn", rnn),
    **{"sdpa." + each: plain("sdpa." + each, attention, backend=each)
       for each in ("math", "flash", "efficient", "cudnn")},
    "linalg": plain("linalg", linalg),
    "fft": plain("fft", fft),
    "sparse": plain("sparse", sparse),
    "flash-attn.forward": plain("flash-attn.forward", flash_attention, backward=False),
    "flash-attn.backward": plain("flash-attn.backward", flash_attention, backward=True),
}
