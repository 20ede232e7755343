"""Installed files and their owners."""

from __future__ import annotations

from collections.abc import Mapping

from stackfix.explain.derive.stack import project
from stackfix.explain.records import Derivation, Facts, Fields

PROJECTS = {"pkg-resources": "setuptools"}      # where a module's project has another name


def module_name(fields: Fields, facts: Facts) -> Fields:    # noqa: ARG001 - all derivations are called alike
    """`project`, which installs the `module`."""
    name = project(fields["module"].partition(".")[0])
    return {"project": PROJECTS.get(name, name)}


DERIVE: Mapping[str, Derivation] = {"module-name": module_name}
