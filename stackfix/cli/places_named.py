"""Paths and variables as options name them, inside the root that is looked at."""

from __future__ import annotations

import os

from stackfix.errors import BadInput
from stackfix.inspect.places import Root


def place_of(root: Root, path: str) -> str:
    """An absolute path inside the root. In a tree a relative one starts at the root.

    A path of our disk that leads into the tree, as a shell completes it, is the place that it leads to.
    """
    ours = os.path.abspath(path)            # noqa: PTH100 - `..` behind a link is the shell's own meaning
    if root.live:
        return ours
    inside = "/" + path.lstrip("/")
    if ours.startswith(f"{root.folder}/") and not root.lexists(inside):
        return ours[len(root.folder):]
    return inside


def variable_of(text: str) -> tuple[str, str]:
    """`NAME=VALUE` as a pair. Raises BadInput."""
    name, equals, value = text.partition("=")
    if not equals or not name or "\0" in text:
        raise BadInput(f"--env {text}", "is not NAME=VALUE", "for example --env LD_LIBRARY_PATH=/usr/local/cuda/lib64")
    return name, value


def current_folder() -> str:
    """The working directory; `/` where it was deleted."""
    try:
        return os.getcwd()      # noqa: PTH109 - text
    except OSError:
        return "/"
