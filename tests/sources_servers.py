"""Servers of raw bytes on loopback, for what no well-behaved server can be made to send, and settings to reach them."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackfix.sources.records import IndexFile, IndexSettings

if TYPE_CHECKING:
    from typing_extensions import Self

Reply = bytes | Iterable[bytes]     # pieces are sent one by one; b"" as a whole hangs up
JSON = "application/vnd.pypi.simple.v1+json"


class RawServer:
    """Answers each request head (text) with the bytes that `reply` gives, on one thread per connection."""

    def __init__(self, reply: Callable[[str], Reply], *, tls: ssl.SSLContext | None = None) -> None:
        self.reply, self._tls = reply, tls
        self.heads: list[str] = []
        self.connections = 0
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    def header(self, name: str) -> list[str | None]:
        """The header's value in each request so far."""
        return [header_of(head, name) for head in self.heads]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with suppress(OSError), plain:
            if self._tls is None:
                self._converse(plain)
            else:
                with self._tls.wrap_socket(plain, server_side=True) as connection:
                    self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        waiting = b""
        while True:
            while b"\r\n\r\n" not in waiting:
                data = connection.recv(65536)
                if not data:
                    return
                waiting += data
            head, _, waiting = waiting.partition(b"\r\n\r\n")
            self.heads.append(head.decode("latin-1"))
            reply = self.reply(self.heads[-1])
            if reply == b"":
                return
            for piece in (reply,) if isinstance(reply, bytes) else reply:
                if not self._sends(connection, piece):
                    return

    def _sends(self, connection: socket.socket, piece: bytes) -> bool:
        """Whether the connection goes on after this piece."""
        connection.sendall(piece)
        return True


def path_of(head: str) -> str:
    return head.split(" ", 2)[1]


def header_of(head: str, name: str) -> str | None:
    """The header's value in a request head."""
    for line in head.split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name.lower():
            return value.strip()
    return None


def ok(body: bytes, *, kind: str = JSON, headers: tuple[str, ...] = (), status: str = "200 OK") -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def status(line: str, *headers: str) -> bytes:
    """An answer without a body."""
    return ("\r\n".join([f"HTTP/1.1 {line}", "Content-Length: 0", *headers]) + "\r\n\r\n").encode()


def page_json(project: str, *files: dict[str, Any], version: str = "1.1") -> bytes:
    """A PEP 691 page."""
    return json.dumps({"meta": {"api-version": version}, "name": project, "files": list(files)}).encode()


def settings_for(*indexes: str, **changes: Any) -> IndexSettings:
    """Settings with these indexes and nothing of the machine that runs the test."""
    settings = IndexSettings(indexes=indexes, origin=("--index-url",) * len(indexes), ignored=(), cert=None, proxies=(),
                             no_proxy=None, timeout=5.0, retries=2)
    return replace(settings, **changes)


def file_for(url: str, filename: str = "demo-1.0-py3-none-any.whl", **changes: Any) -> IndexFile:
    """A file of project demo on the server at `url`."""
    file = IndexFile(project="demo", filename=filename, version="1.0", url=f"{url}/{filename}", sha256=None,
                     requires_python=None, yanked=None, size=None, upload_time=None, core_metadata=None, index=url)
    return replace(file, **changes)


def make_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A self-signed certificate for 127.0.0.1 (the CA bundle that trusts it) and a server's context with it."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key),
         "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context
