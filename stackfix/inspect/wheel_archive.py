"""A wheel's zip archive, which may be hostile: members under checked names, read in parts and within limits."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import posixpath
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.environment_records import Note
from stackfix.inspect.places import MIB, Root, reason_of
from stackfix.inspect.wheels import Row

DIRECTORY_LIMIT = 32 * MIB      # of the central directory: 30,000 files need 4
MOST_MEMBERS = 200_000
METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})     # what installers must know
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError,
          OverflowError, KeyError, IndexError)
MOST_TOLD = 10                  # members with one fault that are named; the others are counted
SIGNATURES = ("/RECORD", "/RECORD.jws", "/RECORD.p7s")      # RECORD does not list itself with a hash


class BadMember(Exception):
    """One member that cannot be unpacked. The text is fit to be shown."""


class BoundedFile(io.FileIO):
    """A file of which nobody reads much at once: zipfile would read a central directory of any size."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = os.fstat(self.fileno()).st_size - self.tell()
        if size > DIRECTORY_LIMIT:
            raise zipfile.BadZipFile(f"its list of members has {size} bytes")
        return super().read(max(0, size)) or b""


class WheelArchive:
    """Members by their normalised path. Faults of single members are gathered in `faults`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: dict[str, list[str]] = {}      # what is wrong: members
        self._zip = open_zip(path)
        infos = self._zip.infolist()
        if len(infos) > MOST_MEMBERS:
            self.close()
            raise BadInput(str(path), f"has {len(infos)} members")
        self.members: Mapping[str, zipfile.ZipInfo] = self._checked(infos)

    def close(self) -> None:
        stream = self._zip.fp
        self._zip.close()
        if stream is not None:      # zipfile leaves a file open that it was given open
            stream.close()

    def fault(self, what: str, member: str) -> None:
        self.faults.setdefault(what, []).append(member)

    def notes(self) -> Iterator[Note]:
        """The faults as notes on the wheel: each with its first members."""
        for what, members in self.faults.items():
            more = f" and {len(members) - MOST_TOLD} more" if len(members) > MOST_TOLD else ""
            names = ", ".join(each[:200] for each in members[:MOST_TOLD])
            yield Note(path=str(self.path), reason=f"{what}: {names}{more}")

    def _checked(self, infos: Sequence[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
        """Files under paths that stay inside; of several with one path the last, as zipfile and so pip have it."""
        found: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            if info.filename.endswith("/"):     # ZipInfo.is_dir fails for an empty name
                continue
            name = posixpath.normpath(info.filename)
            if name.startswith(("/", "../")) or name in (".", "..") or not is_file_name(name):
                self.fault("leads out of the folder, or is no file name (installers refuse such a wheel)",
                           info.filename)
                continue
            if name in found:
                self.fault("more than once in the archive (the last counts)", name)
            found[name] = info
        return found

    def read(self, name: str, limit: int) -> bytes:
        """The first `limit` bytes of a small member. Raises BadMember."""
        parts, left = [], limit
        for part in self._parts(name):
            parts.append(part[:left])
            left -= len(parts[-1])
            if left <= 0:
                break
        return b"".join(parts)

    def unpack(self, name: str, target: IO[bytes] | None) -> str:
        """Writes a member, and gives its hash as RECORD writes one. Raises BadMember, and OSError for the target."""
        digest = hashlib.sha256()
        for part in self._parts(name):
            digest.update(part)
            if target is not None:
                target.write(part)
        return "sha256=" + base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()

    def _parts(self, name: str) -> Iterator[bytes]:
        """A member's content, a part at a time: never more than its stated size. Raises BadMember."""
        info = self.members[name]
        if info.compress_type not in METHODS:
            raise BadMember("compressed in a way that installers need not know")
        try:
            with self._zip.open(info) as stream:
                while part := stream.read(MIB):
                    yield part
        except BROKEN as error:
            reason = " ".join(str(error).split())[:100] or type(error).__name__
            raise BadMember(f"cannot be unpacked ({reason})") from error

    def compare(self, rows: Sequence[Row]) -> dict[str, str]:
        """RECORD's hashes by member; members that it does not have, and sizes that differ, are faults."""
        hashes: dict[str, str] = {}
        listed = Counter(posixpath.normpath(path) for path, _, _ in rows)
        for path, digest, size in rows:
            name = posixpath.normpath(path)
            info = self.members.get(name)
            if info is None:
                self.fault("in RECORD, but not in the archive", name)
            elif size is not None and size != info.file_size:
                self.fault("of another size than RECORD says", name)
            if digest is not None and digest.startswith("sha256="):
                hashes[name] = digest
        for name, count in listed.items():
            if count > 1:
                self.fault("more than once in RECORD", name)
        for name in self.members:
            if name not in listed and not name.endswith(SIGNATURES):
                self.fault("in the archive, but not in RECORD", name)
        return hashes


def is_file_name(name: str) -> bool:
    """Whether the disk could have it."""
    try:
        return "\0" not in name and all(len(os.fsencode(part)) < 256 for part in name.split("/"))
    except UnicodeEncodeError:
        return False


def open_zip(path: Path) -> zipfile.ZipFile:
    """The archive. Raises BadInput for what is none, Unreachable for what cannot be read."""
    hint = "name a wheel: a file whose name ends in .whl"
    try:
        stream = BoundedFile(Root().open(os.path.abspath(path)))        # noqa: PTH100 - text
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadInput(str(path), "no such file", hint) from error
    except OSError as error:
        reason = "is a folder" if path.is_dir() else reason_of(error)
        if isinstance(error, PermissionError):
            raise Unreachable(str(path), reason) from error
        raise BadInput(str(path), reason, hint) from error
    try:
        return zipfile.ZipFile(stream)
    except BROKEN as error:
        stream.close()
        raise BadInput(str(path), f"is no wheel: {error}", hint) from error
