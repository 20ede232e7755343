"""What the channels must keep to so that a clash of what pip brings does not come again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.specifiers import SpecifierSet

from stackfix.conda.matching import admits_version
from stackfix.conda.names import Provided, Shelf
from stackfix.conda.pip_problem import PipPart
from stackfix.conda.records import Spec
from stackfix.conda.specs import not_a_version, spec_of
from stackfix.resolve.clash import Clash
from stackfix.resolve.needs import FromFile, Need
from stackfix.resolve.pep508 import admits, parse_specifier, parse_version
from stackfix.resolve.question import STACK_LEVEL


def bounds_of(clash: Clash, shelf: Shelf | None = None) -> tuple[Spec, ...]:
    """The bounds of the first way out of a clash; () where no bound on the channels can help.

    A way out: what one candidate of pip's needs of projects that the channels provide at versions it does not admit.
    With `shelf` (all records of a name) only ways are taken that some record of each package admits.
    """
    problem = clash.problem
    if not isinstance(problem, PipPart):
        return ()
    for needs in _ways(clash):
        bounds = tuple(dict.fromkeys(_bounds(problem, needs)))
        if bounds and all(shelf is None or _had(bound, shelf) for bound in bounds):
            return bounds
    return ()


def _ways(clash: Clash) -> Iterator[tuple[Need, ...]]:
    """The needs of each way out, those of newer candidates first."""
    if not clash.refuted:
        yield tuple(clash.all_needs())
    for case in clash.refuted:
        if case.clash is not None:
            yield from _ways(case.clash)
        else:
            yield (case.need, *case.against)


def _had(bound: Spec, shelf: Shelf) -> bool:
    name = bound.text.partition(" ")[0]
    return any(admits_version(bound.text, record.version) for record in shelf(name))


def _bounds(problem: PipPart, needs: Iterable[Need]) -> Iterator[Spec]:
    for need in needs:
        one = problem.provided.get(need.name)
        parent = need.parent
        if one is None or parent is None or parent.name in problem.provided or need.name in STACK_LEVEL:
            continue
        version = parse_version(one.version) if one.version is not None else None
        if need.extra is not None or (version is not None and admits(need.specifier, version)):
            continue
        if not need.specifier or not_a_version(need.specifier) is not None:
            continue
        by = parent.label if isinstance(need.origin, FromFile) else f"{parent.label} (a rule of the matrix)"
        yield Spec(text=spec_of(one.record.name, _lengthened(need.specifier, one)), origin=f"{by}, which pip brings")


def _lengthened(specifier: SpecifierSet, one: Provided) -> SpecifierSet:
    """`==2.20.5.*` of `==2.20.5`, where conda's version has a part more than the project's."""
    own = parse_version(one.record.version)
    if own is None or str(own) == one.version:
        return specifier
    text = ",".join(
        f"{part}.*" if part.operator in {"==", "!="} and not part.version.endswith(".*") else str(part)
        for part in specifier
    )
    return parse_specifier(text) or specifier
