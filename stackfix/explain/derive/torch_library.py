"""Libraries of torch itself: which releases have one of this name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stackfix.explain.derive.words import spans
from stackfix.explain.records import Derivation, Facts, Fields

# Libraries of which a CPU build has none
PARTS = frozenset({"libtorch_cuda.so", "libc10_cuda.so", "libtorch_cuda_cu.so", "libtorch_cuda_cpp.so",
                   "libtorch_cuda_linalg.so", "libtorch_nvshmem.so", "libcaffe2_nvrtc.so"})
SITE = re.compile(r"/(?:site|dist)-packages/")
WITHOUT_FUNCTIONS = frozenset({"libtorch.so", "libtorch_global_deps.so", "libtorch_cuda.so"})   # some have none


def torch_library(fields: Fields, facts: Facts) -> Fields:
    """`lib_minors` that have the library `soname`, `lib_lacking` that do not, `lib_everywhere`, `cuda_part`.

    `gone_from`: the folder of torch in which one that each torch has was opened, by a `path`; `gone_tree` where that is
    in no site folder.
    """
    name = fields.get("soname", "")
    every = [each.minor for each in facts.books.torch.releases]
    found = {"oldest": every[0], "torch_named": "yes" if "torch" in fields else "",
             "cuda_part": "yes" if name in PARTS else ""}
    names = facts.books.names
    having = every if name in WITHOUT_FUNCTIONS else list(names.having(name)) if names is not None else []
    if having:
        found |= {"lib_minors": spans(having, every), "lib_everywhere": "yes" if having == every else "",
                  "lib_lacking": spans([each for each in every if each not in having], every)}
    path = fields.get("path", "")
    if path.endswith("/torch/lib/") and found.get("lib_everywhere") and not found["cuda_part"]:
        found |= {"gone_from": path, "gone_tree": "" if SITE.search(path) else "yes"}
    return {key: value for key, value in found.items() if value}


DERIVE: Mapping[str, Derivation] = {"torch-library": torch_library}
