"""The closure problem of what pip brings beside packages of channels: all that they provide is given in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import Version

from stackfix.conda.names import Provided
from stackfix.matrix import query
from stackfix.resolve.closure import Closure
from stackfix.resolve.needs import Candidate, Exclusion, Need
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.problem import Problem
from stackfix.resolve.unread import is_unread
from stackfix.sources.errors import SdistNeedsBuild
from stackfix.sources.records import IndexFile

UNCOMPARED = Version("0")       # stands in for a version that pip has no words for


@dataclass(kw_only=True, eq=False)      # without slots: super() cannot find a class that was made anew for them
class PipPart(Problem):
    """A closure problem beside packages of channels."""

    provided: Mapping[str, Provided] = field(default_factory=dict)

    def _bases(self, name: str, needs: Sequence[Need]) -> Iterator[Candidate]:
        one = self.provided.get(name)
        if one is None or one.version is not None:
            yield from super()._bases(name, needs)
        elif not any(need.specifier for need in needs):     # else nothing tells whether they admit it
            yield from super()._bases(name, ())

    def _requirement_lines(self, candidate: Candidate) -> tuple[str, ...] | Exclusion:
        """What a candidate requires; of what channels provide only what an extra adds, as its own wheel says it."""
        if candidate.name not in self.provided:
            return super()._requirement_lines(candidate)
        if candidate.extra is None:
            return ()
        wheel = self.project(candidate.name).candidate(candidate.version)
        metadata = self.evidence.metadata(wheel) if wheel is not None else None
        if metadata is None or isinstance(metadata, SdistNeedsBuild):
            record = self.provided[candidate.name].record
            reason = f"is {record.file_name} of the channels, and the index does not tell what its extra needs"
            return Exclusion(version=candidate.text, kind="index", reason=reason,
                             source=f"index page of {candidate.name}")
        return metadata.requires_dist

    def _judge(self, candidate: Candidate) -> Exclusion | None:
        found = super()._judge(candidate)
        return found if found is not None else self._of_the_other_abi(candidate)

    def _of_the_other_abi(self, candidate: Candidate) -> Exclusion | None:
        """Why a wheel that nobody read cannot load with the channel's torch: it is built for the index's.

        Wheels that were read are judged by their symbols, in the same way as everywhere.
        """
        wheels = self._abi_of_the_index()
        if wheels is None or wheels is self.build.cxx11_abi or not is_unread(
            self.evidence.books, candidate, self.build
        ):
            return None
        words = {True: "new", False: "old"}
        reason = (
            f"is built for torch {self.build.version} of the index with the {words[wheels]} C++ ABI,"
            f" and the channel's has the {words[not wheels]} one"
        )
        return Exclusion(version=candidate.text, kind="matrix", reason=reason, source=self.build.source, by_torch=True)

    def _abi_of_the_index(self) -> bool | None:
        """The C++ ABI of the index's wheel of this torch; None where nobody read it, or this is that wheel."""
        rows = query.builds(self.evidence.matrix, platform=self.build.platform, index=query.DEFAULT_INDEX)
        row = next((row for row in rows if row.version == self.build.version), None)
        return None if row is None or row is self.build or self.build.cxx11_abi is None else row.cxx11_abi


def beside(plain: Problem, provided: Mapping[str, Provided], preferred: Closure | None) -> PipPart:
    """The problem in which every provided project is given."""
    fixed = dict(plain.fixed)
    only, why_not = dict(plain.only), dict(plain.only_exclusions)
    for project, one in provided.items():
        given = only[project] = given_candidate(one)
        why_not[project] = (_no_other(one),)
        if project in fixed:
            fixed[project] = given.version
    return PipPart(
        evidence=plain.evidence, target=plain.target, build=plain.build, roots=plain.roots, limits=plain.limits,
        only=only, only_exclusions=why_not, only_requires={**plain.only_requires, **dict.fromkeys(provided, ())},
        fixed=fixed, preferred=_preferred(plain, preferred), allowed=_allowed(plain, provided),
        present=plain.present | frozenset(provided), provided=provided,
    )


def given_candidate(one: Provided) -> Candidate:
    """What a record provides, as the only candidate of its project. Its file is no wheel, and is never written."""
    record = one.record
    file = IndexFile(
        project=one.project, filename=record.file_name, version=record.version, url=record.url, sha256=record.sha256,
        requires_python=None, yanked=None, size=record.size, upload_time=None, core_metadata=None,
        index=record.channel,
    )
    version = (parse_version(one.version) if one.version is not None else None) or UNCOMPARED
    return Candidate(name=one.project, extra=None, version=version, text=str(version), files=(file,))


def _no_other(one: Provided) -> Exclusion:
    record = one.record
    return Exclusion(
        version=one.version or record.version, kind="channel", source=record.file_name, by_torch=True, by_python=True,
        reason=f"is what {record.name} of the channels brings, and pip may not bring a second one",
    )


def _allowed(plain: Problem, provided: Mapping[str, Provided]) -> Mapping[str, frozenset[str]]:
    return {name: hashes for name, hashes in plain.allowed.items() if name not in provided}


def _preferred(plain: Problem, before: Closure | None) -> Mapping[str, tuple[Version, ...]]:
    """The versions of the pip lock, then those that a lock of this torch would prefer."""
    found = dict(plain.preferred)
    for name, candidate in (before.chosen if before is not None else {}).items():
        found[name] = tuple(dict.fromkeys((candidate.version, *found.get(name, ()))))
    return found


def keep(problem: PipPart, before: Closure, asked: Iterable[str]) -> None:
    """Gives each project that was asked for, and that pip brings, the release of the pip lock."""
    only, why_not = dict(problem.only), dict(problem.only_exclusions)
    for name in asked:
        candidate = before.chosen.get(name)
        if candidate is None or name in only:
            continue
        against = problem.exclusion(candidate)      # the wheel that fits the index's torch may not fit the channel's
        only[name] = candidate if against is None else None
        why_not[name] = (against,) if against is not None else (Exclusion(
            version=candidate.text, kind="index", reason="is the release of the pip lock", source="the pip lock",
            by_torch=True, by_python=True,
        ),)
    problem.only, problem.only_exclusions = only, why_not
