"""The simulator as the oracle judges it, and mutants of it: each breaks one rule of docs/loader.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from stackfix.diagnose.loader import Loading, Simulator
from stackfix.diagnose.loader_bind import Binder
from stackfix.diagnose.loader_process import Mapped, Process
from stackfix.diagnose.loader_search import Place, Search
from stackfix.diagnose.records import GLOBAL_SCOPE, OWN_SCOPE, FoundVia, OpenLibrary, ProcessState
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.records import NeededVersion, Offer, Symbols, UndefinedSymbol


class EveryReference(Binder):
    """Binds whatever a relocation names, its own symbols too: all that LD_DEBUG=bindings prints."""

    def references(self, symbols: Symbols) -> Iterable[UndefinedSymbol]:
        if isinstance(symbols, MappedSymbols):
            return symbols.referred()
        return super().references(symbols)


class Faithful(Simulator):
    """The simulator itself, with every reference bound."""

    searching: type[Search] = Search
    binding: type[Binder] = EveryReference
    loading: type[Loading] = Loading

    def make_search(self) -> Search:
        return self.searching(self.environment, self.files)

    def make_binder(self, process: Process) -> Binder:
        return self.binding(process, self.lists)

    def make_loading(self, state: ProcessState) -> Loading:
        return self.loading(self, state)


def mutant(part: type[Search | Binder | Loading]) -> type[Faithful]:
    """The simulator with one part replaced."""
    slot = "searching" if issubclass(part, Search) else "binding" if issubclass(part, Binder) else "loading"
    return type(part.__name__, (Faithful,), {slot: part, "__doc__": part.__doc__})


# --- rule 1: order ---


class RunpathFirst(Search):
    """DT_RUNPATH before LD_LIBRARY_PATH."""

    def places(self, name: str, requester: Mapped | None, process: Process) -> Iterator[Place]:
        order = ["RPATH", "RUNPATH", "LD_LIBRARY_PATH"]
        yield from sorted(super().places(name, requester, process),
                          key=lambda place: order.index(place.step) if place.step in order else len(order))


class VariableFirst(Search):
    """LD_LIBRARY_PATH before DT_RPATH."""

    def places(self, name: str, requester: Mapped | None, process: Process) -> Iterator[Place]:
        yield from sorted(super().places(name, requester, process), key=lambda place: place.step != "LD_LIBRARY_PATH")


class RunpathInherited(Search):
    """Dependencies inherit the DT_RUNPATH of their loaders."""

    def places(self, name: str, requester: Mapped | None, process: Process) -> Iterator[Place]:
        for place in super().places(name, requester, process):
            if place.step in {"ld.so.cache", "default folder"}:
                at = requester
                while at is not None and at.loader is not None:
                    at = process.objects[at.loader]
                    yield from self.runpath_places(at)
            yield place


class NoCache(Search):
    """ld.so.cache is not asked."""

    def places(self, name: str, requester: Mapped | None, process: Process) -> Iterator[Place]:
        return (place for place in super().places(name, requester, process) if place.step != "ld.so.cache")


class DefaultFoldersAlways(Search):
    """DF_1_NODEFLIB does not count."""

    def places(self, name: str, requester: Mapped | None, process: Process) -> Iterator[Place]:
        if requester is not None and "DF_1_NODEFLIB" in requester.elf.flags:
            elf = replace(requester.elf, flags=tuple(x for x in requester.elf.flags if x != "DF_1_NODEFLIB"))
            requester = replace(requester, elf=elf)
        return super().places(name, requester, process)


class DepthFirst(Loading):
    """DT_NEEDED is followed depth first."""

    def search_dependencies(self, head: Mapped, preloaded: Iterable[Mapped]) -> None:
        known: list[Mapped] = []

        def walk(object_: Mapped) -> None:
            known.append(object_)
            needed = []
            for name in object_.elf.needed:
                each = self.need(name, object_)
                if each is not None:
                    needed.append(each)
                    if each not in known:
                        walk(each)
            if object_.searchlist is None and object_.order is None and object_ is not head:
                object_.order = (object_.number, *(each.number for each in needed))

        walk(head)
        for each in preloaded:
            if each not in known:
                walk(each)
        head.searchlist = tuple(each.number for each in known)
        super().search_dependencies(head, preloaded)
        head.searchlist = tuple(each.number for each in known)


class FirstOnly(Loading):
    """An object that is mapped already does not end the search."""

    def already_loaded(self, name: str) -> tuple[Mapped, FoundVia] | None:
        found = super().already_loaded(name)
        return found if found and ("libq" not in name) else None


# --- rules 2 and 10: RPATH beside RUNPATH ---


class RpathEndsAtRunpath(Search):
    """A loader with DT_RUNPATH ends the walk towards the program."""

    def rpath_places(self, requester: Mapped | None, process: Process) -> Iterator[Place]:
        at = requester
        while at is not None and at.elf.runpath is None:
            if (folders := self.own_rpath(at)) is not None:
                yield Place(step="RPATH", folders=folders, owner=at.path)
            at = process.objects[at.loader] if at.loader is not None else None


class NoProgramRpath(Search):
    """The program's DT_RPATH does not count for what a dlopen brought."""

    def rpath_places(self, requester: Mapped | None, process: Process) -> Iterator[Place]:
        for place in super().rpath_places(requester, process):
            if process.program is None or place.owner != process.program.path or not (requester and requester.dlopened):
                yield place


class RpathBesideRunpath(Search):
    """DT_RPATH counts although DT_RUNPATH stands beside it."""

    def ignores_rpath(self, requester: Mapped) -> bool:
        return False

    def own_rpath(self, object_: Mapped) -> tuple[str, ...] | None:
        return self.folders(object_.elf.rpath, object_.origin, ":") if object_.elf.rpath else None


# --- rule 3: who calls ---


class ProgramCalls(Loading):
    """dlopen by name searches with the program's paths, whoever calls."""

    def caller(self, request: OpenLibrary) -> Mapped | None:
        return self.process.program


# --- rule 4: $ORIGIN ---


class OriginOfTarget(Search):
    """$ORIGIN is the folder of the file that a link leads to."""

    def runpath_places(self, requester: Mapped) -> Iterator[Place]:
        return super().runpath_places(replace(requester, origin=requester.real_path.rpartition("/")[0]))

    def own_rpath(self, object_: Mapped) -> tuple[str, ...] | None:
        return super().own_rpath(replace(object_, origin=object_.real_path.rpartition("/")[0]))


# --- rule 5: LD_LIBRARY_PATH ---


class ColonOnly(Search):
    """LD_LIBRARY_PATH is split at `:` only."""

    def folders(self, text: str | None, origin: str, separators: str) -> tuple[str, ...]:
        return super().folders(text, origin, ":")


class EmptyElementIgnored(Search):
    """An empty element means nothing."""

    def folders(self, text: str | None, origin: str, separators: str) -> tuple[str, ...]:
        return tuple(filter(None, super().folders(text, origin, separators)))


class NoHwcaps(Search):
    """No subfolders are tried."""

    def places(self, name: str, requester: Mapped | None, process: Process) -> Iterator[Place]:
        return (replace(place, search_hwcaps=False) for place in super().places(name, requester, process))


# --- rule 6: what an earlier library satisfies ---


class FileNameIsEnough(Loading):
    """A library satisfies later needs by its file's name, soname or not."""

    def already_loaded(self, name: str) -> tuple[Mapped, FoundVia] | None:
        for object_ in self.process.objects:
            if "/" not in name and object_.path.rpartition("/")[2] == name:
                return object_, FoundVia(step="loaded name")
        return super().already_loaded(name)


class SonameIgnored(Loading):
    """Only the name that a library was asked for satisfies later needs."""

    def already_loaded(self, name: str) -> tuple[Mapped, FoundVia] | None:
        found = super().already_loaded(name)
        return None if found and found[1].step == "loaded soname" and "libq" in name else found


# --- rule 7: now or later ---


class AlwaysNow(Loading):
    """A missing function stops the load under RTLD_LAZY too."""

    def binds_now(self, object_: Mapped, *, now: bool) -> bool:
        return True


class NeverNow(Loading):
    """A missing function never stops the load."""

    def binds_now(self, object_: Mapped, *, now: bool) -> bool:
        return False


# --- rule 8: versions ---


class VersionsMustMatch(EveryReference):
    """A library without versions satisfies no versioned reference."""

    def match(self, wanted: UndefinedSymbol, offers: Sequence[Offer], object_: Mapped) -> Offer | None:
        offers = [each for each in offers if each.version == wanted.version or wanted.version is None]
        return super().match(wanted, offers, object_) if offers else None


class VersionsIgnored(EveryReference):
    """The first symbol of the name will do."""

    def match(self, wanted: UndefinedSymbol, offers: Sequence[Offer], object_: Mapped) -> Offer | None:
        return offers[0]


class NodesUnchecked(Loading):
    """A missing version node is noticed at the symbol only."""

    def lacks_version(self, provider: Mapped, need: NeededVersion) -> bool:
        return False


# --- rule 9: scopes ---


class UniquePerScope(EveryReference):
    """A unique symbol is bound like any other."""

    def unique_provider(self, name: str, found: Mapped, *, used: bool) -> Mapped:
        return found


class DeepBindIgnored(Loading):
    """RTLD_DEEPBIND changes nothing."""

    def scope_for(self, object_: Mapped, *, deep_bind: bool) -> list[int]:
        return super().scope_for(object_, deep_bind=False)


class SymbolicIgnored(Loading):
    """DT_SYMBOLIC changes nothing."""

    def scope_for(self, object_: Mapped, *, deep_bind: bool) -> list[int]:
        return [place for place in super().scope_for(object_, deep_bind=deep_bind) if place != OWN_SCOPE]


class EverythingGlobal(Loading):
    """RTLD_LOCAL is RTLD_GLOBAL."""

    def open(self, request: OpenLibrary) -> None:
        super().open(replace(request, to_global=True))


class GlobalFlagCounts(Loading):
    """DF_1_GLOBAL makes a library global, as ld(1) promises and glibc does not."""

    def open(self, request: OpenLibrary) -> None:
        super().open(request)
        self.process.global_scope += [
            each.number for each in self.process.objects[self.process.start:]
            if "DF_1_GLOBAL" in each.elf.flags and each.number not in self.process.global_scope]


class WeakMustBeFound(EveryReference):
    """A weak symbol that nobody has is an error."""

    def references(self, symbols: Symbols) -> Iterable[UndefinedSymbol]:
        return [each._replace(weak=False) for each in super().references(symbols)]


class LocalFirst(Loading):
    """What came with a library is searched before the global scope."""

    def scope_for(self, object_: Mapped, *, deep_bind: bool) -> list[int]:
        scope = super().scope_for(object_, deep_bind=deep_bind)
        return sorted(scope, key=lambda place: place == GLOBAL_SCOPE)


MUTANTS: dict[int, tuple[type[Search | Binder | Loading], ...]] = {
    1: (RunpathFirst, VariableFirst, RunpathInherited, NoCache, DefaultFoldersAlways, DepthFirst, FirstOnly),
    2: (RpathEndsAtRunpath, NoProgramRpath),
    3: (ProgramCalls,),
    4: (OriginOfTarget,),
    5: (ColonOnly, EmptyElementIgnored, NoHwcaps),
    6: (FileNameIsEnough, SonameIgnored),
    7: (AlwaysNow, NeverNow),
    8: (VersionsMustMatch, VersionsIgnored, NodesUnchecked),
    9: (UniquePerScope, DeepBindIgnored, SymbolicIgnored, EverythingGlobal, GlobalFlagCounts, WeakMustBeFound,
        LocalFirst),
    10: (RpathBesideRunpath,),
}
