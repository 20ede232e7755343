"""A release of torch that is asked about in an environment's place, as the almanac knows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stackfix.abi.can_load import compare_with
from stackfix.abi.host import CPU, Host, HostTorch
from stackfix.abi.records import Books
from stackfix.matrix.parse_cuda import component_package, parse_cuda
from stackfix.matrix.parse_torch import parse_torch
from stackfix.matrix.records import TorchBuild
from stackfix.matrix.toml_files import FILES, matrix_directory, parse_file, read_file

FILE, CUDA_FILE = "torch.toml", "cuda.toml"
PIN = re.compile(r"(nvidia-[a-z0-9-]+)==(\d[\d.]*\d)\s*(?:;|$)")
TOOLKIT_PIN = re.compile(r"cuda-toolkit\[([a-z, ]+)\]==\d[\d.]*\d\s*(?:;|$)")
NAMES = {"cudart": "cuda-runtime", "cupti": "cuda-cupti", "nvrtc": "cuda-nvrtc"}    # extras, as components are called
MINOR = re.compile(r"\d{1,4}\.\d{1,4}")
VARIANT = re.compile(r"cu(\d{2})(\d)")
CUDART = re.compile(r"libcudart\.so\.(\d{1,3})")


def host_of_release(asked: str, books: Books, machine: Sequence[str] = ()) -> Host:
    """The release alone, with the libraries that its build pins; `2.3` is the newest 2.3.x that was read.

    `machine`: what is to load is compiled for; of another than x86_64 the pins are not told. Raises BadInput for what
    is no release.
    """
    public, _, local = asked.partition("+")
    if MINOR.fullmatch(public):
        newest = next((each.version for each in books.torch.releases if each.minor == public), f"{public}.0")
        public = newest
    version = f"{public}+{local}" if local else public
    compared = compare_with(version, books.torch)
    own = not local and compared.why is None        # the index's own wheel, which was read
    build = build_of(public, local)
    pinned = dict(pins(build)) if build and set(machine) <= {"x86_64"} else {}
    strings = {None: None, True: "new", False: "old"}[build.cxx11_abi if build else None]
    torch = HostTorch(version=version, installed=False, folders=(),
                      cuda=build.cuda if build and (local or pinned) else cuda_of(public, local, books),
                      string_abi=compared.release.string_abi if own else strings)
    cudnn = next((version for name, version in pinned.items() if name.startswith("nvidia-cudnn-")), None)
    return Host(prefix=None, torch=torch, cudnn=cudnn, nvidia=tuple(sorted(pinned.items())), python=None,
                python_abi=None, glibc=None, libstdcxx=None, standard=(), machine=None, capabilities=())


def build_of(public: str, local: str) -> TorchBuild | None:
    """The matrix's row of a build: the default index has it without its local version, torch's own are named by it."""
    directory = matrix_directory()
    rows = parse_file(str(directory / FILE), read_file(directory / FILE, FILES), parse_torch)
    builds = [each for each in rows if (each.version, each.platform) == (public, "linux-64")
              and local in {each.index, *(("", f"cu{each.cuda.replace('.', '')}") if each.index == "default" else ())}]
    return next(iter(builds), None)


def pins(build: TorchBuild) -> Iterator[tuple[str, str]]:
    """(project, version) of NVIDIA's wheels that a build requires in one version alone.

    nvJitLink of a cuda-toolkit release is left out: newer ones are admitted.
    """
    for line in build.requires:
        if pin := PIN.match(line):
            yield pin[1], pin[2]
        elif (extras := TOOLKIT_PIN.match(line)) and build.toolkit is not None:
            parts = {NAMES.get(each.strip(), each.strip()) for each in extras[1].split(",")} - {"nvjitlink"}
            wanted = {component_package(each, build.toolkit) for each in parts}
            path = matrix_directory() / CUDA_FILE
            rows = parse_file(str(path), read_file(path, FILES), parse_cuda).components
            yield from ((each.package, each.version) for each in rows
                        if each.toolkit == build.toolkit and each.package in wanted)


def cuda_of(public: str, local: str, books: Books) -> str | None:
    """Its CUDA: of its local version, else the major of the libraries that the index's wheel is linked against."""
    if match := VARIANT.fullmatch(local):
        return f"{match[1]}.{match[2]}"
    if local:
        return CPU if local.startswith(CPU) else None
    sonames = (use.bounds.soname for use in books.nvidia.uses("torch", public))
    return next((match[1] for soname in sonames if (match := CUDART.match(soname))), None)


__all__ = ["host_of_release"]
