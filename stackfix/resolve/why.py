"""Why a combination fits or does not, from the matrix alone: nothing is asked of any index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.abi.records import Books
from stackfix.errors import BadInput
from stackfix.matrix import query
from stackfix.matrix.records import FlashAttnWheel, Matrix, TorchBuild
from stackfix.resolve.limits import SYMBOLS
from stackfix.resolve.pep508 import admits, normalise, parse_requirement, parse_specifier, parse_version
from stackfix.resolve.records import Point, Verdict
from stackfix.resolve.stack import cuda_words
from stackfix.resolve.why_symbols import NVIDIA, brings, extension_against, symbol_points

COMPANIONS = ("torchvision", "torchaudio", "xformers", "triton", "vllm")
KEYS = ("torch", "cuda", "python", "platform", "driver", "gpu-arch", "flash-attn", "transformers", *COMPANIONS)
DEFAULT_PLATFORM = "linux-64"

_Judge = Callable[[Matrix, TorchBuild, str, Mapping[str, str]], Iterator[Point]]


def why(matrix: Matrix, pairs: Mapping[str, str], books: Books | None = None) -> Verdict:
    """The verdict on the torch build that fits the pairs best. Raises BadInput for a value that cannot be read.

    `books`: what the symbols of published wheels tell; without them the matrix alone speaks.
    """
    for key, value in pairs.items():
        _check(key, value)
    combination = tuple(pairs.items())
    builds = _builds(matrix, pairs)
    if not builds:
        point = _no_build(matrix, pairs)
        return Verdict(fits=point.holds, combination=combination, build=None, points=(point,))
    judged = [(build, tuple(_points(matrix, build, pairs, books))) for build in builds]
    build, points = min(judged, key=lambda entry: _misfit(entry[1]))
    return Verdict(fits=_fits(points), combination=combination, build=build, points=points)


def _misfit(points: tuple[Point, ...]) -> tuple[int, int]:
    """What speaks against it, and what is open; the first build wins among equals, which is the newest."""
    return sum(point.holds is False for point in points), sum(point.holds is None for point in points)


def _fits(points: tuple[Point, ...]) -> bool | None:
    if any(point.holds is False for point in points):
        return False
    return None if any(point.holds is None for point in points) else True


def _check(key: str, value: str) -> None:
    if key not in KEYS and not key.startswith(NVIDIA):
        raise BadInput(repr(key), "is not a key", f"keys: {', '.join(KEYS)}, and names of NVIDIA's wheels")
    if key.startswith(NVIDIA) and parse_version(value) is None:
        raise BadInput(f"{key}={value}", "is no version", "write it as 12.1.105")
    if key == "gpu-arch" and query.gpu_capability(value) is None:
        raise BadInput(f"{key}={value}", "is no GPU architecture", "write it as sm_90")
    if key in {"driver", "cuda", "python"} and value != query.CPU and not _is_numbers(value):
        raise BadInput(f"{key}={value}", "is no version", "write it as numbers with dots, such as 12.1")
    if key in {"torch", "flash-attn", "transformers", *COMPANIONS} and _specifier(value) is None:
        raise BadInput(f"{key}={value}", "is no version and no PEP 440 specifier", "write it as 2.3 or '>=2.3,<2.5'")


def _is_numbers(text: str) -> bool:
    return all(part.isdigit() for part in text.split("."))


def _specifier(text: str) -> SpecifierSet | None:
    """`2.9` as 2.9.*, `2.6.3` as it is, or the specifier itself."""
    if parse_version(text) is None:
        return parse_specifier(text)
    return parse_specifier(f"=={text}" if text.count(".") > 1 else f"=={text}.*")


def _wanted(text: str, version: str) -> bool:
    specifier, parsed = _specifier(text), parse_version(version)
    return specifier is not None and parsed is not None and admits(specifier, parsed)


def _builds(matrix: Matrix, pairs: Mapping[str, str]) -> list[TorchBuild]:
    """Builds of the torch, platform and libraries that are named, default index first within a release."""
    platform = pairs.get("platform", DEFAULT_PLATFORM)
    found = [
        build for build in query.builds(matrix, platform=platform)
        if "torch" not in pairs or _wanted(pairs["torch"], build.version)
    ]
    libraries = [key for key in pairs if key.startswith(NVIDIA)]
    return [build for build in found if brings(matrix, build, libraries)] or found


def _no_build(matrix: Matrix, pairs: Mapping[str, str]) -> Point:
    platform = pairs.get("platform", DEFAULT_PLATFORM)
    known = query.torch_releases(matrix)
    named = pairs.get("torch")
    elsewhere = [build for build in matrix.torch if named is None or _wanted(named, build.version)]
    if elsewhere:
        text = f"torch {elsewhere[0].version} has no build for {platform}"
        return Point(
            about="platform", holds=False, text=text, source=elsewhere[0].source, confidence=elsewhere[0].confidence,
        )
    newest = f"; the newest it knows is {known[0]}" if known else ""
    text = f"the matrix has no row for torch {named}{newest}"
    return Point(about="torch", holds=None, text=text, source="rows of torch in the matrix", confidence="certain")


def _points(matrix: Matrix, build: TorchBuild, pairs: Mapping[str, str], books: Books | None) -> Iterator[Point]:
    for key, value in pairs.items():
        if key in COMPANIONS:
            yield from _companion(matrix, build, value, key, books)
        elif key in _JUDGES:
            yield from _JUDGES[key](matrix, build, value, pairs)
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
    holds = query.cuda_matches(value, build.cuda)
    yield _of_build(build, "cuda", holds=holds, text=f"torch {build.version} is built for {cuda_words(build.cuda)}")


def _python(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    text = f"torch {build.version} has wheels for Python {', '.join(build.pythons)}"
    yield _of_build(build, "python", holds=value in build.pythons, text=text)


def _platform(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    text = f"torch {build.version} has a build for {build.platform}"
    yield _of_build(build, "platform", holds=build.platform == value, text=text)


def _driver(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    family = query.driver_floor(matrix, build.cuda)
    if build.cuda == query.CPU:
        yield _of_build(build, "driver", holds=True, text="a CPU build needs no driver")
    elif family is None:
        text = f"the matrix has no driver floor for {cuda_words(build.cuda)}"
        yield Point(about="driver", holds=None, text=text, source="driver families of the matrix", confidence="certain")
    else:
        text = f"{cuda_words(build.cuda)} needs driver {family.floor} or newer (minor-version compatibility)"
        holds = query.driver_supports(matrix, value, build.cuda)
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


def _flash_attn(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    pythons = (pairs["python"],) if "python" in pairs else build.pythons
    fitting = [
        wheel for python in pythons for wheel in query.flash_attn_wheels_for(matrix, build, python, build.platform)
        if _wanted(value, wheel.version)
    ]
    if fitting:
        yield _fitting_wheel(fitting[0])
        yield from _flash_attn_gpu(matrix, fitting[0], pairs)
        return
    known = [wheel for wheel in matrix.flash_attn_wheels if _wanted(value, wheel.version)]
    unread = build.cxx11_abi is None and build.cuda != query.CPU
    if not known or unread:
        text = "nobody read the C++ ABI of this build" if unread else f"the matrix has no row for flash-attn {value}"
        yield Point(about="flash-attn", holds=None, text=text, source="flash-attn in the matrix", confidence="certain")
        return
    yield Point(
        about="flash-attn", holds=False, source=known[0].source, confidence=known[0].confidence,
        text=f"flash-attn {value} has no prebuilt wheel for {_build_words(build, pythons)}; {_wheels_are_for(known)}",
    )


def _fitting_wheel(wheel: FlashAttnWheel) -> Point:
    known = "its sha256 is known" if wheel.sha256 else "its sha256 is not known to the matrix"
    text = f"{wheel.file} fits ({wheel.basis}; {known})"
    return Point(about="flash-attn", holds=True, text=text, source=wheel.source, confidence=wheel.confidence)


def _flash_attn_gpu(matrix: Matrix, wheel: FlashAttnWheel, pairs: Mapping[str, str]) -> Iterator[Point]:
    release = query.flash_attn_release(matrix, wheel.version)
    if "gpu-arch" in pairs and release is not None and release.gpu_archs:
        yield Point(
            about="flash-attn", holds=query.gpu_runs(release.gpu_archs, pairs["gpu-arch"]),
            text=f"wheels of flash-attn {release.version} have code for {', '.join(release.gpu_archs)}",
            source=release.source, confidence=release.confidence,
        )


def _build_words(build: TorchBuild, pythons: tuple[str, ...]) -> str:
    abi = "" if build.cxx11_abi is None else f", {'new' if build.cxx11_abi else 'old'} C++ ABI"
    return f"torch {build.version} ({cuda_words(build.cuda)}{abi}), Python {', '.join(pythons)} on {build.platform}"


def _wheels_are_for(wheels: list[FlashAttnWheel]) -> str:
    """`its wheels are for torch 2.0, 2.1, CUDA tags cu122, Python 3.8, 3.9, linux-64`."""
    def of(name: str) -> str:
        values = {str(getattr(wheel, name)) for wheel in wheels}
        return ", ".join(sorted(values, key=lambda text: (parse_version(text) or Version("0"), text)))

    return (
        f"its wheels are for torch {of('torch_minor')}, CUDA tags {of('cuda_tag')}, Python {of('python')},"
        f" {of('platform')}"
    )


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


def _companion(
    matrix: Matrix, build: TorchBuild, value: str, package: str, books: Books | None
) -> Iterator[Point]:
    rows = [
        row for version in query.companion_versions(matrix, package)
        if _wanted(value, version) and (row := query.companion(matrix, package, version)) is not None
    ]
    if not rows:
        text = f"the matrix has no row for {package} {value}"
        yield Point(about=package, holds=None, text=text, source="companions in the matrix", confidence="certain")
        return
    stated = [row for row in rows if query.companion_fits(row, build) is None]
    against = {row.version: extension_against(books, package, row.version, build) for row in stated}
    fitting = [row for row in stated if against[row.version] is None]
    if stated and not fitting:
        text = f"{package} {stated[0].version} {against[stated[0].version]}"
        yield Point(about=package, holds=False, text=text, source=SYMBOLS, confidence="certain")
        return
    row = (fitting or rows)[0]
    misfit = query.companion_fits(row, build)
    text = misfit or f"{package} {row.version} fits torch {build.version} for {cuda_words(build.cuda)}"
    confidence = row.confidence
    if query.other_minor(row, build):
        text += f": it is built for CUDA {row.cuda}, another minor of the same major, which is accepted"
        confidence = "high" if confidence == "certain" else confidence      # what was read is certain, that it fits not
    yield Point(about=package, holds=misfit is None, text=text, source=row.source, confidence=confidence)


_JUDGES: dict[str, _Judge] = {
    "torch": _torch, "cuda": _cuda, "python": _python, "platform": _platform, "driver": _driver, "gpu-arch": _gpu,
    "flash-attn": _flash_attn, "transformers": _rules,
}
