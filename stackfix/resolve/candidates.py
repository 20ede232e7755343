"""Versions of one project as one target sees them: newest first, with the files that fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain

from packaging.version import Version

from stackfix.resolve.needs import Candidate, Exclusion, Need
from stackfix.resolve.offered import newer_system_words, offered_words
from stackfix.resolve.page_versions import PageVersions
from stackfix.resolve.pep508 import pins_exactly, wants_prereleases
from stackfix.resolve.records import ProjectPage, SelectivePage
from stackfix.resolve.target import TargetView
from stackfix.resolve.uploaded import refuse_without_times, uploaded
from stackfix.sources.records import IndexFile


class Project:
    """One project's page seen from one target. Files are looked at only for versions that are asked about."""

    def __init__(
        self, page: ProjectPage, view: TargetView, newest: datetime | None = None, known: PageVersions | None = None,
    ) -> None:
        """`known`: the page's versions, where another target has looked at them before."""
        self.name = page.name
        self._page, self._view, self._newest = page, view, newest
        self._selective = page if isinstance(page, SelectivePage) else None
        self._known = known if known is not None else PageVersions(page)
        self._texts = self._known.texts
        self.versions = self._known.newest_first
        self._candidates: dict[Version, Candidate | None] = {}
        self._yanked: dict[Version, Candidate | None] = {}
        self._extras: dict[tuple[Candidate, str], Candidate] = {}
        self._undated: set[Version] = set()     # left out for want of an upload time

    def candidates(self, needs: Sequence[Need], preferred: Sequence[Version] = ()) -> Iterator[Candidate]:
        """Candidates that all `needs` admit: preferred ones, then newest first.

        Those without a wheel come after all others, pre-releases only where asked for or where nothing else fits,
        yanked ones only for an exact pin and where nothing else fits.
        """
        specifiers = [need.specifier for need in needs]
        found = False
        all_at_once = wants_prereleases(specifiers)
        stages: Sequence[list[Version]] = [self.admitted(needs)] if all_at_once else self._known.stages(needs)
        for stage in stages:
            for candidate in self._usable(stage, preferred):
                found = True
                yield candidate
            if found:
                return
        if any(pins_exactly(specifier) for specifier in specifiers):
            for version in self.admitted(needs):
                candidate_or_none = self._withdrawn(version)
                if candidate_or_none is not None:
                    found = True
                    yield candidate_or_none
        if not found:
            self.refuse_without_times()

    def refuse_without_times(self) -> None:
        """Raises NoUploadTimes where files have to be old enough, and the index says of none how old it is."""
        if self._undated and self._newest is not None:
            refuse_without_times(self._page, self._newest)

    def undated(self, version: Version) -> bool:
        """Whether files of the version would do, had the index said when they were uploaded."""
        return version in self._undated and self.candidate(version) is None

    def _usable(self, versions: list[Version], preferred: Sequence[Version]) -> Iterator[Candidate]:
        first = [version for version in preferred if version in versions]
        without_wheel: list[Candidate] = []
        for version in chain(first, (version for version in versions if version not in first)):
            candidate = self.candidate(version)
            if candidate is None:
                continue
            if candidate.files[0].is_wheel:
                yield candidate
            else:
                without_wheel.append(candidate)
        yield from without_wheel

    def candidate(self, version: Version) -> Candidate | None:
        """The version with the files that fit, or None where none fits (or all that fit were yanked)."""
        if version not in self._candidates:
            fitting = self._fitting(version)
            self._yanked.setdefault(version, self._made(version, [f for f in fitting if f.yanked is not None]))
            self._candidates.setdefault(version, self._made(version, [f for f in fitting if f.yanked is None]))
        return self._candidates[version]

    def _withdrawn(self, version: Version) -> Candidate | None:
        """The version with files that were yanked, where only such fit."""
        return None if self.candidate(version) is not None else self._yanked[version]

    def with_extra(self, candidate: Candidate, extra: str) -> Candidate:
        """What `extra` adds to the candidate."""
        key = (candidate, extra)
        if key not in self._extras:
            self._extras[key] = Candidate(
                name=candidate.name, extra=extra, version=candidate.version, text=candidate.text,
                files=candidate.files, known=candidate.known, direct=candidate.direct, python=candidate.python,
            )
        return self._extras[key]

    def _made(self, version: Version, files: list[IndexFile]) -> Candidate | None:
        """The candidate of `files`: wheels in installer's order, or one sdist where there is no wheel."""
        ranked = [(self._view.rank(file.filename), file) for file in files if file.is_wheel]
        wheels = [file for rank, file in sorted(((r, f) for r, f in ranked if r is not None), key=lambda pair: pair[0])]
        sdists = sorted((file for file in files if not file.is_wheel), key=lambda file: file.filename)
        chosen = wheels or sdists[:1]
        if not chosen:
            return None
        return Candidate(
            name=self.name, extra=None, version=version, text=self._texts[version][0], files=tuple(chosen),
            python=None if wheels else self._view.target.python,
        )

    def _fitting(self, version: Version) -> list[IndexFile]:
        """Files of the version that the target takes, yanked or not."""
        if self._selective is None:
            files = self._files(version)
        else:
            texts = self._texts.get(version, ())
            files = [file for text in texts for file in self._selective.files_named(text, self._may_fit)]
        if self._newest is not None and any(
                file.upload_time is None and self._misfit(file) == "date" for file in files):
            self._undated.add(version)
        return [file for file in files if self._misfit(file) is None]

    def _may_fit(self, filename: str) -> bool:
        """Whether the target takes a file of this name: every sdist, and wheels by their tags."""
        return not filename.endswith(".whl") or self._view.rank(filename) is not None

    def _files(self, version: Version) -> list[IndexFile]:
        return [file for text in self._texts.get(version, ()) for file in self._page.files(text)]

    def _misfit(self, file: IndexFile) -> str | None:
        """Why the file cannot be pinned for the target, or None: "tags", "python", "hash" or "date"."""
        if file.is_wheel and self._view.rank(file.filename) is None:
            return "tags"
        if not self._view.takes_python(file.requires_python):
            return "python"
        if file.sha256 is None:
            return "hash"
        if self._newest is not None and uploaded(file) >= self._newest:
            return "date"
        return None

    def admitted(self, needs: Sequence[Need]) -> list[Version]:
        """Versions of the page that all needs admit, whether or not a file fits, newest first."""
        return self._known.admitted(needs)

    def newest_file(self) -> IndexFile | None:
        """A wheel of the newest final release that has one and was not yanked, whether or not the target takes it."""
        for version in self.versions:
            wheels = [file for file in self._files(version) if file.is_wheel and file.yanked is None]
            if wheels and not version.is_prerelease:
                return wheels[0]
        return None

    def exclusion(self, version: Version) -> Exclusion | None:
        """Why no file of the version can be used, or None where one can."""
        if self.candidate(version) is not None:
            return None
        misfits = {self._misfit(file) for file in self._files(version)}
        source = f"index page of {self.name}"
        target = self._view.target
        place = f"Python {target.python} on {target.platform}"
        if None in misfits:
            reason, by_python = "was yanked", False
        elif "date" in misfits:
            reason, by_python = "has no file that is known to be uploaded before the --exclude-newer date", False
        elif "hash" in misfits:
            reason, by_python = "has no file with a sha256 on its index page", False
        else:
            reason, by_python = f"has no file for {place}{offered_words(self._view, self._files(version))}", True
        return Exclusion(version=str(version), kind="index", reason=reason, source=source, by_python=by_python)

    def newer_system(self, version: Version) -> str:
        """` (its wheels need macOS 14.0 or newer: --macos 14.0)`, where that is all; else nothing."""
        return newer_system_words(self._view, self._files(version))
