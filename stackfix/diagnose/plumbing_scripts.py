"""What activation scripts put on LD_LIBRARY_PATH, read and not run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.plumbing_marks import MARK, OWN_WORK, Mark, marks_in
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import ActivationScript

PATH = "LD_LIBRARY_PATH"
BEFORE, UNKNOWN = "\0before\0", "\0unknown\0"   # the variable's earlier value; what only running the script would tell
SHELLS = (".sh", "", ".fish", ".csh")           # of which assignments are understood; "": a venv's `activate`
ASSIGNMENT = re.compile(r"(?:export\s+|declare\s+-x\s+)?(?P<name>[A-Za-z_]\w*)=(?P<value>.*)$")
SETENV = re.compile(r"setenv\s+(?P<name>[A-Za-z_]\w*)\s+(?P<value>.*)$")
FISH_SET = re.compile(r"set\s+(?:--?\w+\s+)*(?P<name>[A-Za-z_]\w*)\s+(?P<words>.*)$")
# Where Python finds a package. Source: TensorFlow's installation guide, of which thousands of env_vars.sh are copies.
RECIPE = re.compile(
    r"""\$\(\s*(?P<dirname>dirname\s+)?["]?(?:\$\(|`)?\s*python3?\s+-c\s+["']import\s+(?P<module>[\w.]+)\s*;\s*"""
    r"""print\((?P=module)\.(?P<what>__file__|__path__\[0\])\)["']\s*[)`]?["]?\s*\)""")
COMMAND = re.compile(r"\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|`[^`]*`")
VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?P<change>[^}]*)\}|(?P<plain>[A-Za-z_]\w*))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element of LD_LIBRARY_PATH after activation."""

    folder: str | None              # None: only running the script would tell
    script: str                     # path
    line: int
    text: str                       # of the line


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """LD_LIBRARY_PATH as activation leaves it."""

    elements: tuple[Element, ...]
    before: int | None              # how many elements come before the earlier value; None: that is thrown away


def activated_path(view: View) -> Activated | None:
    """The path after all scripts of one shell, in their order; None where none sets it."""
    scripts = [each for each in view.environment.activation if each.phase == "activate"
               and any(PATH in text for _, text in each.lines)]
    suffix = next((each for each in SHELLS if any(suffix_of(script) == each for script in scripts)), None)
    if suffix is None:
        return None
    reader = Reader(view)
    for script in view.environment.activation:
        if script.phase == "activate" and suffix_of(script) == suffix:
            reader.read(script)
    return reader.answer()


def suffix_of(script: ActivationScript) -> str:
    return posixpath.splitext(script.path)[1]


class Reader:
    """Follows the assignments of scripts that are sourced one after the other."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.values = dict.fromkeys(("CONDA_PREFIX", "VIRTUAL_ENV"), view.environment.prefix)
        self.values |= {"HOME": view.environment.home} if view.environment.home else {}
        self.values |= {name: view.variables[name] for name in ("CUDA_HOME", "CUDA_PATH")
                        if name in view.variables}
        self.path: list[Element | None] = [None]        # None: the earlier value
        self.was_set = False

    def read(self, script: ActivationScript) -> None:
        """What a script does; what we have put into it comes last, and says itself what that is."""
        marks = marks_in((text for _, text in script.lines), self.view.environment.prefix)
        for number, text in script.lines:
            if marks and (OWN_WORK.search(text) or MARK.match(text)):
                continue
            for name, value in assignments(text):
                if name == PATH:
                    self.assign(value, script.path, number, text)
                else:
                    self.values[name] = self.expand(value)

        for mark in marks:
            if mark.name == PATH:
                self.apply(mark, script)

    def apply(self, mark: Mark, script: ActivationScript) -> None:
        """Our own folders first, without those that we take out, of what earlier scripts have put there."""
        gone = {posixpath.normpath(each) if each else "" for each in (*mark.first, *mark.without)}
        number, line = next((number, text) for number, text in script.lines if MARK.match(text))
        first = [Element(folder=posixpath.normpath(each), script=script.path, line=number, text=line)
                 for each in mark.first]
        self.path = [*first, *(each for each in self.path if each is None or each.folder not in gone)]
        self.was_set = self.was_set or bool(first)

    def assign(self, value: str, script: str, line: int, text: str) -> None:
        found: list[Element | None] = []
        for part in self.expand(value).split(":"):
            if BEFORE in part:
                found += self.path
            elif part:
                known = part.startswith("/") and UNKNOWN not in part
                found.append(Element(folder=posixpath.normpath(part) if known else None, script=script, line=line,
                                     text=text))
        self.path, self.was_set = found, True

    def expand(self, text: str) -> str:
        """The text with variables and the known recipe put in."""
        text = RECIPE.sub(self.folder_of, text)
        return VARIABLE.sub(self.value_of, COMMAND.sub(UNKNOWN, text))

    def folder_of(self, found: re.Match[str]) -> str:
        """Folder of the package that a Python one-liner asks for."""
        inside = found["module"].replace(".", "/")
        folders = [each.path for each in self.view.environment.library_folders]
        if bool(found["dirname"]) is (found["what"] == "__file__"):
            for site in self.view.environment.sites:
                package = f"{site.path}/{inside}"
                if any(each == package or each.startswith(f"{package}/") for each in folders):
                    return package
        return UNKNOWN

    def value_of(self, found: re.Match[str]) -> str:
        name, change = found["braced"] or found["plain"], found["change"] or ""
        if name == PATH:                # ${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} brings its own colons
            return f":{BEFORE}:" if change.startswith((":+", "+")) else BEFORE
        if change:
            return UNKNOWN
        return self.values.get(name, UNKNOWN)

    def answer(self) -> Activated | None:
        if not self.was_set:
            return None
        before = self.path.index(None) if None in self.path else None
        return Activated(elements=tuple(each for each in self.path if each is not None), before=before)


def assignments(text: str) -> Iterator[tuple[str, str]]:
    """(name, value) of the assignments of one line, quotes taken off."""
    for statement in statements(text):
        if found := ASSIGNMENT.match(statement) or SETENV.match(statement):
            yield found["name"], unquoted(found["value"])
        elif found := FISH_SET.match(statement):
            yield found["name"], ":".join(unquoted(each) for each in found["words"].split())


def statements(text: str) -> Iterator[str]:
    """The commands of a line, which is parted at `;` and `&&` outside of quotes and parentheses."""
    depth, quote, start = 0, "", 0
    for place, here in enumerate(text):
        if quote:
            quote = "" if here == quote else quote
        elif here in "\"'" and depth == 0:
            quote = here
        elif here in "()":
            depth += 1 if here == "(" else -1
        elif depth == 0 and (here == ";" or text.startswith("&&", place)):
            yield text[start:place].strip()
            start = place + (1 if here == ";" else 2)
    yield text[start:].strip()


def unquoted(text: str) -> str:
    """Without the quotes around it, or without a comment behind it."""
    text = text.strip()
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        return text[1:-1]
    return text.partition(" #")[0].strip().strip('"')
