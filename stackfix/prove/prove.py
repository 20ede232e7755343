"""A locked stack, proven: its imports in a clean environment, and in those that are known to be in the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stackfix.diagnose.faults_records import Fault
from stackfix.prove.assumed import assumptions
from stackfix.prove.facts import Short, answers, facts_of, files_of
from stackfix.prove.judge import BREAKS, UNREACHED, UNTOLD, Ruling, rulings, unreached_in
from stackfix.prove.proof_records import (
    CANNOT_TELL,
    CLEAN,
    FAILS,
    LOADS,
    NOT_TRIED,
    OutsideOfProof,
    ProvenImport,
    ProvenTarget,
    ProvenWheel,
    Resolved,
    Tried,
)
from stackfix.prove.records import NotFetched, PlannedWheel, TableSource, WheelTables
from stackfix.prove.simulate import Knowledge, Met, Stack
from stackfix.prove.surroundings import Laid
from stackfix.prove.trouble import beware_of, clean, troubles_of
from stackfix.resolve.records import Target

CLEAN_TITLE = "nothing in the way"
BAD = "bad-input"                   # the code of a wheel that cannot be read
UNREAD, UNHAD = "it could not be read", "it could not be had"   # the reason is one of a machine: it is in no proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be proven of one target."""

    target: Target
    wheels: tuple[PlannedWheel, ...]        # by name
    outside: tuple[OutsideOfProof, ...]
    tables: Mapping[str, WheelTables]       # by sha256
    failed: tuple[NotFetched, ...] = ()


class Prover:
    """Proves one target. The clean environment is tried first; the others are compared with it."""

    def __init__(self, subject: Subject, source: TableSource, told: Knowledge) -> None:
        self.subject = subject
        self.tables = tuple(subject.tables[each.sha256] for each in subject.wheels if each.sha256 in subject.tables)
        self.stack = Stack(subject.target, self.tables, source, told)
        self.view = self.stack.view()
        self.short = Short(self.view, self.stack.base.libraries)
        self.lacking = tuple(each.name for each in subject.wheels if each.sha256 not in subject.tables)
        self.rulings = tuple(rulings(self.view, self.stack.base, lacking=self.lacking))
        self.facts = facts_of(self.view, self.short)

    @property
    def overwritten(self) -> Mapping[str, tuple[str, ...]]:
        """Files that are mapped and that two wheels write: the wheels by path."""
        mapped = {path for each in self.facts for path in each.maps}
        return {short: tuple(names) for path, names in sorted(self.stack.overwritten.items())
                if (short := self.short.path(path)) in mapped}

    @property
    def broken(self) -> tuple[Fault, ...]:
        """What breaks the stack where nothing is in the way."""
        return tuple(each.fault for each in self.rulings if each.kind == BREAKS)

    def proven(self, laid: Sequence[Laid]) -> ProvenTarget:
        """The whole proof of the target."""
        clean_one = self.tried_clean()
        return ProvenTarget(
            python=self.subject.target.python, platform=self.subject.target.place,
            glibc=self.subject.target.glibc, verdict=clean_one.verdict, wheels=tuple(self.wheels()),
            outside=self.subject.outside, files=tuple(files_of(self.view, self.short)), imports=tuple(self.imports()),
            assumed=assumptions(self.view, self.stack.base, self.short), unknown=tuple(self.unknown()),
            environments=(clean_one, *(self.tried(each) for each in laid)))

    def wheels(self) -> Iterator[ProvenWheel]:
        for each in self.subject.wheels:
            known = self.subject.tables.get(each.sha256)
            yield ProvenWheel(name=each.name, version=each.version, sha256=each.sha256, file=each.file,
                              basis=known.basis if known else None)

    def imports(self) -> Iterator[ProvenImport]:
        """What each import opens, with its own verdict."""
        worst = verdicts(self.rulings)
        for each in self.facts:
            yield replace(each, verdict=worst.get((each.project, each.phase), LOADS))

    def unknown(self) -> Iterator[str]:
        """What could not be told, in sentences, each once."""
        said = dict.fromkeys(clean(each.why, self.short) for each in self.rulings if each.why is not None)
        for failed in self.subject.failed:
            said.setdefault(f"nothing is known of {failed.wheel.file}: {UNREAD if failed.code == BAD else UNHAD}")
        for path, names in self.overwritten.items():
            said.setdefault(overwritten_text(path, names))
        by_sentence: dict[str, list[str]] = {}
        for each in self.tables:
            for sentence in each.unknown:
                by_sentence.setdefault(sentence, []).append(f"{each.project.name} {each.project.version}")
        said |= dict.fromkeys(f"{', '.join(names)}: {sentence}" for sentence, names in by_sentence.items())
        yield from said

    def tried_clean(self) -> Tried:
        """The clean environment."""
        verdict = self.verdict(self.rulings)
        return Tried(name=CLEAN, title=CLEAN_TITLE, holds=(), variables=(), verdict=verdict, taken=(),
                     why=self.why(verdict, self.rulings, self.short),
                     troubles=troubles_of(self.view, self.broken, self.short),
                     beware=(*unreached_in(self.view, self.rulings), *beware_of(self.view, self.short)))

    def tried(self, laid: Laid) -> Tried:
        """One of the others."""
        if laid.met is None:
            return tried_of(laid, NOT_TRIED, why=laid.why)
        view = self.stack.view(laid.met)
        found = tuple(rulings(view, self.stack.base, without=laid.met.without, lacking=self.lacking))
        short = Short(view, self.stack.base.libraries)
        verdict = self.verdict(found)
        broken = tuple(each.fault for each in found if each.kind == BREAKS)
        return replace(tried_of(laid, verdict, why=self.why(verdict, found, short)),
                       troubles=troubles_of(view, broken, short),
                       beware=(*unreached_in(view, found), *beware_of(view, short)),
                       taken=tuple(taken_otherwise(self.facts, facts_of(view, short))))

    def verdict(self, found: Sequence[Ruling]) -> str:
        """Of one environment."""
        if any(each.kind == BREAKS for each in found):
            return FAILS
        missing = len(self.tables) < len(self.subject.wheels) or bool(self.overwritten)
        return CANNOT_TELL if missing or any(is_serious(each) for each in found) else LOADS

    def why(self, verdict: str, found: Sequence[Ruling], short: Short) -> str | None:
        """Why it cannot be told."""
        if verdict != CANNOT_TELL:
            return None
        reasons = [f"nothing is known of {', '.join(self.lacking)}"] if self.lacking else []
        reasons += [clean(each.why, short) for each in found if is_serious(each) and each.why is not None]
        reasons += [overwritten_text(path, names) for path, names in self.overwritten.items()]
        return "; ".join(dict.fromkeys(reasons))


def overwritten_text(path: str, names: Sequence[str]) -> str:
    """That two wheels install one file."""
    return f"{' and '.join(names)} both install {path}: which of them stays depends on the installer"


def tried_of(laid: Laid, verdict: str, *, why: str | None) -> Tried:
    return Tried(name=laid.row.name, title=laid.row.title, holds=laid.holds, variables=laid.variables,
                 verdict=verdict, why=why, taken=(), troubles=(), beware=())


def is_serious(ruling: Ruling) -> bool:
    """Whether an import turns on what nobody can tell; a module that is perhaps never imported does not count."""
    return ruling.kind == UNTOLD and ruling.fault.severity == "error" and any(
        each.opening.phase != "module" for each in ruling.fault.sightings)


def verdicts(found: Sequence[Ruling]) -> Mapping[tuple[str, str], str]:
    """The worst that was found of each import."""
    worst: dict[tuple[str, str], str] = {}
    for ruling in found:
        for seen in ruling.fault.sightings if ruling.kind in {BREAKS, UNTOLD, UNREACHED} else ():
            key = seen.opening.project or "", seen.opening.phase
            if ruling.kind == BREAKS or key not in worst:
                worst[key] = FAILS if ruling.kind == BREAKS else CANNOT_TELL
    return worst


def taken_otherwise(before: Sequence[ProvenImport], after: Sequence[ProvenImport]) -> Iterator[Resolved]:
    """Names that another file is taken for in the same import, each once."""
    known = answers(before)
    found = dict.fromkeys(each for one in after for each in one.resolved
                          if each.winner not in known.get((one.project, one.phase, each.requester, each.name),
                                                          {each.winner}))
    yield from sorted(found)


__all__ = ["Met", "Prover", "Subject"]
