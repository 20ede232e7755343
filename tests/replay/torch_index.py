"""The torch wheel index on loopback: pages like the real ones, with the real names and hashes of its files.

It reads `matrices` with no code of stackfix. A wheel's METADATA is what its row states; else that of the default
index's wheel of the release with its version altered, in which the CUDA libraries of torch are those of the variant.
"""

from __future__ import annotations

import hashlib
import html
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.replay.http import Answer, HttpServer, Request
from tests.replay.index import parse_range
from tests.replay.store import RecordedFile, Store
from tests.replay.wheels import zip_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from typing_extensions import Self

MATRICES = Path(__file__).resolve().parents[2] / "matrices"
CUDA_LIBRARIES = ("nvidia-", "cuda-")
NEWLINE = "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One file."""

    path: str                       # "cu118"; "" for what lies above all paths
    project: str
    version: str
    file: str
    sha256: str | None
    requires: tuple[str, ...] | None = None

    @property
    def platform(self) -> str:
        return platform_of(self.file)

    @property
    def public(self) -> str:
        return self.version.partition("+")[0]


def platform_of(file: str) -> str:
    """The platform of a wheel's name."""
    ends = {"win_amd64.whl": "win-64", "_arm64.whl": "osx-arm64", "aarch64.whl": "linux-aarch64"}
    return next((platform for end, platform in ends.items() if file.endswith(end)), "linux-64")


@cache
def rows(path: str) -> tuple[Row, ...]:
    """What the matrix has of one path of the index."""
    document = tomllib.loads((MATRICES / "torch_index" / f"{path}.toml").read_text(encoding="utf-8"))
    return tuple(_rows("" if path == "root" else path, document))


def _rows(path: str, document: Mapping[str, Any]) -> Iterator[Row]:
    for release in document["release"]:
        project, version, requires = release["project"], release["version"], release.get("requires")
        for line in release["wheels"].strip().splitlines():
            tags, sha256, _ = line.split()
            yield Row(path=path, project=project, version=version, sha256=sha256,
                      file=f"{project.replace('-', '_')}-{version}-{tags}.whl",
                      requires=None if requires is None else tuple(requires))


@cache
def paths() -> tuple[str, ...]:
    """The paths that the matrix knows."""
    return tuple(sorted(each.stem for each in (MATRICES / "torch_index").glob("*.toml") if each.stem != "root"))


@cache
def variant_requires(version: str, path: str, platform: str) -> tuple[str, ...]:
    """The requirements of a torch build that other variants of its release have not, as torch.toml writes them."""
    document = tomllib.loads((MATRICES / "torch.toml").read_text(encoding="utf-8"))
    markers, found = document["markers"], []
    for release in document["release"]:
        for build in release["builds"] if release["version"] == version else ():
            if (build["platform"], build.get("index")) == (platform, path):
                group = document["pins"].get(build.get("pins"), {"lines": []})
                behind = f" ; {markers[group['marker']]}" if "marker" in group else ""
                found += [line if ";" in line else f"{line}{behind}" for line in group["lines"]]
                found += build.get("requires", [])
    return tuple(re.sub(r"@([a-z0-9]+)", lambda name: markers[name[1]], line) for line in found)


@dataclass(kw_only=True)
class LoopbackTorchIndex:
    """Fills http.Site. `alter` gives what is served in a row's place, None to leave it out."""

    store: Store                                    # of the default index
    alter: Callable[[Row], Row | None] = lambda row: row
    hashless: Callable[[Row], bool] = lambda row: row.platform == "linux-aarch64"   # as the real pages have been
    unadvertised: Callable[[Row], bool] = lambda row: row.project == "torchvision"
    digests: bool = False                           # of metadata, on pages: each must be made for that
    links: str = "/whl"                             # where links lead: another host is written in full
    metadata: Mapping[str, str] = field(default_factory=dict)   # by file, in place of what it would be
    status: int | None = None                       # every request is answered by this
    delay: float = 0.0
    requests: list[str] = field(default_factory=list)

    def ready(self, request: Request) -> Answer | None:
        self.requests.append(request.path)
        return None if self.status is None else Answer(status=self.status)

    def fetch(self, request: Request) -> Answer:
        parts = [part for part in request.path.split("/") if part]
        if parts[:1] != ["whl"]:
            return Answer(status=404)
        if request.path.endswith("/") and len(parts) == 3:
            return self._page(parts[1], parts[2])
        file = parts[-1].removesuffix(".metadata")
        row = self._row(parts[1] if len(parts) == 3 else "", file)
        if row is None and file not in self.metadata:
            return Answer(status=404)
        if parts[-1].endswith(".metadata"):
            text = self.metadata[file] if row is None else self.metadata_of(row)
            return Answer(headers=(("Content-Type", "binary/octet-stream"),), body=text.encode())
        return Answer(status=404) if row is None else self._bytes(request, self.wheel(row))

    def served(self, path: str, project: str) -> list[Row]:
        """The rows of a page: the path's own, and of what lies above all paths what the path has not by itself."""
        own = [row for row in rows(path) if row.project == project]
        known = {row.file for row in own}
        above = [row for row in rows("root") if row.project == project and row.file not in known]
        family = project in {"torch", "torchvision", "torchaudio", "xformers"}
        found = (self.alter(row) for row in (*own, *(above if not family or path == "cpu" else ())))
        return [row for row in found if row is not None]

    def _page(self, path: str, project: str) -> Answer:
        listed = self.served(path, project) if path in paths() else []
        return self._listing(project, listed) if listed else Answer(status=404)

    def _listing(self, project: str, listed: list[Row]) -> Answer:
        """A page of these files."""
        lines = ["<!DOCTYPE html>", "<html>", "  <body>", f"    <h1>Links for {html.escape(project)}</h1>"]
        lines += [self._anchor(row) for row in listed]
        lines += ["  </body>", "</html>", "<!--TIMESTAMP 1764400000-->"]
        return Answer(headers=(("Content-Type", "text/html"),), body=NEWLINE.join(lines).encode())

    def _anchor(self, row: Row) -> str:
        hashed = f"#sha256={row.sha256}" if row.sha256 and not self.hashless(row) else ""
        said = ""
        if not self.unadvertised(row):
            digest = f"sha256={hashlib.sha256(self.metadata_of(row).encode()).hexdigest()}" if self.digests else "true"
            said = f' data-dist-info-metadata="{digest}" data-core-metadata="{digest}"'
        place = "/".join(part for part in (self.links, row.path, quote(row.file, safe="")) if part)
        return f'    <a href="{place}{hashed}"{said}>{html.escape(row.file)}</a><br/>'

    def _row(self, path: str, file: str) -> Row | None:
        known = rows(path or "root") if path in (*paths(), "") else ()
        row = next((each for each in known if each.file == file), None)
        return None if row is None else self.alter(row)

    def metadata_of(self, row: Row) -> str:
        """METADATA of a wheel of the index."""
        if row.file in self.metadata:
            return self.metadata[row.file]
        head = ["Metadata-Version: 2.1", f"Name: {row.project}", f"Version: {row.version}"]
        lines, python = row.requires, None
        sibling = self._sibling(row)
        if sibling is not None:
            text = (self.store.metadata(sibling) or self.store.extracted(sibling)).decode().partition("\n\n")[0]
            python = re.search(r"^Requires-Python: *(.+)$", text, re.MULTILINE)
            stated = tuple(re.findall(r"^Requires-Dist: *(.+)$", text, re.MULTILINE))
            lines = stated if lines is None else lines
        if row.project == "torch":
            own = variant_requires(row.public, row.path, row.platform)
            out = CUDA_LIBRARIES if row.path != "cpu" and not any("triton" in line for line in own) else (
                *CUDA_LIBRARIES, "triton")
            lines = (*(line for line in lines or () if not line.startswith(out)), *own)
        head += [f"Requires-Python: {python[1]}"] if python else []
        return NEWLINE.join([*head, *(f"Requires-Dist: {line}" for line in lines or ()), ""])

    def _sibling(self, row: Row) -> RecordedFile | None:
        """The default index's wheel of the release, for the same Python and machine where there is one."""
        page = self.store.page(row.project)
        tags = row.file.removesuffix(".whl").split("-")[-3:]
        start = f"{row.project.replace('-', '_')}-{row.public}-"
        wheels = [] if page is None else [
            file for name, file in page.files.items() if name.startswith(start) and name.endswith(".whl")]
        return max(wheels, key=lambda file: (
            platform_of(file.filename) == row.platform, f"-{tags[0]}-{tags[1]}-" in file.filename), default=None)

    def wheel(self, row: Row) -> bytes:
        """A small wheel under the file's name, with its METADATA and nothing else."""
        info = f"{row.file.split('-')[0]}-{row.version}.dist-info"
        tag = "-".join(row.file.removesuffix(".whl").split("-")[-3:])
        return zip_bytes({
            f"{info}/METADATA": self.metadata_of(row),
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: false\nTag: {tag}\n",
            f"{info}/RECORD": f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
        })

    def _bytes(self, request: Request, body: bytes) -> Answer:
        bounds = parse_range(request.headers.get("range", ""), len(body))
        if bounds is None:
            return Answer(headers=(("Accept-Ranges", "bytes"),), body=body)
        start, stop = bounds
        return Answer(status=206, headers=(("Content-Range", f"bytes {start}-{stop - 1}/{len(body)}"),),
                      body=body[start:stop])


class TorchReplica:
    """The torch index while the block runs. `url` is what `--torch-index` takes."""

    serves: type[LoopbackTorchIndex] = LoopbackTorchIndex

    def __init__(self, store: Store, **how: Any) -> None:
        self.site = self.serves(store=store, **how)
        self._http = HttpServer(self.site)

    def __enter__(self) -> Self:
        self._http.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.__exit__()

    @property
    def url(self) -> str:
        return f"{self._http.url}/whl"

    @property
    def requests(self) -> list[str]:
        """The path of each request so far."""
        return self.site.requests


def with_hash(file: str, sha256: str | None) -> Callable[[Row], Row]:
    """An alteration: one file has another hash, or none."""
    return lambda row: replace(row, sha256=sha256) if row.file == file else row
