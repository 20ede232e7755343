"""Installed files: which project a module belongs to, and which file stands in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stackfix.explain.derive.stack import project
from stackfix.explain.records import Derivation, Facts, Fields

PROJECTS = {"pkg-resources": "setuptools"}      # where a module's project has another name
INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


def project_of_module(fields: Fields, facts: Facts) -> Fields:    # noqa: ARG001 - all derivations are called alike
    """`project`, which installs the `module`."""
    name = project(fields["module"].partition(".")[0])
    return {"project": PROJECTS.get(name, name)}


def shadowing_file(fields: Fields, facts: Facts) -> Fields:     # noqa: ARG001 - all derivations are called alike
    """`shadow`, the file that is named, where it is none of an installed package."""
    for name in ("renamed", "own_file", "file"):
        path = fields.get(name)
        if path is not None and INSTALLED.search(path) is None:
            return {"shadow": path}
    return {}


DERIVE: Mapping[str, Derivation] = {"project-of-module": project_of_module, "shadowing-file": shadowing_file}
