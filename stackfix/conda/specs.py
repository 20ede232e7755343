"""PEP 508 requirements as MatchSpecs.

Both order versions alike, with four true differences, which docs/consistency.md lists: `==1.0` and `>=1.0` do not match
`1.0+cu121`, where PEP 440 passes over a local version that is not asked for; `1.0.dev1` comes after 1.0rc1; before a
pre- or post-release zeros count; and there is no `===`. Where a specifier names no pre-release, pip takes one
only for want of anything else; conda makes no difference between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from packaging.requirements import Requirement as Parsed
from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from stackfix.conda.names import Package
from stackfix.conda.records import Spec
from stackfix.resolve.pep508 import normalise, parse_requirement, parse_version
from stackfix.resolve.records import Requirement
from stackfix.resolve.target import TargetView

# Lower bounds before upper ones, exclusions last: the clauses of a set come in no order.
_ORDER = ("==", "===", "~=", ">=", ">", "<=", "<", "!=")

PackageOf = Callable[[str], Package | None]             # of a project; None where the channels have none
LinesOfExtra = Callable[[str, str], tuple[str, ...] | None]     # (project, extra): Requires-Dist; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """What one requirement asks of the channels."""

    project: str
    package: Package
    spec: Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Untranslated:
    """A requirement that channels cannot be asked for."""

    project: str
    origin: str
    reason: str


def spec_of(package: str, specifier: SpecifierSet) -> str:
    """`numpy >=1.26,<2a0`: what the specifier admits, asked of a package. The name alone where it admits all."""
    return f"{package} {version_part(specifier)}".rstrip()


def version_part(specifier: SpecifierSet) -> str:
    """`>=1.26,<2a0`; "" where the specifier admits all."""
    clauses = sorted(specifier, key=lambda clause: (_ORDER.index(clause.operator), clause.version))
    return ",".join(map(_clause, clauses))


def not_a_version(specifier: SpecifierSet) -> str | None:
    """The clause that names no version (`===1.0-custom`), or None."""
    for clause in specifier:
        if parse_version(clause.version.removesuffix(".*")) is None:
            return str(clause)
    return None


def _clause(clause: Specifier) -> str:
    operator, text = clause.operator, clause.version
    star = text.endswith(".*")
    version = Version(text.removesuffix(".*"))
    if operator in {"==", "==="}:
        return f"{version}.*" if star else f"=={version}"
    if operator == "!=":
        return f"!={version}.*" if star else f"!={version}"
    if operator == "~=":
        return f">={version},{_epoch(version)}{_joined(version.release[:-1])}.*"
    if operator == "<" and not version.is_prerelease and not version.is_postrelease:
        # PEP 440 keeps the pre-releases of the bound out, and conda's idiom for that is the first of them.
        return f"<{_epoch(version)}{_joined(_without_zeros(version.release))}a0"
    if operator == ">" and not version.is_postrelease:
        return f">{version},!={version}.post*"      # and the post-releases of what it is to be newer than
    return f"{operator}{version}"


def _epoch(version: Version) -> str:
    return f"{version.epoch}!" if version.epoch else ""


def _joined(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))


def _without_zeros(release: tuple[int, ...]) -> tuple[int, ...]:
    """`<2.0` keeps 2a1 out as well."""
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    return release


def translate(
    requirement: Requirement, view: TargetView, package_of: PackageOf, lines_of_extra: LinesOfExtra,
) -> tuple[Translated | Untranslated, ...]:
    """What a requirement of the user asks of the channels on one target; () where its marker does not hold there.

    Channels know no extras: what an extra needs is asked for in its place. A constraint only limits, whatever extras
    it names.
    """
    if not view.applies(requirement.text, None):
        return ()
    parsed = parse_requirement(requirement.text)
    if parsed is None:
        return (Untranslated(project=requirement.text, origin=requirement.origin, reason="it is no requirement"),)
    if requirement.hashes:
        reason = "it is asked for by hashes of wheels, which no package of a channel has"
        return (Untranslated(project=normalise(parsed.name), origin=requirement.origin, reason=reason),)
    found = _translate(parsed, requirement.origin, package_of)
    if requirement.constraint or isinstance(found, Untranslated):
        return (found,)
    return (found, *_extras(parsed, requirement.origin, view, package_of, lines_of_extra, frozenset()))


def _translate(parsed: Parsed, origin: str, package_of: PackageOf) -> Translated | Untranslated:
    project = normalise(parsed.name)
    if parsed.url is not None:
        reason = "it is asked for at an address, and channels have packages by name and version only"
        return Untranslated(project=project, origin=origin, reason=reason)
    odd = not_a_version(parsed.specifier)
    if odd is not None:
        return Untranslated(project=project, origin=origin, reason=f"{odd} names no version that a channel could have")
    package = package_of(project)
    if package is None:
        return Untranslated(project=project, origin=origin, reason="no channel has a package for it")
    return Translated(
        project=project, package=package, spec=Spec(text=spec_of(package.name, parsed.specifier), origin=origin),
    )


def _extras(
    parsed: Parsed, origin: str, view: TargetView, package_of: PackageOf, lines_of_extra: LinesOfExtra,
    seen: frozenset[tuple[str, str]],
) -> Iterator[Translated | Untranslated]:
    """What the extras of a requirement need, in their order; an extra may name extras of its own project."""
    project = normalise(parsed.name)
    for extra in sorted(normalise(name) for name in parsed.extras):
        if (project, extra) in seen:
            continue
        below = seen | {(project, extra)}
        place = f"{project}[{extra}] of {origin}" if not seen else origin
        lines = lines_of_extra(project, extra)
        if lines is None:
            yield Untranslated(project=project, origin=origin, reason=f"what its extra {extra!r} needs is not known")
            continue
        for line in lines:
            needed = parse_requirement(line)
            if needed is None or not view.applies(line, extra) or view.applies(line, None):
                continue
            if normalise(needed.name) != project:
                yield _translate(needed, place, package_of)
            yield from _extras(needed, place, view, package_of, lines_of_extra, below)
