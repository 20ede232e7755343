"""A child's script as one text that stands alone, made of modules of ours."""

from __future__ import annotations

import ast
import pkgutil
from functools import cache

# A script on standard input has the current folder in front of all others: a json.py there is not to be imported.
START = """\
from __future__ import annotations
import sys
if sys.path and not sys.path[0]:
    del sys.path[0]
"""
PARTS = {           # part -> (modules, each after those that it imports; the function that answers)
    "driver": (("child_talk", "child_kernels", "child_driver"), "about_driver"),
    "torch": (("child_talk", "child_compare", "child_attention", "child_torch"), "about_torch"),
    "load": (("child_talk", "child_load"), "about_load"),
}


@cache
def script_of(part: str) -> str:
    """What a Python is given on its standard input."""
    modules, function = PARTS[part]
    return "".join([START, *(without_ours(source_of(each)) for each in modules), f"\nrun({function})\n"])


def source_of(module: str) -> str:
    """The text of one of our modules, also out of a zip file."""
    found = pkgutil.get_data("stackfix.verify", f"{module}.py")
    if found is None:
        raise FileNotFoundError(module)
    return found.decode("utf-8")


def without_ours(source: str) -> str:
    """The text without its imports of stackfix, which are earlier in the script, and of the future: it comes first."""
    lines = source.splitlines(keepends=True)
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {"stackfix", "__future__"}:
            lines[node.lineno - 1:node.end_lineno] = ["\n"] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "".join(lines)
