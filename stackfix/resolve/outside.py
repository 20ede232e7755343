"""Why one version does not belong into a stack whose torch and CUDA are fixed, as the matrix says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.version import Version

from stackfix.matrix import query
from stackfix.matrix.consumers import consumer_misfit
from stackfix.matrix.records import Matrix, Rule, TorchBuild
from stackfix.resolve.needs import Candidate, Exclusion, Need
from stackfix.resolve.pep508 import admits, normalise, parse_requirement, parse_specifier, parse_version, pins_exactly
from stackfix.resolve.torch_family import companion_row, falls_back, torch_path
from stackfix.sources.errors import SdistNeedsBuild
from stackfix.sources.records import CoreMetadata

ANY_VERSION = ">=0"


def matrix_exclusion(
    matrix: Matrix, candidate: Candidate, build: TorchBuild, fixed: Mapping[str, Version]
) -> Exclusion | None:
    """Why the candidate does not fit the fixed stack, or None where the matrix knows nothing against it."""
    for rule in query.rules_for(matrix, candidate.name, candidate.text):
        found = _rule_exclusion(candidate, rule, fixed)
        if found is not None:
            return found
    consumer = consumer_misfit(matrix, candidate.name, candidate.text, build)
    if consumer is not None:
        return Exclusion(version=candidate.text, kind="matrix", reason=consumer[0], source=consumer[1].source,
                         rows=(consumer[1],), by_torch=True)
    found = usual_cuda_exclusion(matrix, candidate, build)
    if found is not None:
        return found
    row = companion_row(matrix, candidate, build)
    misfit = query.companion_fits(row, build) if row is not None else None
    if row is None or misfit is None:
        return None
    return Exclusion(
        version=candidate.text, kind="matrix", reason=misfit.removeprefix(f"{row.package} {row.version} "),
        source=row.source, rows=(row,), by_torch=True,
    )


def usual_cuda_exclusion(matrix: Matrix, candidate: Candidate, build: TorchBuild) -> Exclusion | None:
    """Why a companion of the default index does not fit a variant of torch: it is built for the default one's CUDA."""
    file = candidate.files[0]
    if torch_path(build) is None or file.torch_path is not None or falls_back(candidate.name) or (
            not file.is_wheel or file.filename.endswith("-any.whl")):
        return None
    row = query.companion(matrix, candidate.name, candidate.text)
    usual = [each for each in query.builds(matrix, platform=build.platform, index=query.DEFAULT_INDEX)
             if each.version == build.version and each.cuda != query.CPU]
    if row is None or not usual:
        return None
    cuda = row.cuda or usual[0].cuda
    if build.cuda != query.CPU and query.major_of(cuda) == query.major_of(build.cuda):
        return None
    mine = "the CPU" if build.cuda == query.CPU else f"CUDA {build.cuda}"
    return Exclusion(
        version=candidate.text, kind="matrix", source=row.source, rows=(row,), by_torch=True,
        reason=f"is built for CUDA {cuda}, as torch {build.version} on the default index is, not for {mine}",
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


def exclusive_pairs(matrix: Matrix) -> dict[str, tuple[tuple[str, Rule], ...]]:
    """For each project those that it shares no environment with, in both directions: rules that need `other<0`."""
    found: dict[str, list[tuple[str, Rule]]] = {}
    for rule in matrix.rules:
        if not rule.needs.endswith("<0"):
            continue
        other = normalise(rule.needs.removesuffix("<0"))
        found.setdefault(rule.package, []).append((other, rule))
        if rule.versions == ANY_VERSION:    # else the other way round depends on which version there will be
            found.setdefault(other, []).append((rule.package, rule))
    return {name: tuple(pairs) for name, pairs in found.items()}


def driven_out(candidate: Candidate, pairs: Iterable[tuple[str, Rule]], sure: Mapping[str, Need]) -> Exclusion | None:
    """Why the candidate cannot stand beside a project that is in the stack whatever else is chosen, or None."""
    for other, rule in pairs:
        need = sure.get(other)
        if need is not None and (rule.package == other or _holds(rule, candidate)):
            return Exclusion(
                version=candidate.text, kind="matrix", reason=f"cannot stand beside {other}: {rule.why}",
                source=rule.source, rows=(rule,), because=(need,),
            )
    return None


def _holds(rule: Rule, candidate: Candidate) -> bool:
    specifier = parse_specifier(rule.versions)
    return specifier is not None and admits(specifier, candidate.version)


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
