"""Grammar of types, template parameters and template arguments (5.1.5, 5.1.6)."""

from __future__ import annotations

import re

from stackfix.abi.mangled_cursor import NUMBER
from stackfix.abi.mangled_names import Names
from stackfix.abi.mangled_nodes import Node, NotMangledError
from stackfix.abi.mangled_operators import BUILTINS

BUILTIN = {code: Node("builtin", code) for code in BUILTINS}
CV = re.compile(r"[rVK]+")
FUNCTION = re.compile(r"(?:Do|DO|Dw|Dx)*F|Dx")
BOUND = re.compile(r"[0-9]*_")
FLOATING = re.compile(r"DF[0-9]+[_bx]|D[BU][0-9]+_")
LEVEL = re.compile(r"TL[0-9]+_[0-9A-Z]*_")


class Types(Names):
    """Types, and arguments of templates."""

    def type(self) -> Node:
        """A type; counted, unless it is a builtin one or an abbreviation."""
        letter = self.text[self.at]
        if letter in BUILTIN:
            self.at += 1
            return BUILTIN[letter]
        self.deeper()
        found = self.compound(letter)
        self.depth -= 1
        return found

    def compound(self, letter: str) -> Node:
        """A type that has parts."""
        if letter == "S":
            return self.substituted()
        if letter in "TD":
            return self.parameter_type() if letter == "T" else self.extended()
        if letter in "PROCG":
            self.at += 1
            found = Node("pointer", letter, self.target())
        elif letter in {"N", "Z"} or letter.isdigit():
            found = self.name()
        elif letter in "rVK":       # a function type is one with its qualifiers
            qualifiers = self.match(CV)
            found = Node("cv", qualifiers, self.function() if FUNCTION.match(self.text, self.at) else self.target())
        else:
            found = self.function() if letter == "F" else self.rare(letter)
        return found if found.counted else self.count(found)

    def target(self) -> Node:
        """A type that is no reference: nothing points to one, and nothing qualifies one."""
        found = self.type()
        self.odd = self.odd or (found.kind == "pointer" and found.parts[0] in {"R", "O"})
        return found

    def rare(self, letter: str) -> Node:
        """Arrays, pointers to members, vendors' qualifiers and types."""
        self.at += 1
        if letter == "A":
            if BOUND.match(self.text, self.at):
                return Node("array", "A", self.match(BOUND), self.type())
            bound = self.expression()
            self.expect("_")
            return Node("array", "A", bound, "_", self.type())
        if letter == "M":
            of = self.type()
            return Node("member pointer", "M", of, self.type())
        if letter == "U":
            name = self.source_name()
            arguments = [self.template_arguments()] if self.peek() == "I" else []
            return Node("vendor qualified", "U", name, *arguments, self.type())
        if letter == "u":
            name = self.source_name()
            return Node("vendor type", "u", name, *([self.template_arguments()] if self.peek() == "I" else []))
        raise NotMangledError

    def substituted(self) -> Node:
        """A type that begins with `S`: `St` and a name, something seen before, or an abbreviation."""
        if self.text[self.at + 1] == "t":
            return self.count(self.name())
        found = self.substitution()
        return self.count(self.arguments_of(found)) if self.peek() == "I" else found

    def parameter_type(self) -> Node:
        """`T_`, with arguments where it stands for a template; `Ts`, `Tu`, `Te` and a name."""
        if self.text[self.at + 1] in "sue":
            self.at += 2
            return self.count(Node("elaborated", self.text[self.at - 2:self.at], self.name()))
        found = self.count(self.template_parameter())
        if self.peek() != "I":
            return found
        start, seen, depth = self.at, len(self.seen), self.depth
        applied = self.arguments_of(found)
        if self.converting and self.peek() != "I":      # they are the operator's arguments, not the type's
            self.forget(start, seen, depth)
            return found
        return self.count(applied)

    def template_parameter(self) -> Node:
        """`T_`, `T0_`, `TL0__0_`."""
        if LEVEL.match(self.text, self.at):
            return Node("level parameter", self.match(LEVEL))
        self.expect("T")
        return Node("parameter", "T", self.match(NUMBER))

    def function(self) -> Node:
        """A function type, not counted: qualifiers before it belong to it."""
        parts: list[Node | str] = []
        while not self.take("F"):
            parts += self.exceptions()
        parts.append("FY" if self.take("Y") else "F")
        while not self.text.startswith(("E", "RE", "OE"), self.at):
            parts.append(self.type())
        ending = self.peek() if self.peek() != "E" else ""
        self.at += len(ending) + 1
        return Node("function", *parts, f"{ending}E")

    def exceptions(self) -> list[Node | str]:
        """One specification before a function type."""
        for code in ("Do", "Dx"):
            if self.take(code):
                return [code]
        if self.take("DO"):
            condition = self.expression()
            self.expect("E")
            return ["DO", condition, "E"]
        self.expect("Dw")
        listed: list[Node | str] = []
        while not self.take("E"):
            listed.append(self.type())
        return ["Dw", *listed, "E"]

    def extended(self) -> Node:
        """What begins with `D`: more builtin types, decltype, packs, vectors, functions with a specification."""
        code = self.text[self.at:self.at + 2]
        if code in BUILTIN:
            self.at += 2
            return BUILTIN[code]
        if code in {"DF", "DB", "DU"}:
            return Node("builtin", self.match(FLOATING))
        if code in {"Dt", "DT"}:
            found = self.decltype()
        elif code in {"Do", "DO", "Dw", "Dx"}:
            found = self.function()
        elif self.take("Dp"):
            found = Node("pack expansion", "Dp", self.type())
        elif self.take("Dv_"):
            size = self.expression()
            self.expect("_")
            found = Node("vector", "Dv_", size, "_", self.type())
        else:
            self.expect("Dv")
            found = Node("vector", "Dv", self.match(BOUND), self.type())
        return self.count(found)

    def decltype(self) -> Node:
        """`Dt` or `DT` ... `E`."""
        code = self.text[self.at:self.at + 2]
        self.at += 2
        inner = self.expression()
        self.expect("E")
        return Node("decltype", code, inner, "E")

    def template_arguments(self) -> Node:
        """`I` ... `E`."""
        self.expect("I")
        before, self.converting = self.converting, False
        found = Node("arguments", "I", *self.arguments(), "E")
        self.converting = before
        return found

    def arguments(self) -> list[Node]:
        """Arguments up to their `E`."""
        self.deeper()
        found: list[Node] = []
        while not self.take("E"):
            found.append(self.argument())
        self.depth -= 1
        return found

    def argument(self) -> Node:
        """A type, a value, or a pack of arguments."""
        letter = self.peek()
        if letter == "L":
            return self.literal()
        if letter == "X":
            self.at += 1
            inner = self.expression()
            self.expect("E")
            return Node("value", "X", inner, "E")
        if letter in {"J", "I"}:        # `I` before GCC 4.7
            self.at += 1
            return Node("pack", letter, *self.arguments(), "E")
        return self.type()
