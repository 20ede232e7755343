"""What loading leaves out: versions and requirements parsed by packaging, and references between the files."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from stackfix.matrix.records import Matrix

# Packages that a rule may name though no row of the matrix lists their versions.
RULED = frozenset({"torch", "transformers", "flash-attn", "numpy", "torchtext", "torchcodec", "fbgemm-gpu"})


def deep_faults(matrix: Matrix) -> tuple[str, ...]:
    """Faults in plain words, each naming its row."""
    return tuple(_malformed(matrix)) + tuple(_dangling(matrix))


def _malformed(matrix: Matrix) -> Iterator[str]:
    for build in matrix.torch:
        where = f"torch {build.version}, {build.platform}, index {build.index}"
        yield from _bad_versions(where, build.version, build.toolkit, build.cudnn, build.nccl)
        yield from _bad_requirements(where, build.requires)
    for component in matrix.components:
        yield from _bad_versions(f"toolkit {component.toolkit}", component.toolkit, component.version)
    for companion in matrix.companions:
        where = f"{companion.package} {companion.version}"
        yield from _bad_versions(where, companion.version)
        yield from _bad_specifier(where, companion.torch)
        yield from _bad_requirements(where, companion.requires)
    for rule in matrix.rules:
        where = f"rule {rule.package} {rule.versions}"
        yield from _bad_specifier(where, rule.versions)
        yield from _bad_requirements(where, (rule.needs,))
    for release in matrix.flash_attn:
        where = f"flash-attn {release.version}"
        yield from _bad_versions(where, release.version)
        yield from _bad_requirements(where, release.requires + release.build_requires)


def _dangling(matrix: Matrix) -> Iterator[str]:
    toolkits = {component.toolkit for component in matrix.components}
    for build in matrix.torch:
        if build.toolkit is not None and build.toolkit not in toolkits:
            yield f"torch {build.version}, {build.platform}: toolkit {build.toolkit} is not in cuda.toml"
    majors = {family.cuda_major for family in matrix.driver_families}
    for cuda in {build.cuda for build in matrix.torch if build.cuda != "cpu"}:
        if int(cuda.partition(".")[0]) not in majors:
            yield f"CUDA {cuda}: no driver family in cuda.toml"
    known = known_packages(matrix)
    for rule in matrix.rules:
        for name in (rule.package, _name(rule.needs)):
            if name is not None and name not in known:
                yield f"rule {rule.package} {rule.versions}: nothing in the matrix is called {name}"


def known_packages(matrix: Matrix) -> frozenset[str]:
    """Projects that rows of the matrix are about."""
    names = {component.package for component in matrix.components} | {row.package for row in matrix.companions}
    for build in matrix.torch:
        names |= {name for line in build.requires if (name := _name(line)) is not None}
    return frozenset(names) | RULED


def _name(line: str) -> str | None:
    try:
        return Requirement(line).name
    except InvalidRequirement:
        return None


def _bad_versions(where: str, *versions: str | None) -> Iterator[str]:
    for version in versions:
        try:
            Version(version or "0")
        except InvalidVersion:
            yield f"{where}: {version!r} is not a version"


def _bad_specifier(where: str, specifier: str | None) -> Iterator[str]:
    try:
        SpecifierSet(specifier or "")
    except InvalidSpecifier:
        yield f"{where}: {specifier!r} is not a version specifier"


def _bad_requirements(where: str, lines: tuple[str, ...]) -> Iterator[str]:
    for line in lines:
        try:
            Requirement(line)
        except InvalidRequirement as error:
            yield f"{where}: {line!r} is not a requirement ({str(error).splitlines()[0]})"
