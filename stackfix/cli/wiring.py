"""Opens the real matrix, index and release source for a command."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackfix.cli import early_ask
from stackfix.cli.common import CommonOptions
from stackfix.cli.followed import follow_settings, with_settings_notes
from stackfix.cli.offered import offered_command
from stackfix.cli.options import LockOptions
from stackfix.cli.progress import Bars
from stackfix.errors import BadInput
from stackfix.platforms import has_channels, split_place
from stackfix.quick import replace

if TYPE_CHECKING:
    from stackfix.abi.records import Books
    from stackfix.cli.followed import Followed
    from stackfix.cli.request import ReadRequest
    from stackfix.cli.seen import ReadText, Seen
    from stackfix.matrix.records import Matrix, Sources
    from stackfix.resolve.records import Lock, StackRequest
    from stackfix.sources.index import PackageIndex
    from stackfix.sources.records import IndexSettings
    from stackfix.sources.releases import AnyReleases
    from stackfix.sources.torch_index import TorchIndex


def index_settings(
    *, index_url: str | None, extra_index_urls: tuple[str, ...], seen: Seen | None = None,
) -> IndexSettings:
    """Where to look: options, then uv's and pip's settings, then pip's own default. What is read is noted in `seen`."""
    from stackfix.sources.settings import read_settings
    from stackfix.sources.settings_files import netrc_places, read_text

    read: ReadText = read_text
    if seen is not None:
        read = seen.reading(read_text)
        for path in netrc_places(os.environ, Path.home()):
            seen.text(path)
    return read_settings(
        index_url=index_url, extra_index_urls=extra_index_urls, environ=os.environ, home=Path.home(), read=read,
        project=Path.cwd(),
    )


def open_index(
    common: CommonOptions, *, index_url: str | None, extra_index_urls: tuple[str, ...],
) -> PackageIndex:
    """The package index of the user's settings; a context manager."""
    from stackfix.sources.index import PackageIndex

    settings = index_settings(index_url=index_url, extra_index_urls=extra_index_urls)
    return PackageIndex(settings, cache_dir=common.cache_dir, offline=common.offline)


def decide_lock(
    request: ReadRequest, options: LockOptions, common: CommonOptions, *, formats: tuple[str, ...],
    kept_conda: tuple[tuple[str, str], ...] = (),
) -> Lock:
    """The lock of one request for these formats, with the real matrix, index, release source and channels."""
    from stackfix.cli.wiring_conda import formats_that_hold, with_conda_notes
    from stackfix.write.files import PIP_FORMATS

    held = formats_that_hold(formats, request.stack, asked=options.formats)
    directory = matrix_folder(options.matrix_directory)
    settings = index_settings(
        index_url=request.index.index_url if options.index_url is None else options.index_url,
        extra_index_urls=options.extra_index_urls or request.index.extra_index_urls, seen=common.seen,
    )
    tell_ignored(settings, common)
    common.seen.indexes = public_addresses(settings)
    followed = follow_settings(
        request.stack, settings, torch_index=options.torch_index, directory=directory, common=common)
    wheels = bool(set(held) & set(PIP_FORMATS))
    lock = lock_of_sources(
        followed, options, common, directory=directory, formats=held, wheels=wheels, kept_conda=kept_conda)
    lock = with_index_notes(with_settings_notes(lock, followed), followed.settings)
    return with_conda_notes(lock if wheels else replace(lock, targets=()), request.stack, formats)


def lock_of_sources(
    followed: Followed, options: LockOptions, common: CommonOptions, *, directory: Path | None,
    formats: tuple[str, ...], wheels: bool, kept_conda: tuple[tuple[str, str], ...],
) -> Lock:
    """The lock that the sources give, all of them open meanwhile. `wheels`: whether any format is one of pip's."""
    from stackfix.cli.builds import allowed_builds
    from stackfix.matrix.load import load_matrix

    asking, settings = followed.stack, followed.settings
    if not wheels:
        asking = asking.with_(platforms=tuple(filter(has_channels, asking.platforms)))
    builds = allowed_builds(options, common)
    index, known = begun_index(settings, common, directory)
    with Bars(shown=not (common.quiet or common.as_json)) as bars, index:
        index.attend(progress=bars.index, builds=builds)
        matrix = load_matrix(directory) if known is None else known
        if wheels:
            index.prefetch_pages(expected_projects(asking, matrix))
            index.let_ask()
        # the index answers while the rest is imported
        from stackfix.cli.wiring_conda import channels_can_be_left_out, solver_for
        from stackfix.resolve.decide import decide

        with (
            ExitStack() as until,
            closing(open_release_source(options.flash_attn_source, matrix.sources, settings, common, bars)) as releases,
            open_torch_index(followed.torch_index, matrix.sources, settings, directory, common) as torch_wheels,
            channels_can_be_left_out(asked=bool(options.formats)),
        ):
            solver = solver_for(formats, asking, matrix, directory, common, kept=kept_conda, until=until)
            lock = decide(
                asking, matrix, index, releases, command=lambda asked: offered_command(asked, options, followed),
                books=symbol_books(directory), solver=solver, wheels=wheels, torch_wheels=torch_wheels,
            )
    note_answers(index, releases, torch_wheels, common)
    return lock


def note_answers(index: PackageIndex, releases: AnyReleases, torch_wheels: TorchIndex, common: CommonOptions) -> None:
    """Notes what the sources answered, and says where nothing could be kept."""
    common.seen.answered(index.answers())
    note_releases(releases, common)
    note_torch_index(torch_wheels, common)
    tell_cache(index, common)


def begun_index(
    settings: IndexSettings, common: CommonOptions, directory: Path | None,
) -> tuple[PackageIndex, Matrix | None]:
    """The index that was asked ahead, with the matrix that told what for; else one that was asked nothing, and None."""
    begun = early_ask.taken(settings, cache_dir=common.cache_dir, offline=common.offline)
    if begun is not None:
        return begun.index, begun.matrix if directory is None else None
    from stackfix.sources.asker import begin_asker
    from stackfix.sources.index import PackageIndex

    asker = None if common.offline else begin_asker(settings, common.cache_dir)
    index = PackageIndex(settings, cache_dir=common.cache_dir, offline=common.offline)
    index.ask_by(asker)
    return index, None


def public_addresses(settings: IndexSettings) -> tuple[str, ...]:
    """The indexes in their order, without credentials."""
    from stackfix.sources.address import without_credentials

    return tuple(map(without_credentials, settings.indexes))


def with_index_notes(lock: Lock, settings: IndexSettings) -> Lock:
    """The lock with what is to be known of packages that an additional index has in the default one's place."""
    from stackfix.resolve.index_notes import index_notes

    pinned = {route.project for route in settings.routes}
    told = index_notes(lock.targets, default=public_addresses(settings)[-1], pinned=pinned)
    return replace(lock, notes=(*lock.notes, *told))


def note_releases(releases: AnyReleases, common: CommonOptions) -> None:
    """Notes what the release source answered: a folder and a source out of reach say nothing that can be kept."""
    if releases.answers is None:
        common.seen.cannot_be_kept("the release source")
    else:
        common.seen.answered(releases.answers)


def note_torch_index(wheels: TorchIndex, common: CommonOptions) -> None:
    """Notes what the torch index answered: a run that asked it, or could not reach it, is not kept."""
    if wheels.away is not None or wheels.asked:
        common.seen.cannot_be_kept("the torch index")
    common.seen.answered(wheels.answers())


def matrix_folder(text: str | None) -> Path | None:
    """The folder of another copy of the matrix. Raises BadInput where there is none."""
    if text is not None and not Path(text).is_dir():
        raise BadInput(f"--matrix {text}", "is no folder" if Path(text).exists() else "no such folder",
                       "name one that holds a copy of the matrix, or leave it out")
    return None if text is None else Path(text)


def symbol_books(directory: Path | None) -> Books:
    """What the symbols of published wheels tell: of the named copy of the matrix where it has that, else our own."""
    from stackfix.abi.books import open_books

    own = None if directory is None else directory / "abi"
    return open_books(own if own is not None and own.is_dir() else None)


def tell_cache(index: PackageIndex, common: CommonOptions) -> None:
    """Say on stderr that nothing could be kept, once everything that was to be kept has been tried."""
    if index.cache.problem is not None and not common.quiet:
        click.echo(f"note: {index.cache.problem}: nothing is kept for the next run", err=True)


def expected_projects(request: StackRequest, matrix: Matrix) -> tuple[str, ...]:
    """Projects that the lock will likely hold, to be asked for first; a wrong guess costs one request."""
    from stackfix.matrix import hints
    from stackfix.request.names import leading_name

    asked = (leading_name(requirement.text) for requirement in request.requirements)
    return hints.expected_projects(
        matrix, [name for name in asked if name], torch=request.torch, cuda=request.cuda,
        platforms=[platform for platform, variant in map(split_place, request.platforms) if not variant])


def open_release_source(
    source: str | None, addresses: Sources, settings: IndexSettings, common: CommonOptions, bars: Bars,
) -> AnyReleases:
    """Where flash-attn's wheels are: the matrix's own source, a mirror, or a folder."""
    from stackfix.sources.releases import open_releases

    return open_releases(
        source, sources=addresses, settings=settings, cache_dir=common.cache_dir, offline=common.offline,
        progress=bars.download,
    )


def open_torch_index(
    base: str | None, addresses: Sources, settings: IndexSettings, directory: Path | None, common: CommonOptions,
) -> TorchIndex:
    """The torch index, or a copy of it at `base`; nothing is asked before a stack wants one of its builds."""
    from stackfix.matrix.torch_index import load_torch_index
    from stackfix.sources.torch_index import TorchIndex, check_base, open_path

    return TorchIndex(
        read=addresses.torch_index if base is None else check_base(base), written=addresses.torch_index,
        rows=lambda path: load_torch_index(path, directory),
        open_pages=lambda address: open_path(
            address, settings=settings, cache_dir=common.cache_dir, offline=common.offline),
    )


def tell_ignored(settings: IndexSettings, common: CommonOptions) -> None:
    """Say on stderr which settings of this machine steer no lock (with -v)."""
    if common.verbose and not common.quiet:
        for setting in settings.ignored:
            click.echo(f"ignored, it says something of this machine alone: {setting}", err=True)
