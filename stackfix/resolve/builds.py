"""Which builds of one torch release there are to choose from: one for each place, most of them of one CUDA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.platforms import split_place
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.places import follows_cuda, has_cuda, is_labelled, labels_on
from stackfix.resolve.question import Question
from stackfix.resolve.torch_family import torch_path

Builds = dict[str, TorchBuild]          # by place


def choices_of(evidence: Evidence, question: Question, rows: Sequence[TorchBuild]) -> Iterator[Builds]:
    """Builds by place, those of the default index first. A place is left out where the release has no build for it."""
    places = question.request.platforms
    usual = {row.platform: row for row in rows if row.index == query.DEFAULT_INDEX}
    settled = {place: build for place in places if not follows_cuda(place)
               and (build := _cpu_build(evidence, rows, usual, place)) is not None}
    free = [place for place in places if follows_cuda(place)]
    first = {place: usual[place] for place in free if place in usual}
    known = [first]
    yield _ordered(places, {**first, **settled})
    for builds in _variants(evidence, question, rows, usual, free):
        if builds not in known:
            known.append(builds)
            yield _ordered(places, {**builds, **settled})


def _ordered(places: Sequence[str], builds: Mapping[str, TorchBuild]) -> Builds:
    return {place: builds[place] for place in places if place in builds}


def _cpu_build(
    evidence: Evidence, rows: Sequence[TorchBuild], usual: Mapping[str, TorchBuild], place: str
) -> TorchBuild | None:
    """The CPU build for a place: the default index's where that is one, else the torch index's."""
    platform, _ = split_place(place)
    first = usual.get(platform)
    if first is not None and (first.cuda == query.CPU or not has_cuda(place)):
        return first
    if evidence.torch_wheels is None:
        return None
    return next((row for row in rows if row.platform == platform and row.cuda == query.CPU), None)


def _variants(
    evidence: Evidence, question: Question, rows: Sequence[TorchBuild], usual: Mapping[str, TorchBuild],
    free: Sequence[str],
) -> Iterator[Builds]:
    """Builds for all these places, at least one of them of the torch index: of one CUDA, the newest first."""
    labelled = any(map(is_labelled, question.torch))
    if evidence.torch_wheels is None or not free or (question.request.cuda is None and not labelled):
        return                          # the default index has the variant that is meant where none is named
    by_cuda: dict[str, Builds] = {}
    for build in rows:
        if build.platform in free:
            by_cuda.setdefault(build.cuda, {}).setdefault(build.platform, build)
    for cuda in sorted(by_cuda, key=lambda each: (_is_read(question, by_cuda[each]), _minor(each)), reverse=True):
        builds = {place: usual[place] if place in usual and usual[place].cuda == cuda else build
                  for place, build in by_cuda[cuda].items()}
        if set(builds) == set(free):
            yield builds
    if labelled:
        each = {place: _named(evidence, question, rows, usual, place) for place in free}
        named = {place: build for place, build in each.items() if build is not None}
        if len(named) == len(free):
            yield named


def _named(
    evidence: Evidence, question: Question, rows: Sequence[TorchBuild], usual: Mapping[str, TorchBuild], place: str
) -> TorchBuild | None:
    """The build that is named for this place by torch's version, as a line with a marker does; else the default one."""
    labels = labels_on(evidence, question, place)
    if not labels:
        return usual.get(place)
    for row in rows:
        version = parse_version(f"{row.version}+{torch_path(row) or row.cuda}")
        if row.platform == place and version is not None and all(admits(ask.specifier, version) for ask in labels):
            return row
    return None


def _is_read(question: Question, builds: Mapping[str, TorchBuild]) -> bool:
    """Whether it is known which GPUs the builds have code for, where that is asked: these go first."""
    return not question.request.gpu_archs or all(build.gpu_archs for build in builds.values())


def _minor(cuda: str) -> tuple[int, ...]:
    return tuple(int(part) for part in cuda.split(".") if part.isdigit())
