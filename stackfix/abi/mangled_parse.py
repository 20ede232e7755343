"""Grammar of whole names: functions, variables, vtables, thunks (Itanium C++ ABI 5.1.1, 5.1.4)."""

from __future__ import annotations

import re
from contextlib import suppress

from stackfix.abi.mangled_cursor import OFFSET, SEQUENCE
from stackfix.abi.mangled_expressions import Expressions
from stackfix.abi.mangled_nodes import MOST_LETTERS, Node, NotMangledError

CLONE = re.compile(r"(?:[.@][A-Za-z_$0-9]+)+")
ENDS = "\0E.@"
OF_TYPE = ("TV", "TT", "TI", "TS", "TF", "TJ")
OF_NAME = ("GV", "TH", "TW")
OF_ENCODING = ("GTt", "GTn", "GA")


class Parser(Expressions):
    """The grammar's start."""

    def encoding(self) -> Node:
        """A function with its parameters, a variable, or a special name."""
        if self.peek() in "TG":
            return self.special()
        name = self.name()
        if self.peek() in ENDS:
            return name
        returned = [self.type()] if returns(name) else []
        return Node("function of", name, Node("returned", *returned), *self.parameters())

    def parameters(self) -> list[Node]:
        """Types up to the end, at least one."""
        found = [self.type()]
        while self.peek() not in ENDS:
            found.append(self.type())
        return found

    def special(self) -> Node:
        """A vtable, a typeinfo, a thunk, a guard variable."""
        for codes, rule in ((OF_TYPE, self.type), (OF_NAME, self.name), (OF_ENCODING, self.encoding)):
            for code in codes:
                if self.take(code):
                    return Node("special", code, rule())
        if self.take("TA"):
            return Node("special", "TA", self.argument())
        if self.take("TC"):
            derived = self.type()
            offset = self.match(OFFSET)
            return Node("construction", "TC", derived, offset, self.type())
        if self.take("GR"):
            name = self.name()
            return Node("temporary", "GR", name, self.match(SEQUENCE))
        self.expect("T")
        offsets = self.offset() if self.peek() in "hv" else self.covariant()
        return Node("thunk", f"T{offsets}", self.encoding())

    def covariant(self) -> str:
        """Two offsets, of `this` and of what is returned."""
        self.expect("c")
        return f"c{self.offset()}{self.offset()}"

    def offset(self) -> str:
        """`h` and a number, or `v` and two."""
        if self.take("h"):
            return f"h{self.match(OFFSET)}"
        self.expect("v")
        return f"v{self.match(OFFSET)}{self.match(OFFSET)}"


def returns(name: Node) -> bool:
    """Whether the function's type begins with what it returns: templates have it, constructors and conversions not."""
    while name.kind in {"local", "qualified"}:
        name = name.node(3 if name.kind == "local" else 1)
    if name.kind != "template":
        return False
    last = name.node(0)
    while last.kind in {"in", "tagged"}:
        last = last.node(1 if last.kind == "in" else 0)
    return last.kind not in {"structor", "conversion"}


def parse(name: str) -> tuple[Node, str]:
    """The tree of a name and the compiler's suffix (".cold", or ""). Raises NotMangledError.

    Compilers differ in what they count where a lambda stands in a data member's initialiser, and no name says which
    it was: what does not fit GCC up to 13 is read as those since have it.
    """
    if not name.startswith("_Z") or len(name) > MOST_LETTERS or "\0" in name:
        raise NotMangledError
    parser = Parser(name, 2)
    try:
        tree, suffix = whole(parser, name)
    except NotMangledError:
        if not parser.has_members:
            raise
        return whole(Parser(name, 2, members=True), name)
    if parser.has_members and parser.odd:
        other = Parser(name, 2, members=True)
        with suppress(NotMangledError):
            read = whole(other, name)
            return (tree, suffix) if other.odd else read
    return tree, suffix


def whole(parser: Parser, name: str) -> tuple[Node, str]:
    """What the parser makes of the whole name."""
    tree = parser.encoding()
    suffix = name[parser.at:]
    if suffix and not CLONE.fullmatch(suffix):
        raise NotMangledError
    return tree, suffix
