"""Grammar of names: nested, local and unqualified ones, constructors, operators, lambdas (5.1.2, 5.1.3, 5.1.7)."""

from __future__ import annotations

import re

from stackfix.abi.mangled_cursor import DISCRIMINATOR, NUMBER, Cursor
from stackfix.abi.mangled_nodes import ROOT, STD, Node, NotMangledError
from stackfix.abi.mangled_operators import OPERATORS

QUALIFIERS = re.compile(r"[rVK]*[RO]?")
STRUCTOR = re.compile(r"C[1-5]|D[0-5]")
INHERITED = re.compile(r"CI[1-3]")
UNCOUNTED = frozenset({"std", "short", "member"})
PARAMETER_DECLARATIONS = ("Ty", "Tk", "Tn", "Tt", "Tp")


class Names(Cursor):
    """Names, and what they are made of."""

    def name(self) -> Node:
        """A name of a function, variable or type. It is counted by the caller, if at all."""
        letter = self.peek()
        if letter == "N":
            return self.nested()
        if letter == "Z":
            return self.local()
        if letter == "S" and self.text[self.at + 1] != "t":
            return self.arguments_of(self.substitution())
        scope = STD if self.take("St") else ROOT
        found = Node("in", scope, self.unqualified())
        return self.arguments_of(self.count(found)) if self.peek() == "I" else found

    def arguments_of(self, template: Node) -> Node:
        """A template with its arguments."""
        if self.peek() != "I":
            raise NotMangledError
        return Node("template", template, self.template_arguments())

    def nested(self) -> Node:
        """`N` ... `E`. What stands before a further component is counted, the whole is not."""
        self.at += 1
        qualifiers = "H" if self.take("H") else self.match(QUALIFIERS)
        found: Node | None = None
        while not self.take("E"):
            if found is not None and not found.counted and found.kind not in UNCOUNTED and self.counts_here():
                self.count(found)
            found = self.component(found)
        if found is None:
            raise NotMangledError
        return Node("qualified", qualifiers, found) if qualifiers else found

    def counts_here(self) -> bool:
        """Whether what stands before this place is counted: always, but for a data member with a lambda."""
        if self.peek() != "M":
            return True
        self.has_members = True
        return self.members

    def component(self, scope: Node | None) -> Node:
        """One more component of a nested name."""
        letter = self.peek()
        following = self.text[self.at + 1]
        if letter == "I" and scope is not None:
            return Node("template", scope, self.template_arguments())
        if letter == "M" and scope is not None:     # a lambda in the initialiser of a data member
            self.at += 1
            return Node("member", scope, "M")
        if scope is None:
            if letter == "S":
                return STD if self.take("St") else self.substitution()
            if letter == "T":
                return self.template_parameter()
            if letter == "D" and following in "tT":
                return self.decltype()
        return Node("in", scope or ROOT, self.unqualified())

    def local(self) -> Node:
        """`Z` function `E` and what stands in it: an entity, a string literal, a default argument's lambda."""
        self.at += 1
        self.deeper()
        function = self.encoding()
        self.depth -= 1
        self.expect("E")
        if self.take("s"):
            return Node("local", "Z", function, "Es", Node("string"), self.discriminator())
        if self.take("d"):
            number = self.match(NUMBER)
            return Node("local", "Z", function, f"Ed{number}", self.entity(), "")
        found = self.entity()
        return Node("local", "Z", function, "E", found, self.discriminator())

    def entity(self) -> Node:
        """What stands in a function."""
        self.deeper()
        found = self.name()
        self.depth -= 1
        return found

    def discriminator(self) -> str:
        """Which of several entities of the same name; "" for the first."""
        found = DISCRIMINATOR.match(self.text, self.at)
        return self.match(DISCRIMINATOR) if found else ""

    def unqualified(self) -> Node:
        """One component, with its ABI tags."""
        found = self.plain()
        while self.take("B"):
            found = Node("tagged", found, "B", self.source_name())
        return found

    def plain(self) -> Node:
        """One component without its tags."""
        letter = self.peek()
        if letter.isdigit():
            return self.source_name()
        if letter == "L":               # internal linkage; it has no scope of its own
            self.at += 1
            return Node("internal", "L", self.source_name(), self.discriminator())
        if letter == "U":
            return self.unnamed()
        return self.structor() if letter in "CD" else self.operator()

    def structor(self) -> Node:
        """A constructor or destructor, one that is inherited, or a structured binding."""
        if self.take("DC"):
            parts: list[Node] = []
            while not self.take("E"):
                parts.append(self.source_name())
            return Node("binding", "DC", *parts, "E")
        if self.text.startswith("CI", self.at):
            return Node("structor", self.match(INHERITED), self.type())
        return Node("structor", self.match(STRUCTOR))

    def operator(self) -> Node:
        """`pl`, `cv` type, `li` suffix."""
        code = self.text[self.at:self.at + 2]
        if code == "cv":
            self.at += 2
            before, self.converting = self.converting, True
            to = self.type()
            self.converting = before
            return Node("conversion", "cv", to)
        if code == "li":
            self.at += 2
            return Node("suffix", "li", self.source_name())
        if code[:1] == "v" and code[1:].isdigit():
            self.at += 2
            return Node("vendor", code, self.source_name())
        if code not in OPERATORS:
            raise NotMangledError
        self.at += 2
        return Node("operator", code)

    def unnamed(self) -> Node:
        """`Ut` and a lambda's `Ul` parameters `E`, both with their number."""
        if self.take("Ut"):
            return Node("unnamed", f"Ut{self.match(NUMBER)}")
        self.expect("Ul")
        parts: list[Node | str] = []
        while self.text.startswith(PARAMETER_DECLARATIONS, self.at):
            parts.append(self.declaration())
        while not self.take("E"):
            parts.append(self.type())
        return Node("lambda", "Ul", *parts, f"E{self.match(NUMBER)}")

    def declaration(self) -> Node:
        """An explicit template parameter of a lambda."""
        self.deeper()
        self.at += 2
        code = self.text[self.at - 2:self.at]
        parts: list[Node | str] = []
        if code == "Tn":
            parts = [self.type()]
        elif code == "Tk":
            parts = [self.name()]
        elif code == "Tp":
            parts = [self.declaration()]
        elif code == "Tt":
            while not self.take("E"):
                parts.append(self.declaration())
            parts.append("E")
        self.depth -= 1
        return Node("declaration", code, *parts)

