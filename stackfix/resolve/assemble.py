"""A solved question as the `Lock` that later stages write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.nightly import nightly_of
from stackfix.resolve.closure import Closure
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashPlan
from stackfix.resolve.needs import Candidate, FromRule, FromStack, FromUser, Need
from stackfix.resolve.question import FLASH_ATTN, TORCH, Question
from stackfix.resolve.records import Lock, LockedPackage, StackSummary, Target, TargetLock
from stackfix.resolve.solve import Solved
from stackfix.sources.errors import SdistNeedsBuild

UNSUFFIXED_FROM = 13    # CUDA major whose toolkit wheels have no suffix; cuDNN and NCCL keep theirs
CHOSEN = "stackfix"     # who asks for what nobody named: the stack itself


def assemble(evidence: Evidence, solved: Solved, notes: tuple[str, ...]) -> Lock:
    """The lock: the same for the same evidence, to the last byte."""
    targets = tuple(target_lock(evidence, solved, target) for target in sorted(solved.closures))
    return Lock(stack=summary(evidence, solved), targets=targets, notes=notes, conda=solved.conda)


def target_lock(evidence: Evidence, solved: Solved, target: Target) -> TargetLock:
    """The lock of one target."""
    return TargetLock(
        target=target, build=solved.stack.builds[target.place],
        packages=locked_packages(evidence, solved.question, target, solved.closures[target], solved.plan),
    )


def summary(evidence: Evidence, solved: Solved) -> StackSummary:
    """What the stack is, in a line."""
    builds = [solved.stack.builds[target.place] for target in solved.targets]
    build = next((build for build in builds if build.cuda != query.CPU), builds[0])
    chosen: dict[str, str] = {}
    for _, closure in sorted(solved.closures.items(), key=lambda pair: pair[0]):
        for name, candidate in closure.chosen.items():
            chosen.setdefault(name, str(candidate.version))
    if not solved.closures:
        chosen = _of_channels(solved)
    family = query.driver_floor(evidence.matrix, build.cuda, build.platform)
    abis = {build.cxx11_abi for build in builds}
    return StackSummary(
        torch=solved.stack.text,
        cuda=build.cuda,
        cxx11_abi=abis.pop() if len(abis) == 1 else None,
        cudnn=_library(chosen, "nvidia-cudnn", build) or build.cudnn,
        nvjitlink=_library(chosen, "nvidia-nvjitlink", build),
        nccl=_library(chosen, "nvidia-nccl", build) or build.nccl,
        flash_attn=solved.plan.version if solved.plan is not None else chosen.get(FLASH_ATTN),
        driver_min=family.floor if family is not None else None,
        pythons=tuple(sorted({target.python for target in solved.targets}, key=_minor)),
        platforms=tuple(sorted({target.place for target in solved.targets})),
        nightly=nightly.day if (nightly := nightly_of(solved.stack.text)) is not None else None,
    )


def _of_channels(solved: Solved) -> dict[str, str]:
    """Versions of what channels have, under the names that the stack's libraries have on the index."""
    found: dict[str, str] = {}
    for target in solved.conda:
        packages = {record.name: record.version for record in target.records}
        for name in ("cudnn", "nvjitlink", "nccl"):
            version = packages.get(f"lib{name}") or packages.get(name)
            if name == "cudnn" and target.torch is not None and target.torch.cudnn_linked:
                version = target.torch.cudnn
            if version is not None:
                major = solved.stack.cuda.partition(".")[0]
                found.setdefault(f"nvidia-{name}-cu{major}", version)
        flash_attn = packages.get(FLASH_ATTN) or next((p.version for p in target.pip if p.name == FLASH_ATTN), None)
        if flash_attn is not None:
            found.setdefault(FLASH_ATTN, flash_attn)
    return found


def _minor(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.split("."))


def _library(chosen: Mapping[str, str], stem: str, build: TorchBuild) -> str | None:
    """Version of torch's own library, by the name it has in this CUDA major.

    Up to CUDA 12 all have a suffix; from 13 the toolkit's have none (nvidia-nvjitlink-cu13 is an empty placeholder).
    """
    if build.cuda == query.CPU:
        return None
    major = build.cuda.partition(".")[0]
    names = (f"{stem}-cu{major}",) if int(major) < UNSUFFIXED_FROM else (stem, f"{stem}-cu{major}")
    return next((chosen[name] for name in names if name in chosen), None)


def locked_packages(
    evidence: Evidence, question: Question, target: Target, closure: Closure, plan: FlashPlan | None,
    without: frozenset[str] = frozenset(),
) -> tuple[LockedPackage, ...]:
    """The pins of a closure, sorted by name, the second step among them; `without` projects that others bring."""
    parents = _parents(question, closure)
    children = _children(closure)
    packages = [
        _package(evidence, closure, candidate, children.get(name, ()), parents.get(name, ()))
        for name, candidate in closure.chosen.items() if name not in without
    ]
    packages.extend(_second_step(evidence, question, plan, target))
    return tuple(sorted(packages, key=lambda package: package.name))


def _package(
    evidence: Evidence, closure: Closure, candidate: Candidate, requires: tuple[str, ...], parents: tuple[str, ...]
) -> LockedPackage:
    return LockedPackage(
        name=candidate.name, version=str(candidate.version), files=candidate.files, requires=requires,
        requested_by=parents, requires_python=_requires_python(evidence, closure, candidate), direct=candidate.direct,
        extras=closure.extras.get(candidate.name, ()),
    )


def _requires_python(evidence: Evidence, closure: Closure, candidate: Candidate) -> str | None:
    stated = candidate.files[0].requires_python
    if stated or candidate.name in closure.problem.only_requires:
        return stated
    metadata = evidence.metadata(candidate)
    return None if isinstance(metadata, SdistNeedsBuild) else metadata.requires_python


def _parents(question: Question, closure: Closure) -> dict[str, tuple[str, ...]]:
    """Who wants each project: names of projects and places of the request, sorted."""
    found: dict[str, set[str]] = {}
    for edge in closure.edges:
        wanted_by = found.setdefault(edge.need.name, set())
        wanted_by.update(name for name in _asking(question, edge.need) if name != edge.need.name)
    return {name: tuple(sorted(names)) for name, names in found.items()}


def _asking(question: Question, need: Need) -> Iterator[str]:
    origin = need.origin
    if isinstance(origin, FromUser):
        yield origin.place
    elif isinstance(origin, FromStack):
        if need.name in {TORCH, FLASH_ATTN}:
            asks = question.torch if need.name == TORCH else question.flash_attn
            yield from [ask.place for ask in asks if not ask.constraint] or [CHOSEN]
        else:
            yield origin.part
    elif not isinstance(origin, FromRule):
        yield origin.parent.name


def _children(closure: Closure) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for edge in closure.edges:
        if edge.parent is not None and edge.parent.name != edge.need.name:
            found.setdefault(edge.parent.name, set()).add(edge.need.name)
    return {name: tuple(sorted(names)) for name, names in found.items()}


def _second_step(
    evidence: Evidence, question: Question, plan: FlashPlan | None, target: Target
) -> Iterator[LockedPackage]:
    """flash-attn as the sdist that is installed after everything else."""
    sdist = plan.sdists.get(target) if plan is not None else None
    release = query.flash_attn_release(evidence.matrix, plan.version) if plan is not None else None
    if sdist is None or release is None:
        return
    places = [ask.place for ask in question.flash_attn if not ask.constraint] or [CHOSEN]
    yield LockedPackage(
        name=FLASH_ATTN, version=str(sdist.version), files=sdist.files, step=2,
        requires=tuple(sorted({TORCH, *(name_of(line) for line in release.requires)})),
        requested_by=tuple(sorted(places)), requires_python=sdist.files[0].requires_python,
    )


def name_of(line: str) -> str:
    """The project that a requirement line names."""
    from stackfix.resolve.pep508 import normalise, parse_requirement

    requirement = parse_requirement(line)
    return normalise(requirement.name) if requirement is not None else line


def gives(evidence: Evidence, solved: Solved) -> str:
    """`torch 2.3.1, CUDA 12.1, cuDNN 8.9.2.26, flash-attn 2.5.8`."""
    stack = summary(evidence, solved)
    parts = [f"torch {stack.torch}", "CPU build" if stack.cuda == query.CPU else f"CUDA {stack.cuda}"]
    if stack.cudnn and stack.cuda != query.CPU:
        parts.append(f"cuDNN {stack.cudnn}")
    if stack.flash_attn:
        second = " (sdist, second step)" if solved.plan is not None and solved.plan.sdists else ""
        parts.append(f"flash-attn {stack.flash_attn}{second}")
    parts.append("Python " + ", ".join(stack.pythons))
    return ", ".join(parts)
