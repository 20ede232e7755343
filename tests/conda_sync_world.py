"""A channel on loopback of small packages with the names, versions and dependencies of a real stack, and its locks.

The stack is one that py-rattler solves over the bundled records. `python` is the real interpreter; nvJitLink and
cuSPARSE are libraries of one function; all others hold a text, those of Python their metadata with a RECORD.
"""

from __future__ import annotations

import base64
import bz2
import functools
import hashlib
import io
import json
import sys
import sysconfig
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from stackfix.conda.records import Channel, CondaRecord, CondaTarget
from stackfix.resolve.records import LockedPackage
from tests.conda_packages import NAME, SUBDIR, content_of, gcc, member, python_package, stack_packages
from tests.conda_real import solved_target
from tests.hook_world import EXTENSION

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
PROJECTS = {"pytorch": "torch", "numpy": "numpy", "sympy": "sympy", "networkx": "networkx", "jinja2": "Jinja2"}
Files = dict[str, "bytes | Path"]


def archive(record: CondaRecord, files: Mapping[str, bytes | Path], links: Mapping[str, str],
            rows: tuple[str, ...] = ()) -> bytes:
    """The package as conda-build writes it, the old form. `rows`: more paths that it states."""
    stated = [{"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(content_of(body)[0]).hexdigest(),
               "size_in_bytes": len(content_of(body)[0])} for path, body in files.items()]
    stated += [{"_path": path, "path_type": "softlink", "sha256": hashlib.sha256(b"").hexdigest(),
                "size_in_bytes": 0} for path in links]
    stated += [{"_path": path, "path_type": "hardlink", "sha256": None, "size_in_bytes": 0} for path in rows]
    index = {"name": record.name, "version": record.version, "build": record.build, "subdir": record.subdir,
             "build_number": record.build_number, "depends": list(record.depends), "license": record.license,
             "constrains": list(record.constrains), "arch": None, "platform": None,
             **({"noarch": record.noarch} if record.noarch else {})}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, body in {**files, "info/index.json": json.dumps(index).encode(),
                           "info/paths.json": json.dumps({"paths": stated, "paths_version": 1}).encode()}.items():
            content, mode = content_of(body)
            tar.addfile(member(path, len(content), mode), io.BytesIO(content))
        for path, target in links.items():
            tar.addfile(member(path, 0, 0o777, target))
    return bz2.compress(packed.getvalue(), 1)


def metadata(site: str, project: str, version: str) -> Files:
    """The .dist-info of a project, as conda's packages have it."""
    folder = f"{site}/{project.replace('-', '_')}-{version}.dist-info"
    module = f"{site}/{project.lower()}/__init__.py"
    return {module: b"", f"{folder}/INSTALLER": b"conda\n",
            f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n".encode(),
            f"{folder}/RECORD": f"{module},,\n".encode()}


@dataclass(kw_only=True)
class Shelf:
    """The channel: what it serves by path, and what was asked of it."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    login: str | None = None        # "user:password" that every request must come with

    def put(self, record: CondaRecord, content: bytes) -> CondaRecord:
        """The record of this content, once it is served."""
        file = f"{record.name}-{record.version}-{record.build}.tar.bz2"
        self.files[f"/{record.subdir}/{file}"] = content
        return replace(record, channel=self.url, file_name=file, url=f"{self.url}/{record.subdir}/{file}",
                       md5=hashlib.md5(content, usedforsecurity=False).hexdigest(),
                       sha256=hashlib.sha256(content).hexdigest(), size=len(content))


class _Handler(BaseHTTPRequestHandler):
    shelf: Shelf

    def do_GET(self) -> None:
        self.shelf.asked.append(self.path)
        body = self.shelf.files.get(self.path)
        if self.shelf.login is not None and self.headers["Authorization"] != (
                f"Basic {base64.b64encode(self.shelf.login.encode()).decode()}"):
            self.send_response(401)
            body = None
        else:
            self.send_response(200 if body is not None else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass


@contextmanager
def shelf() -> Iterator[Shelf]:
    """An empty channel on loopback."""
    found = Shelf(url="")
    handler = type("Handler", (_Handler,), {"shelf": found})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_address[1]}/chan"
    found.files = _Below(found)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Below(dict[str, bytes]):
    """Paths below the channel, asked for by those of the server."""

    def __init__(self, owner: Shelf) -> None:
        super().__init__()
        self.owner = owner

    def get(self, key: str, default: bytes | None = None) -> bytes | None:  # type: ignore[override]
        return super().get(key.removeprefix("/chan"), default)


@functools.cache
def solved(cache: Path) -> CondaTarget:
    """The real stack."""
    return solved_target(cache, "pytorch 2.3.* cuda*", "numpy 1.26.*", "pip", python=PYTHON, platform=SUBDIR)


def small(target: CondaTarget, folder: Path) -> dict[str, tuple[Files, dict[str, str]]]:
    """Name -> files and links of each package."""
    python = python_package(folder / "python")
    found: dict[str, tuple[Files, dict[str, str]]] = {}
    libraries = {each.name: dict(each.files) for each in stack_packages(folder / "stack", "lib")}
    for record in target.records:
        files: Files = {f"share/{record.name}/about.txt": record.name.encode()}
        if record.name in libraries:
            files |= libraries[record.name]
        if record.name in PROJECTS:
            site = "site-packages" if record.noarch == "python" else f"lib/{NAME}/site-packages"
            files |= metadata(site, PROJECTS[record.name], record.version)
        found[record.name] = files, {}
    site, module = f"lib/{NAME}/site-packages", f".{sysconfig.get_config_var('SOABI')}.so"
    sparse = next(path for path, body in libraries["libcusparse"].items() if isinstance(body, Path))
    built = folder / "built"
    built.mkdir()
    needed = gcc(built / "_C.so", EXTENSION.replace("NAME", "_C"), str(folder / "stack" / Path(sparse).name),
                 "-Wl,-rpath,$ORIGIN/../../..")
    found["pytorch"][0][f"{site}/torch/_C{module}"] = needed
    found["pytorch"][0][f"{site}/torch/lib/libtorch_global_deps.so"] = gcc(
        built / "libtorch_global_deps.so", "int none;")
    found["numpy"][0][f"{site}/numpy/core/_multiarray_umath{module}"] = gcc(
        built / "_multiarray_umath.so", "int none;")
    found["python"] = dict(python.files), dict(python.links)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The channel, the lock of what it serves, and what each archive holds."""

    shelf: Shelf
    target: CondaTarget
    files: Mapping[str, tuple[Files, dict[str, str]]]

    def write(self, folder: Path, *formats: str, pip: tuple[LockedPackage, ...] = ()) -> None:
        """Lockfiles of the stack."""
        write(folder, replace(self.target, pip=pip), *formats)

    def record(self, name: str) -> CondaRecord:
        return next(record for record in self.target.records if record.name == name)


def write(folder: Path, target: CondaTarget, *formats: str) -> None:
    """Lockfiles of a target, as `stackfix lock` writes them."""
    from stackfix.write.conda_files import plan_conda

    for file in plan_conda((target,), formats=formats, name=None, command="stackfix lock"):
        (folder / file.path).write_text(file.text, encoding="utf-8")


@contextmanager
def stack(folder: Path, cache: Path) -> Iterator[Stack]:
    """The whole world in an empty folder."""
    with shelf() as found:
        target = solved(cache)
        files = small(target, folder)
        records = tuple(found.put(record, archive(record, *files[record.name])) for record in target.records)
        channel = Channel(name="loopback", url=found.url)
        yield Stack(shelf=found, files=files,
                    target=replace(target, records=records, channels=(channel,), snapshot=None))


__all__ = ["PYTHON", "Shelf", "Stack", "archive", "shelf", "solved", "stack", "write"]
