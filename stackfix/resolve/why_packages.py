"""What the matrix and the symbols say of flash-attn and the companions beside one torch build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.version import Version

from stackfix.abi.records import Books
from stackfix.matrix import query
from stackfix.matrix.records import Companion, FlashAttnWheel, Matrix, TorchBuild
from stackfix.resolve.judged import machine_for, of_release
from stackfix.resolve.limits import SYMBOLS
from stackfix.resolve.pep508 import admits, parse_specifier, parse_version
from stackfix.resolve.records import Point
from stackfix.resolve.stack import cuda_words
from stackfix.resolve.why_pairs import wanted
from stackfix.resolve.why_symbols import release_point


def flash_attn_points(matrix: Matrix, build: TorchBuild, value: str, pairs: Mapping[str, str]) -> Iterator[Point]:
    pythons = (pairs["python"],) if "python" in pairs else build.pythons
    fitting = [
        wheel for python in pythons for wheel in query.flash_attn_wheels_for(matrix, build, python, build.platform)
        if wanted(value, wheel.version)
    ]
    if fitting:
        yield _fitting_wheel(fitting[0])
        yield from _flash_attn_gpu(matrix, fitting[0], pairs)
        return
    known = [wheel for wheel in matrix.flash_attn_wheels if wanted(value, wheel.version)]
    there = any(wheel.platform == build.platform for wheel in known)
    unread = there and build.cxx11_abi is None and build.cuda != query.CPU
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


def companion_points(
    matrix: Matrix, build: TorchBuild, value: str, package: str, books: Books | None
) -> Iterator[Point]:
    rows = [
        row for version in query.companion_versions(matrix, package)
        if wanted(value, version) and (row := query.companion(matrix, package, version)) is not None
    ]
    if not rows:
        text = f"the matrix has no row for {package} {value}"
        yield Point(about=package, holds=None, text=text, source="companions in the matrix", confidence="certain")
        return
    told = {row.version: release_point(books, package, row.version, build) for row in rows}

    def speaks_against(row: Companion) -> int:
        """How many of the two do, matrix and symbols; the first row, which is the newest, wins among equals."""
        return (query.companion_fits(row, build) is not None) + _refutes(told[row.version])

    row = min(rows, key=speaks_against)
    point = told[row.version]
    if point is not None and point.holds is not None:
        yield point
    if not _refutes(point) or query.companion_fits(row, build) is not None:
        yield _companion_point(row, build)


def _refutes(point: Point | None) -> bool:
    return point is not None and point.holds is False


def _companion_point(row: Companion, build: TorchBuild) -> Point:
    """What the matrix says of one row."""
    misfit = query.companion_fits(row, build)
    text = misfit or f"{row.package} {row.version} fits torch {build.version} for {cuda_words(build.cuda)}"
    confidence = row.confidence
    if query.other_minor(row, build):
        text += f": it is built for CUDA {row.cuda}, another minor of the same major, which is accepted"
        confidence = "high" if confidence == "certain" else confidence      # what was read is certain, that it fits not
    return Point(about=row.package, holds=misfit is None, text=text, source=row.source, confidence=confidence)


def extension_points(books: Books, build: TorchBuild, value: str, package: str) -> Iterator[Point]:
    """Of a package that the matrix does not have and whose wheels were read: of its releases the one that fits best.

    What its metadata require of torch decides as well: an installer takes nothing else.
    """
    read = list(dict.fromkeys(wheel.version for wheel in books.judged.of(package)))
    points = [tuple(_release_points(books, build, package, version)) for version in read if wanted(value, version)]
    if points:
        yield from min(points, key=lambda found: (sum(each.holds is False for each in found),
                                                  sum(each.holds is None for each in found)))
    else:
        text = f"nobody read a wheel of {package} {value}; read were those of {', '.join(read)}"
        yield Point(about=package, holds=None, text=text, source=SYMBOLS, confidence="certain")


def _release_points(books: Books, build: TorchBuild, package: str, version: str) -> Iterator[Point]:
    point = release_point(books, package, version, build)
    if point is None:
        text = f"nobody read a wheel of {package} {version} for {build.platform}"
        yield Point(about=package, holds=None, text=text, source=SYMBOLS, confidence="certain")
        return
    yield point
    wheel = of_release(books, package, version, machine_for(build), build)[0].wheel
    specifier = parse_specifier((wheel.declares or "*").removeprefix("*"))
    parsed = parse_version(build.version)
    if specifier and parsed is not None:
        yield Point(about=package, holds=admits(specifier, parsed), source="metadata of the wheel (almanac)",
                    text=f"{package} {version} requires torch{specifier}", confidence="certain")
