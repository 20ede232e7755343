"""Opens the real conda channels for a lock, and chooses the search that its formats ask for."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.cli.common import CommonOptions

if TYPE_CHECKING:
    from stackfix.conda.partner import CondaSide
    from stackfix.conda.records import Channels
    from stackfix.matrix.records import Matrix
    from stackfix.resolve.solve import Solver


def solver_for(
    formats: tuple[str, ...], matrix: Matrix, directory: Path | None, common: CommonOptions,
    kept: tuple[tuple[str, str], ...],
) -> Solver:
    """The search: of wheels alone, of channels alone, or of stacks that both hold."""
    from stackfix.write.files import CONDA_FORMATS, PIP_FORMATS

    if not set(formats) & set(CONDA_FORMATS):
        from stackfix.resolve.solve import solve

        return solve
    from stackfix.conda.decide import conda_solver, joint_solver

    side = conda_side(matrix, directory, common, kept)
    return joint_solver(side) if set(formats) & set(PIP_FORMATS) else conda_solver(side)


def conda_side(
    matrix: Matrix, directory: Path | None, common: CommonOptions, kept: tuple[tuple[str, str], ...]
) -> CondaSide:
    """The channels of this machine's settings, the names of their packages, and the machine that the lock is for."""
    from stackfix.conda.names import NameBook
    from stackfix.conda.partner import CondaSide
    from stackfix.conda.virtual import virtual_packages
    from stackfix.matrix.conda_names import load_conda_names
    from stackfix.matrix.toml_files import matrix_directory

    folder = matrix_directory() if directory is None else directory
    return CondaSide(
        opened=opener(matrix, folder / "conda", common), names=NameBook(load_conda_names(directory)), kept=kept,
        virtual=partial(virtual_packages, matrix=matrix, environ=os.environ),
    )


def opener(matrix: Matrix, snapshot: Path, common: CommonOptions) -> Callable[[tuple[str, ...]], Channels]:
    """Opens the channels of these names, or of the settings where there are none."""
    def opened(names: tuple[str, ...]) -> Channels:
        from stackfix.sources.conda_channels import open_channels

        return open_channels(
            names, bases=matrix.sources.conda_channels, environ=os.environ, home=Path.home(),
            cache_dir=common.cache_dir, offline=common.offline, snapshot_dir=snapshot if snapshot.is_dir() else None,
        )

    return opened
