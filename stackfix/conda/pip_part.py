"""What pip brings beside packages of channels: one more closure, in which all that they provide is fixed.

Nothing comes twice: a project that a package of a channel brings has that version and no other, and is left out of what
pip is given. Its own needs are the channels' affair; those of an extra are not, since channels know no extras.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.conda.names import Provided
from stackfix.conda.records import Spec
from stackfix.conda.specs import not_a_version, spec_of
from stackfix.matrix import query
from stackfix.matrix.records import TorchBuild
from stackfix.resolve.assemble import locked_packages
from stackfix.resolve.clash import Clash
from stackfix.resolve.closure import Closure, solve_closure
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.flash_attn import FlashAttn, FlashPlan
from stackfix.resolve.needs import Candidate, Exclusion, FromFile, Need
from stackfix.resolve.pep508 import admits, parse_specifier, parse_version
from stackfix.resolve.problem import Problem
from stackfix.resolve.question import STACK_LEVEL, Question
from stackfix.resolve.records import LockedPackage, Target
from stackfix.resolve.roots import closure_problem
from stackfix.resolve.stack import Stack
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


def pip_part(
    evidence: Evidence, question: Question, build: TorchBuild, target: Target, *, provided: tuple[Provided, ...],
    plan: FlashPlan | None, flash: FlashAttn, preferred: Closure | None,
) -> Closure | Clash:
    """The closure of the whole request with what is `provided` in it, or what stands in the way.

    `build`: torch as the environment has it, the channel's or the wheel. `preferred`: the pip lock's closure, whose
    versions are taken while they fit. Raises TooManyRounds, and what the index raises.
    """
    version = parse_version(build.version) or UNCOMPARED
    stack = Stack(version=version, text=build.version, builds={target.platform: build})
    plain = closure_problem(evidence, question, stack, target, plan, flash)
    return solve_closure(_beside(plain, {one.project: one for one in provided}, preferred))


def _beside(plain: Problem, provided: Mapping[str, Provided], preferred: Closure | None) -> PipPart:
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
    version = parse_version(one.version) if one.version is not None else None
    return Candidate(
        name=one.project, extra=None, version=version or UNCOMPARED, text=one.version or record.version, files=(file,),
    )


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


def pip_packages(
    evidence: Evidence, question: Question, target: Target, closure: Closure, *, provided: tuple[Provided, ...],
    plan: FlashPlan | None,
) -> tuple[LockedPackage, ...]:
    """The pip entries of a closure, sorted by name, without what the channels provide; the second step among them."""
    without = frozenset(one.project for one in provided)
    return locked_packages(evidence, question, target, closure, plan, without)


def bounds_of(clash: Clash) -> tuple[Spec, ...]:
    """What the channels must keep to so that this clash does not come again; () where no bound on them can help.

    Needs of what pip brings on projects that the channels provide at a version which they do not admit.
    """
    problem = clash.problem
    return tuple(dict.fromkeys(_bounds(problem, clash))) if isinstance(problem, PipPart) else ()


def _bounds(problem: PipPart, clash: Clash) -> Iterator[Spec]:
    for need in clash.all_needs():
        one = problem.provided.get(need.name)
        parent = need.parent
        if one is None or parent is None or parent.name in problem.provided or need.name in STACK_LEVEL:
            continue
        version = parse_version(one.version) if one.version is not None else None
        if need.extra is not None or (version is not None and admits(need.specifier, version)):
            continue
        if not need.specifier or not_a_version(need.specifier) is not None:
            continue
        by = parent.label if isinstance(need.origin, FromFile) else f"{parent.label} (a rule of the matrix)"
        yield Spec(text=spec_of(one.record.name, _lengthened(need.specifier, one)), origin=f"{by}, which pip brings")


def _lengthened(specifier: SpecifierSet, one: Provided) -> SpecifierSet:
    """`==2.20.5.*` of `==2.20.5`, where conda's version has a part more than the project's."""
    own = parse_version(one.record.version)
    if own is None or str(own) == one.version:
        return specifier
    text = ",".join(
        f"{part}.*" if part.operator in {"==", "!="} and not part.version.endswith(".*") else str(part)
        for part in specifier
    )
    return parse_specifier(text) or specifier
