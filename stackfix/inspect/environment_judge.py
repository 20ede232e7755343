"""Whether a file is as its owner installed it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from stackfix.inspect.conda import HEX
from stackfix.inspect.environment_folders import Folders
from stackfix.inspect.environment_records import FileFault, Note, Owner
from stackfix.inspect.places import MIB, Root, reason_of
from stackfix.inspect.wheels import sha256_of

MAX_FAULTS = 1000               # of one owner: a removed torch would give 15,000
# Compiled at need, thrown away at will; virtualenv writes the folder itself into the RECORDs that it seeds.
PASSING = (".pyc", ".pyo", "/__pycache__")
Claim = tuple[Owner, "int | None", "str | None"]   # size; hash as its record writes it, for few are ever compared


class Judge:
    """Compares one claim with the disk."""

    def __init__(self, root: Root, folders: Folders, bases: tuple[str, ...], *, deep: bool) -> None:
        self.root, self.folders, self.bases, self.deep = root, folders, bases, deep
        self._place: dict[str, dict[str, os.DirEntry[str]] | None] = {}
        self._told: set[tuple[str, Owner]] = set()
        self._closed: dict[str, str | None] = {}
        self.outside_links, self.first_outside = 0, ""

    def sizes(self, folders: Iterable[str]) -> dict[str, int]:
        """Sizes of the plain files in those folders that really lie inside: enough to judge nearly all claims."""
        found: dict[str, int] = {}
        for folder in folders:
            real = self.folders.real(folder) if self.place(folder) else None
            if real is not None:
                found |= self.folders.sizes(folder, real)
        return found

    def place(self, folder: str) -> dict[str, os.DirEntry[str]] | None:
        """Names in the folder; None where it really lies outside."""
        if folder not in self._place:
            real = self.folders.real(folder)
            inside = real is None or is_below(f"{real}/x", self.bases)
            self._place[folder] = (self.folders.listing(real) if real is not None else {}) if inside else None
        return self._place[folder]

    def fault(self, path: str, claim: Claim) -> FileFault | None:
        """What is wrong with the file, or None."""
        owner, size, _ = claim
        folder, _, name = path.rpartition("/")
        names = self.place(folder)
        if names is None:
            return self.outside_folder(folder, owner)
        entry = names.get(name)
        if entry is None:
            return self.absence(path, owner)
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            return fault("unreadable", path, owner, found=error.strerror)
        if stat.S_ISLNK(status.st_mode):
            return self.link_fault(path, claim)
        if stat.S_ISREG(status.st_mode):
            return self.content_fault(path, claim, status.st_size)
        return fault("no-file", path, owner) if size is not None else None      # conda may list an empty folder

    def absence(self, path: str, owner: Owner) -> FileFault | None:
        """A name that its folder does not have, unless the folder would not say."""
        why = self.why_closed(path.rpartition("/")[0])
        if why is not None:
            return fault("unreadable", path, owner, found=why)
        return None if path.endswith(PASSING) else fault("missing", path, owner)

    def why_closed(self, folder: str) -> str | None:
        """Why what lies in a folder cannot be seen; None where it can, or where the folder is not there."""
        if folder not in self._closed:
            why = self.folders.unreadable.get(self.folders.real(folder) or "")
            try:
                self.root.resolve(f"{folder}/x")        # a folder above may be closed
            except PermissionError as error:
                why = why or reason_of(error)
            except OSError:
                pass
            self._closed[folder] = why
        return self._closed[folder]

    def link_fault(self, path: str, claim: Claim) -> FileFault | None:
        """A link in a file's place: broken, or judged by what it leads to while that lies inside."""
        real = self.root.find(path)
        if real is None:
            return fault("broken-link", path, claim[0], found=self.root.link_target(path))
        status = self.root.status(real)
        if status is None or not stat.S_ISREG(status.st_mode):
            return fault("no-file", path, claim[0], found=real) if claim[1] is not None else None
        if is_below(real, self.bases):
            return self.content_fault(path, claim, status.st_size)
        # uv and conda may install links into their caches: the size is looked at, the content is not
        self.outside_links += 1
        self.first_outside = self.first_outside or path
        return size_fault(path, claim, status.st_size)

    def outside_folder(self, folder: str, owner: Owner) -> FileFault | None:
        """One fault for each owner and linked folder, not one for each file below it."""
        while (above := folder.rpartition("/")[0]) and self.place(above) is None:
            folder = above
        if (folder, owner) in self._told:
            return None
        self._told.add((folder, owner))
        return fault("outside", folder, owner, found=self.folders.real(folder))

    def content_fault(self, path: str, claim: Claim, size: int) -> FileFault | None:
        if path.endswith(PASSING):
            return None
        owner, _, written = claim
        sha256 = hexadecimal(written) if self.deep else None
        wrong = size_fault(path, claim, size)
        if wrong is not None or sha256 is None:
            return wrong
        try:
            digest = file_sha256(self.root, path)
        except OSError as error:
            return fault("unreadable", path, owner, expected=sha256, found=reason_of(error))
        return fault("hash", path, owner, expected=sha256, found=digest) if digest != sha256 else None


def size_fault(path: str, claim: Claim, size: int) -> FileFault | None:
    if claim[1] is None or claim[1] == size:
        return None
    return fault("size", path, claim[0], expected=str(claim[1]), found=str(size))


def fault(kind: str, path: str, owner: Owner, *, expected: str | None = None, found: str | None = None) -> FileFault:
    return FileFault(path=path, owner=owner, kind=kind, expected=expected, found=found)


def hexadecimal(digest: str | None) -> str | None:
    """The sha256 of a claim, be it conda's or RECORD's."""
    if digest is not None and digest.startswith(HEX):
        return digest[len(HEX):]
    return sha256_of(digest)


def limited(faults: Iterable[FileFault], notes: list[Note]) -> Iterator[FileFault]:
    """The first faults of each owner; how many more it has becomes a note."""
    told: dict[Owner, int] = {}
    for each in faults:
        told[each.owner] = told.get(each.owner, 0) + 1
        if told[each.owner] <= MAX_FAULTS:
            yield each
    for owner, count in told.items():
        if count > MAX_FAULTS:
            reason = f"{count} of its files are at fault: only the first {MAX_FAULTS} are listed"
            notes.append(Note(path=f"{owner.name} {owner.version}", reason=reason))


def is_below(path: str, bases: tuple[str, ...]) -> bool:
    return any(path.startswith(base if base.endswith("/") else f"{base}/") for base in bases)


def file_sha256(root: Root, path: str) -> str:
    """sha256 of a file of any size, in hexadecimal. Raises OSError."""
    import hashlib

    digest = hashlib.sha256()
    for part in read_parts(root, path):
        digest.update(part)
    return digest.hexdigest()


def read_parts(root: Root, path: str) -> Iterator[bytes]:
    with os.fdopen(root.open(path), "rb", buffering=0) as stream:
        while part := stream.read(MIB):
            yield part
