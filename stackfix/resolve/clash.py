"""A clash: needs that nothing can meet, and how each of them came about."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from stackfix.quick import dataclass, replace
from stackfix.resolve.needs import Candidate, Exclusion, FromStack, Need
from stackfix.resolve.pep508 import pins_exactly
from stackfix.resolve.problem import MAX_SDISTS, UNUSABLE, Problem


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refuted:
    """A candidate that cannot be used because `need`, which it has, and `against` together admit nothing."""

    candidate: Candidate
    need: Need
    against: tuple[Need, ...]
    clash: Clash | None = None      # where it is further away: what choosing the candidate leads to


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clash:
    """Needs on one project that nothing can meet, and how each of them came about."""

    problem: Problem
    name: str
    needs: tuple[Need, ...]
    exclusions: tuple[Exclusion, ...]           # of versions that the needs admit
    refuted: tuple[Refuted, ...]                # candidates that the needs admit and their own needs rule out
    forced_by: dict[Candidate, tuple[Need, ...]]
    proved: bool

    def all_needs(self) -> Iterator[Need]:
        """Every need that takes part, the clashing ones first, each once."""
        seen: set[Need] = set()
        waiting = deque(self.needs)
        for case in self.refuted:
            waiting.extend((case.need, *case.against))
            if case.clash is not None:
                waiting.extend(case.clash.all_needs())
        waiting.extend(need for exclusion in self.exclusions for need in exclusion.because)
        while waiting:
            need = waiting.popleft()
            if need in seen:
                continue
            seen.add(need)
            yield need
            if need.parent is not None:
                waiting.extend(self.forced_by.get(need.parent, ()))

    def depends_on(self) -> frozenset[str]:
        """What of the stack takes part: "torch", "flash-attn", "python". Without "torch" no other torch helps."""
        parts = set() if self.proved else {"torch", "flash-attn", "python"}
        for need in self.all_needs():
            if isinstance(need.origin, FromStack):
                parts.add(need.origin.part)
            if need.by_python:
                parts.add("python")
        for case in self.refuted:
            parts.update(case.clash.depends_on() if case.clash is not None else ())
        parents = {need.parent for need in self.all_needs() if need.parent is not None}
        for exclusion in (*self.exclusions, *(e for parent in parents for e in self._alternatives(parent))):
            parts.update(name for name, is_so in (
                ("torch", exclusion.by_torch), ("python", exclusion.by_python), ("flash-attn", exclusion.by_flash_attn),
            ) if is_so)
        return frozenset(parts)

    def torch_limits(self) -> Iterator[Need]:
        """Needs on torch that clash with its pin and do not come from that torch themselves: they hold for any."""
        if not self.proved or self.name != "torch":
            return
        for need in self.needs:
            if not isinstance(need.origin, FromStack):
                alone = replace(self, needs=(need,), exclusions=(), refuted=())
                if "torch" not in alone.depends_on():
                    yield need

    def _alternatives(self, candidate: Candidate) -> Iterator[Exclusion]:
        """Why other versions that the forcing needs admit were no candidates."""
        needs = self.forced_by.get(candidate)
        if needs and not any(pins_exactly(need.specifier) for need in needs):
            yield from exclusions(self.problem, candidate.name, needs)


def exclusions(problem: Problem, name: str, needs: Sequence[Need]) -> Iterator[Exclusion]:
    """Why versions that the needs admit are no candidates of the problem, newest first."""
    if name.startswith(UNUSABLE):
        yield problem.unusable[name]
        return
    if name in problem.only:
        yield from problem.only_exclusions.get(name, ())
        return
    project = problem.project(name)
    sdists = 0
    for version in project.admitted(needs):
        candidate = project.candidate(version)
        if candidate is not None and not candidate.files[0].is_wheel:
            sdists += 1
            if sdists > MAX_SDISTS:
                continue
        if candidate is not None and name in problem.allowed and problem.allowed_files(candidate) is None:
            reason = "has no file with a sha256 that the request allows"
            yield Exclusion(version=str(version), kind="index", reason=reason, source=f"index page of {name}")
            continue
        found = project.exclusion(version) if candidate is None else problem.exclusion(candidate)
        if found is not None:
            yield found
