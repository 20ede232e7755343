"""The decision: request in, lock out, or the reason why not with the nearest changes that were solved."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stackfix.abi.records import Books
from stackfix.matrix.records import Matrix
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.nightly_ask import NightlyNeedsDate
from stackfix.resolve.nightly_family import comes_with_nightly
from stackfix.resolve.prefetch import Prefetch
from stackfix.resolve.question import TORCH, Question, parse_request
from stackfix.resolve.records import Index, Lock, Releases, StackRequest
from stackfix.resolve.torch_family import TorchWheels
from stackfix.sources.errors import NoSuchProject

if TYPE_CHECKING:
    from stackfix.resolve.solve import Solver


def decide(  # noqa: PLR0913 - the sources, and what the caller chooses of them
    request: StackRequest, matrix: Matrix, index: Index, releases: Releases, *,
    command: Callable[[StackRequest], str], books: Books | None = None, solver: Solver | None = None,
    wheels: bool = True, torch_wheels: TorchWheels | None = None,
) -> Lock:
    """The lock. Raises NoConsistentStack with minimal causes, BadInput, and what the sources raise.

    `books`: what the symbols of published wheels tell; without them the matrix and the metadata decide alone.
    `solver`: the search, here that of wheels alone; one that asks conda channels too comes from the caller.
    `torch_wheels`: the torch index, for builds that the default one has not; without it there are none of them.
    `wheels`: whether a lock of wheels is asked for; else the index is asked only for what the search needs of it.
    """
    evidence = Evidence(matrix, index, releases, request.exclude_newer, books, torch_wheels)
    evidence.upload_limits = request.upload_limits
    question = asked_question(evidence, request)
    flash = FlashAttn(evidence)
    if wheels:
        Prefetch(evidence, question).start()
        check_projects(evidence, question)
    # the index answers while the rest is imported
    from stackfix.resolve.assemble import assemble
    from stackfix.resolve.notes import notes_of
    from stackfix.resolve.solve import Failure, solve, with_hashes

    solver = solver or solve
    while True:
        outcome = solver(evidence, flash, question)
        if isinstance(outcome, Failure) and question.nightly is not None and not evidence.every_cuda:
            evidence.every_cuda = True
            continue
        if isinstance(outcome, Failure):
            from stackfix.resolve.explain import refuse  # most locks have nothing to explain

            evidence.on_stack = None        # what is tried for an explanation is tried in passing: nothing is expected
            raise refuse(evidence, flash, outcome, command, solver)
        finished = with_hashes(outcome, flash)
        if finished is not None:
            return assemble(evidence, finished, notes_of(evidence, flash, finished))


def asked_question(evidence: Evidence, request: StackRequest) -> Question:
    """The parsed request. Raises BadInput; where a nightly lacks its day, with those that there are."""
    try:
        return parse_request(request)
    except NightlyNeedsDate as fault:
        from stackfix.resolve.nightly_reasons import newest_days

        raise fault.with_days(newest_days(evidence, request)) from None


def check_projects(evidence: Evidence, question: Question) -> None:
    """Raises NoSuchProject for a project that was asked for and that no index has, NoUploadTimes for want of dates."""
    evidence.refuse_without_times(TORCH)
    for line in question.lines:
        if line.requirement.constraint or "@" in line.requirement.text:
            continue
        if question.nightly is not None and comes_with_nightly(line.name) and (
                evidence.pinned_by(line.name) is None):
            continue                    # it is of the torch index, whatever the others have
        evidence.page(line.name)
        missing = evidence.missing.get(line.name)
        if missing is None:
            evidence.refuse_without_times(line.name)
        else:
            raise NoSuchProject(line.name, missing.indexes, line.requirement.origin, missing.why)
