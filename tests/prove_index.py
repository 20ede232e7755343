"""An index on loopback of the wheels whose tables ship: their real names, hashes and requirements, and no bytes.

Whoever asks for a wheel itself gets nothing: what is proven here is proven from what ships. The requirements of one
project may be edited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stackfix.prove.records import PlannedWheel
from stackfix.sources.transport import Transport
from stackfix.tables.source import open_tables
from tests.cli_world import PLAIN
from tests.replay.wheels import make_wheel
from tests.sources_servers import RawServer, ok, path_of, status

Edit = Callable[[str, tuple[str, ...]], Sequence[str]]      # "torch 2.8.0", its requirements


def unedited(_: str, requires: tuple[str, ...]) -> Sequence[str]:
    return requires


@dataclass(kw_only=True)
class ShippedIndex:
    """The index. `plain`: projects without compiled files, made here. `asked` are the paths asked for so far."""

    folder: Path
    edit: Edit = unedited
    url: str = ""
    asked: list[str] = field(default_factory=list)
    plain: Mapping[str, Sequence[str]] = field(default_factory=lambda: {
        **{name: versions for name, versions in PLAIN.items() if not name.startswith("nvidia-") and name != "numpy"},
        "sympy": ("1.12.1", "1.13.1", "1.13.3"), "setuptools": ("78.1.1",)})
    _metadata: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = open_tables(self.folder, self.refuse, offline=True)

    @staticmethod
    def refuse() -> Transport:
        """No connection."""
        raise AssertionError("a download was begun")

    @contextmanager
    def served(self) -> Iterator[ShippedIndex]:
        with RawServer(self.reply) as server:
            self.url = f"{server.url}/simple"
            yield self

    def reply(self, head: str) -> bytes:
        path = path_of(head)
        self.asked.append(path)
        kind, _, rest = path[1:].partition("/")
        project, _, file = rest.partition("/")
        if kind == "simple":
            rows = [*map(self.row, self.source.shipped(project)), *self.plain_rows(project)]
            return ok(json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": rows}).encode()) if rows \
                else status("404 Not Found")
        content = self._metadata.get(file)
        return ok(content, kind="application/octet-stream") if content is not None else status("404 Not Found")

    def row(self, wheel: PlannedWheel) -> dict[str, object]:
        """A wheel on its project's page."""
        project = self.source.known([wheel])[wheel.sha256].project
        requires = self.edit(f"{wheel.name} {wheel.version}", project.requires)
        lines = ["Metadata-Version: 2.1", f"Name: {project.spelling}", f"Version: {project.version}",
                 *(f"Requires-Dist: {each}" for each in requires)]
        return self.stated(wheel.name, wheel.file, wheel.sha256, "\n".join([*lines, ""]).encode())

    def plain_rows(self, project: str) -> Iterator[dict[str, object]]:
        """Files of a project that is made here."""
        for version in self.plain.get(project, ()):
            name = f"{project.replace('-', '_')}-{version}-py3-none-any.whl"
            sha256 = hashlib.sha256(make_wheel(name)).hexdigest()
            yield self.stated(project, name, sha256,
                              f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n".encode())

    def stated(self, project: str, file: str, sha256: str, metadata: bytes) -> dict[str, object]:
        """A row of a page, whose metadata the index has beside the file."""
        self._metadata[f"{file}.metadata"] = metadata
        return {"filename": file, "url": f"{self.url.removesuffix('/simple')}/files/{project}/{file}", "size": 1000,
                "hashes": {"sha256": sha256}, "core-metadata": {"sha256": hashlib.sha256(metadata).hexdigest()}}
