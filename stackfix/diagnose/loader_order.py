"""The order in which glibc relocates objects, which decides the symbol that is reported first."""

from __future__ import annotations

from collections.abc import Sequence

from stackfix.diagnose.loader_process import Mapped, Process


def depth_first(head: Mapped, searchlist: Sequence[int], process: Process) -> tuple[int, ...]:
    """`searchlist` with dependencies behind their dependents, `head` first. Source: _dl_sort_maps_dfs, glibc 2.35."""
    visited: set[int] = set()
    placed: list[int] = []
    for start in reversed(searchlist):
        _visit(start, process, visited, placed)
    listed = set(searchlist) - {head.number}
    return (head.number, *(number for number in reversed(placed) if number in listed))


def _visit(start: int, process: Process, visited: set[int], placed: list[int]) -> None:
    """Post-order walk without recursion: a chain of libraries may be longer than Python's stack."""
    if start in visited:
        return
    visited.add(start)
    ways = [(start, iter(dependencies(start, process)))]
    while ways:
        at, ahead = ways[-1]
        following = next((number for number in ahead if number not in visited and not process.objects[number].program),
                         None)
        if following is None:
            placed.append(at)
            ways.pop()
        else:
            visited.add(following)
            ways.append((following, iter(dependencies(following, process))))


def dependencies(number: int, process: Process) -> Sequence[int]:
    """l_initfini of one object; a head that is being opened for the first time has none yet."""
    order = process.objects[number].order
    return order if order is not None else ()


def original(head: Mapped, searchlist: Sequence[int], process: Process) -> tuple[int, ...]:
    """The order up to glibc 2.34. Source: _dl_sort_maps_original."""
    maps = list(searchlist[1:])
    place, seen = 0, [0] * len(maps)
    while place < len(maps):
        seen[place] += 1
        this = maps[place]
        last = next((k for k in range(len(maps) - 1, place, -1)
                     if this in dependencies(maps[k], process)), None)
        if last is None:
            place += 1
            seen[place:] = [0] * (len(maps) - place)
            continue
        maps[place:last + 1] = [*maps[place + 1:last + 1], this]
        if seen[place + 1] > len(maps) - place:
            place += 1
            seen[place:] = [0] * (len(maps) - place)
            continue
        seen[place:last + 1] = [*seen[place + 1:last + 1], seen[place]]
    return (head.number, *maps)
