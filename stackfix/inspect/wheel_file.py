"""A wheel before it is installed: what it says of itself, and its shared objects in the places they would have.

Only shared objects and the metadata are unpacked, into a temporary folder. Nothing is installed or run.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.environment_judge import Claim
from stackfix.inspect.environment_objects import module_of
from stackfix.inspect.environment_records import Distribution, Environment, Note, Owner, SharedObject
from stackfix.inspect.places import MIB, Root, reason_of
from stackfix.inspect.records import Files
from stackfix.inspect.wheel_archive import BadMember, WheelArchive
from stackfix.inspect.wheel_overlay import Ground, OverlayFiles
from stackfix.inspect.wheel_parts import Parts, compare_name, is_shared_object, read_parts, site_for
from stackfix.inspect.wheels import RECORD_LIMIT, parse_record, read_distribution

MOST_UNPACKED = 32 << 30        # bytes of shared objects; torch has 2.4 GB
SPARE = 64 * MIB                # of the disk
MAX_DEPTH = 100                 # folders of a member in each other; torch has 11
DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG, errno.EMFILE, errno.ENFILE})
ELSEWHERE = "set TMPDIR to a folder with more room"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelOverlay:
    """A wheel as if it were installed. Its files go with the `with` block that made it."""

    wheel: str                      # the file, as it was named
    distribution: Distribution
    file_tags: tuple[str, ...]      # of the file's name, by which installers choose; WHEEL may say otherwise
    replaces: tuple[Distribution, ...]  # what an installer would remove first
    shared_objects: tuple[SharedObject, ...]    # by path
    claims: Mapping[str, Claim]     # by path, every file that an installer would write
    files: Files                    # the environment's files with the wheel's over them
    root: Root                      # holds only what was unpacked, at its later places: for readers of one file
    notes: tuple[Note, ...]


@contextmanager
def open_wheel(path: Path, *, environment: Environment, root: Root, below: Files, site: str | None = None,
               deep: bool = False) -> Iterator[WheelOverlay]:
    """The wheel over an environment that was read below `root`. `deep` compares every file with RECORD's hash.

    `site` is the folder that it would go to: the environment's own, unless one is named. Raises BadInput for what is no
    wheel, Unreachable where it cannot be read or unpacked; faults of single members become notes.
    """
    archive = WheelArchive(path)
    try:
        parts = read_parts(archive)
        target = site_for(environment, site, pure=parts.pure)
        with temporary_root() as upper:
            unpacking = Unpacking(archive, parts, upper, Ground(root))
            distribution = unpacking.read_distribution(target.path)
            unpacking.unpack_all(target.path, target.base)
            yield unpacking.as_overlay(distribution, environment, below, deep=deep)
    finally:
        archive.close()


@contextmanager
def temporary_root() -> Iterator[Root]:
    """A root of its own, gone afterwards. Raises Unreachable."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="stackfix-wheel-")
    except OSError as error:
        raise Unreachable("temporary folder", reason_of(error), ELSEWHERE) from error
    with folder as name:
        yield Root(str(Path(name).resolve()))


class Unpacking:
    """Lays one wheel over one environment. `upper` is the root in which its files get their later places."""

    def __init__(self, archive: WheelArchive, parts: Parts, upper: Root, ground: Ground) -> None:
        self.archive, self.parts, self.upper, self.ground = archive, parts, upper, ground
        self.places: dict[str, str] = {}        # of all members that an installer puts into site or prefix
        self.laid: dict[str, str] = {}          # of the shared objects that were unpacked, links followed
        self.hashes: dict[str, str] = {}        # of these, as RECORD writes hashes
        self.modules: dict[str, tuple[str | None, str | None]] = {}

    def read_distribution(self, site: str) -> Distribution:
        """The project, read as it will be once its metadata lie in the site folder. Raises BadInput."""
        folder = f"{self.ground.add(site)}/{self.parts.info}"
        here = Path(self.upper.host(folder))
        try:
            here.mkdir(parents=True)
            for name, content in self.parts.metadata.items():
                (here / name).write_bytes(content)
        except OSError as error:
            raise Unreachable(self.upper.folder, reason_of(error), ELSEWHERE) from error
        notes: list[Note] = []
        found = read_distribution(self.upper, site, folder, "dist-info", notes)
        if found is None:
            raise BadInput(str(self.archive.path), f"is no wheel: its METADATA {notes[-1].reason}")
        return replace(found, metadata=f"{site}/{self.parts.info}")

    def unpack_all(self, site: str, base: str) -> None:
        """Unpacks the shared objects. Raises BadInput where they are too large, Unreachable where the disk is full."""
        for name in self.archive.members:
            place = self.parts.place(name, site, base)
            if place is not None:
                self.places[name] = place
                if is_shared_object(name):
                    inside = place.startswith(f"{site}/")
                    self.modules[name] = module_of(place[len(site) + 1:]) if inside else (None, None)
        must_fit(self.archive, self.modules, self.upper.folder)
        for name in sorted(self.modules, key=self.places.__getitem__):
            self.unpack(name)

    def unpack(self, name: str) -> None:
        """Unpacks one shared object, or notes why it cannot be."""
        if name.count("/") > MAX_DEPTH:
            self.archive.fault(f"more than {MAX_DEPTH} folders deep", name)
            return
        folder, _, base = self.places[name].rpartition("/")
        place = f"{self.ground.add(folder)}/{base}"
        target = Path(self.upper.host(place))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as stream:
                self.hashes[name] = self.archive.unpack(name, stream)
        except BadMember as error:
            self.archive.fault(str(error), name)
            target.unlink(missing_ok=True)
        except OSError as error:
            if error.errno in DISK:
                raise Unreachable(self.upper.folder, reason_of(error), ELSEWHERE) from error
            self.archive.fault(f"without a place beside the others ({reason_of(error)})", name)
        else:
            self.laid[name] = place

    def as_overlay(self, distribution: Distribution, environment: Environment, below: Files, *,
                   deep: bool) -> WheelOverlay:
        """What was unpacked, over the environment without what it replaces."""
        owner = Owner(manager="pip", name=distribution.name, version=distribution.version)
        claims = self.read_record(owner, deep=deep)
        file_tags = compare_name(self.archive, distribution)
        replaces = tuple(each for each in environment.distributions
                         if (each.name, each.site) == (distribution.name, distribution.site))
        gone = [self.ground.place(each.path) for each in environment.shared_objects
                if is_replaced(each.owners, replaces)]
        members = self.archive.members
        return WheelOverlay(
            wheel=str(self.archive.path), distribution=distribution, file_tags=file_tags, replaces=replaces,
            shared_objects=tuple(SharedObject(
                path=self.places[name], size=members[name].file_size, link=None, owners=(owner,),
                module=self.modules[name][0], tag=self.modules[name][1]) for name in self.laid),
            claims=claims, root=self.upper, notes=tuple(self.archive.notes()),
            files=OverlayFiles(self.upper, self.ground, over=self.laid.values(),
                               hidden=(place for place, _ in filter(None, gone)), below=below),
        )

    def read_record(self, owner: Owner, *, deep: bool) -> dict[str, Claim]:
        """What the wheel claims, by path: the sizes of its members, and RECORD's hashes, which are compared."""
        hashes: Mapping[str, str] = {}
        if "RECORD" in self.parts.metadata:
            try:
                if len(self.parts.metadata["RECORD"]) > RECORD_LIMIT:
                    raise OSError(errno.EFBIG, f"is longer than {RECORD_LIMIT} bytes")  # noqa: TRY301 - told below
                rows, wrong = parse_record(self.parts.metadata["RECORD"])
            except OSError as error:
                self.archive.fault("cannot be used", f"RECORD, which {reason_of(error)}")
            else:
                if wrong:
                    self.archive.fault("no rows", f"{wrong} lines of RECORD")
                hashes = self.archive.compare(rows)
                self.compare_hashes(hashes, self.archive.members if deep else self.hashes)
        members = self.archive.members
        return {place: (owner, members[name].file_size, hashes.get(name)) for name, place in self.places.items()}

    def compare_hashes(self, hashes: Mapping[str, str], names: Iterable[str]) -> None:
        for name in names:
            if name in hashes:
                try:
                    found = self.hashes.get(name) or self.archive.unpack(name, None)
                except BadMember as error:
                    self.archive.fault(str(error), name)
                    continue
                if found != hashes[name].rstrip("="):
                    self.archive.fault("of another hash than RECORD says", name)


def must_fit(archive: WheelArchive, names: Iterable[str], folder: str) -> None:
    """Raises BadInput for more than any wheel has, Unreachable for more than the disk takes."""
    total = sum(archive.members[name].file_size for name in names)
    if total > MOST_UNPACKED:
        raise BadInput(str(archive.path), f"states {total >> 30} GiB of shared objects, which no wheel has")
    free = shutil.disk_usage(folder).free
    if total + SPARE > free:
        reason = f"{total // MIB} MiB are to be unpacked, and {free // MIB} MiB are free"
        raise Unreachable(folder, reason, ELSEWHERE)


def is_replaced(owners: Sequence[Owner], replaces: Sequence[Distribution]) -> bool:
    """Whether a file goes when these distributions are removed: nobody else owns it."""
    names = {(each.manager, each.conda_package or each.name) for each in replaces}
    return bool(owners) and all((each.manager, each.name) in names for each in owners)


__all__ = ["WheelOverlay", "is_replaced", "open_wheel"]
