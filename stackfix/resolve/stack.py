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
from stackfix.platforms import split_place
from stackfix.quick import dataclass
from stackfix.resolve.builds import choices_of
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.places import is_labelled, is_met, labels_on, places_of_cuda
from stackfix.resolve.question import TORCH, Question
from stackfix.resolve.records import Target
from stackfix.resolve.torch_family import torch_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One torch release with a build for each place. No builds: the matrix has no row.

    The builds are of one CUDA, but for places that are for the CPU whatever the others are for.
    """

    version: Version
    text: str
    builds: Mapping[str, TorchBuild]        # by place: "linux-64", "linux-64-cpu"

    def labelled(self, place: str) -> Version:
        """The version as a wheel for the place has it: 2.3.1+cu118 on the torch index, 2.3.1 on the default one."""
        build = self.builds.get(place)
        path = torch_path(build) if build is not None else None
        return self.version if path is None else Version(f"{self.version}+{path.rpartition('/')[2]}")

    @property
    def is_nightly(self) -> bool:
        return self.version.is_devrelease and nightly_of(self.text) is not None

    @property
    def cuda(self) -> str:
        """The CUDA of all builds that are no CPU builds; the CPU where all are."""
        return next((build.cuda for build in self.builds.values() if build.cuda != query.CPU), query.CPU)


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
    platforms = {split_place(place)[0] for place in question.request.platforms}
    rows: dict[str, list[TorchBuild]] = {}
    for build in evidence.matrix.torch:
        if build.platform in platforms:
            rows.setdefault(build.version, []).append(build)
    found: list[Stack] = []
    if question.nightly is not None:
        from stackfix.resolve.nightly_stack import nightly_stacks  # few locks ask for one

        found.extend(nightly_stacks(evidence, question))
    for text in query.torch_releases(evidence.matrix):
        parsed = parse_version(text)
        if parsed is not None:
            chosen = choices_of(evidence, question, rows.get(text, ()))
            stacks_of = [Stack(version=parsed, text=text, builds=builds) for builds in chosen]
            found.extend([one for one in stacks_of if _is_asked(evidence, question, one)] or stacks_of[:1])
    return found


def _is_asked(evidence: Evidence, question: Question, stack: Stack) -> bool:
    """Whether the CUDA of a stack is the one that was asked for, in the option or in torch's version."""
    cuda, places, counted = question.request.cuda, question.request.platforms, places_of_cuda(question)
    if not stack.builds or (cuda is not None and not all(
            query.cuda_matches(cuda, build.cuda) for place, build in stack.builds.items() if place in counted)):
        return False
    if not any(map(is_labelled, question.torch)):
        return True
    return all(is_met(stack, place, ask, places) for place in places for ask in labels_on(evidence, question, place))


def cuda_words(cuda: str) -> str:
    """`CUDA 12.1`, or `the CPU`."""
    return "the CPU" if cuda == query.CPU else f"CUDA {cuda}"


def has_torch(evidence: Evidence, stack: Stack, target: Target) -> bool:
    """Whether the index has a torch wheel for the target."""
    build = stack.builds.get(target.place)
    project = evidence.project(TORCH, target) if build is None else evidence.project_for(TORCH, target, build)
    return project.candidate(stack.version) is not None


def pythons_to_try(evidence: Evidence, question: Question, stack: Stack) -> Iterator[tuple[str, ...]]:
    """Sets of Pythons to lock for: those asked for, else the default one, then others with wheels, newest first."""
    request = question.request
    if request.pythons:
        yield request.pythons
        return
    for python in (request.default_python, *_other_pythons(evidence, question, stack)):
        if all(has_torch(evidence, stack, target) for target in question.targets((python,))):
            yield (python,)


def places_without_wheels(evidence: Evidence, question: Question, stack: Stack) -> tuple[str, ...]:
    """The places that the release has no wheel for, whatever the Python."""
    pythons = (question.request.default_python, *_other_pythons(evidence, question, stack))
    return tuple(place for place in question.request.platforms
                 if not any(has_torch(evidence, stack, question.target(python, place)) for python in pythons))


def _other_pythons(evidence: Evidence, question: Question, stack: Stack) -> list[str]:
    """Pythons that the matrix or the index page has beside the default one, newest first."""
    known = {python for build in evidence.matrix.torch for python in build.pythons}
    known.update(_pythons_on_index(evidence, stack))
    return sorted(known - {question.request.default_python}, key=_minor, reverse=True)


def _pythons_on_index(evidence: Evidence, stack: Stack) -> Iterator[str]:
    """Pythons that the file names on the page name for this release."""
    for file in evidence.page(TORCH).files(stack.text):
        tag = file.filename[:-4].split("-")[-3] if file.is_wheel and file.filename.count("-") >= 4 else ""
        if tag.startswith("cp3") and tag[3:].isdigit():
            yield f"3.{tag[3:]}"


def _minor(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.split(".") if part.isdigit())
