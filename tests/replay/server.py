"""Runs the loopback index: `with ReplayServer(...) as index`, or `python -m tests.replay.server` for a benchmark."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.replay.http import HttpServer
from tests.replay.index import ABSENT, ADVERTISED, UNADVERTISED, LoopbackIndex
from tests.replay.live import LiveIndex
from tests.replay.store import Store

if TYPE_CHECKING:
    from typing_extensions import Self


class ReplayServer:
    """The loopback index while the block runs. `url` is what `--index-url` takes."""

    def __init__(self, store: Store, *, port: int = 0, **how: Any) -> None:
        self.index = LoopbackIndex(store=store, **how)
        self._http = HttpServer(self.index, port=port)

    def __enter__(self) -> Self:
        self._http.__enter__()
        self.index.base = self._http.url
        return self

    def __exit__(self, *_: object) -> None:
        self._http.__exit__()

    @property
    def url(self) -> str:
        return f"{self._http.url}/simple"

    @property
    def requests(self) -> list[tuple[str, str, str]]:
        """Each request so far: method, path, Range."""
        return self.index.requests

    def join(self) -> None:
        self._http.join()


def open_store(folder: Path, *, live: bool) -> Store:
    """The recordings in `folder`, completed from the live index where `live`."""
    return Store(folder, LiveIndex() if live else None)


def main() -> int:
    """Serves until killed; prints its address first."""
    parser = argparse.ArgumentParser(prog="python -m tests.replay.server", description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--live", action="store_true", help="ask the live index for what is not recorded, once")
    parser.add_argument("--metadata", choices=(ADVERTISED, UNADVERTISED, ABSENT), default=UNADVERTISED)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds added to each request")
    parser.add_argument("--cache-headers", action="store_true")
    parser.add_argument("--compress", action="store_true", help="gzip pages for clients that take it")
    parser.add_argument("--html-only", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    options = vars(parser.parse_args())
    store = open_store(options.pop("store"), live=options.pop("live"))
    with ReplayServer(store, **options) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        server.join()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
