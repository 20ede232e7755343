"""How types are printed, on both sides of what they declare."""

from __future__ import annotations

from stackfix.abi.mangled_nodes import Node, NotMangledError
from stackfix.abi.mangled_operators import BUILTINS
from stackfix.abi.mangled_printer import Printer, Rule, Spelled, number_of
from stackfix.abi.mangled_text_names import is_void, joined, spelled_qualifiers

POINTERS = {"P": "*", "R": "&", "O": "&&", "C": " _Complex", "G": " _Imaginary"}
MOST_SEEN = 5_000       # nodes of one pattern that are searched for its pack
SIMPLE = frozenset({"source", "in", "std", "function parameter", "braced", "scoped", "short", "global"})


def pointed(inner: Spelled, mark: str, *, spaced: bool = False) -> Spelled:
    """A type with `*`, `&` or `A::*` behind it, in parentheses where it is one of a function or an array."""
    left, right, shape = inner
    if mark in {"&", "&&"} and left.endswith("&"):      # references to references are one
        both = mark == "&&" and left.endswith("&&")
        return inner if both or not left.endswith("&&") else Spelled(left[:-1], right)
    if shape not in {"function", "array"}:
        return Spelled(f"{left}{' ' if spaced else ''}{mark}", right)
    if shape == "array" or spaced or left[-1:] not in {"(", "*"}:
        left += "" if left.endswith(" ") else " "
    return Spelled(f"{left}({mark}", f"){right}")


def builtin(_printer: Printer, node: Node) -> str:
    code = node.letters(0)
    if code in BUILTINS:
        return BUILTINS[code]
    number = code[2:-1]
    if code.startswith("DF"):
        return "std::bfloat16_t" if code == "DF16b" else f"_Float{number}{'x' if code.endswith('x') else ''}"
    return f"{'unsigned ' if code[1] == 'U' else ''}_BitInt({number})"


def pointer(printer: Printer, node: Node) -> Spelled:
    return pointed(printer.spelled(node.node(1)), POINTERS[node.letters(0)])


def member_pointer(printer: Printer, node: Node) -> Spelled:
    return pointed(printer.spelled(node.node(2)), f"{printer.text(node.node(1))}::*", spaced=True)


def cv(printer: Printer, node: Node) -> Spelled:
    inner = printer.spelled(node.node(1))
    words = spelled_qualifiers(node.letters(0))
    if inner.shape == "function":
        return Spelled(inner.left, f"{inner.right}{words}", "function")
    if inner.shape == "array" and inner.left.endswith(words):
        return inner
    return Spelled(f"{inner.left}{words}", inner.right, inner.shape)


def function(printer: Printer, node: Node) -> Spelled:
    """A function type: what it returns stands around it."""
    parts = list(node.parts)
    before: list[str | Node] = []
    while not isinstance(parts[0], str) or not parts[0].startswith("F"):
        before.append(parts.pop(0))
    types = [part for part in parts if isinstance(part, Node)]
    if not types:
        raise NotMangledError
    returned, parameters = printer.spelled(types[0]), types[1:]
    listed, _ = joined(printer, [] if is_void(parameters) else parameters)
    reference = spelled_qualifiers(str(parts[-1])[:-1])
    words = f"({listed}){reference}{exceptions(printer, before)}"
    space = "" if returned.right else " "
    return Spelled(f"{returned.left}{space}", f"{words}{returned.right}", "function")


def exceptions(printer: Printer, parts: list[str | Node]) -> str:
    """What stands before `F`."""
    text, nodes = "", [part for part in parts if isinstance(part, Node)]
    for part in parts:
        if part == "Do":
            text += " noexcept"
        elif part == "Dx":
            text += " transaction_safe"
        elif part == "DO":
            text += f" noexcept({printer.text(nodes[0])})"
        elif part == "Dw":
            text += f" throw({joined(printer, nodes)[0]})"
    return text


def array(printer: Printer, node: Node) -> Spelled:
    inner = printer.spelled(node.nodes()[-1])
    bound = node.parts[1]
    text = printer.text(bound) if len(node.nodes()) == 2 and isinstance(bound, Node) else str(bound).rstrip("_")
    rest = inner.right.removeprefix(" ") if inner.shape == "array" else inner.right
    return Spelled(inner.left, f" [{text}]{rest}", "array")


def vector(printer: Printer, node: Node) -> Spelled:
    size, *_ = node.parts[1:]
    text = printer.text(size) if isinstance(size, Node) else size.rstrip("_")
    inner = printer.spelled(node.nodes()[-1])
    return Spelled(f"{inner.left} __vector({text})", inner.right)


def parameter(printer: Printer, node: Node) -> Spelled:
    """What `T_` stands for; in a lambda's parameters, `auto:1`."""
    number = number_of(node)
    if printer.in_lambda:
        return Spelled(f"auto:{number + 1}")
    argument = printer.argument(number)
    if argument is None:
        return Spelled("")
    scope = printer.scope
    if scope is None:
        raise NotMangledError
    printer.scope = scope.outer
    found = printer.spelled(argument)
    printer.scope = scope
    return found


def packs(printer: Printer, node: Node, found: list[int], seen: set[int]) -> list[int]:
    """Lengths of the packs that `T_` in a pattern stands for."""
    if id(node) in seen or len(seen) > MOST_SEEN:
        return found
    seen.add(id(node))
    if node.kind == "parameter":
        length = printer.elements(node)
        found += [] if length is None else [length]
    elif node.kind not in {"lambda", "pack expansion", "expansion"}:
        for part in node.nodes():
            if found:
                break
            packs(printer, part, found, seen)
    return found


def expansion(printer: Printer, node: Node) -> str:
    """The pattern for each element of its pack, or with `...` where no pack is known."""
    pattern = node.node(1)
    seen: set[int] = set()
    lengths = packs(printer, pattern, [], seen)
    printer.spend(32 * len(seen))
    if not lengths:
        text = printer.text(pattern)
        return f"{text}..." if pattern.kind in SIMPLE else f"({text})..."
    before, texts = printer.element, list[str]()
    for printer.element in range(lengths[0]):
        texts.append(printer.text(pattern))
    printer.element = before
    return ", ".join(texts)


TYPES: dict[str, Rule] = {
    "builtin": builtin, "pointer": pointer, "member pointer": member_pointer, "cv": cv, "function": function,
    "array": array, "vector": vector, "parameter": parameter, "pack expansion": expansion,
    "vendor type": lambda printer, node: "".join(printer.text(part) for part in node.nodes()),
    "vendor qualified": lambda printer, node:
        f"{printer.text(node.nodes()[-1])} {''.join(printer.text(part) for part in node.nodes()[:-1])}",
    "elaborated": lambda printer, node: printer.text(node.node(1)),
    "decltype": lambda printer, node: f"decltype ({printer.text(node.node(1))})",
    "pack": lambda printer, node: joined(printer, node.nodes())[0],
}
