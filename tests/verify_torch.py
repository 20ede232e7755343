"""A torch of a few lines, for PYTHONPATH: every tensor has one value, and FAKE_TORCH says how it misbehaves."""

from __future__ import annotations

from pathlib import Path

SOURCE = """
import os, signal, sys, types

HOW = os.environ.get("FAKE_TORCH", "")
print("a banner on standard output")
sys.stdout.flush()
if HOW == "import error":
    try:
        raise OSError("libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12")
    except OSError as error:
        raise ImportError("torch could not be imported") from error
if HOW == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if HOW == "hang":
    import time
    time.sleep(600)
if HOW == "exit":
    sys.exit("good bye")
if HOW == "silent exit":
    os._exit(0)

__version__ = "2.3.1+fake"
version = types.SimpleNamespace(cuda=None if HOW == "cpu build" else "12.1", hip="6.0" if HOW == "rocm" else None)
if HOW == "rocm":
    version.cuda = None
float16 = bfloat16 = float32 = bool = object()


class Tensor:
    def __init__(self, value, shape, device="cpu"):
        self.value, self.shape, self.device = value, shape, device

    def to(self, where):
        return Tensor(self.value, self.shape, where) if isinstance(where, str) else self

    def double(self):
        return self

    detach = clone = flatten = double

    def abs(self):
        return Tensor(abs(self.value), self.shape, self.device)

    def __add__(self, number):
        return Tensor(self.value + number, self.shape, self.device)

    def __matmul__(self, other):
        misbehave(self.device)
        value = self.value * other.value * self.shape[1]
        if self.device == "cuda":
            value = {"nan": float("nan"), "inf": float("inf"), "wrong": value * 1.01}.get(HOW, value)
        return Tensor(value, (self.shape[0], other.shape[1]), self.device)

    def tolist(self):
        count = 1
        for each in self.shape:
            count *= each
        return [self.value] * count


def misbehave(device):
    if device != "cuda":
        return
    if HOW == "no image":
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")
    if HOW == "out of memory":
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 MiB.")
    if HOW == "cudnn aborts":
        sys.stderr.write("Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: cannot open shared "
                         "object file: No such file or directory\\n")
        sys.stderr.flush()
        os.abort()
    if HOW == "lacks a function":
        sys.stderr.write("python: symbol lookup error: libcudnn_ops.so: undefined symbol: cudnnGetLibConfig\\n")
        os._exit(127)
    if HOW == "kernel hangs":
        import time
        time.sleep(600)
    if HOW == "crashes at exit":
        import atexit
        atexit.register(os.kill, os.getpid(), signal.SIGSEGV)


class Generator:
    def manual_seed(self, seed):
        return self


def randn(*shape, generator=None):
    return Tensor(1.5, shape)


def no_driver():
    if HOW == "old driver":
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).")
    if HOW == "no gpu":
        raise RuntimeError("No CUDA GPUs are available")


cuda = types.SimpleNamespace(init=no_driver, synchronize=lambda: None, get_arch_list=lambda: ["sm_80"],
                             get_device_name=lambda place: "Fake", get_device_capability=lambda place: (8, 0))
backends = types.SimpleNamespace(
    cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=False)),
    cudnn=types.SimpleNamespace(allow_tf32=True, enabled=HOW != "no cudnn", is_available=lambda: True))
nn = types.SimpleNamespace(functional=types.SimpleNamespace())
"""


def make_torch(folder: Path) -> Path:
    """A folder for PYTHONPATH."""
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text(SOURCE)
    return folder
