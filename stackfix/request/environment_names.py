"""What packages of channels are to pip, by the names that the matrix knows."""

from __future__ import annotations

from stackfix.matrix.records import CondaNames

CHANNELS_ALONE = frozenset({"pip", "libtorch"})     # a tool of the environment itself, and a part of torch


class EnvironmentNames:
    """Packages -> projects."""

    def __init__(self, names: CondaNames) -> None:
        self._libraries = frozenset(row.package for row in names.stack if is_of_cuda(row.projects))
        self._projects = {row.package: row.projects[0] for row in (*names.stack, *names.other, *names.same)
                          if row.projects and row.package not in self._libraries}

    def project(self, package: str) -> str | None:
        """The project that pip brings in its place: None for a package of channels alone.

        One that the matrix does not know is of channels alone: that pip's project of its name is the same is a guess.
        """
        return None if package in CHANNELS_ALONE else self._projects.get(package)

    def is_library(self, package: str) -> bool:
        """Whether it is a library of CUDA, which wheels of torch bring themselves."""
        return package in self._libraries


def is_of_cuda(projects: tuple[str, ...]) -> bool:
    """Whether pip has it once for each CUDA major."""
    return any(project.startswith("nvidia-") for project in projects)
