"""What would fit where a package does not: another release of it, of torch, or of a library, with its command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stackfix.abi.facts_libraries import cudnn_majors
from stackfix.abi.fit_libraries import left_to_others
from stackfix.abi.host import DOES_NOT_FIT, Axis, Host, HostTorch, Suggestion
from stackfix.abi.nearest import DEFAULT, FLASH, TorchThere, nearest_torch
from stackfix.abi.records import AbiFacts, Books
from stackfix.abi.torch_required import torch_required
from stackfix.diagnose.install_lines import install_line_in
from stackfix.diagnose.nearest_release import Known, flash_line, is_locked_with, nearest_release
from stackfix.diagnose.releases import admits
from stackfix.platforms import LINUX_SUBDIRS

if TYPE_CHECKING:
    from stackfix.inspect.compiled_installed import Installation
    from stackfix.matrix.records import Matrix, TorchBuild

OF_TORCH = frozenset({"torch", "C++ ABI", "CUDA", "cuDNN"})


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
    if installation is not None:
        from stackfix.cli.abi_libraries import other_libraries

        found += other_libraries(facts, host, lost, books.nvidia, installation)
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
        lock = f"stackfix lock --torch {there.release} --with {requirement}"
        return Suggestion(nearest=found, command=lock if can_be_locked(torch, there, matrix) else None)
    return Suggestion(nearest=found, command=install_line(installation, requirement))


def other_torch(facts: AbiFacts, host: Host, matrix: Matrix) -> Suggestion | None:
    """The release of torch that is nearest to the one that is there and has all symbols."""
    subject, torch = facts.subject, host.torch
    if torch is None or facts.torch is None:
        return None
    required = torch_required(subject.requires, facts.python, facts.python_floor, facts.machine, host.python)
    platform = platform_of(facts, host)
    known = Known(subject.name, subject.version or "")
    found = nearest_torch(facts.torch, torch.version.partition("+")[0], with_cudnn(facts, matrix), cuda=facts.cuda,
                          python=host.python, platform=platform,
                          declared=(lambda version: admits(required, version)) if required else None,
                          locked=lambda build: is_locked_with(build, known, matrix))
    if found is None or found.version == torch.version:
        return None
    locks = any(is_locked_with(each, known, matrix) for each in matrix.torch if each.version == found.version
                and (each.index, each.platform) == (DEFAULT, platform))
    if found.build is not None or not locks or (required and not admits(required, found.version)):
        return Suggestion(nearest=found, command=None)      # of another index, or a lock would be refused
    keep = ""
    if subject.origin != "file" and subject.version is not None:
        version = subject.version.partition("+")[0]
        keep = f" --flash-attn {version}" if subject.name == FLASH else f" --with {subject.name}=={version}"
    return Suggestion(nearest=found, command=f"stackfix lock --torch {found.version}{keep}")


def with_cudnn(facts: AbiFacts, matrix: Matrix) -> list[TorchBuild]:
    """Builds of torch with the cuDNN that the package leaves to others; all where it leaves none."""
    majors = set(map(str, cudnn_majors(left_to_others(facts.subject.files))))
    return [each for each in matrix.torch if not majors or each.cudnn is None
            or each.cudnn.partition(".")[0] in majors]


def can_be_locked(torch: HostTorch, there: TorchThere, matrix: Matrix) -> bool:
    """Whether a lock of the release brings this build: the default index's, as far as its CUDA tells."""
    return any(each.version == there.release and each.index == DEFAULT and each.platform == there.platform
               and torch.cuda in {None, each.cuda, each.cuda.partition(".")[0]} for each in matrix.torch)


def install_line(installation: Installation, requirement: str) -> str:
    """The line that puts one release into the environment and touches nothing else, as `check` has it."""
    return install_line_in(installation, installation.find(requirement.partition("==")[0]), requirement)


def platform_of(facts: AbiFacts, host: Host) -> str:
    """The platform that wheels must be for."""
    machine = host.machine or next(iter(facts.machine), None)
    return LINUX_SUBDIRS.get(machine or "", "linux-64")


__all__ = ["suggestions_for"]
