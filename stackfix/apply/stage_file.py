"""A new file in a stage, on the disk."""

from __future__ import annotations

import os

from stackfix.apply import syscalls
from stackfix.apply.tree import Tree, split


def write_text(tree: Tree, path: str, text: str) -> None:
    """Makes the file, whose folder is there. Raises OSError."""
    parent, name = split(path)
    with tree.folder(parent) as folder:
        descriptor = syscalls.create(name, folder=folder)
        try:
            syscalls.write(descriptor, text.encode("utf-8", "surrogateescape"))
            syscalls.set_mode(descriptor, 0o644)
            syscalls.sync(descriptor)
        finally:
            os.close(descriptor)
        syscalls.sync(folder)
