"""Virtual packages of the machine that a lock is for. Nothing of the running machine is read here.

Its driver comes in as `--driver auto`, which the command line turns into a version; otherwise the same request gives
the same lock on a laptop as on a GPU host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from stackfix.conda.records import VirtualPackage
from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.matrix.records import Matrix
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.records import StackRequest, Target

# The kernel of the oldest distribution with the default glibc (RHEL 8); channels ask for no newer one.
LINUX = "4.18"
# The baseline of each architecture: every server has it, and channels build for it what they build for newer ones.
ARCHSPEC = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_ARCHSPEC = re.compile(r"[A-Za-z0-9_]+")


def virtual_packages(
    request: StackRequest, target: Target, cuda: str, *, matrix: Matrix, environ: Mapping[str, str]
) -> tuple[VirtualPackage, ...]:
    """What the machine offers, sorted by name, each with how it is known. `cuda`: of the stack, "cpu" for none.

    Raises BadInput for a CONDA_OVERRIDE_… that is no version.
    """
    found = [
        VirtualPackage(name="__unix", version="0", origin=f"--platform {target.platform}"),
        _linux(environ), _glibc(request, target, environ), _archspec(target, environ),
        *_cuda(request, cuda, matrix, environ),
    ]
    return tuple(sorted(found, key=lambda one: one.name))


def _cuda(
    request: StackRequest, cuda: str, matrix: Matrix, environ: Mapping[str, str]
) -> Iterator[VirtualPackage]:
    """`__cuda`: the newest CUDA of the driver. None without one."""
    if request.driver is not None:
        ceiling = query.jit_cuda_of_driver(matrix, request.driver) or query.newest_cuda_for_driver(
            matrix, request.driver)
        origin = f"--driver {request.driver}"
        if request.cuda_compat and cuda != query.CPU and (ceiling is None or _order(cuda) > _order(ceiling)):
            ceiling, origin = cuda, f"{origin} with --cuda-compat for CUDA {cuda}"
        if ceiling is not None:
            yield VirtualPackage(name="__cuda", version=ceiling, origin=origin)
        return
    override = environ.get("CONDA_OVERRIDE_CUDA", "").strip()
    if override:
        yield VirtualPackage(
            name="__cuda", version=_checked("CONDA_OVERRIDE_CUDA", override), origin="CONDA_OVERRIDE_CUDA")
    elif cuda != query.CPU and not request.no_driver:
        asked = f"--cuda {request.cuda}" if request.cuda is not None else f"CUDA {cuda} of the stack"
        yield VirtualPackage(name="__cuda", version=cuda, origin=f"taken as {asked}")


def _order(cuda: str) -> tuple[int, ...]:
    return tuple(int(part) for part in cuda.split("."))


def _glibc(request: StackRequest, target: Target, environ: Mapping[str, str]) -> VirtualPackage:
    override = environ.get("CONDA_OVERRIDE_GLIBC", "").strip()
    if request.glibc == StackRequest().glibc and override:
        return VirtualPackage(
            name="__glibc", version=_checked("CONDA_OVERRIDE_GLIBC", override), origin="CONDA_OVERRIDE_GLIBC")
    asked = request.glibc != StackRequest().glibc
    origin = f"--glibc {target.glibc}" if asked else f"taken as glibc {target.glibc}, which the wheels may need as well"
    return VirtualPackage(name="__glibc", version=target.glibc, origin=origin)


def _linux(environ: Mapping[str, str]) -> VirtualPackage:
    override = environ.get("CONDA_OVERRIDE_LINUX", "").strip()
    if override:
        return VirtualPackage(
            name="__linux", version=_checked("CONDA_OVERRIDE_LINUX", override), origin="CONDA_OVERRIDE_LINUX")
    return VirtualPackage(name="__linux", version=LINUX, origin=f"taken as kernel {LINUX}")


def _archspec(target: Target, environ: Mapping[str, str]) -> VirtualPackage:
    override = environ.get("CONDA_OVERRIDE_ARCHSPEC", "").strip()
    if override:
        if not _ARCHSPEC.fullmatch(override):
            raise BadInput("CONDA_OVERRIDE_ARCHSPEC", f"{override!r} is no name of a micro-architecture",
                           "write it as x86_64_v3")
        if override.startswith("x86_64") is (target.platform == "linux-64"):
            return VirtualPackage(name="__archspec", version="1", build=override, origin="CONDA_OVERRIDE_ARCHSPEC")
    own = ARCHSPEC[target.platform]
    return VirtualPackage(name="__archspec", version="1", build=own, origin=f"taken as {own}, which every server has")


def _checked(name: str, value: str) -> str:
    if _VERSION.fullmatch(value.strip()) is None or parse_version(value.strip()) is None:
        raise BadInput(name, f"{value!r} is no version", "write it as 12.2, or unset it")
    return value.strip()
