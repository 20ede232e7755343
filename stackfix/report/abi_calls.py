"""Which functions of CUDA's libraries a binary calls, and since when they exist, as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.abi.records import AbiFacts, Bounds, Call, Since
from stackfix.report.abi_fit import WIDE
from stackfix.report.lines import Manner, led
from stackfix.report.printable import printable


def call_lines(facts: AbiFacts, manner: Manner) -> Iterator[str]:
    """A line for each library; with -v each function."""
    libraries: dict[str, list[Call]] = {}
    for call in facts.calls:
        libraries.setdefault(call.soname, []).append(call)
    for number, (soname, calls) in enumerate(libraries.items()):
        label = "calls" if number == 0 else ""
        bounds = [each for each in facts.library_bounds if each.soname == soname]
        text = f"{soname}: {len(calls)} function{'s' * (len(calls) != 1)}{''.join(map(bound_text, bounds))}"
        if manner.verbose and all(call.since is None for call in calls):
            text += " (its versions are not in the almanac)"
        yield from led([(f"  {label:<{WIDE}}", "dim")], printable(text), " " * (WIDE + 2), manner)
        for call in calls if manner.verbose else ():
            yield " " * (WIDE + 4) + printable(f"{call.name}{since_text(call.since)}")


def bound_text(bounds: Bounds) -> str:
    """`; nvidia-cublas-cu12 from 12.4.2.65 on`: only what limits is said."""
    if bounds.unknown:
        return f"; {bounds.package}: no version that was read has {shortened(bounds.unknown)}"
    if not bounds.versions:
        return f"; {bounds.package}: no version that was read has them all"
    parts = [f"from {bounds.floor} on ({shortened(bounds.low)})" if bounds.floor else "",
             f"until {bounds.ceiling} ({shortened(bounds.high)})" if bounds.ceiling else ""]
    told = " ".join(filter(None, parts))
    return f"; {bounds.package} {told}" if told else ""


def shortened(names: Sequence[str]) -> str:
    """The first name, and how many more."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)


def since_text(since: Sequence[Since] | None) -> str:
    """`  nvidia-cublas-cu12 since 12.4.2.65`: nothing where every version has it, or none of the library was read."""
    if since is None:
        return ""
    if not since:
        return "  (in no version that was read)"
    found = []
    for each in since:
        first = f" since {each.first}" if each.first else ""
        last = f" until {each.last}" if each.last else ""
        if first or last:
            found.append(f"{each.package}{first}{last}")
    return f"  {', '.join(found)}" if found else ""


__all__ = ["call_lines"]
