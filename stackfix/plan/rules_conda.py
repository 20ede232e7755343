"""Packages of conda: what is asked of the conda at hand, and the exact command for each program that installs such.

Those commands are printed and never run: they unlink and link files of a prefix on their own, run scripts of packages,
and take nothing back. Where a repair has conda link a package, that is into a folder of ours (apply.conda_program).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import CondaPackage

OURS = ("install", "update", "remove")
AGAIN = "--force-reinstall"
NAME = re.compile(r"[A-Za-z0-9_.-]+")
PIXI = re.compile(r"(.+)/\.pixi/envs/([^/]+)")     # where pixi keeps the environments of a workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One that installs packages of conda."""

    kind: str                       # "conda", "mamba" or "micromamba": they take the same options
    word: str                       # that starts it: its name where it is on PATH, else its path


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedConda:
    """A package of conda in a range of releases."""

    package: str
    specifier: str                  # in conda's words: ">=12.4,<13"; "": the very release that is there, again


def wants_of_conda(view: View, finding: Finding) -> Iterator[WantedConda]:
    """What conda would have to bring; each would do by itself, best first."""
    if view.environment.conda is None:
        return
    found = {WantedConda(package=each.package, specifier=each.specifier): None for each in finding.installs
             if each.manager == "conda"}
    for line in finding.cure:
        words = shlex.split(line.partition("  #")[0]) if line.startswith("conda install ") else []
        specs = [each for each in words[2:] if not each.startswith("-") and each != view.environment.prefix]
        if len(specs) == 1:
            name = name_of(specs[0])
            found.setdefault(WantedConda(package=name, specifier="" if AGAIN in words else specs[0][len(name):]))
    yield from found


def by_programs(view: View, line: str, programs: Sequence[Program]) -> Iterator[str]:
    """A line of a cure, for each program at hand where it is one of conda's; else as it is."""
    command, _, comment = line.partition("  #")
    words = shlex.split(command) if command.startswith("conda ") else []
    if len(words) < 3 or words[1] not in OURS or view.environment.conda is None:
        yield line
        return
    specs = [each for each in words[2:] if not each.startswith("-") and each != view.environment.prefix]
    tail = f"  #{comment}" if comment else ""
    pixi = PIXI.fullmatch(view.environment.prefix)
    if pixi is not None:
        yield of_pixi(pixi[1], pixi[2], words[1], specs, again=AGAIN in words) + tail
        return
    for each in programs or (Program(kind="conda", word="conda"),):
        yield shlex.join((each.word, *arguments(view, words[1], specs, again=AGAIN in words))) + tail


def arguments(view: View, what: str, specs: Sequence[str], *, again: bool) -> Iterator[str]:
    """The rest of the line: only these packages change, and they come from the channel that they came from."""
    packages = {each.name: each for each in (view.environment.conda.packages if view.environment.conda else ())}
    named = [(each, packages.get(name_of(each))) for each in specs]
    yield from (what, "--prefix", view.environment.prefix)
    yield from (exactly(known) if known is not None and again else spec for spec, known in named)
    if what == "remove":
        yield "--force"                                     # and not what needs it
        return
    yield from (AGAIN, "--no-deps") if again else ("--freeze-installed",)
    for channel in dict.fromkeys(known.channel for _, known in named if known is not None and known.channel):
        yield from ("--channel", channel)


def of_pixi(workspace: str, environment: str, what: str, specs: Sequence[str], *, again: bool) -> str:
    """pixi's own command: what others put into its environment goes at its next install."""
    names = [name_of(each) for each in specs]
    place = ("--manifest-path", workspace)
    if what == "remove":
        return shlex.join(("pixi", "remove", *place, *names))
    if again:
        return shlex.join(("pixi", "reinstall", *place, "--environment", environment, *names))
    if what == "update":
        return shlex.join(("pixi", "update", *place, "--environment", environment, *names))
    return shlex.join(("pixi", "add", *place, *specs))


def exactly(package: CondaPackage) -> str:
    """"libnvjitlink=12.4.127=h5888daf_0"."""
    return f"{package.name}={package.version}={package.build}"


def name_of(spec: str) -> str:
    """"libnvjitlink" of "libnvjitlink>=12.4"."""
    match = NAME.match(spec)
    return match[0].lower() if match else spec
