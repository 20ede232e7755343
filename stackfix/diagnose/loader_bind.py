"""Which object provides a symbol: scopes, versions, weak and unique symbols. Rules by number: docs/loader.md.

Source: elf/dl-lookup.c of glibc 2.36 (check_match, do_lookup_x, do_lookup_unique), each rule tried on the real loader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stackfix.diagnose.loader_match import CRASH, OTHER_VERSION, Answer, Matcher, Special
from stackfix.diagnose.loader_process import Mapped, Process
from stackfix.diagnose.loader_scope import Hit, SearchLists, View, first_hits
from stackfix.diagnose.records import GLOBAL_SCOPE, OWN_SCOPE, Bound, MissingSymbol, Unjudged
from stackfix.inspect.records import BadElf, Offer, SymbolNames, Symbols, SymbolUse, UndefinedSymbol


class NoSymbols:
    """Stands for the symbols of an object that could not be read."""

    def __init__(self, error: BadElf) -> None:
        self.error = error

    def undefined(self) -> Sequence[UndefinedSymbol]:
        return ()

    def unique(self) -> Sequence[UndefinedSymbol]:
        return ()

    def offered(self, names: SymbolNames) -> Mapping[str, Sequence[Offer]]:
        raise self.error

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        return ()


class Binder(Matcher):
    """Binds the symbols of new objects of one process."""

    def __init__(self, process: Process, lists: SearchLists) -> None:
        """`lists`: what earlier requests have found out."""
        self.process, self.lists = process, lists
        self.bound: list[Bound] = []
        self.missing: list[MissingSymbol] = []
        self.deferred: list[MissingSymbol] = []
        self.unjudged: list[Unjudged] = []
        self._views: dict[tuple[int, ...], View] = {}
        self._wanted: dict[int, list[UndefinedSymbol]] = {}     # by the object's number

    def references(self, symbols: Symbols) -> Iterable[UndefinedSymbol]:
        """What an object asks for. Its own other symbols also go through the scope; who wins there is not asked."""
        yield from symbols.undefined()
        yield from symbols.unique()

    def symbols_of(self, object_: Mapped) -> Symbols:
        """Symbols of an object; none, and a note, where they cannot be read."""
        if object_.no_symbols is not None:
            return object_.no_symbols
        try:
            return self.process.files.symbols(object_.file)
        except BadElf as error:
            return self.give_up(object_, error)

    def give_up(self, object_: Mapped, error: BadElf) -> Symbols:
        """Leave an object's symbols out from here on."""
        object_.no_symbols = NoSymbols(error)
        self.unjudged.append(Unjudged(path=object_.path, reason=error.reason))
        return object_.no_symbols

    def prepare(self, objects: Iterable[Mapped]) -> None:
        """Read what these objects ask for; objects with one scope let it be searched once for all of them."""
        together: dict[tuple[int, ...], tuple[list[View], set[str]]] = {}
        for object_ in objects:
            try:
                wanted = list(self.references(self.symbols_of(object_)))
            except BadElf as error:
                self.give_up(object_, error)
                continue
            self._wanted[object_.number] = wanted
            views = self.scope_of(object_)
            _, names = together.setdefault(tuple(map(id, views)), (views, set()))
            names.update([symbol.name for symbol in wanted])
        for views, names in together.values():
            self.ask(names, views)

    def bind(self, object_: Mapped, *, now: bool) -> None:
        """Bind all that a prepared object asks for; what nobody provides goes to `missing` or `deferred`."""
        wanted = self._wanted.pop(object_.number, [])
        if object_.no_symbols is not None:
            return
        views = self.scope_of(object_)
        names = [symbol.name for symbol in wanted]
        # most symbols share their answer with a hundred others: same hit, same version
        keys = [(hit, version, file, weak, hidden) for hit, (_, version, file, weak, hidden)
                in zip(first_hits(names, views), wanted, strict=True)]
        answers = {key: self.answer(symbol, key[0], views)
                   for key, symbol in dict(zip(keys, wanted, strict=True)).items()}
        found = [answers[key] for key in keys]
        if any(isinstance(answer, Special) for answer in answers.values()):
            wanted, found = self.settle(object_, wanted, found, views, now=now)
        providers = tuple([answer for answer in found if not isinstance(answer, Special)])
        self.bound.append(Bound(object_.number, tuple(wanted), providers))

    def answer(self, wanted: UndefinedSymbol, hit: Hit | None, views: Sequence[View]) -> Answer:
        """Who provides symbols that are wanted like this one and have this hit."""
        if hit is None:
            return self.judge(wanted, None)
        object_ = next(view for view in views if view.list.key is hit.list_key).objects[hit.place]
        offer = self.match(wanted, hit.offers, object_)
        return self.judge(wanted, (object_, offer)) if offer is not None else OTHER_VERSION

    def settle(
        self, object_: Mapped, wanted: Sequence[UndefinedSymbol], answers: list[Answer], views: Sequence[View], *,
        now: bool,
    ) -> tuple[list[UndefinedSymbol], list[Answer]]:
        """The symbols that are bound, with the numbers of their providers; the others are reported."""
        lost, crashed, unique = list[UndefinedSymbol](), set[UndefinedSymbol](), dict[int, Mapped]()
        for place, symbol in enumerate(wanted):
            if answers[place] is OTHER_VERSION:
                answers[place] = self.judge(symbol, self.look_behind(symbol, views))
            answer = answers[place]
            if isinstance(answer, Special):
                if answer.provider is not None:
                    unique[place] = answer.provider
                    continue
                lost.append(symbol)
                if answer is CRASH:
                    crashed.add(symbol)
        self.bind_unique(object_, wanted, answers, unique, now=now)
        if lost:
            self.report(object_, lost, crashed, now=now)
        kept = [place for place, answer in enumerate(answers) if not isinstance(answer, Special)]
        return [wanted[place] for place in kept], [answers[place] for place in kept]

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
            if view.objects[place].no_symbols is None:
                self.give_up(view.objects[place], error)

    def bind_unique(
        self, object_: Mapped, wanted: Sequence[UndefinedSymbol], answers: list[Answer], unique: Mapping[int, Mapped],
        *, now: bool,
    ) -> None:
        """Let the process's one copy of each STB_GNU_UNIQUE symbol win, in the order in which they are bound."""
        at_once = self.bound_at_once(object_, wanted) if unique and not now else None
        for place, provider in unique.items():
            name = wanted[place].name
            used = at_once is None or name in at_once
            answers[place] = self.unique_provider(name, provider, used=used).number

    def report(
        self, object_: Mapped, lost: Sequence[UndefinedSymbol], crashed: set[UndefinedSymbol], *, now: bool,
    ) -> None:
        """Sort what was not found by the order of relocation; what only the PLT asks for can wait (rule 7)."""
        by_name = {(symbol.name, symbol.version, symbol.file): symbol for symbol in lost}
        try:
            uses = self.symbols_of(object_).uses({symbol.name for symbol in lost})
        except BadElf as error:
            self.give_up(object_, error)
            return
        at_once = {(name, version, file) for name, version, file, lazy in uses if now or not lazy}
        seen: set[tuple[str, str | None, str | None]] = set()
        for name, version, file, lazy in uses:
            key = name, version, file
            waits = lazy and key not in at_once
            if key in seen or key not in by_name or (lazy and not now and not waits):
                continue
            seen.add(key)
            miss = MissingSymbol(name=name, version=version, file=file, requester=object_.path, deferred=waits,
                                 crash=by_name[key] in crashed)
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

    def look_behind(self, wanted: UndefinedSymbol, views: Sequence[View]) -> tuple[Mapped, Offer] | None:
        """The first definition in scope that will do, object by object: who has the name first has another version."""
        names = SymbolNames([wanted.name])
        for view in views:
            for place, object_ in enumerate(view.objects):
                offers = view.list.offered(place, object_, names, self.symbols_of).get(wanted.name)
                offer = self.match(wanted, offers, object_) if offers else None
                if offer is not None:
                    return object_, offer
            self.note_faults(view)
        return None

    def bound_at_once(self, object_: Mapped, wanted: Sequence[UndefinedSymbol]) -> frozenset[str]:
        """Names that lazy binding does not put off."""
        try:
            uses = self.symbols_of(object_).uses({symbol.name for symbol in wanted})
        except BadElf:
            return frozenset()
        return frozenset(name for name, _, _, lazy in uses if not lazy)

    def unique_provider(self, name: str, found: Mapped, *, used: bool) -> Mapped:
        """The process's one copy of a STB_GNU_UNIQUE symbol: the first that was bound, whatever the scope (rule 9)."""
        process = self.process
        number = process.unique_before.get(name, process.unique_new.get(name))
        if number is not None:
            return process.objects[number]
        if used:
            process.unique_new[name] = found.number
        return found
