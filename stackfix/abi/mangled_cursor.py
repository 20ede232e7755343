"""Where a parser stands in a mangled name, and the small tokens of the grammar."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from stackfix.abi.mangled_nodes import ABBREVIATIONS, DEEPEST, SHARED, Node, NotMangledError

DIGITS = re.compile(r"[0-9]{1,9}(?![0-9])")
SEQUENCE = re.compile(r"([0-9A-Z]{0,6})_")
NUMBER = re.compile(r"[0-9]{0,9}_")     # int() refuses thousands of digits
DISCRIMINATOR = re.compile(r"_[0-9]|__[0-9]+_")
OFFSET = re.compile(r"n?[0-9]{1,18}_")


class Cursor(ABC):
    """The name, the place in it, and what was seen that may be repeated as `S_`, `S0_` and so on."""

    def __init__(self, text: str, at: int, *, members: bool = False) -> None:
        """`members`: whether a data member counts in whose initialiser a lambda stands, as since GCC 14."""
        self.text, self.at = f"{text}\0\0", at      # the end needs no test of its own
        self.end, self.depth, self.steps = len(text), 0, 4 * len(text)
        self.converting = False     # in the type of a conversion operator
        self.members, self.has_members = members, False
        self.odd = False            # has a type that no program has: a substitution was taken for another
        self.seen: list[Node] = []

    def peek(self) -> str:
        """The next letter."""
        return self.text[self.at]

    def take(self, letters: str) -> bool:
        """Whether these letters stand here; steps over them."""
        if self.text.startswith(letters, self.at):
            self.at += len(letters)
            return True
        return False

    def expect(self, letters: str) -> None:
        """Steps over letters that must stand here."""
        if not self.take(letters):
            raise NotMangledError

    def match(self, pattern: re.Pattern[str]) -> str:
        """What fits here; steps over it."""
        found = pattern.match(self.text, self.at)
        if found is None:
            raise NotMangledError
        self.at = found.end()
        return found[0]

    def count(self, node: Node) -> Node:
        """The node, which may be repeated from here on."""
        if node.kind in SHARED:         # by all names: counted in one it would spoil the others
            raise NotMangledError
        node.counted = True
        self.seen.append(node)
        return node

    def forget(self, at: int, seen: int, depth: int) -> None:
        """Back to a place where another rule may fit."""
        for node in self.seen[seen:]:
            node.counted = False
        del self.seen[seen:]
        self.at, self.depth = at, depth

    def deeper(self) -> None:
        """One level down; the caller comes up again."""
        self.depth += 1
        self.steps -= 1
        if self.depth > DEEPEST or self.steps < 0:      # a rule that tries twice could take for ever
            raise NotMangledError

    def substitution(self) -> Node:
        """`S_`, `S0_`, or an abbreviation; `St` belongs to names."""
        letter = self.text[self.at + 1]
        if letter in ABBREVIATIONS:
            self.at += 2
            return ABBREVIATIONS[letter]
        self.at += 1
        found = SEQUENCE.match(self.text, self.at)
        if found is None:
            raise NotMangledError
        self.at = found.end()
        number = int(found[1], 36) + 1 if found[1] else 0
        if number >= len(self.seen):
            raise NotMangledError
        return self.seen[number]

    def source_name(self) -> Node:
        """An identifier after its length."""
        digits = self.match(DIGITS)
        start = self.at
        self.at += int(digits)
        if self.at > self.end or self.at == start:
            raise NotMangledError
        return Node("source", digits, self.text[start:self.at])

    # The grammar's rules call each other: what a module of them needs from the others.

    @abstractmethod
    def encoding(self) -> Node:
        """A function with its parameters, a variable, or a special name."""

    @abstractmethod
    def name(self) -> Node:
        """A name of a function, variable or type, with its scope and template arguments."""

    @abstractmethod
    def unqualified(self) -> Node:
        """The last component of a name."""

    @abstractmethod
    def template_arguments(self) -> Node:
        """`I` ... `E`."""

    @abstractmethod
    def type(self) -> Node:
        """A type."""

    @abstractmethod
    def template_parameter(self) -> Node:
        """`T_`, `T0_`."""

    @abstractmethod
    def decltype(self) -> Node:
        """`Dt` or `DT` ... `E`."""

    @abstractmethod
    def expression(self) -> Node:
        """An expression in a template argument, a decltype, an array bound."""

    @abstractmethod
    def literal(self) -> Node:
        """`L` ... `E`."""
