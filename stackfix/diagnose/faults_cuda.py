"""Which CUDA major a library belongs to, and faults that come from an extension built for another torch or CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_symbols import is_torch_library
from stackfix.diagnose.imports_projects import required_names
from stackfix.diagnose.installed_torch import CPU, InstalledTorch, installed_torch
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import View

# libraries whose sonames count CUDA's majors; the others have numbers of their own: cuSPARSE of CUDA 13 is .so.12
COUNTS_CUDA = re.compile(r"lib(?:cudart|cublas|cublasLt|nvJitLink|nvrtc|nvrtc-builtins|cupti|nppc)"
                         r"(?:-[0-9a-f]+)?\.so\.(\d{1,9})")
SUFFIX = re.compile(r"-cu(\d{2})$")


def cuda_major(sonames: Iterable[str]) -> int | None:
    """The CUDA major that the first of these sonames tells."""
    return next((int(match[1]) for match in map(COUNTS_CUDA.match, sonames) if match), None)


def is_about_torch(view: View, fault: Fault) -> bool:
    """Whether something is missing because an extension was built for another CUDA than torch's, or for another torch.

    Such a fault is cured by another build of the extension, not by the missing library.
    """
    torch = installed_torch(view)
    if fault.category != "missing" or not fault.requesters:
        return False
    if torch is None:       # then torch is what is missing
        return is_torch_library(fault.name)
    if any(is_of_torch(torch, each) for each in fault.requesters):
        return False
    if is_torch_library(fault.name):
        return True
    if fault.family is None or fault.family.level not in {"cuda", "cudnn"} or not all(
            each.requester is None or uses_torch(view, each.opening.project, each.requester)
            for each in fault.sightings):
        return False
    wanted = {cuda_major((fault.name, *each.elf.needed)) for each in fault.requesters} - {None}
    return torch.cuda == CPU or (torch.cuda_major is not None and bool(wanted) and torch.cuda_major not in wanted)


def is_of_torch(torch: InstalledTorch, object_: LoadedObject) -> bool:
    """Whether a file is part of torch itself."""
    return object_.path.startswith(f"{torch.site}/torch/") or is_torch_library(object_.elf.soname or "")


def uses_torch(view: View, project: str | None, object_: LoadedObject) -> bool:
    """Whether an object was built against torch, or its project requires it."""
    known = view.distributions.get(project or "")
    requires = known is not None and "torch" in required_names(known.requires)
    return requires or any(is_torch_library(name) for name in object_.elf.needed)

