"""One dlopen after another, and what the libraries that it maps open by name themselves."""

from __future__ import annotations

from collections.abc import Iterable

from stackfix.diagnose.imports_named import NamedRows
from stackfix.diagnose.loader import Simulator
from stackfix.diagnose.records import LoadOutcome, MissingSymbol, OpenLibrary, ProcessState
from stackfix.diagnose.situation import Opening
from stackfix.matrix.library_records import OpenedByName
from stackfix.quick import replace

PYTHON_SYMBOLS = ("Py", "_Py")


class Opener:
    """Opens on behalf of one process, which may have no interpreter (`bare`): then Python's symbols are not judged."""

    def __init__(self, simulator: Simulator, named: NamedRows, sites: Iterable[str], *, bare: bool) -> None:
        self.simulator, self.named, self.bare = simulator, named, bare
        self._sites = sorted((f"{each}/" for each in sites), key=len, reverse=True)
        self._answers: set[tuple[str, str, str]] = set()

    def short(self, path: str) -> str:
        """A path below its site folder."""
        return next((path[len(each):] for each in self._sites if path.startswith(each)), path)

    def load(self, request: OpenLibrary, state: ProcessState) -> LoadOutcome:
        """What a request does to a process."""
        outcome = self.simulator.load(request, state)
        if self.bare:
            outcome = replace(outcome, failures=tuple(
                each for each in outcome.failures
                if not (isinstance(each, MissingSymbol) and each.name.startswith(PYTHON_SYMBOLS))))
        return outcome

    def open(self, request: OpenLibrary, state: ProcessState, *, project: str | None, what: str, phase: str,
             may_fail: str | None = None) -> Opening:
        """One dlopen."""
        return Opening(project=project, what=what, phase=phase, request=request, outcome=self.load(request, state),
                       may_fail=may_fail)

    def at_load(self, opening: Opening) -> list[Opening]:
        """What newly mapped libraries open at once, and what those do that are mapped so."""
        made, ahead, state = list[Opening](), [opening], opening.outcome.attempted
        while ahead:
            for row, name, number in self.named_by(caller := ahead.pop(0), "load"):
                made.append(self.by_name(caller, row, name, number, state))
                ahead.append(made[-1])
                state = made[-1].outcome.attempted
        return made

    def at_first_use(self, openings: Iterable[Opening], state: ProcessState) -> list[Opening]:
        """What newly mapped libraries open once they are used. An answer that was given before is not given again."""
        made, ahead = list[Opening](), list(openings)
        while ahead:
            for row, name, number in self.named_by(caller := ahead.pop(0), "first use"):
                found = self.by_name(caller, row, name, number, state)
                state = found.outcome.attempted
                if self.is_new(found):
                    made.append(found)
                    ahead.append(found)
        return made

    def named_by(self, opening: Opening, when: str) -> list[tuple[OpenedByName, str, int]]:
        """(row, name, caller) of all that the newly mapped objects open by name."""
        outcome = opening.outcome
        return [(row, name, number) for number in outcome.loaded
                for row in self.named.rows(outcome.attempted.objects[number]) if row.when == when for name in row.names]

    def by_name(self, opening: Opening, row: OpenedByName, name: str, number: int, state: ProcessState) -> Opening:
        """One dlopen by name, by the object of this number."""
        caller = opening.outcome.attempted.objects[number]
        return self.open(
            OpenLibrary(name=name, caller=caller.identity), state, project=opening.project,
            what=f"{caller.elf.soname or self.short(caller.path)} opens {name}",
            phase=opening.phase if row.when == "load" else "first use",
            may_fail=f"optional: {row.why}" if row.optional else opening.may_fail)

    def is_new(self, opening: Opening) -> bool:
        """Whether this caller has not been given this answer yet, in the import of another project."""
        outcome = opening.outcome
        answer = outcome.attempted.objects[outcome.opened].identity if outcome.opened is not None else ""
        failures = "\n".join(each.message() for each in outcome.failures)
        key = (opening.request.caller or "", opening.request.name, f"{answer}\n{failures}")
        if key in self._answers:
            return False
        self._answers.add(key)
        return True
