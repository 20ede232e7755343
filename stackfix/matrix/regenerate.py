"""The matrix files written anew from the index: what it says is taken over, what is kept by hand stays.

A release that is new to the matrix gets what the index says and low confidence; its C++ ABI, GPU architectures and, for
companions, CUDA stay unread. Releases that are gone or yanked are only reported: somebody must look at those.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stackfix.matrix.drift import find_drift
from stackfix.matrix.index_view import (
    F,
    SeenIndex,
)
from stackfix.matrix.load import load_matrix, parse_toml
from stackfix.matrix.records import Drift
from stackfix.matrix.take_over import drop_unused_pins, take_over
from stackfix.matrix.toml_text import header_of, render_toml

WRITTEN = ("torch.toml", "cuda.toml", "companions.toml", "flash_attn.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Regenerated:
    """New text of each file that changes, and all drift that was found (also what was not taken over)."""

    texts: Mapping[str, str]
    drift: tuple[Drift, ...]


def regenerate(directory: Path, index: SeenIndex[F]) -> Regenerated:
    """What the files of `directory` should say. The same index state gives the same texts; nothing is written."""
    matrix = load_matrix(directory)
    drift = find_drift(matrix, index, newest=None)
    contents = {name: (directory / name).read_bytes() for name in WRITTEN}
    documents: dict[str, dict[str, Any]] = {
        name: parse_toml(str(directory / name), content) for name, content in contents.items()
    }
    # A torch release may be pinned to a toolkit release that is as new as itself: toolkits come first.
    for change in sorted(drift, key=lambda change: change.project != "cuda-toolkit"):
        take_over(documents, change, index)
    drop_unused_pins(documents["torch.toml"])
    texts = {}
    for name, content in contents.items():
        old = content.decode("utf-8")
        text = render_toml(header_of(old), documents[name])
        if text != old:
            texts[name] = text
    return Regenerated(texts=texts, drift=drift)


def write_matrix(directory: Path, texts: Mapping[str, str]) -> None:
    """The texts in their files; each is replaced whole. A copy that would not load is refused before the first."""
    with tempfile.TemporaryDirectory(dir=directory, prefix=".matrix-") as scratch:
        copy = Path(scratch)
        for path in directory.glob("*.toml"):
            (copy / path.name).write_bytes(path.read_bytes())
        for name, text in texts.items():
            (copy / name).write_text(text, encoding="utf-8", newline="\n")
        load_matrix(copy)
        for name in texts:
            os.replace(copy / name, directory / name)
