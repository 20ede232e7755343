"""Everything a decision stands on: matrix, index and release source, each read once per decision."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from stackfix.abi.records import Books
from stackfix.matrix.records import Matrix, Rule, TorchBuild
from stackfix.nightly import is_nightly_path
from stackfix.platforms import platform_of_wheel
from stackfix.quick import replace
from stackfix.resolve.candidates import Project
from stackfix.resolve.effort import Effort
from stackfix.resolve.limits import Limit, limits_of
from stackfix.resolve.needs import Candidate
from stackfix.resolve.nightly_family import comes_with_nightly, nightly_project
from stackfix.resolve.outside import exclusive_pairs
from stackfix.resolve.page_versions import PageVersions
from stackfix.resolve.pep508 import normalise, parse_requirement, pins_exactly
from stackfix.resolve.records import Building, Index, Pinning, ProjectPage, Releases, Target
from stackfix.resolve.target import TargetView
from stackfix.resolve.torch_family import (
    FAMILY,
    BesideProject,
    TorchProject,
    TorchWheels,
    composed,
    falls_back,
    libraries_of,
    torch_path,
)
from stackfix.resolve.uploaded import exclusion_limit, limit_for, refuse_without_times
from stackfix.sources.errors import NoSuchProject, SdistNeedsBuild
from stackfix.sources.records import CoreMetadata, IndexFile, UploadLimit

if TYPE_CHECKING:
    from stackfix.resolve.stack import Stack

MOST_BUILDS = 3         # of one project for one Python: each runs its code, and older releases are seldom any better


class Evidence:
    """The sources with a memory, so that the many solves of an explanation ask nothing twice."""

    def __init__(
        self, matrix: Matrix, index: Index, releases: Releases, exclude_newer: str | None, books: Books | None = None,
        torch_wheels: TorchWheels | None = None,
    ) -> None:
        self.pinned_by = index.pinned_by if isinstance(index, Pinning) else _pinned_by_none
        self.torch_wheels = torch_wheels if self.pinned_by("torch") is None else None
        self.every_cuda = False     # whether a nightly of no CUDA that is asked for is looked for in all of them
        self.on_stack: Callable[[Stack], None] | None = None    # told of each stack before it is tried
        self.matrix, self.index, self.releases, self.books = matrix, index, releases, books
        self.missing: dict[str, NoSuchProject] = {}
        self.unbuilt: dict[str, SdistNeedsBuild] = {}
        self.tied_to_torch = frozenset(row.package for row in matrix.companions if row.torch or row.cuda)
        self.exclusive = exclusive_pairs(matrix)
        self._exclude_newer = exclude_newer
        self._newest: datetime | None = exclusion_limit(exclude_newer) if exclude_newer else None
        self.upload_limits: tuple[UploadLimit, ...] = ()
        self.effort = Effort()
        self._views: dict[Target, TargetView] = {}
        self._pages: dict[str, ProjectPage] = {}
        self._versions: dict[tuple[str, str], PageVersions] = {}
        self._projects: dict[tuple[str, Target], Project] = {}
        self._of_path: dict[tuple[str, Target, str], Project] = {}
        self._metadata: dict[str, CoreMetadata | SdistNeedsBuild] = {}
        self._built: dict[tuple[str, str], dict[str, CoreMetadata]] = {}    # (project, Python) -> by the file's address
        self._limits: dict[tuple[str, str], tuple[Limit, ...]] = {}
        self._passed_over: frozenset[object] = frozenset()
        self._libraries: frozenset[str] | None = None

    def without_rules(self, rows: tuple[object, ...]) -> Evidence:
        """The same sources without these rules, of the matrix or told by symbols; what was read is shared."""
        rules = tuple(rule for rule in self.matrix.rules if rule not in rows)
        other = Evidence(
            replace(self.matrix, rules=rules), self.index, self.releases, self._exclude_newer, self.books,
            self.torch_wheels,
        )
        other._share(self)
        other._projects, other._of_path = self._projects, self._of_path
        other._passed_over = self._passed_over | {row for row in rows if isinstance(row, Rule)}
        return other

    def limited_to(self, exclude_newer: str | None) -> Evidence:
        """The same sources under another upload date."""
        if exclude_newer == self._exclude_newer:
            return self
        other = Evidence(self.matrix, self.index, self.releases, exclude_newer, self.books, self.torch_wheels)
        other._share(self)
        return other

    def limits(self, package: str, version: str) -> tuple[Limit, ...]:
        """What one release limits beside its metadata: by its symbols, and by rules of the matrix."""
        key = (package, version)
        if key not in self._limits:
            book = self.books.nvidia if self.books is not None else None
            found = limits_of(self.matrix, book, package, version)
            self._limits[key] = tuple(limit for limit in found if limit.rule not in self._passed_over)
        return self._limits[key]

    def limits_for(self, candidate: Candidate) -> tuple[Limit, ...]:
        """What a candidate limits. Symbols of torch's default build tell nothing of the wheel of another variant.

        Nor do rules that were measured on that build, of a library that the wheel itself pins exactly.
        """
        if candidate.name not in FAMILY or candidate.files[0].torch_path is None:
            return self.limits(candidate.name, candidate.text)
        key = (candidate.name, candidate.files[0].url)
        if key not in self._limits:
            metadata = self.metadata(candidate)
            lines = () if isinstance(metadata, SdistNeedsBuild) else metadata.requires_dist
            pinned = {normalise(each.name) for each in map(parse_requirement, lines)
                      if each is not None and pins_exactly(each.specifier)}
            self._limits[key] = tuple(
                limit for limit in limits_of(self.matrix, None, candidate.name, candidate.text)
                if limit.rule not in self._passed_over and limit.name not in pinned
            )
        return self._limits[key]

    def _share(self, other: Evidence) -> None:
        self.upload_limits, self.effort = other.upload_limits, other.effort
        self.missing, self.unbuilt = other.missing, other.unbuilt
        self.every_cuda = other.every_cuda
        self._views, self._pages, self._metadata = other._views, other._pages, other._metadata
        self._versions = other._versions
        self._built = other._built

    def view(self, target: Target) -> TargetView:
        """The target's marker environment and tags."""
        found = self._views.get(target)
        if found is None:       # a variant is torch's alone: what fits is the same
            made = self.view(replace(target, variant="")) if target.variant else TargetView(target)
            found = self._views.setdefault(target, made)
        return found

    def arrived(self, page: ProjectPage) -> None:
        """Takes a page that came before anybody asked for it."""
        self._pages.setdefault(page.name, page)

    def has_page(self, name: str) -> bool:
        """Whether page() answers without asking."""
        return name in self._pages

    def page(self, name: str) -> ProjectPage:
        """The project's page; an empty one, remembered in `missing`, where no index has the project."""
        if name not in self._pages:
            try:
                self._pages[name] = self.index.page(name)
            except NoSuchProject as error:
                self.missing[name] = error
                self._pages[name] = EmptyPage(name)
        return self._pages[name]

    @property
    def limits_dates(self) -> bool:
        """Whether files may be too new."""
        return self._newest is not None or bool(self.upload_limits)

    def refuse_without_times(self, name: str) -> None:
        """Raises NoUploadTimes where the project's files have to be old enough, and its index says of none how old."""
        if self.limits_dates:
            newest = limit_for(self.page(name), self.upload_limits, self._newest)
            if newest is not None:
                refuse_without_times(self.page(name), newest)

    def _known_versions(self, path: str, page: ProjectPage) -> PageVersions:
        """The versions of a page of the index, or of a path of the torch index: sorted once for all targets."""
        known = self._versions.get((path, page.name))
        return known if known is not None else self._versions.setdefault((path, page.name), PageVersions(page))

    def project(self, name: str, target: Target) -> Project:
        """The project as the target sees it."""
        if target.variant:              # the default index's files are the same for it
            target = self.view(target).target
        key = (name, target)
        found = self._projects.get(key)
        if found is None:       # setdefault: the prefetch asks from other threads, and candidates compare by identity
            page = self.page(name)
            limit = limit_for(page, self.upload_limits, self._newest)
            made = Project(page, self.view(target), limit, self._known_versions("", page))
            found = self._projects.setdefault(key, made)
        return found

    def project_for(self, name: str, target: Target, build: TorchBuild) -> Project:
        """The project as the target sees it beside a build of torch: what belongs to the build comes from its index."""
        path = torch_path(build)
        if path is None or self.pinned_by(name) is not None:
            return self.project(name, target)
        if is_nightly_path(path):
            return self._beside_nightly(name, target, build)
        if self.torch_wheels is None or not (name in FAMILY or self._falls_back(name)):
            return self.project(name, target)
        key = name, target, path
        found = self._of_path.get(key)
        if found is None:
            wheels = self.torch_wheels

            def of_path() -> Project:
                page = wheels.page(path, name)
                return TorchProject(page, self.view(target), self._newest, self._known_versions(path, page))

            made = of_path() if name in FAMILY else BesideProject(self.project(name, target), of_path)
            found = self._of_path.setdefault(key, made)
        return found

    def _falls_back(self, name: str) -> bool:
        """Whether the torch index stands behind the default one for a project."""
        if not falls_back(name):
            return False
        if self._libraries is None:
            self._libraries = libraries_of(self.matrix)
        return name in self._libraries

    def _beside_nightly(self, name: str, target: Target, build: TorchBuild) -> Project:
        if not comes_with_nightly(name):
            return self.project(name, target)
        key = name, target, f"{build.index} {build.version}"
        found = self._of_path.get(key)
        if found is None:
            made = nightly_project(self.torch_page(build.index, name), build, self, target, self._newest)
            found = self._of_path.setdefault(key, made)
        return found

    def torch_page(self, path: str, name: str) -> ProjectPage:
        """A page of the torch index; an empty one where there is no such index. Raises a StackfixError."""
        return self.torch_wheels.page(path, name) if self.torch_wheels is not None else EmptyPage(name)

    def metadata(self, candidate: Candidate) -> CoreMetadata | SdistNeedsBuild:
        """Metadata of the file an installer would pick, or what stands in the way where only a build could tell."""
        return self.metadata_of(candidate.files[0], candidate.python)

    def metadata_of(self, file: IndexFile, python: str | None = None) -> CoreMetadata | SdistNeedsBuild:
        """Metadata of one file, read once; of an sdist that needs a build and may have one, for a Python minor."""
        if file.url not in self._metadata:
            self._metadata[file.url] = self._read(file)
        found = self._metadata[file.url]
        if isinstance(found, SdistNeedsBuild) and python is not None and self.may_build(file):
            return self._of_build(file, python)
        return found

    def may_build(self, file: IndexFile) -> bool:
        """Whether the user allows a build of this sdist."""
        return not file.is_wheel and isinstance(self.index, Building) and self.index.may_build(file.project)

    def _of_build(self, file: IndexFile, python: str) -> CoreMetadata | SdistNeedsBuild:
        """What a build says, once per Python, up to a number of releases."""
        built = self._built.setdefault((file.project, python), {})
        if file.url not in built and isinstance(self.index, Building):
            if len(built) >= MOST_BUILDS:
                reason = f"was not built: {MOST_BUILDS} other releases were, and no more of one project are"
                return SdistNeedsBuild(file.project, file.version, reason)
            built[file.url] = found = self.index.built_metadata(file, python)
            required = (parse_requirement(line) for line in found.requires_dist if "extra" not in line)
            self.index.prefetch_pages(tuple(normalise(each.name) for each in required if each is not None))
        return built[file.url]

    def _read(self, file: IndexFile) -> CoreMetadata | SdistNeedsBuild:
        if file.torch_path is not None and self.torch_wheels is not None:
            return self._of_torch_wheel(file, self.torch_wheels)
        try:
            return self.index.metadata(file)
        except SdistNeedsBuild as error:
            if not self.may_build(file):
                self.unbuilt.setdefault(file.project, error)    # the first is the newest: the one to name
            return error

    def _of_torch_wheel(self, file: IndexFile, wheels: TorchWheels) -> CoreMetadata | SdistNeedsBuild:
        """Of a wheel of the torch index: its own, else what the matrix and the default index's wheel tell."""
        read = wheels.metadata(file)
        if read is not None:
            return read
        sibling = self.sibling(file)
        found = composed(self.matrix, file, wheels.row(file), None if sibling is None else self.index.metadata(sibling))
        if found is not None:
            return found
        return SdistNeedsBuild(file.project, file.version, "is known by name alone: nobody read what it requires")

    def sibling(self, file: IndexFile) -> IndexFile | None:
        """The default index's wheel of the same release, for the same Python and machine where it has one."""
        tags = file.filename.removesuffix(".whl").split("-")[-3:]
        platform = platform_of_wheel(file.filename)
        wheels = [each for each in self.page(file.project).files(file.version.partition("+")[0]) if each.is_wheel]
        return max(wheels, key=lambda each: (
            platform_of_wheel(each.filename) == platform, f"-{tags[0]}-{tags[1]}-" in each.filename,
        ), default=None)


def _pinned_by_none(project: str) -> str | None:  # noqa: ARG001
    """None: an index without settings of its own."""
    return None


class EmptyPage:
    """Page of a project that no index has."""

    def __init__(self, name: str) -> None:
        self.name = name

    def version_strings(self) -> tuple[str, ...]:
        return ()

    def files(self, version: str) -> tuple[IndexFile, ...]:
        return ()
