"""How expressions are printed, with the parentheses of c++filt."""

from __future__ import annotations

from stackfix.abi.mangled_nodes import Node, NotMangledError
from stackfix.abi.mangled_operators import OPERATORS, SUFFIXES
from stackfix.abi.mangled_printer import Printer, Rule
from stackfix.abi.mangled_text_names import enclosed, joined
from stackfix.abi.mangled_text_types import SIMPLE, expansion

BOOLEANS = {"0": "false", "1": "true"}


def operand(printer: Printer, node: Node) -> str:
    """An operand, in parentheses unless it is a name."""
    return printer.text(node) if is_simple(node) else f"({printer.text(node)})"


def is_simple(node: Node) -> bool:
    """Whether an operand needs no parentheses."""
    if node.kind == "external":
        return is_simple(node.node(1))
    return node.kind in SIMPLE


def literal(printer: Printer, node: Node) -> str:
    of, value = node.node(1), node.letters(2)
    number = f"-{value[1:]}" if value.startswith("n") else value
    code = of.letters(0) if of.kind == "builtin" else ""
    if code in SUFFIXES:
        return f"{number}{SUFFIXES[code]}"
    if code == "b" and value in BOOLEANS:
        return BOOLEANS[value]
    if not value:
        return printer.text(of)
    return f"({printer.text(of)}){f'[{number}]' if code in {'f', 'd', 'e', 'g'} else number}"


def unary(printer: Printer, node: Node) -> str:
    code, of = node.letters(0), node.node(1)
    if code == "ad" and of.kind == "external":
        function = of.node(1)
        if function.kind == "function of" and function.node(0).kind == "in" and function.node(0).node(0).kind != "root":
            return f"&{printer.text(function.node(0))}"     # of a function that is a member, no parameters
    if code == "nx":
        return f"noexcept({printer.text(of)})"
    return f"{OPERATORS[code][0]}{operand(printer, of)}"


def binary(printer: Printer, node: Node) -> str:
    code, left, right = node.letters(0), node.node(1), node.node(2)
    if code == "ix":
        return f"{operand(printer, left)}[{printer.text(right)}]"
    text = f"{operand(printer, left)}{OPERATORS[code][0]}{operand(printer, right)}"
    return f"({text})" if code == "gt" else text


def operation(printer: Printer, node: Node) -> str:
    operands = node.nodes()
    if not operands:
        return OPERATORS[node.letters(0)][0]
    if len(operands) == 1:
        return unary(printer, node)
    if len(operands) == 2:
        return binary(printer, node)
    first, second, third = operands
    return f"{operand(printer, first)}?{operand(printer, second)} : {operand(printer, third)}"


def call(printer: Printer, node: Node) -> str:
    operands = node.nodes()
    if not operands:
        raise NotMangledError
    function, *arguments = operands
    if function.kind == "external" and function.node(1).kind == "function of":
        function = function.node(1).node(0)
    return f"{operand(printer, function)}({joined(printer, arguments)[0]})"


def braced(printer: Printer, node: Node) -> str:
    parts = node.nodes()
    of = printer.text(parts.pop(0)) if node.letters(0) == "tl" else ""
    return f"{of}{{{joined(printer, parts)[0]}}}"


def step(printer: Printer, node: Node) -> str:
    mark, text = OPERATORS[node.letters(0)][0], operand(printer, node.node(2))
    return f"{mark}{text}" if node.letters(1) else f"{text}{mark}"


def new(printer: Printer, node: Node) -> str:
    marks = [index for index, part in enumerate(node.parts) if part == "_"]
    places = [part for part in node.parts[:marks[0]] if isinstance(part, Node)]
    of, *values = [part for part in node.parts[marks[0]:] if isinstance(part, Node)]
    placed = f" ({joined(printer, places)[0]})" if places else ""
    valued = f"({joined(printer, values)[0]})" if "pi" in node.parts else "".join(map(printer.text, values))
    return f"{OPERATORS[node.letters(0)][0]}{placed} {printer.text(of)}{valued}"


def fold(printer: Printer, node: Node) -> str:
    code, mark = node.letters(0), OPERATORS[node.letters(1)][0]
    operands = [operand(printer, each) for each in node.nodes()]
    if code == "fl":
        return f"(...{mark}{operands[0]})"
    if code == "fr":
        return f"({operands[0]}{mark}...)"
    return f"({operands[0]}{mark}...{mark}{operands[1]})"


def function_parameter(_printer: Printer, node: Node) -> str:
    letters = node.letters(0).partition("p")[2].lstrip("rVK").rstrip("_")
    if letters == "T":
        return "this"
    return f"{{parm#{int(letters) + 2 if letters else 1}}}"


def sizeof_pack(printer: Printer, node: Node) -> str:
    of = node.node(1)
    length = printer.elements(of) if of.kind == "parameter" else None
    return f"sizeof...({printer.text(of)})" if length is None else str(length)


def scoped(printer: Printer, node: Node) -> str:
    return "::".join(printer.text(each) for each in node.nodes())


def cast(printer: Printer, node: Node) -> str:
    return f"{OPERATORS[node.letters(0)][0]}<{printer.text(node.node(1))}>({printer.text(node.node(2))})"


def designated(printer: Printer, node: Node) -> str:
    code, *parts = node.letters(0), *(printer.text(each) for each in node.nodes())
    value = parts[-1] if parts[-1].startswith((".", "[")) else f"={parts[-1]}"
    if code == "di":
        return f".{parts[0]}{value}"
    return f"[{' ... '.join(parts[:-1])}]{value}"


def destroyed(printer: Printer, node: Node) -> str:
    return f"~{printer.text(node.node(1))}"


EXPRESSIONS: dict[str, Rule] = {
    "literal": literal, "operation": operation, "call": call, "braced": braced, "step": step, "new": new, "fold": fold,
    "function parameter": function_parameter, "sizeof pack": sizeof_pack, "scoped": scoped, "cast": cast,
    "designated": designated, "destroyed": destroyed, "expansion": expansion,
    "external": lambda printer, node: printer.text(node.node(1)),
    "value": lambda printer, node: printer.text(node.node(1)),
    "global": lambda printer, node: f"::{printer.text(node.node(1))}",
    "named operator": lambda printer, node: printer.text(node.node(1)),
    "access": lambda printer, node:
        f"{operand(printer, node.node(1))}{OPERATORS[node.letters(0)][0]}{operand(printer, node.node(2))}",
    "of type": lambda printer, node: f"{OPERATORS[node.letters(0)][0]}({printer.text(node.node(1))})",
    "converted": lambda printer, node: f"({printer.text(node.node(1))}){operand(printer, node.node(2))}",
    "converted list": lambda printer, node:
        f"({printer.text(node.node(1))})({joined(printer, node.nodes()[1:])[0]})",
    "sizeof list": lambda printer, node: f"sizeof...({joined(printer, node.nodes())[0]})",
    "vendor call": lambda printer, node:
        f"{printer.text(node.node(1))}({joined(printer, node.nodes()[1:])[0]})",
    "arguments": enclosed,
}
