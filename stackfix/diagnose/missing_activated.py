"""Libraries that are found once the environment is activated, and that this process does not find."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from stackfix.diagnose.faults_verdict import Copy
from stackfix.diagnose.missing_carriers import is_plain
from stackfix.diagnose.plumbing_scripts import Element, activated_path
from stackfix.diagnose.provenance import folder_of
from stackfix.diagnose.situation import View
from stackfix.inspect.records import ElfObject, FileAt


def activated_copy(view: View, name: str) -> Copy | None:
    """What the loader takes for a name after activation; None where activation leads to nothing, or nobody knows."""
    activated = activated_path(view) if is_plain(name) else None
    for each in activated.elements if activated is not None else ():
        at = view.files.at(f"{each.folder}/{name}") if each.folder is not None else None
        if isinstance(at, FileAt) and fits(view, at):
            return Copy(path=at.path, real_path=at.real_path, identity=at.identity, via=None)
    return None


def fits(view: View, at: FileAt) -> bool:
    """Whether a file is one for this loader."""
    loader = view.situation.loader.machine
    return isinstance(at.elf, ElfObject) and (at.elf.bits, at.elf.machine) == (loader.bits, loader.machine)


def by_activation(view: View, copies: Iterable[Copy]) -> Element | None:
    """The line of an activation script that leads to the first of these copies, where all are reached so."""
    activated = activated_path(view)
    elements = {each.folder: each for each in reversed(activated.elements)} if activated is not None else {}
    found = [elements.get(folder_of(each.path)) for each in copies]
    return found[0] if found and None not in found else None


def how_to_activate(view: View) -> str:
    """The line that does it."""
    prefix = view.environment.prefix
    conda = view.environment.conda is not None
    return f"conda activate {shlex.quote(prefix)}" if conda else f"source {shlex.quote(f'{prefix}/bin/activate')}"
