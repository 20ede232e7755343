"""Which installed projects there are, what they require of each other, and which shared objects are theirs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from stackfix.diagnose.releases import admits
from stackfix.inspect.environment_records import Distribution, Environment, Owner, SharedObject
from stackfix.matrix.library_records import ImportLoads, Libraries

NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
SEPARATORS = re.compile(r"[-_.]+")


class Projects:
    """The installed projects of one environment, each by the copy that Python imports."""

    def __init__(self, environment: Environment, libraries: Libraries) -> None:
        self.environment = environment
        self.distributions: dict[str, Distribution] = {}
        for each in environment.distributions:
            self.distributions.setdefault(each.name, each)
        self.rows: dict[str, ImportLoads] = {}
        for row in libraries.imports:
            found = self.distributions.get(row.project)
            if found is not None and row.project not in self.rows and \
                    (row.versions is None or admits(row.versions, found.version)):
                self.rows[row.project] = row
        self._closures: dict[str, frozenset[str]] = {}

    @cached_property
    def requires(self) -> Mapping[str, tuple[str, ...]]:
        """Installed projects that each one requires, extras left out."""
        return {name: tuple(each for each in dict.fromkeys(required_names(distribution.requires))
                            if each in self.distributions and each != name)
                for name, distribution in self.distributions.items()}

    def closure(self, project: str) -> frozenset[str]:
        """All installed projects that one requires, directly or not; without itself. Cycles do no harm."""
        if project not in self._closures:
            seen, ahead = set[str](), [project]
            while ahead:
                new = [each for each in self.requires.get(ahead.pop(), ()) if each not in seen]
                seen.update(new)
                ahead += new
            self._closures[project] = frozenset(seen - {project})
        return self._closures[project]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All projects, each after what it requires; in a cycle the one that comes first by name is last."""
        done: dict[str, None] = {}
        for root in sorted(self.distributions):
            path = [(root, iter(self.requires[root]))]
            entered = {root}
            while path:
                name, ahead = path[-1]
                following = next((each for each in ahead if each not in done and each not in entered), None)
                if following is None:
                    path.pop()
                    done.setdefault(name)
                else:
                    entered.add(following)
                    path.append((following, iter(self.requires[following])))
        return tuple(done)

    def first(self, project: str | None, also: Iterable[str] = ()) -> tuple[str, ...]:
        """Projects with a row whose import comes before that of `project`, in their order.

        A row says itself what is imported before; other packages may import all that they require.
        """
        wanted = dict.fromkeys(also)
        if project in self.rows:
            wanted |= dict.fromkeys(self.rows[project].after)
        elif project is not None:
            wanted |= dict.fromkeys(self.closure(project))
        found = dict[str, None]()
        for each in sorted((each for each in wanted if each in self.rows), key=torch_first):
            found |= dict.fromkeys((*self.first(each), each))
        found.pop(project or "", None)
        return tuple(found)

    @cached_property
    def modules(self) -> Mapping[str | None, tuple[SharedObject, ...]]:
        """Extension modules that the environment's Python can import, by project; None for those that nobody owns."""
        found = defaultdict[str | None, list[SharedObject]](list)
        for each in self.environment.shared_objects:
            if each.module is not None and self.fits(each.tag):
                found[self.project_of(each)].append(each)
        return {project: tuple(objects) for project, objects in found.items()}

    def fits(self, tag: str | None) -> bool:
        """Whether the interpreter looks for extension modules with this tag."""
        python = self.environment.python
        if python is None or tag is None:
            return python is not None
        if python.implementation == "cpython":
            suffix = "t" if python.free_threaded else ""
            own = f"cpython-{python.minor.replace('.', '')}{suffix}"
            return tag in {own, f"abi3{suffix}"} or tag.startswith(f"{own}-")
        return tag.startswith(f"{python.implementation}{python.minor.replace('.', '')}-")

    def project_of(self, object_: SharedObject) -> str | None:
        """The project that a file belongs to: by its owner, or by the source folder of an editable installation."""
        for owner in object_.owners:
            if owner.manager != "conda":
                return owner.name
            return self._conda_project(owner, object_)
        return next((each.project for each in self.environment.editables for target in each.targets
                     if each.project is not None and object_.path.startswith(f"{target}/")), None)

    def _conda_project(self, owner: Owner, object_: SharedObject) -> str:
        """A conda package has its own name, and may hold several projects."""
        mine = self._by_conda_package.get(owner.name, ())
        top = (object_.module or "").partition(".")[0].lower()
        return next((each for each in mine if each.replace("-", "_") == top), mine[0] if mine else owner.name)

    @cached_property
    def _by_conda_package(self) -> Mapping[str, tuple[str, ...]]:
        found = defaultdict[str, list[str]](list)
        for each in self.distributions.values():
            if each.conda_package is not None:
                found[each.conda_package].append(each.name)
        return {package: tuple(names) for package, names in found.items()}


def torch_first(project: str) -> tuple[bool, str]:
    """An order of imports: most that is imported together with torch is imported after it."""
    return project != "torch", project


def required_names(requires: Iterable[str]) -> Iterator[str]:
    """Normalised names of requirements; those of an extra are left out. What is no requirement is passed over."""
    for each in requires:
        text, _, marker = each.partition(";")
        found = NAME.match(text)
        if found and "extra" not in marker:
            yield SEPARATORS.sub("-", found[1]).lower()
