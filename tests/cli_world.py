"""A small package index on loopback that agrees with the matrix about torch 2.3, and command lines run against it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stackfix.cli.app import run
from stackfix.matrix import query
from stackfix.matrix.load import load_matrix
from tests.matrix_fakes import torch_wheel
from tests.replay.wheels import make_wheel
from tests.sources_servers import RawServer, ok, path_of, status

ASKED = ("--torch", "2.3", "--python", "3.11", "--no-flash-attn")
CONDARC = Path(__file__).with_name("condarc-offline.yml")   # no live channel is asked: the bundled records stand in
OURS = ("PIP_", "UV_", "STACKFIX_", "CONDA", "VIRTUAL_ENV")
PLAIN = {           # what torch 2.3.1 asks of other projects by no exact version, and what tests ask for beside it
    "filelock": ("3.12.0", "3.15.4"), "typing-extensions": ("4.12.2",), "sympy": ("1.12.1",), "networkx": ("3.3",),
    "jinja2": ("3.1.4",), "fsspec": ("2024.6.0",), "numpy": ("1.26.4", "2.0.0"), "idna": ("3.6", "3.7"),
    "nvidia-nvjitlink-cu12": ("12.1.105",),
}
NEEDS = {"nvidia-cusparse-cu12": ("nvidia-nvjitlink-cu12",)}


def wheels() -> dict[str, dict[str, bytes]]:
    """Project -> file name -> bytes."""
    build = next(build for build in query.builds(load_matrix(), index="default", platform="linux-64")
                 if build.version == "2.3.1")
    pinned = re.findall(r"([a-z0-9-]+)==([0-9.]+) ;", "\n".join(build.requires))
    found: dict[str, dict[str, bytes]] = {
        name: {f"{name.replace('-', '_')}-{version}-py3-none-any.whl": b"" for version in versions}
        for name, versions in {**PLAIN, **{name: (version,) for name, version in pinned}}.items()
    }
    for project, files in found.items():
        files.update((name, make_wheel(name, requires=NEEDS.get(project, ()))) for name in files)
    torches = (torch_wheel(build, python) for python in build.pythons)
    found["torch"] = {torch: make_wheel(torch, requires=build.requires) for torch in torches}
    return found


@dataclass(kw_only=True)
class World:
    """The index. `answers` of a path take the place of what it would say; `asked` are the paths asked for so far.

    With `dated` it says when files were uploaded.
    """

    projects: dict[str, dict[str, bytes]] = field(default_factory=wheels)
    answers: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    dated: bool = False
    url: str = ""

    def reply(self, head: str) -> bytes:
        path = path_of(head)
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]
        kind, _, rest = path[1:].partition("/")
        project, _, file = rest.partition("/")
        files = self.projects.get(project, {})
        if kind == "simple" and files:
            return ok(self.page(project, files))
        wheel = files.get(file)
        kind = "application/gzip" if file.endswith(".gz") else "application/zip"
        return status("404 Not Found") if wheel is None else ok(wheel, kind=kind)

    def page(self, project: str, files: Mapping[str, bytes]) -> bytes:
        base = self.url.removesuffix("/simple")
        return json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": [
            {"filename": name, "url": f"{base}/files/{project}/{name}", "size": len(content),
             "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
             **({"upload-time": "2024-06-05T00:00:00Z"} if self.dated else {})} for name, content in files.items()
        ]}).encode()

    @contextmanager
    def served(self) -> Iterator[World]:
        with RawServer(self.reply) as server:
            self.url = f"{server.url}/simple"
            yield self


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one command line said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Say = Callable[..., Said]


def settle(monkeypatch: pytest.MonkeyPatch, folder: Path, index: str) -> None:
    """Makes `folder` the working directory and `index` the only setting of this machine."""
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    for name, value in {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "NO_COLOR": "1", "NO_PROXY": "127.0.0.1",
                        "PIP_INDEX_URL": index, "STACKFIX_CACHE_DIR": str(folder / ".cache"),
                        "CONDARC": str(CONDARC)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)


def speaker(capfd: pytest.CaptureFixture[str]) -> Say:
    """Runs a command line in this process."""
    def say(*words: str | Path) -> Said:
        capfd.readouterr()
        exit_status = run([str(word) for word in words])
        captured = capfd.readouterr()
        return Said(status=exit_status, out=captured.out, err=captured.err)
    return say
