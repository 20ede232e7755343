"""What environment.yml files say beside options: every value that is said must hold, and a contradiction is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.cli.options import LockOptions
from stackfix.errors import AnswerIsNo, BadInput
from stackfix.platforms import split_place
from stackfix.request.values import check_cuda, check_platform

if TYPE_CHECKING:
    from stackfix.request.environment_input import EnvironmentInput, Said

SUFFIXES = (".yml", ".yaml")
MINORS = range(9, 20)           # of Python 3, for a range of versions


def is_environment_yml(name: str) -> bool:
    """Whether `-r` names an environment.yml."""
    return name.endswith(SUFFIXES)


def read_environment(path: Path, options: LockOptions) -> EnvironmentInput:
    """What the file asks."""
    from stackfix.matrix.conda_names import load_conda_names
    from stackfix.request.environment_yml import read_environment_yml

    directory = Path(options.matrix_directory) if options.matrix_directory is not None else None
    platforms = tuple(dict.fromkeys(split_place(check_platform(place))[0] for place in options.platforms))
    return read_environment_yml(path, os.environ, load_conda_names(directory), platforms)


def merged_cuda(option: str | None, files: Sequence[EnvironmentInput]) -> str | None:
    """The one CUDA that all of them ask for, as exactly as the most exact does. Raises Contradiction."""
    said = [*([(check_cuda(option), f"--cuda {option}")] if option is not None else []),
            *((check_cuda(one.value, one.origin), one.origin) for file in files for one in file.cudas)]
    for index, (value, origin) in enumerate(said):
        for other, other_origin in said[:index]:
            if not (f"{value}.".startswith(f"{other}.") or f"{other}.".startswith(f"{value}.")):
                raise Contradiction(what="CUDA", one=(other, other_origin), other=(value, origin))
    return max((value for value, _ in said), key=len, default=None)


def said_places(options: LockOptions, files: Sequence[EnvironmentInput]) -> Iterator[tuple[str, str]]:
    """The kinds of asks that only a file states, with the line that does."""
    cudas = [one for file in files for one in file.cudas]
    pythons = [one for file in files for one in file.pythons]
    platforms = next((file.platforms for file in files if file.platforms), ())
    if cudas and options.cuda is None:
        yield "cuda", max(cudas, key=lambda one: len(one.value)).origin
    if pythons and not options.pythons:
        yield "python", pythons[0].origin
    if platforms and not options.platforms:
        yield "platform", platforms[0].origin


def merged_pythons(options: tuple[str, ...], files: Sequence[EnvironmentInput]) -> tuple[str, ...]:
    """The Pythons asked for, which all files must admit; without any, the running minor or the newest they admit."""
    said = [one for file in files for one in file.pythons]
    for python in options:
        for one in said:
            if not admits(one, python):
                raise Contradiction(what="Python", one=(python, f"--python {python}"), other=(one.value, one.origin))
    if options or not said:
        return options
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = [minor for minor in (running, *(f"3.{minor}" for minor in reversed(MINORS)))
             if all(admits(one, minor) for one in said)]
    if found:
        return (found[0],)
    for one in said:
        if not any(admits(one, f"3.{minor}") for minor in MINORS):
            raise BadInput(one.origin, "admits no Python 3 that is known here")
    raise Contradiction(what="Python", one=(said[0].value, said[0].origin), other=(said[-1].value, said[-1].origin))


def admits(one: Said, minor: str) -> bool:
    """Whether the specifier admits a release of the minor."""
    from packaging.specifiers import SpecifierSet

    specifier = SpecifierSet(one.value)
    return any(specifier.contains(f"{minor}.{micro}") for micro in range(40))


def merged_platforms(options: tuple[str, ...], files: Iterable[EnvironmentInput]) -> tuple[str, ...]:
    """The options' platforms, else those of the first file that names any. Raises BadInput for an unknown one."""
    if options:
        return tuple(dict.fromkeys(check_platform(platform) for platform in options))
    said = next((file.platforms for file in files if file.platforms), ())
    for one in said:
        try:
            check_platform(one.value)
        except BadInput as error:
            raise BadInput(f"{one.origin}: platform {one.value}", error.reason,
                           "choose some of its platforms with --platform") from None
    return tuple(dict.fromkeys(one.value for one in said))


def merged_channels(options: tuple[str, ...], files: Iterable[EnvironmentInput]) -> tuple[str, ...]:
    """--channel, else what the files name, in their order."""
    own = tuple(dict.fromkeys(channel.strip() for channel in options))
    return own or tuple(dict.fromkeys(channel for file in files for channel in file.channels))


class Contradiction(AnswerIsNo):
    """Two places ask for what excludes each other."""

    reference = "contradiction"

    def __init__(self, *, what: str, one: tuple[str, str], other: tuple[str, str]) -> None:
        super().__init__(what, one, other)
        self.thing, self.one, self.other = what, one, other

    def what(self) -> str:
        places = " and ".join(f"{value} ({origin})" for value, origin in (self.one, self.other))
        return f"{self.thing}: no stack has both {places}"

    def next_step(self) -> str:
        return "take one of the two out"
