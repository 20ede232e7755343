"""A parsed name written again: as it was, or as a compiler with the old std::string would have written it."""

from __future__ import annotations

from stackfix.abi.mangled_nodes import MOST_LETTERS, STD, Node, NotMangledError

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
INLINE = "__cxx11"
TAG = "cxx11"
SCOPED = frozenset({"in", "template", "member"})    # the first part is a scope or a template
MOST_LEVELS = 220       # of the tree, three frames of Python each; real names have 37


def emit(tree: Node, *, old: bool) -> str:
    """The name after `_Z`. `old`: without std::__cxx11 and its tags, std::string as `Ss`, repetitions renumbered."""
    emitter = Emitter(old=old)
    emitter.emit(tree)
    return "".join(emitter.out)


class Emitter:
    """Letters of a name, with what they may repeat."""

    def __init__(self, *, old: bool) -> None:
        """See `emit`."""
        self.old = old
        self.out: list[str] = []
        self.numbers: dict[int, str] = {}       # id of a node to how it is repeated; the tree keeps the nodes alive
        self.depth = self.written = 0

    def emit(self, node: Node) -> None:
        """The node where a name or a type is due: what has a scope of its own stands in `N` and `E`."""
        kind = node.kind
        if kind == "qualified":
            self.write(f"N{node.letters(0)}")
            self.prefix(node.node(1))
            self.write("E")
        elif kind in SCOPED and id(node) not in self.numbers and self.is_nested(node):
            self.write("N")
            self.prefix(node)
            self.write("E")
        else:
            self.prefix(node)

    def prefix(self, node: Node) -> None:
        """The node where a scope is due, or no name at all."""
        if node.counted and id(node) in self.numbers:
            self.write(self.numbers[id(node)])
            return
        self.depth += 1
        if self.depth > MOST_LEVELS:
            raise NotMangledError
        if self.old and self.renamed(node):
            self.depth -= 1
            return
        parts = iter(node.parts)
        if node.kind in SCOPED:
            scope = node.node(0)
            self.prefix(self.outside(scope) if node.kind == "in" else scope)
            next(parts)
        for part in parts:
            if isinstance(part, str):
                self.write(part)
            else:
                self.emit(part)
        if node.counted:
            self.numbers[id(node)] = f"S{sequence(len(self.numbers))}_"
        self.depth -= 1

    def renamed(self, node: Node) -> bool:
        """Whether the node has another form where std::string is old; writes it."""
        if node.kind == "tagged":
            if node.node(2).letters(1) != TAG:
                return False
            self.emit(node.node(0))
            return True
        short = None
        if node.kind == "in" and is_string(node):
            short = "Sb"
        elif node.kind == "template" and is_string(node.node(0)) and is_narrow(node.node(1)):
            short = "Ss"
        if short is None:
            return False
        self.write(short)       # an abbreviation is not counted
        return True

    def is_nested(self, node: Node) -> bool:
        """Whether a name has a scope beside std."""
        while node.kind == "template":
            node = node.node(0)
        if node.kind != "in":
            return False
        return self.outside(node.node(0)).kind not in {"root", "std"}

    def outside(self, scope: Node) -> Node:
        """The scope without the inline namespace."""
        while self.old and is_inline(scope):
            scope = scope.node(0)
        return scope

    def write(self, letters: str) -> None:
        """More letters of the name."""
        self.written += len(letters)
        if self.written > MOST_LETTERS:
            raise NotMangledError
        self.out.append(letters)


def sequence(number: int) -> str:
    """How the component of this number is repeated: "", "0", … "Z", "10"."""
    if number == 0:
        return ""
    number, found = number - 1, ""
    while number >= 36:
        number, last = divmod(number, 36)
        found = DIGITS[last] + found
    return DIGITS[number] + found


def is_inline(scope: Node) -> bool:
    """Whether a scope is the inline namespace __cxx11 of std, of std::filesystem and the like."""
    if scope.kind != "in" or scope.node(1).kind != "source" or scope.node(1).letters(1) != INLINE:
        return False
    while scope.kind == "in":
        scope = scope.node(0)
    return scope is STD


def is_string(template: Node) -> bool:
    """Whether a template is std::__cxx11::basic_string."""
    if template.kind != "in" or template.node(1).kind != "source" or template.node(1).letters(1) != "basic_string":
        return False
    scope = template.node(0)
    return is_inline(scope) and scope.node(0) is STD


def is_narrow(arguments: Node) -> bool:
    """Whether arguments are char, std::char_traits<char>, std::allocator<char>."""
    found = arguments.nodes()
    if len(found) != 3:
        return False
    letter, traits, allocator = found
    return is_char(letter) and is_of_char(traits, "char_traits") and is_of_char(allocator, None)


def is_char(node: Node) -> bool:
    return node.kind == "builtin" and node.parts == ("c",)


def is_of_char(node: Node, name: str | None) -> bool:
    """Whether a node is `name` of std with char as its argument; None: std::allocator, which is abbreviated."""
    if node.kind != "template":
        return False
    template, arguments = node.node(0), node.node(1).nodes()
    if len(arguments) != 1 or not is_char(arguments[0]):
        return False
    if name is None:
        return template.kind == "short" and template.parts == ("Sa",)
    return (template.kind == "in" and template.node(0) is STD and template.node(1).kind == "source"
            and template.node(1).letters(1) == name)
