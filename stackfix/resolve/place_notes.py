"""Notes on the places of a lock: CPU builds, drivers, and where the versions of targets differ."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.matrix import query
from stackfix.platforms import PLATFORMS
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.places import follows_cuda, has_cuda, labels_on
from stackfix.resolve.records import Target
from stackfix.resolve.solve import Solved
from stackfix.resolve.stack import cuda_words
from stackfix.resolve.torch_family import public


def place_notes(evidence: Evidence, solved: Solved) -> Iterator[str]:
    """What is to be known of torch's builds on the places of a lock."""
    request, stack = solved.question.request, solved.stack
    for place, build in stack.builds.items():
        if not has_cuda(place) and stack.cuda != query.CPU:
            which = "the default index's wheel" if build.index == query.DEFAULT_INDEX else "the CPU build"
            yield (f"torch {stack.text} for {place} is {which}, without CUDA: nothing is built for"
                   f" {cuda_words(stack.cuda)} there")
        elif follows_cuda(place) and build.cuda == query.CPU and request.cuda is None and (
                build.index == query.DEFAULT_INDEX and not labels_on(evidence, solved.question, place)):
            cuda = None if evidence.torch_wheels is None else query.newest_variant(evidence.matrix, build)
            there = f"; with --cuda {cuda} it comes from the torch index" if cuda is not None else ""
            yield f"the wheel of torch {stack.text} for {place} on the default index is a CPU build{there}"
    yield from _windows_driver(evidence, solved)


def _windows_driver(evidence: Evidence, solved: Solved) -> Iterator[str]:
    """The oldest driver on Windows, where the one that is told of the stack is Linux's."""
    builds = [build for build in solved.stack.builds.values() if build.cuda != query.CPU]
    systems = {PLATFORMS[build.platform].system for build in builds if build.platform in PLATFORMS}
    if systems >= {"Linux", "Windows"}:
        build = next(build for build in builds if PLATFORMS[build.platform].system == "Windows")
        family = query.driver_floor(evidence.matrix, build.cuda, build.platform)
        cuda = cuda_words(build.cuda)
        if family is not None:
            yield f"on Windows {cuda} needs driver {family.floor} or newer: drivers have other numbers there"
        else:
            yield f"which driver {cuda} needs on Windows is unknown: the matrix has no floor for it"


def difference_notes(solved: Solved) -> Iterator[str]:
    """Projects that are not of one version on all targets: one note, in the order of their names."""
    targets = sorted(solved.closures, key=lambda target: (parse_version(target.python), target.place))
    versions: dict[str, dict[str, list[Target]]] = {}
    for target in targets:
        for name, candidate in solved.closures[target].chosen.items():
            versions.setdefault(name, {}).setdefault(str(public(candidate.version)), []).append(target)
    told = [f"{name} {_told(found, targets)}" for name, found in sorted(versions.items()) if len(found) > 1]
    if told:
        yield f"of other versions on some targets: {'; '.join(told)}"


def _told(found: dict[str, list[Target]], targets: list[Target]) -> str:
    """`2.0.2 for Python 3.9, else 2.3.5`: the version of most targets comes last."""
    ordered = sorted(found, key=lambda version: (len(found[version]), [targets.index(one) for one in found[version]]))
    others = (f"{version} for {_words(found[version], targets)}" for version in ordered[:-1])
    return f"{', '.join(others)}, else {ordered[-1]}"


def _words(of: list[Target], targets: list[Target]) -> str:
    """The targets by what tells them apart from all others: their Pythons, their places, or both."""
    pythons, places = ({target.python: None for target in of}, {target.place: None for target in of})
    if all(target in of for target in targets if target.python in pythons):
        return f"Python {' and '.join(pythons)}"
    if all(target in of for target in targets if target.place in places):
        return " and ".join(places)
    return " and ".join(f"Python {target.python} on {target.place}" for target in of)
