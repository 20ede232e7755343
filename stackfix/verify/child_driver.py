"""The driver through ctypes: its devices, and two kernels on one of them. Runs in a child; see `child_talk`."""

from __future__ import annotations

import ctypes
import glob
import os
import re
from array import array
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p
from typing import Any

from stackfix.verify.child_kernels import BLOCK, PTX, mirror, saxpy, waves
from stackfix.verify.child_talk import Talk

LIBRARY = "libcuda.so.1"
NODES = ("/dev/nvidia[0-9]*", "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu")     # discrete, WSL, two of Jetson
KERNEL_MODULE = "/proc/driver/nvidia/version"
MAJOR, MINOR, PROCESSORS = 75, 76, 16           # CUdevice_attribute
ERROR_LOG, ERROR_LOG_SIZE = 5, 6                # CUjit_option
COMPILE, LOG_BYTES = "cuModuleLoadDataEx", 4096
COUNT = 100_003     # no multiple of a block: some threads have nothing to do
BLOCKS, SEED = 40, 20_240_607
A = 1.375           # is a float32
SINGLE = 2.0 ** -23     # relative; one rounding of a fused multiply-add is half of it


class CallFailed(Exception):
    """A call of the driver that did not answer 0."""

    def __init__(self, call: str, code: int, name: str, log: str) -> None:
        super().__init__(call, code)
        self.facts = {"call": call, "code": code, "name": name, "log": log}


class Driver:
    """libcuda, each call said before it is made."""

    def __init__(self, library: Any, talk: Talk) -> None:
        self._library, self._talk = library, talk
        self._log = ctypes.create_string_buffer(LOG_BYTES)

    def call(self, name: str, *arguments: Any) -> None:
        """Raises CallFailed for any answer but 0, AttributeError where the library has no such function."""
        self._talk.at(name)
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            log = self._log.value.decode("utf-8", "replace").strip() if name == COMPILE else ""
            raise CallFailed(name, code, self.name_of(code), log)

    def name_of(self, code: int) -> str:
        """CUDA_ERROR_NO_DEVICE for 100, as the driver spells it."""
        text = c_char_p()
        try:
            self._library.cuGetErrorName(c_int(code), byref(text))
        except AttributeError:
            return ""
        return (text.value or b"").decode("utf-8", "replace")

    def number(self, name: str, *arguments: Any) -> int:
        """What a call puts into its first argument."""
        value = c_int(0)
        self.call(name, byref(value), *arguments)
        return value.value

    def module(self, text: str) -> c_void_p:
        """PTX compiled by the driver."""
        module = c_void_p()
        options = (c_int * 2)(ERROR_LOG, ERROR_LOG_SIZE)
        values = (c_void_p * 2)(ctypes.cast(self._log, c_void_p), c_void_p(LOG_BYTES))
        self.call(COMPILE, byref(module), c_char_p(text.encode()), c_uint(2), options, values)
        return module


class Buffer:
    """Memory of the device that begins as a copy of `host`."""

    def __init__(self, driver: Driver, host: Any) -> None:
        self._driver, self._host, self.pointer = driver, host, c_void_p()
        self._bytes = c_size_t(len(host) * host.itemsize)
        driver.call("cuMemAlloc_v2", byref(self.pointer), self._bytes)
        driver.call("cuMemcpyHtoD_v2", self.pointer, c_void_p(host.buffer_info()[0]), self._bytes)

    def read(self) -> list[Any]:
        """What is there now; the memory is given back."""
        self._driver.call("cuMemcpyDtoH_v2", c_void_p(self._host.buffer_info()[0]), self.pointer, self._bytes)
        self._driver.call("cuMemFree_v2", self.pointer)
        return list(self._host)


def about_driver(request: dict[str, Any], talk: Talk) -> dict[str, Any]:
    """The part of a child that asks the driver: `devices`, or `kernels` on one of them."""
    facts: dict[str, Any] = {"nodes": sorted(path for each in NODES for path in glob.glob(each)),  # noqa: PTH207
                             "kernel_module": kernel_module(), "visible": os.environ.get("CUDA_VISIBLE_DEVICES")}
    talk.at("dlopen " + LIBRARY)
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        return {**facts, "not_loaded": str(error)}
    driver = Driver(library, talk)
    try:
        driver.call("cuInit", c_uint(0))
        more = devices(driver) if request["task"] == "devices" else kernels(driver, request["device"])
    except CallFailed as error:
        return {**facts, "failed": error.facts}
    except AttributeError as error:
        return {**facts, "lacks": str(error)}
    return {**facts, **more}


def kernel_module() -> str:
    """550.54.15, or nothing where no driver of NVIDIA's is loaded, and on WSL."""
    try:
        with open(KERNEL_MODULE, encoding="utf-8", errors="replace") as stream:     # noqa: PTH123
            found = re.search(r"Kernel Module[^\d\n]*(?:x86_64|aarch64)?\s+(\d+\.[\d.]+)", stream.read())
    except OSError:
        return ""
    return found.group(1) if found else ""


def devices(driver: Driver) -> dict[str, Any]:
    version = driver.number("cuDriverGetVersion")
    told = []
    for place in range(driver.number("cuDeviceGetCount")):
        device = c_int(driver.number("cuDeviceGet", c_int(place)))
        name = ctypes.create_string_buffer(256)
        driver.call("cuDeviceGetName", name, c_int(256), device)
        size = c_size_t()
        driver.call("cuDeviceTotalMem_v2", byref(size), device)
        major, minor, processors = (
            driver.number("cuDeviceGetAttribute", c_int(each), device) for each in (MAJOR, MINOR, PROCESSORS))
        told.append({"name": name.value.decode("utf-8", "replace"), "capability": f"{major}.{minor}",
                     "processors": processors, "bytes": size.value})
    return {"cuda": f"{version // 1000}.{version % 1000 // 10}", "devices": told}


def kernels(driver: Driver, place: int) -> dict[str, Any]:
    """Both kernels compiled, run, and their numbers compared."""
    device, context = c_int(driver.number("cuDeviceGet", c_int(place))), c_void_p()
    driver.call("cuDevicePrimaryCtxRetain", byref(context), device)
    driver.call("cuCtxSetCurrent", context)
    module = driver.module(PTX)
    accuracy = [of_saxpy(driver, module), of_mirror(driver, module)]
    driver.call("cuModuleUnload", module)
    driver.call("cuDevicePrimaryCtxRelease", device)
    return {"accuracy": accuracy}


def launch(driver: Driver, module: c_void_p, name: str, blocks: int, *arguments: Any) -> None:
    """Runs a kernel to its end."""
    function, one, none = c_void_p(), c_uint(1), c_uint(0)
    driver.call("cuModuleGetFunction", byref(function), module, c_char_p(name.encode()))
    pointers = (c_void_p * len(arguments))(*(ctypes.cast(ctypes.pointer(each), c_void_p) for each in arguments))
    driver.call("cuLaunchKernel", function, c_uint(blocks), one, one, c_uint(BLOCK), one, one, none, c_void_p(),
                pointers, c_void_p())
    driver.call("cuCtxSynchronize")


def of_saxpy(driver: Driver, module: c_void_p) -> dict[str, Any]:
    x, y = array("f", waves(COUNT, 0.37)), array("f", waves(COUNT, 0.11))
    want = saxpy(A, list(x), list(y))
    there, result = Buffer(driver, x), Buffer(driver, y)
    launch(driver, module, "saxpy", -(-COUNT // BLOCK), result.pointer, there.pointer, c_float(A), c_uint(COUNT))
    there.read()
    got = result.read()
    wrong = [0.0] + [abs(left - right) / abs(right) for left, right in zip(got, want)    # noqa: B905
                     if abs(left) < float("inf") and right]
    return {"of": "saxpy", "largest_error": max(wrong), "tolerance": SINGLE, "relative": True,
            "nan": sum(each != each for each in got),       # noqa: PLR0124 - so is NaN found
            "infinite": sum(abs(each) == float("inf") for each in got)}


def of_mirror(driver: Driver, module: c_void_p) -> dict[str, Any]:
    out = Buffer(driver, array("I", [0]) * (BLOCKS * BLOCK))
    launch(driver, module, "mirror", BLOCKS, out.pointer, c_uint(SEED))
    wrong = max(abs(left - right) for left, right in zip(out.read(), mirror(SEED, BLOCKS)))  # noqa: B905
    return {"of": "integers", "largest_error": float(wrong), "tolerance": 0.0, "relative": False, "nan": 0,
            "infinite": 0}
