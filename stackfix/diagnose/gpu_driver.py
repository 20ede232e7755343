"""Whether the driver is new enough for the CUDA of an environment."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.diagnose.finding_records import Culprit, Finding, Requester
from stackfix.diagnose.gpu_cures import other_builds
from stackfix.diagnose.installed_torch import installed_torch, numbers
from stackfix.diagnose.machine_libraries import OUTSIDE, user_driver
from stackfix.diagnose.make_finding import make_finding
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Undecided


def check_driver_age(view: View) -> Iterator[Finding | Undecided]:
    """SF901. By minor-version compatibility a driver of CUDA 12 runs programs of every CUDA 12."""
    name, cuda = cuda_wanted(view)
    if cuda is None:
        return
    driver = user_driver(view)
    if driver is None:
        reason = "no driver's version is known here" if view.machine.live else "a tree meets its driver when it is run"
        yield Undecided(subject="driver-too-old", reason=f"{name} is for CUDA {cuda}: whether the driver is new enough "
                        f"cannot be told, since {reason}")
        return
    from stackfix.matrix.query import driver_floor, driver_supports, jit_cuda_of_driver

    floor, runs, own = driver_floor(view.matrix, cuda), driver_supports(view.matrix, driver, cuda), \
        jit_cuda_of_driver(view.matrix, driver)
    if floor is None or runs is None:
        yield Undecided(subject="driver-too-old", reason=f"no minimum driver is known for CUDA {cuda} ({name})")
    elif not runs:
        yield too_old(view, name, cuda, driver, own, floor.floor, floor.source)
    elif own is not None and "." in cuda and numbers(own) < numbers(cuda):
        yield make_finding(
            "SF901", "note", summary=f"Driver {driver} is of CUDA {own}, {name} of CUDA {cuda}",
            why=f"It runs by minor-version compatibility. Only PTX (code that the driver compiles at run time) of a "
                f"CUDA newer than {own} is refused.", culprit=Culprit(package=f"NVIDIA driver {driver}"),
            requester=Requester(package=name), evidence=(f"the driver itself came with CUDA {own}",),
            error="RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain",
            cure=(f"a driver of CUDA {cuda} or newer",), why_not=OUTSIDE)


def too_old(view: View, name: str, cuda: str, driver: str, own: str | None, floor: str,
            source: str) -> Finding:
    """SF901 as an error."""
    found = "" if own is None else f" (found version {int(own.split('.')[0]) * 1000 + int(own.split('.')[1]) * 10})"
    module, torch = view.machine.driver.kernel_module, installed_torch(view)
    return make_finding(
        "SF901", "error", summary=f"Driver {driver} is too old for CUDA {cuda}, which {name} was built for",
        why=f"CUDA {cuda.partition('.')[0]} needs driver {floor} or newer" + (
            f"; this one is of CUDA {own}." if own else ".") + " A CUDA toolkit on disk makes no difference.",
        culprit=Culprit(package=f"NVIDIA driver {driver}"), requester=Requester(package=name),
        evidence=(f"kernel module {module.version} ({module.found_via})" if module else f"driver {driver}",
                  f"oldest driver for CUDA {cuda.partition('.')[0]}: {floor} ({source})"),
        error=f"RuntimeError: The NVIDIA driver on your system is too old{found}.",
        cure=(f"upgrade the driver to {floor} or newer", *(other_builds(view, torch, driver) if torch else ())),
        why_not="the driver lies outside of the environment, and another CUDA is another stack")


def cuda_wanted(view: View) -> tuple[str, str | None]:
    """(who, CUDA version) that the driver must run: torch's, else that of the newest CUDA runtime wheel."""
    torch = installed_torch(view)
    if torch is not None:
        return torch.name, torch.cuda if torch.cuda_major is not None else None
    runtimes = [each for each in view.distributions.values() if each.name.startswith("nvidia-cuda-runtime")]
    newest = max(runtimes, key=lambda each: numbers(each.version), default=None)
    if newest is None:
        return "", None
    return f"{newest.name} {newest.version}", ".".join(newest.version.split(".")[:2])
