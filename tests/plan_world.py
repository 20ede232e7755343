"""What a plan asks of a small machine: its files, and a shelf of real wheels."""

from __future__ import annotations

import hashlib
import venv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.cli.repairing import DiskGround, DiskPlaces, with_hooks
from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.situation import View
from stackfix.inspect.places import Root
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.install_choice import Offers, Wanted
from stackfix.plan.planner import make_plan
from stackfix.plan.records import InstallConda, InstallWheel, MakeLink, Plan, WriteFile
from stackfix.plan.rules_conda import Program, WantedConda
from tests.case_worlds import linked, nvidia_files
from tests.diagnose_world import World, elf_bytes
from tests.inspect_trees import make_wheel
from tests.loader_oracle.graph import Library

SCRIPTS = Path(venv.__file__).parent / "scripts"       # those that Python's own venv writes
NAMES_ALONE = frozenset({"nvidia", "cusparselt", "jax_plugins"})       # folders without code of their own
VARIABLES = {"__VENV_BIN_NAME__": "bin", "__VENV_NAME__": "venv", "__VENV_PROMPT__": "(venv) "}


class Shelf:
    """Fills plan.install_choice.Choices, nearest release first; wheels are made when they are fetched."""

    def __init__(self, world: World, folder: Path) -> None:
        self.site = world.site.removeprefix(f"{world.prefix}/")
        self.world, self.folder = world, folder
        self.files: dict[tuple[str, str], tuple[Mapping[str, Library], Sequence[str]]] = {}
        self.asked: list[tuple[Wanted, ...]] = []
        self.programs: tuple[Program, ...] = ()         # that install packages of conda
        self.wanted_of_conda: list[WantedConda] = []
        self._made: dict[tuple[str, str], Path] = {}

    def put(self, project: str, version: str, files: Mapping[str, Library] | None = None,
            requires: Sequence[str] = ()) -> Shelf:
        """A release; of NVIDIA's own what their wheels have."""
        self.files[project, version] = (linked(nvidia_files(project, version)) if files is None else files, requires)
        return self

    def offers(self, wanted: tuple[Wanted, ...]) -> Offers:
        """Each release of the first project that is wanted, with the best of the others."""
        self.asked.append(wanted)
        if any(each.cuda is not None for each in wanted):       # another torch, with all that it needs
            return Offers(sets=(tuple(self.wheel(*each) for each in self.files),))
        lists = [self.of(each) for each in wanted]
        if not all(lists):
            names = ", ".join(f"{each.project}{each.specifier}" for each, found in zip(wanted, lists, strict=True)
                              if not found)
            return Offers(reason=f"the index has no {names}")
        rest = tuple(found[0] for found in lists[1:])
        return Offers(sets=tuple((each, *rest) for each in lists[0]))

    def pinned(self) -> tuple[Wanted, ...]:
        return ()

    def lock(self) -> str | None:
        return None

    def conda_programs(self) -> tuple[Program, ...]:
        return self.programs

    def of_conda(self, wanted: WantedConda) -> Offers:
        self.wanted_of_conda.append(wanted)
        return Offers()

    def of(self, wanted: Wanted) -> list[InstallWheel]:
        versions = [version for project, version in self.files if project == wanted.project
                    and SpecifierSet(wanted.specifier).contains(version, prereleases=True)]
        near = Version(wanted.near) if wanted.near else None
        versions.sort(key=Version, reverse=near is None or all(Version(each) < near for each in versions))
        return [self.wheel(wanted.project, each) for each in versions]

    def wheel(self, project: str, version: str) -> InstallWheel:
        path = self.path(project, version)
        known = sorted(self.world.host(self.world.site).glob(f"{project.replace('-', '_')}-*.dist-info"))
        return InstallWheel(
            project=project, version=version, file=path.name, source=f"{project}=={version}", site=self.site,
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            replaces=tuple(f"{project} {each.name.removesuffix('.dist-info').partition('-')[2]}" for each in known))

    def path(self, project: str, version: str) -> Path:
        """The wheel's file, made once."""
        if (project, version) not in self._made:
            files, requires = self.files[project, version]
            self._made[project, version] = make_wheel(
                self.folder, project.replace("-", "_"), version,
                {name: elf_bytes(f"{self.world.site}/{name}", library) for name, library in files.items()},
                tag="py3-none-manylinux2014_x86_64", requires=tuple(requires))
        return self._made[project, version]

    def fetch(self, wheel: InstallWheel) -> Path:
        return self.path(wheel.project, wheel.version)


def whole(world: World) -> World:
    """The machine with what a diagnosis does not ask and a plan does: packages have code, a venv has its scripts."""
    for path in world.host(world.site).glob("*/"):
        if any(path.rglob("*.so*")) and path.name not in NAMES_ALONE and path.suffix == "":
            world.write(f"{world.site}/{path.name}/__init__.py", "")
    for each in () if world.conda_kind else (*SCRIPTS.glob("common/*"), *SCRIPTS.glob("posix/*")):
        text = each.read_text().replace("__VENV_DIR__", world.prefix)
        for name, value in VARIABLES.items():
            text = text.replace(name, value)
        world.write(f"{world.prefix}/bin/{each.name}", text)
    return world


def shelf_for(world: World) -> Shelf:
    """An empty shelf, beside the machine."""
    folder = world.folder.parent / f"{world.folder.name}-shelf"
    folder.mkdir(exist_ok=True)
    return Shelf(world, folder)


def plan_of(world: World, shelf: Shelf | None = None, *, method: str = "auto", turned: bool = False,
            view: View | None = None, kernels: bool = False) -> Plan:
    """The plan for a machine; `turned`: of the same findings the other way round."""
    root, shelf = Root(str(world.folder)), shelf or shelf_for(world)
    view = with_hooks(view or world.view(load_libraries()), root)
    diagnosis = diagnose(view)
    if turned:
        diagnosis = replace(diagnosis, findings=diagnosis.findings[::-1])
    with DiskGround(view, root, shelf.fetch) as ground:
        return make_plan(view, diagnosis, ground=ground, places=DiskPlaces(root, view.environment.prefix),
                         resolve=shelf, method=method, kernels=kernels)


def kinds(plan: Plan) -> tuple[str, ...]:
    """Kinds of its actions, without advice."""
    return tuple(each.kind for each in plan.actions if each.kind != "advice")


def cured(plan: Plan) -> list[str]:
    """Codes that it cures, advice left out."""
    return sorted(code for each in plan.actions if each.kind != "advice" for code in each.cures)


def advice(plan: Plan) -> str:
    """All commands that are advised."""
    return "\n".join(each.command or "" for each in plan.actions if each.kind == "advice")


def apply_plainly(world: World, plan: Plan, shelf: Shelf) -> None:
    """The plan's steps, made on disk one after the other; its variables as activation leaves them."""
    for step in (step for action in plan.actions for step in action.steps):
        if isinstance(step, InstallWheel):
            files, requires = shelf.files[step.project, step.version]
            world.wheel(step.project, step.version, files, requires=requires)
            continue
        if isinstance(step, InstallConda):
            raise TypeError(step)       # a shelf has none
        path = f"{world.prefix}/{step.path}"
        if isinstance(step, WriteFile):
            world.write(path, step.text)
        else:
            world.host(path).unlink(missing_ok=True)
        if isinstance(step, MakeLink):
            world.link(path, step.target)
    for name, value in plan.variables:
        world.variables.pop(name, None)
        if value is not None:
            world.environ(**{name: value})
