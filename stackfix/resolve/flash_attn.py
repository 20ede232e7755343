"""Which flash-attn, if any, goes with a torch, and how: by a wheel's hash, or as the sdist of the second step.

flash-attn publishes wheels only as release assets, one for each CUDA tag, torch minor, C++ ABI and Python. Releases are
mutable, so that what the matrix lists is what existed once: where the release source answers, its listing decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from packaging.specifiers import SpecifierSet

from stackfix.errors import Unreachable
from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.platforms import LINUX
from stackfix.quick import dataclass, replace
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_assets import (
    FlashWheel,
    has_code_for,
    listed_wheels,
    name_words,
    wheel_of_row,
    worth_asking,
)
from stackfix.resolve.judged import judgements
from stackfix.resolve.needs import Candidate
from stackfix.resolve.pep508 import admits, normalise, parse_requirement, parse_version
from stackfix.resolve.records import Target, WheelHashDisagreement
from stackfix.resolve.target import TargetView
from stackfix.sources.records import IndexFile, ReleaseAsset


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashPlan:
    """One flash-attn version for a stack: a wheel or, in the second step, the sdist, for each target that has one."""

    version: str
    wheels: Mapping[Target, FlashWheel]
    sdists: Mapping[Target, Candidate]          # second step
    left_out: tuple[Target, ...]
    expected: Mapping[Target, str]              # names of the wheels that the sdists stand in for
    unhashed: tuple[str, ...]                   # newer versions whose fitting wheel has no hash that could be had

    def covers(self, target: Target) -> bool:
        """Whether the target gets flash-attn at all."""
        return target in self.wheels or target in self.sdists


class FlashAttn:
    """The release source with a memory, and the plans for one stack after another."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._listed: dict[str, tuple[ReleaseAsset, ...]] = {}
        self.unreachable: Unreachable | None = None
        self._unobtainable: set[str] = set()
        self.refused: dict[str, str] = {}   # by file name: what it says, and what its symbols say otherwise

    @classmethod
    def sharing(cls, other: FlashAttn, evidence: Evidence) -> FlashAttn:
        """The same release source beside other evidence; what it answered, or that it did not, is shared."""
        if evidence is other._evidence:
            return other
        shared = cls(evidence)
        shared._listed, shared._unobtainable, shared.unreachable = other._listed, other._unobtainable, other.unreachable
        shared.refused = other.refused
        return shared

    def view(self, target: Target) -> TargetView:
        """The target's marker environment and tags."""
        return self._evidence.view(target)

    def plans(
        self, builds: Mapping[Target, TorchBuild], specifiers: Iterable[SpecifierSet], archs: tuple[str, ...],
        kept: str | None,
    ) -> list[FlashPlan]:
        """Plans, best first: most targets covered, most of them by a wheel, the kept version, the newest."""
        wanted = tuple(specifiers)
        fitting = {target: self._fitting(target, build, wanted, archs, kept) for target, build in builds.items()}
        versions = {version for found in fitting.values() for version in found}
        plans = [plan for version in versions for plan in self._plan(version, fitting)]
        plans.sort(key=lambda plan: _rank(plan, kept), reverse=True)
        return [replace(plan, unhashed=_newer_without_hash(plan, fitting)) for plan in plans]

    def _fitting(
        self, target: Target, build: TorchBuild, wanted: tuple[SpecifierSet, ...], archs: tuple[str, ...],
        kept: str | None,
    ) -> dict[str, FlashWheel]:
        """The best fitting wheel of each version that the target, the specifiers and the GPUs take.

        As the release source lists them where it answers, else as the matrix does.
        """
        if build.cuda == query.CPU or build.cxx11_abi is None or target.platform not in LINUX:
            return {}
        allowed = tuple(
            version for version in query.flash_attn_versions(self._evidence.matrix)
            if self._allowed(version, build, wanted, archs)
        )
        rows = tuple(
            row for row in query.flash_attn_wheels_for(self._evidence.matrix, build, target.python, target.platform)
            if row.version in allowed
        )
        listed = self._list(worth_asking(allowed, rows, kept))
        if listed is None:
            return self._first(map(wheel_of_row, rows), build)
        view = self._evidence.view(target)
        found = self._first(listed_wheels(view, build, listed, rows, self._unobtainable), build)
        if not any(wheel.obtainable for wheel in found.values()):
            all_listed = self._list(allowed) or {}
            found = self._first(listed_wheels(view, build, all_listed, rows, self._unobtainable), build)
        return found

    def _first(self, wheels: Iterable[FlashWheel], build: TorchBuild) -> dict[str, FlashWheel]:
        """The first wheel of each version whose symbols do not contradict its name."""
        found: dict[str, FlashWheel] = {}
        for wheel in wheels:
            if wheel.version not in found and not self._contradicts(wheel, build):
                found[wheel.version] = wheel
        return found

    def _contradicts(self, wheel: FlashWheel, build: TorchBuild) -> bool:
        """Whether symbols of these very bytes speak against the build that the name is for.

        Other wheels of a release say nothing of it: they are for other releases of torch.
        """
        for one in judgements(self._evidence.books, self.file(wheel), build):
            if one.itself and one.against:
                self.refused[wheel.file] = f"{wheel.file} is named for {name_words(wheel.file)}, but {one.against}"
        return wheel.file in self.refused

    def _allowed(
        self, version: str, build: TorchBuild, wanted: tuple[SpecifierSet, ...], archs: tuple[str, ...]
    ) -> bool:
        parsed = parse_version(version)
        if parsed is None or not all(admits(specifier, parsed) for specifier in wanted):
            return False
        matrix = self._evidence.matrix
        if query.flash_attn_release(matrix, version) is None or not has_code_for(matrix, version, archs):
            return False
        torch = parse_version(build.version)
        for rule in query.rules_for(matrix, "flash-attn", version):
            needed = parse_requirement(rule.needs)
            if needed and torch and normalise(needed.name) == "torch" and not admits(needed.specifier, torch):
                return False
        return True

    def _list(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]] | None:
        """Assets of these releases, or None where the release source cannot be reached (asked once only)."""
        if self.unreachable is not None:
            return None
        new = tuple(version for version in versions if version not in self._listed)
        if new:
            try:
                self._listed.update(self._evidence.releases.assets(new))
            except Unreachable as error:
                self.unreachable = error
                return None
        return {version: self._listed.get(version, ()) for version in versions}

    def _plan(self, version: str, fitting: Mapping[Target, Mapping[str, FlashWheel]]) -> Iterator[FlashPlan]:
        """The plan for one version; none where no target could be given it."""
        wheels: dict[Target, FlashWheel] = {}
        sdists: dict[Target, Candidate] = {}
        expected: dict[Target, str] = {}
        for target, found in fitting.items():
            wheel = found.get(version)
            if wheel is None:
                continue
            sdist = None if wheel.obtainable else self._sdist(version, target)
            if wheel.obtainable:
                wheels[target] = wheel
            elif sdist is not None:
                sdists[target] = sdist
                expected[target] = wheel.file
        left_out = tuple(target for target in fitting if target not in wheels and target not in sdists)
        if wheels or sdists:
            yield FlashPlan(
                version=version, wheels=wheels, sdists=sdists, left_out=left_out, expected=expected, unhashed=(),
            )

    def _sdist(self, version: str, target: Target) -> Candidate | None:
        """The hashed sdist of the version on the index, whose build fetches the wheel."""
        parsed = parse_version(version)
        candidate = self._evidence.project("flash-attn", target).candidate(parsed) if parsed else None
        return candidate if candidate is not None and not candidate.files[0].is_wheel else None

    def with_hash(self, wheel: FlashWheel, build: TorchBuild) -> FlashWheel | None:
        """The wheel with its hash, downloaded once where nobody states it; None where that failed, or shows another.

        Another: the bytes of a wheel that was read and is not for the torch that its name says.

        Raises WheelHashDisagreement: which of two hashes is the right one is not for us to say.
        """
        stated, row = wheel.asset.sha256 if wheel.asset else None, wheel.row
        if row is not None and row.sha256 is not None and stated is not None and row.sha256 != stated:
            raise WheelHashDisagreement(file=wheel.file, matrix=row.sha256, source=stated, row_source=row.source)
        if wheel.sha256 is not None:
            return wheel
        if wheel.asset is None:
            return None
        try:
            hashed = replace(wheel, sha256=self._evidence.releases.sha256(wheel.asset))
        except Unreachable:
            self._unobtainable.add(wheel.file)
            return None
        return None if self._contradicts(hashed, build) else hashed

    def file(self, wheel: FlashWheel) -> IndexFile:
        """The wheel at its official address, whichever source told its hash."""
        base = self._evidence.matrix.sources.release_download
        quoted = wheel.file.replace("+", "%2B")
        return IndexFile(
            project="flash-attn", filename=wheel.file, version=wheel.file.split("-")[1],
            url=f"{base}/v{wheel.version}/{quoted}", sha256=wheel.sha256, requires_python=None, yanked=None, size=None,
            upload_time=None, core_metadata=None, index=base,
        )


def _rank(plan: FlashPlan, kept: str | None) -> tuple[int, int, bool, object]:
    version = parse_version(plan.version)
    return len(plan.wheels) + len(plan.sdists), len(plan.wheels), plan.version == kept, version


def _newer_without_hash(plan: FlashPlan, fitting: Mapping[Target, Mapping[str, FlashWheel]]) -> tuple[str, ...]:
    """Newer versions that would fit, had their wheel a hash."""
    own = parse_version(plan.version)
    newer = {
        wheel.version: version
        for found in fitting.values() for wheel in found.values()
        if not wheel.obtainable and (version := parse_version(wheel.version)) and own and version > own
    }
    return tuple(sorted(newer, key=lambda text: newer[text], reverse=True))
