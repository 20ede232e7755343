"""Conda channels on loopback and in folders: repodata made on the spot, and servers that answer otherwise."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from stackfix.sources.conda_channels import CondaChannels, open_channels

Row = dict[str, Any]
SUBDIRS = ("linux-64", "noarch")
BASES = (("conda-forge", "https://forge.invalid/conda-forge"), ("pytorch", "https://forge.invalid/pytorch"))


def row(name: str, version: str = "1.0", *depends: str, build: str = "0", **more: Any) -> Row:
    """One record, as repodata.json has it."""
    digest = f"{name}-{version}-{build}".encode().hex()
    return {"name": name, "version": version, "build": build, "build_number": 0, "depends": list(depends),
            "md5": digest[:32].ljust(32, "0"), "sha256": digest[:64].ljust(64, "0"), "size": 1, "subdir": "linux-64",
            "timestamp": 1_700_000_000_000, **more}


def repodata(*rows: Row, subdir: str = "linux-64") -> bytes:
    """repodata.json of one subdir."""
    files = {f"{each['name']}-{each['version']}-{each['build']}.conda": {**each, "subdir": subdir} for each in rows}
    return json.dumps({"info": {"subdir": subdir}, "packages": {}, "packages.conda": files,
                       "repodata_version": 1}).encode()


def channel_folder(folder: Path, *rows: Row) -> Path:
    """A channel of these records for linux-64, and of nothing for noarch."""
    for subdir, each in (("linux-64", rows), ("noarch", ())):
        (folder / subdir).mkdir(parents=True, exist_ok=True)
        (folder / subdir / "repodata.json").write_bytes(repodata(*each, subdir=subdir))
    return folder


@dataclass(kw_only=True)
class Answer:
    """One answer of a server. `endless`: bytes that are sent over and over in its place, until nobody listens."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None       # what Content-Length says, where it is not the truth
    endless: bytes = b""


Reply = Callable[[str], Answer]     # the path that was asked


@dataclass(kw_only=True)
class Served:
    """A server at work."""

    url: str
    asked: list[str] = field(default_factory=list)          # paths, in order
    headers: list[dict[str, str]] = field(default_factory=list)


def answers(*rows: Row) -> Reply:
    """A channel of these records, below any path."""
    def reply(path: str) -> Answer:
        for subdir, each in (("linux-64", rows), ("noarch", ())):
            if path.endswith(f"/{subdir}/repodata.json"):
                return Answer(body=repodata(*each, subdir=subdir))
        return Answer(status=404)

    return reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, reply: Reply) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply, self.stop = reply, threading.Event()
        self.served = Served(url=f"http://127.0.0.1:{self.server_address[1]}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.server.stop.is_set():       # a connection that is kept outlives the server
            self.close_connection = True
            return
        self.server.served.asked.append(self.path)
        self.server.served.headers.append({key.lower(): value for key, value in self.headers.items()})
        with suppress(OSError):
            self._answer(self.server.reply(self.path))

    def _answer(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for key, value in answer.headers.items():
            self.send_header(key, value)
        length = 10**9 if answer.endless else len(answer.body) if answer.length is None else answer.length
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(answer.body)
        while answer.endless and not self.server.stop.wait(0.05):
            self.wfile.write(answer.endless)
        if answer.length is not None or answer.endless:
            self.close_connection = True


@contextmanager
def serving(reply: Reply, tls: ssl.SSLContext | None = None) -> Iterator[Served]:
    """A server on loopback."""
    server = _Server(reply)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        server.served.url = server.served.url.replace("http:", "https:")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.served
    finally:
        server.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()


def make_authority(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """The certificate of an authority, and a server's context with one that it signed for 127.0.0.1."""
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    folder.mkdir()
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *key, "-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1", "-addext",
            "basicConstraints=CA:FALSE", "-keyout", "own.key", "-out", "own.csr")
    openssl("x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-copy_extensions", "copy", "-out", "own.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem", folder / "own.key")
    return folder / "ca.pem", context


def opened(folder: Path, *names: str, condarc: str = "", offline: bool = False, snapshot: Path | None = None,
           environ: Mapping[str, str] | None = None) -> CondaChannels:
    """Channels of a user whose home and cache are below `folder`; slow servers are waited for a second."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    patience = "remote_connect_timeout_secs: 1\nremote_read_timeout_secs: 0.2\nremote_max_retries: 0\n"
    (home / ".condarc").write_text(patience + condarc, encoding="utf-8")
    return open_channels(names, bases=BASES, environ=environ or {}, home=home, cache_dir=folder / "cache",
                         offline=offline, snapshot_dir=snapshot)
