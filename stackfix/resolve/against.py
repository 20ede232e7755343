"""What speaks against a stack, as records: a refusal can then name each thing with its source."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.quick import dataclass
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.nightly_ask import names_day
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.question import TORCH, Question, StackAsk
from stackfix.resolve.records import Asked, Cause, Target
from stackfix.resolve.stack import Stack, cuda_words, known_stacks, newest_first
from stackfix.resolve.torch_family import public, torch_path

ROWS = "rows of torch in the matrix"
NOT_READ = "which was not looked at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a stack does not answer. `says` completes "torch 2.3.1 …", or holds "{torch}" where that goes."""

    kind: str                       # "asked", "matrix" or "index"
    asks: tuple[Asked, ...]         # what was asked that it rests on; without one of them it is no reason
    says: str
    source: str
    rows: tuple[object, ...] = ()
    chain: tuple[Cause, ...] = ()   # what is told in place of `says`, where it takes more than a sentence


def expected_stack(evidence: Evidence, question: Question) -> Stack | None:
    """The stack that will be chosen if the index has what the matrix expects: to ask early for what it needs."""
    ordered = newest_first(question, known_stacks(evidence, question))
    return next((stack for stack in ordered if next(reasons_against(evidence, question, stack), None) is None), None)


def reasons_against(evidence: Evidence, question: Question, stack: Stack) -> Iterator[Reason]:
    """What speaks against the stack whatever the Python, the cheapest to tell first."""
    for ask in question.torch:
        by_day = question.nightly is not None and stack.is_nightly and names_day(ask.specifier, stack.text)
        if not by_day and not admits(ask.specifier, stack.labelled) and _holds_somewhere(evidence, question, ask):
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


def _holds_somewhere(evidence: Evidence, question: Question, ask: StackAsk) -> bool:
    """Whether a limit on torch is asked on any target; its marker may leave all of them out."""
    pythons = question.request.pythons or (question.request.default_python,)
    targets = (question.target(python, platform) for python in pythons for platform in question.request.platforms)
    return any(ask.holds_for(evidence.view(target)) for target in targets)


def _no_build(evidence: Evidence, question: Question, stack: Stack, platform: str) -> Reason:
    if stack.is_nightly:
        from stackfix.resolve.nightly_reasons import absent_reason

        return absent_reason(evidence, question, stack.text, platform)
    asks = question.platform_ask(platform)
    elsewhere = tuple(b for b in evidence.matrix.torch if b.version == stack.text and b.platform == platform)
    if elsewhere:
        names = ", ".join(sorted({cuda_words(build.cuda) for build in elsewhere}))
        says = f"is for {platform} ({names}) only on the torch index, {NOT_READ}"
        return Reason(kind="matrix", asks=asks, says=says, source=elsewhere[0].source, rows=elsewhere)
    if any(build.version == stack.text for build in evidence.matrix.torch):
        return Reason(kind="matrix", asks=asks, says=f"has no wheel for {platform}", source=ROWS)
    return Reason(kind="matrix", asks=(), says="is on the index, but the matrix has no row for it", source=ROWS)


def _cuda_reasons(evidence: Evidence, question: Question, build: TorchBuild) -> Iterator[Reason]:
    asked = question.request.cuda
    if asked is None:
        wants_gpu = (*question.ask("driver"), *question.ask("gpu-arch"))
        if build.cuda == query.CPU and wants_gpu:
            yield Reason(kind="matrix", asks=wants_gpu[:1], says=_cpu_only(build), source=build.source, rows=(build,))
        return
    if query.cuda_matches(asked, build.cuda):
        return
    cpu_only = build.cuda == query.CPU
    says = _cpu_only(build) if cpu_only else f"is built for {cuda_words(build.cuda)} {_where(build)}"
    elsewhere = tuple(
        row for row in query.builds(evidence.matrix, platform=build.platform)
        if row.version == build.version and row.index != query.DEFAULT_INDEX and query.cuda_matches(asked, row.cuda)
    )
    if elsewhere:
        says += f"; its build for {cuda_words(elsewhere[0].cuda)} is only on the torch index, {NOT_READ}"
    elif torch_path(build) is None and question.torch and evidence.torch_wheels is not None:
        says += _variants_there(evidence, build)
    yield Reason(
        kind="matrix", asks=question.ask("cuda"), says=says, source=build.source, rows=(build, *elsewhere),
    )


def _variants_there(evidence: Evidence, build: TorchBuild) -> str:
    """`; the torch index has CUDA 11.8, CUDA 12.6, the CPU`, where it has the release."""
    rows = query.builds(evidence.matrix, platform=build.platform)
    cudas = [cuda_words(row.cuda) for row in rows if row.version == build.version and torch_path(row) is not None]
    return f"; the torch index has {', '.join(sorted(cudas))}" if cudas else ""


def _cpu_only(build: TorchBuild) -> str:
    return f"has only a CPU build for {build.platform} {_where(build)}"


def _where(build: TorchBuild) -> str:
    if build.index == query.DEFAULT_INDEX:
        return "on the default index"
    if torch_path(build) is not None:
        return f"on the torch index ({build.index})"
    return f"in the channel {build.index.rpartition('/')[2]}"


def index_words(build: TorchBuild | None) -> str:
    """`index`, or `torch index (cu118)`."""
    path = torch_path(build) if build is not None else None
    return "index" if path is None else f"torch index ({path})"


def page_words(evidence: Evidence, build: TorchBuild | None) -> str:
    """Where it was looked for."""
    path, wheels = torch_path(build) if build is not None else None, evidence.torch_wheels
    if path is None or wheels is None:
        return "index page of torch"
    return f"page of torch on the torch index ({path})" if wheels.away is None else (
        f"rows of the torch index ({path}) in the matrix: {wheels.away.what()}")


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


def torch_reasons(evidence: Evidence, question: Question, stack: Stack, target: Target) -> Iterator[Reason]:
    """Why the index has no torch wheel for the target. The index decides; what the matrix says of it is told too."""
    build = stack.builds[target.platform]
    project = evidence.project_for(TORCH, target, build)
    if project.candidate(stack.version) is not None:
        if stack.is_nightly:
            from stackfix.resolve.nightly_reasons import lost_pins

            yield from lost_pins(evidence, question, target, build, project, stack.text)
        return
    asks = (*question.python_ask(target.python), *question.platform_ask(target.platform), *question.file_asks())
    listed = {public(version) for version in project.versions}
    exclusion = project.exclusion(stack.version) if stack.version in listed else None
    says = exclusion.reason if exclusion is not None else f"is in the matrix, but not on the {index_words(build)}"
    yield Reason(kind="index", asks=asks, says=says, source=page_words(evidence, build))
    if target.python not in build.pythons and build.pythons:
        says = f"is released for Python {build.pythons[0]} to {build.pythons[-1]}"
        yield Reason(kind="matrix", asks=asks, says=says, source=build.source, rows=(build,))
