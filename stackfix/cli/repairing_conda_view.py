"""An environment as it would be with a package of conda, which conda has linked into a folder of ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from stackfix.apply.conda import conda_paths, keep_linked
from stackfix.apply.transaction import made_before, readable
from stackfix.apply.tree import Tree
from stackfix.cli.repairing_files import going
from stackfix.errors import BadInput
from stackfix.inspect.conda import CondaContent, parse_package
from stackfix.inspect.environment import searched
from stackfix.inspect.environment_files import InstalledFiles
from stackfix.inspect.environment_judge import Claim, hexadecimal
from stackfix.inspect.environment_objects import find_shared_objects, library_folders
from stackfix.inspect.environment_records import Environment, Note, Owner
from stackfix.inspect.places import Root
from stackfix.inspect.wheel_environment import Claims
from stackfix.inspect.wheel_file import temporary_root
from stackfix.inspect.wheel_overlay import Ground, OverlayFiles
from stackfix.plan.effect import Laid
from stackfix.plan.effect_wheel import Coming, WheelFiles
from stackfix.plan.records import InstallConda
from stackfix.quick import replace

COMPILED = (".pyc", "/__pycache__")
Link: TypeAlias = Callable[[InstallConda, Path], None]


class CondaClaims:
    """Owners with a package's of conda over those below; the release that it replaces owns nothing any more."""

    def __init__(self, ours: InstalledFiles, replaced: str, below: Claims) -> None:
        self._ours, self._replaced, self._below = ours, replaced, below

    def claims(self, path: str) -> list[Claim]:
        """In the order of an inspection: conda's first."""
        kept = [each for each in self._below.claims(path) if not self._is_replaced(each[0])]
        return [*self._ours.claims(path), *kept]

    def owners(self, path: str) -> tuple[Owner, ...]:
        """Who claims the path, each once."""
        return tuple(dict.fromkeys(owner for owner, _, _ in self.claims(path)))

    def _is_replaced(self, owner: Owner) -> bool:
        return (owner.manager, owner.name) == ("conda", self._replaced)


@contextmanager
def linked(step: InstallConda, prefix: str, link: Link) -> Iterator[tuple[Root, CondaContent]]:
    """The package in a root of its own, at its later places. Raises what conda and its record give reason for."""
    with temporary_root() as upper:
        into = Path(upper.host(prefix))
        into.mkdir(parents=True)
        link(step, into)
        with Tree(into) as tree, readable(tree):
            keep_linked(tree, "", step)
        try:
            content = parse_package(json.loads((into / step.record).read_text()), f"{prefix}/{step.record}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(step.record, "is no record of conda's") from error
        yield upper, content


def laid_conda(below: Laid, installed: Claims, step: InstallConda, package: tuple[Root, CondaContent],
               root: Root) -> tuple[Laid, WheelFiles]:
    """The environment with the package over it, and what it changes on disk. Raises Drifted, BadInput, Unreachable."""
    environment, prefix, (upper, content) = below.environment, below.environment.prefix, package
    with Tree(root.host(prefix)) as tree, readable(tree):
        away = tuple(going(tree.prefix, path) for path in conda_paths(tree, step, made_before(tree)))
    ours = InstalledFiles(upper)
    ours.add(content.owner, prefix, (prefix,), ((each.path, each.digest, each.size) for each in content.files))
    claims = CondaClaims(ours, step.project, installed)
    ground = Ground(root)
    over = [f"{ground.add(path.rpartition('/')[0])}/{path.rpartition('/')[2]}"
            for path in (f"{prefix}/{each.path}" for each in content.files)]
    hidden = [place[0] for each in away for place in (ground.place(f"{prefix}/{each.path}"),) if place is not None]
    files = OverlayFiles(upper, ground, over=over, hidden=hidden, below=below.files)
    coming = tuple(Coming(path=each.path, size=each.size or 0, sha256=hexadecimal(each.digest))
                   for each in content.files if not each.path.endswith(COMPILED))
    size = Path(upper.host(content.package.record)).stat().st_size
    record = Coming(path=step.record, size=size, sha256=None)
    laid = Laid(environment=with_package(environment, ours, content, claims), installed=claims, files=files)
    return laid, WheelFiles(going=away, coming=tuple(sorted((*coming, record), key=lambda each: each.path)))


def with_package(environment: Environment, ours: InstalledFiles, content: CondaContent,
                 claims: CondaClaims) -> Environment:
    """The record with the package in place of the one of its name."""
    name, conda, notes = content.package.name, environment.conda, list[Note]()
    if conda is None:
        raise AssertionError(name)      # the rules propose no such step
    new = find_shared_objects(ours, searched(environment.prefix, environment.sites, conda), notes)
    here = {each.path for each in new}
    objects = [each for each in environment.shared_objects if each.path not in here and (
        not each.owners or any((owner.manager, owner.name) != ("conda", name) for owner in each.owners))]
    objects += [replace(each, owners=claims.owners(each.path)) for each in new]
    objects.sort(key=lambda each: each.path)
    packages = [each for each in conda.packages if each.name != name]
    return replace(
        environment, conda=replace(conda, packages=tuple(sorted((*packages, content.package),
                                                                key=lambda each: each.record))),
        shared_objects=tuple(objects), library_folders=library_folders(objects),
        file_faults=tuple(each for each in environment.file_faults
                          if (each.owner.manager, each.owner.name) != ("conda", name)),
        notes=(*environment.notes, *notes))
