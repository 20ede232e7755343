"""Which object provides a symbol: scopes, versions, weak and unique symbols. Rules by number: docs/loader.md.

Source: elf/dl-lookup.c of glibc 2.36 (check_match, do_lookup_x, do_lookup_unique), each rule tried on the real loader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from stackfix.diagnose.loader_process import Mapped, Process
from stackfix.diagnose.records import GLOBAL_SCOPE, OWN_SCOPE, Binding, MissingSymbol, Unjudged
from stackfix.inspect.records import BadElf, DefinedSymbol, Symbols, SymbolUse, UndefinedSymbol, gnu_hash

FIRST_DEFINED = 3       # DT_VERSYM: 0 local, 1 unversioned, 2 the oldest version, which unversioned references take


class Found(NamedTuple):
    """A definition, or the loader's own assertion that stops it there."""

    provider: Mapped
    unique: bool
    crash: bool = False


Probe: TypeAlias = tuple[Mapped, Callable[[str, int], Sequence[DefinedSymbol]]]     # and its Symbols.named


class NoSymbols:
    """Stands for the symbols of an object that could not be read."""

    def undefined(self) -> Sequence[UndefinedSymbol]:
        return ()

    def unique(self) -> Sequence[UndefinedSymbol]:
        return ()

    def named(self, name: str, gnu_hash: int) -> Sequence[DefinedSymbol]:
        return ()

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        return ()


class Binder:
    """Binds the symbols of new objects of one process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.bindings: list[Binding] = []
        self.missing: list[MissingSymbol] = []
        self.deferred: list[MissingSymbol] = []
        self.unjudged: list[Unjudged] = []
        self._scopes: dict[tuple[int, ...], list[Probe]] = {}
        self._known: dict[tuple[int, ...], dict[tuple[str, str | None, str | None, bool], Found | None]] = {}

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
        key_of_scope, scope = self.scope_of(object_)
        known = self._known.setdefault(key_of_scope, {})
        lost: list[UndefinedSymbol] = []
        crashed: set[UndefinedSymbol] = set()
        at_once: frozenset[str] | None = None
        for symbol in wanted:
            key = symbol.name, symbol.version, symbol.file, symbol.hidden
            if key in known:
                found = known[key]
            else:
                found = known[key] = self.look_up(symbol, scope)
            if found is None or found.crash:
                if found is not None:
                    crashed.add(symbol)
                elif symbol.weak:       # may stay null (rule 9)
                    self.bindings.append(Binding(object_.number, symbol.name, symbol.version, None))
                    continue
                lost.append(symbol)
                continue
            provider = found.provider
            if found.unique:
                if not now:
                    at_once = at_once if at_once is not None else self.bound_at_once(object_, wanted)
                used = now or (at_once is not None and symbol.name in at_once)
                provider = self.unique_provider(symbol.name, provider, used=used)
            self.bindings.append(Binding(object_.number, symbol.name, symbol.version, provider.number))
        if lost:
            self.report(object_, lost, crashed, now=now)

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

    def scope_of(self, object_: Mapped) -> tuple[tuple[int, ...], list[Probe]]:
        """Objects to look through, in order, each once: its search lists one after the other (rule 9).

        With the key under which the scope's results are kept.
        """
        objects, numbers = self.process.objects, list[int]()
        for place in object_.scope:
            if place == OWN_SCOPE:
                numbers.append(object_.number)
            elif place == GLOBAL_SCOPE:
                numbers.extend(self.process.global_scope)
            else:
                numbers.extend(objects[place].searchlist or ())
        key = tuple(dict.fromkeys(numbers))
        if key not in self._scopes:
            self._scopes[key] = [(objects[number], self.symbols_of(objects[number]).named) for number in key]
        return key, self._scopes[key]

    def look_up(self, wanted: UndefinedSymbol, scope: list[Probe]) -> Found | None:
        """The first definition in scope that will do."""
        name, hashed = wanted.name, gnu_hash(wanted.name)
        for place, (object_, named) in enumerate(scope):
            try:
                offered = named(name, hashed)
            except BadElf as error:
                self.give_up(object_, error)
                scope[place] = object_, NoSymbols().named
                continue
            if offered:
                found = self.match(wanted, offered, object_)
                if found is not None:
                    return found
        return None

    def match(self, wanted: UndefinedSymbol, offered: Sequence[DefinedSymbol], object_: Mapped) -> Found | None:
        """Which of an object's definitions of one name will do (rule 8)."""
        versions = object_.elf.versioned_symbols
        if wanted.version is None:
            return self.match_unversioned(offered, object_)
        for symbol in offered:
            if not versions:
                if self.asserts_versions(wanted, object_):
                    return Found(object_, unique=False, crash=True)
                return Found(object_, symbol.binding == "unique")
            if symbol.version == wanted.version or not (wanted.hidden or symbol.version is not None or symbol.hidden):
                return Found(object_, symbol.binding == "unique")
        return None

    def match_unversioned(self, offered: Sequence[DefinedSymbol], object_: Mapped) -> Found | None:
        """The base or oldest version, else the only default one of the newer."""
        newer = []
        for symbol in offered:
            if not object_.elf.versioned_symbols or symbol.version_index < FIRST_DEFINED:
                return Found(object_, symbol.binding == "unique")
            if not symbol.hidden:
                newer.append(symbol)
        return Found(object_, newer[0].binding == "unique") if len(newer) == 1 else None

    def asserts_versions(self, wanted: UndefinedSymbol, object_: Mapped) -> bool:
        """Whether glibc's check_match stops with "Inconsistency detected by ld.so".

        It does where the very library that a version was linked from has no DT_VERSYM at all. A library that merely
        takes its place under another name is accepted.
        """
        return wanted.file is not None and object_.answers_to(wanted.file)

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
