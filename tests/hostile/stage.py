"""Where a scenario plays: the small index of tests.cli_world, a project demo on it, other servers, a command line."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cli_world import ASKED, World
from tests.replay.wheels import make_wheel
from tests.sources_servers import RawServer, Reply, ok, path_of, status

if TYPE_CHECKING:
    from typing_extensions import Self

WHEEL = "demo-1.0-py3-none-any.whl"
NEWER = "demo-2.0-py3-none-any.whl"
PAGE = "/simple/demo/"
FILE = f"/files/demo/{WHEEL}"
METADATA = f"{FILE}.metadata"
QUIET = 1.0         # seconds without a request, after which all has come that comes
RESET = b"\0reset\0"            # a piece that is not sent: the connection is broken there
Says = Callable[[str], Reply]   # request head -> answer


class Loopback(RawServer):
    """A server of raw bytes that can also break a connection."""

    def _sends(self, connection: socket.socket, piece: bytes) -> bool:
        if piece == RESET:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        return super()._sends(connection, piece)


class Stage:
    """One scenario's servers and command line. A context manager."""

    def __init__(self, folder: Path) -> None:
        self.notes = folder / "notes"       # for what the scenario itself needs
        self.world = World(projects={**World().projects, "demo": {WHEEL: make_wheel(WHEEL)}})
        self.answers: dict[str, Says] = {}
        self.otherwise: Says = self.world.reply
        self.asked: tuple[str, ...] = ASKED
        self.words = ["--with", "demo"]
        self.environ: dict[str, str] = {}
        self.secrets: list[str] = []        # what may be written and said nowhere
        self.login = ""                     # of the default index
        self.others: list[Loopback] = []    # which are to learn nothing
        self.opened: list[Loopback] = []
        self.over = threading.Event()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.server = self.open(self.reply)
        self.world.url = f"{self.server.url}/simple"
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._open.close()

    @property
    def index_url(self) -> str:
        """The default index, with its login."""
        return self.world.url.replace("://", f"://{self.login}@" if self.login else "://")

    @property
    def files_url(self) -> str:
        return f"{self.server.url}/files"

    def open(self, reply: Says, **how: Any) -> Loopback:
        """Another server, until the scenario ends."""
        server = self._open.enter_context(Loopback(reply, **how))
        self.opened.append(server)
        return server

    def asked_for(self) -> int:
        """Requests so far, to whatever server."""
        return sum(len(server.heads) for server in self.opened)

    def reply(self, head: str) -> Reply:
        path = path_of(head)
        says = self.answers.get(path, self.answers.get(path.partition("?")[0]))
        return self.otherwise(head) if says is None else says(head)

    def says(self, path: str, answer: Reply | Says) -> None:
        """Has the default index answer so at a path."""
        self.answers[path] = answer if callable(answer) else lambda head: answer

    def has(self, project: str, filename: str, content: bytes | None = None, **metadata: Any) -> None:
        """Adds a file to the default index."""
        self.world.projects.setdefault(project, {})[filename] = content or make_wheel(filename, **metadata)

    def lists(self, *entries: Mapping[str, Any], project: str = "demo", **page: Any) -> None:
        """Has the page of a project hold these entries."""
        self.says(f"/simple/{project}/", ok(json_page(*entries, project=project, **page)))

    def entry(self, filename: str = WHEEL, *, project: str = "demo", **changes: Any) -> dict[str, Any]:
        """The entry of a file of the default index as it should be, but for what is changed; `None` takes a key out."""
        content = self.world.projects[project].get(filename, b"nothing")
        sound = {"filename": filename, "url": f"{self.files_url}/{project}/{filename}", "size": len(content),
                 "hashes": {"sha256": sha256(content)}}
        changed = {**sound, **{key.replace("_", "-"): value for key, value in changes.items()}}
        return {key: value for key, value in changed.items() if value is not None}


def json_page(*entries: Mapping[str, Any], project: str = "demo", **page: Any) -> bytes:
    return json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": list(entries), **page}).encode()


def html_page(*lines: str) -> bytes:
    """A whole answer with these lines as its body."""
    text = "\n".join(["<!DOCTYPE html><html><body>", *lines, "</body></html>"])
    return ok(text.encode(), kind="text/html")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def redirect(location: str, code: str = "302 Found") -> bytes:
    return status(code, f"Location: {location}")


def endless(head: bytes, piece: bytes, most: int = 2 << 30) -> Iterable[bytes]:
    """A head, then pieces up to 2 GB or until nobody reads them."""
    yield head
    for _ in range(most // len(piece)):
        yield piece


def dripping(stage: Stage, head: bytes, piece: bytes = b" ", pause: float = 0.02) -> Iterable[bytes]:
    """A head, then a few bytes at a time for as long as somebody waits.

    Once nobody asks for anything else, time runs faster for a client that is in a hurry.
    """
    yield head
    asked, since = -1, 0.0
    while not stage.over.wait(pause):
        if asked != stage.asked_for():
            asked, since = stage.asked_for(), time.monotonic()
        elif time.monotonic() - since > QUIET:
            (stage.notes / "stderr.hasten").touch()
        yield piece


__all__ = ["FILE", "METADATA", "NEWER", "PAGE", "RESET", "WHEEL", "Loopback", "Says", "Stage", "dripping", "endless",
           "html_page", "json_page", "redirect", "sha256"]
