"""Opens the real conda channels for a lock, and chooses the search that its formats ask for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackfix.cli.common import CommonOptions
from stackfix.errors import BadInput, Unreachable
from stackfix.platforms import LINUX, has_channels
from stackfix.quick import replace

if TYPE_CHECKING:
    from stackfix.conda.partner import CondaSide
    from stackfix.matrix.records import Matrix
    from stackfix.resolve.records import Lock, StackRequest
    from stackfix.resolve.solve import Solver
    from stackfix.sources.conda_channels import CondaChannels

ALWAYS = ("python", "pip", "pytorch", "libstdcxx")      # what a layout asks for whatever the request


@contextmanager
def channels_can_be_left_out(*, asked: bool) -> Iterator[None]:
    """Lets an error about a channel say how to do without, where no conda format was asked for."""
    try:
        yield
    except Unreachable as fault:
        from stackfix.sources.conda_errors import BadChannel, ChannelUnreachable

        if asked or not isinstance(fault, (BadChannel, ChannelUnreachable)):
            raise
        without = "leave the conda lock out: --format requirements --format pylock"
        hint = f"{fault.hint}; or {without}" if fault.hint else without
        raise type(fault)(fault.thing, fault.reason, hint) from fault


class OpenChannels:
    """Opens channels by the names that --channel gives; () are those of the settings."""

    def __init__(self, matrix: Matrix, snapshot: Path, common: CommonOptions) -> None:
        self._matrix, self._snapshot, self._common = matrix, snapshot, common
        self._opened: dict[tuple[str, ...], CondaChannels] = {}

    def __call__(self, names: tuple[str, ...]) -> CondaChannels:
        """The channels, always the same for the same names. Raises BadInput."""
        if names not in self._opened:
            from stackfix.sources.conda_channels import open_channels
            from stackfix.sources.settings_files import read_text

            common = self._common
            quiet = common.quiet or common.as_json
            self._opened[names] = open_channels(
                names, bases=self._matrix.sources.conda_channels, environ=os.environ, home=Path.home(),
                cache_dir=common.cache_dir, offline=common.offline, progress=not quiet and sys.stderr.isatty(),
                snapshot_dir=self._snapshot if self._snapshot.is_dir() else None,
                read=common.seen.reading(read_text),
            )
            for setting in self._opened[names].ignored if common.verbose and not common.quiet else ():
                click.echo(f"not followed: {setting}", err=True)
        return self._opened[names]

    def close(self) -> None:
        """Ends what they still read."""
        for channels in self._opened.values():
            channels.close()


def solver_for(
    formats: tuple[str, ...], request: StackRequest, matrix: Matrix, directory: Path | None, common: CommonOptions,
    *, kept: tuple[tuple[str, str], ...], until: ExitStack,
) -> Solver:
    """The search: of wheels alone, of channels alone, or of stacks that both hold. Channels stay open `until` then."""
    from stackfix.write.files import CONDA_FORMATS, PIP_FORMATS

    if not set(formats) & set(CONDA_FORMATS):
        from stackfix.resolve.solve import solve

        return solve
    from stackfix.conda.decide import conda_solver, joint_solver
    from stackfix.matrix.toml_files import matrix_directory

    folder = matrix_directory() if directory is None else directory
    opened = OpenChannels(matrix, folder / "conda", common)
    until.callback(opened.close)
    note_channels(opened(request.channels), common)
    read_ahead(opened(request.channels), request)
    side = conda_side(opened, matrix, directory, kept)
    return joint_solver(side) if set(formats) & set(PIP_FORMATS) else conda_solver(side)


def formats_that_hold(formats: tuple[str, ...], request: StackRequest, *, asked: tuple[str, ...]) -> tuple[str, ...]:
    """The formats without those of conda where no place has channels. Raises BadInput where nothing else was asked."""
    from stackfix.write.files import PIP_FORMATS

    if any(map(has_channels, request.platforms)):
        return formats
    of_conda = next((name for name in asked if name not in PIP_FORMATS), None)
    if of_conda is not None:
        raise BadInput(f"--format {of_conda}", f"no records of channels are for {' and '.join(request.platforms)}",
                       f"a conda side is there for {', '.join(LINUX)}; write --format requirements --format pylock")
    return tuple(name for name in formats if name in PIP_FORMATS)


def with_conda_notes(lock: Lock, request: StackRequest, formats: tuple[str, ...]) -> Lock:
    """The lock with what is to be known of its conda side, places that have none among it."""
    from stackfix.write.files import PIP_FORMATS

    notes: tuple[str, ...] = ()
    if lock.conda:
        from stackfix.conda.notes import conda_notes

        notes = conda_notes(lock.conda, beside=bool(lock.targets))
    without = [place for place in request.platforms if not has_channels(place)]
    if without and set(formats) - set(PIP_FORMATS):
        word = "it" if len(without) == 1 else "them"
        notes += (f"no conda file has {' or '.join(without)}: stackfix has no records of channels for {word}",)
    return replace(lock, notes=(*lock.notes, *notes)) if notes else lock


def note_channels(channels: CondaChannels, common: CommonOptions) -> None:
    """Notes what the channels rest on: their settings, and the cache where nobody is asked.

    What servers say of channels is not noted: py-rattler asks them.
    """
    from stackfix.sources.conda_kept import KEPT

    if not channels.offline:
        common.seen.cannot_be_kept("the channels")
    common.seen.folder(common.cache_dir / KEPT)
    for path in [path for path in common.seen.texts if path.endswith("condarc")]:
        common.seen.folder(Path(f"{path}.d"))


def read_ahead(channels: CondaChannels, request: StackRequest) -> None:
    """Has the channels read what will likely be asked of them while the package index answers."""
    from stackfix.conda.candidates import searched
    from stackfix.request.names import leading_name

    named = (leading_name(requirement.text) for requirement in request.requirements)
    names = dict.fromkeys((*ALWAYS, *(name for name in named if name)))
    platform = next(filter(has_channels, request.platforms))
    channels.prefetch(searched(channels), platform, tuple(names))


def conda_side(
    opened: OpenChannels, matrix: Matrix, directory: Path | None, kept: tuple[tuple[str, str], ...]
) -> CondaSide:
    """The channels, the names of their packages, and the machine that the lock is for."""
    from stackfix.conda.names import NameBook
    from stackfix.conda.partner import CondaSide
    from stackfix.conda.virtual import virtual_packages
    from stackfix.matrix.conda_names import load_conda_names

    return CondaSide(
        opened=opened, names=NameBook(load_conda_names(directory)), kept=kept,
        virtual=partial(virtual_packages, matrix=matrix, environ=os.environ),
    )
