"""A process while a request is worked on: the mutable twin of ProcessState."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stackfix.diagnose.records import FoundVia, LoadedObject, ProcessState
from stackfix.inspect.records import ElfObject, FileAt, Files, Symbols


@dataclass(slots=True, kw_only=True, eq=False)
class Mapped:
    """One object: LoadedObject in the making."""

    number: int
    path: str
    origin: str
    file: FileAt
    elf: ElfObject
    names: list[str]
    loader: int | None
    program: bool
    dlopened: bool
    via: FoundVia
    new: bool
    searchlist: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    scope: list[int] = field(default_factory=list)
    symbols: Symbols | None = None      # opened when first asked
    record: LoadedObject | None = None  # what an earlier request left

    def answers_to(self, name: str) -> bool:
        """Source: _dl_name_match_p, which does not look at the soname: it is among the names once it was asked for."""
        return name in self.names or (name == self.path and not self.program)

    def freeze(self) -> LoadedObject:
        """The object as a record; the earlier one where nothing has changed, for most never do."""
        old = self.record
        if old is not None and len(old.names) == len(self.names) and len(old.scope) == len(self.scope) \
                and old.searchlist is self.searchlist and old.order is self.order:
            return old
        return LoadedObject(
            path=self.path, origin=self.origin, identity=self.file.identity, real_path=self.file.real_path,
            elf=self.elf, names=tuple(self.names), loader=self.loader, program=self.program, dlopened=self.dlopened,
            found_via=self.via, searchlist=self.searchlist, order=self.order, scope=tuple(self.scope),
        )


class Process:
    """Objects in the order of mapping, scopes, and the table of unique symbols."""

    def __init__(self, state: ProcessState, files: Files, unique: Mapping[str, int]) -> None:
        self.files = files
        self.objects = [thaw(number, each) for number, each in enumerate(state.objects)]
        self.global_scope = list(state.global_scope)
        self.state, self.unique_before, self.unique_new = state, unique, dict[str, int]()
        self.start = len(self.objects)

    @property
    def program(self) -> Mapped | None:
        """The main program."""
        return self.objects[0] if self.objects else None

    def by_identity(self, identity: str) -> Mapped | None:
        """The object of a file that is already mapped."""
        return next((each for each in self.objects if each.file.identity == identity), None)

    def add(        # noqa: PLR0913 - link_map's fields
        self, file: FileAt, elf: ElfObject, *, name: str, path: str, cwd: str, loader: int | None, via: FoundVia,
        dlopened: bool, program: bool = False,
    ) -> Mapped:
        """A new object, mapped from `file` under `path` when `name` was asked for."""
        opened = path if path.startswith("/") else f"{cwd.rstrip('/')}/{path}"
        # The program's origin comes from /proc/self/exe, where the kernel has followed all links; a library's is the
        # folder of the path that was opened (rule 4).
        origin = (file.real_path if program else opened).rpartition("/")[0] or "/"
        made = Mapped(
            number=len(self.objects), path=path, origin=origin, file=file, elf=elf, names=[name], loader=loader,
            program=program, dlopened=dlopened, via=via, new=True,
        )
        self.objects.append(made)
        return made

    def freeze(self) -> ProcessState:
        """The state as a record."""
        return ProcessState(
            objects=tuple(each.freeze() for each in self.objects), global_scope=tuple(self.global_scope),
            unique=(*self.state.unique, *self.unique_new.items()) if self.unique_new else self.state.unique,
        )


def thaw(number: int, record: LoadedObject) -> Mapped:
    """An object of an earlier request."""
    file = FileAt(path=record.path, real_path=record.real_path, identity=record.identity, elf=record.elf)
    return Mapped(
        number=number, path=record.path, origin=record.origin, file=file, elf=record.elf, names=list(record.names),
        loader=record.loader, program=record.program, dlopened=record.dlopened, via=record.found_via, new=False,
        searchlist=record.searchlist, order=record.order, scope=list(record.scope), record=record,
    )
