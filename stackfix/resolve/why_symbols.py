"""What the symbols of the wheels say of one torch build: of its NVIDIA libraries, and of extensions that were read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from stackfix.abi.records import Books
from stackfix.matrix import query
from stackfix.matrix.records import Matrix, TorchBuild
from stackfix.resolve.judged import cannot_load, machine_for, of_release, untold
from stackfix.resolve.limits import SYMBOLS, Limit, limits_of
from stackfix.resolve.pep508 import admits, normalise, parse_requirement, parse_version, pins_exactly
from stackfix.resolve.question import TORCH
from stackfix.resolve.records import Point
from stackfix.resolve.torch_family import torch_path


def symbol_points(matrix: Matrix, books: Books | None, build: TorchBuild, asked: Mapping[str, str]) -> Iterator[Point]:
    """What torch and the libraries of its build need of one another, with the versions `asked` in place of its own.

    Where any version is asked for, only what concerns those, and then rules of the matrix and torch's own pins too.
    """
    own = query.preferred_versions(matrix, build)
    points = list(_of_libraries(matrix, books, build, {**own, **asked}, asked))
    points += [point for line in build.requires if asked for point in _pin(build, line, asked)]
    yield from points
    if asked and not points and build.cuda == query.CPU:
        text = f"torch {build.version} for the CPU uses none of NVIDIA's libraries"
        yield Point(about=next(iter(asked)), holds=True, text=text, source=build.source, confidence=build.confidence)
    elif asked and not points:
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
    torch = () if build.cuda == query.CPU else ((TORCH, build.version),)    # limits are those of builds for CUDA
    for package, version in (*torch, *versions.items()):
        found = _of_variant(matrix, build) if package == TORCH and torch_path(build) is not None else limits_of(
            matrix, book, package, version)
        for limit in found:
            concerns = package in asked or limit.name in asked
            if limit.name in versions and (concerns if asked else limit.read):
                yield from _point(limit, package, version, versions[limit.name])


def _of_variant(matrix: Matrix, build: TorchBuild) -> Iterator[Limit]:
    """Limits on a torch of the torch index: what was read of the default build says nothing against its own pins."""
    pinned = {normalise(each.name) for each in map(parse_requirement, build.requires)
              if each is not None and pins_exactly(each.specifier)}
    for limit in limits_of(matrix, None, TORCH, build.version):
        if limit.name not in pinned:
            yield limit


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


def release_point(books: Books | None, package: str, version: str, build: TorchBuild) -> Point | None:
    """What the symbols of a release's wheels for the build's machine say; None where no such wheel was read."""
    found = of_release(books, package, version, machine_for(build), build) if books is not None else ()
    if books is None or not found:
        return None
    label, first = f"{package} {version}", found[0]
    against = cannot_load(found)
    open_ = next(filter(None, (untold(books, one.wheel, build) for one in found)), "")
    if against is None:
        text = f"wheels of {label} differ in the torch that they can load with by their symbols"
    elif against:
        text = f"{label} {first.against} (read of {first.wheel.file})"
    elif open_:
        text = f"nobody can tell by symbols whether {label} can load: {open_}"
    else:
        text = f"by its symbols {label} can load with torch {build.version} (read of {first.wheel.file})"
    holds = None if against is None or (open_ and not against) else not against
    return Point(about=package, holds=holds, text=text, source=SYMBOLS, confidence="certain")
