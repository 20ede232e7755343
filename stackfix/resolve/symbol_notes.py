"""Notes on what symbols tell of the chosen packages, and on compiled code of which nobody read any."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stackfix.matrix import query
from stackfix.resolve.closure import Closure
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.judged import cannot_load, judgements
from stackfix.resolve.limits import SYMBOLS, Limit, of_the_nearest
from stackfix.resolve.needs import Candidate, FromRule, Need
from stackfix.resolve.pep508 import admits, normalise, pins_exactly
from stackfix.resolve.question import TORCH
from stackfix.resolve.torch_family import companion_row
from stackfix.resolve.unread import bounds_above, is_silent, is_unread


def extension_notes(evidence: Evidence, closure: Closure) -> Iterator[str]:
    """Compiled code against a torch that neither symbols nor metadata nor the matrix name."""
    build = closure.problem.build
    of_torch = {TORCH, *(need.name for need in closure.problem.dependencies(closure.chosen[TORCH]))}   # triton
    for name, candidate in sorted(closure.chosen.items()):
        if name in of_torch or not _is_compiled(candidate):
            continue
        judged = judgements(evidence.books, candidate.files[0], build)
        if judged and cannot_load(judged) is None:
            yield (
                f"wheels of {candidate.label} differ in the torch that they were built for, by their symbols; nobody"
                f" read {candidate.files[0].filename}"
            )
        elif not judged and not candidate.direct and _is_open(evidence, closure, candidate):
            yield (
                f"{candidate.label} holds compiled code, and its metadata does not say which torch it was built for;"
                f" nobody checked that it fits torch {build.version}"
            )
        for file in candidate.files[1:]:
            other = judgements(evidence.books, file, build)
            if other and other[0].itself and other[0].against:
                yield f"{file.filename} is locked beside {candidate.files[0].filename}, but {other[0].against}"


def _is_compiled(candidate: Candidate) -> bool:
    file = candidate.files[0]
    return file.is_wheel and not file.filename.endswith("-none-any.whl")


def _is_open(evidence: Evidence, closure: Closure, candidate: Candidate) -> bool:
    """Whether neither metadata nor the matrix says up to which torch the candidate was built."""
    needs = [need.specifier for need in closure.problem.dependencies(candidate) if need.name == TORCH]
    if is_unread(evidence.books, candidate, closure.problem.build):     # of a package that is built against torch
        return is_silent(evidence.matrix, candidate, needs)
    row = companion_row(evidence.matrix, candidate, closure.problem.build)
    if candidate.name in evidence.tied_to_torch:
        return row is not None and row.torch is not None and bool(needs) and not any(map(bounds_above, needs))
    rules = [
        rule for rule in query.rules_for(evidence.matrix, candidate.name, candidate.text)
        if normalise(rule.needs[: len(TORCH) + 1].rstrip("<>=!~ ")) == TORCH
    ]
    unbounded = bool(needs) and not any(map(bounds_above, needs))
    return not any(rule.confidence != "low" for rule in rules) and (bool(rules) or unbounded)


def library_notes(evidence: Evidence, closure: Closure) -> Iterator[str]:
    """Libraries that symbols decided about, or of which nobody read whether they suffice."""
    for _, candidate in sorted(closure.chosen.items()):
        needs = list(closure.problem.dependencies(candidate))
        limits = {limit.name: limit for limit in evidence.limits(candidate.name, candidate.text)}
        for need in needs:
            rule = need.origin.rule if isinstance(need.origin, FromRule) else None
            if rule is not None and rule.source == SYMBOLS and decided(closure, need):
                yield (
                    f"{need.name} {closure.chosen[need.name].text} was chosen by symbols: {candidate.label} needs"
                    f" {rule.needs}, {rule.why}"
                )
        # what its own metadata pins is its makers' word, and no guess
        pinned = {n.name for n in needs if not isinstance(n.origin, FromRule) and pins_exactly(n.specifier)}
        for limit in limits.values():
            if limit.name not in pinned:
                yield from _undecided(closure, candidate, limit)
        yield from _unread(evidence, closure, candidate, pinned | limits.keys())


def _undecided(closure: Closure, candidate: Candidate, limit: Limit) -> Iterator[str]:
    """That it is not known whether a library suffices."""
    other = closure.chosen.get(limit.name)
    if other is not None and limit.undecided(other.version):
        yield (
            f"nobody read whether {other.label} has all that {candidate.label} uses (known with low confidence); of"
            f" what was read, {limit.rule.needs} has it: {limit.rule.why}"
        )


def _unread(evidence: Evidence, closure: Closure, candidate: Candidate, known: Collection[str]) -> Iterator[str]:
    """That it is not known what a release needs of a library, where its nearest read neighbour is known to need it."""
    found = of_the_nearest(evidence.books.nvidia, candidate.name, candidate.text) if evidence.books else None
    for limit in found[1] if found is not None else ():
        other = closure.chosen.get(limit.name)
        if found is not None and other is not None and limit.name not in known:
            yield (
                f"nobody read what {candidate.label} uses of {other.label} (known with low confidence);"
                f" {candidate.name} {found[0]} needs {limit.rule.needs}: {limit.rule.why}"
            )


def decided(closure: Closure, rule_need: Need) -> bool:
    """Whether the best version without the rule breaks it."""
    needs = [edge.need for edge in closure.edges if edge.need.name == rule_need.name and edge.need.extra is None]
    best = next(closure.problem.candidates(rule_need.name, None, needs), None)
    return best is not None and not admits(rule_need.specifier, best.version)
