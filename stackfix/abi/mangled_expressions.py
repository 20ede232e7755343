"""Grammar of expressions: template arguments, decltype and array bounds have them (5.1.6.3)."""

from __future__ import annotations

import re

from stackfix.abi.mangled_nodes import STD, Node, NotMangledError
from stackfix.abi.mangled_operators import OPERATORS
from stackfix.abi.mangled_types import Types

VALUE = re.compile(r"n?[0-9a-f]*(?:_n?[0-9a-f]+)?")
FUNCTION_PARAMETER = re.compile(r"f(?:L[0-9]{1,9})?p[rVK]*(?:[0-9]{0,9}_|T)")
CASTS = ("sc", "cc", "dc", "rc")
OF_TYPE = ("ti", "st", "at")
FOLDS = ("fl", "fr", "fL", "fR")
DESIGNATED = ("di", "dx", "dX")


class Expressions(Types):
    """Expressions and literals."""

    def expression(self) -> Node:
        """An expression, one level deeper."""
        self.deeper()
        found = self.any_expression()
        self.depth -= 1
        return found

    def any_expression(self) -> Node:
        letter = self.peek()
        code = self.text[self.at:self.at + 2]
        if letter in "LT":
            return self.literal() if letter == "L" else self.template_parameter()
        if letter == "f" and FUNCTION_PARAMETER.match(self.text, self.at):
            return Node("function parameter", self.match(FUNCTION_PARAMETER))
        if letter.isdigit() or code in {"on", "gs", "dn", "sr"}:
            return self.unresolved()
        if self.take("St"):
            return self.with_arguments(Node("in", STD, self.unqualified()))
        return self.special_form(code) or self.operation(code)

    def special_form(self, code: str) -> Node | None:
        """Expressions whose parts are not only operands; None for the others."""
        if code in {"cv", "nw", "na"}:
            return self.conversion() if code == "cv" else self.new(code)
        if code in {"tl", "il"}:
            self.at += 2
            of = [self.type()] if code == "tl" else []
            return Node("braced", code, *of, *self.list(), "E")
        if code in {"cl", "cp"}:
            self.at += 2
            return Node("call", code, *self.list(), "E")
        if code in CASTS or code in OF_TYPE:
            self.at += 2
            to = self.type()
            return Node("cast", code, to, self.expression()) if code in CASTS else Node("of type", code, to)
        return self.rare_form(code)

    def rare_form(self, code: str) -> Node | None:
        """Expressions about packs, designated initialisers, vendors' own."""
        if code in FOLDS:
            return self.fold(code)
        if code in DESIGNATED:
            self.at += 2
            first = self.source_name() if code == "di" else self.expression()
            end = [self.expression()] if code == "dX" else []
            return Node("designated", code, first, *end, self.expression())
        if code in {"sZ", "sp"}:
            self.at += 2
            return Node("sizeof pack" if code == "sZ" else "expansion", code, self.expression())
        if self.take("sP"):
            return Node("sizeof list", "sP", *self.arguments(), "E")
        if code[:1] == "u":
            self.at += 1
            return Node("vendor call", "u", self.source_name(), *self.arguments(), "E")
        return None

    def list(self) -> list[Node]:
        """Expressions up to their `E`."""
        found: list[Node] = []
        while not self.take("E"):
            found.append(self.expression())
        return found

    def conversion(self) -> Node:
        """`cv` type and one expression, or `_`, some and `E`."""
        self.at += 2
        to = self.type()
        if self.take("_"):
            return Node("converted list", "cv", to, "_", *self.list(), "E")
        return Node("converted", "cv", to, self.expression())

    def new(self, code: str) -> Node:
        """`nw` places `_` type, then `E` or an initialiser."""
        self.at += 2
        places: list[Node | str] = []
        while not self.take("_"):
            places.append(self.expression())
        of = self.type()
        if self.take("pi"):
            return Node("new", code, *places, "_", of, "pi", *self.list(), "E")
        if self.text.startswith("il", self.at):
            return Node("new", code, *places, "_", of, self.expression())
        self.expect("E")
        return Node("new", code, *places, "_", of, "E")

    def fold(self, code: str) -> Node:
        """A fold over a pack, with an operator and one or two operands."""
        self.at += 2
        operator = self.text[self.at:self.at + 2]
        if operator not in OPERATORS:
            raise NotMangledError
        self.at += 2
        first = self.expression()
        return Node("fold", code, operator, first, *([self.expression()] if code[1] in "LR" else []))

    def operation(self, code: str) -> Node:
        """An operator and its operands."""
        if code not in OPERATORS:
            raise NotMangledError
        self.at += 2
        if code in {"dt", "pt"}:
            left = self.expression()
            return Node("access", code, left, self.unresolved_or_expression())
        if code in {"pp", "mm"}:
            prefix = "_" if self.take("_") else ""
            return Node("step", code, prefix, self.expression())
        operands = [self.expression() for _ in range(OPERATORS[code][1])]
        return Node("operation", code, *operands)

    def unresolved_or_expression(self) -> Node:
        """The member on the right of `.` or `->`."""
        if self.peek().isdigit() or self.text.startswith(("on", "dn", "sr", "gs"), self.at):
            return self.unresolved()
        return self.expression()

    def unresolved(self) -> Node:
        """A name that depends on template parameters."""
        if self.take("gs"):
            return Node("global", "gs", self.expression())
        if self.take("srN"):
            self.at -= 1
            return self.unresolved_nested()
        if self.take("sr"):
            scope = self.type()
            return Node("scoped", "sr", scope, self.simple())
        return self.simple()

    def unresolved_nested(self) -> Node:
        """`srN` type, levels, `E` and a base; or, as GCC writes it, a nested type and a base."""
        start, seen, depth = self.at, len(self.seen), self.depth
        try:
            scope = self.type()
            return Node("scoped", "sr", scope, self.simple())
        except NotMangledError:
            self.forget(start + 1, seen, depth)
        parts: list[Node | str] = [self.type()]
        while not self.take("E"):
            parts.append(self.simple())
        return Node("scoped", "srN", *parts, "E", self.simple())

    def simple(self) -> Node:
        """The last component of such a name, with template arguments."""
        if self.take("on"):
            return self.with_arguments(Node("named operator", "on", self.operator()))
        if self.take("dn"):
            of = self.source_name() if self.peek().isdigit() else self.type()
            return Node("destroyed", "dn", of)
        return self.with_arguments(self.unqualified())

    def with_arguments(self, name: Node) -> Node:
        """The name, with template arguments where they follow."""
        if self.peek() == "I":
            return Node("template", name, self.template_arguments())
        return name

    def literal(self) -> Node:
        """`L` type value `E`, or `L_Z` function `E`."""
        self.at += 1
        if self.text.startswith(("_Z", "Z"), self.at):
            code = "L_Z" if self.take("_Z") else "LZ"
            self.at += code == "LZ"
            self.deeper()
            found = self.encoding()
            self.depth -= 1
            self.expect("E")
            return Node("external", code, found, "E")
        of = self.type()
        value = self.match(VALUE)
        self.expect("E")
        return Node("literal", "L", of, value, "E")

