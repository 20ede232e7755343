"""The tables of docs/abi-survey.md, from what is bundled and what the tests keep.

    python -m tests.abi_survey.report           writes them anew between the marks of that page

A test compares the page with them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stackfix.abi.book import open_torch_book
from stackfix.abi.can_load import CAN, CANNOT
from stackfix.abi.judged import open_judged_wheels
from stackfix.abi.records import JudgedWheel, TorchBook
from stackfix.abi.torch_range import minor_of
from stackfix.almanac.extensions_judge import admitted
from tests.abi_survey.compare import Case, compare, read_results
from tests.abi_survey.documented import documented_torch
from tests.abi_survey.kept import Survey, read_survey
from tests.abi_survey.rules import WHOLE, WITHOUT, sets_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "abi-survey.md"
MARKED = re.compile(r"(<!-- table: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Measured:
    """All that the tables are made of."""

    book: TorchBook
    judged: Sequence[JudgedWheel]
    survey: Survey

    @cached_property
    def cases(self) -> list[Case]:
        return compare(self.survey.wheels, read_results(), self.book)

    @cached_property
    def sets(self) -> dict[str, dict[str, tuple[str, ...]]]:
        return sets_of(self.survey, self.book)

    def declared(self, wheel: JudgedWheel) -> str | None:
        """By its metadata, else as documented."""
        return wheel.declares or documented_torch(wheel.package, wheel.version)

    def on_index(self, wheel: JudgedWheel) -> tuple[str, ...]:
        """Minors whose index wheel has its std::string as well."""
        flavour = {each.minor: each.string_abi for each in self.book.releases}
        return tuple(each for each in wheel.torch if wheel.string_abi in {None, flavour[minor_of(each)]})

    def excluded(self, wheel: JudgedWheel) -> tuple[str, ...]:
        """Declared, or documented, and disproved by its symbols."""
        admits = admitted(self.declared(wheel), self.book.releases)
        return wheel.disproved or tuple(
            minor for minor, versions in admits.items() if not any(map(wheel.loads, versions)))

    def admits(self, wheel: JudgedWheel) -> tuple[str, ...]:
        return tuple(admitted(self.declared(wheel), self.book.releases))


def measure() -> Measured:
    return Measured(book=open_torch_book(), judged=open_judged_wheels().wheels, survey=read_survey())


def rows(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table."""
    made = [head, ["---"] * len(head), *lines]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in made)


def packages(of: Measured) -> str:
    """By package: how many wheels, how many declare a torch that their symbols admit, how many sets are one minor."""
    def line(name: str, wheels: Sequence[JudgedWheel]) -> Sequence[object]:
        declared = [each for each in wheels if of.declared(each)]
        held = [each for each in declared if {*of.admits(each)} - {*of.excluded(each)}]
        widths = [len(of.on_index(each)) for each in wheels]
        return (name, len(wheels), len(declared), len(held), widths.count(1), f"{sum(widths) / len(widths):.1f}")

    by_name: dict[str, list[JudgedWheel]] = {}
    for each in of.judged:
        by_name.setdefault(re.sub(r"(nvfuser).*", r"\1-*", each.package), []).append(each)
    return rows(("package", "wheels", "declare a torch", "set holds a declared one", "single minor", "mean width"),
                [*(line(name, wheels) for name, wheels in by_name.items()), line("**all**", of.judged)])


def span(minors: Sequence[str], book: TorchBook) -> str:
    """"2.1" or "2.1 to 2.3"; lists them where one between is missing."""
    every = [each.minor for each in book.releases]
    if not minors:
        return "none"
    run = every[every.index(minors[0]):every.index(minors[-1]) + 1]
    if list(minors) != run:
        return ", ".join(minors)
    return minors[0] if len(minors) == 1 else f"{minors[0]} to {minors[-1]}"


def wheels(of: Measured) -> str:
    """Every wheel."""
    def line(each: JudgedWheel) -> Sequence[object]:
        index = of.on_index(each)
        declared = each.declares or (f"({of.declared(each)})" if of.declared(each) else "nothing")
        return (each.package, each.version, f"`{declared}`", span(index, of.book),
                span(each.torch, of.book) if each.torch != index else "the same", each.string_abi or "-",
                " ".join(map(str, each.cuda)) or "-")

    return rows(("package", "version", "declares", "can load with", "whatever the std::string", "std::string", "CUDA"),
                map(line, of.judged))


def disproved(of: Measured) -> str:
    """Declarations that admit releases which the symbols exclude."""
    return rows(("package", "version", "declares", "excluded by its symbols", "can load with"), (
        (each.package, each.version, f"`{of.declared(each)}`", span(excluded, of.book), span(each.torch, of.book))
        for each in of.judged if (excluded := of.excluded(each))))


def loader(of: Measured) -> str:
    """The verdict against a real loader, over the shared objects that ask something of torch."""
    titles = ("torch", "cannot load: the loader misses a name that we name", "can load: it loads",
              "cannot load: it loads", "can load: it misses a name of torch", "it misses a name that we do not name",
              "another library missing first", "a name of Python or of another library first", "other")
    lines = []
    for torch in sorted({case.torch for case in of.cases}):
        found = Counter(kind(case) for case in of.cases if case.torch == torch and case.verdict != "asks nothing")
        lines.append((torch, *(found[title] for title in titles[1:])))
    return rows(titles, lines)


def kind(case: Case) -> str:
    """The column that a case is counted in."""
    if case.seen == "loads":
        return {CAN: "can load: it loads", CANNOT: "cannot load: it loads"}.get(case.verdict, "other")
    if case.seen == "torch symbol":
        if case.verdict == CANNOT:
            return ("cannot load: the loader misses a name that we name" if case.symbol in case.missing
                    else "it misses a name that we do not name")
        return "can load: it misses a name of torch"
    if case.seen == "library":
        return "another library missing first"
    return "a name of Python or of another library first" if case.seen.endswith("symbol") else "other"


def filters(of: Measured) -> str:
    """For each filter: how many wheels get another set without it, and the first of them."""
    lines = []
    whole = of.sets[WHOLE]
    for name, rule in WITHOUT.items():
        changed = [each.wheel for each in of.survey.wheels if of.sets[name][each.wheel.file] != whole[each.wheel.file]]
        if changed:
            lines.append((rule.title, len(changed), f"{changed[0].package} {changed[0].version}",
                          span(whole[changed[0].file], of.book), span(of.sets[name][changed[0].file], of.book)))
        else:
            lines.append((rule.title, 0, "-", "-", "-"))
    return rows(("without the filter", "wheels with another set", "for instance", "its set", "its set then"), lines)


TABLES: dict[str, Callable[[Measured], str]] = {
    "packages": packages, "wheels": wheels, "disproved": disproved, "loader": loader, "filters": filters,
}


def with_tables(page: str, of: Measured) -> str:
    """The page with its tables made anew."""
    return MARKED.sub(lambda mark: f"{mark[1]}\n{TABLES[mark['name']](of)}\n{mark[3]}", page)


def main() -> None:
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), measure()), encoding="utf-8")


if __name__ == "__main__":
    main()
