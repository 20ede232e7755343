"""Editable installations: .pth lines, setuptools' `__editable__` finders, egg-links and direct_url.json."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from stackfix.inspect.environment_records import Distribution, Editable, Note, PathFile
from stackfix.inspect.places import MIB, Entry, Root, reason_of
from stackfix.inspect.wheels import normalised

FINDER = re.compile(r"__editable___(?P<name>.+?)_finder\.py")
# setuptools; hatchling and others that use `editables`; meson-python and scikit-build-core
MARKED = re.compile(r"(?:__editable__[._](.+?)-[^-]+|_editable_impl_(.+)|_?(\w+?)[-_]editable)\.pth")
HOOK = re.compile(r"_editable|__editable")


def find_editables(root: Root, folder: str, entries: Sequence[Entry], path_files: Sequence[PathFile],
                   distributions: Sequence[Distribution], notes: list[Note]) -> Iterator[Editable]:
    """Every editable installation of one site folder; one project may be told by several files."""
    for entry in entries:
        path = f"{folder}/{entry.name}"
        if match := FINDER.fullmatch(entry.name):
            yield Editable(project=normalised(re.sub(r"_\d[\w]*$", "", match["name"])), how="finder", file=path,
                           targets=read_mapping(root, path, notes))
        elif entry.name.endswith(".egg-link"):
            line = (root.find_text(path) or "").strip().partition("\n")[0].strip()
            yield Editable(project=normalised(entry.name.removesuffix(".egg-link")), how="egg-link", file=path,
                           targets=(posixpath.normpath(posixpath.join(folder, line)),) if line else ())
    for file in path_files:
        if posixpath.dirname(file.path) == folder:
            yield from of_path_file(file)
    for each in distributions:
        if each.site == folder and each.origin is not None and each.origin.editable:
            yield Editable(project=each.name, how="direct-url", file=f"{each.metadata}/direct_url.json",
                           targets=local_path(each.origin.url))


def of_path_file(file: PathFile) -> Iterator[Editable]:
    """A marked .pth with folders is an editable path; easy-install.pth lists folders of several projects."""
    name = posixpath.basename(file.path)
    match = MARKED.fullmatch(name)
    outside = tuple(path for path in file.adds if not path.endswith(".egg"))
    project = normalised(next(filter(None, match.groups()))) if match else None
    if match and file.adds:
        yield Editable(project=project, how="path", file=file.path, targets=file.adds)
    elif match and any(HOOK.search(line) for line in file.executes) and "__editable___" not in "".join(file.executes):
        yield Editable(project=project, how="finder", file=file.path, targets=())
    elif name == "easy-install.pth" and outside:
        yield Editable(project=None, how="path", file=file.path, targets=outside)


def local_path(url: str) -> tuple[str, ...]:
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:      # a bracket left open
        return ()
    return (unquote(parts.path),) if parts.scheme == "file" and parts.path else ()


def read_mapping(root: Root, path: str, notes: list[Note]) -> tuple[str, ...]:
    """Targets of MAPPING in a setuptools finder, read as a literal and never run."""
    import ast

    try:
        tree = ast.parse(root.read_bytes(path, MIB))
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(each, ast.Name) and each.id == "MAPPING" for each in targets):
                mapping = ast.literal_eval(getattr(node, "value", None) or ast.Dict(keys=[], values=[]))
                return tuple(sorted({each for each in mapping.values() if isinstance(each, str)}))
    except OSError as error:
        notes.append(Note(path=path, reason=reason_of(error)))
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError, MemoryError):
        notes.append(Note(path=path, reason="is no editable finder that can be read"))
    return ()
