"""Places of an environment, as a plan writes them."""

from __future__ import annotations

import posixpath

from stackfix.diagnose.situation import View

# Folders that hold everything: first on the loader's path they break programs that were built to find other copies
SYSTEM = frozenset({"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"})


def folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def is_inside(view: View, path: str) -> bool:
    """Whether a path lies in the prefix, as its text has it."""
    return view.is_inside(path)


def is_broad(view: View, folder: str) -> bool:
    """Whether a folder holds far more than one library's files."""
    multiarch = posixpath.dirname(folder) in {"/lib", "/usr/lib"} and folder.endswith("-linux-gnu")
    sites = {each.path for each in view.environment.sites}
    return folder in SYSTEM or multiarch or folder in sites or folder == f"{view.environment.prefix}/lib"


def inside(view: View, path: str) -> str:
    """A path relative to the prefix."""
    return path[len(view.environment.prefix) + 1:]


def relative(target: str, link: str) -> str:
    """What a link at `link` says to lead to `target`."""
    return posixpath.relpath(target, folder_of(link))
