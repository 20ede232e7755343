"""From the steps of a package's import to the files that they open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property

from stackfix.diagnose.imports_projects import Projects
from stackfix.inspect.environment_records import SharedObject
from stackfix.inspect.records import Files
from stackfix.matrix.library_records import ImportLoads, ImportStep

WILD = frozenset("*?[")


class StepFiles:
    """Finds the files of import steps, in the folders that Python searches."""

    def __init__(self, projects: Projects, files: Files, cuda_of_torch: Callable[[], str | None]) -> None:
        self.projects, self.files, self._cuda_of_torch = projects, files, cuda_of_torch

    def find(self, row: ImportLoads, step: ImportStep) -> str | None:
        """What a step opens: a path, or a soname as it stands; None where the file is not there."""
        patterns = self.patterns(step)
        if not patterns or is_soname(patterns[0]):
            return patterns[0] if patterns else None
        sites = self.sites(row, patterns)
        return next((path for site in sites for each in patterns for path in self.matching(site, each)), None)

    def patterns(self, step: ImportStep) -> tuple[str, ...]:
        """Of a step, those that are known; empty where the step is not for this torch."""
        return tuple(each for each in map(self.filled, (step.file, *step.also)) if each is not None)

    def filled(self, pattern: str) -> str | None:
        """A pattern with torch's CUDA put in; None where that is not known."""
        if "{" not in pattern:
            return pattern
        if self._cuda is None or not self._cuda[0].isdigit():
            return None
        return pattern.replace("{cuda}", self._cuda.partition(".")[0]).replace(
            "{cuda-digits}", self._cuda.replace(".", ""))

    def expected(self, row: ImportLoads, step: ImportStep) -> str:
        """Where a file that is not there ought to be: a path, or its pattern where that has no folder of its own."""
        name = self.filled(step.file) or step.file
        if WILD & set(name.rpartition("/")[0]) or not self.is_own(row, name):
            return name.rpartition("/")[2]
        return f"{self.projects.distributions[row.project].site}/{name}"

    def sites(self, row: ImportLoads, patterns: Sequence[str]) -> tuple[str, ...]:
        """Folders of sys.path in order; where a project opens its own files, the one that it lies in first."""
        own = self.projects.distributions[row.project].site
        return tuple(dict.fromkeys((own, *self._folders))) if self.is_own(row, patterns[0]) else self._folders

    def is_own(self, row: ImportLoads, name: str) -> bool:
        """Whether a file lies in the package that is imported, and not in that of another project."""
        return "/" not in name or name.startswith(f"{row.module.partition('.')[0]}/")

    def matching(self, site: str, pattern: str) -> Iterator[str]:
        """Paths in a site folder that fit a pattern; of extension modules those that its Python takes."""
        if not WILD & set(pattern):
            path = f"{site}/{pattern}"
            if self.files.at(path) is not None:
                yield path
            return
        for path in self._by_top.get(f"{site}/{top_of(pattern)}", ()):
            if fits_pattern(path[len(site) + 1:], pattern):
                found = self._objects[path]
                if found.module is None or self.projects.fits(found.tag):
                    yield path

    def listed(self, row: ImportLoads) -> frozenset[str]:
        """Extension modules of the project that fit a pattern of its row's steps."""
        patterns = [each for step in row.steps for each in self.patterns(step)]
        found = self.projects.modules.get(row.project, ())
        return frozenset(each.path for each in found for site in self._folders if each.path.startswith(f"{site}/")
                         if any(fits_pattern(each.path[len(site) + 1:], pattern) for pattern in patterns))

    @cached_property
    def _cuda(self) -> str | None:
        """"12.1"; "cpu"."""
        return self._cuda_of_torch()

    @cached_property
    def _folders(self) -> tuple[str, ...]:
        return tuple(each.path for each in self.projects.environment.sites if each.exists)

    @cached_property
    def _objects(self) -> dict[str, SharedObject]:
        return {each.path: each for each in self.projects.environment.shared_objects}

    @cached_property
    def _by_top(self) -> dict[str, list[str]]:
        """Paths by site folder and first folder below it."""
        found = defaultdict[str, list[str]](list)
        folders = sorted(self._folders, key=len, reverse=True)
        for path in self._objects:
            site = next((each for each in folders if path.startswith(f"{each}/")), None)
            if site is not None:
                found[f"{site}/{top_of(path[len(site) + 1:])}"].append(path)
        return found


def top_of(path: str) -> str:
    """The first folder of a relative path; "" where it has none."""
    return path.partition("/")[0] if "/" in path else ""


def is_soname(pattern: str) -> bool:
    """Whether it is a name that the loader is to search, and no file below a site folder."""
    return "/" not in pattern and not WILD & set(pattern)


def fits_pattern(path: str, pattern: str) -> bool:
    """Whether each part of a path fits that of a pattern, as glob has it: `*` spans no slash."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))
