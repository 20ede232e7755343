"""The matrix files to records.

Loading imports no packaging: versions are compared by `query` and parsed by `deep`; here their form is checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackfix.matrix.parsed import parsed_once
from stackfix.matrix.records import Matrix
from stackfix.matrix.toml_files import FILES, MAX_BYTES, Parsed, matrix_directory, parse_file, parse_toml, read_file

if TYPE_CHECKING:
    from stackfix.matrix.faults import Faults

__all__ = ["FILES", "MAX_BYTES", "load_closures", "load_matrix", "matrix_directory", "parse_file", "parse_toml"]


def load_matrix(directory: Path | None = None) -> Matrix:
    """All rows of `directory` (default: the matrix that comes with stackfix).

    Raises BadInput about the first file that cannot be read or has faults; it names all faults of that file.
    """
    directory = matrix_directory() if directory is None else directory
    texts = {name: read_file(directory / name, FILES) for name in FILES}
    digest = hashlib.sha256()
    for name, text in texts.items():
        digest.update(f"{name}\0{len(text)}\0".encode() + text)

    def parsed(name: str, parse: Callable[[dict[str, object], Faults], Parsed]) -> Parsed:
        return parse_file(str(directory / name), texts[name], parse)

    def whole() -> Matrix:
        return _matrix(parsed, directory, digest.hexdigest())

    if directory != matrix_directory():
        return whole()
    return parsed_once("matrix", f"{digest.hexdigest()} {directory}", whole)


def _matrix(parsed: Callable[..., Any], directory: Path, digest: str) -> Matrix:
    from stackfix.matrix.frameworks import parse_frameworks
    from stackfix.matrix.parse_companions import parse_closures, parse_companions, parse_rules, parse_sources
    from stackfix.matrix.parse_cuda import parse_cuda
    from stackfix.matrix.parse_flash_attn import parse_flash_attn
    from stackfix.matrix.parse_torch import parse_torch

    cuda = parsed("cuda.toml", parse_cuda)
    flash = parsed("flash_attn.toml", parse_flash_attn)
    return Matrix(
        torch=parsed("torch.toml", parse_torch),
        components=cuda.components,
        companions=parsed("companions.toml", parse_companions),
        rules=parsed("rules.toml", parse_rules),
        flash_attn=flash.releases,
        flash_attn_wheels=flash.wheels,
        driver_families=cuda.families,
        toolkit_drivers=cuda.drivers,
        closures=parsed("closures.toml", parse_closures),
        sources=parsed("sources.toml", parse_sources),
        frameworks=parsed("frameworks.toml", parse_frameworks),
        directory=str(directory),
        digest=digest,
    )


def load_closures(directory: Path | None = None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`Matrix.closures` alone: what to fetch first can be asked for while the rest is loaded. Raises BadInput."""
    from stackfix.matrix.parse_companions import parse_closures

    path = (matrix_directory() if directory is None else directory) / "closures.toml"
    return parse_file(str(path), read_file(path, FILES), parse_closures)
