"""A parsed name as readable C++."""

from __future__ import annotations

from stackfix.abi.mangled_nodes import Node
from stackfix.abi.mangled_printer import Printer
from stackfix.abi.mangled_text_expressions import EXPRESSIONS
from stackfix.abi.mangled_text_names import NAMES
from stackfix.abi.mangled_text_types import TYPES

RULES = {**NAMES, **TYPES, **EXPRESSIONS}


def text_of(tree: Node) -> str:
    """Readable C++, as c++filt spells it. Raises NotMangledError beyond the limits."""
    return Printer(RULES).text(tree)
