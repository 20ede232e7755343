"""What pip brings beside packages of channels: one more closure, in which all that they provide is fixed.

Nothing comes twice: a project that a package of a channel brings has that version and no other, and is left out of what
pip is given. Its own needs are the channels' affair; those of an extra are not, since channels know no extras.
"""

from __future__ import annotations

from stackfix.conda.names import Provided
from stackfix.conda.pip_bounds import bounds_of
from stackfix.conda.pip_problem import UNCOMPARED, beside, keep
from stackfix.matrix.records import TorchBuild
from stackfix.resolve.assemble import locked_packages
from stackfix.resolve.clash import Clash
from stackfix.resolve.closure import Closure, TooManyRounds, solve_closure
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.question import Question
from stackfix.resolve.records import LockedPackage, Target
from stackfix.resolve.roots import closure_problem
from stackfix.resolve.stack import Stack

__all__ = ["bounds_of", "pip_packages", "pip_part"]


def pip_part(
    evidence: Evidence, question: Question, build: TorchBuild, target: Target, *, provided: tuple[Provided, ...],
    plan: FlashPlan | None, flash: FlashAttn, preferred: Closure | None,
) -> Closure | Clash:
    """The closure of the whole request with what is `provided` in it, or what stands in the way.

    `build`: torch as the environment has it, the channel's or the wheel. `preferred`: the pip lock's closure. What was
    asked for by name and pip brings has the release that it has there; other versions of it are taken while they fit.
    A search that found no end is a clash that nobody proved. Raises what the index raises.
    """
    version = parse_version(build.version) or UNCOMPARED
    stack = Stack(version=version, text=build.version, builds={target.place: build})
    plain = closure_problem(evidence, question, stack, target, plan, flash)
    problem = beside(plain, {one.project: one for one in provided}, preferred)
    if preferred is not None:
        view = evidence.view(target)
        asked = [line.name for line in question.lines
                 if not line.requirement.constraint and view.applies(line.requirement.text, None)]
        keep(problem, preferred, asked)
    try:
        return solve_closure(problem)
    except TooManyRounds:       # another layout may hold what this one cannot tell
        return Clash(problem=problem, name="what pip brings", needs=(), exclusions=(), refuted=(), forced_by={},
                     proved=False)


def pip_packages(
    evidence: Evidence, question: Question, target: Target, closure: Closure, *, provided: tuple[Provided, ...],
    plan: FlashPlan | None,
) -> tuple[LockedPackage, ...]:
    """The pip entries of a closure, sorted by name, without what the channels provide; the second step among them."""
    without = frozenset(one.project for one in provided)
    return locked_packages(evidence, question, target, closure, plan, without)
