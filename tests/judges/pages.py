"""Judge: the index page itself. Every sha256 in a lock must be stated there for a file of that name and version."""

from __future__ import annotations

import io
import re
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from packaging.version import InvalidVersion, Version

from tests.judges.lockfile import Entry, normal, read_entries

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from typing_extensions import Self

ACCEPT = {"Accept": "application/vnd.pypi.simple.v1+json"}


class Pages:
    """Reads pages of one index, each once."""

    def __init__(self, index_url: str) -> None:
        self._base = index_url.rstrip("/")
        self._client = httpx.Client(headers=ACCEPT, trust_env=False, timeout=120)
        self._files: dict[str, dict[str, tuple[str, str]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def stated(self, project: str) -> dict[str, tuple[str, str]]:
        """sha256 -> (file name, address), as the page states them."""
        if project not in self._files:
            answer = self._client.get(f"{self._base}/{project}/")
            answer.raise_for_status()
            rows: list[dict[str, Any]] = answer.json()["files"]
            self._files[project] = {row["hashes"]["sha256"]: (row["filename"], row["url"]) for row in rows}
        return self._files[project]

    def metadata(self, url: str) -> str:
        """METADATA beside the wheel at `url`."""
        answer = self._client.get(f"{url}.metadata")
        answer.raise_for_status()
        return answer.text

    def sdist_requires(self, project: str, version: str) -> tuple[str, ...]:
        """What the project's sdist of that version requires: for wheels whose own host cannot be asked."""
        url = next(url for name, url in self.stated(project).values()
                   if name.endswith(".tar.gz") and _is_of(name, version))
        body = self._client.get(url).raise_for_status().content
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:
            wanted = [m for m in archive.getmembers() if re.search(r"/(PKG-INFO|requires\.txt)$", m.name)]
            texts = {m.name: stream.read().decode() for m in wanted if (stream := archive.extractfile(m))}
        stated = [line for name, text in texts.items() if re.fullmatch(r"[^/]+/PKG-INFO", name)
                  for line in re.findall(r"^Requires-Dist: *(.+)$", text, re.MULTILINE)]
        # older setuptools wrote no Requires-Dist into sdists, but a list of names, extras after a blank line
        listed = [line for name, text in texts.items() if name.endswith("/requires.txt")
                  for line in text.partition("\n[")[0].split()]
        return tuple(stated or listed)

    def complaints(self, requirements: Path) -> list[str]:
        """What in a requirements file the pages do not bear out; URL entries are not theirs to judge."""
        said = []
        for entry in read_entries(requirements):
            if not entry.hashes:
                said.append(f"{entry.name}: no hash")
            if entry.url is None:
                said += [text for digest in entry.hashes if (text := self._complaint(entry, digest))]
        return said

    def complaints_of_pylock(self, pylock: Path) -> list[str]:
        """The same for pylock.toml, file by file, address included."""
        said = []
        for package in tomllib.loads(pylock.read_text(encoding="utf-8"))["packages"]:
            sdist = [package["sdist"]] if "sdist" in package else []
            for file in [*package.get("wheels", []), *sdist]:
                digest = file["hashes"]["sha256"]
                name, url = self.stated(normal(package["name"])).get(digest, ("", ""))
                if not name or file["url"] != url or file.get("name", name) != name:
                    said.append(f"{package['name']}: page does not state {file.get('name')} {digest} {file['url']}")
        return said

    def _complaint(self, entry: Entry, digest: str) -> str | None:
        filename, _ = self.stated(entry.name).get(digest, ("", ""))
        if not filename:
            return f"{entry.name} {entry.version}: page states no file with sha256 {digest}"
        if not _is_of(filename, str(entry.version)):
            return f"{entry.name} {entry.version}: sha256 {digest} belongs to {filename}"
        return None


def _is_of(filename: str, version: str) -> bool:
    if filename.endswith(".whl"):
        written = filename.split("-")[1]
    else:
        written = re.sub(r"(\.tar\.\w+|\.zip|\.tgz)$", "", filename).rpartition("-")[2]
    try:
        return Version(written) == Version(version)
    except InvalidVersion:
        return written == version
