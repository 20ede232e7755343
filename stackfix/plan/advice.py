"""What the plan does not do: commands for whoever administers the machine, and ways round. Nothing of it is ever run.

A library of symbol aliases through LD_PRELOAD is never among it: it lets a program start whose parts do not fit.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.homes import home_at
from stackfix.diagnose.missing_activated import how_to_activate
from stackfix.diagnose.situation import View
from stackfix.plan.advice_fallbacks import fallbacks
from stackfix.plan.advice_system import driver, system_library, variable
from stackfix.plan.names import Key, key_of
from stackfix.plan.records import Action
from stackfix.plan.rules_conda import Program, by_programs
from stackfix.plan.rules_install import installed_by

Lines: TypeAlias = Callable[[View, Finding], Iterator[str]]
# How a line of a cure begins that can be typed; the rest is said to people
COMMAND = re.compile(
    r"(?:sudo|docker|module|unset|export|stackfix|conda|mamba|uv|ln|mv|rm|apt-file|mokutil|python3?)\s|"
    r"[A-Z_]+=\S*\s|(?:/|\S*/bin/)\S*python\S*\s")
WSL_DRIVER = "On WSL the driver is Windows' own: update it there, then run `wsl --shutdown`"


def of_driver(view: View, finding: Finding) -> Iterator[str]:
    """A newer driver."""
    del finding
    yield from driver(view)


BY_CODE: Mapping[str, tuple[Lines, ...]] = MappingProxyType({
    **dict.fromkeys(("SF101", "SF301", "SF302", "SF403", "SF803", "SF804"), (variable, system_library)),
    **dict.fromkeys(("SF1102", "SF1103", "SF903"), (variable,)),
    "SF901": (of_driver,),
})


def advise(view: View, findings: Iterable[Finding], programs: Sequence[Program] = (),
           instead: Mapping[Key, str] = MappingProxyType({})) -> Iterator[Action]:
    """Advice for findings that are left, an action for each cure and each way round; ids are numbered later.

    programs: what installs packages of conda here
    instead: findings for which no command that installs wheels is advised, and what is said in place of it
    """
    for finding in findings:
        lines = list(typed(view, finding))
        kept = lines if key_of(finding) not in instead else [each for each in lines if not any(installed_by(each))]
        said = summary_of(view, finding)
        if len(kept) < len(lines) and instead[key_of(finding)]:
            said = f"{said}. {instead[key_of(finding)]}"
        commands = dict.fromkeys((*at_home(view, finding), *specific(view, finding), *(
            each for line in kept for each in by_programs(view, line, programs))))
        if commands or said != finding.summary or (finding.cure and len(kept) == len(lines)):
            yield action(said, finding, "\n".join(commands) or None)
        for each in fallbacks(view, finding):
            yield action(f"A way round {finding.code}: {each.summary}", finding, each.command)


def activate_anew(view: View, findings: Sequence[Finding]) -> Iterator[Action]:
    """What to do where the scripts that are there cure it, and this shell has not sourced them."""
    if findings:
        codes = tuple(each.code for each in findings)
        yield Action(id="advice", kind="advice", cures=codes, steps=(), changes=(), command=how_to_activate(view),
                     summary="Activate the environment anew: what an earlier repair has written into its scripts cures "
                             f"{', '.join(dict.fromkeys(codes))}")


def at_home(view: View, finding: Finding) -> Iterator[str]:
    """A repair of the other environment that the file at fault lies in: the base, one that a .pth file names."""
    home = home_at(view, finding.culprit.path or "")
    if home is not None and not finding.repairable:
        yield shlex.join(("stackfix", "repair", "--prefix", home.prefix))


def specific(view: View, finding: Finding) -> Iterator[str]:
    """Commands that the finding alone does not know: of this system's packages, with this variable's elements."""
    for lines in BY_CODE.get(finding.code, ()):
        yield from lines(view, finding)


def typed(view: View, finding: Finding) -> Iterator[str]:
    """Lines of the cure that are commands; builds from source are ways round."""
    round_about = {each.command for each in fallbacks(view, finding)}
    for line in finding.cure:
        if COMMAND.match(line) and line not in round_about and "…" not in line.partition("  #")[0].partition(" …")[0]:
            yield line


def summary_of(view: View, finding: Finding) -> str:
    """What is to be done, in words: the first line of the cure that is no command, else what is wrong."""
    said = next((line for line in finding.cure if not COMMAND.match(line) and not line.startswith("or ")), None)
    if finding.code == "SF901" and view.machine.wsl is not None:
        said = WSL_DRIVER
    return f"{finding.summary}. {said}" if said else finding.summary


def action(summary: str, finding: Finding, command: str | None) -> Action:
    return Action(id="advice", kind="advice", summary=summary, cures=(finding.code,), steps=(), changes=(),
                  command=command)
