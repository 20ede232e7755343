"""What the imports of an environment's packages load: the dlopen calls of each, in order, as the simulated loader sees.

Nothing is imported. What a package's own code opens is known from rows of `matrices/imports.toml`; of other packages
only that Python opens their extension modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NoReturn

from stackfix.diagnose.imports_named import NamedRows
from stackfix.diagnose.imports_open import Opener
from stackfix.diagnose.imports_projects import Projects
from stackfix.diagnose.imports_rows import RowRun
from stackfix.diagnose.imports_steps import StepFiles
from stackfix.diagnose.installed_torch import installed_torch
from stackfix.diagnose.loader import Simulator
from stackfix.diagnose.records import LoadOutcome, MissingLibrary, OpenLibrary, ProcessState, StartProgram
from stackfix.diagnose.situation import Opening, Situation, View
from stackfix.inspect.environment_records import Owner
from stackfix.inspect.records import ElfObject, FileAt, Files
from stackfix.matrix.library_records import Libraries
from stackfix.quick import replace

OF_TORCH = ("libtorch", "libc10")
OPENED_BY_CODE = "the package's own Python code may open the library by its path before"
DOES_WITHOUT = "{} does without {}"


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
        self.projects = Projects(situation.environment, libraries)
        cuda = cache(lambda: cuda_of_torch(situation, libraries, files))
        self.steps = StepFiles(self.projects, files, cuda)
        started = start_interpreter(situation, files)
        # where a program's own loader is not there, nothing is known of its process
        self.start = started.attempted if started and started.attempted.global_scope else ProcessState()
        self.opener = Opener(
            Simulator(situation.loader, files, keep_going=True), NamedRows(situation.environment, libraries, cuda),
            (each.path for each in situation.environment.sites), bare=not self.start.objects)
        self._states: dict[tuple[str, ...], tuple[ProcessState, tuple[Opening, ...]]] = {(): (self.start, ())}
        self._modules_with: dict[str, list[tuple[str | None, str]]] = {}   # soname -> modules that load it
        # By project: the state of its imports with the libraries that its modules share, each mapped once. Without it
        # every one of some hundred modules would bind the symbols of the same libraries again.
        self._shared: dict[tuple[str, tuple[str, ...]], ProcessState] = {}

    def openings(self) -> Iterator[Opening]:
        """All of them: projects after those that they require, then files that nobody owns, then those to be judged."""
        for project in self.projects.order:
            if project in self.projects.rows:
                yield from self.imported((*self.projects.first(project), project))[1]
            yield from self.modules(project)
        known = set(self.projects.order)
        for owner in sorted((each for each in self.projects.modules if each not in known), key=lambda each: each or ""):
            yield from self.modules(owner)
        for path in self.situation.extra:
            yield from self.module(None, path)

    # --- projects with a row ---

    def imported(self, projects: tuple[str, ...]) -> tuple[ProcessState, tuple[Opening, ...]]:
        """The state after these imports, and what the last one of them opens, at first use too."""
        if projects not in self._states:
            run = RowRun(self.projects.rows[projects[-1]], self.imported(projects[:-1])[0], self.opener, self.steps)
            run.run()
            openings = [*run.openings, *self.then(run)]
            self._states[projects] = (run.state, (*openings, *run.first_use()))
        return self._states[projects]

    def then(self, run: RowRun) -> Iterator[Opening]:
        """What a project imports itself at the end, if it is there."""
        for project in run.row.then:
            if project in self.projects.rows:
                other = RowRun(self.projects.rows[project], run.state, self.opener, self.steps)
                other.run()
                run.state = other.state
                reason = DOES_WITHOUT.format(run.row.project, project)
                yield from (replace(each, may_fail=each.may_fail or reason) for each in other.openings)

    # --- extension modules ---

    def modules(self, project: str | None) -> Iterator[Opening]:
        """Each extension module of a project, opened by itself after the imports of what the project requires."""
        row = self.projects.rows.get(project or "")
        done = self.steps.listed(row) if row else frozenset[str]()
        again = []
        for each in self.projects.modules.get(project, ()):
            if each.path in done:
                continue
            made = tuple(self.module(project, each.path))
            if any(isinstance(failure, MissingLibrary) for failure in made[0].outcome.failures):
                again.append(made)
            else:
                self.remember(project, made[0])
                yield from made
        for made in again:
            yield from self.after_siblings(project, made)

    def module(self, project: str | None, path: str, before: Iterable[str] = ()) -> Iterator[Opening]:
        """One extension module, after `before`, and what its libraries open by name."""
        row = self.projects.rows.get(project or "")
        first = self.before_module(project, path)
        state = self._shared.get((project or "", first)) or self.imported(first)[0]
        for each in before:
            state = self.opener.load(OpenLibrary(name=each), state).state
        opening = self.opener.open(OpenLibrary(name=path), state, project=project, what=self.opener.short(path),
                                   phase="module", may_fail=row.modules_may_fail if row else None)
        made = [opening, *self.opener.at_load(opening)]
        if project is not None and len(opening.outcome.loaded) > 1 and not opening.outcome.failures:
            self._shared[project, first] = made[-1].outcome.attempted
        yield from made
        yield from self.opener.at_first_use(made, made[-1].outcome.attempted)

    def before_module(self, project: str | None, path: str) -> tuple[str, ...]:
        """Imports before that of a module: what its project requires, and torch where its file needs that."""
        file = self.files.at(path)
        elf = file.elf if isinstance(file, FileAt) else None
        torch = ("torch",) if isinstance(elf, ElfObject) and any(each.startswith(OF_TORCH) for each in elf.needed) \
            else ()
        first = self.projects.first(project, torch)
        return (*first, project) if project is not None and project in self.projects.rows else first

    def remember(self, project: str | None, opening: Opening) -> None:
        """Which libraries are there once this module is imported."""
        for number in opening.outcome.loaded:
            soname = opening.outcome.attempted.objects[number].elf.soname
            if soname is not None:
                self._modules_with.setdefault(soname, []).append((project, opening.request.name))

    def after_siblings(self, project: str | None, made: tuple[Opening, ...]) -> Iterator[Opening]:
        """A module again, after modules of its project, or of what that requires, which load what it misses."""
        family = {project, *(self.projects.closure(project) if project is not None else ())}
        before = [path for name in missing_names(made[0])
                  for path in [path for owner, path in self._modules_with.get(name, ()) if owner in family][:1]]
        if before:
            made = tuple(self.module(project, made[0].request.name, before))
        missing = missing_names(made[0])
        if missing and project is not None and all(name in self.names_of(family) for name in missing):
            made = (replace(made[0], may_fail=OPENED_BY_CODE), *made[1:])
        yield from made

    def names_of(self, family: set[str | None]) -> frozenset[str]:
        """Names of the shared objects of some projects."""
        return frozenset(each.path.rpartition("/")[2] for each in self.situation.environment.shared_objects
                         if self.projects.project_of(each) in family)


class NoOwners:
    """Fills situation.Owners for questions that are not about owners."""

    def owners(self, path: str) -> tuple[Owner, ...]:
        return ()


def cuda_of_torch(situation: Situation, libraries: Libraries, files: Files) -> str | None:
    """The CUDA that the environment's torch was built for: "12.1", "cpu"; None where it is unknown."""
    def nothing() -> NoReturn:
        raise LookupError("the CUDA of torch is told by its files, not by the matrix or the almanac")

    view = View(situation=situation, libraries=libraries, load_matrix=nothing, load_books=nothing, files=files,
                installed=NoOwners(), start=ProcessState(), openings=())
    found = installed_torch(view)
    return found.cuda if found else None


def missing_names(opening: Opening) -> tuple[str, ...]:
    """Libraries that an opening does not find."""
    return tuple({each.name: None for each in opening.outcome.failures if isinstance(each, MissingLibrary)})
