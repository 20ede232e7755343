"""Several small indexes on one loopback server, told apart by the first part of the path, and uv run against them."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tests.replay.wheels import make_wheel
from tests.sources_servers import JSON, RawServer, header_of, ok, path_of, status

if TYPE_CHECKING:
    from typing_extensions import Self

UV = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
Projects = Mapping[str, Mapping[str, str]]          # index -> project -> version


class Indexes:
    """`projects` on their indexes; `logins`: index -> "user:password" that it asks for; `forms`: index -> "html"."""

    def __init__(self, projects: Projects, *, logins: Mapping[str, str] | None = None,
                 html: tuple[str, ...] = (), uploaded: Mapping[str, str | None] | None = None) -> None:
        self.projects, self.logins, self.html, self.uploaded = projects, dict(logins or {}), html, uploaded or {}
        self.server = RawServer(self._reply)
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        self._opened.enter_context(self.server)
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def url(self) -> str:
        return self.server.url

    def filled(self, text: str) -> str:
        """The text with `{a}` in place of the address of the index `a`."""
        return re.sub(r"\{(\w+)\}", lambda found: f"{self.url}/{found[1]}/simple", text)

    @property
    def asked(self) -> list[str]:
        """The pages that were asked for, as `index/project`, each once and in order."""
        paths = [path_of(head).strip("/").split("/") for head in self.server.heads]
        pages = (f"{one[0]}/{one[2]}" for one in paths if len(one) == 3 and one[1] == "simple")
        return list(dict.fromkeys(pages))

    def logins_sent(self) -> dict[str, set[str | None]]:
        """index -> the logins that were sent to it; None: none."""
        sent: dict[str, set[str | None]] = {}
        for head in self.server.heads:
            value = header_of(head, "authorization")
            login = None if value is None else base64.b64decode(value.split()[1]).decode()
            sent.setdefault(path_of(head).strip("/").split("/")[0], set()).add(login)
        return sent

    def _reply(self, head: str) -> bytes:
        index, kind, name, *_ = (*path_of(head).strip("/").split("/"), "", "", "")
        given = header_of(head, "authorization")
        wanted = self.logins.get(index)
        if wanted is not None and given != "Basic " + base64.b64encode(wanted.encode()).decode():
            return status("401 Unauthorized", 'WWW-Authenticate: Basic realm="here"')
        if kind == "files":
            if name.endswith(".metadata"):
                return status("404 Not Found")
            return ok(make_wheel(name), kind="application/octet-stream")
        version = self.projects.get(index, {}).get(name)
        if kind != "simple" or version is None:
            return status("404 Not Found")
        return self._page(index, name, version)

    def _page(self, index: str, name: str, version: str) -> bytes:
        file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        digest, url = sha256(make_wheel(file)).hexdigest(), f"/{index}/files/{file}"
        if index in self.html:
            return ok(f'<!DOCTYPE html><a href="{url}#sha256={digest}">{file}</a>'.encode(), kind="text/html")
        row: dict[str, object] = {"filename": file, "url": url, "hashes": {"sha256": digest}}
        if self.uploaded.get(index):
            row["upload-time"] = self.uploaded[index]
        return ok(json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": [row]}).encode(), kind=JSON)


def write_all(folder: Path, files: Mapping[str, str]) -> None:
    """The files below the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def bare_environment(home: Path, **more: str) -> dict[str, str]:
    """Variables of a machine with nothing but this home."""
    return {"HOME": str(home), "PATH": os.pathsep.join((str(home / "bin"), "/usr/bin", "/bin")),
            "XDG_CONFIG_DIRS": str(home / "xdg"), **more}


def uv(
    words: tuple[str, ...], folder: Path, environ: Mapping[str, str], cache: Path,
) -> subprocess.CompletedProcess[str]:
    """uv run with an empty cache."""
    return subprocess.run(
        [UV, *words, "--cache-dir", str(cache), "--python", sys.executable, "--no-progress"], cwd=folder, check=False,
        env={**environ, "UV_PYTHON_DOWNLOADS": "never"}, capture_output=True, text=True)
