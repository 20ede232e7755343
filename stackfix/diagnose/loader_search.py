"""Where glibc looks for a library, in order. Rules by number: docs/loader.md.

Source: elf/dl-load.c of glibc 2.36 (_dl_map_object, open_path, fillin_rpath), each rule tried on the real loader.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from stackfix.diagnose.loader_process import Mapped, Process
from stackfix.diagnose.records import FoundVia, Tried
from stackfix.inspect.records import ElfObject, FileAt, Files, LoaderEnvironment, Refused, UnreadableElf

TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")
WRONG_CLASS = "wrong ELF class: ELFCLASS"
NO_FILE = "no such file"
OTHER_MACHINE = "machine "


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A step's list of folders: the loader may give up one list and go on with the next."""

    step: str
    folders: tuple[str, ...]            # as written, in order, each once
    owner: str | None = None
    search_hwcaps: bool = True
    is_path: bool = False               # `folders` holds the one path to open: ld.so.cache's answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """What a search found: a file that is usable or ends the search (`bad` says why)."""

    file: FileAt
    opened_as: str                      # relative where the element is empty: the loader keeps it so
    via: FoundVia
    bad: str | None
    crash: str | None               # what is seen where the loader says nothing


class Search:
    """Looks for libraries on behalf of the objects of one process."""

    def __init__(self, environment: LoaderEnvironment, files: Files) -> None:
        self.environment, self.machine, self.files = environment, environment.machine, files
        self._below: dict[str, list[tuple[str | None, str]]] = {}
        self._folders: dict[tuple[str, str, str], tuple[str, ...]] = {}

    def absolute(self, path: str) -> str:
        """`path` seen from the process's current folder."""
        return path if path.startswith("/") else f"{self.environment.cwd.rstrip('/')}/{path}"

    def expand(self, text: str, origin: str) -> str:
        """`text` with $ORIGIN (rule 4), $LIB and $PLATFORM put in."""
        meanings = {"ORIGIN": origin, "LIB": self.machine.lib, "PLATFORM": self.machine.platform}
        return TOKEN.sub(lambda found: meanings[found[1] or found[2]], text) if "$" in text else text

    def folders(self, text: str | None, origin: str, separators: str) -> tuple[str, ...]:
        """Elements of a search path, each once. An empty element is the current folder (rule 5)."""
        if not text:                    # a variable or tag that is empty as a whole counts as absent
            return ()
        known = self._folders.get((text, origin, separators))
        if known is not None:
            return known
        found: dict[str, None] = {}
        for element in re.split(f"[{separators}]", text):
            folder = self.expand(element, origin)
            if folder or not element:
                found.setdefault(folder.rstrip("/") or "/" if folder else "")
        folders = self._folders[text, origin, separators] = tuple(found)
        return folders

    def places(self, name: str, requester: Mapped | None, process: Process) -> Iterator[Place]:
        """Where `name` is looked for, in order (rule 1)."""
        program = process.program
        if requester is None or not self.ignores_rpath(requester):
            yield from self.rpath_places(requester, process)
        yield from self.library_path_places(program)
        if requester is not None:
            yield from self.runpath_places(requester)
        asks = requester or program
        no_default = asks is not None and "DF_1_NODEFLIB" in asks.elf.flags
        cached = self.machine.cache.get(name)
        if cached is not None and not (no_default and self.is_system(cached)):
            yield Place(step="ld.so.cache", folders=(cached,), search_hwcaps=False, is_path=True)
        if not no_default:
            yield Place(step="default folder", folders=self.machine.system_folders)

    def is_system(self, path: str) -> bool:
        """Whether a path of the cache lies under a built-in folder: with DF_1_NODEFLIB only these do not count."""
        return any(path.startswith(f"{folder}/") for folder in self.machine.system_folders)

    def ignores_rpath(self, requester: Mapped) -> bool:
        """A requester with DT_RUNPATH has no RPATH search, neither its own nor its loaders' (rules 1 and 10)."""
        return requester.elf.runpath is not None

    def rpath_places(self, requester: Mapped | None, process: Process) -> Iterator[Place]:
        """DT_RPATH of the requester, then of its loaders up to the program, which counts for all (rule 2).

        One in between that has DT_RUNPATH adds nothing of its own and does not end the walk.
        """
        program, seen_program = process.program, False
        at = requester
        while at is not None:
            if (folders := self.own_rpath(at)) is not None:
                yield Place(step="RPATH", folders=folders, owner=at.path)
                seen_program = seen_program or at is program
            at = process.objects[at.loader] if at.loader is not None else None
        if program is not None and not seen_program and (folders := self.own_rpath(program)) is not None:
            yield Place(step="RPATH", folders=folders, owner=program.path)

    def own_rpath(self, object_: Mapped) -> tuple[str, ...] | None:
        """Folders of one object's DT_RPATH; None where DT_RUNPATH stands beside it (rule 10)."""
        if object_.elf.runpath is not None or not object_.elf.rpath:
            return None
        return self.folders(object_.elf.rpath, object_.origin, ":")

    def library_path_places(self, program: Mapped | None) -> Iterator[Place]:
        """LD_LIBRARY_PATH, split at `:` and `;` (rule 5); not for setuid programs (rule 10)."""
        if self.environment.library_path and not self.environment.secure:
            origin = program.origin if program else ""
            yield Place(step="LD_LIBRARY_PATH", folders=self.folders(self.environment.library_path, origin, ":;"))

    def runpath_places(self, requester: Mapped) -> Iterator[Place]:
        """DT_RUNPATH of the requester alone: what it needs does not inherit it (rule 1)."""
        if requester.elf.runpath:
            folders = self.folders(requester.elf.runpath, requester.origin, ":")
            yield Place(step="RUNPATH", folders=folders, owner=requester.path)

    def find(self, name: str, requester: Mapped | None, process: Process) -> tuple[Hit | None, tuple[Tried, ...]]:
        """The first file that ends the search for `name`; else all that was tried, which few ever want to know."""
        hit = next(self.hits(name, requester, process, None), None)
        if hit is not None:
            return hit, ()
        tried: list[Tried] = []
        return next(self.hits(name, requester, process, tried), None), tuple(tried)

    def hits(
        self, name: str, requester: Mapped | None, process: Process, tried: list[Tried] | None,
    ) -> Iterator[Hit]:
        """Every file that the search for `name` would come to, in order: the first wins, the rest it shadows."""
        if "/" in name:
            opened_as = self.expand(name, requester.origin if requester else "")
            hit = self.open(opened_as, Place(step="path", folders=(), is_path=True), None, None, tried)
            if isinstance(hit, Hit):
                yield hit
            return
        for place in self.places(name, requester, process):
            for folder in place.folders:
                ended = yield from self._hits_in(name, folder, place, tried)
                if ended:
                    break

    def _hits_in(self, name: str, folder: str, place: Place, tried: list[Tried] | None) -> Generator[Hit, None, bool]:
        """Hits in one folder, hwcaps subfolders first (rule 5). Returns whether the list of folders is given up."""
        if place.is_path:
            hit = self.open(folder, place, folder, None, tried)
            if isinstance(hit, Hit):
                yield hit
            return False
        for hwcaps, start in self.subfolders(folder, hwcaps=place.search_hwcaps):
            hit = self.open(start + name, place, folder, hwcaps, tried)
            if isinstance(hit, Hit):
                yield hit
            elif hit:
                return True
        return False

    def subfolders(self, folder: str, *, hwcaps: bool) -> Sequence[tuple[str | None, str]]:
        """(hwcaps subfolder, what stands before a name in it) of one element, the element itself last."""
        start = f"{folder.rstrip('/')}/" if folder else ""
        below = self._below.get(start)
        if below is None:
            below = self._below[start] = [(each, f"{start}{each}/") for each in self.machine.hwcap_subfolders]
        return [*below, (None, start)] if hwcaps else [(None, start)]

    def open(
        self, opened_as: str, place: Place, element: str | None, hwcaps: str | None, tried: list[Tried] | None,
    ) -> Hit | bool:
        """The file at one path, if the loader takes it; else whether it gives up this list. Source: open_verify."""
        file = self.files.at(self.absolute(opened_as))
        if file is None or isinstance(file, Refused):
            if tried is not None and (file is not None or hwcaps is None):
                why = NO_FILE if file is None else file.reason
                tried.append(Tried(step=place.step, element=element, path=opened_as, why=why, owner=place.owner))
            return file is not None and file.ends_list
        mismatch = self.mismatch(file.elf)
        if mismatch is not None:
            if tried is not None:
                tried.append(Tried(step=place.step, element=element, path=opened_as, why=mismatch, owner=place.owner))
            return False
        via = FoundVia(step=place.step, element=element, owner=place.owner, hwcaps=hwcaps)
        crash = file.elf.crash if isinstance(file.elf, UnreadableElf) else None
        return Hit(file=file, opened_as=opened_as, via=via, bad=self.defect(file.elf), crash=crash)

    def mismatch(self, elf: ElfObject | UnreadableElf) -> str | None:
        """Why the loader passes over a file without an error: another class, or another machine."""
        if elf.bits is None:
            return None
        if elf.bits != self.machine.bits:
            return f"{WRONG_CLASS}{96 - self.machine.bits}"     # the other one, whatever the file says
        if elf.machine not in {None, self.machine.machine} and elf.byte_order == self.machine.byte_order:
            return f"{OTHER_MACHINE}{elf.machine}"
        return None

    def defect(self, elf: ElfObject | UnreadableElf) -> str | None:     # noqa: PLR0911 - one for each check
        """Why the loader gives up at a file that it found."""
        if elf.byte_order not in {None, self.machine.byte_order}:
            return f"ELF file data encoding not {self.machine.byte_order}-endian"
        if isinstance(elf, UnreadableElf):
            return elf.reason
        if elf.kind == "other":
            return "only ET_DYN and ET_EXEC can be loaded"
        if elf.kind == "executable":
            return "cannot dynamically load executable"
        if not elf.dynamic:
            return "object file has no dynamic section"
        if "DF_1_PIE" in elf.flags:
            return "cannot dynamically load position-independent executable"
        return None
