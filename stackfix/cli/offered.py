"""The commands that are offered where the answer is no: what asks for a change, of the same sources."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackfix.cli.followed import Followed
    from stackfix.cli.options import LockOptions
    from stackfix.resolve.records import StackRequest


def files_needed(asked: StackRequest, options: LockOptions) -> tuple[str, ...]:
    """The environment.yml files with lines for channels alone among what is asked."""
    lines = [line.origin for line in asked.conda_lines]
    return tuple(file for file in options.requirement_files
                 if any(origin.startswith(f"{Path(options.base, file)} line ") for origin in lines))


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

    What only an environment.yml can say is asked by its file: the line that an offer changes is changed there. What a
    setting asks stays there, too: where it has to go, a comment says so.
    """
    from stackfix.cli.command_line import join_command, request_arguments
    from stackfix.sources.address import without_credentials

    asked, changes = (asked, ()) if followed is None else followed.beside(asked)
    kept = files_needed(asked, options)
    arguments = request_arguments(beside_files(asked, options, kept) if kept else asked)
    for file in kept:
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
