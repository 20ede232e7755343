"""Sessions: `nox` runs lint and tests; `nox -l` lists the rest. All install from the development lock, by hash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nox

nox.options.sessions = ["lint", "tests"]
nox.options.error_on_missing_interpreters = False

LOCK = "tests/requirements-dev.txt"
EXAMPLES = "docs/examples"
MALFORMED = 2       # exit status: something that was needed to begin is missing
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
# What pip is told about this machine steers no lock and no installation; how to reach an index may.
KEPT = {"PIP_CERT", "PIP_CLIENT_CERT", "PIP_DEFAULT_TIMEOUT", "PIP_PROXY", "PIP_RETRIES"}
CLEAN: dict[str, str | None] = {
    **{name: None for name in os.environ if name.startswith(("PIP_", "UV_")) and name not in KEPT},
    "PIP_CONFIG_FILE": os.devnull,
    "PYTHONPATH": None,
}


@nox.session
def tests(session: nox.Session) -> None:
    """Run the fast tests; `nox -s tests -- -k lock` passes options on to pytest."""
    install_locked(session)
    session.run("pytest", *session.posargs, env=CLEAN)


@nox.session(python=PYTHONS)
def tests_pythons(session: nox.Session) -> None:
    """Run the fast tests on each supported Python that this machine has."""
    if session.python == "3.10":        # older than some of the locked tools take
        session.install("--editable", ".[dev]", env=CLEAN)
        session.run("pytest", *session.posargs, env=CLEAN)
    else:
        tests(session)


@nox.session
def tests_lowest(session: nox.Session) -> None:
    """Run the fast tests on the lowest versions that pyproject.toml declares for the run-time dependencies."""
    lowest = Path(session.create_tmp()) / "lowest.txt"
    session.install("--require-hashes", "-r", LOCK, env=CLEAN)
    session.run("uv", "--quiet", "pip", "compile", "--no-config", "--no-header", "--resolution", "lowest-direct",
                "--output-file", str(lowest), "pyproject.toml", env=CLEAN)
    session.run("uv", "pip", "install", "--no-config", "--python", sys_executable(session), "--reinstall-package",
                "stackfix", "--constraint", str(lowest), "--editable", ".[dev]", env=CLEAN)
    session.run("uv", "pip", "list", "--python", sys_executable(session), env=CLEAN)
    session.run("pytest", *session.posargs, env=CLEAN)


@nox.session
def lint(session: nox.Session) -> None:
    """Run ruff (every rule, each exception with its reason) and mypy strict, tests included."""
    install_locked(session)
    session.run("ruff", "check", ".")
    session.run("mypy")


@nox.session
def locks(session: nox.Session) -> None:
    """Make the development lock and the committed example locks anew; `-- --upgrade` takes the newest versions."""
    install_locked(session)
    session.run(
        "pip-compile", "--quiet", "--no-config", "--extra", "dev", "--generate-hashes", "--allow-unsafe",
        "--strip-extras", "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host",
        "--output-file", LOCK, *session.posargs, "pyproject.toml",
        env={**CLEAN, "CUSTOM_COMPILE_COMMAND": "nox -s locks"},
    )
    # pip-compile has been seen to write the hash of an error page, with exit status 0
    session.run("python", "-m", "tests.dev_lock", LOCK, "--mend")
    with session.chdir(EXAMPLES):
        session.run("stackfix", "lock", *session.posargs, env=CLEAN)


@nox.session
def matrices(session: nox.Session) -> None:
    """Write the matrix anew from the package index; fails where something in it needs a person, line by line."""
    install_locked(session)
    session.run("python", ".ci/matrices.py", env=CLEAN)


@nox.session
def almanac(session: nox.Session) -> None:
    """Make a part of matrices/abi: `nox -s almanac -- torch --add 2.16.0`. See docs/almanac.md."""
    install_locked(session)
    session.run("python", "-m", "stackfix.almanac", *(session.posargs or ["torch", "--check"]), env=CLEAN)


@nox.session
def snapshot(session: nox.Session) -> None:
    """Make the bundled conda records anew from the live channels (an hour); `-- --live --check` compares them."""
    install_locked(session)
    session.run("python", "-m", "stackfix.snapshot", *(session.posargs or ["--live", "--make"]), env=CLEAN)


@nox.session
def real(session: nox.Session) -> None:
    """Run the heavy tests: real wheels, downloaded and installed (25 GB of disk and an hour at most)."""
    install_locked(session)
    session.run("pytest", "-m", "real or torch", *session.posargs, env=CLEAN)


@nox.session
def oracle(session: nox.Session) -> None:
    """Compare the simulated loader with the real one over 2,000 random library graphs; the seed is printed."""
    install_locked(session)
    session.run("python", "-m", "tests.loader_oracle", *(session.posargs or ["--count", "2000"]), env=CLEAN)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Read damaged ELF files for ten minutes: no crash, no hang, bounded memory."""
    install_locked(session)
    session.run("pytest", "tests/test_inspect_elf_fuzz.py", *session.posargs,
                env={**CLEAN, "STACKFIX_FUZZ_SECONDS": "600"})


@nox.session
def bench(session: nox.Session) -> None:
    """Measure `stackfix lock` with uv beside it on a replayed index; exit 2 without uv, 1 where a mark is missed."""
    install_locked(session)
    command = [sys_executable(session), "benchmarks/lock.py", *session.posargs]
    path = os.pathsep.join([session.bin, os.environ.get("PATH", "")])
    environ = {name: value for name, value in os.environ.items() if CLEAN.get(name, value) is not None}
    status = subprocess.run(command, env={**environ, "PATH": path}, check=False).returncode
    if status == MALFORMED:
        sys.exit(MALFORMED)         # nox itself would make it 1
    if status:
        session.error(f"the benchmark ended with status {status}")


def install_locked(session: nox.Session) -> None:
    """Install the development lock with its hashes, then this project without touching the network."""
    session.install("--require-hashes", "-r", LOCK, env=CLEAN)
    session.install("--no-deps", "--no-build-isolation", "--editable", ".", env=CLEAN)


def sys_executable(session: nox.Session) -> str:
    """Path of the session's Python."""
    return str(Path(session.bin) / "python")
