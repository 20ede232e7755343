"""A process while a request is worked on: the mutable twin of ProcessState."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

from stackfix.diagnose.records import FoundVia, LoadedObject, ProcessState
from stackfix.inspect.records import ElfObject, FileAt, Files, Symbols


@dataclass(slots=True, kw_only=True, eq=False)
class Mapped:
    """One object: LoadedObject in the making."""

    number: int
    path: str
    origin: str
    identity: str
    real_path: str
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
    no_symbols: Symbols | None = None   # stands for its symbols once they turned out unreadable
    record: LoadedObject | None = None  # what an earlier request left

    @property
    def file(self) -> FileAt:
        """The file that it was mapped from."""
        return FileAt(path=self.path, real_path=self.real_path, identity=self.identity, elf=self.elf)

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
            path=self.path, origin=self.origin, identity=self.identity, real_path=self.real_path,
            elf=self.elf, names=tuple(self.names), loader=self.loader, program=self.program, dlopened=self.dlopened,
            found_via=self.via, searchlist=self.searchlist, order=self.order, scope=tuple(self.scope),
        )


def thaw(number: int, record: LoadedObject) -> Mapped:
    """An object of an earlier request."""
    return Mapped(
        number=number, path=record.path, origin=record.origin, identity=record.identity, real_path=record.real_path,
        elf=record.elf, names=list(record.names), loader=record.loader, program=record.program,
        dlopened=record.dlopened, via=record.found_via, new=False, searchlist=record.searchlist, order=record.order,
        scope=list(record.scope), record=record,
    )


class Objects(Sequence[Mapped]):
    """Objects in the order of mapping. Those of earlier requests are thawed when somebody asks for them."""

    def __init__(self, records: tuple[LoadedObject, ...]) -> None:
        self._records, self._made, self._length = records, dict[int, Mapped](), len(records)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, number: int) -> Mapped: ...
    @overload
    def __getitem__(self, number: slice) -> list[Mapped]: ...
    def __getitem__(self, number: int | slice) -> Mapped | list[Mapped]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(self._length))]
        made = self._made.get(number)
        if made is None:
            made = self._made[number] = thaw(number, self._records[number])
        return made

    def __iter__(self) -> Iterator[Mapped]:
        return (self[number] for number in range(self._length))

    def append(self, object_: Mapped) -> None:
        """One more, whose number is its place."""
        self._made[object_.number] = object_
        self._length += 1

    def freeze(self) -> tuple[LoadedObject, ...]:
        """All of them as records; the very tuple of before where nothing has changed."""
        before = self._records
        changed = {number: each for number, made in self._made.items()
                   if (each := made.freeze()) is not made.record}
        if not changed:
            return before
        records = [*before, *[changed[number] for number in range(len(before), self._length)]]
        for number, each in changed.items():
            records[number] = each
        return tuple(records)

    def renamed(self) -> tuple[LoadedObject, ...]:
        """The objects of before with the names that they have now, and nothing else that is new."""
        changed = {number: replace(self._records[number], names=tuple(made.names))
                   for number, made in self._made.items()
                   if number < len(self._records) and len(made.names) != len(self._records[number].names)}
        if not changed:
            return self._records
        return tuple([changed.get(number, each) for number, each in enumerate(self._records)])


@dataclass(frozen=True, slots=True)
class Index:
    """Numbers of the first objects that are called so."""

    called: dict[str, int] = field(default_factory=dict)        # what answers_to says
    sonames: dict[str, int] = field(default_factory=dict)
    identities: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Index:
        """An index to which entries can be added."""
        return Index(dict(self.called), dict(self.sonames), dict(self.identities))

    def add(self, number: int, object_: Mapped | LoadedObject) -> None:
        """Enter a new object."""
        for name in object_.names if object_.program else (*object_.names, object_.path):
            self.called.setdefault(name, number)
        if object_.elf.soname is not None:
            self.sonames.setdefault(object_.elf.soname, number)
        self.identities.setdefault(object_.identity, number)


def index_of(objects: tuple[LoadedObject, ...]) -> Index:
    """The index of a state."""
    index = Index()
    for number, each in enumerate(objects):
        index.add(number, each)
    return index


class Process:
    """Objects in the order of mapping, scopes, and the table of unique symbols."""

    def __init__(self, state: ProcessState, files: Files, unique: Mapping[str, int], index: Index) -> None:
        """`index`: of the state's objects; belongs to this process from here on."""
        self.files, self.index = files, index
        self.objects = Objects(state.objects)
        self.global_scope = list(state.global_scope)
        self.state, self.unique_before, self.unique_new = state, unique, dict[str, int]()
        self.start = len(self.objects)

    @property
    def program(self) -> Mapped | None:
        """The main program."""
        return self.objects[0] if self.objects else None

    def by_identity(self, identity: str) -> Mapped | None:
        """The object of a file that is already mapped."""
        number = self.index.identities.get(identity)
        return self.objects[number] if number is not None else None

    def called(self, name: str) -> Mapped | None:
        """The first object that answers to a name."""
        number = self.index.called.get(name)
        return self.objects[number] if number is not None else None

    def with_soname(self, soname: str) -> Mapped | None:
        """The first object that states this DT_SONAME."""
        number = self.index.sonames.get(soname)
        return self.objects[number] if number is not None else None

    def add_name(self, object_: Mapped, name: str) -> None:
        """One more name under which an object was asked for."""
        object_.names.append(name)
        self.index.called[name] = min(object_.number, self.index.called.get(name, object_.number))

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
            number=len(self.objects), path=path, origin=origin, identity=file.identity, real_path=file.real_path,
            elf=elf, names=[name], loader=loader, program=program, dlopened=dlopened, via=via, new=True,
        )
        self.objects.append(made)
        self.index.add(made.number, made)
        return made

    def freeze(self) -> ProcessState:
        """The state as a record."""
        return ProcessState(
            objects=self.objects.freeze(), global_scope=tuple(self.global_scope),
            unique=(*self.state.unique, *self.unique_new.items()) if self.unique_new else self.state.unique,
        )
