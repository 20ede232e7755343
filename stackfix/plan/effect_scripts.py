"""Activation as an inspection would read it: the scripts of a plan, each with a line that says what it comes to.

The real ones take elements out and remember what was there; what a diagnosis asks is the order that they leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.diagnose.plumbing_scripts import activated_path
from stackfix.diagnose.provenance import LIBRARY_PATH
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import ActivationScript, Environment
from stackfix.plan.effect_records import Variable
from stackfix.plan.effect_variables import plain

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
    """One assignment for each variable."""
    for each in variables:
        if each.value is not None:
            yield f'export {each.name}="{each.value}"'
        elif each.name == LIBRARY_PATH:
            yield f'export {LIBRARY_PATH}="{":".join(elements_after(view, each))}"'


def elements_after(view: View, variable: Variable) -> tuple[str, ...]:
    """The folders that scripts put on the loader's path and that stay, behind those that come first."""
    gone = set(map(plain, (*variable.first, *variable.without)))
    before = activated_path(view)
    kept = [each.folder for each in before.elements if each.folder is not None and plain(each.folder) not in gone] \
        if before is not None else []
    return (*variable.first, *dict.fromkeys(kept), f"${LIBRARY_PATH}")


def lines_of(environment: Environment, path: str) -> tuple[tuple[int, str], ...]:
    """What an inspection has read of a script."""
    return next((each.lines for each in environment.activation if each.path == path), ())
