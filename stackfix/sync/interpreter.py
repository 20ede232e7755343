"""Which environment to bring to the lock, and what its Python says of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stackfix.errors import BadInput, Unreachable
from stackfix.sync.records import Interpreter
from stackfix.sync.targets import SUBDIRS

SECONDS = 60
# Runs in the other Python: standard library only, and no syntax that an old one lacks
PROBE = """
import importlib.util, json, os, platform, sys, sysconfig
version = "%d.%d.%d" % sys.version_info[:3]
level = sys.version_info[3]
full = version if level == "final" else version + level[0] + str(sys.version_info[4])
print(json.dumps({
    "prefix": sys.prefix,
    "externally_managed": sys.prefix == sys.base_prefix and os.path.exists(
        os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")),
    "sites": [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")],
    "has_pip": importlib.util.find_spec("pip") is not None,
    "markers": {
        "implementation_name": sys.implementation.name,
        "implementation_version": full,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": full,
        "platform_python_implementation": platform.python_implementation(),
        "python_version": "%d.%d" % sys.version_info[:2],
        "sys_platform": sys.platform,
    },
}))
"""


def find_executable(*, prefix: str | None, python: str | None, environ: Mapping[str, str]) -> Path:
    """The interpreter of the environment: asked for, else the active one, else the one that runs this.

    Raises BadInput where there is none.
    """
    if prefix is not None and python is not None:
        raise BadInput("--prefix and --python", "name the environment twice", "give one of them")
    if python is not None:
        return checked(Path(python), f"--python {python}")
    if prefix is not None:
        return checked(in_prefix(Path(prefix)), f"--prefix {prefix}")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environ.get(variable):
            return checked(in_prefix(Path(environ[variable])), f"{variable}={environ[variable]}")
    return Path(sys.executable)


def in_prefix(prefix: Path) -> Path:
    """Where an environment keeps its Python."""
    if os.name == "nt":
        return prefix / "Scripts" / "python.exe"
    place = prefix / "bin" / "python"
    beside = place.with_name("python3")     # all that /usr has on some systems
    return beside if beside.is_file() and not place.is_file() else place


def checked(path: Path, thing: str) -> Path:
    """The absolute path, links kept: a venv's Python is a link, and what it links to is another environment."""
    if not path.is_file() or not os.access(path, os.X_OK):
        raise BadInput(thing, f"no Python there: {path}", "name an environment with --prefix DIR or --python EXE")
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the link


def read_interpreter(executable: Path) -> Interpreter:
    """What the interpreter says of itself, asked in a child. Raises Unreachable where it does not answer."""
    try:        # -B: .pth files import modules, and a repair that is undone may leave no compiled ones
        done = subprocess.run([str(executable), "-I", "-B", "-c", PROBE], capture_output=True, text=True,
                              timeout=SECONDS, check=False, errors="replace")
    except subprocess.TimeoutExpired as error:
        raise Unreachable(str(executable), f"did not answer within {SECONDS} s") from error
    except OSError as error:
        raise Unreachable(str(executable), f"cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unreachable(str(executable), f"ended with status {done.returncode}: {last[:200]}",
                          "is it a Python 3 interpreter?")
    return parse_answer(done.stdout, str(executable))


def parse_answer(text: str, executable: str) -> Interpreter:
    """The record of the last line that the child printed. Raises Unreachable where that is no answer."""
    try:
        answer: dict[str, Any] = json.loads((text.strip().splitlines() or [""])[-1])
        markers = {str(key): str(value) for key, value in answer["markers"].items()}
        machine = (markers["sys_platform"], markers["platform_machine"])
        return Interpreter(
            executable=executable,
            prefix=str(answer["prefix"]),
            python=markers["python_version"],
            implementation=markers["implementation_name"],
            platform=SUBDIRS.get(machine, "-".join(("other", *machine))),
            externally_managed=answer["externally_managed"] is True,
            has_pip=answer["has_pip"] is True,
            markers=tuple(sorted(markers.items())),
            sites=tuple(dict.fromkeys(str(site) for site in answer["sites"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreachable(executable, "did not answer as a Python interpreter does",
                          "name another with --python EXE") from error
