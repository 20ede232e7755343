"""A release of torch that is asked about in an environment's place, as the almanac knows it."""

from __future__ import annotations

import re

from stackfix.abi.can_load import compare_with
from stackfix.abi.host import CPU, Host, HostTorch
from stackfix.abi.records import Books

MINOR = re.compile(r"\d{1,4}\.\d{1,4}")
VARIANT = re.compile(r"cu(\d{2})(\d)")
CUDART = re.compile(r"libcudart\.so\.(\d{1,3})")


def host_of_release(asked: str, books: Books) -> Host:
    """The release alone; `2.3` is the newest 2.3.x that was read. Raises BadInput for what is no release."""
    public, _, local = asked.partition("+")
    if MINOR.fullmatch(public):
        newest = next((each.version for each in books.torch.releases if each.minor == public), f"{public}.0")
        public = newest
    version = f"{public}+{local}" if local else public
    compared = compare_with(version, books.torch)
    own = not local and compared.why is None        # the index's own wheel, which was read
    torch = HostTorch(version=version, installed=False, folders=(), cuda=cuda_of(public, local, books),
                      string_abi=compared.release.string_abi if own else None)
    return Host(prefix=None, torch=torch, cudnn=None, nvidia=(), python=None, python_abi=None, glibc=None,
                libstdcxx=None, standard=(), machine=None, capabilities=())


def cuda_of(public: str, local: str, books: Books) -> str | None:
    """Its CUDA: of its local version, else the major of the libraries that the index's wheel is linked against."""
    if match := VARIANT.fullmatch(local):
        return f"{match[1]}.{match[2]}"
    if local:
        return CPU if local.startswith(CPU) else None
    sonames = (use.bounds.soname for use in books.nvidia.uses("torch", public))
    return next((match[1] for soname in sonames if (match := CUDART.match(soname))), None)


__all__ = ["host_of_release"]
