"""Which package carries a library that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.faults_cuda import SUFFIX, cuda_major
from stackfix.diagnose.installed_torch import installed_torch
from stackfix.diagnose.library_needs import parsed
from stackfix.diagnose.provenance import owner_of
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import FileFault, Owner
from stackfix.matrix.library_records import LibraryFamily

GONE = frozenset({"missing", "no-file"})
# wheels of CUDA 13 that still carry its number in their name
NUMBERED = frozenset({"nvidia-nccl", "nvidia-cusparselt", "nvidia-nvshmem", "nvidia-cudnn"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A wheel that has the library, and why it is known."""

    name: str                       # "nvidia-cudnn-cu12"
    specifier: str                  # "==8.9.2.26"; "" for any version
    why: str                        # "torch 2.3.1 requires nvidia-cudnn-cu12==8.9.2.26"

    @property
    def requirement(self) -> str:
        return f"{self.name}{self.specifier}"


def find_carrier(view: View, name: str, family: LibraryFamily | None, requester: LoadedObject | None,
                 project: str | None) -> Carrier | None:
    """By what is required, else by the family's projects and the CUDA major; None where nothing tells."""
    if family is None:
        return None
    required = next(required_carriers(view, family, requester, project), None)
    return required or carrier_by_major(view, name, family, requester)


def required_carriers(view: View, family: LibraryFamily, requester: LoadedObject | None,
                      project: str | None) -> Iterator[Carrier]:
    """Wheels of a family that the requester's package, the imported project or torch requires."""
    owner = owner_of(view, requester.path, requester.real_path) if requester else None
    for asking in dict.fromkeys((owner.name if owner else None, project, "torch")):
        known = view.distributions.get(asking or "")
        for line in known.requires if known else ():
            name, specifier = parsed(line)
            if SUFFIX.sub("", name) in family.projects and known is not None:
                yield Carrier(name=name, specifier=specifier,
                              why=f"{known.name} {known.version} requires {name}{specifier}")


def carrier_by_major(view: View, name: str, family: LibraryFamily, requester: LoadedObject | None) -> Carrier | None:
    """The family's wheel for the CUDA major that the library, its requester or torch is of."""
    torch = installed_torch(view)
    major = cuda_major((name, *(requester.elf.needed if requester else ()))) or (torch.cuda_major if torch else None)
    if major is None or not family.projects or not family.projects[0].startswith("nvidia-"):
        return None
    project = family.projects[0]
    wheel = project if major >= 13 and project not in NUMBERED else f"{project}-cu{major}"
    return Carrier(name=wheel, specifier="", why=f"{wheel} carries {family.name} for CUDA {major}")


def installed_carrier(view: View, family: LibraryFamily | None) -> Owner | None:
    """A wheel or conda package of the family that is installed, in whatever version."""
    if family is None:
        return None
    wheels = (Owner(manager=each.manager, name=each.name, version=each.version)
              for each in view.distributions.values() if SUFFIX.sub("", each.name) in family.projects)
    conda = view.environment.conda
    packages = (Owner(manager="conda", name=each.name, version=each.version)
                for each in (conda.packages if conda else ()) if each.name in family.conda)
    return next((*wheels, *packages).__iter__(), None)


def gone_files(view: View, name: str) -> tuple[FileFault, ...]:
    """Files of a name that an installed package recorded and that are not there."""
    return tuple(each for each in view.environment.file_faults
                 if each.kind in GONE and each.path.rpartition("/")[2] == name)

