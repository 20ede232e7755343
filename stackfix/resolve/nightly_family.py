"""What stands beside a nightly of torch: its companions of the same path and of about the same day, and its triton."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from packaging.version import Version

from stackfix.matrix.records import TorchBuild
from stackfix.nightly import is_nightly_path, nightly_of
from stackfix.resolve.candidates import Project
from stackfix.resolve.needs import Candidate, Exclusion, Need
from stackfix.resolve.pep508 import admits, normalise, parse_requirement, pins_exactly
from stackfix.resolve.records import ProjectPage
from stackfix.resolve.target import TargetView
from stackfix.resolve.torch_family import BesideProject, TorchProject
from stackfix.sources.errors import SdistNeedsBuild
from stackfix.sources.records import CoreMetadata, IndexFile

DATED = frozenset({"torch", "torchvision", "torchaudio"})
# The nightly's own compiler. On the default index the first name is a placeholder that nobody means.
PYTORCH_TRITON, TRITON = "pytorch-triton", "triton"


class NightlyProject(TorchProject):
    """A project on a nightly path: what was built about the day of torch goes first, since only that can be for it."""

    def __init__(self, page: ProjectPage, view: TargetView, newest: datetime | None, torch: TorchBuild) -> None:
        super().__init__(page, view, newest)
        self._torch = torch

    def candidates(self, needs: Sequence[Need], preferred: Sequence[Version] = ()) -> Iterator[Candidate]:
        kept = [own for version in preferred for own in self.named(version)]
        near = sorted(self.versions, key=lambda version: days_apart(str(version), self._torch.version))
        return super().candidates(needs, tuple(dict.fromkeys((*kept, *near))))


def days_apart(version: str, torch: str) -> tuple[int, bool]:
    """How far a nightly's date lies from torch's, as a number that orders; the later one first of two."""
    one, other = nightly_of(version), nightly_of(torch)
    if one is None or other is None:
        return 10**9, False
    return abs(_ordinal(one.date) - _ordinal(other.date)), one.date < other.date


def _ordinal(date: str) -> int:
    """A number for a date; days that follow one another differ by one within a month, and by at most four beyond."""
    return int(date[:4]) * 372 + int(date[4:6]) * 31 + int(date[6:])


def is_nightly_file(file: IndexFile) -> bool:
    """Whether a file is of a nightly path."""
    return is_nightly_path(file.torch_path)


def comes_with_nightly(name: str) -> bool:
    """Whether a project is looked for on the nightly path, alone or first."""
    return name in DATED or name in {PYTORCH_TRITON, TRITON}


def nightly_project(
    page: ProjectPage, build: TorchBuild, view: TargetView, newest: datetime | None, usual: Callable[[], Project]
) -> Project:
    """The project of a nightly path as it stands beside a nightly."""
    found = NightlyProject(page, view, newest, build)
    return BesideProject(found, usual) if page.name == TRITON else found


def nightly_exclusion(
    candidate: Candidate, metadata: CoreMetadata | SdistNeedsBuild, build: TorchBuild
) -> Exclusion | None:
    """Why a companion of a nightly path does not belong to a nightly of torch: metadata tell, else the date."""
    if candidate.name not in DATED - {"torch"}:
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
