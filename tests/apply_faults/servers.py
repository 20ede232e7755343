"""A package index on loopback that can die in the middle of a file, or fall silent there."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ENTRY = "def main():\n    import demo\n    print('demo', demo.version)\n"


@dataclass
class WheelServer:
    """One file, on its project's page and below /files/."""

    name: str
    content: bytes
    dies: bool = False              # sends half of the file, then nothing answers any more
    stalls: bool = False            # sends half of the file, and no more
    url: str = ""
    half_sent: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def address(self) -> str:
        return f"{self.url}/files/{self.name}"


def wheel(version: str, *, padding: int = 0, file_version: str | None = None) -> tuple[str, bytes]:
    """Name and bytes of a small wheel with a package, a script, a file in share and a RECORD."""
    info = f"demo-{version}.dist-info"
    files: Mapping[str, str | bytes] = {
        "demo/__init__.py": f"version = {version!r}\n", "demo/entry.py": ENTRY,
        f"demo/only_in_{version.replace('.', '_')}.py": "x = 1\n",
        "demo/libs/libdemo.so": bytes(range(256)) * padding,
        "demo/_vendor/dep-9.dist-info/METADATA": "Metadata-Version: 2.1\nName: dep\nVersion: 9\n",
        f"demo-{version}.data/data/share/demo/{version}.txt": "shared\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ndemo-tool = demo.entry:main\n",
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))
    return f"demo-{file_version or version}-py3-none-any.whl", stream.getvalue()


@contextmanager
def serving(server: WheelServer) -> Iterator[WheelServer]:
    """The server, for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(server.content)))
            self.end_headers()

        def do_GET(self) -> None:
            if server.dies and server.half_sent.is_set():
                self.close_connection = True        # as a machine that is gone: no answer at all
                return
            if not self.path.startswith("/files/"):
                link = f'<a href="/files/{server.name}#sha256={server.sha256}">{server.name}</a>'
                self.answer(b"<!DOCTYPE html><html><body>" + link.encode() + b"</body></html>", "text/html")
                return
            self.answer(server.content, "application/octet-stream")

        def answer(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if kind == "text/html" or not (server.dies or server.stalls):
                self.wfile.write(content)
                return
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            server.half_sent.set()
            if server.stalls:
                server.go_on.wait(60)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:      # noqa: A002 - the name of the base class
            """Nothing: tests are silent."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{listening.server_address[1]}"
    try:
        yield server
    finally:
        server.go_on.set()
        listening.shutdown()
        listening.server_close()
        thread.join()
