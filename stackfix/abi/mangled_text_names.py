"""How names are printed: scopes, constructors, operators, lambdas, whole functions."""

from __future__ import annotations

from stackfix.abi.mangled_nodes import Node
from stackfix.abi.mangled_operators import OPERATORS
from stackfix.abi.mangled_printer import Printer, Rule, Spelled

SHORT = {
    "Sa": "std::allocator", "Sb": "std::basic_string",
    "Ss": "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
    "Si": "std::basic_istream<char, std::char_traits<char> >",
    "So": "std::basic_ostream<char, std::char_traits<char> >",
    "Sd": "std::basic_iostream<char, std::char_traits<char> >",
}
SPECIAL = {
    "TV": "vtable for ", "TT": "VTT for ", "TI": "typeinfo for ", "TS": "typeinfo name for ", "TF": "typeinfo fn for ",
    "TJ": "java Class for ", "GV": "guard variable for ", "TH": "TLS init function for ",
    "TW": "TLS wrapper function for ", "GTt": "transaction clone for ", "GTn": "non-transaction clone for ",
    "GA": "hidden alias for ", "TA": "template parameter object for ",
}
THUNKS = {"h": "non-virtual thunk to ", "v": "virtual thunk to ", "c": "covariant return thunk to "}
WRAPPERS = {"local": 3, "default": 1, "qualified": 1}   # which part of these is the name that counts


def joined(printer: Printer, nodes: list[Node]) -> tuple[str, bool]:
    """A list with commas, and whether its end is an empty pack. As c++filt has it, only those at the end vanish."""
    texts = [printer.text(node) for node in nodes]
    emptied = False
    while len(texts) > 1 and not texts[-1]:
        texts.pop()
        emptied = True
    return ", ".join(texts), emptied


def enclosed(printer: Printer, arguments: Node) -> str:
    """Template arguments in their angle brackets."""
    text, emptied = joined(printer, arguments.nodes())
    return f"<{text}{' ' if text.endswith('>') and not emptied else ''}>"


def template(printer: Printer, node: Node) -> str:
    name = printer.text(node.node(0))
    return f"{name}{' ' if name.endswith('<') else ''}{enclosed(printer, node.node(1))}"


def inside(printer: Printer, node: Node) -> str:
    scope, last = node.node(0), node.node(1)
    text = structor(printer, scope, last) if is_structor(last) else printer.text(last)
    return text if scope.kind == "root" else f"{printer.text(scope)}::{text}"


def is_structor(node: Node) -> bool:
    return node.kind == "structor" or (node.kind == "tagged" and is_structor(node.node(0)))


def structor(printer: Printer, scope: Node, node: Node) -> str:
    """A constructor or destructor, by the name of its class."""
    if node.kind == "tagged":
        return f"{structor(printer, scope, node.node(0))}[abi:{node.node(2).letters(1)}]"
    return f"{'~' if node.letters(0)[0] == 'D' else ''}{class_name(printer, scope)}"


def class_name(printer: Printer, scope: Node) -> str:
    """The last component of a class's name, without arguments and tags."""
    while scope.kind in {"template", "in", "tagged", "local"}:
        scope = scope.node({"in": 1, "local": 3}.get(scope.kind, 0))
    if scope.kind == "short":
        return SHORT[scope.letters(0)].partition("<")[0].removeprefix("std::")
    return printer.text(scope)


def source(_printer: Printer, node: Node) -> str:
    name = node.letters(1)
    return "(anonymous namespace)" if name.startswith(("_GLOBAL__N", "_GLOBAL_.N", "_GLOBAL_$N")) else name


def operator(_printer: Printer, node: Node) -> str:
    spelling = OPERATORS[node.letters(0)][0].rstrip()
    return f"operator{' ' if spelling[0].isalpha() else ''}{spelling}"


def lambda_type(printer: Printer, node: Node) -> str:
    printer.in_lambda += 1
    types = [part for part in node.nodes() if part.kind != "declaration"]
    listed, _ = joined(printer, [] if is_void(types) else types)
    printer.in_lambda -= 1
    return f"{{lambda({listed})#{ordinal(str(node.parts[-1])[1:])}}}"


def is_void(types: list[Node]) -> bool:
    """Whether a list of parameters is the lone `v`."""
    return len(types) == 1 and types[0].kind == "builtin" and types[0].parts == ("v",)


def ordinal(number: str, base: int = 10) -> int:
    """1 for `_`, 2 for `0_`, 3 for `1_`."""
    digits = number.removesuffix("_")
    return int(digits, base) + 2 if digits else 1


def unwrapped(name: Node) -> Node:
    """The name whose template arguments and qualifiers count for the function."""
    while name.kind in WRAPPERS:
        name = name.node(WRAPPERS[name.kind])
    return name


def qualifiers(name: Node) -> str:
    """Of a member function: " const &"."""
    found = ""
    while name.kind in WRAPPERS:
        if name.kind == "qualified":
            found = spelled_qualifiers(name.letters(0))
        name = name.node(WRAPPERS[name.kind])
    return found


def spelled_qualifiers(letters: str) -> str:
    words = {"r": " restrict", "V": " volatile", "K": " const", "R": " &", "O": " &&"}
    return "".join(words.get(letter, "") for letter in reversed_cv(letters))


def reversed_cv(letters: str) -> str:
    """In the order of printing: the mangled order is restrict, volatile, const, then `&`."""
    cv = letters.rstrip("RO")
    return cv[::-1] + letters[len(cv):]


def function(printer: Printer, node: Node) -> Spelled:
    """A function with what it takes and, for templates, returns."""
    name, returned, parameters = node.node(0), node.node(1).nodes(), node.nodes()[2:]
    inner = unwrapped(name)
    before = printer.scope
    if inner.kind == "template":
        printer.enter(inner.node(1))
    text = printer.text(name)
    listed, _ = joined(printer, [] if is_void(parameters) else parameters)
    declared = f"{text}({listed}){qualifiers(name)}"
    if returned:
        found = printer.spelled(returned[0])
        declared = f"{found.left}{'' if found.right else ' '}{declared}{found.right}"
    printer.scope = before
    return Spelled(declared)


def local(printer: Printer, node: Node) -> str:
    entity, default = node.node(3), node.letters(2)
    where = printer.text(without_return(node.node(1)))
    if default.startswith("Ed"):
        where += f"::{{default arg#{ordinal(default[2:])}}}"
    return f"{where}::{printer.text(entity)}"


def without_return(function_node: Node) -> Node:
    if function_node.kind != "function of" or not function_node.node(1).parts:
        return function_node
    name, _, *parameters = function_node.parts
    return Node("function of", name, Node("returned"), *parameters)


def thunk(printer: Printer, node: Node) -> str:
    return f"{THUNKS[node.letters(0)[1]]}{printer.text(node.node(1))}"


def fixed(text: str) -> Rule:
    """A rule for nodes that have one text."""
    return lambda _printer, _node: text


NAMES: dict[str, Rule] = {
    "in": inside, "template": template, "source": source, "operator": operator, "lambda": lambda_type,
    "function of": function, "local": local, "thunk": thunk, "std": fixed("std"), "string": fixed("string literal"),
    "short": lambda _printer, node: SHORT[node.letters(0)],
    "tagged": lambda printer, node: f"{printer.text(node.node(0))}[abi:{node.node(2).letters(1)}]",
    "internal": lambda printer, node: printer.text(node.node(1)),
    "member": lambda printer, node: printer.text(node.node(0)),
    "qualified": lambda printer, node: printer.text(node.node(1)),
    "unnamed": lambda _printer, node: f"{{unnamed type#{ordinal(node.letters(0)[2:])}}}",
    "conversion": lambda printer, node: f"operator {printer.text(node.node(1))}",
    "suffix": lambda printer, node: f'operator"" {printer.text(node.node(1))}',
    "vendor": lambda printer, node: f"operator {printer.text(node.node(1))}",
    "binding": lambda printer, node: f"[{joined(printer, node.nodes())[0]}]",
    "special": lambda printer, node: f"{SPECIAL[node.letters(0)]}{printer.text(node.node(1))}",
    "construction": lambda printer, node:
        f"construction vtable for {printer.text(node.node(3))}-in-{printer.text(node.node(1))}",
    "temporary": lambda printer, node:
        f"reference temporary #{ordinal(node.letters(2), base=36) - 1} for {printer.text(node.node(1))}",
}
