"""The bundled records: `matrices/conda` unpacked into the cache, each file checked at each opening.

snapshot.toml says when and from what the records were made, what is missing, and each file's digest;
<channel>-<subdir>.json.xz is the repodata.json of one subdir, keys sorted, no indentation.
"""

from __future__ import annotations

import atexit
import hashlib
import lzma
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stackfix.errors import Unreachable
from stackfix.sources.toml import TOMLDecodeError, loads

MANIFEST = "snapshot.toml"
_AGAIN = "install stackfix again"
_LARGEST = 256 * 1024 * 1024        # unpacked; the largest of ours is 7 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One packed file."""

    channel: str                    # "conda-forge"
    subdir: str
    name: str                       # of the packed file
    sha256: str                     # of what it unpacks to


class BundledRecords:
    """The snapshot below one folder, unpacked as far as it is asked for."""

    def __init__(self, folder: Path, cache_dir: Path) -> None:
        """Raises Unreachable where the folder holds no snapshot."""
        self._folder, self._cache = folder, cache_dir
        manifest = read_manifest(folder)
        self.date, self.source, self.holes, self.files = manifest.date, manifest.source, manifest.holes, manifest.files
        self.digest = manifest.digest
        self._unpacked: dict[tuple[str, str], Path] = {}
        self._spare: Path | None = None

    def names(self) -> tuple[str, ...]:
        """The channels that it has records of."""
        return tuple(dict.fromkeys(file.channel for file in self.files))

    def repodata(self, channel: str, subdir: str) -> Path | None:
        """The unpacked repodata.json, or None where the snapshot has none. Raises Unreachable for a damaged one."""
        key = channel, subdir
        packed = next((file for file in self.files if (file.channel, file.subdir) == key), None)
        if packed is None:
            return None
        if key not in self._unpacked:
            self._unpacked[key] = self._unpack(packed)
        return self._unpacked[key]

    def close(self) -> None:
        """Remove what was unpacked where the cache cannot be written."""
        if self._spare is not None:
            shutil.rmtree(self._spare, ignore_errors=True)
            self._spare = None

    def _unpack(self, packed: Packed) -> Path:
        name = packed.name.removesuffix(".xz")
        kept = self._cache / f"conda-snapshot-{self.digest}" / name
        with suppress(OSError):
            if hashlib.sha256(kept.read_bytes()).hexdigest() == packed.sha256:
                return kept
        content = _content(self._folder / packed.name, packed.sha256)
        try:
            _place(kept, content)
        except OSError:
            if self._spare is None:
                self._spare = Path(tempfile.mkdtemp(prefix="stackfix-"))
                atexit.register(self.close)
            kept = self._spare / name
            _place(kept, content)
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What snapshot.toml says."""

    date: str                       # ISO 8601
    source: str                     # a sentence
    holes: tuple[str, ...]
    files: tuple[Packed, ...]

    @property
    def digest(self) -> str:
        """The first 12 digits of a sha256 over what all files unpack to."""
        return snapshot_digest((file.name, file.sha256) for file in self.files)


def snapshot_digest(files: object) -> str:
    """The digest of these (name, sha256)."""
    lines = sorted(f"{sha256}  {name}\n" for name, sha256 in files)  # type: ignore[attr-defined]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def read_manifest(folder: Path) -> Manifest:
    """What snapshot.toml in `folder` says. Raises Unreachable."""
    path = folder / MANIFEST
    try:
        document = loads(path.read_text(encoding="utf-8"))
        files = tuple(Packed(channel=str(row["channel"]), subdir=str(row["subdir"]), name=str(row["file"]),
                             sha256=str(row["sha256"])) for row in document["files"])
        return Manifest(date=str(document["date"]), source=str(document["source"]),
                        holes=tuple(map(str, document["holes"])), files=files)
    except OSError as fault:
        raise Unreachable(str(path), f"cannot be read ({fault.strerror})", _AGAIN) from None
    except (TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise Unreachable(str(path), "is damaged", _AGAIN) from None


def _content(path: Path, sha256: str) -> bytes:
    try:
        with lzma.open(path) as stream:
            content = stream.read(_LARGEST + 1)
    except (OSError, EOFError, lzma.LZMAError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else "it is damaged"
        raise Unreachable(str(path), f"cannot be unpacked ({reason})", _AGAIN) from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise Unreachable(str(path), f"is not the file that {MANIFEST} names", _AGAIN)
    return content


def _place(path: Path, content: bytes) -> None:
    """Write beside and move into place: another process may be reading the file or writing it too."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)  # noqa: PTH108
        raise
