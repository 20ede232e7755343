"""`[[wheel]]` manifests: which wheels a part of the almanac is made of, each by its file name and its hash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from stackfix.almanac.records import ManifestWheel
from stackfix.errors import BadInput
from stackfix.matrix.faults import Faults
from stackfix.matrix.rows import Row
from stackfix.matrix.toml_files import parse_toml, read_file
from stackfix.matrix.toml_text import render_toml

HINT = "Correct the rows named; docs/almanac.md says how a manifest is written."


def read_manifest(path: Path) -> tuple[ManifestWheel, ...]:
    """The wheels of a manifest, as they stand in it. Raises BadInput with every fault."""
    return parse_manifest(str(path), read_file(path, (path.name,)))


def parse_manifest(file: str, content: bytes) -> tuple[ManifestWheel, ...]:
    """The wheels of a manifest's text. Raises BadInput with every fault, each with its row."""
    faults = Faults(file)
    document = Row(parse_toml(file, content), "", faults)
    wheels = tuple(_wheel(row) for row in document.rows("wheel", "file"))
    document.done()
    if not faults.found:
        _refuse_twice(wheels, faults)
        if not faults.found and list(wheels) != in_order(wheels):
            faults.add("wheel", "the rows are not sorted by package, version and file")
    if faults.found:
        raise BadInput(file, "; ".join(faults.found), HINT)
    return wheels


def render_manifest(header: Sequence[str], wheels: Iterable[ManifestWheel]) -> str:
    """The text of a manifest, sorted. `header`: its comment lines."""
    rows = [{"package": each.package, "version": each.version, "file": each.file, "sha256": each.sha256}
            for each in in_order(wheels)]
    return render_toml(header, {"wheel": rows})


def in_order(wheels: Iterable[ManifestWheel]) -> list[ManifestWheel]:
    """By package, version and file."""
    from packaging.version import Version

    return sorted(wheels, key=lambda each: (each.package, Version(each.version), each.file))


def name_fault(wheel: ManifestWheel) -> str | None:
    """Why the file's name is no wheel's of this package and version; None where it is one's."""
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
    from packaging.version import InvalidVersion, Version

    try:
        name, version, _, _ = parse_wheel_filename(wheel.file)
        stated = Version(wheel.version)
    except (InvalidWheelFilename, InvalidVersion) as error:
        return " ".join(str(error).split())
    if canonicalize_name(wheel.package) != wheel.package:
        return f"package {wheel.package!r} is not written {canonicalize_name(wheel.package)!r}"
    if name != wheel.package:
        return f"the file is of {name}, not of {wheel.package}"
    return None if version == stated else f"the file is of version {version}, not {wheel.version}"


def _wheel(row: Row) -> ManifestWheel:
    wheel = ManifestWheel(package=row.text("package", "name"), version=row.text("version", "version"),
                          file=row.text("file"), sha256=row.text("sha256", "sha256"))
    row.done()
    if wheel.package and wheel.version and wheel.file:
        fault = name_fault(wheel)
        if fault:
            row.fault(fault)
    return wheel


def _refuse_twice(wheels: Sequence[ManifestWheel], faults: Faults) -> None:
    """One hash under two names would be one store entry for two wheels."""
    files, hashes = set[str](), set[str]()
    for each in wheels:
        if each.file in files:
            faults.add(f"wheel {each.file}", "stands there twice")
        elif each.sha256 in hashes:
            faults.add(f"wheel {each.file}", "has the hash of another row")
        files.add(each.file)
        hashes.add(each.sha256)


__all__ = ["in_order", "name_fault", "parse_manifest", "read_manifest", "render_manifest"]
