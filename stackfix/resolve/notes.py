"""What the user should know of a decision beyond its result. In a fixed order, each a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from stackfix.abi.records import JudgedWheel
from stackfix.matrix import query
from stackfix.matrix.records import DriverFamily, Rule
from stackfix.platforms import LINUX, PLATFORMS
from stackfix.resolve.build_notes import build_notes
from stackfix.resolve.closure import Closure
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn
from stackfix.resolve.flash_notes import cuda_builds, flash_attn_notes, words
from stackfix.resolve.needs import Candidate, FromRule, FromUser, Need
from stackfix.resolve.nightly_family import is_nightly_file
from stackfix.resolve.pep508 import admits, normalise, parse_requirement
from stackfix.resolve.place_notes import difference_notes, place_notes
from stackfix.resolve.problem import Problem
from stackfix.resolve.records import Target
from stackfix.resolve.solve import Solved
from stackfix.resolve.stack import cuda_words
from stackfix.resolve.symbol_notes import decided, extension_notes, library_notes
from stackfix.resolve.torch_family import companion_row
from stackfix.resolve.torch_notes import torch_index_notes
from stackfix.resolve.upload_notes import undated_notes
from stackfix.sources.errors import SdistNeedsBuild

OLDEST_TAKEN: dict[str, Callable[[Target], tuple[str, str, str, str]]] = {      # option, name, value, tag of wheels
    "Linux": lambda target: (
        "--glibc", "glibc", target.glibc, rf"manylinux_(\d+)_(\d+)_{PLATFORMS[target.platform].wheel}"),
    "Darwin": lambda target: ("--macos", "macOS", target.macos, r"macosx_(\d+)_(\d+)_(?:arm64|universal2)"),
}
_LIBRARY_MAJOR = re.compile(r"nvidia-[a-z-]+-cu(\d\d)")


def notes_of(evidence: Evidence, flash: FlashAttn, solved: Solved) -> tuple[str, ...]:
    """The notes of a decision, each once."""
    notes = [
        *_stack_notes(evidence, solved),
        *_driver_notes(evidence, solved),
        *flash_attn_notes(evidence, flash, solved),
        *torch_index_notes(evidence, solved),
        *_nightly_notes(evidence, solved),
        *difference_notes(solved),
    ]
    for _, closure in sorted(solved.closures.items(), key=lambda pair: pair[0]):
        notes.extend(_closure_notes(evidence, closure))
    return tuple(dict.fromkeys(notes))


def _nightly_notes(evidence: Evidence, solved: Solved) -> Iterator[str]:
    if solved.stack.is_nightly:
        from stackfix.resolve.nightly_notes import nightly_notes  # few locks are of one

        yield from nightly_notes(evidence, solved)


def _stack_notes(evidence: Evidence, solved: Solved) -> Iterator[str]:
    request, stack = solved.question.request, solved.stack
    if solved.newer:
        names = ", ".join(other.text for other in solved.newer)
        yield f"torch {names} is on the index, but the matrix has no row for it yet: torch {stack.text} was chosen"
    pythons = {target.python for target in solved.targets}
    if not request.pythons and pythons != {request.default_python}:
        yield (
            f"Python {', '.join(sorted(pythons))} was chosen: this stack cannot be had for Python"
            f" {request.default_python}"
        )
    yield from place_notes(evidence, solved)
    for build in dict.fromkeys(stack.builds.values()):
        if build.confidence == "low":
            yield f"the build of torch {stack.text} for {build.platform} is known with low confidence ({build.source})"


def _driver_notes(evidence: Evidence, solved: Solved) -> Iterator[str]:
    request = solved.question.request
    for build in cuda_builds(solved):
        family = query.driver_floor(evidence.matrix, build.cuda, build.platform)
        if request.driver is not None and family is None:
            cuda = cuda_words(build.cuda) + ("" if build.platform in LINUX else f" on {build.platform}")
            yield f"whether driver {request.driver} runs {cuda} is unknown: the matrix has no floor for it"
        elif request.driver is not None and query.driver_supports(
                evidence.matrix, request.driver, build.cuda, build.platform) is False:
            yield (
                f"driver {request.driver} is older than {family.floor if family else 'the floor'}, which"
                f" {cuda_words(build.cuda)} needs: it runs only through a forward-compatibility package"
                f" (cuda-compat) on a data-centre GPU; which base driver such a package takes is unknown here"
            )
        elif request.driver is not None and family is not None and query.rests_on_branch(request.driver, family.floor):
            yield _branch_note(request.driver, family)
        if family is not None and family.confidence == "low":
            floor = f"the driver floor {family.floor} of CUDA {family.cuda_major}"
            yield f"{floor} is known with low confidence ({family.source})"
        if request.gpu_archs and not build.gpu_archs:
            archs = ", ".join(request.gpu_archs)
            torch = f"torch {build.version} for {build.platform}"
            yield f"whether {torch} has code for {archs} is unknown: nobody read its binaries"


def _branch_note(driver: str, family: DriverFamily) -> str:
    return (
        f"driver {driver} is taken as {family.floor} or a newer release of that branch: older ones of it do not run"
        f" CUDA {family.cuda_major}"
    )


def _closure_notes(evidence: Evidence, closure: Closure) -> Iterator[str]:
    build = closure.problem.build
    for name, candidate in sorted(closure.chosen.items()):
        row = companion_row(evidence.matrix, candidate, build)
        if name in evidence.tied_to_torch and row is None and not is_nightly_file(candidate.files[0]):
            yield (
                f"{candidate.label} has no row in the matrix: it was taken because its metadata names torch"
                f" {build.version} exactly"
            )
        if row is not None and row.confidence == "low":
            yield f"what {candidate.label} was built for is known with low confidence ({row.source})"
        if row is not None and query.other_minor(row, build):
            yield (
                f"{candidate.label} is built for CUDA {row.cuda}, torch {build.version} for CUDA {build.cuda}: another"
                f" minor of the same major, which is accepted"
            )
        if not candidate.direct and not candidate.files[0].is_wheel:
            yield _sdist_note(evidence, candidate, closure.problem.target)
            yield from build_notes(evidence, candidate, closure.problem.target)
        if candidate.files[0].yanked is not None:
            reason = f": {candidate.files[0].yanked}" if candidate.files[0].yanked else ""
            yield f"{candidate.label} was yanked{reason}; it is locked because its version is asked for exactly"
    yield from extension_notes(evidence, closure)
    yield from library_notes(evidence, closure)
    yield from _row_disproved(evidence, closure)
    yield from _other_cuda(closure)
    yield from _low_rules(closure)
    yield from _unknown_extras(evidence, closure)
    yield from undated_notes(closure)


def _sdist_note(evidence: Evidence, candidate: Candidate, target: Target) -> str:
    """That installing builds the package, and which glibc would spare it."""
    oldest = OLDEST_TAKEN.get(PLATFORMS[target.platform].system)
    if oldest is None:
        return f"{candidate.label} is locked as an sdist, which installing it builds: no wheel is for {words(target)}"
    flag, name, value, tag = oldest(target)
    taken = tuple(int(part) for part in value.split("."))
    newer = sorted(
        version
        for file in evidence.page(candidate.name).files(candidate.text)
        for major, minor in re.findall(tag, file.filename)
        if (version := (int(major), int(minor))) > taken
    )
    hint = f"; with {flag} {newer[0][0]}.{newer[0][1]} it has wheels" if newer else ""
    return (
        f"{candidate.label} is locked as an sdist, which installing it builds: it has no wheel for"
        f" {words(target)} with {name} {value}{hint}"
    )


def _row_disproved(evidence: Evidence, closure: Closure) -> Iterator[str]:
    """Pins of torch's row that its wheel's own metadata do not hold: the metadata is followed."""
    build, view = closure.problem.build, evidence.view(closure.problem.target)
    for line in build.requires:
        if not view.applies(line, None):
            continue
        parsed = parse_requirement(line)
        chosen = closure.chosen.get(normalise(parsed.name)) if parsed is not None else None
        if parsed is not None and chosen is not None and not admits(parsed.specifier, chosen.version):
            yield (
                f"the matrix says that torch {build.version} requires {normalise(parsed.name)}{parsed.specifier}, the"
                f" metadata of its wheel led to {chosen.text}: the metadata was followed (`stackfix matrix check`)"
            )


def _other_cuda(closure: Closure) -> Iterator[str]:
    """That libraries of another CUDA major than torch's are in the environment too."""
    build = closure.problem.build
    found: dict[str, list[str]] = {}
    for name, candidate in sorted(closure.chosen.items()):
        library = _LIBRARY_MAJOR.fullmatch(name)
        if library and build.cuda != query.CPU and library[1] != build.cuda.partition(".")[0]:
            found.setdefault(library[1], []).append(candidate.label)
    for major, labels in sorted(found.items()):
        torch = f"torch {build.version} is built for {cuda_words(build.cuda)}"
        yield f"{torch}, and libraries of CUDA {major} are locked beside it: {', '.join(labels)}"


def _low_rules(closure: Closure) -> Iterator[str]:
    """Rules of low confidence that decided: without one, another version would have been taken."""
    for name, candidate in sorted(closure.chosen.items()):
        yield from _passed_over(closure, candidate)
        for need in closure.problem.dependencies(candidate):
            if isinstance(need.origin, FromRule) and need.origin.rule.confidence == "low" and decided(closure, need):
                rule = need.origin.rule
                yield (
                    f"{need.name} {closure.chosen[need.name].text} was chosen by a rule of low confidence: {name}"
                    f" {candidate.text} needs {rule.needs}, {rule.why} ({rule.source})"
                )


def _passed_over(closure: Closure, chosen: Candidate) -> Iterator[str]:
    """The newest version that a row of low confidence kept out; of what the request names, that any rule kept out."""
    problem = closure.problem
    if chosen.name in problem.only or not _is_governed(closure, chosen.name):
        return
    needs = [edge.need for edge in closure.edges if edge.need.name == chosen.name]
    for version in problem.project(chosen.name).admitted(needs):
        if version <= chosen.version:
            return
        candidate = problem.project(chosen.name).candidate(version)
        why = problem.exclusion(candidate) if candidate is not None else None
        if why is None:
            if candidate is not None and _is_open_to(needs, chosen, candidate, problem):
                yield (
                    f"{chosen.name} {chosen.text} was chosen over {candidate.text}: nobody read a wheel of"
                    f" {candidate.text}, and its metadata does not say which torch it was built for"
                )
                return
            continue
        if any(getattr(row, "confidence", "") == "low" for row in why.rows):
            yield (
                f"{chosen.name} {chosen.text} was chosen over {why.version} by a row of low confidence:"
                f" {chosen.name} {why.version} {why.reason} ({why.source})"
            )
            return
        judged = any(isinstance(row, Rule | JudgedWheel) for row in why.rows)
        if judged and any(isinstance(need.origin, FromUser) for need in needs):
            yield f"{chosen.name} {chosen.text} was chosen over {why.version}, which {why.reason}"
            return


def _is_open_to(needs: Iterable[Need], chosen: Candidate, candidate: Candidate, problem: Problem) -> bool:
    """Whether a version that the needs admit was left aside for one that was read."""
    return any(isinstance(need.origin, FromUser) for need in needs) and not problem.is_guess(
        chosen) and problem.is_guess(candidate)


def _is_governed(closure: Closure, name: str) -> bool:
    """Whether any row of the matrix, or any wheel that was read, can pass over a version of the project.

    Most projects have none, and a page whose files nobody else needs is dear to read.
    """
    evidence = closure.problem.evidence
    judged = evidence.books is not None and bool(evidence.books.judged.of(name))
    return judged or name in evidence.tied_to_torch or any(rule.package == name for rule in evidence.matrix.rules)


def _unknown_extras(evidence: Evidence, closure: Closure) -> Iterator[str]:
    for name, extras in sorted(closure.extras.items()):
        if name in closure.problem.only_requires:
            continue
        metadata = evidence.metadata(closure.chosen[name])
        if isinstance(metadata, SdistNeedsBuild):
            continue
        for extra in _not_in(extras, metadata.provides_extra):
            yield f"{closure.chosen[name].label} has no extra {extra!r}; it adds nothing"


def _not_in(extras: Iterable[str], provided: Iterable[str]) -> list[str]:
    known = {normalise(extra) for extra in provided}
    return [extra for extra in extras if extra not in known]
