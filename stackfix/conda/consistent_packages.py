"""The rules about other packages: flash-attn, what the matrix knows of them, what was asked for, what comes twice."""

from __future__ import annotations

from collections.abc import Iterator

from stackfix.conda.pair import Pair
from stackfix.conda.records import Departure
from stackfix.conda.rules import broken_rules
from stackfix.conda.sides import Side
from stackfix.resolve.flash_assets import cuda_tag_if_fits, name_words
from stackfix.resolve.pep508 import parse_version
from stackfix.resolve.records import LockedPackage


def flash_attn(pair: Pair) -> Iterator[Departure]:
    """The same release on both sides, and a wheel for the torch that it stands beside."""
    pip, conda = pair.pip, pair.conda
    if pip is not None and differ(pip.flash_attn, conda.flash_attn):
        reason = "one side has none" if None in {pip.flash_attn, conda.flash_attn} else "the releases differ"
        yield pair.breaks("flash-attn", pip.flash_attn, conda.flash_attn, reason)
    wheel, build = conda.packages.get("flash-attn"), pair.conda_build
    if wheel is None or build is None or not wheel.files or not wheel.files[0].is_wheel:
        return
    name = wheel.files[0].filename
    if wheel.direct and cuda_tag_if_fits(name, wheel.version, build) is None:
        abi = "new" if build.cxx11_abi else "old"
        reason = f"{name} is for {name_words(name)}, and torch {build.version} for CUDA {build.cuda} has the {abi} one"
        yield pair.breaks("flash-attn", None, wheel.version, reason, name)


def rules(pair: Pair) -> Iterator[Departure]:
    """What the matrix knows and no metadata states. nvJitLink has a rule of its own, as symbols tell more exactly."""
    versions = {**pair.conda.versions, **({"torch": pair.conda.torch} if pair.conda.torch is not None else {})}
    for rule in broken_rules(versions, pair.matrix):
        if rule.needs.startswith("nvidia-nvjitlink"):
            continue
        pip = pair.pip.versions.get(rule.package) if pair.pip is not None else None
        reason = f"needs {rule.needs}: {rule.why}"
        yield pair.breaks(rule.package, pip, versions[rule.package], reason, rule.source)


def others(pair: Pair) -> Iterator[Departure]:
    """What nobody named and both sides have, at two releases."""
    if pair.pip is None:
        return
    told = {"torch", "flash-attn", *(name for name, package in pair.pip.packages.items() if _askers(pair.pip, package))}
    for name, version in sorted(pair.pip.versions.items()):
        found = pair.conda.versions.get(name)
        if found is None or name in told or name.startswith("nvidia-") or not differ(version, found):
            continue
        if name in pair.conda.packages:
            yield pair.told(name, version, found, _of_pip(pair, name), "the pip entries of both")
        else:
            reason, source = pair.why_not(name, version)
            yield pair.told(name, version, found, reason, source)


def _of_pip(pair: Pair, name: str) -> str:
    """Why pip took another release beside the channels' packages: what it needs of them that is of another release."""
    here = pair.pip.versions if pair.pip is not None else {}
    needs = pair.conda.packages[name].requires
    other = [f"{one} {pair.conda.versions[one]}, not {here[one]}" for one in sorted(needs)
             if one in pair.conda.records and one in here and differ(here[one], pair.conda.versions[one])]
    beside = f"; of what it needs the channels bring {' and '.join(other)}" if other else ""
    return f"pip took it beside the channels' packages{beside}"


def _askers(side: Side, package: LockedPackage) -> list[str]:
    """Who named it in the request."""
    return [place for place in package.requested_by if place not in side.packages and place != "stackfix"]


def requested(pair: Pair) -> Iterator[Departure]:
    """What the user named: on both sides, and at which releases."""
    if pair.pip is None:
        return
    for name, package in sorted(pair.pip.packages.items()):
        asked = _askers(pair.pip, package)
        if not asked or name in {"torch", "flash-attn"}:
            continue
        found, version = pair.conda.versions.get(name), pair.pip.versions[name]
        if found is None:
            yield pair.breaks(name, version, None, f"asked for by {', '.join(asked)}, and no package brings it")
        elif differ(version, found) and name in pair.conda.packages:
            yield pair.breaks(name, version, found, "pip brings it on both sides, at two releases")
        elif differ(version, found):
            reason, source = pair.why_not(name, version)
            yield pair.told(name, version, found, reason, source)


def twice(pair: Pair) -> Iterator[Departure]:
    """What a channel and pip both bring."""
    for name in sorted(pair.conda.packages.keys() & pair.conda.records.keys()):
        record = pair.conda.records[name]
        reason = f"{record.file_name} of the channels brings it as well: pip would overwrite its files"
        yield pair.breaks(name, pair.conda.packages[name].version, record.version, reason, record.file_name)


def differ(one: str | None, other: str | None) -> bool:
    """Whether two releases are not the same; one that is absent differs from any."""
    if one is None or other is None:
        return one is not other
    return (parse_version(one) or one) != (parse_version(other) or other)
