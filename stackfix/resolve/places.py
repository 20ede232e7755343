"""What is asked of torch's build on each place: of the CUDA on most, of the CPU on some whatever that is.

A place follows `--cuda` unless it is for the CPU by its own name (`linux-64-cpu`) or by nature (macOS has no CUDA).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.platforms import PLATFORMS, split_place
from stackfix.resolve.nightly_ask import names_day
from stackfix.resolve.pep508 import admits
from stackfix.resolve.torch_family import torch_path

if TYPE_CHECKING:
    from stackfix.resolve.evidence import Evidence
    from stackfix.resolve.question import Question, StackAsk
    from stackfix.resolve.stack import Stack


def has_cuda(place: str) -> bool:
    """Whether there are builds for CUDA on the place's platform."""
    platform = PLATFORMS.get(split_place(place)[0])
    return platform is None or platform.has_cuda


def follows_cuda(place: str) -> bool:
    """Whether the CUDA that is asked for, or that the default index has, is this place's too."""
    return not split_place(place)[1] and has_cuda(place)


def places_of_cuda(question: Question) -> tuple[str, ...]:
    """The places that a CUDA, a driver or a GPU is asked for; where all are for the CPU alone, every one."""
    places = question.request.platforms
    return tuple(place for place in places if follows_cuda(place)) or places


def asks_on(evidence: Evidence, question: Question, place: str) -> tuple[StackAsk, ...]:
    """What is asked of torch on a place: a line's marker may leave it out."""
    pythons = question.request.pythons or (question.request.default_python,)
    views = [evidence.view(question.target(python, place)) for python in pythons]
    return tuple(ask for ask in question.torch if any(ask.holds_for(view) for view in views))


def labels_on(evidence: Evidence, question: Question, place: str) -> tuple[StackAsk, ...]:
    """What names a variant of torch on a place: `torch==2.3.1+cu118`."""
    return tuple(ask for ask in asks_on(evidence, question, place) if is_labelled(ask))


def is_labelled(ask: StackAsk) -> bool:
    """Whether a limit on torch names a variant."""
    return "+" in str(ask.specifier)


def is_met(stack: Stack, place: str, ask: StackAsk, beside: Iterable[str] = ()) -> bool:
    """Whether the stack's build on a place is what is asked of torch there.

    A CPU build of the default index has no local part, and is `+cpu` all the same: the torch index has such wheels only
    where the default one has CUDA. On a platform without CUDA any variant is met by the only build there is, where it
    is met on one of the places `beside`.
    """
    if admits(ask.specifier, stack.labelled(place)) or (stack.is_nightly and names_day(ask.specifier, stack.text)):
        return True
    build = stack.builds.get(place)
    if build is None or not is_labelled(ask) or build.cuda != query.CPU or (
            torch_path(build) is not None and not stack.is_nightly):
        return False
    if admits(ask.specifier, Version(f"{stack.version}+{query.CPU}")):
        return True
    return not has_cuda(place) and any(
        admits(ask.specifier, stack.labelled(other)) for other in beside if has_cuda(other))


def differing(evidence: Evidence, question: Question, builds: Mapping[str, TorchBuild]) -> dict[str, TorchBuild]:
    """The builds by place where they are to be of one CUDA and are not; empty where they are."""
    held = {place: build for place, build in builds.items()
            if follows_cuda(place) and not labels_on(evidence, question, place)}
    return held if len({build.cuda for build in held.values()}) > 1 else {}
