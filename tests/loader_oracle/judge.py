"""Whether the simulator and the real loader agree about a graph, and the smallest graph about which they do not."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from stackfix.diagnose.loader import Simulator
from stackfix.inspect.plain import from_json, to_json
from tests.loader_oracle.build import Bench, build, clean
from tests.loader_oracle.graph import Graph, Library
from tests.loader_oracle.observe import differences, run_real, run_simulated
from tests.loader_oracle.simulators import Faithful

CASES = Path(__file__).parent / "cases"


def judge(
    graph: Graph, scratch: Path, bench: Bench, kind: type[Simulator] = Faithful, *, with_gcc: bool = False,
) -> list[str]:
    """Differences; empty where the two agree."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    try:
        build(graph, folder, bench, with_gcc=with_gcc)
        found = differences(run_real(graph, folder), run_simulated(graph, folder, bench, kind))
        return [line.replace(str(folder), "@") for line in found]
    finally:
        clean(folder)


def shrink(graph: Graph, scratch: Path, bench: Bench, kind: type[Simulator] = Faithful) -> Graph:
    """A graph without anything that could be taken away while the difference stays."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in simpler(graph):
            try:
                differs = judge(candidate, scratch, bench, kind)
            except Exception:       # noqa: BLE001, S112 - no longer a graph that can be built
                continue
            if differs:
                graph, smaller = candidate, True
                break
    return graph


def simpler(graph: Graph) -> Iterator[Graph]:
    """The graph with one thing less."""
    for name in ("steps", "libraries", "links", "cached"):
        yield from without_one(graph, name)
    for name in ("library_path", "preload"):
        yield from shorter(graph, name)
    if not graph.bind_now:
        yield replace(graph, bind_now=True)
    for less in simpler_library(graph.program):
        yield replace(graph, program=less)
    for place, library in enumerate(graph.libraries):
        for less in simpler_library(library):
            yield replace(graph, libraries=(*graph.libraries[:place], less, *graph.libraries[place + 1:]))
    for place, step in enumerate(graph.steps):
        for plain in (replace(step, caller=None), replace(step, now=True), replace(step, to_global=False),
                      replace(step, deep_bind=False)):
            if plain != step:
                yield replace(graph, steps=(*graph.steps[:place], plain, *graph.steps[place + 1:]))


def without_one(record: Any, name: str) -> Iterator[Any]:
    """The record without one item of a field."""
    items = getattr(record, name)
    for place in range(len(items)):
        yield replace(record, **{name: items[:place] + items[place + 1:]})


def shorter(graph: Graph, name: str) -> Iterator[Graph]:
    """The graph without a variable, or without one element of it."""
    value = getattr(graph, name)
    if value is not None:
        yield replace(graph, **{name: None})        # type: ignore[arg-type]
        elements = value.replace(";", ":").split(":")
        for place in range(len(elements)):
            yield replace(graph, **{name: ":".join(elements[:place] + elements[place + 1:])})     # type: ignore[arg-type]


def simpler_library(library: Library) -> Iterator[Library]:
    """The library with one thing less."""
    for name in ("needed", "refers", "defines", "flags"):
        yield from without_one(library, name)
    for name in ("rpath", "runpath"):
        if getattr(library, name) is not None:
            yield replace(library, **{name: None})      # type: ignore[arg-type]
    if not library.gnu_hash:
        yield replace(library, gnu_hash=True)


def keep(graph: Graph) -> Path:
    """The graph as a file that the tests run from now on."""
    text = json.dumps(to_json(graph), indent=1) + "\n"
    path = CASES / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    path.write_text(text, encoding="utf-8")
    return path


def read_case(path: Path) -> Graph:
    """A kept graph."""
    return from_json(json.loads(path.read_text(encoding="utf-8")), Graph)

