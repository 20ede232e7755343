"""The matrix files to records.

Loading imports no packaging: versions are compared by `query` and parsed by `deep`; here their form is checked.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from stackfix.errors import BadInput
from stackfix.matrix.faults import Faults
from stackfix.matrix.parse_companions import parse_closures, parse_companions, parse_rules, parse_sources
from stackfix.matrix.parse_cuda import parse_cuda
from stackfix.matrix.parse_flash_attn import parse_flash_attn
from stackfix.matrix.parse_torch import parse_torch
from stackfix.matrix.records import Matrix

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_BYTES = 4 * 1024 * 1024  # the largest file is 60 kB; more than this is not ours
FILES = ("torch.toml", "cuda.toml", "companions.toml", "rules.toml", "flash_attn.toml", "closures.toml", "sources.toml")

Parsed = TypeVar("Parsed")


def matrix_directory() -> Path:
    """Where the matrix lies: inside the installed wheel, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    bundled = package / "_matrices"
    return bundled if bundled.is_dir() else package.parent / "matrices"


def load_matrix(directory: Path | None = None) -> Matrix:
    """All rows of `directory` (default: the matrix that comes with stackfix).

    Raises BadInput about the first file that cannot be read or has faults; it names all faults of that file.
    """
    directory = matrix_directory() if directory is None else directory
    texts = {name: _read(directory / name) for name in FILES}
    digest = hashlib.sha256()
    for name, text in texts.items():
        digest.update(f"{name}\0{len(text)}\0".encode() + text)

    def parsed(name: str, parse: Callable[[dict[str, object], Faults], Parsed]) -> Parsed:
        return parse_file(str(directory / name), texts[name], parse)

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
        directory=str(directory),
        digest=digest.hexdigest(),
    )


def load_closures(directory: Path | None = None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`Matrix.closures` alone: what to fetch first can be asked for while the rest is loaded. Raises BadInput."""
    path = (matrix_directory() if directory is None else directory) / "closures.toml"
    return parse_file(str(path), _read(path), parse_closures)


def parse_file(file: str, content: bytes, parse: Callable[[dict[str, object], Faults], Parsed]) -> Parsed:
    """What `parse` makes of the content. Raises BadInput with every fault it noted."""
    faults = Faults(file)
    rows = parse(parse_toml(file, content), faults)
    faults.raise_if_any()
    return rows


def parse_toml(file: str, content: bytes) -> dict[str, object]:
    """The document. Raises BadInput where it is no TOML."""
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(file, f"not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise BadInput(file, "nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(file, f"not TOML: {error}") from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        hint = "A matrix directory holds " + ", ".join(FILES) + "."
        raise BadInput(str(path), f"cannot be read: {error.strerror or error}", hint) from None
    if len(content) > MAX_BYTES:
        raise BadInput(str(path), f"larger than {MAX_BYTES // 1024} kB")
    return content
