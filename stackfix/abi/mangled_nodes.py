"""The tree of a mangled name. A node's parts, one after the other, spell the name again.

`SUBSTITUTABLE` parts of a name (Itanium C++ ABI 5.1.8) are nodes with `counted` set. Where the name repeats one as `S_`,
the tree has the same node again: what is written out once more is another node, whatever it looks like.
"""

from __future__ import annotations

from typing import Final

# Hostile names: what goes beyond ends at once. The largest of some 400,000 real names have 12,000 letters, are 55 deep,
# and 25,000 letters when demangled.
MOST_LETTERS: Final = 100_000
DEEPEST: Final = 130
MOST_TEXT: Final = 1_000_000


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
ABBREVIATIONS = {letter: Node("short", f"S{letter}") for letter in "absiod"}
