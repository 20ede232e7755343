"""What every command takes: --json, -q, -v, --color, --offline, --cache-dir."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from stackfix.cli.seen import Seen
from stackfix.errors import BadInput
from stackfix.quick import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """What every command takes."""

    as_json: bool
    quiet: bool
    verbose: int
    offline: bool
    cache_dir: Path
    seen: Seen = field(default_factory=Seen, compare=False, repr=False)     # what the run rests on


def common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--json, -q, -v, --color, --offline, --cache-dir; and no option or argument of the command may be empty."""
    function = without_empty_values(function)
    for decorate in reversed((
        click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
        click.option("-q", "--quiet", is_flag=True, help="Say only what failed."),
        click.option("-v", "--verbose", count=True, help="Say more."),
        click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
                     help="Colour (NO_COLOR is respected)."),
        click.option("--offline", is_flag=True, help="Use the cache only."),
        click.option("--cache-dir", metavar="DIR", default=None, help="[env: STACKFIX_CACHE_DIR]"),
    )):
        function = decorate(function)
    return function


def without_empty_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, called once no value is empty: `--torch "$UNSET"` must not ask for another stack."""
    @functools.wraps(function)
    def checked(*args: Any, **values: Any) -> Any:
        for thing in empty_values(click.get_current_context()):
            raise BadInput(thing, "is empty", "give it a value, or leave it out")
        return function(*args, **values)

    return checked


def empty_values(context: click.Context) -> Iterator[str]:
    """The options and arguments of the running command that were given nothing but blanks.

    Unprocessed words are another command's: an empty one may mean something to it.
    """
    for parameter in context.command.params:
        if parameter.type is click.UNPROCESSED:
            continue
        value = context.params.get(parameter.name or "")
        texts = value if isinstance(value, tuple) else (value,)
        if any(isinstance(text, str) and not text.strip() for text in texts):
            is_option = isinstance(parameter, click.Option)
            yield max(parameter.opts, key=len) if is_option else parameter.make_metavar(context)


def take_common(options: dict[str, Any]) -> CommonOptions:
    """Takes the common options out of `options` and applies --color."""
    import os

    from stackfix.cli.terminal import choose_colour
    from stackfix.sources.cache_place import default_cache_dir

    choose_colour(options.pop("color"))
    cache_dir = options.pop("cache_dir")
    return CommonOptions(
        as_json=options.pop("as_json"),
        quiet=options.pop("quiet"),
        verbose=options.pop("verbose"),
        offline=options.pop("offline"),
        cache_dir=Path(cache_dir) if cache_dir is not None else default_cache_dir(os.environ, Path.home()),
    )
