"""Text of a tree, node by node, with the template arguments that are in force where it is printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from stackfix.abi.mangled_nodes import MOST_TEXT, Node, NotMangledError

MOST_LEVELS = 120       # of the tree, up to six frames of Python each; real names have 34
MOST_WORK = 20 * MOST_TEXT      # letters joined on the way; a node counts for 32


class Scope(NamedTuple):
    """Arguments that `T_` speaks of, and those around them."""

    arguments: tuple[Node, ...]
    packs: tuple[tuple[Node, ...] | None, ...]      # elements of those arguments that are packs
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
        size = len(found.left) + len(found.right)
        self.spend(size + 32)
        if size > MOST_TEXT:
            raise NotMangledError
        self.known[key] = found
        return found

    def spend(self, work: int) -> None:
        """So much more was done for this name."""
        self.work += work
        if self.work > MOST_WORK:
            raise NotMangledError

    def text(self, node: Node) -> str:
        """The node, where it declares nothing."""
        found = self.spelled(node)
        return found.left + found.right

    def enter(self, arguments: Node) -> Scope | None:
        """`T_` speaks of these arguments from here on; the scope to return to."""
        before, nodes = self.scope, tuple(arguments.nodes())
        packs = tuple(tuple(each.nodes()) if each.kind == "pack" else None for each in nodes)
        self.scope = Scope(nodes, packs, before)
        self.scopes.append(self.scope)
        self.spend(len(nodes))
        return before

    def elements(self, parameter: Node) -> int | None:
        """How many elements the pack has that a `T_` stands for; None where it stands for none."""
        number = number_of(parameter)
        if self.scope is None or self.in_lambda or number >= len(self.scope.packs):
            return None
        pack = self.scope.packs[number]
        return None if pack is None else len(pack)

    def argument(self, number: int) -> Node | None:
        """What `T_` of this number stands for; None where an expansion has come to the end of its pack."""
        if self.scope is None or number >= len(self.scope.arguments):
            raise NotMangledError
        pack = self.scope.packs[number]
        if pack is None:
            return self.scope.arguments[number]
        return pack[self.element] if self.element < len(pack) else None


def number_of(parameter: Node) -> int:
    """0 for `T_`, 1 for `T0_`, 2 for `T1_`."""
    digits = parameter.letters(1)[:-1]
    return int(digits) + 1 if digits else 0
