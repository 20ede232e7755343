"""One project of the torch index, as its page or as the matrix has it: files of one path, by official address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit

from stackfix.matrix.records import TorchIndexWheel
from stackfix.quick import replace
from stackfix.sources.records import IndexFile

ROOT = "root"
CPU = "cpu"
# Built for the path's own torch. Above all paths lie copies for every path, and of these projects CPU builds.
BUILT_FOR_TORCH = frozenset({"torch", "torchvision", "torchaudio", "xformers"})


class LivePage(Protocol):
    """A page of an index client."""

    name: str

    def version_strings(self) -> tuple[str, ...]: ...
    def files(self, version: str) -> tuple[IndexFile, ...]: ...
    def files_named(self, version: str, accept: Callable[[str], bool]) -> tuple[IndexFile, ...]: ...


def known_rows(path: str, rows: Callable[[str], tuple[TorchIndexWheel, ...]]) -> dict[str, TorchIndexWheel]:
    """Rows of a path by file name, and of what lies above all paths what the path has not by itself."""
    above = (row for row in rows(ROOT) if path == CPU or row.project not in BUILT_FOR_TORCH)
    return {row.file: row for row in (*above, *rows(path))}


def of_variant(version: str, path: str) -> bool:
    """Whether a version's local part, if it has one, names the path: `+cu121.with.pypi.cudnn` is not cu121."""
    local = version.partition("+")[2]
    return not local or local == path


class TorchPage:
    """A page that was read. A file without a hash there has that of the matrix, where it has one."""

    def __init__(self, page: LivePage, path: str, *, read: str, written: str,
                 rows: Mapping[str, TorchIndexWheel]) -> None:
        self.name, self.path = page.name, path
        self._page, self._read, self._written, self._rows = page, read, written, rows
        self._origins: dict[str, IndexFile] = {}

    def version_strings(self) -> tuple[str, ...]:
        """Versions of the path's own variant, as file names write them."""
        return tuple(text for text in self._page.version_strings() if of_variant(text, self.path))

    def files(self, version: str) -> tuple[IndexFile, ...]:
        """Files of one version string."""
        return self._ours(self._page.files(version))

    def files_named(self, version: str, accept: Callable[[str], bool]) -> tuple[IndexFile, ...]:
        """Files of one version string whose names are accepted."""
        return self._ours(self._page.files_named(version, accept))

    def origin(self, file: IndexFile) -> IndexFile | None:
        """The file as the server that was read has it."""
        return self._origins.get(file.filename)

    def stated(self, file: IndexFile) -> str | None:
        """The sha256 that the page states."""
        origin = self.origin(file)
        return origin.sha256 if origin is not None else None

    def _ours(self, files: Iterable[IndexFile]) -> tuple[IndexFile, ...]:
        found: list[IndexFile] = []
        for listed in files:
            # The digest of its metadata has stood in the place of a wheel's: it is none of these bytes.
            mixed = listed.sha256 is not None and listed.sha256 == listed.core_metadata
            file = replace(listed, sha256=None) if mixed else listed
            folder = self._folder(file.url)
            if not self._takes(folder):
                continue                # another path's file of the same name may have other bytes
            self._origins[file.filename] = file
            row = self._rows.get(file.filename)
            found.append(replace(
                file, url=address(self._written, folder, file.filename), index=f"{self._written}/{self.path}",
                sha256=file.sha256 or (row.sha256 if row is not None else None), torch_path=self.path,
            ))
        return tuple(found)

    def _takes(self, folder: str) -> bool:
        return folder in {"", self.path}

    def _folder(self, url: str) -> str:
        """Where a link leads below the base: "cu118", or "" for what lies above all paths. Mirrors keep the layout."""
        folder = unquote(urlsplit(url).path).rpartition("/")[0]
        base = urlsplit(self._read).path.rstrip("/")
        if url.startswith(f"{self._read}/") or folder == base or folder.startswith(f"{base}/"):
            return folder[len(base):].strip("/")
        return folder.rpartition("/whl")[2].strip("/") if "/whl" in folder else folder.rpartition("/")[2]


class RowPage(TorchPage):
    """What the matrix knows of one project on one path."""

    def __init__(self, name: str, path: str, written: str, rows: Mapping[str, TorchIndexWheel]) -> None:
        self.name, self.path, self._written = name, path, written
        self._origins = {}
        self._versions: dict[str, list[TorchIndexWheel]] = {}
        for row in rows.values():
            if row.project == name and of_variant(row.version, path):
                self._versions.setdefault(row.version, []).append(row)

    def version_strings(self) -> tuple[str, ...]:
        return tuple(self._versions)

    def files(self, version: str) -> tuple[IndexFile, ...]:
        return tuple(
            IndexFile(
                project=self.name, filename=row.file, version=row.version, sha256=row.sha256, requires_python=None,
                url=address(self._written, "" if row.path == ROOT else row.path, row.file), yanked=None, size=None,
                upload_time=None, core_metadata=None, index=f"{self._written}/{self.path}", torch_path=self.path,
            )
            for row in self._versions.get(version, ())
        )

    def files_named(self, version: str, accept: Callable[[str], bool]) -> tuple[IndexFile, ...]:
        return tuple(file for file in self.files(version) if accept(file.filename))


def address(base: str, folder: str, filename: str) -> str:
    """The official address of a file, `+` as `%2B`."""
    return "/".join(part for part in (base, folder, quote(filename, safe="")) if part)
