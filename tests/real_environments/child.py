"""What really happens: an import in a fresh process, and the files that it maps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.judges.command import Run, run
from tests.real_environments.workshop import Made, Workshop

# Runs inside the environment under test. Words with a slash are libraries to be opened. Paths in the order of their
# first mapping; modules in that of their import.
SCRIPT = """
import ctypes, importlib, json, os, sys
error = None
try:
    for name in sys.argv[1:]:
        ctypes.CDLL(name) if "/" in name else importlib.import_module(name)
except BaseException as raised:
    error = f"{type(raised).__name__}: {raised}"
with open("/proc/self/maps") as maps:
    paths = [line.split(None, 5)[5].rstrip("\\n") for line in maps if " /" in line]
modules = [[name, module.__file__] for name, module in list(sys.modules.items())
           if ".so" in (getattr(module, "__file__", None) or "")]
print(json.dumps({"error": error, "executable": os.path.realpath(sys.executable), "modules": modules,
                  "mapped": list(dict.fromkeys(paths))}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a child said of itself."""

    error: str | None               # "ImportError: … undefined symbol: …"
    executable: str                 # the file behind all links
    modules: tuple[tuple[str, str], ...]    # extension modules that are files, in the order of import
    mapped: frozenset[str]          # libraries and the program, by their real paths


def imports(workshop: Workshop, made: Made, *names: str, **variables: str) -> Told:
    """Import modules in a child of the environment, with nothing of this machine but `variables`."""
    return told_by(run([made.python, "-B", "-c", SCRIPT, *names], cwd=workshop.folder, env=workshop.quiet(**variables)))


def told_by(done: Run) -> Told:
    """What a child with our script said."""
    assert done.status == 0, done
    told = json.loads(done.stdout.splitlines()[-1])
    program = told["executable"]
    mapped = frozenset(path for path in told["mapped"] if ".so" in Path(path).name or path == program)
    return Told(error=told["error"], executable=program, mapped=mapped,
                modules=tuple((name, file) for name, file in told["modules"]))
