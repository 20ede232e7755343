"""The part of the matrix that a check of an environment asks for: companions and rules. The other parsers stay out."""

from __future__ import annotations

from pathlib import Path

from stackfix.matrix.parse_companions import parse_companions, parse_rules
from stackfix.matrix.records import Needs
from stackfix.matrix.toml_files import FILES, matrix_directory, parse_file, read_file


def load_needs(directory: Path | None = None) -> Needs:
    """Companions and rules of `directory` (default: the matrix that comes with stackfix). Raises BadInput."""
    directory = matrix_directory() if directory is None else directory
    companions, rules = directory / "companions.toml", directory / "rules.toml"
    return Needs(companions=parse_file(str(companions), read_file(companions, FILES), parse_companions),
                 rules=parse_file(str(rules), read_file(rules, FILES), parse_rules))
