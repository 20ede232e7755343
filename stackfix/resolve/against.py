"""What speaks against a stack, as records: a refusal can then name each thing with its source."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.platforms import LINUX, split_place
from stackfix.quick import dataclass
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.pep508 import admits, parse_specifier, parse_version
from stackfix.resolve.places import asks_on, differing, has_cuda, is_met, places_of_cuda
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
    usual: bool = False             # it is about the build that there is where no CUDA is asked for


def expected_stack(evidence: Evidence, question: Question) -> Stack | None:
    """The stack that will be chosen if the index has what the matrix expects: to ask early for what it needs."""
    first = None
    for stack in newest_first(question, known_stacks(evidence, question)):
        if next(reasons_against(evidence, question, stack), None) is None:
            if companions_may_fit(evidence, question, stack):
                return stack
            first = first or stack
    return first


def companions_may_fit(evidence: Evidence, question: Question, stack: Stack) -> bool:
    """Whether each companion that is asked for has a release in the matrix that takes this torch, or has no row."""
    for line in question.lines:
        rows = query.companions(evidence.matrix, line.name)
        if rows and not line.requirement.constraint and not any(_takes(row.torch, stack) for row in rows):
            return False
    return True


def _takes(torch: str | None, stack: Stack) -> bool:
    stated = parse_specifier(torch) if torch is not None else None
    return stated is None or admits(stated, stack.version)


def reasons_against(evidence: Evidence, question: Question, stack: Stack) -> Iterator[Reason]:
    """What speaks against the stack whatever the Python, the cheapest to tell first."""
    places = question.request.platforms
    yield from _torch_reasons(evidence, question, stack)
    for place in places:
        build = stack.builds.get(place)
        if build is None:
            yield _no_build(evidence, question, stack, place)
        elif place in places_of_cuda(question):
            yield from _cuda_reasons(evidence, question, place, build)
            yield from _driver_reasons(evidence, question, build)
            yield from _gpu_reasons(evidence, question, build)
    apart = differing(evidence, question, stack.builds)
    if apart:
        says = "is built for " + " and ".join(f"{cuda_words(build.cuda)} on {place}" for place, build in apart.items())
        rows = tuple(apart.values())
        asks = tuple(asked for place in apart for asked in question.platform_ask(place))
        yield Reason(kind="matrix", asks=asks, says=says, source=rows[0].source, rows=rows)


def _torch_reasons(evidence: Evidence, question: Question, stack: Stack) -> Iterator[Reason]:
    """What is asked of torch and is not met by the release: each once, on the first place where it is not."""
    places = question.request.platforms
    told: set[StackAsk] = set()
    for place in places:
        for ask in asks_on(evidence, question, place):
            if ask not in told and not is_met(stack, place, ask, places):
                told.add(ask)
                yield Reason(kind="asked", asks=(ask.asked,), says=f"is not {ask.asked.value}", source=ask.place)


def _no_build(evidence: Evidence, question: Question, stack: Stack, place: str) -> Reason:
    asks, (platform, variant) = question.platform_ask(place), split_place(place)
    if stack.is_nightly:
        from stackfix.resolve.nightly_reasons import absent_reason

        return absent_reason(evidence, question, stack, place)
    elsewhere = tuple(b for b in evidence.matrix.torch if b.version == stack.text and b.platform == platform)
    if elsewhere and variant:
        names = ", ".join(sorted({cuda_words(build.cuda) for build in elsewhere}))
        says = f"has no CPU build for {platform} (it has {names})"
        return Reason(kind="matrix", asks=asks, says=says, source=elsewhere[0].source, rows=elsewhere)
    if elsewhere:
        names = ", ".join(sorted({cuda_words(build.cuda) for build in elsewhere}))
        says = f"is for {platform} ({names}) only on the torch index, {not_read(evidence)}"
        return Reason(kind="matrix", asks=asks, says=says, source=elsewhere[0].source, rows=elsewhere)
    if any(build.version == stack.text for build in evidence.matrix.torch):
        return Reason(kind="matrix", asks=asks, says=f"has no wheel for {platform}", source=ROWS)
    return Reason(kind="matrix", asks=(), says="is on the index, but the matrix has no row for it", source=ROWS)


def _cuda_reasons(evidence: Evidence, question: Question, place: str, build: TorchBuild) -> Iterator[Reason]:
    asked = question.request.cuda
    if asked is None:
        wants_gpu = (*question.ask("driver"), *question.ask("gpu-arch"))
        if build.cuda == query.CPU and wants_gpu:
            asks = (*wants_gpu[:1], *question.platform_ask(place))
            yield Reason(kind="matrix", asks=asks, says=_cpu_only(place, build), source=build.source, rows=(build,),
                         usual=True)
        return
    if query.cuda_matches(asked, build.cuda):
        return
    cpu_only = build.cuda == query.CPU
    on = f" on {place}" if len(question.request.platforms) > 1 else ""
    says = _cpu_only(place, build) if cpu_only else f"is built for {cuda_words(build.cuda)}{on} {_where(build)}"
    elsewhere = tuple(
        row for row in query.builds(evidence.matrix, platform=build.platform)
        if row.version == build.version and row.index != query.DEFAULT_INDEX and query.cuda_matches(asked, row.cuda)
    )
    if split_place(place)[1]:
        elsewhere = ()
    elif elsewhere:
        says += f"; its build for {cuda_words(elsewhere[0].cuda)} is only on the torch index, {not_read(evidence)}"
    elif torch_path(build) is None and question.torch and evidence.torch_wheels is not None:
        says += _variants_there(evidence, build)
    asks = (*question.ask("cuda"), *question.platform_ask(place))
    yield Reason(kind="matrix", asks=asks, says=says, source=build.source, rows=(build, *elsewhere))


def not_read(evidence: Evidence) -> str:
    """That the torch index was not looked at, and which setting says so, where one does."""
    why = evidence.pinned_by(TORCH)
    return NOT_READ if why is None else f"{NOT_READ}: {why}"


def _variants_there(evidence: Evidence, build: TorchBuild) -> str:
    """`; the torch index has CUDA 11.8, CUDA 12.6, the CPU`, where it has the release."""
    rows = query.builds(evidence.matrix, platform=build.platform)
    cudas = [cuda_words(row.cuda) for row in rows if row.version == build.version and torch_path(row) is not None]
    return f"; the torch index has {', '.join(sorted(cudas))}" if cudas else ""


def _cpu_only(place: str, build: TorchBuild) -> str:
    if split_place(place)[1]:
        return f"is taken for the CPU on {place}, as that name asks"
    if not has_cuda(place):
        return f"has only a CPU build for {place}: nothing is built for CUDA there"
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


def page_words(evidence: Evidence, build: TorchBuild | None, project: str = TORCH) -> str:
    """Where it was looked for."""
    path, wheels = torch_path(build) if build is not None else None, evidence.torch_wheels
    if path is None or wheels is None:
        return f"index page of {project}"
    return f"page of {project} on the torch index ({path})" if wheels.away is None else (
        f"rows of the torch index ({path}) in the matrix: {wheels.away.what()}")


def _driver_reasons(evidence: Evidence, question: Question, build: TorchBuild) -> Iterator[Reason]:
    request = question.request
    if request.driver is None or (request.cuda_compat and build.platform in LINUX):     # no such package for Windows
        return
    if query.driver_supports(evidence.matrix, request.driver, build.cuda, build.platform) is False:
        family = query.driver_floor(evidence.matrix, build.cuda, build.platform)
        if family is not None:
            floor = f"driver {family.floor} or newer{'' if build.platform in LINUX else ' on Windows'}"
            yield Reason(
                kind="matrix", asks=question.ask("driver"), source=family.source, rows=(family,),
                says=f"is built for CUDA {family.cuda_major}, which needs {floor}",
            )


def _gpu_reasons(evidence: Evidence, question: Question, build: TorchBuild) -> Iterator[Reason]:
    if not build.gpu_archs or build.cuda == query.CPU:
        return
    code = ", ".join(build.gpu_archs)
    for asked in question.ask("gpu-arch"):
        if not query.gpu_runs(build.gpu_archs, asked.value):
            says = f"has no code for {asked.value} (it has {code})"
            yield Reason(kind="matrix", asks=(asked,), says=says, source=build.source, rows=(build,))
        elif question.request.driver is not None and build.platform in LINUX and _only_ptx(build, asked.value):
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
    build = stack.builds[target.place]
    project = evidence.project_for(TORCH, target, build)
    if project.candidate(stack.version) is not None:
        if stack.is_nightly:
            from stackfix.resolve.nightly_reasons import lost_pins

            yield from lost_pins(evidence, question, target, build, project, stack.text)
        return
    asks = (*question.python_ask(target.python), *question.platform_ask(target.place), *question.file_asks())
    listed = {public(version) for version in project.versions}
    exclusion = project.exclusion(stack.version) if stack.version in listed else None
    says = exclusion.reason if exclusion is not None else f"is in the matrix, but not on the {index_words(build)}"
    yield Reason(kind="index", asks=asks, says=says, source=page_words(evidence, build))
    if target.python not in build.pythons and build.pythons:
        says = f"is released for Python {build.pythons[0]} to {build.pythons[-1]}"
        yield Reason(kind="matrix", asks=asks, says=says, source=build.source, rows=(build,))
