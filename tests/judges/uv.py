"""Judge: uv. Its dry run must take each file; its own resolution, limited to our pins, must give our set."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.judges.command import Run, clean_environment, run
from tests.judges.lockfile import Entry, logical_lines, normal, read_entries
from tests.replay.releases import REQUIRES, ReleaseServer, stand_in

Requires = Mapping[str, tuple[str, ...]]
NONE: Requires = {}
MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}
ELSEWHERE = {"win-64": "x86_64-pc-windows-msvc", "osx-arm64": "aarch64-apple-darwin"}


@dataclass(frozen=True, slots=True, kw_only=True)
class UvJudge:
    """uv without this machine's settings, with a cache of its own."""

    index_url: str
    cache: Path
    python: str
    platform: str
    glibc: str = "2.28"
    macos: str = "14.0"

    def _run(self, *words: str | Path, cwd: Path) -> Run:
        program = shutil.which("uv")
        assert program is not None, "uv is one of the judges: install it (it is in the dev extra)"
        where = ["--python-version", self.python, "--python-platform", self._platform(), "--no-build"]
        index = ["--index-url", self.index_url]
        # else it looks for a Python of the target, here and to download: seconds for what it does not need
        here = ["--python", sys.executable]
        env = clean_environment(UV_CACHE_DIR=str(self.cache), UV_PYTHON_DOWNLOADS="never",
                                MACOSX_DEPLOYMENT_TARGET=self.macos)
        return run([program, *words, *where, *here, *index], cwd=cwd, env=env)

    def run_bare(self, *words: str, cwd: Path) -> Run:
        """uv with these words and no index, for the target."""
        program = shutil.which("uv")
        assert program is not None, "uv is one of the judges: install it (it is in the dev extra)"
        env = clean_environment(UV_CACHE_DIR=str(self.cache), UV_PYTHON_DOWNLOADS="never",
                                MACOSX_DEPLOYMENT_TARGET=self.macos)
        return run([program, *words, "--python-version", self.python, "--python-platform", self._platform(),
                    "--no-build", "--python", sys.executable], cwd=cwd, env=env)

    def _platform(self) -> str:
        if self.platform in ELSEWHERE:
            return ELSEWHERE[self.platform]
        return f"{MACHINES[self.platform]}-manylinux_{self.glibc.replace('.', '_')}"

    def dry_run(self, requirements: Path, scratch: Path, requires: Requires = NONE, *, no_deps: bool = False) -> Run:
        """`uv pip install --dry-run --require-hashes` of the file, URL entries led to stand-ins on loopback."""
        with loopback_urls(requirements, scratch / "judged-requirements.txt", requires) as judged:
            return self._run("pip", "install", "--dry-run", "--require-hashes", *(["--no-deps"] if no_deps else []),
                             "--target", scratch / "target", "-r", judged, cwd=scratch)

    def compile(self, request: Sequence[str], pins: Sequence[Entry], scratch: Path) -> Run:
        """`uv pip compile` of the request, constrained to the pins; `request` names flash-attn only by URL."""
        limits = scratch / "judged-constraints.txt"
        limits.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in pins if pin.version), encoding="utf-8")
        asked = scratch / "judged-request.in"
        asked.write_text("".join(f"{line}\n" for line in request), encoding="utf-8")
        return self._run("pip", "compile", "--no-header", "--no-annotate", "-q", "-c", limits, asked, cwd=scratch)


def compiled_set(text: str) -> set[str]:
    """name==version of each pin (name alone for a URL)."""
    return {_pin(line) for line in logical_lines(text)}


def locked_set(entries: Sequence[Entry]) -> set[str]:
    """The same of our lock."""
    return {f"{entry.name}=={entry.version}" if entry.version else entry.name for entry in entries}


def _pin(line: str) -> str:
    found = re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*(?:==\s*([^\s;]+)|@)", line)
    assert found is not None, line
    return f"{normal(found[1])}=={found[2]}" if found[2] else normal(found[1])


@contextmanager
def loopback_urls(requirements: Path, judged: Path, requires: Requires = NONE) -> Iterator[Path]:
    """A copy of the file whose URL entries point at stand-in wheels on loopback, with the stand-ins' hashes.

    `requires`: URL -> Requires-Dist of the stand-in.
    """
    urls = [entry for entry in read_entries(requirements) if entry.url is not None and not on_loopback(entry.url)]
    assets: dict[str, tuple[str, ...]] = {}
    wheels: dict[str, tuple[str, ...]] = {}
    for entry in urls:
        version, file = release_path(str(entry.url))
        assets[version] = (*assets.get(version, ()), file)
        wheels[version] = requires.get(str(entry.url), REQUIRES)
    with ReleaseServer(assets, requires=wheels) as server:
        text = requirements.read_text(encoding="utf-8")
        for entry in urls:
            parts = urlsplit(str(entry.url))
            text = text.replace(f"{parts.scheme}://{parts.netloc}/", f"{server.url}/")
            version, file = release_path(str(entry.url))
            digest = hashlib.sha256(stand_in(file, wheels[version])).hexdigest()
            for stated in entry.hashes:
                text = text.replace(stated, digest)
        judged.write_text(text, encoding="utf-8")
        yield judged


def on_loopback(url: str) -> bool:
    """Whether an address leads to a server of a test already."""
    return urlsplit(url).hostname == "127.0.0.1"


def release_path(url: str) -> tuple[str, str]:
    """(version, file name) of a release asset's address."""
    folder, _, file = urlsplit(url).path.rpartition("/")
    return unquote(folder.rpartition("/")[2]).removeprefix("v"), unquote(file)
