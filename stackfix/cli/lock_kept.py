"""What a new lock keeps of the files that are there, and what of it is to be renewed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import click

from stackfix.cli.common import CommonOptions
from stackfix.cli.lock_kept_targets import OfTargets, pins_of_targets
from stackfix.cli.options import LockOptions
from stackfix.errors import BadInput
from stackfix.quick import dataclass

CUDAS = ("cpu", "11.8", "12.0", "13.0")      # a row of the names may be for one major alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Pins that are preferred while they fit."""

    pip: tuple[tuple[str, str], ...] = ()       # (name, version)
    conda: tuple[tuple[str, str], ...] = ()     # (address, name)
    of_targets: OfTargets = ()                  # where two targets have two versions of one project

    def without(self, doubtful: Mapping[tuple[str, str], str | None]) -> Kept:
        """The same with other pins, or none, for these (manager, name)."""
        pip = {pin for pin in self.pip if ("pip", pin[0]) not in doubtful}
        conda = {pin for pin in self.conda if ("conda", pin[1]) not in doubtful}
        for (manager, name), pin in doubtful.items():
            if pin is not None:
                (pip if manager == "pip" else conda).add((name, pin) if manager == "pip" else (pin, name))
        names = {name for manager, name in doubtful if manager == "pip"}
        return Kept(pip=tuple(sorted(pip)), conda=tuple(sorted(conda)), of_targets=left_out(self.of_targets, names))


def left_out(of_targets: OfTargets, names: Collection[str]) -> OfTargets:
    """The pins without these names."""
    return tuple((python, place, tuple(pin for pin in pins if pin[0] not in names))
                 for python, place, pins in of_targets)


def kept_pins(options: LockOptions, directory: Path, common: CommonOptions) -> Kept:
    """Pins of the existing lock, without those that are to be renewed. Raises BadInput for what names no project."""
    from stackfix.request.names import is_name, normalise

    for name in options.upgrade_packages:
        if not is_name(name):
            raise BadInput(f"--upgrade-package {name}", "is not the name of a project",
                           "name one alone; a version is asked for with --with")
    if options.upgrade:
        return Kept()
    kept = existing_pins(options, directory)
    pip = {normalise(name) for name in options.upgrade_packages}
    conda = {package: name for name in options.upgrade_packages for package in packages_of(name, kept)}
    known = {name for name, _ in kept.pip} & pip | {normalise(name) for name in conda.values()}
    for name in options.upgrade_packages if not common.quiet else ():
        if normalise(name) not in known:
            click.echo(f"note: --upgrade-package {name}: the existing lock does not pin it", err=True)
    return Kept(pip=tuple(pin for pin in kept.pip if pin[0] not in pip),
                conda=tuple(pin for pin in kept.conda if pin[1] not in conda),
                of_targets=left_out(kept.of_targets, pip))


def existing_pins(options: LockOptions, directory: Path) -> Kept:
    """All pins of the files that are there; those of channels only where a conda lockfile is asked for."""
    from stackfix.write.files import CONDA_FORMATS, check_formats
    from stackfix.write.read import read_kept_pins

    pip = read_kept_pins(directory, options.name)
    of_targets = pins_of_targets(directory, options.name, pip)
    if not set(check_formats(options.formats)) & set(CONDA_FORMATS):
        return Kept(pip=pip, of_targets=of_targets)
    from stackfix.write.conda_read import read_kept_conda

    conda, beside = read_kept_conda(directory, options.name)
    return Kept(pip=pip or beside, conda=conda, of_targets=of_targets)


def packages_of(name: str, kept: Kept) -> set[str]:
    """The kept packages of channels that a name stands for: a project of the index, or a package's own name."""
    if not kept.conda:
        return set()
    from stackfix.conda.names import NameBook
    from stackfix.matrix.conda_names import load_conda_names
    from stackfix.request.names import normalise

    book = NameBook(load_conda_names())
    called = {name.lower(), *(package.name for cuda in CUDAS for package in book.packages(normalise(name), cuda))}
    return called & {package for _, package in kept.conda}
