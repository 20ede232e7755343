"""What an installation changes on disk: the paths that go with the old release, and those that come with the new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stackfix.inspect.environment_records import Environment
from stackfix.plan.effect_world import Places
from stackfix.plan.records import Change, Node

ABSENT, FOLDER = Node(kind="absent"), Node(kind="folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """What is set aside, a folder in one."""

    path: str                       # relative to the prefix
    kind: str                       # of a Node
    files: int
    size: int                       # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A file that is brought."""

    path: str                       # relative to the prefix
    size: int
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFiles:
    """Both, of one wheel over one environment."""

    going: tuple[Going, ...] = ()
    coming: tuple[Coming, ...] = ()


def changes_by(files: WheelFiles, places: Places) -> tuple[Change, ...]:
    """The topmost paths that change, by path. What is there with the same content is left alone."""
    going = {each.path: each for each in files.going}
    coming: dict[str, list[Coming]] = {}
    tops = Tops(going, places)
    for each in files.coming:
        coming.setdefault(tops.of(each.path), []).append(each)
    found = []
    for path in sorted({*going, *coming}):
        old, new = going.get(path), coming.get(path, [])
        after = ABSENT if not new else Node(kind="file", sha256=new[0].sha256) if new[0].path == path else FOLDER
        before = Node(kind=old.kind) if old is not None else places.node(path) if after.kind == "file" else ABSENT
        if old is None and before.kind == "file" and before.sha256 == after.sha256:
            continue
        found.append(Change(path=path, before=before, after=after,
                            files=len(new) if new else old.files if old else 0,
                            size=sum(each.size for each in new) if new else old.size if old else 0))
    return tuple(found)


class Tops:
    """The topmost path that changes when a file is brought."""

    def __init__(self, going: dict[str, Going], places: Places) -> None:
        self._going, self._places = going, places
        self._stays: dict[str, bool] = {}

    def of(self, path: str) -> str:
        """The folder that is replaced or new, else the file."""
        return next((above for above in folders_above(path) if not self._stays_at(above)), path)

    def _stays_at(self, folder: str) -> bool:
        """Whether a folder is there, and stays."""
        if folder not in self._stays:
            self._stays[folder] = folder not in self._going and self._places.node(folder).kind != "absent"
        return self._stays[folder]


def folders_above(path: str) -> Iterator[str]:
    """"a" and "a/b" of a/b/c."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def without_going(environment: Environment, going: tuple[str, ...], coming: frozenset[str]) -> Environment:
    """The record without files that go and do not come again; paths are absolute. Distributions stay."""
    def stays(path: str) -> bool:
        return path in coming or not any(path == each or path.startswith(f"{each}/") for each in going)

    folders = (replace(each, libraries=tuple(name for name in each.libraries if stays(f"{each.path}/{name}")))
               for each in environment.library_folders)
    return replace(
        environment, shared_objects=tuple(each for each in environment.shared_objects if stays(each.path)),
        library_folders=tuple(each for each in folders if each.libraries),
        activation=tuple(each for each in environment.activation if stays(each.path)),
        kernels=tuple(each for each in environment.kernels if stays(each.path)),
    )
