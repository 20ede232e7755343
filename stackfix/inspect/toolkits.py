"""CUDA toolkits and cuDNN of a machine, by their files; nvcc is read, not run."""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stackfix.inspect.machine_records import SystemCudnn, Toolkit
from stackfix.inspect.places import MIB, Root

VERSION_TEXT = re.compile(r"CUDA Version (\d+(?:\.\d+){1,2})")
CUDA_VERSION = re.compile(r"^\s*#\s*define\s+CUDA(?:RT)?_VERSION\s+(\d{4,6})\s*$", re.MULTILINE)
CUDNN_VERSION = re.compile(r"^\s*#\s*define\s+CUDNN_(MAJOR|MINOR|PATCHLEVEL)\s+(\d+)\s*$", re.MULTILINE)
NVCC_STATES = b"Cuda compilation tools, release "
NVCC_RELEASE = re.compile(rb"\d+\.\d+, V(\d+\.\d+\.\d+)")
VERSION_SHAPE = re.compile(r"\d+(?:\.\d+){1,3}")
CUDNN_FILE = re.compile(r"libcudnn\.so\.(\d+\.\d+\.\d+)")
LIBRARIES = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "targets/aarch64-linux/lib")
COMPAT = ("compat", "compat_orin")
INCLUDES = ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include", "targets/aarch64-linux/include")
MAX_HEADER = 4 * MIB


def find_toolkits(root: Root, environ: Mapping[str, str], conda_prefix: str | None = None) -> tuple[Toolkit, ...]:
    """Every toolkit, once for each real folder, the usual places first."""
    ways: dict[str, list[str]] = {}
    named: dict[str, str] = {}
    for path, how in candidates(root, environ, conda_prefix):
        real = root.find(path)
        if real is not None and is_toolkit(root, path):
            named.setdefault(real, path)
            if how not in ways.setdefault(real, []):
                ways[real].append(how)
    return tuple(read_toolkit(root, named[real], real, tuple(how)) for real, how in ways.items())


def candidates(root: Root, environ: Mapping[str, str], conda_prefix: str | None) -> Iterator[tuple[str, str]]:
    """(folder, how it was found)."""
    yield from usual_places(root)
    for variable in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        if (path := environ.get(variable, "")).startswith("/"):
            yield path.rstrip("/") or "/", variable
    for folder in environ.get("PATH", "").split(":"):
        nvcc = root.find(f"{folder.rstrip('/')}/nvcc") if folder.startswith("/") else None
        if nvcc is not None:
            yield nvcc.rsplit("/", 2)[0] or "/", "nvcc on PATH"
    if conda_prefix is not None:
        yield conda_prefix, "conda"


def usual_places(root: Root) -> Iterator[tuple[str, str]]:
    for parent in ("/usr/local", "/opt"):
        for entry in root.find_entries(parent):
            if re.fullmatch(r"cuda(?:-[\d.]+)?", entry.name):
                yield f"{parent}/{entry.name}", "usual place"
    for target in ("Linux_x86_64", "Linux_aarch64"):
        for release in root.find_entries(f"/opt/nvidia/hpc_sdk/{target}"):
            folder = f"/opt/nvidia/hpc_sdk/{target}/{release.name}/cuda"
            yield from ((f"{folder}/{entry.name}", "NVIDIA HPC SDK") for entry in root.find_entries(folder)
                        if VERSION_SHAPE.fullmatch(entry.name))
    yield "/usr/lib/nvidia-cuda-toolkit", "usual place"     # Debian's package


def is_toolkit(root: Root, path: str) -> bool:
    """Whether a toolkit's own files lie there.

    The runtime images of CUDA have only libraries; a script named nvcc somewhere on PATH is no toolkit.
    """
    return (read_version(root, path)[0] is not None or stated_release(root, f"{path}/bin/nvcc") is not None
            or any(entry.name.startswith("libcudart.so") for name in LIBRARIES
                   for entry in root.find_entries(f"{path}/{name}")))


def read_toolkit(root: Root, path: str, real: str, found_via: tuple[str, ...]) -> Toolkit:
    version, source = read_version(root, path)
    nvcc = f"{path}/bin/nvcc" if root.is_file(f"{path}/bin/nvcc") else None
    release = stated_release(root, nvcc) if nvcc else None
    if version is None and release is not None:
        version, source = ".".join(release.split(".")[:2]), nvcc
    libraries = root.first_folders(f"{path}/{name}" for name in LIBRARIES)
    return Toolkit(
        path=path, real_path=real, version=version, version_from=source, nvcc=nvcc,
        nvcc_release=release, library_folders=libraries,
        stubs=root.first_folders(f"{folder}/stubs" for folder in libraries),
        compat=root.first_folders(f"{path}/{name}" for name in COMPAT), found_via=found_via,
    )


def read_version(root: Root, path: str) -> tuple[str | None, str | None]:
    """(version, file): version.json since CUDA 11, version.txt before it, else cuda.h's number (12040 is 12.4)."""
    stated = parse_version_json(root.find_text(f"{path}/version.json") or "")
    if stated is not None:
        return stated, f"{path}/version.json"
    if match := VERSION_TEXT.search(root.find_text(f"{path}/version.txt") or ""):
        return match[1], f"{path}/version.txt"
    for include in INCLUDES:
        for name in ("cuda.h", "cuda_runtime_api.h"):
            if match := CUDA_VERSION.search(root.find_text(f"{path}/{include}/{name}", MAX_HEADER) or ""):
                number = int(match[1])
                return f"{number // 1000}.{number % 1000 // 10}", f"{path}/{include}/{name}"
    return None, None


def parse_version_json(text: str) -> str | None:
    try:
        version = json.loads(text)["cuda"]["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return version if isinstance(version, str) and VERSION_SHAPE.fullmatch(version) else None


def stated_release(root: Root, nvcc: str) -> str | None:
    """What `nvcc --version` would print ("12.4.131"), from the program's own text."""
    try:
        descriptor = root.open(nvcc)
        try:
            with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
                at = content.rfind(NVCC_STATES)     # 24 of 30 MB in, so the end is the short way
                match = NVCC_RELEASE.match(content[at + len(NVCC_STATES):][:60]) if at >= 0 else None
        finally:
            os.close(descriptor)
    except (OSError, ValueError):       # ValueError: an empty file cannot be mapped
        return None
    return match[1].decode() if match else None


def find_cudnn(root: Root, folders: Sequence[str], toolkits: Iterable[Toolkit]) -> tuple[SystemCudnn, ...]:
    """cuDNN of the system and of the toolkits, one for each version."""
    found: dict[str | None, tuple[str | None, list[str]]] = {}
    roots = ["/usr", *(each.path for each in toolkits)]
    for header, version in find_cudnn_headers(root, roots):
        found.setdefault(version, (header, []))
    places = root.first_folders([*folders, *(folder for each in toolkits for folder in each.library_folders)])
    for folder in places:
        for entry in root.find_entries(folder):
            match = CUDNN_FILE.fullmatch(entry.name)
            if match and root.is_file(f"{folder}/{entry.name}"):
                found.setdefault(match[1], (None, []))[1].append(f"{folder}/{entry.name}")
    return tuple(SystemCudnn(version=version, header=header, libraries=tuple(libraries))
                 for version, (header, libraries) in found.items())


def find_cudnn_headers(root: Root, prefixes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(header, version); Debian's packages put it into the folder of the architecture, one for each major version."""
    seen = set()
    for prefix in prefixes:
        for include in (*INCLUDES, "include/x86_64-linux-gnu", "include/aarch64-linux-gnu"):
            for name in ("cudnn_version.h", "cudnn_version_v9.h", "cudnn_version_v8.h", "cudnn.h"):
                path = f"{prefix}/{include}/{name}"
                real = root.find(path)
                parts = dict(CUDNN_VERSION.findall(root.find_text(path, MAX_HEADER) or "")) if real else {}
                if real not in seen and len(parts) == 3:
                    seen.add(real)
                    yield path, f"{parts['MAJOR']}.{parts['MINOR']}.{parts['PATCHLEVEL']}"
