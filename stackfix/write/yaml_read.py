"""YAML of a file that nobody vouches for, as plain nodes with their lines.

Only what lockfiles need: one document of mappings, lists and text. Anchors, aliases and tags are refused, so nothing
grows and nothing is made; no text is taken for a number or a date. The parser's events are used, because composing
or loading recurses, and because later of two equal keys would silently win.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from stackfix.errors import BadInput
from stackfix.quick import dataclass

if TYPE_CHECKING:
    from yaml import Event

DEEPEST = 30                    # levels; a lockfile has six
MOST_NODES = 2_000_000
NULLS = frozenset({"", "~", "null", "Null", "NULL"})

Value: TypeAlias = "str | list[Node] | dict[str, Node] | None"


@dataclass(slots=True, kw_only=True)
class Node:
    """One value and the line that it begins on, from 1."""

    value: Value
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The file that nodes come from: makes the errors about it."""

    path: str
    hint: str | None = None

    def refuse(self, line: int, reason: str) -> NoReturn:
        """Raises BadInput about one line."""
        raise BadInput(f"{self.path} line {line}", reason, self.hint)

    def mapping(self, node: Node, what: str) -> dict[str, Node]:
        """The node's items. Raises BadInput where it is no mapping."""
        return node.value if isinstance(node.value, dict) else self.refuse(node.line, f"{what} is no mapping")

    def sequence(self, node: Node, what: str) -> list[Node]:
        """The node's items. Raises BadInput where it is no list."""
        return node.value if isinstance(node.value, list) else self.refuse(node.line, f"{what} is no list")

    def text(self, node: Node, what: str) -> str:
        """The node's text. Raises BadInput where it is none, or has a control character."""
        value = node.value
        if not isinstance(value, str) or not value:
            self.refuse(node.line, f"{what} is no text")
        if not value.isprintable():
            self.refuse(node.line, f"{what} has a control character")
        return value

    def texts(self, node: Node | None, what: str) -> tuple[str, ...]:
        """The texts of a list; none where the key is not there."""
        return () if node is None else tuple(self.text(item, what) for item in self.sequence(node, what))

    def need(self, items: dict[str, Node], key: str, line: int) -> Node:
        """The value of a key. Raises BadInput where it is not there."""
        return items[key] if key in items else self.refuse(line, f"has no {key}")


def parse_yaml(text: str, source: Source) -> Node:
    """The document. Raises BadInput, with the line, for what is no such YAML."""
    from yaml import MarkedYAMLError, YAMLError

    builder = Builder(source)
    try:
        for event in events(text):
            builder.take(event)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        source.refuse(line, f"is no YAML: {error.problem or 'cannot be read'}")
    except YAMLError as error:          # a character that no YAML has
        raise BadInput(source.path, f"is no YAML: {getattr(error, 'reason', 'cannot be read')}", source.hint) from None
    if builder.root is None:
        raise BadInput(source.path, "is empty", source.hint)
    return builder.root


def events(text: str) -> Iterator[Event]:
    """The parser's events: of libyaml, or of PyYAML itself where it was built without."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from yaml.parse(text, Loader=loader)


class Builder:
    """Puts events together, without recursion."""

    def __init__(self, source: Source) -> None:
        self.root: Node | None = None
        self._source = source
        self._open: list[Node] = []
        self._keys: list[str | None] = []       # the key that waits for its value, of each open node
        self._count = 0

    def take(self, event: Event) -> None:
        """The next event."""
        from yaml import events as kinds

        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, kinds.AliasEvent) or getattr(event, "anchor", None) is not None:
            self._source.refuse(line, "has an anchor or an alias, which no lockfile needs")
        if isinstance(event, kinds.NodeEvent):
            self._node(event, line)
        elif isinstance(event, kinds.CollectionEndEvent):
            self._open.pop()
            self._keys.pop()

    def _node(self, event: Event, line: int) -> None:
        from yaml import events as kinds

        tag = getattr(event, "tag", None)
        if tag is not None:
            self._source.refuse(line, f"has the tag {tag}, which no lockfile needs")
        self._count += 1
        if self._count > MOST_NODES or len(self._open) >= DEEPEST:
            self._source.refuse(line, "has more, or deeper, values than any lockfile")
        if isinstance(event, kinds.ScalarEvent):
            plain_null = event.implicit[0] and event.value in NULLS
            self._place(Node(value=None if plain_null else event.value, line=line))
            return
        node = Node(value={} if isinstance(event, kinds.MappingStartEvent) else [], line=line)
        self._place(node)
        self._open.append(node)
        self._keys.append(None)

    def _place(self, node: Node) -> None:
        """Where the node belongs: the root, a list, or as a key or a value of a mapping."""
        if not self._open:
            if self.root is not None:
                self._source.refuse(node.line, "begins a second document")
            self.root = node
            return
        inside = self._open[-1].value
        if isinstance(inside, list):
            inside.append(node)
        elif isinstance(inside, dict):
            key = self._keys[-1]
            if key is None:
                self._keys[-1] = self._key(node, inside)
            else:
                inside[key], self._keys[-1] = node, None

    def _key(self, node: Node, inside: dict[str, Node]) -> str:
        """The node as a key of the mapping."""
        if not isinstance(node.value, str):
            self._source.refuse(node.line, "has a key that is no text")
        if node.value in inside:
            self._source.refuse(node.line, f"has the key {node.value!r} twice")
        return node.value
