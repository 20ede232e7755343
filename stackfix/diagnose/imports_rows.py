"""The import of one project as a row of the matrix describes it: which steps are done, and from which state each."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from stackfix.diagnose.imports_open import Opener
from stackfix.diagnose.imports_steps import StepFiles
from stackfix.diagnose.records import LoadOutcome, MissingLibrary, OpenLibrary, ProcessState
from stackfix.diagnose.situation import Opening
from stackfix.matrix.library_records import ImportLoads, ImportStep
from stackfix.quick import replace

TRIED_AGAIN = "the package then opens the libraries one by one, and tries again"
UNNOTICED = "the package goes on without it"


class RowRun:
    """One run of a row. `openings` and `state` grow."""

    def __init__(self, row: ImportLoads, state: ProcessState, opener: Opener, files: StepFiles) -> None:
        self.row, self.state, self.opener, self.files = row, state, opener, files
        self.openings: list[Opening] = []
        self._failed = self._raised = False     # the last step that is always done; with an error that ends the import
        self._ended = False                     # the steps in a row that are done when it loaded

    def run(self) -> None:
        """Do the steps of the import itself."""
        surely = [each for each in self.row.steps if each.when != "first use"]
        for step, following in zip(surely, [*surely[1:], None], strict=False):     # a row may have first uses only
            if step.when == "always":
                self._always(step, surely, tried_again=following is not None and following.when in {"loaded", "failed"})
            elif step.when == "loaded":
                self._if_loaded(step)
            elif self._failed:
                self._if_failed(step)

    def first_use(self) -> tuple[Opening, ...]:
        """What is opened later: by the package, then by the libraries."""
        state, later = self.state, list[Opening]()
        for step in self.row.steps:
            if step.when == "first use":
                opening = self._open(step, state, phase="first use", may_fail=step.may_fail)
                if opening is not None:
                    later.append(opening)
                    state = opening.outcome.attempted
        return (*later, *self.opener.at_first_use((*self.openings, *later), state))

    def _always(self, step: ImportStep, surely: Iterable[ImportStep], *, tried_again: bool) -> None:
        """A step whose failure ends the import, unless the package then tries otherwise."""
        opening = self._open(step, self.state, may_fail=step.may_fail)
        if opening is None:
            return
        failures, self._ended = opening.outcome.failures, False
        others = [each for each in surely if each.when == "failed" and each.file != step.file] if tried_again else []
        self._failed = bool(failures) and names_one_of(failures[0].message(), others)
        self._raised = bool(failures) and not self._failed
        self._keep(replace(opening, may_fail=TRIED_AGAIN) if self._failed else opening)

    def _if_failed(self, step: ImportStep) -> None:
        """A step that is done because an earlier one failed."""
        opening = self._open(step, self.state, may_fail=step.may_fail)
        if opening is not None:
            self._keep(opening)

    def _if_loaded(self, step: ImportStep) -> None:
        """A step that is done because an earlier one succeeded; the first that fails ends them, and nobody hears."""
        if self._ended or self._failed or self._raised or not self._is_given(step.given):
            return
        found = self.files.find(self.row, step)
        if found is None:
            self._ended = not step.skip
            return
        opening = self._open(step, self.state, may_fail=step.may_fail or UNNOTICED)
        if opening is not None:
            self._ended = bool(opening.outcome.failures)
            self._keep(opening)

    def _is_given(self, pattern: str | None) -> bool:
        return pattern is None or any(fnmatchcase(each.path, pattern) for each in self.state.objects)

    def _keep(self, opening: Opening) -> None:
        """Go on behind an opening: what failed unnoticed is gone, what ought to have succeeded is taken as cured."""
        made = [opening, *self.opener.at_load(opening)]
        self.openings += made
        gone = opening.may_fail is not None and opening.outcome.failures
        self.state = opening.outcome.state if gone else made[-1].outcome.attempted

    def _open(self, step: ImportStep, state: ProcessState, *, may_fail: str | None,
              phase: str = "import") -> Opening | None:
        """One step; None where it opens nothing."""
        name = self.files.find(self.row, step)
        if name is None and (step.skip or step.may_fail is not None or not self.files.patterns(step)):
            return None
        what = f"import {self.row.module}" if phase == "import" else self.row.module
        request = OpenLibrary(name=name or self.files.expected(self.row, step), now=step.now, to_global=step.to_global)
        opening = self.opener.open(request, state, project=self.row.project, phase=phase, may_fail=may_fail,
                                   what=f"{what} opens {self.opener.short(request.name)}")
        return opening if name is not None else replace(opening, outcome=not_found(opening.outcome, request.name))


def names_one_of(message: str, steps: Iterable[ImportStep]) -> bool:
    """Whether an error speaks of a library that one of the steps would open."""
    return any(step.file.rpartition("/")[2].partition(".so")[0] in message for step in steps)


def not_found(outcome: LoadOutcome, name: str) -> LoadOutcome:
    """The outcome of opening what a package looked for in vain."""
    if outcome.failures:
        return outcome
    return replace(outcome, failures=(MissingLibrary(name=name, requester=None, tried=()),))
