"""What would fit where a package does not: another release of it, of torch, or of a library, with its command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stackfix.abi.host import DOES_NOT_FIT, Axis, Host, Suggestion
from stackfix.abi.nearest import FLASH, SYMBOLS, TorchThere, nearest_torch
from stackfix.abi.nvidia_versions import version_key
from stackfix.abi.records import AbiFacts, Books, Bounds, Nearest
from stackfix.abi.torch_required import torch_required
from stackfix.diagnose.install_lines import install_line_in
from stackfix.diagnose.nearest_release import Known, flash_line, nearest_release
from stackfix.diagnose.releases import admits

if TYPE_CHECKING:
    from stackfix.inspect.compiled_installed import Installation
    from stackfix.matrix.records import Matrix

OF_TORCH = frozenset({"torch", "C++ ABI", "CUDA"})
PLATFORMS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}


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
    """The release of the package that is nearest to this one and fits the torch: the one that `check` names too."""
    subject, torch = facts.subject, host.torch
    if torch is None or subject.version is None:
        return None
    there = TorchThere(release=torch.version.partition("+")[0], string_abi=torch.string_abi, cuda=torch.cuda_major,
                       python=host.python, platform=platform_of(facts, host))
    like = installation.find(subject.name) if installation is not None else None
    conda = subject.origin == "installed" and like is not None and like.manager == "conda"
    found = nearest_release(Known(subject.name, subject.version, subject.file_name, conda), there, torch.cuda, matrix,
                            books.judged.of(subject.name))
    if found is None:
        return None
    if found.package == FLASH:
        return Suggestion(nearest=found, command=flash_line(matrix, there, torch.cuda, found))
    requirement = f"{found.package}=={found.version}"
    if installation is None:
        return Suggestion(nearest=found, command=f"stackfix lock --torch {there.release} --with {requirement}")
    return Suggestion(nearest=found, command=install_line(installation, requirement))


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
    """The line that puts one release into the environment and touches nothing else, as `check` has it."""
    return install_line_in(installation, installation.find(requirement.partition("==")[0]), requirement)


def platform_of(facts: AbiFacts, host: Host) -> str:
    """The platform that wheels must be for."""
    machine = host.machine or next(iter(facts.machine), None)
    return PLATFORMS.get(machine or "", "linux-64")


__all__ = ["suggestions_for"]
