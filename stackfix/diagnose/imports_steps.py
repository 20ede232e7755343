"""From the steps of a package's import to the files that they open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cached_property

from stackfix.diagnose.imports_projects import Projects
from stackfix.diagnose.records import OpenLibrary
from stackfix.inspect.environment_records import SharedObject
from stackfix.inspect.records import Files
from stackfix.matrix.library_records import ImportStep

WILD = frozenset("*?[")


class StepFiles:
    """Finds the files of import steps, in the folders that Python searches."""

    def __init__(self, projects: Projects, files: Files) -> None:
        self.projects, self.files = projects, files

    def request(self, project: str, step: ImportStep) -> OpenLibrary | None:
        """The dlopen of a step; None where no file fits its pattern, or it may fail and the file is not there."""
        name = self.name(project, step)
        return None if name is None else OpenLibrary(name=name, now=step.now, to_global=step.to_global)

    def name(self, project: str, step: ImportStep) -> str | None:
        """What a step opens: a path, or a soname as it stands."""
        if "/" not in step.file:
            return step.file
        own = self.projects.distributions[project].site
        if WILD & set(step.file):
            return next(self.matching(own, step.file), None)
        paths = [f"{site}/{step.file}" for site in dict.fromkeys((own, *self._folders))]
        there = next((path for path in paths if self.files.at(path) is not None), None)
        return there or (None if step.may_fail else paths[0])

    def matching(self, own: str, pattern: str) -> Iterator[str]:
        """Paths that fit a pattern, those beside the project's own metadata first; of modules, what Python takes."""
        for site in dict.fromkeys((own, *self._folders)):
            for path in self._below(site, pattern.partition("/")[0]):
                if fnmatchcase(path[len(site) + 1:], pattern):
                    found = self._objects[path]
                    if found.module is None or self.projects.fits(found.tag):
                        yield path

    def _below(self, site: str, top: str) -> Iterator[str]:
        """Shared objects of one package in a site folder, or of all where the package is a pattern."""
        if WILD & set(top):
            yield from (path for path in self._objects if path.startswith(f"{site}/"))
        else:
            yield from self._by_top.get(f"{site}/{top}", ())

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
                found[f"{site}/{path[len(site) + 1:].partition('/')[0]}"].append(path)
        return found
