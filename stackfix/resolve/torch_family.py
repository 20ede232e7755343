"""The torch index as the solver sees it: which projects come from there, at which versions, and what they require.

A build of torch that the default index has not comes from a path of the torch index, and with it all that is built for
it. What is for any build (triton, CUDA libraries) comes from the default index, and from the torch index only where the
default one has no file that fits: triton for aarch64, say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from packaging.version import Version

from stackfix.errors import Unreachable
from stackfix.matrix import query
from stackfix.matrix.records import Companion, Matrix, TorchBuild, TorchIndexWheel
from stackfix.nightly import is_nightly_path
from stackfix.platforms import platform_of_wheel
from stackfix.quick import replace
from stackfix.resolve.candidates import Project
from stackfix.resolve.needs import Candidate, Exclusion, Need
from stackfix.resolve.pep508 import normalise, parse_requirement, parse_version
from stackfix.resolve.records import ProjectPage
from stackfix.sources.records import CoreMetadata, IndexFile

FAMILY = frozenset({"torch", "torchvision", "torchaudio", "xformers"})
BESIDE = ("triton", "nvidia-")                  # beginnings of names that fall back on the torch index


class TorchWheels(Protocol):
    """What resolve needs of the torch index. Blocking calls; a prefetch returns at once and never raises."""

    away: Unreachable | None        # why nobody could be asked, where that was so: what the matrix knows stands in

    def prefetch(self, path: str, names: tuple[str, ...]) -> None:
        """Start fetching these projects' pages on one path."""

    def page(self, path: str, name: str) -> ProjectPage:
        """One project on one path ("cu118"), empty where the index has no such project. Raises a StackfixError."""

    def metadata(self, file: IndexFile) -> CoreMetadata | None:
        """Metadata of a file of one of these pages; None where nobody can be asked. Raises a StackfixError."""

    def row(self, file: IndexFile) -> TorchIndexWheel | None:
        """What the matrix knows of a file."""

    def states_hash(self, file: IndexFile) -> bool:
        """Whether the index states the file's hash; else it is the matrix's."""


def torch_path(build: TorchBuild) -> str | None:
    """The path of the torch index that a build is from; None for one of the default index or of a channel."""
    apart = build.index == query.DEFAULT_INDEX or ("/" in build.index and not is_nightly_path(build.index))
    return None if apart else build.index


def public(version: Version) -> Version:
    """The version without its local part."""
    return version if version.local is None else Version(version.public)


class TorchProject(Project):
    """One project on one path of the torch index, by address. Some versions have a local part, some on aarch64 not."""

    def named(self, version: Version) -> list[Version]:
        """Versions of the page that a version means: itself, and with any local part where it has none."""
        return [own for own in self.versions if own == version or (version.local is None and public(own) == version)]

    def candidate(self, version: Version) -> Candidate | None:
        found = (super(TorchProject, self).candidate(own) for own in self.named(version))
        return next((candidate for candidate in found if candidate is not None), None)

    def candidates(self, needs: Sequence[Need], preferred: Sequence[Version] = ()) -> Iterator[Candidate]:
        wanted = [own for version in preferred for own in self.named(version)]
        return super().candidates(needs, tuple(dict.fromkeys(wanted)))

    def exclusion(self, version: Version) -> Exclusion | None:
        if self.candidate(version) is not None:
            return None
        found = super().exclusion(next(iter(self.named(version)), version))
        return found and replace(found, source=f"torch index, {self.name}")

    def _made(self, version: Version, files: list[IndexFile]) -> Candidate | None:
        made = super()._made(version, files)
        return made and replace(made, direct=True)


class BesideProject(Project):
    """A project of the default index, with the torch index behind it for what the former has no fitting file of."""

    def __init__(self, first: Project, behind: Callable[[], Project]) -> None:
        self.name, self.versions = first.name, first.versions
        self._first, self._open = first, behind
        self._opened: Project | None = None

    @property
    def behind(self) -> Project:
        """The project on the torch index, looked at only where it is needed."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def candidates(self, needs: Sequence[Need], preferred: Sequence[Version] = ()) -> Iterator[Candidate]:
        found = False
        for candidate in self._first.candidates(needs, preferred):
            found = True
            yield candidate
        if not found:
            yield from self.behind.candidates(needs, preferred)

    def candidate(self, version: Version) -> Candidate | None:
        return self._first.candidate(version) or self.behind.candidate(version)

    def with_extra(self, candidate: Candidate, extra: str) -> Candidate:
        return self._first.with_extra(candidate, extra)

    def admitted(self, needs: Sequence[Need]) -> list[Version]:
        return self._first.admitted(needs)

    def newest_file(self) -> IndexFile | None:
        return self._first.newest_file()

    def exclusion(self, version: Version) -> Exclusion | None:
        return None if self.candidate(version) is not None else self._first.exclusion(version)


def falls_back(name: str) -> bool:
    """Whether a project has the name of what is for any build of torch."""
    return name.startswith(BESIDE)


def libraries_of(matrix: Matrix) -> frozenset[str]:
    """The projects that fall back on the torch index: triton, what builds of torch require, no other of such a name."""
    lines = {line for build in matrix.torch for line in build.requires if line.lower().startswith(BESIDE)}
    return frozenset({"triton", *(normalise(each.name) for each in map(parse_requirement, lines) if each is not None)})


def companion_row(matrix: Matrix, candidate: Candidate, build: TorchBuild) -> Companion | None:
    """The companion's row for this very file: one from the path of the build is built for the CUDA of that path."""
    if candidate.files and is_nightly_path(candidate.files[0].torch_path):
        return None                     # a row is of a release: the nightly of its number is another build
    release = str(public(candidate.version))
    row = query.companion(matrix, candidate.name, candidate.text if candidate.version.local is None else release)
    if row is None or not candidate.files or candidate.files[0].torch_path is None:
        return row
    return replace(row, cuda=None if build.cuda == query.CPU else build.cuda)


def build_of(matrix: Matrix, file: IndexFile) -> TorchBuild | None:
    """The row of the build that a torch wheel of the torch index is."""
    platform = platform_of_wheel(file.filename)
    version = parse_version(file.version)
    return next((
        build for build in query.builds(matrix, platform=platform, index=file.torch_path)
        if version is not None and parse_version(build.version) == public(version)
    ), None)


def composed(
    matrix: Matrix, file: IndexFile, row: TorchIndexWheel | None, sibling: CoreMetadata | None
) -> CoreMetadata | None:
    """Metadata of a wheel that nobody could be asked about, or None where too little is known.

    What its row states; else those of the default index's wheel of the release, `sibling`, at this version. In a
    torch wheel the CUDA libraries are those of the variant.
    """
    lines = row.requires if row is not None else None
    if lines is None and sibling is not None:
        lines = sibling.requires_dist
    if file.project == "torch":
        build = build_of(matrix, file)
        lines = torch_lines(matrix, build, lines) if build is not None else None
    if lines is None:
        return None
    return CoreMetadata(
        name=file.project, version=file.version, requires_dist=lines,
        requires_python=sibling.requires_python if sibling is not None else None,
        provides_extra=sibling.provides_extra if sibling is not None else (), basis="matrix",
    )


def torch_lines(matrix: Matrix, build: TorchBuild, general: tuple[str, ...] | None) -> tuple[str, ...]:
    """Requires-Dist of a variant: what all variants of the release require, and the variant's own libraries."""
    if general is None:
        usual = [row for row in query.builds(matrix, index=query.DEFAULT_INDEX) if row.version == build.version]
        usual.sort(key=lambda row: row.platform != build.platform)
        general = usual[0].requires if usual else ()
    own = tuple(build.requires)
    dropped = ("nvidia-", "cuda-") if build.cuda != query.CPU else ("nvidia-", "cuda-", "triton")
    if any(line.startswith("triton") for line in own):
        dropped = (*dropped, "triton")
    return (*(line for line in general if not line.lower().startswith(dropped)), *own)
