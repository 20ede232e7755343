"""Imports one package. Runs in a child; see `child_talk`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from stackfix.verify.child_talk import Talk


def about_load(request: dict[str, Any], talk: Talk) -> dict[str, Any]:
    """The part of a child that imports `module`; it is absent where there is nothing of that name to import."""
    name: str = request["module"]
    talk.at("looking for " + name)
    if is_absent(name):
        return {"absent": name}
    talk.at("import " + name)
    module = importlib.import_module(name)
    return {"version": str(getattr(module, "__version__", "")), "file": str(getattr(module, "__file__", ""))}


def is_absent(name: str) -> bool:
    """Whether its top-level package is nowhere: an import that fails inside of it is another matter."""
    top = name.partition(".")[0]
    return top not in sys.modules and importlib.util.find_spec(top) is None
