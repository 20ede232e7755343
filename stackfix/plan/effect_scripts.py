"""Activation as an inspection would read it: the scripts of a plan, each with the lines that say what it does.

The code of the real ones, which takes elements out and remembers what was there, is not read by anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.diagnose.plumbing_marks import MARK, OWN_WORK, Mark, mark_lines
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import ActivationScript, Environment
from stackfix.plan.effect_records import Variable

LAST = "zzz-stackfix.sh"        # of the scripts that a shell sources by name
LINE = 1_000_000                # behind all that a venv's own script has


def scripts_after(view: View, variables: Sequence[Variable]) -> tuple[ActivationScript, ...]:
    """The scripts that would be there for these variables."""
    environment = view.environment
    lines = tuple((LINE + number, text) for number, text in enumerate(told(view, variables)))
    if not lines:
        return ()
    if environment.conda is None:
        path = f"{environment.prefix}/bin/activate"
        return (ActivationScript(path=path, phase="activate", lines=(*lines_of(environment, path), *lines)),)
    folder = f"{environment.prefix}/etc/conda"
    back = tuple((number, f"unset {each.name}") for number, each in enumerate(variables, start=1))
    return (ActivationScript(path=f"{folder}/activate.d/{LAST}", phase="activate", lines=lines),
            ActivationScript(path=f"{folder}/deactivate.d/{LAST}", phase="deactivate", lines=back))


def told(view: View, variables: Sequence[Variable]) -> Iterator[str]:
    """What our part of them says."""
    return mark_lines((Mark(name=each.name, first=each.first, without=each.without, value=each.value)
                       for each in variables), view.environment.prefix)


def lines_of(environment: Environment, path: str) -> tuple[tuple[int, str], ...]:
    """What an inspection has read of a script, without what an earlier repair has put into it."""
    known = next((each.lines for each in environment.activation if each.path == path), ())
    ours = any(MARK.match(text) for _, text in known)
    return tuple(line for line in known if not (ours and (MARK.match(line[1]) or OWN_WORK.search(line[1]))))
