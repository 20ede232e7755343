"""The decision: request in, lock out, or the reason why not with the nearest changes that were solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stackfix.abi.records import Books
from stackfix.matrix.records import Matrix
from stackfix.resolve.assemble import assemble
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.explain import refuse
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.notes import notes_of
from stackfix.resolve.prefetch import Prefetch
from stackfix.resolve.question import Question, parse_request
from stackfix.resolve.records import Index, Lock, Releases, StackRequest
from stackfix.resolve.solve import Failure, Solved, solve
from stackfix.sources.errors import NoSuchProject


def decide(
    request: StackRequest, matrix: Matrix, index: Index, releases: Releases, *,
    command: Callable[[StackRequest], str], books: Books | None = None,
) -> Lock:
    """The lock. Raises NoConsistentStack with minimal causes, BadInput, and what the sources raise.

    `books`: what the symbols of published wheels tell; without them the matrix and the metadata decide alone.
    """
    question = parse_request(request)
    evidence = Evidence(matrix, index, releases, request.exclude_newer, books)
    flash = FlashAttn(evidence)
    Prefetch(evidence, question).start()
    check_projects(evidence, question)
    while True:
        outcome = solve(evidence, flash, question)
        if isinstance(outcome, Failure):
            raise refuse(evidence, flash, outcome, command)
        finished = with_hashes(outcome, flash)
        if finished is not None:
            return assemble(evidence, finished, notes_of(evidence, flash, finished))


def check_projects(evidence: Evidence, question: Question) -> None:
    """Raises NoSuchProject for a project that was asked for and that no index has."""
    for line in question.lines:
        if line.requirement.constraint or "@" in line.requirement.text:
            continue
        evidence.page(line.name)
        missing = evidence.missing.get(line.name)
        if missing is not None:
            raise NoSuchProject(line.name, missing.indexes, line.requirement.origin)


def with_hashes(solved: Solved, flash: FlashAttn) -> Solved | None:
    """The same with the hash of every flash-attn wheel; None where one could not be had: then choose again."""
    plan = solved.plan
    if plan is None or all(wheel.sha256 is not None and wheel.asset is None for wheel in plan.wheels.values()):
        return solved
    builds = solved.stack.builds
    wheels = {target: flash.with_hash(wheel, builds[target.platform]) for target, wheel in plan.wheels.items()}
    known = {target: wheel for target, wheel in wheels.items() if wheel is not None}
    if len(known) < len(wheels):
        return None
    closures = dict(solved.closures)
    for target, wheel in known.items():
        chosen = dict(closures[target].chosen)
        chosen["flash-attn"] = replace(chosen["flash-attn"], files=(flash.file(wheel),))
        closures[target] = replace(closures[target], chosen=chosen)
    return replace(solved, plan=replace(plan, wheels=known), closures=closures)
