"""The commands that are offered where the answer is no: what asks for a change, of the same sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackfix.cli.followed import Followed
    from stackfix.cli.options import LockOptions
    from stackfix.resolve.records import Requirement, StackRequest


def files_needed(asked: StackRequest, options: LockOptions) -> tuple[str, ...]:
    """The environment.yml files with lines for channels alone among what is asked."""
    lines = [line.origin for line in asked.conda_lines]
    return tuple(file for file in options.requirement_files
                 if any(origin.startswith(f"{Path(options.base, file)} line ") for origin in lines))


def files_unchanged(asked: StackRequest, options: LockOptions, first: StackRequest) -> tuple[str, ...]:
    """The requirements files, where `asked` has each line of them as the user's own request has: with its hashes."""
    from stackfix.cli.request_environment import is_environment_yml

    files = tuple(name for name in options.requirement_files if not is_environment_yml(name))
    lines = set(lines_of_files(first, options)) if files else set()
    return files if lines and lines <= set(asked.requirements) else ()


def lines_of_files(asked: StackRequest, options: LockOptions) -> Iterator[Requirement]:
    """What requirements files ask, and what they include: neither options, nor an environment.yml, nor settings."""
    from stackfix.cli.request import read_files

    read = set(read_files(options)[0])
    return (one for one in asked.requirements if one in read)


def beside_files(asked: StackRequest, options: LockOptions, files: tuple[str, ...]) -> StackRequest:
    """What is asked apart from what these files say."""
    own = tuple(f"{Path(options.base, file)} line " for file in files)
    said = dict(asked.places)
    empty = type(asked)()
    return asked.with_(
        requirements=tuple(one for one in asked.requirements if not one.origin.startswith(own)),
        cuda=None if said.get("cuda", "").startswith(own) else asked.cuda,
        pythons=() if said.get("python", "").startswith(own) else asked.pythons,
        platforms=empty.platforms if said.get("platform", "").startswith(own) else asked.platforms,
        channels=asked.channels if options.channels else (),
    )


def offered_command(asked: StackRequest, options: LockOptions, followed: Followed | None = None) -> str:
    """The command line that asks `asked` of the same sources, into the same folder. Credentials are left out.

    A requirements file that an offer leaves as it is is named, and else spelled out: then its hashes are not asked for.
    What only an environment.yml can say is asked by its file: the line that an offer changes is changed there. What a
    setting asks stays there, too: where it has to go, a comment says so.
    """
    from stackfix.cli.command_line import join_command, request_arguments
    from stackfix.sources.address import without_credentials

    plain = files_unchanged(asked, options, followed.stack) if followed is not None else ()
    asked, changes = (asked, ()) if followed is None else followed.beside(asked)
    kept = files_needed(asked, options)
    spelled = beside_files(asked, options, kept) if kept else asked
    if plain:
        own = set(lines_of_files(asked, options))
        spelled = spelled.with_(requirements=tuple(one for one in spelled.requirements if one not in own))
    arguments = request_arguments(spelled)
    for file in (*kept, *plain):
        arguments += ("-r", file)
    for flag, value in (
        ("--index-url", options.index_url),
        *(("--extra-index-url", url) for url in options.extra_index_urls),
        *(("--allow-builds", project) for project in options.allow_builds),
        ("--torch-index", options.torch_index),
        ("--flash-attn-source", options.flash_attn_source),
    ):
        if value is not None:
            arguments += (flag, without_credentials(value))
    for flag, value in (
        ("--matrix", options.matrix_directory), ("--name", options.name), ("-o", options.directory),
        *(("--format", name) for name in options.formats),
    ):
        if value is not None:
            arguments += (flag, value)
    return "  # ".join((join_command(arguments), *changes))
