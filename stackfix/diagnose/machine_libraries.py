"""The driver's libraries, as the loader would find them: stubs, copies for forward compatibility, other versions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackfix.diagnose.records import Candidate
from stackfix.diagnose.situation import View

OUTSIDE = "it lies outside of the environment"
CUDA, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
VERSION = re.compile(r"\.so\.(\d{3}\.\d{1,3}(?:\.\d{1,3})?)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One copy of a driver library that a search comes to."""

    path: str
    real_path: str
    origin: str                     # "system", "wsl", "compat", "stub"
    version: str | None             # "550.54.15"
    via: str                        # "LD_LIBRARY_PATH (/usr/local/cuda/compat)"


def driver_copies(view: View, name: str) -> tuple[Copy, ...]:
    """Copies of a driver library in the order in which a library of the process would find them."""
    found = dict[str, Copy]()       # the same file may be met by the cache and by a default folder
    for each in view.candidates(name, 0 if view.start.objects else None, view.start):
        found.setdefault(each.real_path, copy_of(view, each))
    return tuple(found.values())


def copy_of(view: View, found: Candidate) -> Copy:
    known = {path: each for each in view.machine.driver.libraries for path in (each.path, each.real_path) if path}
    library = known.get(found.path) or known.get(found.real_path)
    match = VERSION.search(found.real_path)
    version = match[1] if match else library.version if library else None
    element = found.found_via.element
    via = found.found_via.step + (f" ({element})" if element and element != found.path else "")
    return Copy(path=found.path, real_path=found.real_path, version=version, via=via,
                origin=origin_of(f"{found.path}/{found.real_path}"))


def origin_of(path: str) -> str:
    """What kind of copy lies at a path."""
    parts = path.split("/")
    if "stubs" in parts:
        return "stub"
    if any(re.match(r"(?:cuda-)?compat(?:$|[_-])", each) for each in parts):
        return "compat"
    return "wsl" if "wsl" in parts else "system"


def user_driver(view: View) -> str | None:
    """Version of the driver that programs speak to: of a newer copy for forward compatibility, else the kernel's."""
    module, copies = view.machine.driver.kernel_module, driver_copies(view, CUDA)
    first = copies[0] if copies else None
    if module and first and first.origin == "compat" and first.version and newer(first.version, module.version):
        return first.version
    return module.version if module else None


def leave_out(view: View, winner: Copy, folder: str) -> tuple[str, ...]:
    """How a folder is taken out of the loader's way."""
    if winner.via.startswith("LD_LIBRARY_PATH"):
        linking = f"; for linking, -L{folder} is enough" if winner.origin == "stub" else ""
        return (f"take {folder} out of LD_LIBRARY_PATH{linking}",)
    named = [each for each in view.situation.configured if each.folder == folder]
    lines = tuple(f"remove the line {each.folder} from {each.file}, then run: sudo ldconfig" for each in named)
    return lines or (f"sudo rm {winner.path} && sudo ldconfig",)


def found_where(copies: tuple[Copy, ...]) -> tuple[str, ...]:
    """One line for each copy, in the order of the search."""
    kinds = {"stub": "a stub, ", "compat": "for forward compatibility, "}
    return tuple(f"{each.path}{f' ({each.version})' if each.version else ''}: {kinds.get(each.origin, '')}"
                 f"{'taken' if number == 0 else 'behind it'}, via {each.via}" for number, each in enumerate(copies))


def newer(version: str, than: str) -> bool:
    return [int(part) for part in version.split(".")] > [int(part) for part in than.split(".")]
