"""Notes on a nightly: that it goes, how its libraries differ from those of a release and of other nights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from packaging.version import Version

from stackfix.errors import StackfixError
from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.nightly import nightly_of
from stackfix.platforms import platform_of_wheel
from stackfix.resolve.closure import Closure
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.needs import Candidate
from stackfix.resolve.nightly_family import COMPANIONS, is_nightly_file
from stackfix.resolve.nightly_stack import is_nightly, library_pin, nightlies_on, pins_of, python_of
from stackfix.resolve.pep508 import normalise, parse_requirement, parse_version
from stackfix.resolve.places import follows_cuda
from stackfix.resolve.question import TORCH
from stackfix.resolve.solve import Solved
from stackfix.sources.errors import SdistNeedsBuild
from stackfix.sources.records import IndexFile

LIBRARIES = {
    "nvidia-cudnn": "cuDNN", "nvidia-nccl": "NCCL", "nvidia-nvjitlink": "nvJitLink", "nvidia-cublas": "cuBLAS",
    "nvidia-cusparselt": "cuSPARSELt", "nvidia-nvshmem": "NVSHMEM", "cuda-toolkit": "CUDA toolkit",
}
Pins = Mapping[str, str]                # by the library's name as people say it: "cuDNN" -> "9.10.2.21"


def nightly_notes(evidence: Evidence, solved: Solved) -> Iterator[str]:
    """All of them, of a stack that is one."""
    torch = f"torch {solved.stack.text}"
    yield (f"{torch} is a nightly: the torch index lists it for some weeks only, and then this lock cannot be decided"
           " or checked again")
    yield (f"of {torch} the matrix knows nothing: its C++ ABI, the GPUs that it has code for and the release of its"
           " CUDA toolkit are not known")
    for place, build in solved.stack.builds.items():
        if build.cuda == query.CPU and solved.question.request.cuda is None and follows_cuda(place):
            yield f"{torch} for {place} is the CPU build: no other of that day is listed"
    for _, closure in sorted(solved.closures.items(), key=lambda pair: pair[0]):
        yield from _drift(evidence, closure)
        yield from _by_day_alone(evidence, closure)
        yield from _built_for_releases(evidence, closure)


def _drift(evidence: Evidence, closure: Closure) -> Iterator[str]:
    """How the pins of the libraries differ from those of a release, and of the nights before and after."""
    build, pinned = closure.problem.build, libraries_of(closure)
    if not is_nightly(build) or not pinned:
        return
    release = newest_release(evidence, build)
    if release is not None:
        own = named({name: str(candidate.version) for name, candidate in closure.chosen.items()}, build)
        beside = named(query.preferred_versions(evidence.matrix, release), build)
        told = [_against(name, version, beside.get(name)) for name, version in own.items() if name in beside]
        if told:
            yield (f"libraries of torch {build.version} against torch {release.version}, the newest release for CUDA"
                   f" {build.cuda} in the matrix: {', '.join(told)}")
    nights = [text for text in (_night_words(evidence, closure, pinned, step) for step in (-1, 1)) if text]
    if nights:
        yield f"nightlies around torch {build.version}: {'; '.join(nights)}"


def libraries_of(closure: Closure) -> dict[str, str]:
    """The libraries that torch itself pins, as they are locked."""
    torch = closure.chosen.get(TORCH)
    metadata = closure.problem.evidence.metadata(torch) if torch is not None else None
    if metadata is None or isinstance(metadata, SdistNeedsBuild):
        return {}
    view = closure.problem.evidence.view(closure.problem.target)
    lines = (line for line in metadata.requires_dist if view.applies(line, None))
    return named(dict(pins_of(lines)), closure.problem.build)


def named(pins: Mapping[str, str], build: TorchBuild) -> dict[str, str]:
    """The versions of known libraries, of those for the build's CUDA, by their common names in a fixed order."""
    mine = {name: version for name, version in pins.items() if _is_for(name, build)}
    found = {name: library_pin(mine, stem) for stem, name in LIBRARIES.items()}
    return {name: version for name, version in found.items() if version is not None}


def _is_for(name: str, build: TorchBuild) -> bool:
    major = name.rpartition("-cu")[2]
    return not major.isdigit() or major == build.cuda.partition(".")[0]


def newest_release(evidence: Evidence, build: TorchBuild) -> TorchBuild | None:
    """The newest release of the matrix for the same CUDA and platform."""
    same = (one for one in query.builds(evidence.matrix, platform=build.platform) if one.cuda == build.cuda)
    return max(same, key=lambda one: Version(one.version), default=None)


def _against(name: str, own: str, other: str | None) -> str:
    return f"{name} {own} (the same)" if _equal(own, other) else f"{name} {own} in place of {other}"


def _equal(one: str, other: str | None) -> bool:
    return other is not None and parse_version(one) == parse_version(other)


def _night_words(evidence: Evidence, closure: Closure, own: Pins, step: int) -> str:
    """`2025-09-01 has the same libraries`, of the next night that is listed; "" where there is none or it is unread."""
    torch = closure.chosen[TORCH]
    day = nightly_of(torch.text)
    path = closure.problem.build.index
    nights = {found.date: text for text, _ in nightlies_on(evidence, path) if (found := nightly_of(text)) is not None}
    dates = sorted(date for date in nights if day is not None and (date > day.date) is (step > 0) and date != day.date)
    if not dates:
        return ""
    text = nights[dates[0 if step > 0 else -1]]
    other = None
    with suppress(StackfixError):       # it is in passing: the lock does not rest on it
        other = _pins_of_night(evidence, closure, text)
    found = nightly_of(text)
    if other is None or found is None:
        return ""
    changed = [f"{name} {version}" for name, version in other.items() if not _equal(version, own.get(name))]
    gone = [f"no {name}" for name in own if name not in other]
    words = f"has {', '.join((*changed, *gone))}" if changed or gone else "has the same libraries"
    other_line = f" (torch {found.version})" if found.release != _release(torch) else ""
    return f"{found.day}{other_line} {words}"


def _release(torch: Candidate) -> str | None:
    found = nightly_of(torch.text)
    return found.release if found is not None else None


def _pins_of_night(evidence: Evidence, closure: Closure, text: str) -> Pins | None:
    """The libraries that another night's wheel for the same Python and platform pins."""
    chosen = closure.chosen[TORCH].files[0]
    files = evidence.torch_page(closure.problem.build.index, TORCH).files(text)
    file = next((each for each in files if _is_alike(each, chosen)), None)
    metadata = evidence.metadata_of(file) if file is not None else None
    if metadata is None or isinstance(metadata, SdistNeedsBuild):
        return None
    view = evidence.view(closure.problem.target)
    lines = (line for line in metadata.requires_dist if view.applies(line, None))
    return named(dict(pins_of(lines)), closure.problem.build)


def _is_alike(file: IndexFile, other: IndexFile) -> bool:
    return file.is_wheel and python_of(file) == python_of(other) and (
        platform_of_wheel(file.filename) == platform_of_wheel(other.filename))


def _by_day_alone(evidence: Evidence, closure: Closure) -> Iterator[str]:
    """Companions whose metadata name no torch: they were taken because they are of the same night."""
    for name, candidate in sorted(closure.chosen.items()):
        if name in COMPANIONS and is_nightly_file(candidate.files[0]):
            metadata = evidence.metadata(candidate)
            lines = () if isinstance(metadata, SdistNeedsBuild) else metadata.requires_dist
            if not any(_names_torch(line) for line in lines):
                yield f"{candidate.label} does not say which torch it was built for: it was taken because of its day"


def _built_for_releases(evidence: Evidence, closure: Closure) -> Iterator[str]:
    """Compiled packages of the default index that need torch: they were built against some release of it."""
    found: list[str] = []
    for name, candidate in sorted(closure.chosen.items()):
        file = candidate.files[0]
        if name == TORCH or not file.is_wheel or file.filename.endswith("-any.whl") or is_nightly_file(file):
            continue
        metadata = evidence.metadata(candidate) if name not in closure.problem.only_requires else None
        if metadata is not None and not isinstance(metadata, SdistNeedsBuild) and any(
                _names_torch(line) and closure.problem.view_applies(line, None) for line in metadata.requires_dist):
            found.append(candidate.label)
    if found:
        yield (f"{' and '.join(found)} {'was' if len(found) == 1 else 'were'} compiled against some release of torch:"
               f" whether {'it loads' if len(found) == 1 else 'they load'} with torch {closure.problem.build.version}"
               " nobody has checked")


def _names_torch(line: str) -> bool:
    requirement = parse_requirement(line)
    return requirement is not None and normalise(requirement.name) == TORCH
