"""Which packages belong to the GPU stack, where they stand in the pyramid, and what the loader shows of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from stackfix.diagnose.abi_groups import extensions
from stackfix.diagnose.abi_text import severity_of
from stackfix.diagnose.faults import find_faults, is_driver
from stackfix.diagnose.faults_text import told
from stackfix.diagnose.provenance import owner_of
from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Distribution
from stackfix.matrix.library_records import LibraryFamily

CUDA_SUFFIX = re.compile(r"-cu\d\d$")
PARTS = ("nvidia-", "cuda-", "jax-cuda", "pytorch-triton")
OTHERS = frozenset({"triton", "jaxlib", "tensorflow", "onnxruntime-gpu"})


class Stack:
    """The GPU stack of one environment."""

    def __init__(self, view: View) -> None:
        self.view = view

    def has(self, project: str) -> bool:
        """Whether a project belongs to it."""
        return project == "torch" or project in self._imported or project in OTHERS or project.startswith(PARTS) \
            or project in self._companions

    def level(self, project: str) -> str:
        """Its storey of the pyramid."""
        family = self.family(project)
        if family is not None:
            return family.level
        if project.startswith(("nvidia-", "cuda-")):
            return "cuda"
        return "extensions" if self.has(project) else "environment"

    def family(self, project: str) -> LibraryFamily | None:
        """The library that a wheel carries."""
        return self._carriers.get(CUDA_SUFFIX.sub("", project))

    def shown(self, *projects: str) -> str | None:
        """The loader's words where it shows that one of the projects fails, or lacks what another needs of it."""
        return next((self._shown[each] for each in projects if each in self._shown), None)

    def is_for_another_torch(self, project: str) -> bool:
        """Whether the loader shows that a project was built for another torch than the one that is installed."""
        known = extensions(self.view).get(project)
        return known is not None and bool(known.torch_symbols or known.missing) and \
            severity_of(self.view, known) != "note"

    @cached_property
    def _carriers(self) -> Mapping[str, LibraryFamily]:
        return {project: family for family in self.view.libraries.families for project in family.projects}

    @cached_property
    def _imported(self) -> frozenset[str]:
        return frozenset(each.project for each in self.view.libraries.imports) - {"numpy"}

    @cached_property
    def _companions(self) -> frozenset[str]:
        return frozenset(each.package for each in self.view.needs.companions)

    @cached_property
    def _shown(self) -> Mapping[str, str]:
        """What the loader says, by the projects that it is about."""
        found: dict[str, str] = {}
        for fault in find_faults(self.view):
            if fault.severity == "error" and not is_driver(self.view, fault.name):      # that is undecided here
                objects = (*fault.requesters, *((fault.provider,) if fault.provider else ()))
                for project in (*self._carrying(fault.name), *self._owning(objects)):
                    found.setdefault(project, told(fault.failure))
        return found

    def _carrying(self, soname: str) -> Iterator[str]:
        """Projects that carry a library, or would."""
        family = self.view.family_of(soname)
        for project in family.projects if family else ():
            yield from (f"{project}{suffix}" for suffix in ("", "-cu11", "-cu12", "-cu13"))

    def _owning(self, objects: Iterable[LoadedObject]) -> Iterator[str]:
        """Projects that installed files."""
        for each in objects:
            owner = owner_of(self.view, each.path, each.real_path)
            if owner is not None:
                yield owner.name


def named(distribution: Distribution) -> str:
    """As findings name a package."""
    return f"{distribution.name} {distribution.version}"
