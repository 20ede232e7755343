"""Which environment is meant, as a tuple of steps; each answer says how it was found."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.places import Root, must_list, reason_of, why_unreached

PYTHON_FOLDER = re.compile(r"(?:python3\.\d{1,2}t?|pypy3(?:\.\d{1,2})?)")
# python3.13t, pypy3.10, python3-dbg, python3.11-intel64, RHEL's platform-python; no python3-config
PROGRAM = re.compile(r"(?:platform-)?(?:python|pypy)[\d.]*[a-z]{0,3}(?:-dbg|-intel64)?")
HINT = "name an environment with --prefix DIR or --python EXE"
USUAL = ("/opt/venv", "/venv", "/opt/conda", "/opt/miniconda3", "/opt/micromamba", "/usr/local", "/usr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An environment's place."""

    prefix: str
    found_via: str
    executable: str | None      # the one that was asked for


def find_environment(root: Root, environ: Mapping[str, str], *, prefix: str | None = None, python: str | None = None,
                     running: str | None = None) -> Found:
    """The environment asked for, else the active one, else that of the running interpreter (`running`, its prefix).

    Paths are absolute and inside the root. In a tree, where nothing runs, the Python on PATH and then the usual places
    take the last step. Raises BadInput where the place named is no environment: it is never passed over for the next.
    """
    if prefix and python:
        raise BadInput("--prefix and --python", "name the environment twice", "give one of them")
    if prefix:
        return Found(prefix=checked(root, tidy(prefix), f"--prefix {prefix}"), found_via="--prefix", executable=None)
    if python:
        return of_executable(root, python, environ)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if named := environ.get(variable):
            place = checked(root, tidy(named), f"{variable}={named}")
            return Found(prefix=place, found_via=variable, executable=None)
    if running and root.live:
        return Found(prefix=checked(root, tidy(running), running), found_via="running interpreter", executable=None)
    return in_tree(root, environ)


def tidy(path: str) -> str:
    """Without a slash at its end; `..` stays, for only the disk knows what it means behind a link."""
    if not path.startswith("/"):
        raise BadInput(path, "is no absolute path", "give the path from the root on")
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


def checked(root: Root, prefix: str, thing: str) -> str:
    """The prefix. Raises BadInput unless a venv, a conda prefix or a Python lies there."""
    try:
        root.resolve(prefix)
    except PermissionError as error:
        raise Unreachable(thing, reason_of(error)) from error
    except OSError as error:
        raise BadInput(thing, why_unreached(root, prefix, error) or "no such folder", HINT) from error
    if not root.is_folder(prefix):
        reason = "is a file, not a folder" if root.is_file(prefix) else "is neither a folder nor a file"
        hint = f"for a Python's own path use --python {prefix}" if root.is_file(prefix) else HINT
        raise BadInput(thing, reason, hint)
    if not is_environment(root, prefix):
        must_be_readable(root, prefix)
        raise BadInput(thing, "is no environment: it has no pyvenv.cfg, no conda-meta and no lib/python3.*", HINT)
    return prefix


def must_be_readable(root: Root, prefix: str) -> None:
    """Raises Unreachable where a folder that would tell what the prefix is cannot be listed."""
    for folder in (prefix, f"{prefix}/lib", f"{prefix}/lib64"):
        if root.is_folder(folder):
            must_list(root, folder)


def is_environment(root: Root, prefix: str) -> bool:
    return (root.is_file(f"{prefix}/pyvenv.cfg") or root.is_folder(f"{prefix}/conda-meta")
            or bool(python_folders(root, prefix)))


def python_folders(root: Root, prefix: str) -> tuple[str, ...]:
    """lib/python3.x folders that hold packages or a standard library, lib64 too; one for each real folder."""
    named = [(entry.kind == "link", f"{prefix}/{lib}/{entry.name}") for lib in ("lib", "lib64")
             for entry in root.find_entries(f"{prefix}/{lib}") if PYTHON_FOLDER.fullmatch(entry.name)]
    found = [path for _, path in sorted(named)]     # links last: conda's Python has lib/python3.1 -> python3.11
    inside = ("site-packages", "dist-packages", "os.py")
    return root.first_folders(path for path in found if any(root.exists(f"{path}/{name}") for name in inside))


def of_executable(root: Root, python: str, environ: Mapping[str, str]) -> Found:
    """The environment of an interpreter, by the files around it (as getpath.py of CPython looks for its landmarks)."""
    path = on_path(root, python, environ) if "/" not in python else tidy(python)
    if path is None:
        raise BadInput(f"--python {python}", "no such program on PATH", HINT)
    thing = f"--python {python}" if "/" in python else f"--python {python}, on PATH {path}"
    must_be_program(root, path, thing)
    # A venv's Python is a link: the folder of the link counts, and only without pyvenv.cfg the folder behind it.
    for place in (path, root.find(path)):
        prefix = parent(parent(place)) if place else None
        if prefix is not None and (root.is_file(f"{prefix}/pyvenv.cfg") or python_folders(root, prefix)):
            return Found(prefix=prefix, found_via="--python", executable=path)
    if is_script(root, path):
        raise BadInput(thing, "is a script, and which Python it starts is only known when it is run",
                       f"name that Python: `pyenv which {python.rpartition('/')[2]}`" if "/shims/" in path else HINT)
    raise BadInput(thing, "no environment around it: neither pyvenv.cfg nor lib/python3.*",
                   "name the environment with --prefix DIR")


def must_be_program(root: Root, path: str, thing: str) -> None:
    """Raises BadInput unless `path` is a file that is called as a Python is, itself or behind its links.

    Around /bin/ls lies the system's lib/python3.11, too. A venv's link to a base that is gone is still its Python.
    """
    if root.is_folder(path):
        raise BadInput(thing, "is a folder", f"for an environment's folder use --prefix {path}")
    reached, in_venv = root.find(path), root.is_file(f"{parent(parent(path))}/pyvenv.cfg")
    names = [each.rpartition("/")[2] for each in (path, reached) if each]
    called_so = any(PROGRAM.fullmatch(name) for name in names)
    if reached is None and not (in_venv and called_so and root.lexists(path)):
        reason = "no such file"
        try:
            root.resolve(path)
        except PermissionError as error:
            raise Unreachable(thing, reason_of(error)) from error
        except OSError as error:
            reason = why_unreached(root, path, error) or reason
        raise BadInput(thing, reason, HINT)
    if reached is not None and not root.is_file(reached):
        raise BadInput(thing, "is no file", HINT)
    if not called_so:
        hint = f"name the interpreter beside it: --python {parent(path)}/python" if in_venv else HINT
        raise BadInput(thing, "is no Python interpreter", hint)


def is_script(root: Root, path: str) -> bool:
    try:
        return root.read_head(path, 2) == b"#!"
    except OSError:
        return False


def on_path(root: Root, name: str, environ: Mapping[str, str]) -> str | None:
    """The file that a shell would start under this name: the first that may be executed."""
    for folder in environ.get("PATH", "").split(":"):
        status = root.status(f"{folder}/{name}") if folder.startswith("/") else None
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_mode & 0o111:
            return f"{tidy(folder)}/{name}".replace("//", "/")
    return None


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def in_tree(root: Root, environ: Mapping[str, str]) -> Found:
    """The Python that a shell in the tree would start, else the one usual place that has an environment."""
    for name in ("python", "python3"):
        if on_path(root, name, environ):
            found = of_executable(root, name, environ)
            return Found(prefix=found.prefix, found_via="PATH", executable=found.executable)
    present = [place for place in USUAL if is_environment(root, place)]
    if len(present) == 1:
        return Found(prefix=present[0], found_via="usual place", executable=None)
    if present:
        raise BadInput(root.folder, f"has several environments: {', '.join(present)}", "name one with --prefix DIR")
    raise BadInput(root.folder, "no environment is named, and the usual places have none", HINT)
