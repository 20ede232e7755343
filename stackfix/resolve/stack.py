"""The stack level: which torch builds there are to choose from, in which order, and what speaks against each.

Order: the CUDA variant is a hard limit above all; then the torch of the kept lock, then the newest; then the Python
that was not asked for. Each thing that speaks against a build is a record, so that a refusal can name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.question import TORCH, Question, StackAsk
from stackfix.resolve.records import Asked, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One torch release with its build of the default index on each platform; `builds` is empty for a release that the
    matrix has no row for.
    """

    version: Version
    text: str
    builds: Mapping[str, TorchBuild]

    @property
    def cuda(self) -> str:
        return next(iter(self.builds.values())).cuda


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a stack does not answer the question. `says` completes "torch 2.3.1 …", or holds "{torch}" where that goes."""

    kind: str                       # "asked", "matrix" or "index"
    asks: tuple[Asked, ...]         # what was asked that it rests on; without one of them it is no reason
    says: str
    source: str
    rows: tuple[object, ...] = ()


def stacks(evidence: Evidence, question: Question) -> list[Stack]:
    """All torch releases of the matrix and of the index: those that the kept lock pins first, then newest first."""
    found = _known_stacks(evidence, question)
    for text in evidence.page(TORCH).version_strings():
        parsed = parse_version(text)
        if parsed is not None and parsed not in found and not parsed.is_prerelease:
            found[parsed] = Stack(version=parsed, text=text, builds={})
    kept = parse_version(dict(question.request.kept).get(TORCH, ""))
    return sorted(found.values(), key=lambda stack: (stack.version == kept, stack.version), reverse=True)


def _known_stacks(evidence: Evidence, question: Question) -> dict[Version, Stack]:
    """The releases of the matrix."""
    platforms = question.request.platforms
    found: dict[Version, Stack] = {}
    rows: dict[str, dict[str, TorchBuild]] = {version: {} for version in query.torch_releases(evidence.matrix)}
    for build in query.builds(evidence.matrix, index=query.DEFAULT_INDEX):
        if build.platform in platforms:
            rows[build.version][build.platform] = build
    for version, builds in rows.items():
        parsed = parse_version(version)
        if parsed is not None:
            found[parsed] = Stack(version=parsed, text=version, builds=builds)
    return found


def reasons_against(evidence: Evidence, question: Question, stack: Stack) -> Iterator[Reason]:
    """What speaks against the stack whatever the Python, the cheapest to tell first."""
    for ask in question.torch:
        if not admits(ask.specifier, stack.version) and _holds_somewhere(evidence, question, ask):
            yield Reason(kind="asked", asks=(ask.asked,), says=f"is not {ask.asked.value}", source=ask.place)
    for platform in question.request.platforms:
        build = stack.builds.get(platform)
        if build is None:
            yield _no_build(evidence, question, stack, platform)
            continue
        yield from _cuda_reasons(evidence, question, build)
        yield from _driver_reasons(evidence, question, build)
        yield from _gpu_reasons(evidence, question, build)
    if len({build.cuda for build in stack.builds.values()}) > 1:
        says = "is built for " + " and ".join(f"{cuda_words(b.cuda)} on {b.platform}" for b in stack.builds.values())
        rows = tuple(stack.builds.values())
        yield Reason(kind="matrix", asks=question.ask("platform"), says=says, source=rows[0].source, rows=rows)


def expected_stack(evidence: Evidence, question: Question) -> Stack | None:
    """The stack that will be chosen if the index has what the matrix expects: to ask early for what it needs."""
    candidates = _known_stacks(evidence, question)
    kept = parse_version(dict(question.request.kept).get(TORCH, ""))
    ordered = sorted(candidates.values(), key=lambda stack: (stack.version == kept, stack.version), reverse=True)
    return next((s for s in ordered if next(reasons_against(evidence, question, s), None) is None), None)


def _holds_somewhere(evidence: Evidence, question: Question, ask: StackAsk) -> bool:
    """Whether a limit on torch is asked on any target; its marker may leave all of them out."""
    pythons = question.request.pythons or (question.request.default_python,)
    targets = (question.target(python, platform) for python in pythons for platform in question.request.platforms)
    return any(ask.holds_for(evidence.view(target)) for target in targets)


def _no_build(evidence: Evidence, question: Question, stack: Stack, platform: str) -> Reason:
    asks = question.platform_ask(platform)
    elsewhere = tuple(b for b in evidence.matrix.torch if b.version == stack.text and b.platform == platform)
    if elsewhere:
        names = ", ".join(sorted({cuda_words(build.cuda) for build in elsewhere}))
        says = f"is for {platform} ({names}) only on the torch index, which this version of stackfix does not read"
        return Reason(kind="matrix", asks=asks, says=says, source=elsewhere[0].source, rows=elsewhere)
    if any(build.version == stack.text for build in evidence.matrix.torch):
        return Reason(kind="matrix", asks=asks, says=f"has no wheel for {platform}", source="rows of torch in the matrix")
    return Reason(kind="matrix", asks=(), says="is on the index, but the matrix has no row for it", source="rows of torch in the matrix")


def _cuda_reasons(evidence: Evidence, question: Question, build: TorchBuild) -> Iterator[Reason]:
    asked = question.request.cuda
    if asked is None:
        wants_gpu = (*question.ask("driver"), *question.ask("gpu-arch"))
        if build.cuda == query.CPU and wants_gpu:
            yield Reason(kind="matrix", asks=wants_gpu[:1], says=_cpu_only(build), source=build.source, rows=(build,))
        return
    if query.cuda_matches(asked, build.cuda):
        return
    says = _cpu_only(build) if build.cuda == query.CPU else f"is built for {cuda_words(build.cuda)} on the default index"
    elsewhere = tuple(
        row for row in query.builds(evidence.matrix, platform=build.platform)
        if row.version == build.version and row.index != query.DEFAULT_INDEX and query.cuda_matches(asked, row.cuda)
    )
    if elsewhere:
        says += f"; its build for {cuda_words(elsewhere[0].cuda)} is only on the torch index, which this version of stackfix does not read"
    yield Reason(
        kind="matrix", asks=question.ask("cuda"), says=says, source=build.source, rows=(build, *elsewhere),
    )


def _cpu_only(build: TorchBuild) -> str:
    return f"has only a CPU build for {build.platform} on the default index"


def _driver_reasons(evidence: Evidence, question: Question, build: TorchBuild) -> Iterator[Reason]:
    request = question.request
    if request.driver is None or request.cuda_compat:
        return
    if query.driver_supports(evidence.matrix, request.driver, build.cuda) is False:
        family = query.driver_floor(evidence.matrix, build.cuda)
        if family is not None:
            yield Reason(
                kind="matrix", asks=question.ask("driver"), source=family.source, rows=(family,),
                says=f"is built for CUDA {family.cuda_major}, which needs driver {family.floor} or newer",
            )


def _gpu_reasons(evidence: Evidence, question: Question, build: TorchBuild) -> Iterator[Reason]:
    if not build.gpu_archs or build.cuda == query.CPU:
        return
    code = ", ".join(build.gpu_archs)
    for asked in question.ask("gpu-arch"):
        if not query.gpu_runs(build.gpu_archs, asked.value):
            says = f"has no code for {asked.value} (it has {code})"
            yield Reason(kind="matrix", asks=(asked,), says=says, source=build.source, rows=(build,))
        elif question.request.driver is not None and _only_ptx(build, asked.value):
            yield from _ptx_reason(evidence, question, build, asked)


def _only_ptx(build: TorchBuild, gpu: str) -> bool:
    cubins = tuple(arch for arch in build.gpu_archs if arch.startswith("sm_"))
    return not query.gpu_runs(cubins, gpu)


def _ptx_reason(evidence: Evidence, question: Question, build: TorchBuild, asked: Asked) -> Iterator[Reason]:
    """PTX is compiled by the driver, which must know the toolkit's PTX version: its own toolkit's, not the floor's."""
    newest = query.jit_cuda_of_driver(evidence.matrix, question.request.driver or "")
    known, needed = parse_version(newest or "0"), parse_version(build.cuda)
    if known is not None and needed is not None and known < needed:
        says = (
            f"has only PTX of {cuda_words(build.cuda)} for {asked.value}, which driver {question.request.driver} cannot"
            f" compile"
        )
        yield Reason(
            kind="matrix", asks=(asked, *question.ask("driver")), says=says, source=build.source, rows=(build,),
        )


def cuda_words(cuda: str) -> str:
    """`CUDA 12.1`, or `the CPU`."""
    return "the CPU" if cuda == query.CPU else f"CUDA {cuda}"


def torch_reasons(evidence: Evidence, question: Question, stack: Stack, target: Target) -> Iterator[Reason]:
    """Why the index has no torch wheel for the target. The index decides; what the matrix says of it is told too."""
    project = evidence.project(TORCH, target)
    if project.candidate(stack.version) is not None:
        return
    asks = (*question.python_ask(target.python), *question.platform_ask(target.platform), *question.file_asks())
    exclusion = project.exclusion(stack.version) if stack.version in project.versions else None
    says = exclusion.reason if exclusion is not None else "is in the matrix, but not on the index"
    yield Reason(kind="index", asks=asks, says=says, source="index page of torch")
    build = stack.builds[target.platform]
    if target.python not in build.pythons and build.pythons:
        says = f"is released for Python {build.pythons[0]} to {build.pythons[-1]}"
        yield Reason(kind="matrix", asks=asks, says=says, source=build.source, rows=(build,))


def has_torch(evidence: Evidence, stack: Stack, target: Target) -> bool:
    """Whether the index has a torch wheel for the target."""
    return evidence.project(TORCH, target).candidate(stack.version) is not None


def pythons_to_try(evidence: Evidence, question: Question, stack: Stack) -> Iterator[tuple[str, ...]]:
    """Sets of Pythons to lock for: those asked for, else the default one, then others that have wheels, newest first."""
    request = question.request
    if request.pythons:
        yield request.pythons
        return
    known = {python for build in evidence.matrix.torch for python in build.pythons}
    known.update(_pythons_on_index(evidence, stack))
    for python in (request.default_python, *sorted(known - {request.default_python}, key=_minor, reverse=True)):
        if all(has_torch(evidence, stack, question.target(python, platform)) for platform in request.platforms):
            yield (python,)


def _pythons_on_index(evidence: Evidence, stack: Stack) -> Iterator[str]:
    """Pythons that the file names on the page name for this release."""
    for file in evidence.page(TORCH).files(stack.text):
        tag = file.filename[:-4].split("-")[-3] if file.is_wheel and file.filename.count("-") >= 4 else ""
        if tag.startswith("cp3") and tag[3:].isdigit():
            yield f"3.{tag[3:]}"


def _minor(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.split("."))
