"""The tree of a mangled name. A node's parts, one after the other, spell the name again.

What may be repeated as `S_`, `S0_` and so on (Itanium C++ ABI 5.1.10) is a node with `counted` set; where the name
repeats it the tree has the same node again. What is written out once more is another node, whatever it looks like.
"""

from __future__ import annotations

from typing import Final

# Hostile names end at these. Of 210,000 real names the longest has 1,995 letters, and 19,468 when demangled; the parser
# goes 22 levels down.
MOST_LETTERS: Final = 65_536
DEEPEST: Final = 130
MOST_TEXT: Final = 200_000


class NotMangledError(ValueError):
    """Not a mangled name as far as we know, or one beyond our limits."""


class Node:
    """One component: `kind` says which, `parts` are letters and nodes in the order of the name."""

    __slots__ = ("counted", "kind", "parts")

    def __init__(self, kind: str, *parts: str | Node) -> None:
        self.kind = kind
        self.parts = parts
        self.counted = False

    def node(self, index: int) -> Node:
        """The part at `index`, which is a node by the grammar."""
        part = self.parts[index]
        if isinstance(part, str):
            raise NotMangledError
        return part

    def letters(self, index: int) -> str:
        """The part at `index`, which is letters by the grammar."""
        part = self.parts[index]
        if not isinstance(part, str):
            raise NotMangledError
        return part

    def nodes(self) -> list[Node]:
        """The parts that are nodes."""
        return [part for part in self.parts if isinstance(part, Node)]


ROOT = Node("root")             # the global namespace
STD = Node("std", "St")
SHARED = frozenset({"root", "std", "short", "builtin"})     # kinds of which there is one node for all names
ABBREVIATIONS = {letter: Node("short", f"S{letter}") for letter in "absiod"}
