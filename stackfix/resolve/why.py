"""Why a combination fits or does not, from the matrix and the symbols: nothing is asked of any index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from stackfix.abi.records import Books
from stackfix.matrix import query
from stackfix.matrix.records import Matrix, TorchBuild
from stackfix.platforms import LINUX, split_place
from stackfix.resolve.pep508 import admits, normalise, parse_requirement, parse_version
from stackfix.resolve.records import Point, Verdict
from stackfix.resolve.stack import cuda_words
from stackfix.resolve.why_packages import companion_points, extension_points, flash_attn_points
from stackfix.resolve.why_pairs import COMPANIONS, NVIDIA, check_pair, keys_of, wanted
from stackfix.resolve.why_symbols import brings, symbol_points

DEFAULT_PLATFORM = "linux-64"

_Judge = Callable[[Matrix, TorchBuild, str, Mapping[str, str]], Iterator[Point]]


def why(matrix: Matrix, pairs: Mapping[str, str], books: Books | None = None) -> Verdict:
    """The verdict on the torch build that fits the pairs best. Raises BadInput for a value that cannot be read.

    `books`: what the symbols of published wheels tell; without them the matrix alone speaks.
    """
    keys = keys_of(books)
    for key, value in pairs.items():
        check_pair(key, value, keys)
    combination = tuple(pairs.items())
    builds = _builds(matrix, pairs)
    if not builds:
        point = _no_build(matrix, pairs)
        return Verdict(fits=point.holds, combination=combination, build=None, points=(point,))
    judged = [(build, tuple(_points(matrix, build, pairs, books))) for build in builds]
    build, points = min(judged, key=lambda entry: (_is_of_other_cuda(entry[0], pairs), _misfit(entry[1])))
    return Verdict(fits=_fits(points), combination=combination, build=build, points=points)


def _is_of_other_cuda(build: TorchBuild, pairs: Mapping[str, str]) -> bool:
    """Whether it is not of the CUDA that is named: as in a lock, no such build stands in for one that is."""
    return "cuda" in pairs and not query.cuda_matches(pairs["cuda"], build.cuda)


def _misfit(points: tuple[Point, ...]) -> tuple[int, int]:
    """What is spoken against, and how much is open; the first build wins among equals, which is the newest."""
    against = {point.about for point in points if point.holds is False}
    return len(against), sum(point.holds is None for point in points)


def _fits(points: tuple[Point, ...]) -> bool | None:
    if any(point.holds is False for point in points):
        return False
    return None if any(point.holds is None for point in points) else True


def _builds(matrix: Matrix, pairs: Mapping[str, str]) -> list[TorchBuild]:
    """Builds of the torch, place and libraries that are named, default index first within a release."""
    found = [
        build for build in query.builds_on(matrix, pairs.get("platform", DEFAULT_PLATFORM))
        if "torch" not in pairs or wanted(pairs["torch"], build.version)
    ]
    libraries = [key for key in pairs if key.startswith(NVIDIA)]
    return [build for build in found if brings(matrix, build, libraries)] or found


def _no_build(matrix: Matrix, pairs: Mapping[str, str]) -> Point:
    platform, variant = split_place(pairs.get("platform", DEFAULT_PLATFORM))
    known = query.torch_releases(matrix)
    named = pairs.get("torch")
    elsewhere = [build for build in matrix.torch if named is None or wanted(named, build.version)]
    if elsewhere:
        text = f"torch {elsewhere[0].version} has no {'CPU ' if variant else ''}build for {platform}"
        return Point(
            about="platform", holds=False, text=text, source=elsewhere[0].source, confidence=elsewhere[0].confidence,
        )
    newest = f"; the newest it knows is {known[0]}" if known else ""
    text = f"the matrix has no row for torch {named}{newest}"
    return Point(about="torch", holds=None, text=text, source="rows of torch in the matrix", confidence="certain")


def _points(matrix: Matrix, build: TorchBuild, pairs: Mapping[str, str], books: Books | None) -> Iterator[Point]:
    for key, value in pairs.items():
        if key in COMPANIONS:
            yield from companion_points(matrix, build, value, key, books)
        elif key in _JUDGES:
            yield from _JUDGES[key](matrix, build, value, pairs)
        elif books is not None and not key.startswith(NVIDIA):
            yield from extension_points(books, build, value, key)
    libraries = {key: value for key, value in pairs.items() if key.startswith(NVIDIA)}
    if libraries or "torch" in pairs:
        yield from symbol_points(matrix, books, build, libraries)


def _of_build(build: TorchBuild, about: str, *, holds: bool | None, text: str) -> Point:
    return Point(about=about, holds=holds, text=text, source=build.source, confidence=build.confidence)


def _torch(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    where = "on the default index" if build.index == query.DEFAULT_INDEX else f"on the torch index ({build.index}) only"
    text = f"torch {build.version} for {cuda_words(build.cuda)} on {build.platform} is {where}"
    yield _of_build(build, "torch", holds=True, text=text)


def _cuda(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    place = pairs.get("platform", DEFAULT_PLATFORM)
    text = f"torch {build.version} is built for {cuda_words(build.cuda)}"
    if split_place(place)[1] and value != query.CPU:
        text = f"torch {build.version} is taken for the CPU on {place}, as that name asks"
    yield _of_build(build, "cuda", holds=query.cuda_matches(value, build.cuda), text=text)


def _python(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    text = f"torch {build.version} has wheels for Python {', '.join(build.pythons)}"
    yield _of_build(build, "python", holds=value in build.pythons, text=text)


def _platform(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    platform, variant = split_place(value)
    text = f"torch {build.version} has a {'CPU ' if variant else ''}build for {build.platform}"
    yield _of_build(build, "platform", holds=build.platform == platform, text=text)


def _driver(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    family = query.driver_floor(matrix, build.cuda, build.platform)
    if build.cuda == query.CPU and pairs.get("cuda") == query.CPU:
        yield _of_build(build, "driver", holds=True, text="a CPU build needs no driver")
    elif build.cuda == query.CPU:
        text = f"torch {build.version} for {build.platform} is a CPU build, which uses no driver"
        yield _of_build(build, "driver", holds=False, text=text)
    elif family is None:
        where = "" if build.platform in LINUX else f" on {build.platform}"
        text = f"the matrix has no driver floor for {cuda_words(build.cuda)}{where}"
        yield Point(about="driver", holds=None, text=text, source="driver families of the matrix", confidence="certain")
    else:
        text = f"{cuda_words(build.cuda)} needs driver {family.floor} or newer (minor-version compatibility)"
        holds = query.driver_supports(matrix, value, build.cuda, build.platform)
        if query.rests_on_branch(value, family.floor):
            text += f"; {value} is taken as such a release of its branch"
        yield Point(about="driver", holds=holds, text=text, source=family.source, confidence=family.confidence)


def _gpu(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    if build.cuda == query.CPU:
        text = f"torch {build.version} for {build.platform} is a CPU build"
        yield _of_build(build, "gpu-arch", holds=False, text=text)
    elif not build.gpu_archs:
        text = f"nobody read which GPUs torch {build.version} for {cuda_words(build.cuda)} has code for"
        yield _of_build(build, "gpu-arch", holds=None, text=text)
    else:
        text = f"torch {build.version} has code for {', '.join(build.gpu_archs)}"
        yield _of_build(build, "gpu-arch", holds=query.gpu_runs(build.gpu_archs, value), text=text)


def _rules(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    """Rules about transformers and the others of the combination."""
    release = next((text for text in (value,) if parse_version(text) is not None), None)
    rules = query.rules_for(matrix, "transformers", release) if release is not None else ()
    told = False
    for rule in rules:
        needed = parse_requirement(rule.needs)
        name = normalise(needed.name) if needed is not None else ""
        other = build.version if name == "torch" else pairs.get(name)
        parsed = parse_version(other) if other is not None else None
        if needed is None or parsed is None:
            continue
        told = True
        yield Point(
            about="transformers", holds=admits(needed.specifier, parsed), confidence=rule.confidence,
            source=rule.source, text=f"transformers {release} needs {rule.needs}: {rule.why}",
        )
    if not told:
        text = f"the matrix knows nothing about transformers {value} and the rest of this combination"
        yield Point(about="transformers", holds=None, text=text, source="rules of the matrix", confidence="certain")


_JUDGES: dict[str, _Judge] = {
    "torch": _torch, "cuda": _cuda, "python": _python, "platform": _platform, "driver": _driver, "gpu-arch": _gpu,
    "flash-attn": flash_attn_points, "transformers": _rules,
}
