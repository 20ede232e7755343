"""What a plan would make of an environment, before it is written down as actions. Paths are absolute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from stackfix.plan.records import RANKS, Install

Part = TypeVar("Part", "Hooked", "Linked", str)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Hooked:
    """A library that is loaded by its path before a package is executed."""

    module: str                     # what is imported, its first part: "torch"
    library: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Linked:
    """A symbolic link; what is there is set aside."""

    path: str
    target: str                     # as written: relative


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Variable:
    """What activation does to one variable that lists folders or files, or `value` in place of what it was."""

    name: str
    first: tuple[str, ...] = ()     # put before all others, in this order
    without: tuple[str, ...] = ()   # elements that go; "" is the current folder
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """All of it. Each part is sorted, but for the folders of a variable, and holds nothing twice."""

    hooks: tuple[Hooked, ...] = ()
    links: tuple[Linked, ...] = ()
    gone: tuple[str, ...] = ()      # files and folders that are set aside
    variables: tuple[Variable, ...] = ()
    wheels: tuple[Install, ...] = ()     # and packages of conda
    kernels: tuple[str, ...] = ()   # kernel.json files that get the variables, too

    def __bool__(self) -> bool:
        return bool(self.hooks or self.links or self.gone or self.variables or self.wheels or self.kernels)

    def kinds(self) -> tuple[str, ...]:
        """Kinds of the actions that it takes, the smallest first."""
        there = {"preload-hook": self.hooks, "relink": self.links, "write-activation": self.variables or self.kernels,
                 "remove-shadow": self.gone, "install": self.wheels}
        return tuple(kind for kind in RANKS if there.get(kind))

    def only(self, kind: str) -> Effect:
        """The part that one kind of action makes."""
        return Effect(hooks=self.hooks if kind == "preload-hook" else (),
                      links=self.links if kind == "relink" else (),
                      gone=self.gone if kind == "remove-shadow" else (),
                      variables=self.variables if kind == "write-activation" else (),
                      kernels=self.kernels if kind == "write-activation" else (),
                      wheels=self.wheels if kind == "install" else ())

    def paths(self) -> int:
        """How many places it changes: what decides between plans of one rank."""
        return bool(self.hooks) + len(self.links) + len(self.gone) + bool(self.variables) + len(self.kernels)

    def cost(self) -> tuple[int, int, int]:
        """What plans are compared by: the largest kind, then wheels, then paths."""
        return max((RANKS.index(each) for each in self.kinds()), default=0), len(self.wheels), self.paths()

    def joined(self, other: Effect) -> Effect:
        """Both. Of one project only the wheel of `other`, at one path only its link."""
        projects, linked = {each.project for each in other.wheels}, {each.path for each in other.links}
        return Effect(
            hooks=merged(self.hooks, other.hooks),
            links=merged((each for each in self.links if each.path not in linked), other.links),
            gone=merged(self.gone, other.gone), kernels=merged(self.kernels, other.kernels),
            variables=joined_variables(self.variables, other.variables),
            wheels=(*(each for each in self.wheels if each.project not in projects), *other.wheels),
        )


def merged(one: Iterable[Part], other: Iterable[Part]) -> tuple[Part, ...]:
    """Both, sorted, each once."""
    return tuple(sorted(set(one) | set(other)))


def joined_variables(one: tuple[Variable, ...], other: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """Both, one of each name."""
    found = {each.name: each for each in one}
    for each in other:
        known = found.get(each.name)
        found[each.name] = each if known is None else Variable(
            name=each.name, first=tuple(dict.fromkeys((*known.first, *each.first))),
            without=tuple(sorted({*known.without, *each.without})), value=each.value or known.value)
    return tuple(found[name] for name in sorted(found))
