"""Notes on the places of a lock: what is a CPU build there."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.matrix import query
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.places import follows_cuda, has_cuda, labels_on
from stackfix.resolve.solve import Solved
from stackfix.resolve.stack import cuda_words


def place_notes(evidence: Evidence, solved: Solved) -> Iterator[str]:
    """What is to be known of torch's builds on the places of a lock."""
    request, stack = solved.question.request, solved.stack
    for place, build in stack.builds.items():
        if not has_cuda(place) and stack.cuda != query.CPU:
            yield (f"torch {stack.text} for {place} is the default index's wheel, without CUDA: nothing is built for"
                   f" {cuda_words(stack.cuda)} there")
        elif follows_cuda(place) and build.cuda == query.CPU and request.cuda is None and (
                build.index == query.DEFAULT_INDEX and not labels_on(evidence, solved.question, place)):
            cuda = None if evidence.torch_wheels is None else query.newest_variant(evidence.matrix, build)
            there = f"; with --cuda {cuda} it comes from the torch index" if cuda is not None else ""
            yield f"the wheel of torch {stack.text} for {place} on the default index is a CPU build{there}"
