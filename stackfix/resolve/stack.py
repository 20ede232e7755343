"""The stack level: which torch releases there are to choose from, and in which order they and the Pythons are tried.

Order: the CUDA variant is a hard limit above all; then the torch of the kept lock, then the newest; then the Python
that was not asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.question import TORCH, Question
from stackfix.resolve.records import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One torch release with its build of the default index on each platform. No builds: the matrix has no row."""

    version: Version
    text: str
    builds: Mapping[str, TorchBuild]

    @property
    def cuda(self) -> str:
        return next(iter(self.builds.values())).cuda


def stacks(evidence: Evidence, question: Question) -> list[Stack]:
    """All torch releases of the matrix and of the index: those that the kept lock pins first, then newest first."""
    found = known_stacks(evidence, question)
    for text in evidence.page(TORCH).version_strings():
        parsed = parse_version(text)
        if parsed is not None and parsed not in found and not parsed.is_prerelease:
            found[parsed] = Stack(version=parsed, text=text, builds={})
    return newest_first(question, found.values())


def newest_first(question: Question, found: Iterable[Stack]) -> list[Stack]:
    """The stacks in the order in which they are tried."""
    kept = parse_version(dict(question.request.kept).get(TORCH, ""))
    return sorted(found, key=lambda stack: (stack.version == kept, stack.version), reverse=True)


def known_stacks(evidence: Evidence, question: Question) -> dict[Version, Stack]:
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


def cuda_words(cuda: str) -> str:
    """`CUDA 12.1`, or `the CPU`."""
    return "the CPU" if cuda == query.CPU else f"CUDA {cuda}"


def has_torch(evidence: Evidence, stack: Stack, target: Target) -> bool:
    """Whether the index has a torch wheel for the target."""
    return evidence.project(TORCH, target).candidate(stack.version) is not None


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
    return tuple(int(part) for part in python.split("."))
