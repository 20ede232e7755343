"""Activation scripts that put library folders first, or take elements out, and put back what was there."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stackfix.diagnose.plumbing_marks import Mark, mark_lines
from stackfix.plan import shell_csh, shell_fish, shell_posix, shell_powershell
from stackfix.plan.activation_home import other_home
from stackfix.plan.activation_venv import CSH_SCRIPT, KNOWN, UNWRITTEN, Unknown, with_blocks
from stackfix.plan.effect_records import Variable
from stackfix.plan.effect_variables import value_after
from stackfix.plan.records import WriteFile
from stackfix.plan.relink_paths import check_text
from stackfix.plan.shell_words import Change, make_change, mark_of

FOLDER = "etc/conda"
FIRST = "activate"              # of a venv's scripts the one that is sourced to prove a repair
STEMS = ("zz-stackfix", "zzzz-stackfix", "~stackfix")   # conda sources them by name: ours is to be the last
HEAD = ("# Written by `stackfix repair`; it needs no stackfix. To take it back: `stackfix undo`, or delete the files",
        "# of this name in activate.d and deactivate.d.")


class Shell(Protocol):
    """The modules shell_*."""

    SUFFIX: str
    set_lines: Callable[[Sequence[Change], str], list[str]]
    restore_lines: Callable[[Sequence[Change]], list[str]]


SHELLS: Mapping[str, Shell] = {each.SUFFIX: each for each in (shell_posix, shell_fish, shell_csh, shell_powershell)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script that is there."""

    path: str                       # relative to the prefix: "bin/activate"
    text: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """What is written, and the scripts that cannot be changed, with the reason."""

    steps: tuple[WriteFile, ...]
    skipped: tuple[tuple[str, str], ...] = ()


def activation_steps(prefix: str, kind: str, variables: Sequence[Variable], scripts: Sequence[Script], *,
                     before: Mapping[str, str] | None = None,
                     is_here: Callable[[str], bool] | None = None) -> Activation:
    """Scripts that make the variables as `variables_activated` says. Raises BadInput for what no shell could set.

    prefix: absolute; scripts name it by CONDA_PREFIX or VIRTUAL_ENV, so that a prefix which was moved still works
    kind: "conda" or "venv"
    scripts: what is there: all of bin/activate* of a venv, all of etc/conda/activate.d
    before: the variables as they are now; they tell how the elements that go are spelled
    is_here: whether a folder is the prefix, whatever links lead there
    """
    check_text(prefix)
    # conda environments can be stacked. Of venvs one is active, and another one's script is to take it back: its own
    # deactivate has replaced that of the first by then.
    mark = mark_of(prefix) if kind == "conda" else "VENV"
    known = before or {}
    changes = [make_change(each, prefix, known.get(each.name), mark) for each in variables]
    if not changes:
        return Activation(steps=())
    told = tuple(mark_lines((Mark(name=each.name, first=each.first, without=each.without, value=each.value)
                             for each in variables), prefix))
    if kind == "conda":
        return Activation(steps=tuple(conda_files(changes, told, stem_after(scripts))))
    return venv_files(changes, told, scripts, is_here or (lambda folder: folder == prefix))


def variables_activated(variables: Sequence[Variable], before: Mapping[str, str]) -> dict[str, str | None]:
    """The variables as they are after activation, of those that it changes; None: unset."""
    return {each.name: value_after(each, before.get(each.name)) for each in variables}


def stem_after(scripts: Sequence[Script]) -> str:
    """A name that comes after those of all other scripts of the folder."""
    names = {posixpath.splitext(posixpath.basename(each.path))[0] for each in scripts}
    last = max(names - set(STEMS), default="")
    return next((each for each in STEMS if each > last), STEMS[-1])


def conda_files(changes: Sequence[Change], told: Sequence[str], stem: str) -> Iterator[WriteFile]:
    """told: what the scripts do, for whoever reads them without running them."""
    for suffix, shell in SHELLS.items():
        # The way back is there before anything needs it
        for phase, lines in (("deactivate", shell.restore_lines(changes)),
                             ("activate", [*told, *shell.set_lines(changes, "CONDA_PREFIX")])):
            yield WriteFile(path=f"{FOLDER}/{phase}.d/{stem}{suffix}", text="\n".join((*HEAD, *lines, "")))


def venv_files(changes: Sequence[Change], told: Sequence[str], scripts: Sequence[Script],
               is_here: Callable[[str], bool]) -> Activation:
    """Nothing at all where the script of POSIX shells is of another folder: the environment was copied or moved."""
    steps: list[WriteFile] = []
    skipped: list[tuple[str, str]] = []
    for script in sorted(scripts, key=lambda each: each.path):
        name = posixpath.basename(script.path)
        if name in UNWRITTEN:
            skipped.append((script.path, UNWRITTEN[name]))
        if name not in KNOWN:
            continue
        home = other_home(script.text, is_here)
        if home is not None:
            skipped.append((script.path, f"it activates {home}, from where this environment was copied or moved"))
            if name == FIRST:
                return Activation(steps=(), skipped=tuple(skipped[-1:]))
            continue
        shell = SHELLS[KNOWN[name]]
        restore, put = shell.restore_lines(changes), [*told, *shell.set_lines(changes, "VIRTUAL_ENV")]
        try:
            text = with_blocks(name, script.text, restore, put)
        except Unknown as error:
            skipped.append((script.path, error.reason))
            continue
        if shell.SUFFIX == shell_csh.SUFFIX:
            steps.append(WriteFile(path=f"{posixpath.dirname(script.path)}/{CSH_SCRIPT}",
                                   text="\n".join((*restore, "unset _stackfix_off", ""))))
        steps.append(WriteFile(path=script.path, text=text, mode=script.mode))
    return Activation(steps=tuple(steps), skipped=tuple(skipped))
