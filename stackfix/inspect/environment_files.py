"""Who owns which file, and whether each is as its owner installed it."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterable, Iterator

from stackfix.inspect.conda import HEX
from stackfix.inspect.environment_records import FileClaim, FileFault, Note, Owner, SharedFile
from stackfix.inspect.places import MIB, Root, reason_of
from stackfix.inspect.wheels import Row, sha256_of

MAX_FAULTS = 1000               # of one owner: a removed torch would give 15,000
PASSING = (".pyc", ".pyo")      # compiled at need, thrown away at will
Claim = tuple[Owner, "int | None", "str | None"]   # size; hash as its record writes it, for few are ever compared


class Folders:
    """Listings of folders, each read once, with links resolved for the folder only."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self._real: dict[str, str | None] = {}
        self._listed: dict[str, dict[str, os.DirEntry[str]]] = {}
        self.unreadable: dict[str, str] = {}     # real folder: why it could not be listed

    def real(self, folder: str) -> str | None:
        """The folder without links, or None. A child of a known folder costs one lstat."""
        if folder not in self._real:
            self._real[folder] = self._resolve(folder)
        return self._real[folder]

    def _resolve(self, folder: str) -> str | None:
        parent, _, name = folder.rpartition("/")
        above = self.real(parent) if parent and name not in ("", ".", "..") else None
        if above is None:
            return self.root.find(folder) if not parent or name in ("", ".", "..") else None
        entry = self.listing(above).get(name)
        if entry is not None and entry.is_dir(follow_symlinks=False):
            return f"{above.rstrip('/')}/{name}"
        return self.root.find(f"{above}/{name}") if entry is None or entry.is_symlink() else None

    def listing(self, real: str) -> dict[str, os.DirEntry[str]]:
        """Names in a folder without links in its path; none where it cannot be read."""
        if real not in self._listed:
            try:
                with os.scandir(self.root.host(real)) as found:
                    self._listed[real] = {each.name: each for each in found}
            except OSError as error:
                self._listed[real] = {}
                self.unreadable[real] = reason_of(error)
        return self._listed[real]


class InstalledFiles:
    """Claims of owners on files. Paths are inside the root, without `..`."""

    def __init__(self, root: Root) -> None:
        self.root, self.folders = root, Folders(root)
        self._claims: dict[str, Claim] = {}
        self._more: dict[str, list[Claim]] = {}
        self._bases: dict[str, tuple[str, ...]] = {}
        self._faults: list[FileFault] = []

    def add(self, owner: Owner, folder: str, bases: tuple[str, ...],
            rows: Iterable[Row]) -> None:
        """Takes an owner's rows (path, hash, size), relative to `folder`.

        A path that leaves all `bases` is a fault of its own; it is not looked at.
        """
        claims, start = self._claims, f"{folder}/"
        self._bases[folder] = bases
        for written, digest, size in rows:
            path = start + written
            if written[0] == "/" or ".." in written or "//" in written or "./" in written:
                path = posixpath.normpath(written if written[0] == "/" else path)
                if not is_below(path, bases):
                    self._faults.append(fault("outside", path, owner))
                    continue
            claim = (owner, size, digest)
            if claims.setdefault(path, claim) is not claim:
                self._more.setdefault(path, [claims[path]]).append(claim)

    def owners(self, path: str) -> tuple[Owner, ...]:
        """Who claims the path, each once."""
        return tuple(dict.fromkeys(owner for owner, _, _ in self.claims(path)))

    def claims(self, path: str) -> list[Claim]:
        if path in self._more:
            return self._more[path]
        return [self._claims[path]] if path in self._claims else []

    def shared(self) -> tuple[SharedFile, ...]:
        """Files that more than one owner claims, by path; compiled ones left out."""
        found = []
        for path, claims in sorted(self._more.items()):
            if len({owner for owner, _, _ in claims}) > 1 and not path.endswith(PASSING):
                stated = tuple(FileClaim(owner=owner, size=size, sha256=hexadecimal(digest))
                               for owner, size, digest in claims)
                hashes = {each.sha256 for each in stated}
                found.append(SharedFile(path=path, claims=stated, same=len(hashes) == 1 and None not in hashes))
        return tuple(found)

    def faults(self, allowed: tuple[str, ...], notes: list[Note], *, deep: bool = False) -> tuple[FileFault, ...]:
        """Files that are missing, of another size or, with `deep`, of another content, by path.

        `allowed` are the folders in which a file may really lie: a folder that is a link to elsewhere is not entered.
        """
        real_bases = tuple(filter(None, (self.folders.real(each) for each in allowed)))
        judge = Judge(self.root, self.folders, real_bases, deep=deep)
        found = list(self._faults)
        for path, claim in self._claims.items():
            if path in self._more or not judge.is_plainly_right(path, claim):
                found += filter(None, (judge.fault(path, each) for each in self.claims(path)
                                       # a distribution strips and moves files of wheels; its own tools judge them
                                       if each[0].manager != "system"))
        if judge.outside_links:
            reason = f"is a link that leads out of the prefix, as {judge.outside_links} files are"
            notes.append(Note(path=judge.first_outside, reason=reason))
        return tuple(limited(sorted(found, key=lambda each: (each.path, each.owner)), notes))


class Judge:
    """Compares one claim with the disk."""

    def __init__(self, root: Root, folders: Folders, bases: tuple[str, ...], *, deep: bool) -> None:
        self.root, self.folders, self.bases, self.deep = root, folders, bases, deep
        self._place: dict[str, dict[str, os.DirEntry[str]] | None] = {}
        self._told: set[tuple[str, Owner]] = set()
        self.outside_links, self.first_outside = 0, ""
        self._last: str | None = None
        self._names: dict[str, os.DirEntry[str]] = {}

    def is_plainly_right(self, path: str, claim: Claim) -> bool:
        """Whether a file is there with its size: the quick answer for nearly all of them."""
        folder, _, name = path.rpartition("/")
        if folder != self._last:    # a RECORD lists folder by folder
            self._last, self._names = folder, self.place(folder) or {}
        entry = self._names.get(name)
        if entry is None or self.deep:
            return False
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and (claim[1] is None or claim[1] == status.st_size)

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
        why = self.folders.unreadable.get(self.folders.real(path.rpartition("/")[0]) or "")
        if why is not None:
            return fault("unreadable", path, owner, found=why)
        return None if path.endswith(PASSING) else fault("missing", path, owner)

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
