"""What the path of a file tells: whose it is, where it lies, and how the loader looks for what it needs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from stackfix.explain.records import Derivation, Facts, Fields

ISOLATED = re.compile(r"(?P<path>\S*?/(?:(?P<pip>pip-build-env-[\w-]+)/(?:overlay|normal)|builds-v\d+/\.tmp\w+))/")
CONDA = re.compile(r"^(?P<prefix>(?:/[^/\s]+)*?/(?:envs/[^/\s]+|\.?(?:ana|mini|micro)?(?:conda|mamba|forge)\w*))/lib/")
FOREIGN = re.compile(r"^/(?:usr/(?:local/)?(?:lib|cuda)|opt/cuda|lib(?:32|64)?/)|/hpc_sdk/|/cuda[-/]?\d")
PYTHON_TAG = re.compile(r"\.(?:cpython-(?P<cpython>3\d{1,2})t?|cp(?P<cp>3\d{1,2})|(?P<abi3>abi3))[-.]")
SITE = re.compile(r"^(?P<site>\S*?/(?:site|dist)-packages)/(?P<rest>\S+)$")
ELLIPSIS = re.compile(r"^(?:\.\.\.|\u2026)/?")


def requester(fields: Fields, _: Facts) -> Fields:
    """Of `requester`: `who` (its name), and what its place and its name mean.

    `build_folder` of a `build_tool` (pip, uv), `conda_file` in `conda_root`, `toolkit_file`, `toolkit_folder` outside
    of all environments, `torch_file`, `module_file`. `rpath`: its DT_RPATH comes before LD_LIBRARY_PATH,
    `runpath_file`: its name, where that comes after. `tag`: the Python that it is for, `abi3`: each.
    """
    path = ELLIPSIS.sub("", fields.get("requester", "").strip("'\"`"))
    if not path:
        return {}
    plain = posixpath.normpath(path)
    name = plain.rpartition("/")[2]
    found = {"who": name, **isolation(path), **place_of(plain, name), **python_of(name)}
    return {key: value for key, value in found.items() if value}


def isolation(path: str) -> dict[str, str]:
    """The build environment that a path lies in."""
    match = ISOLATED.search(path)
    if match is None:
        return {}
    return {"build_folder": match["path"], "build_tool": "pip" if match["pip"] else "uv"}


def place_of(path: str, name: str) -> dict[str, str]:
    """Where it lies: a wheel's folder, torch's, conda's `lib`, a toolkit."""
    inside = SITE.match(path)
    rest = inside["rest"] if inside else path
    found: dict[str, str] = {"site": inside["site"]} if inside else {}
    if re.search(r"(?:^|/)torch/lib/[^/]+$", rest) or re.match(r"libtorch(?:_\w+)?\.so|libc10(?:_\w+)?\.so", name):
        return {**found, "rpath": "yes", "torch_file": "yes"}
    wheel = re.search(r"(?:^|/)nvidia/(?P<folder>[a-z0-9_]+)/lib/[^/]+$", rest)
    if wheel:
        return {**found, "runpath_file": name, "wheel_folder": f"nvidia/{wheel['folder']}/lib"}
    if inside:
        return {**found, "module_file": "yes"}
    if (conda := CONDA.match(path)) is not None:
        return {"conda_file": "yes", "conda_root": conda["prefix"]}
    if not path.startswith("/"):
        return {}
    return {"toolkit_folder": path.rpartition("/")[0], **({"toolkit_file": "yes"} if FOREIGN.search(path) else {})}


def python_of(name: str) -> dict[str, str]:
    """The Python that the name of an extension module says it is for."""
    match = PYTHON_TAG.search(name)
    if match is None:
        return {}
    digits = match["cpython"] or match["cp"]
    return {"tag": f"{digits[0]}.{digits[1:]}"} if digits else {"abi3": "yes"}


DERIVE: Mapping[str, Derivation] = {"requester": requester}
