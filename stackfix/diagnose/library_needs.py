"""Which version of a library its consumer needs: by a pin, its symbols, a rule of the matrix, the toolkit of both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.faults_text import newest_suffix
from stackfix.diagnose.imports_projects import NAME, SEPARATORS
from stackfix.diagnose.library_symbols import demand_of_fault, since_text, specifier_of
from stackfix.diagnose.provenance import owner_of
from stackfix.diagnose.releases import CLAUSE, admits, admits_clause, release_of
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Owner
from stackfix.matrix.records import ToolkitComponent

SPECIFIER = re.compile(r"[A-Za-z0-9._-]+\s*(?:\[[^\]]*\])?\s*\(?\s*([^;)]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A range of versions, and what states it."""

    specifier: str                  # ">=12.1.55"
    why: str                        # "libcusparse.so.12 uses __nvJitLinkAddData_12_1, absent in 12.0.140"
    source: str                     # "a rule of the matrix", "the metadata of torch 2.2.0"
    too_new: bool                   # what is installed is above the range, not below


def consumers_of(view: View, fault: Fault) -> tuple[Owner, ...]:
    """Packages of those who need it, each once."""
    return tuple(dict.fromkeys(filter(None, (owner_of(view, each.path, each.real_path) for each in fault.requesters))))


def find_needs(view: View, fault: Fault, provider: Owner) -> Iterator[Need]:
    """Ranges that the provider's version is not in, the surest first. Symbols that are known make guesses needless."""
    consumers = consumers_of(view, fault)
    yield from outside(provider, (need for each in consumers for need in by_pins(view, each, provider)))
    shown = tuple(outside(provider, by_symbols(view, fault, provider)))
    yield from shown
    if shown:
        return
    for find in (by_rules, by_toolkit):
        yield from outside(provider, (need for each in consumers for need in find(view, each, provider)))
    yield from outside(provider, by_suffix(fault, provider))


def outside(provider: Owner, needs: Iterable[Need]) -> Iterator[Need]:
    """Those that the provider's version does not meet."""
    for need in needs:
        if not admits(need.specifier, provider.version):
            yield need


def by_symbols(view: View, fault: Fault, provider: Owner) -> Iterator[Need]:
    """The versions that export what is missing, as the almanac has read them."""
    found = demand_of_fault(view, fault, provider)
    if found is None or not specifier_of(found.bounds):
        return
    bounds = found.bounds
    need = need_of(specifier_of(bounds), provider, "", "the almanac of exported symbols")
    names = bounds.high if need.too_new else bounds.low
    known = next((each for name in fault.symbols if name in names
                  for each in view.books.nvidia.since(fault.name, name) if each.package == bounds.package), None)
    if known is not None:
        yield replace(need, why=f"{since_text(known)}; {provider.version} is installed")


def by_rules(view: View, consumer: Owner, provider: Owner) -> Iterator[Need]:
    """Needs that no metadata states, from matrices/rules.toml."""
    for rule in view.needs.rules:
        if rule.package == consumer.name and admits(rule.versions, consumer.version):
            name, specifier = parsed(rule.needs)
            if name == provider.name and specifier:
                yield need_of(specifier, provider, rule.why, "a rule of the matrix")


def by_pins(view: View, consumer: Owner, provider: Owner) -> Iterator[Need]:
    """Requirements of the consumer's own metadata; conda's packages state theirs elsewhere."""
    known = view.distributions.get(consumer.name)
    lines = [(line, specifier) for line in (known.requires if known else ()) for name, specifier in (parsed(line),)
             if name == provider.name and specifier]
    if any(admits(specifier, provider.version) for _, specifier in lines):
        return      # lines for several platforms or Pythons: one of them is met
    for line, specifier in lines:
        why = f"{consumer.name} {consumer.version} requires {line.partition(';')[0].strip()}"
        yield need_of(specifier, provider, why, f"the metadata of {consumer.name}")


def by_toolkit(view: View, consumer: Owner, provider: Owner) -> Iterator[Need]:
    """What belongs to the CUDA toolkit release that the consumer comes from."""
    for each in beside(view, consumer, provider):
        why = f"CUDA {each.toolkit}, which {consumer.name} {consumer.version} is part of, has {each.version}"
        too_new = (release_of(provider.version) or ()) > (release_of(each.version) or ())
        yield need_of(f"{'==' if too_new else '>='}{each.version}", provider, why, "the CUDA toolkit's release")


def beside(view: View, consumer: Owner, provider: Owner) -> Iterator[ToolkitComponent]:
    """Releases of the provider in the toolkits that the consumer's release is part of, the newest toolkit first."""
    wanted = release_of(consumer.version)
    releases = {each.toolkit for each in view.matrix.components
                if each.package == consumer.name and release_of(each.version) == wanted}
    found = [each for each in view.matrix.components if each.toolkit in releases and each.package == provider.name]
    yield from sorted(found, key=lambda each: release_of(each.toolkit) or (), reverse=True)


def by_suffix(fault: Fault, provider: Owner) -> Iterator[Need]:
    """The version that symbols end in, where the library counts its versions like CUDA: nvJitLink does."""
    wanted = newest_suffix(fault.symbols)
    release = release_of(provider.version)
    if wanted is None or release is None or release[0] != wanted[0]:
        return
    name = next(each for each in fault.symbols if each.endswith(f"_{wanted[0]}_{wanted[1]}"))
    least = f"{wanted[0]}.{wanted[1]}"
    yield need_of(f">={least}", provider, f"{name} came with {least}", "the symbol's name")


def need_of(specifier: str, provider: Owner, why: str, source: str) -> Need:
    return Need(specifier=specifier, why=why, source=source, too_new=is_above(provider.version, specifier))


def is_above(version: str, specifier: str) -> bool:
    """Whether a version breaks a range because it is too new."""
    release = release_of(version)
    for clause in specifier.split(","):
        match = CLAUSE.fullmatch(clause)
        limit = release_of(match[2].removesuffix(".*")) if match else None
        if match and limit and release and not admits_clause(clause, release):
            return match[1] in {"==", "<=", "<", "~="} and release[:len(limit)] >= limit
    return False


def parsed(line: str) -> tuple[str, str]:
    """(normalised name, specifier) of a requirement; of an extra's requirement nothing."""
    text, _, marker = line.partition(";")
    found, rest = NAME.match(text), SPECIFIER.match(text.strip())
    if found is None or rest is None or "extra" in marker:
        return "", ""
    specifier = rest[1].replace(" ", "")
    usable = "===" not in specifier and all(map(CLAUSE.fullmatch, specifier.split(",")))    # nor "@ https://…"
    return SEPARATORS.sub("-", found[1]).lower(), specifier if usable else ""


def askers(view: View, provider: Owner) -> Iterator[str]:
    """What installed packages require of one, each with its line."""
    for each in view.environment.distributions:
        for line in each.requires:
            name, specifier = parsed(line)
            if name == provider.name:
                yield f"{each.name} {each.version} requires {name}{specifier or ' in any version'}"
