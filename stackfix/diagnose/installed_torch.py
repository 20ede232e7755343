"""The torch of an environment and the CUDA that it was built for, as its files and metadata tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import CondaPackage, Distribution
from stackfix.inspect.records import ElfObject, FileAt
from stackfix.platforms import LINUX_SUBDIRS

CPU = "cpu"
MOST_DIGITS = 18                 # int() refuses what is much longer
# "cu121", "cuda12.1" and "cuda121" alike: the last digit is the minor
VARIANT = re.compile(r"(?:^|[._+-])cu(?:da)?_?(\d{1,2})\.?(\d)(?!\d)")
RUNTIME = re.compile(r"(?:nvidia-cuda-runtime(?:-cu\d+)?|cuda-toolkit)\s*(?:\[[^\]]*\])?\s*\(?\s*==\s*(\d+)\.(\d+)")
CUDART = re.compile(r"libcudart\.so\.(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledTorch:
    """torch as it is installed."""

    version: str                    # as its metadata states it: "2.3.1", "2.3.1+cu121"
    cuda: str | None                # "12.1", "12" where only the major is known, "cpu"; None: another GPU, or unknown
    cuda_from: str | None           # what tells that: "its local version"
    folder: str                     # of its libraries: <site>/torch/lib
    site: str
    manager: str                    # "pip", "conda", "system"

    @property
    def name(self) -> str:
        """As findings name it."""
        return f"torch {self.version}"

    @property
    def release(self) -> str:
        """Without the local version."""
        return self.version.partition("+")[0]

    @property
    def cuda_major(self) -> int | None:
        """12 of "12.1"."""
        return int(self.cuda.partition(".")[0]) if self.cuda and self.cuda[0].isdigit() else None

    @property
    def title(self) -> str:
        """For people: "torch 2.3.1 for CUDA 12.1"."""
        if self.cuda is None:
            return self.name
        return f"{self.name} {'for the CPU' if self.cuda == CPU else f'for CUDA {self.cuda}'}"


def installed_torch(view: View) -> InstalledTorch | None:
    """The copy of torch that Python imports."""
    found = view.distributions.get("torch")
    if found is None:
        return None
    cuda, source = next(cuda_of(view, found), (None, None))
    return InstalledTorch(version=found.version, cuda=cuda, cuda_from=source, folder=f"{found.site}/torch/lib",
                          site=found.site, manager=found.manager)


def cuda_of(view: View, torch: Distribution) -> Iterator[tuple[str | None, str]]:
    """(CUDA, what tells it), the surest first. Files that are there decide before what metadata requires."""
    local, package = torch.version.partition("+")[2], conda_package(view, torch)
    if match := VARIANT.search(local):
        yield f"{match[1]}.{match[2]}", f"its version {torch.version}"
    if local.startswith((CPU, "rocm", "xpu")):
        yield CPU if local.startswith(CPU) else None, f"its version {torch.version}"
    if package is not None and (match := VARIANT.search(package.build)):
        yield f"{match[1]}.{match[2]}", f"the conda build {package.build}"
    folders = (f"{torch.site}/torch/lib", f"{view.environment.prefix}/lib")
    yield from told_without_cuda(view, folders)
    for line in torch.requires:
        if match := RUNTIME.match(line):
            yield f"{match[1]}.{match[2]}", f"its requirement {line.partition(';')[0].strip()}"
    for name in needed_by(view, folders, "libc10_cuda.so"):
        if match := CUDART.fullmatch(name.removesuffix(".0")):
            yield match[1], f"libc10_cuda.so needs {name}"


def told_without_cuda(view: View, folders: tuple[str, ...]) -> Iterator[tuple[str | None, str]]:
    """That its libraries are those of another build. One that was deleted is still in the RECORD."""
    if not has_library(view, folders, "libc10.so") or has_library(view, folders, "libc10_cuda.so"):
        return
    if any(each.path.endswith("/libc10_cuda.so") for each in view.environment.file_faults):
        return
    if has_library(view, folders, "libc10_hip.so"):
        yield None, "torch/lib has libc10_hip.so"
    yield CPU, "torch/lib has no libc10_cuda.so"


def needed_by(view: View, folders: tuple[str, ...], name: str) -> tuple[str, ...]:
    """What a library needs, in the first of the folders that has it."""
    for folder in folders:
        file = view.files.at(f"{folder}/{name}")
        if isinstance(file, FileAt) and isinstance(file.elf, ElfObject):
            return file.elf.needed
    return ()


def conda_package(view: View, distribution: Distribution) -> CondaPackage | None:
    """The conda package that installed a project."""
    conda = view.environment.conda
    if conda is None or distribution.conda_package is None:
        return None
    return next((each for each in conda.packages if each.name == distribution.conda_package), None)


def has_library(view: View, folders: tuple[str, ...], name: str) -> bool:
    """Whether one of the folders has a file of that name."""
    return any(isinstance(view.files.at(f"{folder}/{name}"), FileAt) for folder in folders)


def numbers(version: str) -> tuple[int, ...]:
    """Numbers of a version, as far as it has some."""
    found = []
    for part in version.split("."):
        if not part.isdecimal() or len(part) > MOST_DIGITS:
            break
        found.append(int(part))
    return tuple(found)


def platform_of(view: View) -> str | None:
    """The platform whose wheels are installed: "linux-64"."""
    python = view.environment.python
    return (python.platform if python else None) or LINUX_SUBDIRS.get(view.situation.loader.machine.machine)
