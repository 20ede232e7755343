"""The files of a snapshot: the same records give the same bytes."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Sequence

from stackfix.matrix.toml_text import render_toml
from stackfix.snapshot.records import KEYS, Made, Subdir
from stackfix.sources.conda_snapshot import MANIFEST

LEFT_OUT = ("purls",)               # pixi's addition to a lockfile, in no repodata.json
HEADER = ("# The conda records that come with stackfix: docs/channels.md. Made by `nox -s snapshot`; do not edit.", "")
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]


def render_files(made: Made, holes: Sequence[str]) -> dict[str, bytes]:
    """The content of each file by its name."""
    files: dict[str, bytes] = {}
    table: list[dict[str, str | int]] = []
    for subdir in made.subdirs:
        content = render_subdir(subdir)
        name = f"{subdir.name}.xz"
        files[name] = lzma.compress(content, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=FILTERS)
        table.append({"channel": subdir.channel, "subdir": subdir.subdir, "file": name, "records": len(subdir.rows),
                      "sha256": hashlib.sha256(content).hexdigest()})
    files[MANIFEST] = render_toml(HEADER, {
        "date": made.date, "source": made.source, "holes": list(holes), "files": table,
        "inferred": {key: list(value) for key, value in made.inferred.items()},
    }).encode()
    return files


def render_subdir(subdir: Subdir) -> bytes:
    """repodata.json of one subdir: keys sorted, no indentation, a line for each record."""
    document = {"info": {"subdir": subdir.subdir}, "packages": {}, "packages.conda": {}, "repodata_version": 1}
    old, new = (document[key] for key in KEYS)
    for file, row in sorted(subdir.rows.items()):
        kept = {key: value for key, value in row.items() if key not in LEFT_OUT}
        (new if file.endswith(".conda") else old)[file] = kept  # type: ignore[index]
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
