"""Makes environments with uv, one at a time, from a cache of its own that goes with it.

uv's files are hard links into its cache: an environment costs nothing once its wheels are there, and none of its files
may be opened for writing. All changes here are uv's own, or remove a name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.judges.command import Run, run

NO_NETWORK = re.compile(r"error sending request|failed to lookup address|dns error|connection refused|timed out"
                        r"|network is unreachable|client error \(connect\)|connectivity is disabled", re.IGNORECASE)
REACH = ("PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy",
         "https_proxy", "all_proxy")
PATIENCE = 3000     # seconds for gigabytes over a slow line


@dataclass(frozen=True, kw_only=True)
class Made:
    """One environment."""

    prefix: Path

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    @property
    def site(self) -> Path:
        return next(self.prefix.glob("lib/python3*/site-packages"))


@dataclass(kw_only=True)
class Workshop:
    """A folder with uv's cache and the environments. `peak`: most bytes that it was seen to hold."""

    folder: Path
    wheels: Path | None = None      # where all wheels are, instead of on the index
    peak: int = 0
    _count: int = field(default=0, repr=False)
    _base: tuple[str, ...] = field(default=(), repr=False)

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def quiet(self, **added: str) -> dict[str, str]:
        """Variables of a process that should meet nothing of this machine: no library paths, no user site."""
        reach = {name: os.environ[name] for name in REACH if name in os.environ}
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {**reach, "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8", **added}

    def uv(self, *words: str | Path) -> Run:
        """One call of uv. Skips the test where the index cannot be reached, fails it on any other error."""
        program = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
        settings = self.quiet(UV_CACHE_DIR=str(self.cache), UV_NO_CONFIG="1", UV_LINK_MODE="hardlink",
                              UV_PYTHON_DOWNLOADS="never", UV_HTTP_TIMEOUT="300", NO_COLOR="1")
        if "PIP_CERT" in settings:
            settings.setdefault("SSL_CERT_FILE", settings["PIP_CERT"])
        done = run([program, *words], cwd=self.folder, env=settings, timeout=PATIENCE)
        self.measure()
        if done.status and NO_NETWORK.search(done.stderr):
            pytest.skip(f"the package index cannot be reached: {done.stderr.strip().splitlines()[-1]}")
        assert done.status == 0, done
        return done

    def make(self, *requirements: str, python: str) -> Made:
        """A new environment of Python `python` ("3.11") with what uv resolves the requirements to.

        The one before is removed, and the cache too unless the requirements are the same.
        """
        if (*requirements, python) != self._base or not requirements:
            self.clear()
        elif self._count:
            shutil.rmtree(self.folder / f"env{self._count}")
        self._base = (*requirements, python)
        self._count += 1
        made = Made(prefix=self.folder / f"env{self._count}")
        self.uv("venv", "--quiet", "--python", find_python(python), made.prefix)
        if requirements:
            self.install(made, *requirements)
        return made

    def install(self, made: Made, *words: str) -> None:
        """`uv pip install …` into it."""
        self.uv("pip", "install", "--quiet", "--python", made.python, *self._source(), *words)

    def _source(self) -> tuple[str, ...]:
        return ("--no-index", "--find-links", str(self.wheels)) if self.wheels else ()

    def put(self, made: Made, *pins: str) -> None:
        """Exactly these wheels into it, whatever they need and whatever they take the place of."""
        self.install(made, "--no-deps", *pins)

    def put_again(self, made: Made, *pins: str) -> None:
        """The same where the metadata may say that they are there already."""
        self.install(made, "--no-deps", "--reinstall", *pins)

    def take(self, made: Made, *projects: str) -> None:
        """`uv pip uninstall …` from it."""
        self.uv("pip", "uninstall", "--quiet", "--python", made.python, *projects)

    def unpack(self, pin: str, python: str) -> Path:
        """A folder with one wheel in it, as a stray copy of a library."""
        folder = self.folder / re.sub(r"\W+", "-", pin)
        if not folder.exists():
            self.uv("pip", "install", "--quiet", "--python-version", python, "--no-deps", *self._source(),
                    "--target", folder, pin)
        return folder

    def clear(self) -> None:
        """Give all disk back."""
        for entry in self.folder.iterdir():
            shutil.rmtree(entry)

    def measure(self) -> None:
        """Note how much disk is in use."""
        seen: dict[int, int] = {}
        for path in self.folder.rglob("*"):
            status = path.lstat()
            seen[status.st_ino] = status.st_blocks * 512
        self.peak = max(self.peak, sum(seen.values()))


def find_python(minor: str) -> Path:
    """An interpreter of this minor version. Skips the test where the machine has none."""
    return next(interpreters(minor), None) or pytest.skip(f"no Python {minor} on this machine")


def interpreters(minor: str) -> Iterator[Path]:
    """Those that start and are of this minor version: our own, on PATH, and where pyenv's links lead."""
    name = f"python{minor}"
    candidates = [Path(sys.executable)]
    for folder in map(Path, os.environ.get("PATH", os.defpath).split(os.pathsep)):
        candidates += sorted(folder.parent.glob(f"versions/{minor}.*/bin/{name}")) if folder.name == "shims" else ()
        candidates.append(folder / name)
    for path in candidates:
        if path.is_file() and says_minor(path) == minor:
            yield path


def says_minor(python: Path) -> str | None:
    """"3.11" of an interpreter, None of what cannot be started."""
    try:
        done = subprocess.run([python, "-I", "-S", "-c", "import sys; print(*sys.version_info[:2], sep='.')"],
                              capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
