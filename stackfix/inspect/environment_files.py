"""Who owns which file of an environment."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping

from stackfix.inspect.environment_folders import Folders
from stackfix.inspect.environment_judge import PASSING, Claim, Judge, fault, hexadecimal, is_below, limited
from stackfix.inspect.environment_records import FileClaim, FileFault, Note, Owner, SharedFile
from stackfix.inspect.places import Root
from stackfix.inspect.wheels import Row

Progress = Callable[[int, int], None]       # bytes that were judged, of how many


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

    def faults(self, allowed: tuple[str, ...], notes: list[Note], *, deep: bool = False,
               progress: Progress | None = None) -> tuple[FileFault, ...]:
        """Files that are missing, of another size or, with `deep`, of another content, by path.

        `allowed` are the folders in which a file may really lie: a folder that is a link to elsewhere is not entered.
        """
        real_bases = tuple(filter(None, (self.folders.real(each) for each in allowed)))
        judge = Judge(self.root, self.folders, real_bases, deep=deep)
        found = list(self._faults)
        judged = self._claims if deep else self._doubtful(judge)
        for path in told(self._claims, progress) if deep and progress else judged:
            found += filter(None, (judge.fault(path, each) for each in self.claims(path)
                                   # a distribution strips and moves files of wheels; its own tools judge them
                                   if each[0].manager != "system"))
        if judge.outside_links:
            reason = f"is a link that leads out of the prefix, as {judge.outside_links} files are"
            notes.append(Note(path=judge.first_outside, reason=reason))
        return tuple(limited(sorted(found, key=lambda each: (each.path, each.owner)), notes))

    def _doubtful(self, judge: Judge) -> Iterable[str]:
        """Paths that are not plain files of the size that their only owner states, and so need a closer look."""
        sizes = judge.sizes({path[:path.rindex("/")] for path in self._claims})
        found = [path for path, claim in self._claims.items()
                 if (size := sizes.get(path)) is None or (size != claim[1] and claim[1] is not None)]
        return dict.fromkeys((*found, *self._more))


def told(claims: Mapping[str, Claim], progress: Progress) -> Iterator[str]:
    """The claims' paths, while `progress` is told of their bytes."""
    done, total = 0, sum(size or 0 for _, size, _ in claims.values())
    for path, claim in claims.items():
        progress(done, total)
        yield path
        done += claim[1] or 0
    progress(total, total)
