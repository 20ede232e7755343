"""One target's closure as questions with answers: which candidates a need admits, and what a candidate needs.

The stack level is already fixed (torch, its CUDA, flash-attn): a candidate that the matrix says does not fit it is
passed over before its metadata is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.records import Rule, TorchBuild
from stackfix.quick import dataclass, field, replace
from stackfix.resolve.candidates import Project
from stackfix.resolve.demands import check_demands
from stackfix.resolve.evidence import Evidence
from stackfix.resolve.judged import judged_exclusion, judgements
from stackfix.resolve.needs import Candidate, Exclusion, FromFile, FromRule, Need, Origin
from stackfix.resolve.nightly_family import is_nightly_file, nightly_exclusion
from stackfix.resolve.outside import driven_out, matrix_exclusion, unknown_companion_exclusion
from stackfix.resolve.pep508 import ANY, admits, lines_of_extra, normalise, parse_requirement, parse_specifier
from stackfix.resolve.records import Target
from stackfix.resolve.torch_family import companion_row
from stackfix.resolve.unread import bounds_above, is_silent, is_unread, neighbours_exclusion
from stackfix.sources.errors import SdistNeedsBuild
from stackfix.sources.records import IndexFile

_ASKS_PYTHON = re.compile(r"\bpython_(full_)?version\b")
MAX_SDISTS = 3          # that cannot be used: older ones of a project are no better, and each costs a download
UNUSABLE = "!"          # begins the name of a project that nobody has: how a candidate says that it cannot be used


@dataclass(slots=True, kw_only=True, eq=False)
class Problem:
    """The closure of one target. `only` are projects whose single candidate (or None) is given, not looked up."""

    evidence: Evidence
    target: Target
    build: TorchBuild
    roots: tuple[Need, ...]
    limits: Mapping[str, tuple[Need, ...]]
    only: Mapping[str, Candidate | None]
    only_exclusions: Mapping[str, tuple[Exclusion, ...]]    # why there is no other
    only_requires: Mapping[str, tuple[str, ...]]    # requirement lines of those candidates that no index describes
    fixed: Mapping[str, Version]                    # stack level: torch, and flash-attn where it is in the first step
    preferred: Mapping[str, tuple[Version, ...]]
    allowed: Mapping[str, frozenset[str]]           # projects of which the user allows only files with these sha256
    present: frozenset[str]                         # projects known to be in the stack: rules about them hold at once
    unusable: dict[str, Exclusion] = field(default_factory=dict)
    sure: dict[str, Need] = field(default_factory=dict)     # projects that are in every solution, and who needs them
    lacking: dict[str, Version] = field(default_factory=dict)   # newest releases without an extra that is asked for
    _dependencies: dict[Candidate, tuple[Need, ...]] = field(default_factory=dict)
    _exclusions: dict[Candidate, Exclusion | None] = field(default_factory=dict)
    _restricted: dict[Candidate, Candidate | None] = field(default_factory=dict)
    _places: dict[Candidate, str] = field(default_factory=dict)
    _extras: dict[str, set[str]] = field(default_factory=dict)      # of each project, that any candidate asks for

    def candidates(
        self, name: str, extra: str | None, needs: Sequence[Need], *, with_limits: bool = True
    ) -> Iterator[Candidate]:
        """Candidates that the needs (and the user's constraints) admit and the fixed stack allows, best first."""
        if name.startswith(UNUSABLE):
            return
        limited = (*needs, *self.limits.get(name, ())) if with_limits else needs
        for candidate in self._bases(name, limited):
            yield candidate if extra is None else self.project(name).with_extra(candidate, extra)

    def _bases(self, name: str, needs: Sequence[Need]) -> Iterator[Candidate]:
        if name in self.only:
            only = self.only[name]
            if only is not None and all(admits(need.specifier, only.version) for need in needs):
                yield only
            return
        later: dict[str, list[Candidate]] = {"other minor": [], "unread": [], "unknown": []}
        lacking = self.lacking.get(name)
        for candidate in self._found(name, needs):
            if lacking is not None and candidate.version <= lacking:
                continue                # an extra came with some release: older ones have it no more than this one
            place = self._place(candidate)
            if place:
                later[place].append(candidate)
            else:
                yield from self._if_usable(candidate)
        # last: what was read, or what the matrix knows to fit, goes before what may fit or what only metadata claims
        for candidate in chain.from_iterable(later.values()):
            yield from self._if_usable(candidate)

    def _place(self, candidate: Candidate) -> str:
        """Behind which others the candidate comes; "" where it keeps its place."""
        found = self._places.get(candidate)
        if found is None:
            found = self._places[candidate] = self._found_place(candidate)
        return found

    def _found_place(self, candidate: Candidate) -> str:
        if self._is_unknown_companion(candidate):
            return "unknown"
        if candidate.version in self.preferred.get(candidate.name, ()):
            return ""
        row = companion_row(self.evidence.matrix, candidate, self.build)
        if row is not None and query.other_minor(row, self.build):
            return "other minor"
        return "unread" if self.is_guess(candidate) else ""

    def _found(self, name: str, needs: Sequence[Need]) -> Iterator[Candidate]:
        """Candidates of the index with the files that the user allows, up to a number of sdists that cannot be used."""
        unusable_sdists = 0
        for found in self.project(name).candidates(needs, self.preferred.get(name, ())):
            candidate = self.allowed_files(found) if name in self.allowed else found
            if candidate is None:
                continue
            if not candidate.files[0].is_wheel and self.exclusion(candidate) is not None:
                unusable_sdists += 1
                if unusable_sdists == MAX_SDISTS:
                    return
            yield candidate

    def _if_usable(self, candidate: Candidate) -> Iterator[Candidate]:
        if self.exclusion(candidate) is None:
            yield candidate

    def is_guess(self, candidate: Candidate) -> bool:
        """Whether nothing tells which torch it was built for, though wheels of the project were read."""
        if self.exclusion(candidate) is not None or not is_unread(self.evidence.books, candidate, self.build):
            return False
        return is_silent(self.evidence.matrix, candidate, (
            need.specifier for need in self.dependencies(candidate) if need.name == "torch"))

    def allowed_files(self, candidate: Candidate) -> Candidate | None:
        """The candidate with the files whose hash the user allows; None where there is none."""
        if candidate not in self._restricted:
            files = tuple(file for file in candidate.files if file.sha256 in self.allowed[candidate.name])
            self._restricted[candidate] = replace(candidate, files=files) if files else None
        return self._restricted[candidate]

    def project(self, name: str) -> Project:
        """The project as the target sees it."""
        return self.evidence.project_for(name, self.target, self.build)

    def _is_unknown_companion(self, candidate: Candidate) -> bool:
        if is_nightly_file(candidate.files[0]):
            return False                # judged apart
        return candidate.name in self.evidence.tied_to_torch and (
            companion_row(self.evidence.matrix, candidate, self.build) is None
        )

    def exclusion(self, candidate: Candidate) -> Exclusion | None:
        """Why the candidate does not fit the fixed stack, or None where it does."""
        if candidate not in self._exclusions:
            self._exclusions[candidate] = self._judge(candidate)
        pairs = self.evidence.exclusive.get(candidate.name)
        found = self._exclusions[candidate]
        return driven_out(candidate, pairs, self.sure) if found is None and pairs else found

    def _judge(self, candidate: Candidate) -> Exclusion | None:
        if is_nightly_file(candidate.files[0]):
            return nightly_exclusion(candidate, self.evidence.metadata(candidate), self.build)
        found = matrix_exclusion(self.evidence.matrix, candidate, self.build, self.fixed)
        found = self._by_symbols(candidate, found) or found
        if found is None and not candidate.files[0].is_wheel and not self.evidence.may_build(candidate.files[0]):
            lines = self._requirement_lines(candidate)      # at once: else a search meets what needs a build too late
            if isinstance(lines, Exclusion):
                return lines
        if found is None and self._is_unknown_companion(candidate):
            return unknown_companion_exclusion(candidate, self.evidence.metadata(candidate), self.build)
        return found

    def _by_symbols(self, candidate: Candidate, found: Exclusion | None) -> Exclusion | None:
        """Why the symbols rule the candidate out; they take the place of a rule that says the same of torch."""
        rules = [row.why for row in found.rows if isinstance(row, Rule)] if found is not None and found.by_torch else []
        if found is not None and not rules:
            return None
        read = judgements(self.evidence.books, candidate.files[0], self.build)
        if not read and found is None and not self._names_this_torch(candidate):
            return neighbours_exclusion(self.evidence.books, candidate, self.build)
        return judged_exclusion(read, candidate.text, *rules[:1])

    def _names_this_torch(self, candidate: Candidate) -> bool:
        """Whether a row of the matrix bounds the torch of the candidate: that is its makers' word, and it fits."""
        row = companion_row(self.evidence.matrix, candidate, self.build)
        stated = parse_specifier(row.torch) if row is not None and row.torch is not None else None
        return stated is not None and bounds_above(stated)

    def dependencies(self, candidate: Candidate) -> Iterator[Need]:
        """What the candidate needs here. The part of an extra needs its own project first, before metadata is read."""
        if candidate.extra is not None:
            yield own_pin(candidate)
        if candidate not in self._dependencies:
            self._dependencies[candidate] = tuple(self._read_dependencies(candidate))
        yield from self._dependencies[candidate]

    def _read_dependencies(self, candidate: Candidate) -> Iterator[Need]:
        lines = self._requirement_lines(candidate)
        if isinstance(lines, Exclusion):
            yield self._cannot_be_used(candidate, lines)
            return
        if candidate.extra is not None and self._lost_extra(candidate, candidate.extra):
            why = _index_exclusion(candidate, f"has no extra {candidate.extra!r}")
            self._note_lost(candidate, why)
            yield self._cannot_be_used(candidate, why)
            return
        needs: list[Need] = []
        for line in lines if candidate.extra is None else lines_of_extra(lines, candidate.extra):
            if not self.view_applies(line, candidate.extra):
                continue
            made = list(needs_of(line, FromFile(parent=candidate)))
            if not made or any(need.url for need in made):
                reason = f"states a requirement that cannot be followed: {line}"
                yield self._cannot_be_used(candidate, _index_exclusion(candidate, reason))
                return
            needs.extend(made)
        check_demands(candidate, needs, self._extras)
        if candidate.extra is None:
            needs.extend(self._rule_needs(candidate, {need.name for need in needs}))
        yield from needs

    def _lost_extra(self, candidate: Candidate, extra: str) -> bool:
        """Whether the newest release has the extra and this one has not: taking it would drop what is asked for."""
        if candidate.name in self.only_requires or extra in self._extras_of(candidate.files[0]):
            return False
        newest = self.project(candidate.name).newest_file()     # of whatever Python: that the extra exists is enough
        return newest is not None and newest.version != candidate.text and extra in self._extras_of(newest)

    def _note_lost(self, candidate: Candidate, why: Exclusion) -> None:
        """Where the request itself asks for the extra: neither this version nor an older one is any use."""
        if any(need.name == candidate.name and need.extra == candidate.extra for need in self.roots):
            self.lacking[candidate.name] = max(candidate.version, self.lacking.get(candidate.name, candidate.version))
            base = self.project(candidate.name).candidate(candidate.version)
            if base is not None:
                self._exclusions[base] = why

    def _extras_of(self, file: IndexFile) -> set[str]:
        metadata = self.evidence.metadata_of(file, self.target.python)
        return set() if isinstance(metadata, SdistNeedsBuild) else {normalise(name) for name in metadata.provides_extra}

    def view_applies(self, line: str, extra: str | None) -> bool:
        """Whether a requirement line holds on the target; a line that holds without any extra is not the extra's."""
        view = self.evidence.view(self.target)
        return view.applies(line, extra) and (extra is None or not view.applies(line, None))

    def _requirement_lines(self, candidate: Candidate) -> tuple[str, ...] | Exclusion:
        if candidate.name in self.only_requires:
            return self.only_requires[candidate.name]
        metadata = self.evidence.metadata(candidate)
        if isinstance(metadata, SdistNeedsBuild):
            wheel = candidate.files[0].is_wheel
            reason = metadata.reason if wheel else f"has no usable wheel, and its sdist {metadata.reason}"
            if not wheel and not self.evidence.may_build(candidate.files[0]):
                reason += f" (--allow-builds {candidate.name} would build it, which runs its code)"
            return _index_exclusion(candidate, reason)
        if not self.evidence.view(self.target).takes_python(metadata.requires_python):
            reason = f"requires Python {metadata.requires_python}"
            return Exclusion(
                version=candidate.text, kind="index", reason=reason, by_python=True,
                source=f"metadata of {candidate.files[0].filename}",
            )
        return metadata.requires_dist

    def _cannot_be_used(self, candidate: Candidate, why: Exclusion) -> Need:
        name = f"{UNUSABLE}{candidate.label}"
        self.unusable[name] = why
        self._exclusions[candidate] = why           # no candidate any more, wherever it is asked for again
        return Need(name=name, extra=None, specifier=ANY, text=why.reason, origin=FromFile(parent=candidate))

    def _rule_needs(self, candidate: Candidate, own: set[str]) -> Iterator[Need]:
        """Needs that symbols or rules tell, on projects in the stack. Those on the fixed ones were judged before."""
        for limit in self.evidence.limits_for(candidate):
            if limit.name not in self.fixed and (limit.name in own or limit.name in self.present):
                yield Need(
                    name=limit.name, extra=None, specifier=limit.specifier(self._versions(limit.name)),
                    text=limit.rule.needs, origin=FromRule(parent=candidate, rule=limit.rule),
                )

    def _versions(self, name: str) -> tuple[Version, ...]:
        """Versions of a project that there are to choose from, newest first."""
        if name not in self.only:
            return self.project(name).versions
        only = self.only[name]
        return () if only is None else (only.version,)


def own_pin(candidate: Candidate, extra: str | None = None) -> Need:
    """The need for one version of a project, from that version itself."""
    pin = parse_specifier(f"=={candidate.version}")
    return Need(
        name=candidate.name, extra=extra, specifier=pin or ANY, text=f"{candidate.name}=={candidate.version}",
        origin=FromFile(parent=candidate),
    )


def needs_of(line: str, origin: Origin) -> Iterator[Need]:
    """The needs of one requirement line: on the project, and on the part of each extra. None where it is unreadable."""
    requirement = parse_requirement(line)
    if requirement is None:
        return
    name = normalise(requirement.name)
    extras: list[str] = sorted(normalise(extra) for extra in requirement.extras)
    text = f"{name}{f'[{chr(44).join(extras)}]' if extras else ''}{requirement.specifier}"
    for extra in chain([None], extras):
        yield Need(
            name=name, extra=extra, specifier=requirement.specifier, text=text,
            origin=origin, url=requirement.url, by_python=bool(_ASKS_PYTHON.search(line.partition(";")[2])),
        )


def _index_exclusion(candidate: Candidate, reason: str) -> Exclusion:
    source = f"metadata of {candidate.files[0].filename}"
    return Exclusion(version=candidate.text, kind="index", reason=reason, source=source)
