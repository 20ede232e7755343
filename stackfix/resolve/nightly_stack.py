"""The stacks of a nightly: one for each CUDA that it may be of, made from its page and metadata, since no row tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.nightly import Nightly, cuda_of, is_nightly_path, nightly_of, path_of
from stackfix.platforms import CPU, PLATFORMS, platform_of_wheel, split_place
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.nightly_family import days_apart
from stackfix.resolve.pep508 import normalise, parse_requirement, parse_version, pins_exactly
from stackfix.resolve.question import TORCH, Question
from stackfix.resolve.stack import Stack
from stackfix.sources.errors import SdistNeedsBuild
from stackfix.sources.records import IndexFile

LINUX_64 = "linux-64"
MINORS = 6                      # of releases whose CUDAs a nightly may be of
_GLIBC = re.compile(r"manylinux_(\d+_\d+)")


def nightly_stacks(evidence: Evidence, question: Question) -> list[Stack]:
    """The stacks of the nightly that is asked for, best first; one without builds where no page has it."""
    nightly = question.nightly
    if nightly is None or evidence.torch_wheels is None:
        return []
    found: list[Stack] = []
    for cuda in asked_cudas(evidence, question):
        of_cuda = list(_of_cuda(evidence, question, nightly, cuda))
        found.extend(of_cuda)
        if not evidence.every_cuda and any(len(one.builds) == len(question.request.platforms) for one in of_cuda):
            break                       # nobody says which CUDA: the first that has it for every platform
    return found or [_absent(evidence, question, nightly)]


def is_nightly(build: TorchBuild) -> bool:
    """Whether a build is one of a nightly."""
    return is_nightly_path(build.index)


def place_path(place: str, cuda: str) -> str:
    """The path of the torch index that has the builds of a place: of the CPU alone where CUDA is not for it."""
    platform, variant = split_place(place)
    known = PLATFORMS.get(platform)
    return path_of(CPU if variant == CPU or (known is not None and not known.has_cuda) else cuda)


def asked_cudas(evidence: Evidence, question: Question) -> list[str]:
    """CUDAs to look for the nightly in: what is asked, else that of stable releases around it, nearest first."""
    asked, nightly = question.request.cuda, question.nightly
    if nightly is not None and nightly.path is not None:
        return [cuda_of(nightly.path)]
    if asked is not None and (asked == CPU or "." in asked):
        return [asked if asked == CPU else ".".join(asked.split(".")[:2])]
    usual = [build for build in query.builds(evidence.matrix, index=query.DEFAULT_INDEX) if build.cuda != query.CPU]
    limit = parse_version(nightly.version) if nightly is not None and nightly.version is not None else None
    before = [build.cuda for build in usual if limit is None or Version(build.version) < limit]
    others = sorted(_cudas_around(evidence, limit), key=Version, reverse=True)
    near = list(dict.fromkeys((*before[:1], *others)))
    driver = question.request.driver
    if driver is not None:
        near.sort(key=lambda cuda: query.driver_supports(evidence.matrix, driver, cuda) is False)
    # as on the default index, where other platforms than this have CPU builds under the plain name
    last = [query.CPU] if asked is None and LINUX_64 not in question.request.platforms else []
    return [cuda for cuda in near if asked is None or query.cuda_matches(asked, cuda)] + last or near[:1]


def _cudas_around(evidence: Evidence, limit: Version | None) -> set[str]:
    """CUDAs of the releases before a nightly, and of the one that it became, where the matrix has that."""
    builds = [build for build in query.builds(evidence.matrix) if build.cuda != query.CPU]
    minors = list(dict.fromkeys(query.minor_of(build.version) for build in builds))
    own = [minor for minor in minors if limit is None or Version(minor) <= Version(limit.base_version)]
    return {build.cuda for build in builds if query.minor_of(build.version) in (own or minors)[:MINORS]}


def _of_cuda(evidence: Evidence, question: Question, nightly: Nightly, cuda: str) -> Iterator[Stack]:
    """The stack of each release that has a build of that day: two where a branch was cut on it."""
    builds: dict[Version, dict[str, TorchBuild]] = {}
    for place in question.request.platforms:
        for version, files in wheels_of_day(evidence, place_path(place, cuda), place, nightly):
            hashed = [file for file in files if file.sha256 is not None]     # no other can be locked
            build = _build(evidence, question, place, version, hashed) if hashed else None
            if build is not None:
                builds.setdefault(version, {})[place] = build
    for version in sorted(builds, reverse=True):
        yield Stack(version=version, text=str(version), builds=builds[version])


def wheels_of_day(
    evidence: Evidence, path: str, place: str, nightly: Nightly,
) -> list[tuple[Version, list[IndexFile]]]:
    """The public version and the wheels for a platform of a nightly, on one path."""
    found: dict[Version, list[IndexFile]] = {}
    platform = split_place(place)[0]
    for text, version in nightlies_on(evidence, path):
        if f"dev{nightly.date}" in text and (nightly.version is None or version == parse_version(nightly.version)):
            page = evidence.torch_page(path, TORCH)
            found.setdefault(version, []).extend(
                file for file in page.files(text) if file.is_wheel and platform_of_wheel(file.filename) == platform)
    return [(version, files) for version, files in found.items() if files]


def nightlies_on(evidence: Evidence, path: str) -> Iterator[tuple[str, Version]]:
    """Every nightly of torch on a path: as its files write it, and without its local part."""
    for text in evidence.torch_page(path, TORCH).version_strings():
        parsed = parse_version(text)
        if parsed is not None and nightly_of(text) is not None:
            yield text, Version(parsed.public)


def _build(
    evidence: Evidence, question: Question, place: str, version: Version, files: list[IndexFile]
) -> TorchBuild | None:
    """The build as its file names and the metadata of one wheel have it. What only binaries tell is not known."""
    wanted = question.request.pythons or (question.request.default_python,)
    file = min(files, key=lambda each: (python_of(each) not in wanted, each.filename))
    metadata = evidence.metadata_of(file)
    if isinstance(metadata, SdistNeedsBuild) or file.torch_path is None:
        return None
    lines = tuple(line for line in metadata.requires_dist if _is_plain(line))
    pins = dict(pins_of(lines))
    path = file.torch_path
    return TorchBuild(
        version=str(version), platform=split_place(place)[0], cuda=cuda_of(path), index=path,
        pythons=tuple(sorted({python for each in files if (python := python_of(each))}, key=Version)),
        cxx11_abi=None, gpu_archs=(), requires=lines, toolkit=None, cudnn=library_pin(pins, "nvidia-cudnn"),
        nccl=library_pin(pins, "nvidia-nccl"), glibc=_glibc_of(file), confidence="certain",
        source=f"metadata of {file.filename} on the torch index ({path})",
    )


def python_of(file: IndexFile) -> str:
    """`3.11` of a wheel for cp311; "" for other tags, free-threaded builds among them."""
    interpreter, abi = file.filename.removesuffix(".whl").split("-")[-3:-1]
    digits = interpreter.removeprefix("cp3")
    return f"3.{digits}" if interpreter.startswith("cp3") and digits.isdigit() and not abi.endswith("t") else ""


def _is_plain(line: str) -> bool:
    requirement = parse_requirement(line)
    return requirement is not None and "extra" not in line.partition(";")[2]


def pins_of(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The projects that are pinned to one version, each with that."""
    for line in lines:
        requirement = parse_requirement(line)
        clauses = list(requirement.specifier) if requirement is not None else []
        if requirement is not None and pins_exactly(requirement.specifier) and len(clauses) == 1:
            yield normalise(requirement.name), clauses[0].version


def library_pin(pins: Mapping[str, str], stem: str) -> str | None:
    """The pin of one library, whatever the CUDA major in its name."""
    return next((version for name, version in pins.items() if name == stem or name.startswith(f"{stem}-cu")), None)


def _glibc_of(file: IndexFile) -> str:
    found = _GLIBC.search(file.filename)
    return found[1].replace("_", ".") if found is not None else "2.17"


def _absent(evidence: Evidence, question: Question, nightly: Nightly) -> Stack:
    """The nightly that no page has. Where its release is not said it is that of the nearest day that is there."""
    release = nightly.release
    if release is None:
        days = sorted(left(evidence, question), key=lambda one: days_apart(f"0.dev{one.date}", f"0.dev{nightly.date}"))
        release = days[0].release if days else "0"
    version = Version(f"{release}.dev{nightly.date}")
    return Stack(version=version, text=str(version), builds={})


def left(evidence: Evidence, question: Question) -> list[Nightly]:
    """Nightlies with a wheel for every platform and Python that is asked for, oldest first.

    Of the CUDA that is asked for, else of the one that has most.
    """
    return max((_left_of(evidence, question, cuda) for cuda in asked_cudas(evidence, question)), key=len, default=[])


def _left_of(evidence: Evidence, question: Question, cuda: str) -> list[Nightly]:
    pythons = question.request.pythons
    found: set[tuple[str, str]] | None = None
    for place in question.request.platforms:
        path, platform = place_path(place, cuda), split_place(place)[0]
        page = evidence.torch_page(path, TORCH)
        here: set[tuple[str, str]] = set()
        for text, _ in nightlies_on(evidence, path):
            files = [file for file in page.files(text)
                     if file.sha256 is not None and platform_of_wheel(file.filename) == platform]
            one = nightly_of(text)
            if one is not None and one.release is not None and files and {*pythons} <= {*map(python_of, files)}:
                here.add((one.date, one.release))
        found = here if found is None else found & here
    return [Nightly(date=date, release=release, path=path_of(cuda).rpartition("/")[2])
            for date, release in sorted(found or ())]
