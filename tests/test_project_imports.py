"""Imports point one way, and what start-up must not pay for stays unloaded until a command needs it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.diagnose_world import World, lib

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "stackfix"
MODULES = sorted(path.relative_to(ROOT) for path in PACKAGE.rglob("*.py"))

# What a stage imports beside `stackfix`, `stackfix.errors` and its own modules: earlier stages' records, and a few pure
# functions over them (matrix.query, readable names of symbols, the checks of one value in request). Data flows down.
ALLOWED: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "quick": frozenset(),       # how records are made
    "platforms": frozenset(),   # names of platforms
    "nightly": frozenset(),     # names of nightlies
    "matrix": frozenset(),
    "sources": frozenset({"matrix.records", "conda.records"}),
    "inspect": frozenset({"abi.records", "matrix.records"}),
    "abi": frozenset({"matrix.records", "matrix.toml_files", "inspect.records", "inspect.elf_names",
                      "inspect.fatbin_records"}),
    "almanac": frozenset({"abi", "matrix.toml_files", "matrix.faults", "matrix.rows", "matrix.toml_text", "inspect",
                          "prove.records", "sources.cache", "tables", "write.replace"}),
    "diagnose": frozenset({"abi", "matrix.records", "matrix.query", "matrix.library_records", "inspect.records",
                           "inspect.environment_records", "inspect.machine_records", "inspect.ldso_records",
                           "inspect.fatbin_records"}),
    "explain": frozenset({"abi", "matrix", "inspect.records", "diagnose.finding_records"}),
    "plan": frozenset({"matrix.records", "matrix.library_records", "abi.records", "inspect.records",
                       "inspect.environment_records", "inspect.machine_records", "inspect.ldso_records", "diagnose"}),
    "apply": frozenset({"plan.records", "inspect.places", "inspect.plain", "sync"}),
    "verify": frozenset({"plan.records", "inspect.plain", "inspect.environment_records"}),
    "request": frozenset({"matrix.records", "resolve.records", "conda.records", "write.yaml_read"}),
    "resolve": frozenset({"abi.records", "abi.mangled", "matrix.records", "matrix.query", "matrix.consumers",
                          "sources.records", "sources.errors", "conda.records"}),
    # solves with resolve's own solver: a layout's pip part is one more closure
    "conda": frozenset({"abi.records", "matrix.records", "matrix.query", "sources.records", "sources.errors",
                        "resolve"}),
    "write": frozenset({"matrix.records", "sources.records", "resolve.records", "resolve.target", "conda.records"}),
    "report": frozenset({"matrix.records", "matrix.query", "sources.records", "request.values", "request.versions",
                         "resolve.records", "conda.records", "write.records", "abi.records", "abi.host",
                         "abi.fit_minors",
                         "diagnose.finding_records", "inspect.machine_records", "inspect.environment_records",
                         "inspect.fatbin_records", "plan.records", "apply.records", "verify.records",
                         "explain.records", "explain.here_records", "prove.proof_records",
                         "prove.compare_records"}),
    "snapshot": frozenset({"conda.records", "matrix.load", "matrix.toml_files", "matrix.toml_text", "sources",
                           "write.replace"}),
    "sync": frozenset({"matrix.records", "sources.records", "resolve.records", "conda.records", "write.records"}),
    # a locked stack on a planned tree: diagnose's loader over tables of wheels
    "prove": frozenset({"abi.records", "diagnose", "inspect.records", "inspect.environment_records",
                        "inspect.machine_records", "inspect.ldso_records", "inspect.object_names",
                        "matrix.library_records", "matrix.proof_records", "matrix.records", "resolve.records"}),
    # wheels reduced to tables: downloads what nobody has kept, reads ELF files
    "tables": frozenset({"abi", "inspect", "matrix.toml_files", "prove.records", "sources"}),
}
WIRING = frozenset({"cli", "__main__"})     # alone sees every stage

# Modules that reach the network or start programs: none of them belongs to a stage that only decides or renders.
EDGES = frozenset({"httpx", "http", "socket", "ssl", "subprocess", "urllib.request", "asyncio"})
PURE = frozenset({"errors", "abi", "resolve", "conda", "write", "diagnose", "plan", "prove", "report"})

HEAVY = ("httpx", "packaging", "resolvelib", "rattler", "rich")


def stage_of(module: Path) -> str:
    """`resolve` for stackfix/resolve/decide.py, `errors` for stackfix/errors.py."""
    return module.parts[1].removesuffix(".py")


def imports_of(source: str, module: Path) -> Iterator[str]:
    """Full dotted names that `source` imports, also inside functions; relative imports made absolute."""
    package = module.with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = list(package[: len(package) - node.level + 1]) if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def trespasses(source: str, module: Path) -> list[str]:
    """Imports of stackfix modules that the stage of `module` may not make."""
    stage = stage_of(module)
    if stage in WIRING:
        return []
    allowed = ALLOWED[stage] | {stage, "errors", "quick", "platforms", "nightly", "__version__"}
    inside = (name.removeprefix("stackfix.") for name in imports_of(source, module) if name.startswith("stackfix"))
    return [name for name in inside if not any(name == place or name.startswith(f"{place}.") for place in allowed)]


def edges(source: str, module: Path) -> list[str]:
    """Network and process modules imported by a module that should be pure."""
    names = imports_of(source, module)
    return [name for name in names if any(name == edge or name.startswith(f"{edge}.") for edge in EDGES)]


@pytest.mark.parametrize("module", [m for m in MODULES if m.parts[1] != "__init__.py"], ids=str)
def test_imports_point_one_way(module: Path) -> None:
    assert trespasses((ROOT / module).read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize("module", [m for m in MODULES if stage_of(m) in PURE or m.name == "query.py"], ids=str)
def test_pure_stages_reach_no_network_and_start_no_program(module: Path) -> None:
    assert edges((ROOT / module).read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize("module", [m for m in MODULES if m.name in ("records.py", "errors.py")], ids=str)
def test_records_import_only_the_standard_library(module: Path) -> None:
    outside = {name.partition(".")[0] for name in imports_of((ROOT / module).read_text(encoding="utf-8"), module)}
    assert outside - sys.stdlib_module_names == outside & {"stackfix"}


@pytest.mark.parametrize(
    ("module", "line", "wrong"),
    [
        ("resolve/decide.py", "from stackfix.sources.index import PackageIndex", ["sources.index.PackageIndex"]),
        ("resolve/decide.py", "from stackfix import cli", ["cli"]),
        ("resolve/decide.py", "from ..sources import index", ["sources.index"]),
        ("matrix/query.py", "def f():\n    import stackfix.resolve.records", ["resolve.records"]),
        ("write/files.py", "from stackfix.resolve import decide", ["resolve.decide"]),
        ("errors.py", "from stackfix.matrix.records import Rule", ["matrix.records.Rule"]),
        ("resolve/decide.py", "from stackfix.sources.records import IndexFile", []),
        ("resolve/decide.py", "from stackfix.resolve.provider import Provider", []),
    ],
)
def test_the_judge_of_imports_sees_a_trespass(module: str, line: str, wrong: list[str]) -> None:
    assert trespasses(line, Path("stackfix") / module) == wrong


def test_the_judge_of_purity_sees_an_edge() -> None:
    line = "import subprocess\nfrom urllib import parse, request\nimport socket as s"
    assert edges(line, Path("stackfix/resolve/x.py")) == ["subprocess", "urllib.request", "socket"]


def loaded_by(*lines: str) -> set[str]:
    """Top-level packages in sys.modules after these lines, in a fresh interpreter."""
    code = "\n".join([
        "import atexit, sys",
        "atexit.register(lambda: sys.__stderr__.write('LOADED ' + ' '.join({m.split('.')[0] for m in sys.modules})))",
        *lines,
    ])
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, text=True,
                          check=True, timeout=60)
    assert done.stdout.strip(), done.stderr
    return set(done.stderr.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_start_up_loads_nothing_heavy(option: str) -> None:
    loaded = loaded_by(
        "import runpy",
        f"sys.argv = ['stackfix', '{option}']",
        "runpy.run_module('stackfix', run_name='__main__')",
    )
    assert "stackfix" in loaded
    assert loaded & set(HEAVY) == set()


def test_a_check_loads_nothing_heavy(tmp_path: Path) -> None:
    """It is to be as quick as the loader's own tools: a tenth of a second for packaging alone would be seen."""
    made = World(tmp_path / "tree")
    made.wheel("some", "1.0", {"some.cpython-311-x86_64-linux-gnu.so": lib(needs=("libc.so.6",))},
               requires=("other>=1; python_version > '3'",))
    made.wheel("other", "1.5")
    for option in ("--json", "-v"):
        loaded = loaded_by(
            "import runpy",
            f"sys.argv = ['stackfix', 'check', '--root', {str(made.folder)!r}, '--prefix', '/venv', {option!r}]",
            "runpy.run_module('stackfix', run_name='__main__')",
        )
        assert "stackfix" in loaded
        assert loaded & {*HEAVY, "asyncio", "concurrent", "http", "logging", "socket", "ssl"} == set()


def test_the_judge_of_start_up_sees_a_heavy_import() -> None:
    assert loaded_by("import httpx, packaging.version", "print('done')") >= {"httpx", "packaging"}


def test_module_and_console_script_are_one() -> None:
    from stackfix import __version__

    for command in ([sys.executable, "-m", "stackfix"], [str(Path(sys.executable).parent / "stackfix")]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == f"stackfix, version {__version__}\n"
