"""What packages of channels are to pip, by the names that the matrix knows."""

from __future__ import annotations

import re

from stackfix.matrix.records import CondaNames

CLAUSE = re.compile(r"(?P<operator>[=<>!~]+)(?P<version>.+)")
PARTS = 3                       # of a version of NCCL in pip
CHANNELS_ALONE = frozenset({"pip", "libtorch"})     # a tool of the environment itself, and a part of torch


class EnvironmentNames:
    """Packages -> projects."""

    def __init__(self, names: CondaNames) -> None:
        self._libraries = {row.package: row for row in names.stack if is_of_cuda(row.projects)}
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

    def limits(self, package: str, specifier: str | None) -> tuple[str, ...]:
        """The bound as pip reads it, of each project that may bring the library; () where pip has no words for it."""
        row = self._libraries.get(package)
        if row is None or specifier is None:
            return ()
        bound = shorter(specifier) if row.versions == "longer" else specifier
        return tuple(f"{project}{bound}" for project in row.projects)


def shorter(specifier: str) -> str:
    """The bound with one part of the version less: conda's 2.20.5.1 is pip's 2.20.5."""
    return ",".join(clause for part in specifier.split(",") if (clause := shorter_clause(part)))


def shorter_clause(text: str) -> str | None:
    """One clause; None where it says nothing of the shorter version."""
    found = CLAUSE.fullmatch(text)
    if found is None or found["version"].removesuffix(".*").count(".") < PARTS:
        return text
    version = ".".join(found["version"].split(".")[:PARTS])
    widened = {">": ">=", "<": "<=", "~=": ">=", "!=": None}
    operator = widened.get(found["operator"], found["operator"])
    return None if operator is None else f"{operator}{version}"


def is_of_cuda(projects: tuple[str, ...]) -> bool:
    """Whether pip has it once for each CUDA major."""
    return any(project.startswith("nvidia-") for project in projects)
