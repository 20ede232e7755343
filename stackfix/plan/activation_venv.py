"""Marked blocks in the activation scripts of a venv, whoever wrote them: Python's venv, virtualenv, or uv."""

from __future__ import annotations

import re
from collections.abc import Sequence

BEGIN, END = "# >>> stackfix >>>", "# <<< stackfix <<<"
BLOCK = re.compile(rf"^[ \t]*{re.escape(BEGIN)}.*\n(?:.*\n)*?[ \t]*{re.escape(END)}\r?\n", re.MULTILINE)
NOTE = "written by `stackfix repair`; `stackfix undo` takes it back"

# Script -> suffix of its shell
KNOWN = {"activate": ".sh", "activate.fish": ".fish", "activate.csh": ".csh", "Activate.ps1": ".ps1",
         "activate.ps1": ".ps1"}
UNWRITTEN = dict.fromkeys(("activate.nu", "activate.xsh"), "nothing is written for Nushell and xonsh")

# Where the function that takes the activation back begins. Each of the three makers' scripts calls it before it sets
# anything, so what is put there is also taken back when an activation follows another.
DEACTIVATE = {
    ".sh": re.compile(r"^deactivate[ \t]*\([ \t]*\)[ \t]*\{[ \t]*\r?\n", re.MULTILINE),
    ".fish": re.compile(r"^function[ \t]+deactivate\b[^\n]*\n", re.MULTILINE),
    ".csh": re.compile(r"^alias[ \t]+deactivate[ \t]+'", re.MULTILINE),
    ".ps1": re.compile(r"^function[ \t]+global:deactivate[ \t]*\([^\n]*\)[ \t]*\{[ \t]*\r?\n", re.MULTILINE),
}
SIGNED = "# SIG # Begin signature block"

# An alias of csh is one line, so it calls a script
CSH_SCRIPT = "stackfix-deactivate.csh"
CSH_CALL = 'test $?_stackfix_off != 0 && source "$_stackfix_off:q"; '
CSH_LOCATE = ("if ($?VIRTUAL_ENV) then", f'    set _stackfix_off = "$VIRTUAL_ENV:q/bin/{CSH_SCRIPT}"', "endif")


class Unknown(Exception):
    """A script whose way back is not found. What could not be taken back is not written."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def with_blocks(name: str, text: str, restore: Sequence[str], put: Sequence[str]) -> str:
    """The script with what `restore` says in its deactivation, and `put` at its end; earlier blocks go first.

    Raises Unknown.
    """
    suffix, text = KNOWN[name], without_blocks(text)
    if SIGNED in text:
        raise Unknown("it is signed, and a change would break the signature")
    found = DEACTIVATE[suffix].search(text)
    if found is None:
        raise Unknown("it defines no deactivate in any way that is known here")
    newline = "\r\n" if "\r\n" in text else "\n"
    if suffix == ".csh":
        inside, put = CSH_CALL, [*CSH_LOCATE, *put]
    else:
        inside = block(restore, newline, "    ")
    end = "" if text.endswith("\n") else newline
    return text[:found.end()] + inside + text[found.end():] + end + block(put, newline)


def block(lines: Sequence[str], newline: str, indent: str = "") -> str:
    return "".join(f"{indent}{line}{newline}" for line in (f"{BEGIN} {NOTE}", *lines, END))


def without_blocks(text: str) -> str:
    """The script as it was before."""
    return BLOCK.sub("", text).replace(CSH_CALL, "")
