"""Imports as they are with the preload hook: libraries that are loaded by path before a package is executed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stackfix.diagnose.imports import Imports
from stackfix.diagnose.imports_rows import RowRun
from stackfix.diagnose.records import OpenLibrary, ProcessState
from stackfix.diagnose.situation import Opening, Situation
from stackfix.inspect.records import ElfObject, FileAt, Files
from stackfix.matrix.library_records import Libraries
from stackfix.plan.effect_records import Hooked

GOES_ON = "the preload hook goes on without it"


def simulate_hooked(situation: Situation, libraries: Libraries, files: Files,
                    hooks: Mapping[str, Sequence[str]]) -> tuple[ProcessState, tuple[Opening, ...]]:
    """As diagnose.imports.simulate_imports, with the libraries of `hooks` loaded before their packages."""
    imports = HookedImports(situation, libraries, files, hooks)
    return imports.start, tuple(imports.openings())


def tables(hooks: Iterable[Hooked], files: Files) -> dict[str, tuple[str, ...]]:
    """Libraries by the package before which they are loaded, each after those of them that it needs."""
    found: dict[str, list[str]] = {}
    for each in hooks:
        found.setdefault(each.module, []).append(each.library)
    return {module: in_order(libraries, files) for module, libraries in sorted(found.items())}


def in_order(paths: Iterable[str], files: Files) -> tuple[str, ...]:
    """Libraries, each after those of them that it needs; the rest by path."""
    elves = {path: at.elf for path in sorted(paths)
             if isinstance(at := files.at(path), FileAt) and isinstance(at.elf, ElfObject)}
    by_soname = {elf.soname or path.rpartition("/")[2]: path for path, elf in elves.items()}
    done: dict[str, None] = {}

    def put(path: str, above: frozenset[str]) -> None:
        for name in elves[path].needed:
            needed = by_soname.get(name)
            if needed is not None and needed not in above and needed not in done:
                put(needed, above | {needed})
        done.setdefault(path)

    for path in elves:
        put(path, frozenset({path}))
    return tuple(done)


class HookedImports(Imports):
    """The imports of one environment in which the hook is installed."""

    def __init__(self, situation: Situation, libraries: Libraries, files: Files,
                 hooks: Mapping[str, Sequence[str]]) -> None:
        super().__init__(situation, libraries, files)
        self._hooks = hooks
        self._modules_at = {each.path: each.module for each in situation.environment.shared_objects if each.module}
        self._hooked: dict[tuple[str, tuple[str, ...], str], ProcessState] = {}

    def hook(self, module: str, state: ProcessState, project: str | None) -> list[Opening]:
        """What the hook opens before a module, its packages first."""
        made = list[Opening]()
        for package, path in ((each, path) for each in packages(module) for path in self._hooks.get(each, ())):
            opening = self.opener.open(OpenLibrary(name=path), state, project=project, phase="import",
                                       what=f"the preload hook of {package} opens {self.opener.short(path)}",
                                       may_fail=GOES_ON)
            made += [opening, *(self.opener.at_load(opening) if not opening.outcome.failures else ())]
            state = after(made, state)
        return made

    def imported(self, projects: tuple[str, ...]) -> tuple[ProcessState, tuple[Opening, ...]]:
        """As without the hook, and what it opens first."""
        if projects not in self._states:
            row = self.projects.rows[projects[-1]]
            state = self.imported(projects[:-1])[0]
            first = self.hook(row.module, state, row.project)
            run = RowRun(row, after(first, state), self.opener, self.steps)
            run.run()
            openings = [*first, *run.openings, *self.then(run)]
            self._states[projects] = (run.state, (*openings, *run.first_use()))
        return self._states[projects]

    def module(self, project: str | None, path: str, before: Iterable[str] = ()) -> Iterator[Opening]:
        """As without the hook, from a state in which the package of the module was executed."""
        name = self._modules_at.get(path, "")
        hooked = tuple(each for each in packages(name) if each in self._hooks)
        if not hooked:
            yield from super().module(project, path, before)
            return
        first = self.before_module(project, path)
        shared, key = (project or "", first), (project or "", first, hooked[-1])
        made = list[Opening]()
        if key not in self._hooked:
            state = self.imported(first)[0]
            made = self.hook(name, state, project)
            self._hooked[key] = after(made, state)
        without = self._shared.get(shared)
        self._shared[shared] = self._hooked[key]
        made += super().module(project, path, before)
        self._hooked[key] = self._shared.pop(shared)
        if without is not None:
            self._shared[shared] = without
        # the module itself comes first: who asks for it looks there
        yield from sorted(made, key=lambda each: each.request.name != path)


def after(openings: Sequence[Opening], state: ProcessState) -> ProcessState:
    """The process behind these openings, of which those that fail leave nothing."""
    return openings[-1].outcome.state if openings else state


def packages(module: str) -> tuple[str, ...]:
    """"a", "a.b" and "a.b.c" of a.b.c: all that its import executes, in order."""
    parts = module.split(".")
    return tuple(".".join(parts[:end]) for end in range(1, len(parts) + 1))
