"""The stack level: which torch releases there are to choose from, and in which order they and the Pythons are tried.

Order: the CUDA variant is a hard limit above all; then the torch of the kept lock, then the newest; of one release the
build of the default index, then the newest CUDA of those on the torch index; then the Python that was not asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.nightly import nightly_of
from stackfix.quick import dataclass
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.pep508 import admits, parse_version
from stackfix.resolve.question import TORCH, Question
from stackfix.resolve.records import Target
from stackfix.resolve.torch_family import torch_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One torch release with a build on each platform, all of one CUDA. No builds: the matrix has no row."""

    version: Version
    text: str
    builds: Mapping[str, TorchBuild]

    @property
    def labelled(self) -> Version:
        """The version as a wheel of the torch index has it: 2.3.1+cu118."""
        paths = [path for build in self.builds.values() if (path := torch_path(build)) is not None]
        path = next((path for path in paths if not path.endswith("/cpu")), next(iter(paths), None))
        return self.version if path is None else Version(f"{self.version}+{path.rpartition('/')[2]}")

    @property
    def is_nightly(self) -> bool:
        return self.version.is_devrelease and nightly_of(self.text) is not None

    @property
    def cuda(self) -> str:
        return next(iter(self.builds.values())).cuda


def stacks(evidence: Evidence, question: Question) -> list[Stack]:
    """All torch releases of the matrix and of the index: those that the kept lock pins first, then newest first."""
    found = known_stacks(evidence, question)
    known = {stack.version for stack in found}
    for text in evidence.page(TORCH).version_strings():
        parsed = parse_version(text)
        if parsed is not None and parsed not in known and not parsed.is_prerelease:
            known.add(parsed)
            found.append(Stack(version=parsed, text=text, builds={}))
    return newest_first(question, found)


def newest_first(question: Question, found: Iterable[Stack]) -> list[Stack]:
    """The stacks in the order in which they are tried."""
    kept = parse_version(dict(question.request.kept).get(TORCH, ""))
    return sorted(found, key=lambda stack: (stack.version == kept, stack.version), reverse=True)


def known_stacks(evidence: Evidence, question: Question) -> list[Stack]:
    """The releases of the matrix, each with its builds of the default index, and others that were asked for."""
    platforms = question.request.platforms
    found: list[Stack] = []
    if question.nightly is not None:
        from stackfix.resolve.nightly_stack import nightly_stacks  # few locks ask for one

        found.extend(nightly_stacks(evidence, question))
    for text in query.torch_releases(evidence.matrix):
        parsed = parse_version(text)
        rows = [b for b in evidence.matrix.torch if b.version == text and b.platform in platforms]
        if parsed is not None:
            usual = {build.platform: build for build in rows if build.index == query.DEFAULT_INDEX}
            chosen = [usual, *_variants(question, rows, usual)] if evidence.torch_wheels is not None else [usual]
            stacks_of = [Stack(version=parsed, text=text, builds=builds) for builds in chosen]
            found.extend([one for one in stacks_of if _is_asked(question, one)] or stacks_of[:1])
    return found


def _variants(
    question: Question, rows: Iterable[TorchBuild], usual: Mapping[str, TorchBuild]
) -> Iterator[dict[str, TorchBuild]]:
    """Builds of one CUDA for all platforms, at least one of them of the torch index, the newest CUDA first."""
    if question.request.cuda is None and not any("+" in str(ask.specifier) for ask in question.torch):
        return                          # the default index has the variant that is meant where none is named
    by_cuda: dict[str, dict[str, TorchBuild]] = {}
    for build in rows:
        by_cuda.setdefault(build.cuda, {}).setdefault(build.platform, build)
    for cuda in sorted(by_cuda, key=lambda each: (_is_read(question, by_cuda[each]), _minor(each)), reverse=True):
        builds = {platform: usual[platform] if platform in usual and usual[platform].cuda == cuda else build
                  for platform, build in by_cuda[cuda].items()}
        if set(builds) == set(question.request.platforms) and builds != dict(usual):
            yield builds


def _is_read(question: Question, builds: Mapping[str, TorchBuild]) -> bool:
    """Whether it is known which GPUs the builds have code for, where that is asked: these go first."""
    return not question.request.gpu_archs or all(build.gpu_archs for build in builds.values())


def _is_asked(question: Question, stack: Stack) -> bool:
    """Whether the CUDA of a stack is the one that was asked for, in the option or in torch's version."""
    cuda = question.request.cuda
    if cuda is not None and not all(query.cuda_matches(cuda, build.cuda) for build in stack.builds.values()):
        return False
    return bool(stack.builds) and all(admits(ask.specifier, stack.labelled) for ask in question.torch
                                      if "+" in str(ask.specifier))


def cuda_words(cuda: str) -> str:
    """`CUDA 12.1`, or `the CPU`."""
    return "the CPU" if cuda == query.CPU else f"CUDA {cuda}"


def has_torch(evidence: Evidence, stack: Stack, target: Target) -> bool:
    """Whether the index has a torch wheel for the target."""
    build = stack.builds.get(target.platform)
    project = evidence.project(TORCH, target) if build is None else evidence.project_for(TORCH, target, build)
    return project.candidate(stack.version) is not None


def pythons_to_try(evidence: Evidence, question: Question, stack: Stack) -> Iterator[tuple[str, ...]]:
    """Sets of Pythons to lock for: those asked for, else the default one, then others with wheels, newest first."""
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
    return tuple(int(part) for part in python.split(".") if part.isdigit())
