"""Reads pages and metadata from an index, with another process that asks ahead or without, and says what came of it.

A process of its own: one that has threads, as the tests have, is never divided. A JSON object in (url, cache, names,
beside, and what is changed of the settings), one out.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from stackfix.errors import StackfixError
from stackfix.sources import asker as asker_module
from stackfix.sources.asker import Asker, begin_asker, reap
from stackfix.sources.index import PackageIndex
from tests.sources_servers import settings_for


class Counting(Asker):
    """Counts what the other process tells."""

    told: ClassVar[Counter[str]] = Counter()

    def _told(self, number: int, what: str, *rest: Any) -> None:
        self.told[what] += 1
        super()._told(number, what, *rest)


def main() -> None:
    """Does what its input asks."""
    asked = json.load(sys.stdin)
    asker_module.Asker = Counting       # type: ignore[misc]
    asker_module.ARENA = asked.get("arena", asker_module.ARENA)
    settings = settings_for(asked["url"], **asked.get("settings", {}))
    asker = begin_asker(settings, Path(asked["cache"])) if asked["beside"] else None
    asker_module._PATIENCE = asked.get("patience", asker_module._PATIENCE)      # noqa: SLF001
    if asked.get("signal") and asker is not None:
        os.kill(asker._pid, asked["signal"])        # noqa: SLF001
    with PackageIndex(settings, cache_dir=Path(asked["cache"]), offline=False) as index:
        index.ask_by(asker)
        index.prefetch_pages(tuple(asked["names"]))
        if asked.get("stay"):
            sys.stdout.write(f"{0 if asker is None else asker._pid}\n")     # noqa: SLF001
            sys.stdout.flush()
            time.sleep(60)
        if asked.get("at_once"):
            pages = [index.page(name) for name in asked["names"]]
            index.prefetch_metadata(tuple(file for page in pages for version in page.version_strings()
                                          for file in page.files(version)))
        found = {name: about(index, name) for name in asked["names"]}
        answers = sorted(((one.url, one.status, one.packed, one.kind, one.final) for one in index.answers()), key=str)
    reap()
    json.dump({"found": found, "answers": answers, "beside": asker is not None, "told": Counting.told,
               "problem": index.cache.problem}, sys.stdout)


def about(index: PackageIndex, name: str) -> Any:
    """All files of a project with their metadata, or the error."""
    try:
        page = index.page(name)
        files = [file for version in page.version_strings() for file in page.files(version)]
    except StackfixError as fault:
        return f"{fault}\n{fault.next_step()}"
    index.prefetch_metadata(tuple(files))
    return {"versions": page.version_strings(), "files": [[asdict(file), metadata(index, file)] for file in files]}


def metadata(index: PackageIndex, file: Any) -> Any:
    try:
        return asdict(index.metadata(file))
    except StackfixError as fault:
        return f"{fault}\n{fault.next_step()}"


if __name__ == "__main__":
    main()
