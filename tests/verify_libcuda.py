"""A small libcuda for machines without a GPU: device memory is the process's own, and its kernels run on the CPU.

The first four variables of the process say what goes wrong: STANDIN_FAIL=call:code, STANDIN_CRASH=call,
STANDIN_HANG=call, STANDIN_WRONG=saxpy|nan|inf|mirror|nothing; STANDIN_DEVICES is how many devices there are.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

needs_gcc = pytest.mark.skipif(not shutil.which("gcc") or platform.libc_ver()[0] != "glibc",
                               reason="gcc makes a stand-in for libcuda")
# In the order in which a probe of one device calls them first
CALLS = ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem_v2",
         "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadDataEx", "cuMemAlloc_v2",
         "cuMemcpyHtoD_v2", "cuModuleGetFunction", "cuLaunchKernel", "cuCtxSynchronize", "cuMemcpyDtoH_v2",
         "cuMemFree_v2", "cuModuleUnload", "cuDevicePrimaryCtxRelease")
SOURCE = r"""
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char *variable, const char *value) {
    const char *said = getenv(variable);
    return said && !strcmp(said, value);
}

static int fate(const char *call) {
    const char *fail = getenv("STANDIN_FAIL");
    size_t length = strlen(call);
    if (is("STANDIN_CRASH", call)) raise(SIGSEGV);
    if (is("STANDIN_HANG", call)) for (;;) pause();
    return fail && !strncmp(fail, call, length) && fail[length] == ':' ? atoi(fail + length + 1) : 0;
}
#define CALL int code = fate(__func__); if (code) return code

typedef struct { int kind; } Kernel;
static Kernel kernels[2] = {{0}, {1}};

int cuGetErrorName(int code, const char **name) {
    *name = code == 100 ? "CUDA_ERROR_NO_DEVICE" : code == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : "CUDA_ERROR_X";
    return 0;
}
int cuInit(unsigned flags) { CALL; return flags ? 1 : 0; }
int cuDriverGetVersion(int *version) { CALL; *version = 12040; return 0; }
int cuDeviceGetCount(int *count) {
    CALL;
    *count = getenv("STANDIN_DEVICES") ? atoi(getenv("STANDIN_DEVICES")) : 1;
    return 0;
}
int cuDeviceGet(int *device, int place) { CALL; *device = place; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
    CALL;
    snprintf(name, length, "Stand-in %d", device);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { CALL; *bytes = (size_t)6 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    CALL;
    *value = attribute == 75 ? 8 : attribute == 76 ? 6 : attribute == 16 ? 28 : -1;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { CALL; *context = kernels; return 0; }
int cuCtxSetCurrent(void *context) { CALL; return context == kernels ? 0 : 201; }
int cuModuleLoadDataEx(void **module, const char *text, unsigned count, int *options, void **values) {
    if (count == 2 && options[0] == 5 && options[1] == 6 && getenv("STANDIN_FAIL"))
        snprintf(values[0], (size_t)values[1], "ptxas fatal: the log");
    CALL;
    *module = kernels;
    return strstr(text, ".entry saxpy") && strstr(text, ".entry mirror") ? 0 : 218;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    CALL;
    *function = !strcmp(name, "saxpy") ? &kernels[0] : !strcmp(name, "mirror") ? &kernels[1] : NULL;
    return *function ? 0 : 500;
}
int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) { CALL; *pointer = (uint64_t)malloc(bytes); return 0; }
int cuMemFree_v2(uint64_t pointer) { CALL; free((void *)pointer); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) { CALL; memcpy((void *)to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { CALL; memcpy(to, (void *)from, bytes); return 0; }

static void saxpy(float *y, const float *x, float a, uint32_t n, uint32_t threads) {
    for (uint32_t i = 0; i < n && i < threads; i++) y[i] = fmaf(a, x[i], y[i]);
    if (is("STANDIN_WRONG", "saxpy")) y[n - 1] *= 1.00001f;
    if (is("STANDIN_WRONG", "nan")) y[7] = NAN;
    if (is("STANDIN_WRONG", "inf")) y[7] = y[9] = INFINITY;
}
static void mirror(uint32_t *out, uint32_t seed, uint32_t blocks, uint32_t threads) {
    for (uint32_t block = 0; block < blocks; block++)
        for (uint32_t thread = 0; thread < threads; thread++) {
            uint32_t mixed = (block * threads + thread + seed) * 1664525u + 1013904223u;
            out[block * threads + threads - 1 - thread] = (mixed ^ (mixed >> 15)) * 739982445u;
        }
    if (is("STANDIN_WRONG", "mirror")) out[11] ^= 1;
}
int cuLaunchKernel(void *function, unsigned blocks, unsigned one, unsigned two, unsigned threads, unsigned three,
                   unsigned four, unsigned shared, void *stream, void **arguments, void **extra) {
    CALL;
    if (one != 1 || two != 1 || three != 1 || four != 1 || shared || stream || extra) return 1;
    if (is("STANDIN_WRONG", "nothing")) return 0;
    if (function == &kernels[0])
        saxpy(*(float **)arguments[0], *(float **)arguments[1], *(float *)arguments[2], *(uint32_t *)arguments[3],
              blocks * threads);
    else
        mirror(*(uint32_t **)arguments[0], *(uint32_t *)arguments[1], blocks, threads);
    return 0;
}
int cuCtxSynchronize(void) { CALL; return 0; }
int cuModuleUnload(void *module) { CALL; return 0; }
int cuDevicePrimaryCtxRelease(int device) { CALL; return 0; }
"""


def bare_python(folder: Path) -> Path:
    """The Python of a new venv that has nothing installed, whatever that of the tests has."""
    venv.create(folder / "bare", with_pip=False, symlinks=True)
    return folder / "bare" / "bin" / "python"


def make_libcuda(folder: Path, source: str = SOURCE) -> Path:
    """A folder for LD_LIBRARY_PATH with libcuda.so.1 in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "libcuda.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-ffp-contract=off", "-Wl,-soname,libcuda.so.1", "-o",
                    "libcuda.so.1", "libcuda.c", "-lm"], cwd=folder, check=True, timeout=120)
    return folder
