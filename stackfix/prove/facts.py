"""From simulated openings to what a proof says of each import: what is mapped, found where, bound to whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from stackfix.diagnose.records import LoadedObject
from stackfix.diagnose.situation import Opening, View
from stackfix.prove.proof_records import LOADS, BoundTo, ProvenFile, ProvenImport, Resolved


@dataclass(slots=True)
class Gathered:
    """What the openings of one import tell, each once."""

    maps: dict[str, None] = field(default_factory=dict)
    resolved: dict[Resolved, None] = field(default_factory=dict)
    bound: dict[tuple[str, str], dict[tuple[str, str | None], None]] = field(default_factory=dict)


def facts_of(view: View, short: Short) -> tuple[ProvenImport, ...]:
    """One for each project and phase that opens anything, in the order of the imports."""
    found: dict[tuple[str, str], Gathered] = defaultdict(Gathered)
    names = {each.project: each.module for each in view.libraries.imports}
    for opening in view.openings:
        if opening.project is not None:
            gather(found[opening.project, opening.phase], opening, short)
    made = []
    for (project, phase), each in found.items():
        name = names.get(project, project)
        made.append(ProvenImport(
            project=project, imports=f"{name}.*" if phase == "module" else name, phase=phase, verdict=LOADS,
            maps=tuple(each.maps), resolved=tuple(sorted(each.resolved)), bound=tuple(sorted(bindings(each)))))
    return tuple(made)


def files_of(view: View, short: Short) -> Iterator[ProvenFile]:
    """Every file of a wheel that some import maps, by path."""
    found = {each.identity: each for opening in view.openings for number in opening.outcome.loaded
             if view.is_own((each := opening.outcome.attempted.objects[number]).real_path)}
    for each in sorted(found.values(), key=short):
        yield ProvenFile(path=short(each), size=each.elf.size, build_id=each.elf.build_id)


def answers(imports: Iterable[ProvenImport]) -> Mapping[tuple[str, str, str, str], set[str]]:
    """The files by (project, phase, requester, name): one name may lead elsewhere in another of a project's modules."""
    found: dict[tuple[str, str, str, str], set[str]] = {}
    for one in imports:
        for each in one.resolved:
            found.setdefault((one.project, one.phase, each.requester, each.name), set()).add(each.winner)
    return found


class Short:
    """Names files as a proof does. `system`: sonames of libraries that are told by their name, wherever they lie."""

    def __init__(self, view: View, system: Collection[str]) -> None:
        self.view, self.system = view, system
        self.sites = sorted((each.path for each in view.environment.sites), key=len, reverse=True)
        self.prefix = view.environment.prefix
        self._names: dict[str, str] = {}        # by identity, as the next
        self._owners: dict[str, str] = {}

    def __call__(self, object_: LoadedObject) -> str:
        known = self._names.get(object_.identity)
        if known is None:
            known = self._names[object_.identity] = self._name(object_)
        return known

    def _name(self, object_: LoadedObject) -> str:
        if object_.program:
            return "python"
        path, soname = self.path(object_.real_path), object_.elf.soname
        return soname if soname is not None and path.startswith("/") and soname in self.system else path

    def owner(self, object_: LoadedObject) -> str:
        """Whose a file is: inside of one package the almanac does not tell who binds to whom."""
        known = self._owners.get(object_.identity)
        if known is None:
            owners = self.view.owners(object_.path, object_.real_path)
            known = self._owners[object_.identity] = owners[0].name if owners else object_.identity
        return known

    def path(self, path: str) -> str:
        """Below the site folder; else below the prefix, marked so; else the name of a library of the system."""
        for site in self.sites:
            if path.startswith(f"{site}/"):
                return path[len(site) + 1:]
        if path.startswith(f"{self.prefix}/"):
            return f"../{path[len(self.prefix) + 1:]}"
        return path


def gather(into: Gathered, opening: Opening, short: Short) -> None:
    """What one opening adds."""
    outcome, objects = opening.outcome, opening.outcome.attempted.objects
    for number in outcome.loaded:
        into.maps.setdefault(short(objects[number]))
    caller = caller_of(opening)
    for edge in outcome.edges:
        asking = objects[edge.requester] if edge.requester is not None else caller
        requester = short(asking) if asking is not None else ""
        name = short.path(edge.name) if edge.name.startswith("/") else edge.name
        into.resolved.setdefault(Resolved(requester=requester, name=name, winner=short(objects[edge.provider]),
                                          how=edge.found_via.step))
    for number, symbols, providers in outcome.bound:
        asks, own = short(objects[number]), short.owner(objects[number])
        foreign = {each: short(objects[each]) for each in set(providers)
                   if each is not None and short.owner(objects[each]) != own}
        for symbol, provider in zip(symbols, providers, strict=True) if foreign else ():
            if provider in foreign:
                pair = asks, foreign[provider]
                into.bound.setdefault(pair, {}).setdefault((symbol.name, symbol.version))


def caller_of(opening: Opening) -> LoadedObject | None:
    """The library that opens another by name; None: Python opens it."""
    caller = opening.request.caller
    return None if caller is None else opening.outcome.attempted.by_identity(caller)


def bindings(gathered: Gathered) -> Iterator[BoundTo]:
    """Counts for each pair of files."""
    for (requester, provider), symbols in gathered.bound.items():
        versions = sorted({version for _, version in symbols if version is not None})
        yield BoundTo(requester=requester, provider=provider, count=len(symbols), versions=tuple(versions))
