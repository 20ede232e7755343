"""The programs of this machine that install packages of conda."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from stackfix.plan.rules_conda import Program

KINDS = ("conda", "mamba", "micromamba")
VARIABLES = ("CONDA_EXE", "MAMBA_EXE")      # what their shell functions start: it need not be on PATH


def programs_at_hand(environ: Mapping[str, str]) -> tuple[Program, ...]:
    """One of each kind: on PATH, else where its shell function says that it is."""
    found = {kind: kind for kind in KINDS if shutil.which(kind, path=environ.get("PATH", os.defpath)) is not None}
    for variable in VARIABLES:
        path = Path(environ.get(variable, ""))
        if path.is_absolute() and path.name in KINDS and os.access(path, os.X_OK):
            found.setdefault(path.name, str(path))
    return tuple(Program(kind=kind, word=found[kind]) for kind in KINDS if kind in found)
