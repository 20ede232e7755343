"""Text of a tree, node by node, with the template arguments that are in force where it is printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from stackfix.abi.mangled_nodes import MOST_TEXT, Node, NotMangledError

MOST_LEVELS = 220       # of the tree; three frames of Python each
MOST_WORK = 20 * MOST_TEXT      # letters joined on the way, of which the text is the last


class Scope(NamedTuple):
    """Arguments that `T_` speaks of, and those around them."""

    arguments: Node
    outer: Scope | None


class Spelled(NamedTuple):
    """A type, with what stands on both sides of the name that it declares."""

    left: str
    right: str = ""
    shape: str = ""         # "function" or "array": a `*` needs parentheses; "empty": a pack without elements


Rule = Callable[["Printer", Node], "Spelled | str"]


class Printer:
    """Prints one tree."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        """`rules`: how each kind of node is printed."""
        self.rules = rules
        self.scope: Scope | None = None
        self.element = 0                        # of the packs, where an expansion is being printed
        self.in_lambda = self.level = self.work = 0
        self.known: dict[tuple[int, int, int, int], Spelled] = {}
        self.scopes: list[Scope] = []           # keeps them alive: they are known by their id

    def spelled(self, node: Node) -> Spelled:
        """Both sides of the node."""
        key = (id(node), id(self.scope), self.element, self.in_lambda)
        found = self.known.get(key)
        if found is not None:
            return found
        rule = self.rules.get(node.kind)
        self.level += 1
        if rule is None or self.level > MOST_LEVELS:
            raise NotMangledError
        made = rule(self, node)
        found = made if isinstance(made, Spelled) else Spelled(made)
        self.level -= 1
        self.work += len(found.left) + len(found.right) + 8
        if self.work > MOST_WORK or len(found.left) + len(found.right) > MOST_TEXT:
            raise NotMangledError
        self.known[key] = found
        return found

    def text(self, node: Node) -> str:
        """The node, where it declares nothing."""
        found = self.spelled(node)
        return found.left + found.right

    def enter(self, arguments: Node) -> Scope | None:
        """`T_` speaks of these arguments from here on; the scope to return to."""
        before = self.scope
        self.scope = Scope(arguments, before)
        self.scopes.append(self.scope)
        return before

    def argument(self, number: int) -> Node | None:
        """What `T_` of this number stands for; None where an expansion has come to the end of its pack."""
        if self.scope is None:
            raise NotMangledError
        arguments = self.scope.arguments.nodes()
        if number >= len(arguments):
            raise NotMangledError
        found = arguments[number]
        if found.kind != "pack":
            return found
        elements = found.nodes()
        return elements[self.element] if self.element < len(elements) else None
