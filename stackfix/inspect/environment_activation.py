"""What puts variables around a Python of the environment: activation scripts and Jupyter kernels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from stackfix.inspect.environment_records import ActivationScript, JupyterKernel, Note
from stackfix.inspect.places import MIB, Root, reason_of

SCRIPT_LIMIT = MIB
LINE_LIMIT = 2000       # characters kept of one line
# Comments may name what they like, but for those by which our own scripts say what they do (diagnose.plumbing_marks)
TELLING = re.compile(r"^\s*# stackfix sets |"
                     r"^[^#]*\b(?:LD_(?:LIBRARY_PATH|PRELOAD|AUDIT)|(?:CUDA|CUDNN|NVIDIA)_\w+|PYTHON(?:PATH|NOUSER))")
SCRIPTS = (".sh", ".fish", ".csh", ".ps1", ".xsh", ".bat")


def read_activation(root: Root, prefix: str, notes: list[Note]) -> Iterator[ActivationScript]:
    """conda's activate.d and deactivate.d in the order in which they are sourced (by name), then a venv's scripts."""
    for phase in ("activate", "deactivate"):
        folder = f"{prefix}/etc/conda/{phase}.d"
        for entry in root.find_entries(folder):
            if entry.name.endswith(SCRIPTS):
                yield from read_script(root, f"{folder}/{entry.name}", phase, notes, quiet=False)
    if root.is_file(f"{prefix}/pyvenv.cfg"):
        for name in ("activate", "activate.csh", "activate.fish", "Activate.ps1", "activate.nu"):
            yield from read_script(root, f"{prefix}/bin/{name}", "activate", notes, quiet=True)


def read_script(root: Root, path: str, phase: str, notes: list[Note], *, quiet: bool) -> Iterator[ActivationScript]:
    """The script; a `quiet` one only where it has a telling line, for every venv has such scripts."""
    try:
        text = root.read_bytes(path, SCRIPT_LIMIT).decode("utf-8", "replace")
    except OSError as error:
        if not quiet:
            notes.append(Note(path=path, reason=reason_of(error)))
        return
    lines = tuple((number, line.strip()[:LINE_LIMIT]) for number, line in enumerate(text.splitlines(), start=1)
                  if TELLING.search(line))
    if lines or not quiet:
        yield ActivationScript(path=path, phase=phase, lines=lines)


def read_kernels(root: Root, prefix: str, environ: Mapping[str, str], notes: list[Note]) -> Iterator[JupyterKernel]:
    """kernel.json files of the prefix and of the user: Jupyter starts Python without any activation."""
    home = environ.get("HOME", "")
    folders = [f"{prefix}/share/jupyter/kernels"]
    folders += [f"{home.rstrip('/')}/.local/share/jupyter/kernels"] if home.startswith("/") else []
    for folder in root.first_folders(folders):
        for entry in root.find_entries(folder):
            path = f"{folder}/{entry.name}/kernel.json"
            try:
                yield parse_kernel(json.loads(root.read_bytes(path, SCRIPT_LIMIT)), path, entry.name)
            except FileNotFoundError:
                continue
            except OSError as error:
                notes.append(Note(path=path, reason=reason_of(error)))
            except (ValueError, TypeError, AttributeError, RecursionError):
                notes.append(Note(path=path, reason="is no kernel.json"))


def parse_kernel(stated: dict[str, object], path: str, name: str) -> JupyterKernel:
    """The kernel. Raises TypeError or AttributeError where the document is none."""
    argv, variables = stated.get("argv"), stated.get("env") or {}
    if not isinstance(argv, list) or not isinstance(variables, dict):
        raise TypeError(path)
    return JupyterKernel(
        path=path, name=name, python=argv[0] if argv and isinstance(argv[0], str) else None,
        variables=tuple(sorted((str(key), str(value)) for key, value in variables.items())),
    )
