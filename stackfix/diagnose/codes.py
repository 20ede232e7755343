"""Codes of findings. They are stable: users script against them, and docs/findings.md has a section for each."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding. `level` is that of the pyramid; None: that of the library which it is about."""

    code: str
    kind: str
    level: str | None
    title: str


CODES = (
    Code("SF101", "shadowed-library", None, "A foreign copy of a library wins and lacks what is needed"),
    Code("SF102", "harmless-shadow", None, "A foreign copy of a library wins and lacks nothing"),
    Code("SF201", "library-too-old", None, "An installed library is older than its consumer needs"),
    Code("SF202", "library-too-new", None, "An installed library has dropped what its consumer needs"),
    Code("SF301", "two-families", None, "Two majors of one library come into one process"),
    Code("SF302", "mixed-origin", None, "Parts of one library come from different versions"),
    Code("SF401", "missing-library", None, "A library is nowhere to be found"),
    Code("SF402", "unreachable-library", None, "A library is installed where the loader does not look"),
    Code("SF403", "foreign-library", None, "A foreign copy stands in for a library that is missing"),
    Code("SF501", "abi-mismatch", "extensions", "An extension was built for another torch"),
    Code("SF502", "cuda-extension-on-cpu-torch", "extensions", "A CUDA extension beside a torch without CUDA"),
    Code("SF503", "undefined-symbol", "extensions", "An extension needs a symbol that nothing provides"),
    Code("SF504", "cuda-major-mismatch", "extensions", "An extension was built for another CUDA major than torch"),
    Code("SF601", "requirement-not-met", None, "An installed package does not meet a declared requirement"),
    Code("SF602", "companion-mismatch", "extensions", "Installed packages were not built for each other"),
    Code("SF603", "rule-not-met", None, "Installed packages break a need that no metadata states"),
    Code("SF701", "overwritten-file", None, "A file of one package was overwritten by another"),
    Code("SF702", "damaged-package", None, "Files of an installed package are missing or changed"),
    Code("SF703", "two-installations", None, "One project is installed twice"),
    Code("SF704", "user-site-first", None, "The user's own site folder comes before the environment"),
    Code("SF801", "broken-link", None, "A link to a library or to Python leads nowhere, or is gone"),
    Code("SF802", "missing-unversioned-name", None, "A library is opened by a name that is not there"),
    Code("SF803", "stub-library", "driver", "A stub of the driver library is found by the loader"),
    Code("SF804", "compat-library", "driver", "A forward-compatibility driver library is found by the loader"),
    Code("SF901", "driver-too-old", "driver", "The driver is too old for this CUDA"),
    Code("SF902", "gpu-not-supported", None, "Binaries hold no code for this GPU"),
    Code("SF903", "libstdcxx-too-old", "environment", "libstdc++ is too old for a library"),
    Code("SF904", "glibc-too-old", "environment", "glibc is too old for a library"),
    Code("SF905", "foreign-architecture", None, "A binary is for another processor"),
    Code("SF1001", "driver-mismatch", "driver", "Kernel module and driver libraries differ"),
    Code("SF1002", "no-device-nodes", "driver", "The GPU's device nodes are missing or closed"),
    Code("SF1003", "devices-hidden", "driver", "CUDA_VISIBLE_DEVICES hides the GPUs"),
    Code("SF1004", "no-compute-capability", "driver", "The container was not given the compute driver"),
    Code("SF1005", "cpu-torch", "torch", "A torch without CUDA beside a GPU"),
    Code("SF1006", "mig-without-instance", "driver", "MIG is on and has no instance"),
    Code("SF1007", "driver-not-loaded", "driver", "A GPU without NVIDIA's kernel module"),
    Code("SF1101", "activation-order", "environment", "An activation script puts the wrong folder first"),
    Code("SF1102", "broad-library-path", "environment", "A whole library folder is on LD_LIBRARY_PATH"),
    Code("SF1103", "current-folder-on-path", "environment", "An empty element of LD_LIBRARY_PATH"),
    Code("SF1104", "kernel-without-path", "environment", "A Jupyter kernel does not get the activated variables"),
)
BY_CODE = MappingProxyType({each.code: each for each in CODES})
