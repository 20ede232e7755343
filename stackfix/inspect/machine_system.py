"""The system below Python: C and C++ libraries, distribution, kernel, and what kind of machine it is."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from stackfix.inspect.elf import read_open_elf
from stackfix.inspect.machine_records import Container, Jetson, LoadedModule, Release, SystemLibrary, Wsl
from stackfix.inspect.places import Root
from stackfix.inspect.records import ElfObject

LOADERS = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1",
           "ppc64le": "/lib64/ld64.so.2", "riscv64": "/lib/ld-linux-riscv64-lp64d.so.1"}
FILE_VERSION = re.compile(r"\.so\.(\d[\d.]*)$")
NODE = re.compile(r"(GLIBC|GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)*)")
GLIBC_STATES = re.compile(rb"GNU C Library [^\n\0]{0,200}?version (\d+\.\d+(?:\.\d+)?)")
L4T = re.compile(r"R(\d+)\s*\(release\),\s*REVISION:\s*([\d.]+)")
CGROUPS = (("kubernetes", "kubepods"), ("docker", "docker"), ("podman", "libpod"), ("lxc", "/lxc"))


def read_architecture(root: Root) -> str | None:
    """Of the running kernel; in a tree, of the program loader that it has."""
    if root.live:
        return os.uname().machine
    return next((name for name, path in LOADERS.items() if root.exists(path)), None)


def library_folders(architecture: str | None) -> tuple[str, ...]:
    """Folders that the loader of a distribution searches by itself, Debian's and Fedora's."""
    triple = f"{architecture}-linux-gnu"
    return (f"/lib/{triple}", f"/usr/lib/{triple}", "/lib64", "/usr/lib64", "/lib", "/usr/lib")


def find_library(root: Root, soname: str, folders: Iterable[str], cache: Mapping[str, str]) -> SystemLibrary | None:
    """The library that ld.so.cache names, else the first one in the folders; with the newest of its versions."""
    places = ([cache[soname]] if soname in cache else []) + [f"{folder}/{soname}" for folder in folders]
    for path in places:
        real = root.find(path)
        if real is not None and root.is_file(real):
            name = FILE_VERSION.search(real)
            return SystemLibrary(soname=soname, path=path, real_path=real,
                                 version=name[1] if name and "." in name[1] else None,
                                 newest=newest_versions(read_defined_versions(root, real)))
    return None


def read_defined_versions(root: Root, path: str) -> tuple[str, ...]:
    """Symbol versions that a library defines; none where it is no library that can be read."""
    try:
        descriptor = root.open(path)
    except OSError:
        return ()
    try:
        found = read_open_elf(descriptor, path)
    finally:
        os.close(descriptor)
    return found.defined_versions if isinstance(found, ElfObject) else ()


def newest_versions(defined: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The newest of each prefix, compared as numbers: GLIBCXX_3.4.9 is older than 3.4.30."""
    newest: dict[str, tuple[int, ...]] = {}
    for each in defined:
        if match := NODE.fullmatch(each):
            version = tuple(int(part) for part in match[2].split("."))
            newest[match[1]] = max(version, newest.get(match[1], ()))
    return tuple((prefix, ".".join(map(str, version))) for prefix, version in sorted(newest.items()))


def find_glibc(root: Root, folders: Iterable[str], cache: Mapping[str, str]) -> SystemLibrary | None:
    """glibc, with the version that its file states: its newest symbol version may be an older release's."""
    found = find_library(root, "libc.so.6", folders, cache)
    if found is None:
        return None
    return SystemLibrary(soname=found.soname, path=found.path, real_path=found.real_path, newest=found.newest,
                         version=stated_glibc(root, found.real_path))


def stated_glibc(root: Root, path: str) -> str | None:
    try:
        descriptor = root.open(path)
        try:
            with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
                at = content.find(b"GNU C Library ")
                match = GLIBC_STATES.match(content[at:at + 300]) if at >= 0 else None
        finally:
            os.close(descriptor)
    except (OSError, ValueError):       # ValueError: an empty file cannot be mapped
        return None
    return match[1].decode() if match else None


def read_kernel(root: Root) -> str | None:
    text = root.find_text("/proc/sys/kernel/osrelease", 4096)
    return text.strip() or None if text is not None else os.uname().release if root.live else None


def read_release(root: Root) -> Release | None:
    """os-release(5): /etc first, then /usr/lib."""
    text = root.find_text("/etc/os-release") or root.find_text("/usr/lib/os-release")
    if text is None:
        return None
    keys = {key.strip(): unquoted(value) for key, equals, value in (line.partition("=") for line in text.splitlines())
            if equals and not key.startswith("#")}
    return Release(id=keys.get("ID") or "linux", version=keys.get("VERSION_ID") or None,
                   name=keys.get("PRETTY_NAME") or None, like=tuple(keys.get("ID_LIKE", "").split()))


def unquoted(value: str) -> str:
    if not value.strip().startswith(("'", '"')):
        return value.strip()
    import shlex

    try:
        return "".join(shlex.split(value))
    except ValueError:      # an open quote
        return value.strip()


def find_wsl(root: Root, kernel: str | None) -> Wsl | None:
    """WSL by the kernel's name, as Microsoft's own tools tell it; in an image by Windows' library folder."""
    folder = "/usr/lib/wsl/lib" if root.is_folder("/usr/lib/wsl/lib") else None
    if kernel and "microsoft" in kernel.lower():
        # WSL 1: 4.4.0-19041-Microsoft; WSL 2: 5.15.90.1-microsoft-standard-WSL2
        version = 2 if "WSL2" in kernel or "microsoft-standard" in kernel else 1
        return Wsl(version=version, library_folder=folder, found_via="kernel release")
    if folder:
        return Wsl(version=None, library_folder=folder, found_via=folder)
    return None


def find_jetson(root: Root) -> Jetson | None:
    """A Tegra board by its release file, else by its device tree."""
    model = (root.find_text("/proc/device-tree/model", 4096) or "").strip("\0 \n") or None
    text = root.find_text("/etc/nv_tegra_release")
    if text is not None:
        match = L4T.search(text)
        return Jetson(model=model, release=f"{match[1]}.{match[2]}" if match else None,
                      found_via="/etc/nv_tegra_release")
    compatible = root.find_text("/proc/device-tree/compatible", 4096) or ""
    if "nvidia,tegra" in compatible:
        return Jetson(model=model, release=None, found_via="/proc/device-tree/compatible")
    return None


def find_container(root: Root, environ: Mapping[str, str]) -> Container | None:
    """The container around us, the more telling marks first."""
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return Container(kind="kubernetes", found_via="KUBERNETES_SERVICE_HOST")
    for kind, variable in (("apptainer", "APPTAINER_CONTAINER"), ("singularity", "SINGULARITY_CONTAINER")):
        if environ.get(variable):
            return Container(kind=kind, found_via=variable)
    if root.exists("/run/.containerenv"):
        return Container(kind="podman", found_via="/run/.containerenv")
    if root.exists("/.dockerenv"):
        return Container(kind="docker", found_via="/.dockerenv")
    stated = environ.get("container") or (root.find_text("/run/systemd/container", 4096) or "").strip()
    if stated:
        return Container(kind=stated, found_via="container" if environ.get("container") else "/run/systemd/container")
    groups = root.find_text("/proc/1/cgroup") or ""
    found = next((kind for kind, mark in CGROUPS if mark in groups), None)
    return Container(kind=found, found_via="/proc/1/cgroup") if found else None


def read_modules(environ: Mapping[str, str]) -> tuple[LoadedModule, ...]:
    """LOADEDMODULES with the files of _LMFILES_, where both have as many elements."""
    names = [each for each in environ.get("LOADEDMODULES", "").split(":") if each]
    files = [each for each in environ.get("_LMFILES_", "").split(":") if each]
    paired: Sequence[str | None] = files if len(files) == len(names) else [None] * len(names)
    return tuple(LoadedModule(name=name, file=file) for name, file in zip(names, paired, strict=True))
