"""Reads an environment, its machine and its loader, and simulates its imports: all that a diagnosis asks."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stackfix.cli.places_named import current_folder, place_of, variable_of
from stackfix.diagnose.imports import simulate_imports
from stackfix.diagnose.situation import Owners, Situation, View
from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.environment import inspect_installation
from stackfix.inspect.environment_files import Progress
from stackfix.inspect.environment_find import find_environment
from stackfix.inspect.environment_records import Environment
from stackfix.inspect.ldso import hwcap_subfolders, read_conf, read_loader
from stackfix.inspect.machine import inspect_machine
from stackfix.inspect.machine_records import Machine
from stackfix.inspect.machine_system import read_architecture
from stackfix.inspect.places import Root, open_root
from stackfix.inspect.records import FileAt, Files, LoaderEnvironment, LoaderMachine, Refused, UnreadableElf
from stackfix.matrix.libraries import load_libraries
from stackfix.platforms import CHECKED_MACHINES

if TYPE_CHECKING:
    from stackfix.abi.records import Books
    from stackfix.inspect.fatbin_records import GpuArchs, UnreadableFatbin
    from stackfix.matrix.records import Matrix, Needs

PATIENCE = 1.0          # seconds, after which it is said that nvidia-smi is waited for
HWCAPS = "glibc-hwcaps/"
HOOK = "/_stackfix_preload_"    # what a repair's .pth file is called: few environments have one
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to look at. Paths are absolute and inside the root."""

    root: Root
    environ: Mapping[str, str]
    cwd: str
    prefix: str | None
    python: str | None
    extensions: tuple[str, ...]
    wheels: tuple[str, ...]         # on our disk
    deep: bool                      # hash every installed file


class Beside(threading.Thread, Generic[Result]):
    """A call that runs beside the rest. It ends with the process: nvidia-smi may hang, an interrupt does not wait."""

    def __init__(self, call: Callable[[], Result]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self._result: Result
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:      # noqa: BLE001 - raised again where it is waited for
            self._error = error

    def result(self, waiting: Callable[[], None] | None = None) -> Result:
        """What the call answered, or raised; `waiting` is called once where it takes long."""
        if waiting is not None:
            self.join(PATIENCE)
            if self.is_alive():
                waiting()
        self.join()
        if self._error is not None:
            raise self._error
        return self._result


@contextmanager
def open_view(asked: Asked, progress: Progress | None = None,
              waiting: Callable[[], None] | None = None) -> Iterator[View]:
    """Everything that is to be judged. Raises BadInput where the place named has no environment, extension or wheel."""
    files = DiskFiles(asked.root)
    for path in asked.extensions:
        must_be_shared_object(files, path)
    found = find_environment(asked.root, asked.environ, prefix=asked.prefix, python=asked.python,
                             running=sys.prefix if asked.root.live else None)
    reading = Beside(lambda: read_machine(asked, found.prefix))
    environment, installed = inspect_installation(asked.root, asked.environ, found, deep=asked.deep,
                                                  progress=progress, cwd=asked.cwd if asked.root.live else None)
    machine, loader = reading.result(waiting)
    if machine.architecture is None:        # a tree without a loader: its Python may tell
        loader = read_loader(asked.root, machine=architecture_of(environment, files), cpu_flags=())

    def simulated(environment: Environment, files: Files, installed: Owners) -> View:
        situation = Situation(environment=environment, machine=machine, loader=loader_environment(asked, loader),
                              configured=read_conf(asked.root), extra=asked.extensions)
        view = replace(simulate(situation, files, installed), archs=lambda path: read_archs(path, asked.root))
        if any(HOOK in each.path for each in environment.path_files):
            from stackfix.cli.repairing import with_hooks

            return with_hooks(view, asked.root)
        return view

    if not asked.wheels:
        yield simulated(environment, files, installed)
        return
    from stackfix.cli.inspecting_wheels import Laid, wheels_over

    below = Laid(environment=environment, installed=installed, files=files)
    with wheels_over(below, asked.wheels, root=asked.root, machine=machine, deep=asked.deep) as laid:
        yield simulated(laid.environment, laid.files, laid.installed)


def read_machine(asked: Asked, prefix: str) -> tuple[Machine, LoaderMachine]:
    """The machine, and how its loader is set up."""
    root = asked.root
    loader = read_loader(root, machine=read_architecture(root) or "x86_64")
    conda = prefix if root.is_folder(f"{prefix}/conda-meta") else None
    machine = inspect_machine(root, asked.environ, cache=loader.cache, conda_prefix=conda)
    glibc = release_of(machine)
    levels = [each.removeprefix(HWCAPS) for each in loader.hwcap_subfolders if each.startswith(HWCAPS)]
    return machine, replace(loader, hwcap_subfolders=hwcap_subfolders(loader.machine, levels, glibc),
                            sort_by_depth=glibc is None or glibc >= (2, 35))


def release_of(machine: Machine) -> tuple[int, int] | None:
    """glibc's release, (2, 36)."""
    parts = (machine.glibc.version or "").split(".") if machine.glibc else []
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 else None


def architecture_of(environment: Environment, files: DiskFiles) -> str:
    """What the environment's Python was built for, where the machine itself does not tell; else the running one."""
    python = environment.python
    platform = CHECKED_MACHINES.get(python.platform or "") if python else None
    found = files.at(python.executable_reaches) if python and python.executable_reaches and not platform else None
    if isinstance(found, FileAt) and not isinstance(found.elf, UnreadableElf):
        return found.elf.machine
    return platform or os.uname().machine


def loader_environment(asked: Asked, loader: LoaderMachine) -> LoaderEnvironment:
    """The loader with what the variables tell it."""
    said = asked.environ.get
    return LoaderEnvironment(machine=loader, cwd=asked.cwd, library_path=said("LD_LIBRARY_PATH"),
                             preload=said("LD_PRELOAD"), bind_now=bool(said("LD_BIND_NOW")))


def simulate(situation: Situation, files: Files, installed: Owners) -> View:
    """The situation with all that its imports open."""
    libraries = load_libraries()
    start, openings = simulate_imports(situation, libraries, files)
    return View(situation=situation, libraries=libraries, load_matrix=read_matrix, load_needs=read_needs,
                load_books=read_books, files=files, installed=installed, start=start, openings=openings)


def read_matrix() -> Matrix:
    """The whole matrix: only some findings need it."""
    from stackfix.matrix.load import load_matrix

    return load_matrix()


def read_needs() -> Needs:
    """What packages need of each other: a part of the matrix, in a tenth of the time."""
    from stackfix.matrix.needs import load_needs

    return load_needs()


def read_books() -> Books:
    """The almanac; each book of it is opened when it is asked."""
    from stackfix.abi.books import open_books

    return open_books()


def read_archs(path: str, root: Root) -> GpuArchs | UnreadableFatbin | None:
    """The GPU code of a file."""
    from stackfix.inspect.fatbin import read_gpu_archs

    return read_gpu_archs(path, root)


def must_be_shared_object(files: DiskFiles, path: str) -> None:
    """Raises BadInput for what no process could open as a library, Unreachable for what may not be read."""
    thing, found = f"--ext {path}", files.at(path)
    if found is None:
        raise BadInput(thing, "no such file", "name a compiled extension: build/name.cpython-311-x86_64-linux-gnu.so")
    if isinstance(found, Refused):
        raise Unreachable(thing, found.reason)
    if isinstance(found.elf, UnreadableElf):
        reason = "is a folder" if files.root.is_folder(path) else f"is no ELF file that can be read: {found.elf.reason}"
        raise BadInput(thing, reason, "name a compiled extension (.so)")
    elf = found.elf
    program = elf.kind != "shared" or "DF_1_PIE" in elf.flags or (elf.interpreter is not None and elf.soname is None)
    if program or not elf.dynamic:
        raise BadInput(thing, "is an ELF file, but no shared object", "name a compiled extension (.so)")


def asked_for(options: Mapping[str, Any]) -> Asked:
    """The options as places inside the root, and the variables of the process that is judged.

    A tree has none of this process's variables: what our LD_LIBRARY_PATH says is no fact of it.
    """
    tree: str | None = options["root"]
    root = Root() if tree is None else open_root(tree)
    environ = {**(os.environ if tree is None else {}), **dict(variable_of(each) for each in options["variables"])}
    prefix, python = options["prefix"], options["python"]
    return Asked(
        root=root, environ=environ, cwd=current_folder() if tree is None else "/", deep=options["deep"],
        prefix=None if prefix is None else place_of(root, prefix),
        # a bare name is looked for on PATH
        python=place_of(root, python) if python is not None and "/" in python else python,
        extensions=tuple(place_of(root, each) for each in options["extensions"]), wheels=tuple(options["wheels"]),
    )
