"""What stands beside a nightly of torch: its companions of the same path and of about the same day, and its triton."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Protocol

from packaging.version import Version

from stackfix.matrix.records import TorchBuild
from stackfix.nightly import DATED, is_nightly_path, nightly_of
from stackfix.resolve.candidates import Project
from stackfix.resolve.needs import Candidate, Exclusion, Need
from stackfix.resolve.pep508 import admits, normalise, parse_requirement, pins_exactly
from stackfix.resolve.records import ProjectPage, Target
from stackfix.resolve.target import TargetView
from stackfix.resolve.torch_family import BesideProject, TorchProject, public
from stackfix.sources.errors import SdistNeedsBuild
from stackfix.sources.records import CoreMetadata, IndexFile

COMPANIONS = DATED - {"torch"}
# The nightly's own compiler. On the default index the first name is a placeholder that nobody means.
PYTORCH_TRITON, TRITON = "pytorch-triton", "triton"


class NightlyProject(TorchProject):
    """A project on a nightly path. Of a companion only what was built from torch's night on can be for that torch.

    Which torch it was built for its metadata say; they are read night by night until one is for a later torch.
    """

    def __init__(
        self, page: ProjectPage, torch: TorchBuild, evidence: Reading, target: Target, newest: datetime | None,
    ) -> None:
        super().__init__(page, evidence.view(target), newest)
        self._torch, self._read = torch, evidence.metadata_of
        self._nights: list[Version] | None = None

    def candidates(self, needs: Sequence[Need], preferred: Sequence[Version] = ()) -> Iterator[Candidate]:
        if self._is_named(needs):
            yield from super().candidates(needs, preferred)
            return
        near = self.admitted(needs)[::-1]
        for version in sorted(near, key=lambda one: one not in preferred and public(one) not in preferred):
            candidate = self.candidate(version)
            if candidate is not None:
                yield candidate

    def admitted(self, needs: Sequence[Need]) -> list[Version]:
        found = super().admitted(needs)
        if self._is_named(needs):
            return found
        return [version for version in found if version in self.nights] or found[:1]

    def _is_named(self, needs: Sequence[Need]) -> bool:
        """Whether the version is not to be chosen by its night."""
        return self.name not in COMPANIONS or any(pins_exactly(need.specifier) for need in needs)

    @property
    def nights(self) -> list[Version]:
        """Versions from torch's night on, up to the first that is for a later torch."""
        if self._nights is None:
            self._nights = []
            for version in sorted(self.versions, key=lambda one: _date(str(one))):
                candidate = self.candidate(version) if _date(str(version)) >= _date(self._torch.version) else None
                if candidate is not None:
                    self._nights.append(version)
                    if self._is_past(candidate):
                        break
        return self._nights

    def _is_past(self, candidate: Candidate) -> bool:
        """Whether it is for a later torch, or, where it does not say, of a later night."""
        metadata = self._read(candidate.files[0])
        lines = () if isinstance(metadata, SdistNeedsBuild) else metadata.requires_dist
        pins = [one for line in lines if (one := torch_pin(line)) is not None]
        later = [pin for pin in pins if _date(pin) > _date(self._torch.version)]
        return bool(later) if pins else _date(candidate.text) > _date(self._torch.version)


class Reading(Protocol):
    """What is needed of resolve.evidence."""

    def view(self, target: Target) -> TargetView: ...
    def metadata_of(self, file: IndexFile) -> CoreMetadata | SdistNeedsBuild: ...
    def project(self, name: str, target: Target) -> Project: ...


def torch_pin(line: str) -> str | None:
    """`2.9.0.dev20250902` of a requirement line that pins torch to one version."""
    requirement = parse_requirement(line)
    if requirement is None or normalise(requirement.name) != "torch" or not pins_exactly(requirement.specifier):
        return None
    return next(iter(requirement.specifier)).version


def _date(version: str) -> str:
    found = nightly_of(version)
    return found.date if found is not None else ""


def days_apart(version: str, torch: str) -> tuple[int, bool]:
    """How many days a nightly lies from torch's, and whether before it: the later one first of two."""
    one, other = nightly_of(version), nightly_of(torch)
    if one is None or other is None:
        return 10**9, False
    return abs(_ordinal(one.date) - _ordinal(other.date)), one.date < other.date


def _ordinal(day: str) -> int:
    """The number of a day, which differs by one from that of the next."""
    return date(int(day[:4]), int(day[4:6]), int(day[6:])).toordinal()


def is_nightly_file(file: IndexFile) -> bool:
    """Whether a file is of a nightly path."""
    return is_nightly_path(file.torch_path)


def comes_with_nightly(name: str) -> bool:
    """Whether a project is looked for on the nightly path, alone or first."""
    return name in DATED or name in {PYTORCH_TRITON, TRITON}


def nightly_project(
    page: ProjectPage, build: TorchBuild, evidence: Reading, target: Target, newest: datetime | None,
) -> Project:
    """The project of a nightly path as it stands beside a nightly."""
    found = NightlyProject(page, build, evidence, target, newest)
    return BesideProject(found, lambda: evidence.project(page.name, target)) if page.name == TRITON else found


def nightly_exclusion(
    candidate: Candidate, metadata: CoreMetadata | SdistNeedsBuild, build: TorchBuild
) -> Exclusion | None:
    """Why a companion of a nightly path does not belong to a nightly of torch: metadata tell, else the date."""
    if candidate.name not in COMPANIONS:
        return None
    source = f"metadata of {candidate.files[0].filename}"
    lines = () if isinstance(metadata, SdistNeedsBuild) else metadata.requires_dist
    on_torch = [one for one in map(parse_requirement, lines) if one is not None and normalise(one.name) == "torch"]
    torch = Version(build.version)
    if any(not admits(one.specifier, torch) for one in on_torch):
        wanted = ", ".join(f"torch{one.specifier}" for one in on_torch)
        return Exclusion(
            version=candidate.text, kind="index", reason=f"requires {wanted}", source=source, by_torch=True)
    if any(pins_exactly(one.specifier) for one in on_torch):
        return None
    if days_apart(candidate.text, build.version)[0] == 0:
        return None
    return Exclusion(
        version=candidate.text, kind="index", source=source, by_torch=True,
        reason=f"does not say which torch it was built for, and is not of the day of torch {build.version}",
    )
