"""What is known of the torch wheel index without asking it: `torch_index/<path>.toml` to rows.

Read only where a stack wants a build that the default package index has not. One file name has different bytes on
different paths of that index, so rows belong to a path; `root` are the files that lie above all paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stackfix.matrix.faults import Faults
from stackfix.matrix.records import TorchIndexWheel
from stackfix.matrix.rows import Origins, Row
from stackfix.matrix.toml_files import matrix_directory, parse_file, read_file

FOLDER, ROOT = "torch_index", "root"
_PATH = re.compile(r"cpu|cu\d{2,4}|root")
_LINE = re.compile(
    r"(?P<tags>[A-Za-z0-9_.]+(?:-[A-Za-z0-9_.]+){2,3}) (?P<sha256>[0-9a-f]{64}) (?P<places>[1-9]\d{0,3})"
)
_PLATFORMS = {
    "linux-64": re.compile(r"linux\S*_x86_64 "), "linux-aarch64": re.compile(r"linux\S*_aarch64 "),
    "win-64": re.compile(r"-win_amd64 "), "osx-arm64": re.compile(r"-macosx_\S*_arm64 "),
}
_TORCH = re.compile(r'project = "torch"\nversion = "(?P<release>[^"+]+)(?:\+[^"]*)?"\n')


def load_torch_index(path: str, directory: Path | None = None) -> tuple[TorchIndexWheel, ...]:
    """Rows of one path of the torch index; none where the matrix has no file for it. Raises BadInput for a bad file."""
    place = (matrix_directory() if directory is None else directory) / FOLDER / f"{path}.toml"
    if not _PATH.fullmatch(path) or not place.exists():
        return ()
    return parse_file(
        str(place), read_file(place, (place.name,)), lambda document, faults: parse_torch_index(document, faults, path))


def parse_torch_index(document: dict[str, object], faults: Faults, path: str) -> tuple[TorchIndexWheel, ...]:
    """Wheels in file order."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    source = "; ".join(origins.texts.values())
    wheels: dict[str, TorchIndexWheel] = {}
    for release in top.rows("release"):
        for wheel in _release(release, path, source):
            if wheels.setdefault(wheel.file, wheel) is not wheel:
                release.fault(f"{wheel.file} is given twice")
    top.done()
    return tuple(wheels.values())


def torch_releases(path: str, platform: str, directory: Path | None = None) -> frozenset[str]:
    """Releases of torch with a wheel for a conda platform on one path, as the file's lines say it; quick, unjudged.

    For those that must answer at once: what is faulty in the file is told by `load_torch_index`.
    """
    place = (matrix_directory() if directory is None else directory) / FOLDER / f"{path}.toml"
    if not _PATH.fullmatch(path) or not place.exists():
        return frozenset()
    text = read_file(place, (place.name,)).decode("utf-8", errors="replace").replace("\r\n", "\n")
    line = _PLATFORMS.get(platform)
    found = (_TORCH.match(block) for block in text.split("\n[[release]]\n") if line and line.search(block))
    return frozenset(match["release"] for match in found if match)


def _release(row: Row, path: str, source: str) -> Iterator[TorchIndexWheel]:
    project, version = row.text("project", "name"), row.text("version", "version")
    requires = row.lines("requires", "requirement") if row.has("requires") else None
    for line in row.text("wheels").split("\n"):
        match = _LINE.fullmatch(line)
        if match is not None:
            places = int(match["places"])
            yield TorchIndexWheel(
                file=f"{project.replace('-', '_')}-{version}-{match['tags']}.whl", project=project, version=version,
                path=path, sha256=match["sha256"], requires=requires, source=source,
                confidence="high" if places > 1 else "medium",
            )
        elif line:
            row.fault(f"{line[:120]!r} is no line of tags, sha256 and number of places")
    row.done()
