"""Which object provides a symbol: scopes, versions, weak and unique symbols. Rules by number: docs/loader.md.

Source: elf/dl-lookup.c of glibc 2.36 (check_match, do_lookup_x, do_lookup_unique), each rule tried on the real loader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stackfix.diagnose.loader_process import Mapped, Process
from stackfix.diagnose.loader_scope import Provided, SearchLists, View
from stackfix.diagnose.records import GLOBAL_SCOPE, OWN_SCOPE, Bound, MissingSymbol, Unjudged
from stackfix.inspect.records import BadElf, Offer, SymbolNames, Symbols, SymbolUse, UndefinedSymbol

FIRST_DEFINED = 3       # DT_VERSYM: 0 local, 1 unversioned, 2 the oldest version, which unversioned references take


class NoSymbols:
    """Stands for the symbols of an object that could not be read."""

    def undefined(self) -> Sequence[UndefinedSymbol]:
        return ()

    def unique(self) -> Sequence[UndefinedSymbol]:
        return ()

    def offered(self, names: SymbolNames) -> Mapping[str, Sequence[Offer]]:
        return {}

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        return ()


class Binder:
    """Binds the symbols of new objects of one process."""

    def __init__(self, process: Process, lists: SearchLists) -> None:
        """`lists`: what earlier requests have found out."""
        self.process, self.lists = process, lists
        self.bound: list[Bound] = []
        self.missing: list[MissingSymbol] = []
        self.deferred: list[MissingSymbol] = []
        self.unjudged: list[Unjudged] = []
        self._views: dict[tuple[int, ...], View] = {}

    def references(self, symbols: Symbols) -> Iterable[UndefinedSymbol]:
        """What an object asks for. Its own other symbols also go through the scope; who wins there is not asked."""
        yield from symbols.undefined()
        yield from symbols.unique()

    def symbols_of(self, object_: Mapped) -> Symbols:
        """Symbols of an object; none, and a note, where they cannot be read."""
        if object_.symbols is None:
            try:
                object_.symbols = self.process.files.symbols(object_.file)
            except BadElf as error:
                self.give_up(object_, error)
        return object_.symbols or NoSymbols()

    def give_up(self, object_: Mapped, error: BadElf) -> None:
        """Leave an object's symbols out from here on."""
        object_.symbols = NoSymbols()
        self.unjudged.append(Unjudged(path=object_.path, reason=error.reason))

    def bind(self, object_: Mapped, *, now: bool) -> None:
        """Bind all that `object_` asks for; what nobody provides goes to `missing` or `deferred`."""
        try:
            wanted = list(self.references(self.symbols_of(object_)))
        except BadElf as error:
            self.give_up(object_, error)
            return
        views = self.scope_of(object_)
        self.ask({symbol.name for symbol in wanted}, views)
        providers: list[int | None] = []
        bound, lost, crashed, unique = list[UndefinedSymbol](), list[UndefinedSymbol](), set[UndefinedSymbol](), {}
        for symbol in wanted:
            found = self.look_up(symbol, views)
            if found is None:
                if not symbol.weak:
                    lost.append(symbol)
                    continue
                providers.append(None)      # may stay null (rule 9)
            else:
                provider, offer = found
                if symbol.version is not None and self.asserts_versions(symbol, provider):
                    lost.append(symbol)
                    crashed.add(symbol)
                    continue
                if offer.binding == "unique":
                    unique[len(providers)] = provider
                providers.append(provider.number)
            bound.append(symbol)
        if unique:
            self.bind_unique(object_, bound, providers, unique, now=now)
        self.bound.append(Bound(object_.number, tuple(bound), tuple(providers)))
        if lost:
            self.report(object_, lost, crashed, now=now)

    def ask(self, names: set[str], views: Sequence[View]) -> None:
        """Let each search list in scope look for the names that those before it do not have."""
        for view in views:
            view.list.ask(names, view.objects, self.symbols_of)
            self.note_faults(view)
            names = names.difference(view.list.first)
            if not names:
                return

    def note_faults(self, view: View) -> None:
        """Leave out what a search has shown to be unreadable."""
        for place, error in view.list.faults.items():
            if not isinstance(view.objects[place].symbols, NoSymbols):
                self.give_up(view.objects[place], error)

    def bind_unique(
        self, object_: Mapped, bound: Sequence[UndefinedSymbol], providers: list[int | None],
        unique: Mapping[int, Mapped], *, now: bool,
    ) -> None:
        """Let the process's one copy of each STB_GNU_UNIQUE symbol win, in the order in which they are bound."""
        at_once = None if now else self.bound_at_once(object_, bound)
        for place, provider in unique.items():
            name = bound[place].name
            used = at_once is None or name in at_once
            providers[place] = self.unique_provider(name, provider, used=used).number

    def report(
        self, object_: Mapped, lost: Sequence[UndefinedSymbol], crashed: set[UndefinedSymbol], *, now: bool,
    ) -> None:
        """Sort what was not found by the order of relocation; what only the PLT asks for can wait (rule 7)."""
        by_name = {(symbol.name, symbol.version): symbol for symbol in lost}
        try:
            uses = self.symbols_of(object_).uses({symbol.name for symbol in lost})
        except BadElf as error:
            self.give_up(object_, error)
            return
        at_once = {(name, version) for name, version, lazy in uses if now or not lazy}
        seen: set[tuple[str, str | None]] = set()
        for name, version, lazy in uses:
            key = name, version
            waits = lazy and key not in at_once
            if key in seen or key not in by_name or (lazy and not now and not waits):
                continue
            seen.add(key)
            miss = MissingSymbol(name=name, version=version, file=by_name[key].file, requester=object_.path,
                                 deferred=waits, crash=by_name[key] in crashed)
            (self.deferred if waits else self.missing).append(miss)

    def scope_of(self, object_: Mapped) -> list[View]:
        """Search lists to look through, in order (rule 9). An object that is in two of them is found in the first."""
        objects, found = self.process.objects, list[View]()
        for place in object_.scope:
            if place == OWN_SCOPE:
                numbers: tuple[int, ...] = (object_.number,)
            else:
                numbers = tuple(self.process.global_scope) if place == GLOBAL_SCOPE else objects[place].searchlist or ()
            view = self._views.get(numbers)
            if view is None:
                listed = [objects[number] for number in numbers]
                view = self._views[numbers] = View(listed, self.lists.of(listed))
            found.append(view)
        return found

    def look_up(self, wanted: UndefinedSymbol, views: Sequence[View]) -> Provided:
        """The first definition in scope that will do. The lists were asked for its name before."""
        name, version, _, _, hidden = wanted
        for number, view in enumerate(views):
            hit = view.list.first.get(name)
            if hit is not None:
                key = hit, version, hidden
                if key not in view.provided:
                    object_ = view.objects[hit.place]
                    offer = self.match(wanted, hit.offers, object_)
                    view.provided[key] = (object_, offer) if offer is not None else None
                return view.provided[key] or self.look_behind(wanted, views[number:], hit.place)
        return None

    def look_behind(self, wanted: UndefinedSymbol, views: Sequence[View], place: int) -> Provided:
        """The search behind an object that has the name in other versions only, object by object."""
        names, start = SymbolNames([wanted.name]), place + 1
        for view in views:
            for at in range(start, len(view.objects)):
                offers = view.list.offered(at, view.objects[at], names, self.symbols_of).get(wanted.name)
                offer = self.match(wanted, offers, view.objects[at]) if offers else None
                if offer is not None:
                    return view.objects[at], offer
            start = 0
            self.note_faults(view)
        return None

    def match(self, wanted: UndefinedSymbol, offers: Sequence[Offer], object_: Mapped) -> Offer | None:
        """Which of an object's definitions of one name will do (rule 8)."""
        if wanted.version is None:
            return self.match_unversioned(offers, object_)
        if not object_.elf.versioned_symbols:
            return offers[0]
        for offer in offers:
            if offer.version == wanted.version or not (wanted.hidden or offer.version is not None or offer.hidden):
                return offer
        return None

    def match_unversioned(self, offers: Sequence[Offer], object_: Mapped) -> Offer | None:
        """The base or oldest version, else the only default one of the newer."""
        newer = []
        for offer in offers:
            if offer.version_index < FIRST_DEFINED or not object_.elf.versioned_symbols:
                return offer
            if not offer.hidden:
                newer.append(offer)
        return newer[0] if len(newer) == 1 else None

    def asserts_versions(self, wanted: UndefinedSymbol, object_: Mapped) -> bool:
        """Whether glibc's check_match stops with "Inconsistency detected by ld.so".

        It does where the very library that a version was linked from has no DT_VERSYM at all. A library that merely
        takes its place under another name is accepted.
        """
        return (not object_.elf.versioned_symbols and wanted.file is not None and object_.answers_to(wanted.file))

    def bound_at_once(self, object_: Mapped, wanted: Sequence[UndefinedSymbol]) -> frozenset[str]:
        """Names that lazy binding does not put off."""
        try:
            uses = self.symbols_of(object_).uses({symbol.name for symbol in wanted})
        except BadElf:
            return frozenset()
        return frozenset(name for name, _, lazy in uses if not lazy)

    def unique_provider(self, name: str, found: Mapped, *, used: bool) -> Mapped:
        """The process's one copy of a STB_GNU_UNIQUE symbol: the first that was bound, whatever the scope (rule 9)."""
        process = self.process
        number = process.unique_before.get(name, process.unique_new.get(name))
        if number is not None:
            return process.objects[number]
        if used:
            process.unique_new[name] = found.number
        return found
