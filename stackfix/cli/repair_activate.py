"""The activation scripts of an environment, sourced for real in a shell: the variables that they leave."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackfix.inspect.environment_records import Environment
from stackfix.plan.activation_home import finds_itself
from stackfix.plan.effect_variables import SEPARATORS
from stackfix.verify.records import ProbeStep

SHELL = "/bin/sh"
# Of a relocatable venv: its script asks the shell where it lies, which plain sh cannot tell
KNOWING = ("/bin/bash", "/usr/bin/bash", "/bin/zsh", "/usr/bin/zsh")
# What a script prints is no answer of ours. The last word is not looked for on PATH, which is the scripts' to set.
SOURCE = 'for each in "$@"; do . "$each" >&2; done; exec /usr/bin/env -0'


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """What a process finds that is started in an activated shell."""

    environ: Mapping[str, str]
    step: ProbeStep


def activate(environment: Environment, environ: Mapping[str, str], wanted: Mapping[str, str | None],
             timeout: float) -> Activated:
    """The scripts sourced; a step that fails where they do not leave the variables as `wanted` (None: unset).

    Scripts of other packages may add elements of their own behind ours: the load that follows meets them, too.
    """
    begin = time.monotonic()
    found, fault = sourced(environment, environ, timeout)
    if found is not None:
        wrong = [name for name, value in wanted.items() if not is_kept(name, environ.get(name), value, found.get(name))]
        fault = "; ".join(f"{name} is {found.get(name)!r}, not {wanted[name]!r}" for name in wrong)
    step = ProbeStep(name="activation", verdict="fails" if fault else "works", reason="error" if fault else None,
                     detail=fault or ", ".join(wanted), accuracy=None, seconds=time.monotonic() - begin, libraries=())
    return Activated(environ=found or environ, step=step)


def is_kept(name: str, before: str | None, wanted: str | None, found: str | None) -> bool:
    """Whether a variable is as wanted, elements that other scripts have added left out of account."""
    old, new, now = (elements(name, each) for each in (before, wanted, found))
    first = next(place for place in range(len(new) + 1) if is_part(new[place:], old))     # how many are put first
    gone = set(old) - set(new)
    return now[:first] == new[:first] and is_part(new[first:], now[first:]) and not gone & set(now)


def elements(name: str, value: str | None) -> list[str]:
    """The parts of a variable; paths as they truly are: a script may name the prefix by another link than we do."""
    parts = re.split(SEPARATORS.get(name, ":"), value) if value else []
    return [os.path.realpath(each) if each.startswith("/") else each for each in parts]


def is_part(few: Sequence[str], many: Sequence[str]) -> bool:
    """Whether all of `few` are in `many`, in the same order."""
    rest = iter(many)
    return all(each in rest for each in few)


def sourced(environment: Environment, environ: Mapping[str, str], timeout: float) -> tuple[dict[str, str] | None, str]:
    """The variables, or None and why they cannot be told."""
    start = dict(environ)
    if environment.conda is not None:
        start |= {"CONDA_PREFIX": environment.prefix, **dict(environment.conda.variables)}
    try:
        shell = shell_for(environment)
        done = subprocess.run([shell, "-c", SOURCE, shell, *scripts(environment)], env=start, capture_output=True,
                              check=False, timeout=timeout, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if done.returncode != 0:
        last = (os.fsdecode(done.stderr).strip().splitlines() or ["no message"])[-1]
        return None, f"{shell} ended with status {done.returncode}: {last}"
    pairs = (os.fsdecode(each).partition("=") for each in done.stdout.split(b"\0") if each)
    return {name: value for name, _, value in pairs}, ""


def shell_for(environment: Environment) -> str:
    """A shell that the environment's script is for."""
    script = Path(environment.prefix) / "bin" / "activate"
    if environment.conda is None and finds_itself(script.read_text(encoding="utf-8", errors="replace")):
        return next(filter(os.path.exists, KNOWING), SHELL)
    return SHELL


def scripts(environment: Environment) -> Iterable[str]:
    """What a POSIX shell sources, in its order."""
    prefix = Path(environment.prefix)
    if environment.conda is None:
        return (str(prefix / "bin" / "activate"),)
    return map(str, sorted((prefix / "etc" / "conda" / "activate.d").glob("*.sh")))
