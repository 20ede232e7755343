"""As much of an environment and its machine as decides what can load in it, read from files."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from stackfix.abi.host import CPU, Host, HostTorch
from stackfix.cli.abi_symbols import EnvironmentSymbols
from stackfix.inspect.environment_records import Distribution, Python
from stackfix.inspect.ldso import read_loader
from stackfix.inspect.machine_system import find_glibc, find_library, library_folders, read_architecture
from stackfix.inspect.places import Root

if TYPE_CHECKING:
    from stackfix.inspect.compiled_installed import Installation
    from stackfix.inspect.driver import SmiGpu
    from stackfix.inspect.machine_records import SystemLibrary

# In every torch since 1.8, and with a string among its arguments.
CHECK_FAIL = "_ZN3c106detail14torchCheckFailEPKcS2_j"
OLD_CHECK, NEW_CHECK = f"{CHECK_FAIL}RKSs", f"{CHECK_FAIL}RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
# torch/version.py: `cuda: Optional[str] = '12.1'`, in older ones `cuda = '11.7'`; it is not run
STATED = re.compile(r"^(?P<name>cuda|hip|xpu)\b[^=\n]*=\s*(?:'(?P<value>[^'\n]{0,40})'|None)\s*$", re.MULTILINE)
VARIANT = re.compile(r"(?:^|[._])cu(1\d)(\d)(?!\d)")
CUDART = re.compile(r"libcudart(?:-[0-9a-f]{8})?\.so\.(\d{1,3})")
CUDNN = re.compile(r"libcudnn\.so\.(\d{1,3})")
ELF_NAMES = {"i686": "i386", "i586": "i386", "armv7l": "arm", "ppc64le": "ppc64", "riscv64": "riscv"}
PLATFORMS = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "linux-ppc64le": "ppc64"}
STANDARD, PATIENCE = "libstdc++.so.6", 2.0      # seconds that nvidia-smi is waited for: it may hang
GPUS = "/proc/driver/nvidia/gpus"


def read_host(installation: Installation, environ: Mapping[str, str], capabilities: tuple[str, ...],
              folder: str | None = None) -> tuple[Host, EnvironmentSymbols]:
    """The environment as a host, and the exports of its libraries. `folder`: of the one file that is asked about."""
    root = installation.root
    architecture = read_architecture(root) or machine_of(installation.python)
    cache = read_loader(root, machine=architecture or "x86_64", cpu_flags=()).cache
    folders = root.first_folders(library_folders(architecture))
    standard = find_standard(installation, environ, folders, cache)
    torch = installation.find("torch")
    torch_folders = (f"{torch.site}/torch/lib", *conda_lib(installation)) if torch else ()
    symbols = EnvironmentSymbols(
        root, torch=torch_folders, standard=standard.real_path if standard else None,
        libraries=tuple(library_places(installation, torch_folders)), cache=cache,
        sites=(folder,) if folder else tuple(each.path for each in installation.sites),
        system=(*filter(None, (folder,)), *said_folders(environ), *conda_lib(installation), *folders))
    glibc = find_glibc(root, folders, cache)
    python = installation.python
    return Host(
        prefix=installation.prefix,
        torch=host_torch(torch, root, symbols, torch_folders) if torch else None,
        cudnn=find_cudnn(installation, torch_folders), nvidia=tuple(nvidia_of(installation)),
        python=python.minor if python else None, python_abi=abi_of(python) if python else None,
        glibc=glibc.version if glibc else None, libstdcxx=standard.path if standard else None,
        standard=tuple(f"{node}_{number}" for node, number in standard.newest if node in {"CXXABI", "GLIBCXX"})
        if standard else (),
        machine=machine_of(python) or (ELF_NAMES.get(architecture, architecture) if architecture else None),
        capabilities=capabilities,
    ), symbols


def host_torch(torch: Distribution, root: Root, symbols: EnvironmentSymbols, folders: tuple[str, ...]) -> HostTorch:
    """torch as it is installed."""
    return HostTorch(version=torch.version, installed=True, folders=folders,
                     string_abi=symbols.torch_string_abi(OLD_CHECK, NEW_CHECK),
                     cuda=next(cuda_of(torch, root, symbols), None))


def cuda_of(torch: Distribution, root: Root, symbols: EnvironmentSymbols) -> Iterator[str | None]:
    """Its CUDA, the surest first; None where it is for another GPU."""
    text = root.find_text(f"{torch.site}/torch/version.py") or ""
    stated = {match["name"]: match["value"] for match in STATED.finditer(text)}
    if stated.get("cuda"):
        yield stated["cuda"]
    elif "cuda" in stated:
        yield None if stated.get("hip") or stated.get("xpu") else CPU
    local = torch.version.partition("+")[2]
    if match := VARIANT.search(local):
        yield f"{match[1]}.{match[2]}"
    if local.startswith(CPU):
        yield CPU
    for soname in symbols.needed_by("libc10_cuda.so"):
        if match := CUDART.fullmatch(soname.removesuffix(".0")):
            yield match[1]
    if symbols.torch_has("libc10_cuda.so") is False:
        yield None if symbols.torch_has("libc10_hip.so") else CPU


def conda_lib(installation: Installation) -> tuple[str, ...]:
    return (f"{installation.prefix}/lib",) if installation.conda else ()


def library_places(installation: Installation, torch: tuple[str, ...]) -> Iterator[str]:
    """Folders of CUDA's libraries: the wheels' own, then torch's, conda's."""
    for site in installation.sites:
        for entry in installation.root.find_entries(f"{site.path}/nvidia"):
            yield f"{site.path}/nvidia/{entry.name}/lib"
        yield f"{site.path}/cusparselt/lib"
    yield from torch or conda_lib(installation)


def find_standard(installation: Installation, environ: Mapping[str, str], folders: tuple[str, ...],
                  cache: Mapping[str, str]) -> SystemLibrary | None:
    """The C++ library that a process of the environment would load."""
    root = installation.root
    return (find_library(root, STANDARD, (*said_folders(environ), *conda_lib(installation)), {})
            or find_library(root, STANDARD, folders, cache))


def said_folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """LD_LIBRARY_PATH."""
    return tuple(each for each in environ.get("LD_LIBRARY_PATH", "").split(":") if each.startswith("/"))


def find_cudnn(installation: Installation, torch: tuple[str, ...]) -> str | None:
    """cuDNN's version, of its wheel or conda package; else its major, of a library that torch brings along."""
    stated = [each.version for each in installation.distributions if each.name.startswith("nvidia-cudnn-cu")]
    stated += [each.package.version for each in installation.conda if each.package.name in {"cudnn", "libcudnn"}]
    inside = [match[1] for folder in torch for entry in installation.root.find_entries(folder)
              if (match := CUDNN.match(entry.name))]
    return next(iter((*stated, *inside)), None)


def nvidia_of(installation: Installation) -> Iterator[tuple[str, str]]:
    """(project, version) of NVIDIA's wheels, the copy that Python sees."""
    seen = set[str]()
    for each in installation.distributions:
        if each.name.startswith("nvidia-") and each.name not in seen:
            seen.add(each.name)
            yield each.name, each.version


def abi_of(python: Python) -> str:
    """How wheels name its ABI: "cp311"."""
    digits = python.minor.replace(".", "")
    return f"pp{digits}" if python.implementation == "pypy" else f"cp{digits}{'t' if python.free_threaded else ''}"


def machine_of(python: Python | None) -> str | None:
    """The processor that it was built for, as ELF files name it."""
    return PLATFORMS.get(python.platform or "") if python else None


class Capabilities:
    """Compute capabilities of this machine's GPUs, asked beside the rest; nvidia-smi is slow, and may hang."""

    def __init__(self, root: Root) -> None:
        self._found: tuple[SmiGpu, ...] | str = ()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._asked = root.live and bool(root.find_entries(GPUS))
        if self._asked:
            self._thread.start()

    def _ask(self) -> None:
        from stackfix.inspect.driver import read_smi

        self._found = read_smi("nvidia-smi")

    def result(self) -> tuple[str, ...]:
        """What is known by now, after a moment at most."""
        if self._asked:
            self._thread.join(PATIENCE)
        found = self._found
        return () if isinstance(found, str) else tuple(dict.fromkeys(each.capability for each in found
                                                                     if each.capability))


__all__ = ["Capabilities", "read_host"]
