"""The matrix as a table, as documents, and the reasons why a combination fits or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from stackfix.matrix import query
from stackfix.matrix.records import Drift, Matrix, TorchBuild
from stackfix.platforms import LINUX, split_place
from stackfix.resolve.records import Point, Verdict

LibraryNeeds = Callable[[TorchBuild], Iterable[Point]]

HEADINGS = (
    "torch", "CUDA", "index", "platform", "Pythons", "C++ ABI", "cuDNN", "nvJitLink", "NCCL", "flash-attn", "driver",
)

VERDICTS = {True: "fits", False: "does not fit", None: "cannot tell"}
MARKS = {True: "yes", False: "no ", None: "?  "}


def show_rows(matrix: Matrix, wanted: Mapping[str, str]) -> list[TorchBuild]:
    """Builds that meet `wanted` (torch, cuda, platform, python, index), newest first.

    Without an index those of the default one; for the CPU on one platform what a lock takes, that index's or another's.
    """
    found = _meeting(matrix, wanted)
    if "index" in wanted:
        return [build for build in found if build.index == wanted["index"]]
    if split_place(wanted.get("platform", ""))[1]:
        return list({build.version: build for build in reversed(found)}.values())[::-1]
    return [build for build in found if build.index == query.DEFAULT_INDEX]


def other_indexes(matrix: Matrix, wanted: Mapping[str, str]) -> list[str]:
    """Other indexes with builds that meet `wanted`, where no index and no variant of a platform is named."""
    if "index" in wanted or split_place(wanted.get("platform", ""))[1]:
        return []
    return sorted({build.index for build in _meeting(matrix, wanted)} - {query.DEFAULT_INDEX})


def _meeting(matrix: Matrix, wanted: Mapping[str, str]) -> list[TorchBuild]:
    """Builds of any index that meet the rest of `wanted`: of one release, those of the default index first."""
    from packaging.specifiers import SpecifierSet

    from stackfix.request.values import check_cuda, check_platform, check_python
    from stackfix.request.versions import version_specifier

    torch = SpecifierSet(version_specifier(wanted["torch"], "torch=")) if "torch" in wanted else None
    cuda = check_cuda(wanted["cuda"], "cuda=") if "cuda" in wanted else None
    python = check_python(wanted["python"], "python=") if "python" in wanted else None
    place = check_platform(wanted["platform"], "platform=") if "platform" in wanted else None
    return [
        build
        for build in (query.builds(matrix) if place is None else query.builds_on(matrix, place))
        if (torch is None or torch.contains(build.version, prereleases=True))
        and (cuda is None or query.cuda_matches(cuda, build.cuda))
        and (python is None or python in build.pythons)
    ]


def newest_flash_attn(matrix: Matrix, build: TorchBuild) -> str | None:
    """Newest flash-attn release with a wheel for any Python of the build, or None."""
    from packaging.version import Version

    found = {
        wheels[0].version
        for python in build.pythons
        if (wheels := query.flash_attn_wheels_for(matrix, build, python, build.platform))
    }
    return max(found, key=Version) if found else None


def show_document(matrix: Matrix, wanted: Mapping[str, str], needs: LibraryNeeds | None = None) -> dict[str, Any]:
    """`matrix show --json`: one entry a build, with source and confidence.

    `needs` tells what the build's libraries need of one another by their symbols; its answers are `library_needs`.
    """
    return {"builds": [
        {**build_document(matrix, build), **({"library_needs": list(map(asdict, needs(build)))} if needs else {})}
        for build in show_rows(matrix, wanted)
    ]}


def build_document(matrix: Matrix, build: TorchBuild) -> dict[str, Any]:
    """One build with what the matrix says of its stack."""
    floor = query.driver_floor(matrix, build.cuda, build.platform)
    return {
        "torch": build.version, "cuda": build.cuda, "index": build.index, "platform": build.platform,
        "pythons": list(build.pythons), "cxx11_abi": build.cxx11_abi, "gpu_archs": list(build.gpu_archs),
        "cudnn": build.cudnn, "nccl": build.nccl, "toolkit": build.toolkit, "nvjitlink": nvjitlink(matrix, build),
        "flash_attn": newest_flash_attn(matrix, build), "driver_min": floor.floor if floor else None,
        "source": build.source, "confidence": build.confidence,
    }


def nvjitlink(matrix: Matrix, build: TorchBuild) -> str | None:
    """nvJitLink of the build's toolkit release, whatever the package is called in its CUDA major."""
    if build.toolkit is None:
        return None
    major = build.toolkit.partition(".")[0]
    return query.component_version(matrix, build.toolkit, f"nvidia-nvjitlink-cu{major}") or query.component_version(
        matrix, build.toolkit, "nvidia-nvjitlink"
    )


def show_lines(matrix: Matrix, wanted: Mapping[str, str], needs: LibraryNeeds | None = None) -> Iterator[str]:
    """The table as aligned text, then what `needs` tells of its builds, each thing once."""
    builds, others = show_rows(matrix, wanted), other_indexes(matrix, wanted)
    if builds:
        yield from aligned([HEADINGS, *(table_row(matrix, build) for build in builds)])
    else:
        yield f"no build of the {'default index' if others else 'matrix'} meets this"
    if others and (not builds or {"torch", "platform"} <= wanted.keys()):
        yield f"builds of the torch index, by index=…: {', '.join(others)}"
    told = [point for build in builds for point in needs(build)] if needs is not None else []
    for point in dict.fromkeys(told):
        yield f"{MARKS[point.holds]} {point.text} [{point.source}; confidence {point.confidence}]"


def table_row(matrix: Matrix, build: TorchBuild) -> tuple[str, ...]:
    """One build as cells."""
    entry = build_document(matrix, build)
    abi = {True: "new", False: "old", None: "?" if build.platform in LINUX else "-"}[build.cxx11_abi]
    pythons = f"{build.pythons[0]}-{build.pythons[-1]}" if len(build.pythons) > 1 else "".join(build.pythons)
    cells = (
        build.version, build.cuda, build.index, build.platform, pythons, abi, build.cudnn, entry["nvjitlink"],
        build.nccl, entry["flash_attn"], entry["driver_min"],
    )
    return tuple(cell or "-" for cell in cells)


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells in columns, two blanks apart."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def drift_document(found: Sequence[Drift]) -> dict[str, Any]:
    """`matrix check --json`: each place where the index and the matrix disagree."""
    return {"drift": [asdict(drift) for drift in found]}


def drift_lines(found: Sequence[Drift]) -> Iterator[str]:
    """The disagreements, one a line."""
    for drift in found:
        seen = f" ({drift.file})" if drift.file else ""
        yield (
            f"{drift.project} {drift.version}: {drift.kind}: the matrix says {drift.known or 'nothing'}, "
            f"the index says {drift.found or 'nothing'}{seen}"
        )
    yield f"{len(found)} places differ" if found else "the matrix and the index agree where both could be read"


def why_document(verdict: Verdict) -> dict[str, Any]:
    """`matrix why --json`: the verdict ("fits", "does not fit", "cannot tell"), the build it judged, each reason."""
    build = verdict.build
    return {
        "verdict": VERDICTS[verdict.fits],
        "combination": dict(verdict.combination),
        "build": None if build is None else {
            "torch": build.version, "cuda": build.cuda, "platform": build.platform, "index": build.index,
        },
        "points": [asdict(point) for point in verdict.points],
    }


def why_lines(verdict: Verdict) -> Iterator[str]:
    """The verdict, then each reason with its source and confidence."""
    combination = ", ".join(f"{key} {value}" for key, value in verdict.combination)
    yield f"{combination}: {VERDICTS[verdict.fits]}"
    if verdict.build is not None:
        build = verdict.build
        cuda = "CPU build" if build.cuda == query.CPU else f"CUDA {build.cuda}"
        yield f"judged: torch {build.version}, {cuda}, {build.platform}, {build.index} index"
    for point in verdict.points:
        yield f"  {MARKS[point.holds]} {point.text} [{point.source}; confidence {point.confidence}]"
