"""`python -m stackfix.snapshot --from DIR|--live --make|--check`: makes `matrices/conda`, or compares it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from stackfix.errors import AnswerIsNo, StackfixError
from stackfix.matrix.toml_files import matrix_directory
from stackfix.snapshot.holes import holes_of
from stackfix.snapshot.pack import render_files
from stackfix.snapshot.read import read_folder

SOURCE = "conda records as public lockfiles state them"


def main(words: Sequence[str] | None = None) -> int:
    """Exit status: 0, or that of the one error, which is told on stderr."""
    parser = argparse.ArgumentParser(prog="python -m stackfix.snapshot", description=__doc__)
    parser.add_argument("--from", dest="folder", metavar="DIR", type=Path, required=True)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--into", metavar="DIR", type=Path, default=matrix_directory() / "conda")
    asked = parser.parse_args(words)
    try:
        made = read_folder(asked.folder, SOURCE)
        files = render_files(made, holes_of(made))
        if asked.make:
            asked.into.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (asked.into / name).write_bytes(content)
        else:
            different = [name for name, content in files.items() if (asked.into / name).read_bytes() != content]
            if different:
                raise AnswerIsNo(f"{', '.join(different)} would be different")
    except StackfixError as error:
        sys.stderr.write(f"error: {error.what()}\n")
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
