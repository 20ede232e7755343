"""Where the matrix files lie, and how one of them is read. Imports neither packaging nor any of the parsers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from stackfix.errors import BadInput

if TYPE_CHECKING:
    from stackfix.matrix.faults import Faults

FILES = ("torch.toml", "cuda.toml", "companions.toml", "rules.toml", "flash_attn.toml", "closures.toml", "sources.toml",
         "frameworks.toml")
MAX_BYTES = 4 * 1024 * 1024  # the largest file is 60 kB; more than this is not ours

Parsed = TypeVar("Parsed")


def matrix_directory() -> Path:
    """Where the matrix lies: inside the installed wheel, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    bundled = package / "_matrices"
    return bundled if bundled.is_dir() else package.parent / "matrices"


def parse_file(file: str, content: bytes, parse: Callable[[dict[str, object], Faults], Parsed]) -> Parsed:
    """What `parse` makes of the content. Raises BadInput with every fault it noted."""
    from stackfix.matrix.faults import Faults

    faults = Faults(file)
    rows = parse(parse_toml(file, content), faults)
    faults.raise_if_any()
    return rows


def parse_toml(file: str, content: bytes) -> dict[str, object]:
    """The document. Raises BadInput where it is no TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(file, f"not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise BadInput(file, "nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(file, f"not TOML: {error}") from None


def own_or_ours(directory: Path | None, name: str) -> Path:
    """The file in `directory`; ours where none is named, or where a copy of the matrix from before has no such file."""
    ours = matrix_directory() / name
    return ours if directory is None or not (directory / name).exists() else directory / name


def read_file(path: Path, expected: Iterable[str]) -> bytes:
    """The content of a file in a folder that should hold the files `expected`. Raises BadInput."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        hint = "A matrix directory holds " + ", ".join(expected) + "."
        raise BadInput(str(path), f"cannot be read: {error.strerror or error}", hint) from None
    if len(content) > MAX_BYTES:
        raise BadInput(str(path), f"larger than {MAX_BYTES // 1024} kB")
    return content
