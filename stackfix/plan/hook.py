"""The preload hook: libraries that are loaded by path at the first execution of a package that needs them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from stackfix.errors import BadInput
from stackfix.plan.hook_text import LOADER, PATH_LINE, START_LINE, STARTER
from stackfix.plan.records import SetAside, WriteFile
from stackfix.plan.relink_paths import check_inside, check_text

FIELD = re.compile("<(module|packages|libraries|elsewhere)>")
STEM = "_stackfix_preload_"
FIRST_WITH_START_FILES = (3, 15)        # PEP 829


def hook_steps(site: str, libraries: Mapping[str, Sequence[str]], python: str, *, present: Iterable[str] = (),
               elsewhere: Mapping[str, str] | None = None,
               outside: Iterable[str] = ()) -> tuple[WriteFile | SetAside, ...]:
    """Two modules, and the file by which Python starts them, in a site folder; an earlier hook there is set aside.

    site: relative to the prefix
    libraries: what is imported ("torch", the first part) -> libraries relative to `site`, in dependency order; those
        of `outside` folders by their whole paths
    python: "3.11"
    present: names of the files in `site`
    elsewhere: of those packages, the ones that do not lie in `site`, with the folder that they are in
    """
    if not any(libraries.values()):
        return ()
    check_inside(site)
    table = tables(libraries, elsewhere or {}, tuple(outside))
    # Named for what it holds: a venv over another environment that has a hook, too, starts both.
    module = STEM + hashlib.sha256("".join(table.values()).encode()).hexdigest()[:8]
    starter = starter_of(module, python)
    texts = {f"{module}_loader.py": LOADER, f"{module}.py": STARTER, starter[0]: starter[1]}    # what is started last
    written = tuple(WriteFile(path=f"{site}/{name}", text=filled(text, {"module": module, **table}))
                    for name, text in texts.items())
    stale = sorted(name for name in present if is_hook(name) and name not in texts)
    return (*written, *(SetAside(path=f"{site}/{name}") for name in stale))


def tables(libraries: Mapping[str, Sequence[str]], elsewhere: Mapping[str, str],
           outside: Sequence[str] = ()) -> dict[str, str]:
    """What is filled in. Raises BadInput for a path that leaves the site folder, or a name that is none."""
    for name in (*libraries, *elsewhere):
        if not name.isidentifier():
            raise BadInput(name, "is no name of a module", "give the first part of what is imported: torch")
    for path in (path for paths in libraries.values() for path in paths):
        folder = next((each for each in outside if path.startswith(f"{each}/")), None)
        check_inside(path if folder is None else path[len(folder) + 1:])
        check_text(path)
    for path in elsewhere.values():
        check_text(path)
    names = sorted(name for name in libraries if libraries[name])
    return {
        "packages": ", ".join(map(ascii, names)),
        "libraries": "".join(f"    {name!a}: (\n{lines(libraries[name])}    ),\n" for name in names),
        "elsewhere": "".join(f"    {name!a}: {elsewhere[name]!a},\n" for name in names if name in elsewhere),
    }


def filled(text: str, fields: Mapping[str, str]) -> str:
    """The text with the fields put in: all at once, for a path may hold what looks like a field."""
    return FIELD.sub(lambda found: fields[found[1]], text)


def lines(paths: Sequence[str]) -> str:
    return "".join(f"        {path!a},\n" for path in dict.fromkeys(paths))


def starter_of(module: str, python: str) -> tuple[str, str]:
    """(file name, text) of what makes Python call the module at its start."""
    if tuple(int(part) for part in python.split(".")[:2]) >= FIRST_WITH_START_FILES:
        return f"{module}.start", START_LINE
    return f"{module}.pth", PATH_LINE


def is_hook(name: str) -> bool:
    """Whether a file of a site folder is a part of a hook, of this or an earlier repair."""
    return name.startswith(STEM) and name.endswith((".py", ".pth", ".start"))
