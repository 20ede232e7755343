"""Which Python builds for a target, and what the programs of a build are told of this machine: little."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from stackfix.platforms import PLATFORMS
from stackfix.sources.sdist_build_run import run_bounded

SECONDS = 30.0          # for a program that only says where or what it is
# What a compiler, a loader or a clock needs. No token, no login, no setting of pip or uv, no PYTHONPATH.
_KEPT = frozenset((
    "PATH", "LANG", "LANGUAGE", "TZ", "SOURCE_DATE_EPOCH", "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS",
    "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "MACOSX_DEPLOYMENT_TARGET", "SYSTEMROOT",
))
# Where interpreters are kept: for the program that looks for them, never for the code of an sdist
_WHEREABOUTS = ("HOME", "PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "XDG_DATA_HOME")
_VERSION = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"


def build_environment(environ: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """What the code of an sdist sees: a home and a temporary folder of its own, and installers that reach no index."""
    kept = {name: value for name, value in environ.items() if name in _KEPT or name.startswith("LC_")}
    return {
        **kept, "HOME": str(scratch / "home"), "TMPDIR": str(scratch / "tmp"), "USERPROFILE": str(scratch / "home"),
        "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1",
        "PIP_NO_INPUT": "1", "UV_NO_CONFIG": "1", "UV_OFFLINE": "1", "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }


def find_uv(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """How uv is started: the one on PATH, else the one beside us."""
    on_path = shutil.which("uv", path=environ.get("PATH"))
    if on_path:
        return (on_path,)
    return (sys.executable, "-I", "-m", "uv") if importlib.util.find_spec("uv") is not None else None


def find_python(minor: str, environ: Mapping[str, str], scratch: Path) -> str | None:
    """An interpreter of this Python minor on this machine: this one, one that uv knows, or the one on PATH."""
    if minor == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    own = build_environment(environ, scratch)
    told = {name: environ[name] for name in _WHEREABOUTS if name in environ}
    uv = find_uv(environ)
    candidates = [shutil.which(f"python{minor}", path=environ.get("PATH")), *_of_pyenv(minor, told)]
    if uv is not None:
        found = run_bounded(
            [*uv, "python", "find", "--quiet", "--no-cache", "--no-config", "--no-project", "--no-python-downloads",
             "--offline", minor],
            environ={**own, **told}, folder=scratch, until=time.monotonic() + SECONDS)
        candidates.append(found.said.strip() if found.status == 0 else None)
    for candidate in filter(None, candidates):
        said = run_bounded([candidate, "-I", "-c", _VERSION], environ=own, folder=scratch,
                           until=time.monotonic() + SECONDS)
        if said.status == 0 and said.said.strip() == f"cpython {minor}":
            return candidate
    return None


def _of_pyenv(minor: str, told: Mapping[str, str]) -> list[str]:
    """Interpreters that pyenv keeps, whether or not it puts them on PATH."""
    if not ("PYENV_ROOT" in told or "HOME" in told):
        return []
    root = Path(told.get("PYENV_ROOT") or f"{told['HOME']}/.pyenv")
    return sorted(str(path) for path in root.glob(f"versions/{minor}.*/bin/python") if path.is_file())[::-1]


def machine_name() -> str:
    """The platform that builds here are for: `linux-64`, or in the system's own words where it is none of ours."""
    found = (each.subdir for each in PLATFORMS.values()
             if (each.system, each.machine) == (platform.system(), platform.machine()))
    return next(found, f"{platform.system()} {platform.machine()}".lower())
