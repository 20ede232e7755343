"""Faults of extensions, by package: everything that one package lacks is one finding, however many its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stackfix.diagnose.faults import find_faults
from stackfix.diagnose.faults_cuda import cuda_major, is_about_torch
from stackfix.diagnose.faults_records import Fault, Sighting
from stackfix.diagnose.faults_symbols import is_asked_of_torch, is_torch_library
from stackfix.diagnose.finding_records import SEVERITIES
from stackfix.diagnose.installed_torch import CPU, installed_torch
from stackfix.diagnose.records import LoadedObject, MissingSymbol
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution
from stackfix.inspect.records import BadElf, FileAt

TORCH_PROJECTS = frozenset({"torch", "pytorch", "libtorch", "pytorch-cpu", "pytorch-gpu"})


@dataclass(slots=True, kw_only=True)
class Extension:
    """One package, or one file that no package owns, and what its files do not find."""

    name: str                       # "vllm", or the path of the file
    distribution: Distribution | None
    package: str | None             # "vllm 0.3.2"
    sightings: list[Sighting] = field(default_factory=list)
    torch_symbols: dict[str, None] = field(default_factory=dict)
    other_symbols: dict[str, None] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)      # sonames: of torch, or of another CUDA than torch's

    @property
    def label(self) -> str:
        return self.package or self.name.rpartition("/")[2]

    @property
    def first(self) -> Sighting:
        """The worst, the earliest of them."""
        return min(self.sightings, key=lambda each: SEVERITIES.index(each.severity))

    @property
    def files(self) -> tuple[LoadedObject, ...]:
        """The files, each once."""
        return tuple({each.requester.identity: each.requester for each in self.sightings if each.requester}.values())

    @property
    def cuda_major(self) -> int | None:
        """The CUDA major that its files were linked against."""
        return cuda_major((*self.missing, *(name for each in self.files for name in each.elf.needed)))

    @property
    def may_fail(self) -> bool:
        """Whether the package gets over it by itself."""
        return all(each.opening.may_fail is not None for each in self.sightings)


def extensions(view: View) -> Mapping[str, Extension]:
    """Extensions with faults by name; worked out once for a view."""
    remembered = vars(view)
    if "_extensions" not in remembered:
        found = dict[str, Extension]()
        for fault in find_faults(view):
            for sighting in fault.sightings if concerns(view, fault) else ():
                add(view, found, fault, sighting)
        remembered["_extensions"] = found
    known: Mapping[str, Extension] = remembered["_extensions"]
    return known


def concerns(view: View, fault: Fault) -> bool:
    """Whether a fault may come from an extension that does not fit. A file that was deleted is another matter."""
    if fault.category == "missing":
        gone = any(each.path.endswith(f"/{fault.name}") for each in view.environment.file_faults)
        return not gone and is_about_torch(view, fault)
    return fault.category in {"torch-symbol", "symbol-unknown"}


def add(view: View, found: dict[str, Extension], fault: Fault, sighting: Sighting) -> None:
    """Put one failure to its package."""
    name, distribution, package = whose(view, sighting)
    known = found.setdefault(name, Extension(name=name, distribution=distribution, package=package))
    known.sightings.append(sighting)
    if fault.category == "missing":
        known.missing.setdefault(fault.name)
    path = sighting.requester.path if sighting.requester else None
    for failure in sighting.opening.outcome.failures:
        if isinstance(failure, MissingSymbol) and failure.requester == path:
            if is_asked_of_torch(view, failure.name):
                known.torch_symbols.setdefault(failure.name)
            elif failure.name in fault.symbols and fault.category == "symbol-unknown":
                known.other_symbols.setdefault(failure.name)


def whose(view: View, sighting: Sighting) -> tuple[str, Distribution | None, str | None]:
    """(name, distribution, "name version") of the package that a failure is one of."""
    requester, project = sighting.requester, sighting.opening.project
    owners = view.owners(requester.path, requester.real_path) if requester else ()
    if owners:
        found = view.distributions.get(owners[0].name)
        return owners[0].name, found, f"{owners[0].name} {(found or owners[0]).version}"
    found = view.distributions.get(project) if project else None
    if found is not None:
        return found.name, found, f"{found.name} {found.version}"
    return requester.path if requester else sighting.opening.request.name, None, None


def is_torch_itself(extension: Extension) -> bool:
    """Whether it is torch's own files that do not fit each other."""
    return extension.name in TORCH_PROJECTS


def verdict(view: View, extension: Extension) -> str | None:
    """The code that tells it best; None where another check has it."""
    torch = installed_torch(view)
    if is_torch_itself(extension):
        return "SF302" if extension.torch_symbols else None
    of_torch = [name for name in extension.missing if is_torch_library(name)]
    if torch is None:
        return "SF401" if of_torch else "SF503"
    if torch.cuda == CPU and any("cuda" in name or not is_torch_library(name) for name in extension.missing):
        return "SF502"
    if len(of_torch) < len(extension.missing):
        return "SF504"
    return "SF501" if extension.torch_symbols or of_torch else "SF503"


def asked_of_torch(view: View, extension: Extension) -> Iterator[str]:
    """Every name that the extension's files ask of torch, found or not."""
    for each in extension.files:
        at = view.files.at(each.path)
        if isinstance(at, FileAt):
            try:
                yield from (symbol.name for symbol in view.files.symbols(at).undefined()
                            if is_asked_of_torch(view, symbol.name))
            except BadElf:      # told elsewhere
                continue
