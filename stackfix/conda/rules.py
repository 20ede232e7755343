"""Needs that no metadata states, held against packages of channels: which they break, and the bounds that would not.

The pip side is solved under the matrix's rules. Channels know none of them: transformers 5.6 refuses torch 2.3 when it
is used, and a repacked torch 2.2 takes any numpy and is built for numpy 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.specifiers import Specifier, SpecifierSet

from stackfix.conda.names import NameBook, Provided
from stackfix.conda.records import CondaRecord, CondaTorch, Spec
from stackfix.conda.specs import spec_of, version_part
from stackfix.matrix import query
from stackfix.matrix.records import Matrix, Rule
from stackfix.resolve.pep508 import ANY, admits, normalise, parse_requirement, parse_specifier, parse_version

TORCH, FLASH_ATTN = "torch", "flash-attn"
_NEGATED = {">=": "<", "<": ">=", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}


def broken_rules(versions: Mapping[str, str], matrix: Matrix) -> Iterator[Rule]:
    """Rules about these versions that the others do not meet.

    What torch's own wheel uses of NVIDIA's libraries is not asked of a channel's build, whose record bounds them.
    """
    for project, version in sorted(versions.items()):
        for rule in _rules_for(matrix, project, version):
            needed = parse_requirement(rule.needs)
            found = versions.get(normalise(needed.name)) if needed is not None else None
            there = parse_version(found) if found is not None else None
            of_torch = project == TORCH and needed is not None and normalise(needed.name).startswith("nvidia-")
            if needed is not None and there is not None and not of_torch and not admits(needed.specifier, there):
                yield rule


def rule_bounds(
    records: tuple[CondaRecord, ...], torch: CondaTorch, flash_attn: str | None, matrix: Matrix, book: NameBook
) -> tuple[Spec, ...]:
    """What the channels must keep to so that no rule about torch and flash-attn is broken; () where none is.

    Bounds only on packages that are there and break one.
    """
    provided = {one.project: one for one in book.provided(records, torch.cuda)}
    versions = {project: one.version for project, one in provided.items() if one.version is not None}
    fixed = {TORCH: torch.record.version, **({FLASH_ATTN: flash_attn} if flash_attn is not None else {})}
    found = dict.fromkeys(
        spec for rule in broken_rules({**versions, **fixed}, matrix) for spec in _bounds(rule, provided, fixed, matrix)
    )
    return tuple(found)


def _bounds(
    rule: Rule, provided: Mapping[str, Provided], fixed: Mapping[str, str], matrix: Matrix
) -> Iterator[Spec]:
    needed = parse_requirement(rule.needs)
    if needed is None:
        return
    name = normalise(needed.name)
    if name in provided and name not in fixed and rule.package in fixed:
        text = spec_of(provided[name].record.name, needed.specifier)
        yield Spec(text=text, origin=f"{rule.package} {fixed[rule.package]} needs {rule.needs}: {rule.why}")
        return
    own = provided.get(rule.package)
    if name not in fixed or own is None or rule.package in fixed:
        return
    for other in matrix.rules:      # all at once: the release before the one that is there may break the next rule
        again = parse_requirement(other.needs) if other.package == rule.package else None
        fixed_at = parse_version(fixed.get(normalise(again.name), "")) if again is not None else None
        if again is None or fixed_at is None or admits(again.specifier, fixed_at):
            continue
        kept = outside(parse_specifier(other.versions) or ANY)
        if kept is not None:
            origin = f"{own.project}{other.versions} needs {other.needs}: {other.why}"
            yield Spec(text=f"{own.record.name} {kept}", origin=origin)


def outside(versions: SpecifierSet) -> str | None:
    """`<5.1a0|>=5.15` of `>=5.1,<5.15`: what a specifier does not admit; None where it admits everything."""
    parts: list[str] = []
    for clause in sorted(versions, key=lambda one: (one.operator in {"<", "<="}, one.version)):
        negated = _NEGATED.get(clause.operator)
        if negated is None:
            return None
        if clause.operator == ">=" and parse_version(clause.version) == parse_version("0"):
            continue                # `>=0` admits all
        parts.append(version_part(SpecifierSet([Specifier(f"{negated}{clause.version}")])))
    return "|".join(parts) or None


def _rules_for(matrix: Matrix, project: str, version: str) -> tuple[Rule, ...]:
    return query.rules_for(matrix, project, version) if parse_version(version) is not None else ()
