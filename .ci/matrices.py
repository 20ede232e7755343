"""The matrix written anew from the package index, and what disagrees with it.

Drift goes to stdout, one line each; the files that change are named on stderr. Exit 1 where something was found that
needs a person (`nox -s matrices` says so), 0 where the matrix and the index agree.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from stackfix.errors import StackfixError
from stackfix.matrix.regenerate import regenerate, write_matrix
from stackfix.report.matrix import drift_lines
from stackfix.sources.index import PackageIndex
from stackfix.sources.settings import read_settings

MATRICES = Path(__file__).resolve().parent.parent / "matrices"


def main() -> int:
    """Exit status."""
    settings = read_settings(index_url=None, extra_index_urls=(), environ=os.environ, home=Path.home())
    with tempfile.TemporaryDirectory() as cache, PackageIndex(settings, cache_dir=Path(cache), offline=False) as index:
        found = regenerate(MATRICES, index)
    sys.stdout.write("".join(f"{line}\n" for line in drift_lines(found.drift)))
    changed = {name: text for name, text in found.texts.items() if text != (MATRICES / name).read_text("utf-8")}
    write_matrix(MATRICES, changed)
    for name in changed:
        sys.stderr.write(f"written: {name}; read the difference before you commit it\n")
    return 1 if found.drift else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StackfixError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_status)
