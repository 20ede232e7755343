"""Where the package index and the matrix disagree. Pure over an index given from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stackfix.errors import AnswerIsNo
from stackfix.matrix import query
from stackfix.matrix.index_view import (
    F,
    Release,
    SeenIndex,
    glibc_of,
    macos_of,
    platforms_of,
    pythons_of,
    releases_of,
    requires_dist_of,
)
from stackfix.matrix.records import Companion, Drift, Matrix, TorchBuild
from stackfix.matrix.requirement_lines import component_pins, requirements_for_python, requirements_on
from stackfix.matrix.rows import PLATFORMS

COMPANIONS = ("torchvision", "torchaudio", "xformers", "triton", "vllm")
STACK = frozenset({*COMPANIONS, "transformers", "vllm-flash-attn", "flash-attn"})
PROJECTS = ("torch", *COMPANIONS, "cuda-toolkit", "flash-attn")
NEWEST = 3          # releases per project whose metadata is read again; None reads all of them

Releases = Mapping[Version, Release[F]]


def find_drift(matrix: Matrix, index: SeenIndex[F], *, newest: int | None = NEWEST) -> tuple[Drift, ...]:
    """Drift in the order of PROJECTS, newest releases first.

    Pages are compared whole; metadata is read of releases that the matrix lacks and of the `newest` that it has.
    Raises Unreachable. A file that cannot be read is a drift of its own.
    """
    index.prefetch_pages(PROJECTS)
    pages = {name: _releases(index, name) for name in PROJECTS}
    _prefetch(index, pages, newest)
    found = list(_torch_drift(matrix, index, pages["torch"], newest))
    for name in COMPANIONS:
        found.extend(_companion_drift(matrix, index, name, pages[name], newest))
    found.extend(_toolkit_drift(matrix, index, pages["cuda-toolkit"], newest))
    found.extend(_flash_attn_drift(matrix, pages["flash-attn"]))
    return tuple(found)


def _releases(index: SeenIndex[F], name: str) -> Releases[F]:
    try:
        return releases_of(index.page(name))
    except AnswerIsNo:
        return {}


def _prefetch(index: SeenIndex[F], pages: Mapping[str, Releases[F]], newest: int | None) -> None:
    files: list[F] = []
    for name in PROJECTS:
        for release in _newest(pages[name], newest):
            for platform in PLATFORMS if name == "torch" else PLATFORMS[:1]:
                files.extend(release.wheels(platform)[: None if name == "torch" else 1])
    index.prefetch_metadata(tuple(files))


def _newest(releases: Releases[F], count: int | None) -> list[Release[F]]:
    return sorted(releases.values(), key=lambda release: release.version, reverse=True)[:count]


def _presence(project: str, known: set[Version], releases: Releases[F]) -> Iterator[Drift]:
    """New and gone releases; older ones than the oldest known are left alone."""
    oldest = min(known, default=Version("0"))
    for version in sorted(known | set(releases), reverse=True):
        release = releases.get(version)
        if release is None:
            yield _drift(project, version, "gone", known="a row", found=None)
        elif version not in known and version > oldest and not release.yanked:
            yield _drift(project, version, "new-release", known=None, found=f"{len(release.files)} files")


def _yanked(project: str, versions: set[Version], releases: Releases[F]) -> Iterator[Drift]:
    for version in sorted(versions & set(releases), reverse=True):
        if releases[version].yanked:
            yield _drift(project, version, "yanked", known="not yanked", found="yanked")


def _torch_drift(matrix: Matrix, index: SeenIndex[F], releases: Releases[F], newest: int | None) -> Iterator[Drift]:
    rows = query.builds(matrix, index=query.DEFAULT_INDEX)
    known = {Version(row.version) for row in rows}
    yield from _presence("torch", known, releases)
    yield from _yanked("torch", known, releases)
    again = {release.version for release in _newest(releases, newest)}
    for row in rows:
        release = releases.get(Version(row.version))
        if release is None:
            continue
        yield from _build_drift(row, release)
        if release.version in again:
            yield from _requires_drift(index, row, release)
    yield from _new_platforms(rows, releases)


def _build_drift(row: TorchBuild, release: Release[F]) -> Iterator[Drift]:
    wheels = release.wheels(row.platform)
    if not wheels:
        yield _drift("torch", release.version, "platform", known=row.platform, found=None)
        return
    file = wheels[0].filename
    pythons = pythons_of(wheel.filename for wheel in wheels)
    if pythons != row.pythons:
        known, found = (f"{row.platform}: {' '.join(words)}" for words in (row.pythons, pythons))
        yield _drift("torch", release.version, "pythons", known=known, found=found, file=file)
    glibc, macos = glibc_of(file), macos_of(wheel.filename for wheel in wheels)
    if glibc != row.glibc:
        yield _drift("torch", release.version, "glibc", known=row.glibc, found=glibc, file=file)
    if macos != row.macos:
        yield _drift("torch", release.version, "macos", known=row.macos, found=macos, file=file)


def _new_platforms(rows: tuple[TorchBuild, ...], releases: Releases[F]) -> Iterator[Drift]:
    known: dict[Version, set[str]] = {}
    for row in rows:
        known.setdefault(Version(row.version), set()).add(row.platform)
    for version, platforms in known.items():
        wheels = releases[version].wheels() if version in releases else ()
        for platform in sorted({name for wheel in wheels for name in platforms_of(wheel.filename)} - platforms):
            yield _drift("torch", version, "platform", known=None, found=platform)


def _requires_drift(index: SeenIndex[F], row: TorchBuild, release: Release[F]) -> Iterator[Drift]:
    """The first wheel of the row's platform that says something else; each Python's is read."""
    for wheel in release.wheels(row.platform):
        for python in pythons_of([wheel.filename]):
            lines = requires_dist_of(index, wheel)
            if lines is None:
                yield _drift("torch", release.version, "unreadable", known=None, found=None, file=wheel.filename)
                return
            known, found = (requirements_for_python(one, python, row.platform) for one in (row.requires, lines))
            if known != found:
                yield _drift(
                    "torch", release.version, "requires", known=_listed(known - found), found=_listed(found - known),
                    file=wheel.filename,
                )
                return


def _companion_drift(
    matrix: Matrix, index: SeenIndex[F], name: str, releases: Releases[F], newest: int | None
) -> Iterator[Drift]:
    rows = {Version(row.version): row for row in matrix.companions if row.package == name}
    yield from _presence(name, set(rows), {version: kept for version, kept in releases.items() if kept.wheels()})
    yield from _yanked(name, {version for version, row in rows.items() if "yanked" not in row.source}, releases)
    for release in _newest({version: kept for version, kept in releases.items() if version in rows}, newest):
        wheels = release.wheels("linux-64")
        lines = requires_dist_of(index, wheels[0]) if wheels else None
        if lines is not None:
            yield from _changed_companion(rows[release.version], release.version, lines, wheels[0].filename)
        elif wheels:
            yield _drift(name, release.version, "unreadable", known=None, found=None, file=wheels[0].filename)


def _changed_companion(row: Companion, version: Version, lines: tuple[str, ...], file: str) -> Iterator[Drift]:
    torch = torch_specifier(lines)
    if SpecifierSet(torch or "") != SpecifierSet(row.torch or ""):
        yield _drift(row.package, version, "torch", known=row.torch, found=torch, file=file)
    known, found = requirements_on(row.requires, STACK), requirements_on(lines, STACK)
    if known != found:
        yield _drift(
            row.package, version, "requires", known=_listed(known - found), found=_listed(found - known), file=file
        )


def torch_specifier(lines: tuple[str, ...]) -> str | None:
    """The specifier that requirements state for torch, without extras; None where they state none."""
    for line in sorted(requirements_on(lines, frozenset({"torch"})), key=len):
        return str(Requirement(line).specifier) or None
    return None


def _toolkit_drift(matrix: Matrix, index: SeenIndex[F], releases: Releases[F], newest: int | None) -> Iterator[Drift]:
    rows: dict[Version, dict[str, str]] = {}
    for component in matrix.components:
        rows.setdefault(Version(component.toolkit), {})[component.package] = component.version
    finals = {version for version in rows if not version.is_prerelease}
    yield from _presence("cuda-toolkit", finals, releases)
    for release in _newest({version: kept for version, kept in releases.items() if version in rows}, newest):
        wheels = release.wheels()
        lines = requires_dist_of(index, wheels[0]) if wheels else None
        if lines is None:
            yield _drift("cuda-toolkit", release.version, "unreadable", known=None, found=None)
            continue
        known, found = set(rows[release.version].items()), set(component_pins(lines).items())
        if known != found:
            yield _drift(
                "cuda-toolkit", release.version, "components",
                known=_listed({f"{name} {version}" for name, version in known - found}),
                found=_listed({f"{name} {version}" for name, version in found - known}),
                file=wheels[0].filename,
            )


def _flash_attn_drift(matrix: Matrix, releases: Releases[F]) -> Iterator[Drift]:
    rows = {Version(row.version): row for row in matrix.flash_attn}
    oldest = min(rows, default=Version("0"))
    for version in sorted(set(rows) | set(releases), reverse=True):
        release, row = releases.get(version), rows.get(version)
        on_index = release is not None and release.sdist and not release.yanked
        if row is None and version > oldest and on_index:
            yield _drift("flash-attn", version, "new-release", known=None, found="an sdist")
        elif row is not None and row.sdist != on_index:
            known, found = ("an sdist" if there else "no sdist" for there in (row.sdist, on_index))
            yield _drift("flash-attn", version, "sdist", known=known, found=found)


def _drift(
    project: str, version: Version, kind: str, *, known: str | None, found: str | None, file: str | None = None
) -> Drift:
    return Drift(project=project, version=str(version), kind=kind, known=known, found=found, file=file)


def _listed(texts: set[str] | frozenset[str]) -> str | None:
    return ", ".join(sorted(texts)) or None
