"""What the symbols of the wheels say of one torch build: of its NVIDIA libraries, and of extensions that were read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from stackfix.abi.records import Books
from stackfix.matrix import query
from stackfix.matrix.records import Matrix, TorchBuild
from stackfix.resolve.judged import of_release
from stackfix.resolve.limits import SYMBOLS, Limit, limits_of
from stackfix.resolve.pep508 import admits, normalise, parse_requirement, parse_version
from stackfix.resolve.records import Point


def symbol_points(matrix: Matrix, books: Books | None, build: TorchBuild, asked: Mapping[str, str]) -> Iterator[Point]:
    """What torch and the libraries of its build need of one another, with the versions `asked` in place of its own.

    Where any version is asked for, only what concerns those, and then rules of the matrix and torch's own pins too.
    """
    own = query.preferred_versions(matrix, build)
    points = list(_of_libraries(matrix, books, build, {**own, **asked}, asked))
    points += [point for line in build.requires if asked for point in _pin(build, line, asked)]
    yield from points
    if asked and not points:
        text = f"nothing is known of {' and '.join(f'{name} {version}' for name, version in asked.items())} beside"
        yield Point(about=next(iter(asked)), holds=None, text=f"{text} torch {build.version}", source=SYMBOLS,
                    confidence="certain")


def brings(matrix: Matrix, build: TorchBuild, names: Collection[str]) -> bool:
    """Whether all these libraries belong to a build."""
    return set(names) <= query.preferred_versions(matrix, build).keys()


def _of_libraries(
    matrix: Matrix, books: Books | None, build: TorchBuild, versions: Mapping[str, str], asked: Mapping[str, str]
) -> Iterator[Point]:
    book = books.nvidia if books is not None else None
    for package, version in (("torch", build.version), *versions.items()):
        for limit in limits_of(matrix, book, package, version):
            concerns = package in asked or limit.name in asked
            if limit.name in versions and (concerns if asked else limit.read):
                yield from _point(limit, package, version, versions[limit.name])


def _point(limit: Limit, package: str, version: str, other: str) -> Iterator[Point]:
    """Nothing of a version of which nobody knows."""
    parsed = parse_version(other)
    if parsed is not None and not limit.undecided(parsed):
        text = f"{package} {version} needs {limit.rule.needs}, and {other} is there: {limit.rule.why}"
        yield Point(about=limit.name, holds=limit.admits(parsed), text=text, source=limit.rule.source,
                    confidence=limit.rule.confidence)


def _pin(build: TorchBuild, line: str, asked: Mapping[str, str]) -> Iterator[Point]:
    parsed = parse_requirement(line)
    name = normalise(parsed.name) if parsed is not None else ""
    version = parse_version(asked.get(name, ""))
    if parsed is not None and version is not None and parsed.specifier:
        yield Point(
            about=name, holds=admits(parsed.specifier, version), source=build.source, confidence=build.confidence,
            text=f"torch {build.version} requires {name}{parsed.specifier}",
        )


def extension_against(books: Books | None, package: str, version: str, build: TorchBuild) -> str | None:
    """Why the wheels of one release that were read cannot load with the build; None where they can, or none was."""
    if books is None:
        return None
    machine = "aarch64" if build.platform.endswith("aarch64") else "x86_64"
    found = of_release(books, package, version, machine, build)
    return found[0].against if found and all(one.against for one in found) else None
