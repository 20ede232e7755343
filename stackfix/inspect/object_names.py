"""What the name of a shared object tells: whether Python can import it, and which folders hold libraries. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stackfix.inspect.environment_records import LibraryFolder, SharedObject

EXTENSION = re.compile(r"(?P<module>[A-Za-z_]\w*)(?:\.(?P<tag>cpython-\d+t?[-\w]*|pypy\d+[-\w]*|abi3t?))?\.so")


def module_of(path: str) -> tuple[str | None, str | None]:
    """(`torch._C`, tag) for a path in a site folder that can be imported; `lib….so` without a tag is a library."""
    *packages, name = path.split("/")
    match = EXTENSION.fullmatch(name)
    if match is None or not all(each.isidentifier() for each in packages):
        return None, None
    if match["tag"] is None and match["module"].startswith("lib"):
        return None, None
    return ".".join([*packages, match["module"]]), match["tag"]


def library_folders(objects: Sequence[SharedObject]) -> tuple[LibraryFolder, ...]:
    """Folders that hold libraries, by path: `nvidia/cublas/lib`, `nvidia/cu13/lib`, `torch/lib`, `numpy.libs`."""
    found: dict[str, list[SharedObject]] = {}
    for each in objects:
        folder, _, name = each.path.rpartition("/")
        if name.startswith("lib") and each.module is None:
            found.setdefault(folder, []).append(each)
    return tuple(LibraryFolder(
        path=folder, owners=tuple(sorted({owner for each in inside for owner in each.owners})),
        libraries=tuple(sorted(each.path.rpartition("/")[2] for each in inside)),
    ) for folder, inside in sorted(found.items()))
