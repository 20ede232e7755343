"""The almanac's verdict on each shared object beside what a real loader said of it."""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stackfix.abi.can_load import CAN, CANNOT, can_load
from stackfix.abi.names import is_torch_symbol
from stackfix.abi.records import CompiledFile, TorchBook
from stackfix.abi.torch_asked import names_asked
from stackfix.almanac.extensions_files import compiled_file, machine_of, needed_siblings
from stackfix.almanac.records import LibraryTables, WheelTables

RESULTS = Path(__file__).with_name("dlopen.jsonl.xz")
PYTHON = re.compile(r"_?Py[A-Z_]|_?Py[A-Za-z]+_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One shared object on one torch."""

    wheel: str
    path: str
    torch: str
    verdict: str                    # "can load", "cannot load", "cannot tell"; "asks nothing" of torch; "not compared"
    seen: str                       # "loads", "torch symbol", "python symbol", "other symbol", "library", "other"
    missing: frozenset[str]         # torch names that we say are missing
    symbol: str | None              # the first that the loader misses
    told: str                       # what stopped it, where no torch symbol did

    @property
    def agrees(self) -> bool | None:
        """Whether verdict and loader agree; None where something else stopped the loader first."""
        if self.seen == "loads":
            return self.verdict in {CAN, "asks nothing"}
        if self.seen == "torch symbol":
            return self.verdict == CANNOT and self.symbol in self.missing
        return None


def read_results(path: Path = RESULTS) -> list[dict[str, str]]:
    """The loader's answers, as recorded."""
    content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    return [json.loads(line) for line in content.decode().splitlines()]


def compare(wheels: Iterable[WheelTables], results: Iterable[Mapping[str, str]], book: TorchBook) -> list[Case]:
    """A case for each answer about a shared object of these wheels."""
    known = {each.wheel.file: each for each in wheels}
    return [case_of(known[row["wheel"]], row, book) for row in results if row["wheel"] in known and row["path"]]


def case_of(wheel: WheelTables, row: Mapping[str, str], book: TorchBook) -> Case:
    library = next(each for each in wheel.libraries if each.path == row["path"])
    files = with_siblings(library, wheel)
    verdict, missing = "asks nothing", frozenset[str]()
    if names_asked(files) and seen(row) not in {"loads", "torch symbol"}:
        verdict = "not compared"        # something else stopped the loader first
    elif names_asked(files):
        found = can_load(files, book, row["torch"])
        verdict, missing = found.verdict, frozenset(each.name for each in found.missing)
    symbol = row.get("symbol")
    return Case(wheel=wheel.wheel.file, path=row["path"], torch=row["torch"], verdict=verdict, missing=missing,
                seen=seen(row), symbol=symbol, told=row.get("library") or symbol or row.get("told", ""))


def with_siblings(library: LibraryTables, wheel: WheelTables) -> list[CompiledFile]:
    """The file and those of the same wheel that come with it: a name that one of them lacks stops them all."""
    machine = machine_of(wheel.wheel.file)
    return [compiled_file(each, wheel.libraries, machine)
            for each in (library, *needed_siblings(library, wheel.libraries))]


def seen(row: Mapping[str, str]) -> str:
    symbol = row.get("symbol")
    if symbol is None:
        return row["outcome"]
    if is_torch_symbol(symbol) and "version" not in row:
        return "torch symbol"
    return "python symbol" if PYTHON.match(symbol) else "other symbol"


def table(cases: Iterable[Case]) -> dict[str, Counter[tuple[str, str]]]:
    """By torch, how many cases there are of each (verdict, what was seen)."""
    found: dict[str, Counter[tuple[str, str]]] = {}
    for case in cases:
        found.setdefault(case.torch, Counter())[case.verdict, case.seen] += 1
    return found
