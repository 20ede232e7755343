"""Why one version does not belong into a stack whose torch and CUDA are fixed, as the matrix says."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.records import Matrix, Rule, TorchBuild
from stackfix.resolve.needs import Candidate, Exclusion
from stackfix.resolve.pep508 import admits, normalise, parse_requirement, parse_version, pins_exactly
from stackfix.sources.errors import SdistNeedsBuild
from stackfix.sources.records import CoreMetadata


def matrix_exclusion(
    matrix: Matrix, candidate: Candidate, build: TorchBuild, fixed: Mapping[str, Version]
) -> Exclusion | None:
    """Why the candidate does not fit the fixed stack, or None where the matrix knows nothing against it."""
    for rule in query.rules_for(matrix, candidate.name, candidate.text):
        found = _rule_exclusion(candidate, rule, fixed)
        if found is not None:
            return found
    row = query.companion(matrix, candidate.name, candidate.text)
    misfit = query.companion_fits(row, build) if row is not None else None
    if row is None or misfit is None:
        return None
    return Exclusion(
        version=candidate.text, kind="matrix", reason=misfit.removeprefix(f"{row.package} {row.version} "),
        source=row.source, rows=(row,), by_torch=True,
    )


def _rule_exclusion(candidate: Candidate, rule: Rule, fixed: Mapping[str, Version]) -> Exclusion | None:
    needed = parse_requirement(rule.needs)
    if needed is None or normalise(needed.name) not in fixed:
        return None
    name = normalise(needed.name)
    if admits(needed.specifier, fixed[name]):
        return None
    return Exclusion(
        version=candidate.text, kind="matrix", reason=f"needs {rule.needs} ({rule.why})", source=rule.source,
        rows=(rule,), by_torch=name == "torch", by_flash_attn=name == "flash-attn",
    )


def unknown_companion_exclusion(
    candidate: Candidate, metadata: CoreMetadata | SdistNeedsBuild, build: TorchBuild
) -> Exclusion | None:
    """Why a companion that the matrix has no row for is not taken: its metadata must name this torch exactly."""
    if not isinstance(metadata, SdistNeedsBuild) and any(
        _pins_torch(line, build.version) for line in metadata.requires_dist
    ):
        return None
    return Exclusion(
        version=candidate.text, kind="index",
        reason=f"is unknown to the matrix, and its metadata does not name torch {build.version} exactly",
        source=f"metadata of {candidate.files[0].filename}", by_torch=True,
    )


def _pins_torch(line: str, version: str) -> bool:
    requirement = parse_requirement(line) if line.lower().startswith("torch") else None
    torch = parse_version(version)
    if requirement is None or torch is None or normalise(requirement.name) != "torch":
        return False
    return pins_exactly(requirement.specifier) and admits(requirement.specifier, torch)
