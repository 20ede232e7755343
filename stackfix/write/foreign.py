"""Files in the place of a lockfile that `stackfix lock` did not write: they are not overwritten unasked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.write.read import read_text, variant_of
from stackfix.write.records import PlannedFile
from stackfix.write.requirements import FIRST_WORDS

PROOF_KIND, HEAD = '"kind": "stackfix stack proof"', 200     # how a proof begins (prove/proof_text.py)
HINT = "write elsewhere with -o DIR or --name NAME, or replace it with --overwrite"


def refuse_foreign(directory: Path, names: Iterable[str]) -> None:
    """Raises BadInput for the first of `names` that is there and holds something that is no lock of ours."""
    for name in names:
        path = directory / name
        if path.is_file() and not is_ours(path):
            raise BadInput(str(path), "was not written by stackfix and would be overwritten", HINT)


def is_ours(path: Path) -> bool:
    """Whether the file says that stackfix wrote it, or says nothing at all: nobody misses blanks and comments."""
    try:
        text = read_text(path)
    except BadInput:
        return False            # larger than any lock, or no text
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        return True
    if path.suffix == ".json":
        return PROOF_KIND in text[:HEAD]
    return pylock_is_ours(text) if path.suffix == ".toml" else any(
        line.startswith(f"# {FIRST_WORDS} ") for line in header(text))


def header(text: str) -> list[str]:
    """The leading comment lines."""
    lines = text.splitlines()
    return lines[:next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))]


def pylock_is_ours(text: str) -> bool:
    """Whether `created-by` is stackfix."""
    return parse_pylock(text).get("created-by") == "stackfix"


def refuse_another(directory: Path, files: Iterable[PlannedFile]) -> None:
    """Raises BadInput where a pylock is there of another lock: `pylock.cpu.toml` is of a variant, or of a name."""
    for file in files:
        if not file.path.endswith("cpu.toml"):
            continue
        path = directory / file.path
        there, planned = read_pylock(path), parse_pylock(file.text)
        if there and variant_of(there) != variant_of(planned):
            holds = "the CPU build of the lock without that name" if variant_of(there) else "the lock of that name"
            raise BadInput(str(path), f"holds {holds} and would be overwritten", HINT)


def read_pylock(path: Path) -> dict[str, object]:
    """The parsed file; empty where it is none, or cannot be read."""
    try:
        return parse_pylock(read_text(path)) if path.is_file() else {}
    except BadInput:
        return {}


def parse_pylock(text: str) -> dict[str, object]:
    """The parsed text; empty where it is no TOML."""
    from stackfix.write.toml import loads

    try:
        return loads(text)
    except (ValueError, RecursionError):      # TOMLDecodeError, or a number that int() refuses
        return {}

