"""Which package carries a library that is missing, and the lines that bring it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from stackfix.diagnose.faults_cuda import SUFFIX, cuda_major
from stackfix.diagnose.imports_steps import WILD
from stackfix.diagnose.install_lines import install_line
from stackfix.diagnose.installed_torch import installed_torch
from stackfix.diagnose.library_needs import parsed
from stackfix.diagnose.provenance import owner_of
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution, FileFault, Owner
from stackfix.matrix.library_records import LibraryFamily

MAJOR = re.compile(r"\.so\.([1-9]\d*)")
GONE = frozenset({"missing", "no-file"})
# wheels of CUDA 13 that still carry its number in their name
NUMBERED = frozenset({"nvidia-nccl", "nvidia-cusparselt", "nvidia-nvshmem", "nvidia-cudnn"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A package that has the library, and why it is known."""

    name: str                       # "nvidia-cudnn-cu12"; of conda "cudnn"
    specifier: str                  # "==8.9.2.26"; "" for any version
    why: str                        # "torch 2.3.1 requires nvidia-cudnn-cu12==8.9.2.26"
    like: Owner | None              # what tells which installer brings it: who requires it, or needs the library

    @property
    def requirement(self) -> str:
        return f"{self.name}{self.specifier}"


def find_carrier(view: View, name: str, family: LibraryFamily | None, requester: LoadedObject | None,
                 project: str | None) -> Carrier | None:
    """By what is required, else by the family's projects and the CUDA major; None where nothing tells.

    What conda installed looks in conda's folders, and a wheel puts nothing there.
    """
    if family is None:
        return None
    known = view.distributions.get(project or "")
    owner = owner_of(view, requester.path, requester.real_path) if requester else owner_from(known) if known else None
    if owner is not None and owner.manager == "conda":
        return carrier_of_conda(name, family, owner)
    required = next(required_carriers(view, family, requester, project), None)
    return required or carrier_by_major(view, name, family, requester)


def carrier_of_conda(name: str, family: LibraryFamily, owner: Owner) -> Carrier | None:
    """The family's package in conda; its version counts like the soname, unless that begins with 0."""
    if not family.conda:
        return None
    major = MAJOR.search(name)
    return Carrier(name=family.conda[0], specifier=f"={major[1]}" if major else "", like=owner,
                   why=f"{family.conda[0]} carries {family.name} in conda")


def bring(view: View, carriers: Iterable[Carrier]) -> Iterator[str]:
    """The lines that install them, one for each installer."""
    groups: dict[bool, list[Carrier]] = {}
    for each in carriers:
        groups.setdefault(each.like is not None and each.like.manager == "conda", []).append(each)
    for group in groups.values():
        yield install_line(view, group[0].like, *dict.fromkeys(each.requirement for each in group))


def required_carriers(view: View, family: LibraryFamily, requester: LoadedObject | None,
                      project: str | None) -> Iterator[Carrier]:
    """Wheels of a family that the requester's package, the imported project or torch requires."""
    owner = owner_of(view, requester.path, requester.real_path) if requester else None
    for asking in dict.fromkeys((owner.name if owner else None, project, "torch")):
        known = view.distributions.get(asking or "")
        for line in known.requires if known else ():
            name, specifier = parsed(line)
            if SUFFIX.sub("", name) in family.projects and known is not None:
                yield Carrier(name=name, specifier=specifier, like=replace(owner_from(known), manager="pip"),
                              why=f"{known.name} {known.version} requires {name}{specifier}")


def carrier_by_major(view: View, name: str, family: LibraryFamily, requester: LoadedObject | None) -> Carrier | None:
    """The family's wheel for the CUDA major that the library, its requester or torch is of."""
    torch = installed_torch(view)
    major = cuda_major((name, *(requester.elf.needed if requester else ()))) or (torch.cuda_major if torch else None)
    if major is None or not family.projects or not family.projects[0].startswith("nvidia-"):
        return None
    project = family.projects[0]
    wheel = project if major >= 13 and project not in NUMBERED else f"{project}-cu{major}"
    owner = owner_of(view, requester.path, requester.real_path) if requester else None
    return Carrier(name=wheel, specifier="", why=f"{wheel} carries {family.name} for CUDA {major}", like=owner)


def owner_from(distribution: Distribution) -> Owner:
    """A project as the owner of its files."""
    return Owner(manager=distribution.manager, name=distribution.name, version=distribution.version)


def installed_carrier(view: View, family: LibraryFamily | None) -> Owner | None:
    """A wheel or conda package of the family that is installed, in whatever version."""
    if family is None:
        return None
    wheels = (owner_from(each) for each in view.distributions.values() if SUFFIX.sub("", each.name) in family.projects)
    conda = view.environment.conda
    packages = (Owner(manager="conda", name=each.name, version=each.version)
                for each in (conda.packages if conda else ()) if each.name in family.conda)
    return next((*wheels, *packages).__iter__(), None)


def gone_files(view: View, name: str) -> tuple[FileFault, ...]:
    """Files of a name that an installed package recorded and that are not there.

    What an import opens by a path or a pattern may be anything else: then a file that is no file is told by itself.
    """
    return recorded(view, name, GONE) if is_plain(name) else recorded(view, name, {"missing"})


def recorded(view: View, name: str, kinds: Container[str]) -> tuple[FileFault, ...]:
    """Faults of recorded files under a name, a path or a pattern."""
    found = [each for each in view.environment.file_faults if each.kind in kinds]
    if is_plain(name):
        return tuple(each for each in found if each.path.rpartition("/")[2] == name)
    whole = "/" in name
    return tuple(each for each in found if fnmatchcase(each.path if whole else each.path.rpartition("/")[2], name))


def is_plain(name: str) -> bool:
    """Whether a name is one that the loader searches for, and no path or pattern of a package's own code."""
    return "/" not in name and not WILD & set(name)
