"""What the imports of an environment's packages load: the dlopen calls of each, in order, as the simulated loader sees.

Nothing is imported. What a package's own code opens is known from rows of `matrices/imports.toml`; of other packages
only that Python opens their extension modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stackfix.diagnose.imports_named import NamedRows
from stackfix.diagnose.imports_projects import Projects
from stackfix.diagnose.imports_steps import StepFiles
from stackfix.diagnose.loader import Simulator
from stackfix.diagnose.records import (
    LoadOutcome,
    MissingLibrary,
    MissingSymbol,
    OpenLibrary,
    ProcessState,
    StartProgram,
)
from stackfix.diagnose.situation import Opening, Situation, View
from stackfix.inspect.machine_records import Undecided
from stackfix.inspect.records import ElfObject, FileAt, Files
from stackfix.matrix.library_records import ImportStep, Libraries, OpenedByName

OF_TORCH = ("libtorch", "libc10")
PYTHON_SYMBOLS = ("Py", "_Py")
OPENED_BY_CODE = "the package's own Python code may open the library by its path before"


def simulate_imports(situation: Situation, libraries: Libraries,
                     files: Files) -> tuple[ProcessState, tuple[Opening, ...]]:
    """The interpreter before any import, and every dlopen: of each project after what it requires, by itself.

    The state is empty where the environment has no interpreter; then symbols of Python itself are not asked for.
    """
    imports = Imports(situation, libraries, files)
    return imports.start, tuple(imports.openings())


def start_interpreter(situation: Situation, files: Files) -> LoadOutcome | None:
    """What the start of the environment's interpreter loads; None where there is no interpreter."""
    python = situation.environment.python
    program = (python.executable_reaches or python.executable) if python else None
    if program is None:
        return None
    return Simulator(situation.loader, files, keep_going=True).load(StartProgram(path=program), ProcessState())


class Imports:
    """The imports of one environment."""

    def __init__(self, situation: Situation, libraries: Libraries, files: Files) -> None:
        self.situation, self.files = situation, files
        self.simulator = Simulator(situation.loader, files, keep_going=True)
        self.projects = Projects(situation.environment, libraries)
        self.steps = StepFiles(self.projects, files)
        self.named = NamedRows(situation.environment, libraries)
        started = start_interpreter(situation, files)
        self.start = started.attempted if started else ProcessState()
        self._states: dict[tuple[str, ...], tuple[ProcessState, tuple[Opening, ...]]] = {(): (self.start, ())}
        self._named_before: set[tuple[str, str, str]] = set()
        self._providers: dict[str, list[tuple[str | None, str]]] = {}   # soname -> modules that load it

    def openings(self) -> Iterator[Opening]:
        """All of them: projects after those that they require, then files that nobody owns, then those to be judged."""
        for project in self.projects.order:
            if project in self.projects.rows:
                yield from self.imported((*self.projects.first(project), project))[1]
            else:
                yield from self.modules(project)
        yield from self.modules(None)
        known = set(self.projects.order)
        for project in sorted(each for each in self.projects.modules if each is not None and each not in known):
            yield from self.modules(project)
        for path in self.situation.extra:
            yield from self.module(None, path, path)

    # --- projects with a row ---

    def imported(self, projects: tuple[str, ...]) -> tuple[ProcessState, tuple[Opening, ...]]:
        """The state after these imports, and what the last one of them opens."""
        if projects not in self._states:
            state = self.imported(projects[:-1])[0]
            self._states[projects] = self.run(projects[-1], state)
        return self._states[projects]

    def run(self, project: str, state: ProcessState) -> tuple[ProcessState, tuple[Opening, ...]]:
        """The state after a project's import, and all that it opens, at first use too."""
        row, made = self.projects.rows[project], list[Opening]()
        failed = False                              # the last step that is always done
        surely = [each for each in row.steps if each.when != "first use"]
        for number, step in enumerate(surely):
            if step.when == "failed" and not failed:
                continue
            retried = step.when == "always" and any(each.when == "failed" for each in surely[number + 1:number + 2])
            opening = self.step(project, row.module, step, state, retried=retried)
            if opening is None:
                continue
            failed = bool(opening.outcome.failures) if step.when == "always" else failed
            # what failed is undone before the package tries otherwise; else go on as if the fault were cured
            gone = bool(opening.outcome.failures) and (retried or step.may_fail is not None)
            state = opening.outcome.state if gone else opening.outcome.attempted
            made.append(opening)
            made += self.at_load(opening)
            state = made[-1].outcome.attempted if made[-1] is not opening else state
        after, later = state, list[Opening]()
        for step in row.steps:
            opening = self.step(project, row.module, step, after, phase="first use") if step.when == "first use" \
                else None
            if opening is not None:
                later.append(opening)
                after = opening.outcome.attempted
        later += self.at_first_use([*made, *later], after)
        return state, (*made, *later)

    def step(self, project: str, module: str, step: ImportStep, state: ProcessState, *, phase: str = "import",
             retried: bool = False) -> Opening | None:
        """One step of a row; None where it opens nothing."""
        request = self.steps.request(project, step)
        if request is None:
            return None
        what = f"import {module}" if phase == "import" else module
        may_fail = step.may_fail or ("the package then opens the libraries one by one and tries again" if retried
                                     else None)
        return self.opening(project, f"{what} opens {self.short(request.name)}", phase, request, state, may_fail)

    # --- extension modules of other projects ---

    def modules(self, project: str | None) -> Iterator[Opening]:
        """Each extension module of a project, opened by itself after the imports of what the project requires."""
        again = []
        for each in self.projects.modules.get(project, ()):
            made = tuple(self.module(project, each.path, self.short(each.path)))
            if any(isinstance(failure, MissingLibrary) for failure in made[0].outcome.failures):
                again.append(made)
            else:
                self.remember(project, made[0])
                yield from made
        for made in again:
            yield from self.after_siblings(project, made)

    def module(self, project: str | None, path: str, what: str, before: Iterable[str] = ()) -> Iterator[Opening]:
        """One extension module, after `before`, and what its libraries open by name."""
        file = self.files.at(path)
        elf = file.elf if isinstance(file, FileAt) else None
        needs_torch = isinstance(elf, ElfObject) and any(name.startswith(OF_TORCH) for name in elf.needed)
        state = self.imported(self.projects.first(project, ("torch",) if needs_torch else ()))[0]
        for each in before:
            state = self.simulator.load(OpenLibrary(name=each), state).state
        opening = self.opening(project, what, "module", OpenLibrary(name=path), state, None)
        yield opening
        made = [opening, *self.at_load(opening)]
        yield from made[1:]
        yield from self.at_first_use(made, made[-1].outcome.attempted)

    def remember(self, project: str | None, opening: Opening) -> None:
        """Which libraries are there once this module is imported."""
        for number in opening.outcome.loaded:
            soname = opening.outcome.attempted.objects[number].elf.soname
            if soname is not None:
                self._providers.setdefault(soname, []).append((project, opening.request.name))

    def after_siblings(self, project: str | None, made: tuple[Opening, ...]) -> Iterator[Opening]:
        """A module again, after modules of its project, or of what that requires, which load what it misses."""
        opening = made[0]
        missing = {each.name for each in opening.outcome.failures if isinstance(each, MissingLibrary)}
        family = {project, *(self.projects.closure(project) if project is not None else ())}
        before = [path for name in sorted(missing)
                  for owner, path in self._providers.get(name, ())[:1] if owner in family]
        if before:
            made = tuple(self.module(project, opening.request.name, opening.what, before))
        own = {each.path.rpartition("/")[2] for each in self.situation.environment.shared_objects
               if self.projects.project_of(each) in family} if project is not None else set()
        missing = {each.name for each in made[0].outcome.failures if isinstance(each, MissingLibrary)}
        if missing and missing <= own:
            made = (replace(made[0], may_fail=OPENED_BY_CODE), *made[1:])
        yield from made

    # --- what libraries open by name ---

    def at_load(self, opening: Opening) -> list[Opening]:
        """What the constructors of newly mapped objects open by name, and so on."""
        made, ahead, state = list[Opening](), [opening], opening.outcome.attempted
        while ahead:
            outcome = ahead.pop(0).outcome
            for number in outcome.loaded:
                caller = outcome.attempted.objects[number]
                for row in self.named.rows(caller):
                    for name in row.names if row.when == "load" else ():
                        made.append(self.by_name(opening, row, name, number, state))
                        ahead.append(made[-1])
                        state = made[-1].outcome.attempted
        return made

    def at_first_use(self, openings: list[Opening], state: ProcessState) -> list[Opening]:
        """What newly mapped objects open by name once they are used; the same answer is given once."""
        made, ahead = list[Opening](), list(openings)
        while ahead:
            opening = ahead.pop(0)
            for number in opening.outcome.loaded:
                for row in self.named.rows(opening.outcome.attempted.objects[number]):
                    for name in row.names if row.when != "load" else ():
                        found = self.by_name(opening, row, name, number, state)
                        state = found.outcome.attempted
                        if self.is_new(found):
                            made.append(found)
                            ahead.append(found)
        return made

    def by_name(self, opening: Opening, row: OpenedByName, name: str, number: int, state: ProcessState) -> Opening:
        """One dlopen by name, by the object of this number."""
        caller = opening.outcome.attempted.objects[number]
        what = f"{caller.elf.soname or self.short(caller.path)} opens {name}"
        request = OpenLibrary(name=name, caller=caller.identity)
        may_fail = f"optional: {row.why}" if row.optional else opening.may_fail
        phase = opening.phase if row.when == "load" else "first use"
        return self.opening(opening.project, what, phase, request, state, may_fail)

    def is_new(self, opening: Opening) -> bool:
        """Whether this caller has not yet been given this answer, in the import of another project."""
        outcome = opening.outcome
        answer = outcome.attempted.objects[outcome.opened].identity if outcome.opened is not None else "nothing"
        key = (opening.request.caller or "", opening.request.name,
               f"{answer} {[each.message() for each in outcome.failures]}")
        new = key not in self._named_before
        self._named_before.add(key)
        return new

    # --- one dlopen ---

    def opening(self, project: str | None, what: str, phase: str, request: OpenLibrary, state: ProcessState,
                may_fail: str | None) -> Opening:
        """One dlopen from a state."""
        outcome = self.simulator.load(request, state)
        if not self.start.objects:          # no interpreter: who provides Python's own symbols is not known
            outcome = replace(outcome, failures=tuple(
                each for each in outcome.failures
                if not (isinstance(each, MissingSymbol) and each.name.startswith(PYTHON_SYMBOLS))))
        return Opening(project=project, what=what, phase=phase, request=request, outcome=outcome, may_fail=may_fail)

    def short(self, path: str) -> str:
        """A path below its site folder."""
        inside = [each.path for each in self.situation.environment.sites if path.startswith(f"{each.path}/")]
        return path[len(max(inside, key=len)) + 1:] if inside else path


def find_undecided_imports(view: View) -> Iterator[Undecided]:
    """What cannot be told of the imports of this environment."""
    environment = view.environment
    if environment.python is None:
        yield Undecided(subject="imports", reason="the prefix has no Python: what an import loads cannot be told")
    elif not view.start.objects:
        yield Undecided(subject="imports", reason="the environment's interpreter is not there: what it maps at its "
                                                  "start is not known, and Python's own symbols are not judged")
    for each in view.openings:
        if each.may_fail == OPENED_BY_CODE and each.outcome.failures:
            reason = f"{each.outcome.failures[0].message()}, but {OPENED_BY_CODE}"
            yield Undecided(subject=each.what, reason=reason)
