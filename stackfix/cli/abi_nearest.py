"""What would fit where a package does not: another release of it, of torch, or of a library, with its command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stackfix.abi.host import DOES_NOT_FIT, Axis, Host, Suggestion
from stackfix.abi.nearest import SYMBOLS, TorchThere, nearest_extension, nearest_torch
from stackfix.abi.nvidia_versions import version_key
from stackfix.abi.records import AbiFacts, Books, Bounds, Nearest
from stackfix.abi.torch_required import torch_required
from stackfix.diagnose.releases import admits

if TYPE_CHECKING:
    from stackfix.inspect.compiled_installed import Installation
    from stackfix.matrix.records import Matrix

OF_TORCH = frozenset({"torch", "C++ ABI", "CUDA"})
PLATFORMS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}
FLASH = "flash-attn"


def suggestions_for(facts: AbiFacts, host: Host, axes: Sequence[Axis], books: Books,
                    installation: Installation | None) -> tuple[Suggestion, ...]:
    """One for the extension, one for torch, one for each library that lacks something; those that are known."""
    lost = {each.name for each in axes if each.verdict == DOES_NOT_FIT}
    found = list[Suggestion]()
    if lost & OF_TORCH and host.torch is not None:
        from stackfix.matrix.load import load_matrix

        matrix = load_matrix()
        found += filter(None, (other_extension(facts, host, books, matrix, installation),
                               other_torch(facts, host, matrix)))
    found += other_libraries(facts, host, lost, installation)
    return tuple(found)


def other_extension(facts: AbiFacts, host: Host, books: Books, matrix: Matrix,
                    installation: Installation | None) -> Suggestion | None:
    """The release of the package that is nearest to this one and fits the torch."""
    subject, torch = facts.subject, host.torch
    if torch is None or subject.version is None:
        return None
    there = TorchThere(release=torch.version.partition("+")[0], string_abi=torch.string_abi, cuda=torch.cuda_major,
                       python=host.python, platform=platform_of(facts, host))
    judged = [each for each in books.judged.of(subject.name) if each.version != subject.version]
    found = nearest_extension(subject.name, subject.version, there, judged=judged,
                              companions=matrix.companions, flash=matrix.flash_attn_wheels)
    if found is None or found.version == subject.version:
        return None
    if found.package == FLASH:
        cuda = f" --cuda {torch.cuda}" if torch.cuda and "." in torch.cuda else ""
        command = f"stackfix lock --torch {there.release}{cuda} --flash-attn {found.version}"
        return Suggestion(nearest=found, command=command)
    if installation is None:
        return Suggestion(nearest=found, command=f"stackfix lock --torch {there.release} "
                                                 f"--with {found.package}=={found.version}")
    return Suggestion(nearest=found, command=install_line(installation, f"{found.package}=={found.version}"))


def other_torch(facts: AbiFacts, host: Host, matrix: Matrix) -> Suggestion | None:
    """The release of torch that is nearest to the one that is there and has all symbols."""
    subject, torch = facts.subject, host.torch
    if torch is None or facts.torch is None:
        return None
    required = torch_required(subject.requires, facts.python, facts.python_floor, facts.machine, host.python)
    found = nearest_torch(facts.torch, torch.version.partition("+")[0], matrix.torch, cuda=facts.cuda,
                          python=host.python, platform=platform_of(facts, host),
                          declared=(lambda version: admits(required, version)) if required else None)
    if found is None or found.version == torch.version:
        return None
    if found.build is not None or (required and not admits(required, found.version)):
        return Suggestion(nearest=found, command=None)      # of another index, or its own metadata refuse the lock
    keep = ""
    if subject.origin != "file" and subject.version is not None:
        version = subject.version.partition("+")[0]
        keep = f" --flash-attn {version}" if subject.name == FLASH else f" --with {subject.name}=={version}"
    return Suggestion(nearest=found, command=f"stackfix lock --torch {found.version}{keep}")


def other_libraries(facts: AbiFacts, host: Host, lost: set[str],
                    installation: Installation | None) -> Iterator[Suggestion]:
    """The version of each library wheel that is nearest to the installed one and has all that is called."""
    versions = dict(host.nvidia)
    for bounds in facts.library_bounds:
        if bounds.soname in lost and bounds.package in versions and bounds.versions and installation is not None:
            version = nearest_version(bounds, versions[bounds.package])
            found = Nearest(package=bounds.package, version=version, build=None, basis=SYMBOLS)
            yield Suggestion(nearest=found, command=install_line(installation, f"{bounds.package}=={version}"))


def nearest_version(bounds: Bounds, installed: str) -> str:
    """The oldest that is newer than the installed one, else the newest."""
    here = version_key(installed)
    newer = [each for each in bounds.versions if here is not None and (key := version_key(each)) and key > here]
    return newer[0] if newer else bounds.versions[-1]


def install_line(installation: Installation, requirement: str) -> str:
    """The line that puts one release into the environment and touches nothing else."""
    python = installation.python
    program = shlex.quote(python.executable) if python and python.executable else "python"
    pip = any(each.name == "pip" for each in installation.distributions)
    installer = f"{program} -m pip install" if pip else f"uv pip install --python {program}"
    return f"{installer} --no-deps {shlex.quote(requirement)}"


def platform_of(facts: AbiFacts, host: Host) -> str:
    """The platform that wheels must be for."""
    machine = host.machine or next(iter(facts.machine), None)
    return PLATFORMS.get(machine or "", "linux-64")


__all__ = ["suggestions_for"]
