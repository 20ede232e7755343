"""The release of a library to install: one that has all that every file of the environment asks of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stackfix.diagnose.faults_records import Fault
from stackfix.diagnose.installed_torch import installed_torch, platform_of
from stackfix.diagnose.library_needs import Need, beside, consumers_of, parsed
from stackfix.diagnose.library_symbols import Demand, demand_of_all, demand_of_fault, specifier_of
from stackfix.diagnose.releases import admits, release_of
from stackfix.diagnose.situation import View
from stackfix.inspect.environment_records import Owner

EXACT, OF_CUDA = re.compile(r"==(\d+(?:\.\d+)*)"), re.compile(r"-cu\d\d$")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGood:
    """One release that fits, and how that is known."""

    version: str                    # "12.1.105"
    why: str                        # "CUDA 12.1.1 has it beside nvidia-cusparse-cu12 12.1.0.106"


def known_good(view: View, fault: Fault, provider: Owner, need: Need) -> KnownGood | None:
    """The release to install: what an installed package pins, what goes with torch, else by symbols or toolkit."""
    everyone = demand_of_all(view, fault, provider)
    if everyone is not None and not everyone.bounds.versions:       # then at least who fails now
        everyone = demand_of_fault(view, fault, provider)
    for each in view.distributions.values():
        for line in each.requires:
            name, specifier = parsed(line)
            pin = EXACT.fullmatch(specifier)
            if name == provider.name and pin and admits(need.specifier, pin[1]) and suffices(view, everyone, pin[1]):
                return KnownGood(version=pin[1], why=f"{each.name} {each.version} pins it")
    ours = of_torch(view, provider)
    if ours is not None and admits(need.specifier, ours.version) and suffices(view, everyone, ours.version) and all(
            admits(each, ours.version) for each in ranges(view, provider)):
        return ours
    if everyone is not None and everyone.bounds.versions:
        return by_demand(view, everyone, provider, need)
    for consumer in consumers_of(view, fault):
        for one in beside(view, consumer, provider):
            if EXACT.fullmatch(f"=={one.version}") and admits(need.specifier, one.version):
                return KnownGood(version=one.version,
                                 why=f"CUDA {one.toolkit} has it beside {consumer.name} {consumer.version}")
    return None


def of_torch(view: View, provider: Owner) -> KnownGood | None:
    """The release that goes with the build of torch which is there: `stackfix lock` chooses it, where it can."""
    from stackfix.matrix.query import preferred_versions

    torch = installed_torch(view)
    build = next((each for each in view.matrix.torch if torch is not None and (
        each.version, each.cuda, each.platform) == (torch.release, torch.cuda, platform_of(view))), None)
    if build is None or torch is None:
        return None
    version = preferred_versions(view.matrix, build).get(provider.name)
    return KnownGood(version=version, why=f"it goes with {torch.title}") if version is not None else None


def suffices(view: View, everyone: Demand | None, version: str) -> bool:
    """Whether a version has all that is asked for; one that was not read, where it lies between those that have it."""
    if everyone is None:
        return True
    release, bounds = release_of(version), everyone.bounds
    if any(release_of(each) == release for each in view.books.nvidia.versions(bounds.package)):
        return any(release_of(each) == release for each in bounds.versions)
    return bool(bounds.versions) and admits(specifier_of(bounds) or ">=0", version)


def by_demand(view: View, everyone: Demand, provider: Owner, need: Need) -> KnownGood | None:
    """The version next to the installed one that has all that is asked for, and that rules and requirements admit."""
    fitting = [each for each in everyone.bounds.versions if admits(need.specifier, each)]
    known = ranges(view, provider)
    best = [each for each in fitting if all(admits(one, each) for one in known)] or fitting
    if not best:
        return None
    who = [each for each, names in everyone.by.items() if names]
    askers = who[0] if len(who) == 1 else f"{who[0]} and {len(who) - 1} more"
    which = "newest" if need.too_new else "oldest"
    return KnownGood(version=best[-1 if need.too_new else 0],
                     why=f"the {which} read version that has all that is asked of it, by {askers}")


def ranges(view: View, provider: Owner) -> list[str]:
    """All that are stated of the provider."""
    return [*(each for _, each in ranges_of(view, provider)), *rules_of(view, provider)]


def ranges_of(view: View, provider: Owner) -> Iterator[tuple[str, str]]:
    """(requirement, range) of installed packages on the provider that the installed version meets."""
    for each in view.distributions.values():
        for line in each.requires:
            name, specifier = parsed(line)
            if name == provider.name and specifier and admits(specifier, provider.version):
                yield line, specifier


def rules_of(view: View, provider: Owner) -> Iterator[str]:
    """Ranges of the provider that rules of the matrix state for what is installed."""
    for rule in view.needs.rules:
        installed = view.distributions.get(rule.package)
        if installed is not None and admits(rule.versions, installed.version):
            name, specifier = parsed(rule.needs)
            if name == provider.name and specifier:
                yield specifier


def bounded(provider: Owner, specifier: str) -> str:
    """A range that stays within the major which is installed: where only the least is known, and the name is of any."""
    release = release_of(provider.version)
    if release is None or not re.fullmatch(r">=?[\d.]+", specifier) or OF_CUDA.search(provider.name):
        return specifier
    least = release_of(specifier.lstrip(">=")) or release
    return f"{specifier},<{max(least[0], release[0]) + 1}"
