"""The torch wheel index: its pages where they can be read, else what the matrix knows of its files.

What a lock writes is the official address of a file, wherever the page was read. A page wins over the matrix on which
files there are; where both state a hash of one file, and not the same, neither is believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

from stackfix.errors import BadInput, StackfixError, Unreachable
from stackfix.matrix.records import TorchIndexWheel
from stackfix.nightly import FOLDER, is_nightly_path
from stackfix.quick import replace
from stackfix.sources.address import parse_address, shown, without_credentials
from stackfix.sources.answers import Limits
from stackfix.sources.connect import hosts_of
from stackfix.sources.errors import IndexUnreachable, NoSuchProject, NotAllowedOffline, RateLimited, RequestFailed
from stackfix.sources.index import PackageIndex
from stackfix.sources.records import Answered, CoreMetadata, IndexFile, IndexSettings
from stackfix.sources.torch_index_page import CPU, LivePage, RowPage, TorchPage, known_rows
from stackfix.sources.torch_nightly import NightlyPage, only_there

T = TypeVar("T")
QUICK = Limits(total=60.0, connect=4.0, retry_wait=3.0, dial_tries=1)
_PATH = re.compile(r"cu\d{2,4}")
_AWAY = (401, 403, 407, 408, 425, 429, 451)     # a proxy or a gate answered, not the index


class Pages(Protocol):
    """What is needed of the client of one path."""

    def prefetch_pages(self, names: tuple[str, ...]) -> None: ...
    def page(self, name: str) -> LivePage: ...
    def metadata(self, file: IndexFile) -> CoreMetadata: ...
    def answers(self) -> tuple[Answered, ...]: ...
    def close(self) -> None: ...


class TorchHashDisagreement(StackfixError):
    """The page and the matrix state different hashes for one file."""

    reference = "torch-hash-disagreement"

    def __init__(self, *, file: str, path: str, page: str, row: TorchIndexWheel) -> None:
        super().__init__(file, path, page, row)
        self.file, self.path, self.page, self.row = file, path, page, row

    def what(self) -> str:
        return (f"{self.file}: the page of the torch index ({self.path}) states sha256 {self.page}, the matrix"
                f" {self.row.sha256} (from {self.row.source})")

    def next_step(self) -> str:
        return "one of them is wrong: ask for another version or CUDA variant, or another copy with --torch-index"


class TorchIndex(AbstractContextManager["TorchIndex"]):
    """Fills resolve.torch_family.TorchWheels."""

    def __init__(self, *, read: str, written: str, rows: Callable[[str], tuple[TorchIndexWheel, ...]],
                 open_pages: Callable[[str], Pages]) -> None:
        self._read, self._written, self._rows, self._open = read, written, rows, open_pages
        self._clients: dict[str, Pages] = {}
        self._pages: dict[tuple[str, str], TorchPage] = {}
        self._known: dict[str, dict[str, TorchIndexWheel]] = {}
        self.away: Unreachable | None = None

    @property
    def asked(self) -> bool:
        """Whether anything was wanted of it."""
        return bool(self._clients or self._pages)

    def prefetch(self, path: str, names: tuple[str, ...]) -> None:
        """Start fetching pages of one path."""
        if self.away is None:
            self._client(path).prefetch_pages(names)

    def page(self, path: str, name: str) -> TorchPage:
        """One project on one path; an empty page where the index has no such project. Raises BadPage and its like."""
        key = path, name
        if key not in self._pages and is_nightly_path(path):
            self._pages[key] = self._nightly(path, name)
        elif key not in self._pages:
            self._pages[key] = self._live(path, name) or RowPage(name, path, self._written, self._known_of(path))
        return self._pages[key]

    def metadata(self, file: IndexFile) -> CoreMetadata | None:
        """Metadata of a file; None where nobody can be asked. Raises TorchHashDisagreement, and what a server does."""
        page = self._page_of(file)
        row = self.row(file)
        stated = page.stated(file)
        if row is not None and stated is not None and stated != row.sha256:
            raise TorchHashDisagreement(file=file.filename, path=row.path, page=stated, row=row)
        origin = page.origin(file)
        if origin is not None and is_nightly_path(page.path):
            return self._only_there(lambda: self._client(page.path).metadata(origin))
        if origin is None or self.away is not None:
            return None
        try:
            return self._client(page.path).metadata(origin)
        except Unreachable as fault:
            if row is None or not is_away(fault):
                raise
            self.away = fault
            return None

    def row(self, file: IndexFile) -> TorchIndexWheel | None:
        """What the matrix knows of this very file."""
        return self._known_of(file.torch_path or "").get(file.filename)

    def states_hash(self, file: IndexFile) -> bool:
        """Whether a page of the index states the file's hash; else it is the matrix's."""
        return self._page_of(file).stated(file) is not None

    def answers(self) -> tuple[Answered, ...]:
        """What the index answered."""
        return tuple(answer for client in self._clients.values() for answer in client.answers())

    def close(self) -> None:
        """Drop all connections."""
        for client in self._clients.values():
            client.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _page_of(self, file: IndexFile) -> TorchPage:
        return self._pages[file.torch_path or "", file.project]

    def _live(self, path: str, name: str) -> TorchPage | None:
        """The page as the server has it; None where no server is there."""
        if self.away is not None:
            return None
        try:
            page = self._client(path).page(name)
        except NoSuchProject:
            return RowPage(name, path, self._written, {})
        except Unreachable as fault:
            if not is_away(fault):
                raise
            self.away = fault
            return None
        base = without_credentials(self._read)
        return TorchPage(page, path, read=base, written=self._written, rows=self._known_of(path))

    def _nightly(self, path: str, name: str) -> TorchPage:
        """The page of a nightly path; empty where there is none."""
        try:
            page = self._only_there(lambda: self._client(path).page(name))
        except NoSuchProject:
            return RowPage(name, path, self._written, {})
        return NightlyPage(page, path, read=without_credentials(self._read), written=self._written, rows={})

    def _only_there(self, ask: Callable[[], T]) -> T:
        """What nobody but the index can tell. Raises Unreachable, with words for that, where it does not answer."""
        try:
            return ask()
        except Unreachable as fault:
            if not is_away(fault):
                raise
            raise only_there(fault) from fault

    def _client(self, path: str) -> Pages:
        if path not in self._clients:
            self._clients[path] = self._open(f"{self._read}/{path}")
        return self._clients[path]

    def _known_of(self, path: str) -> dict[str, TorchIndexWheel]:
        if path not in self._known:
            self._known[path] = {} if is_nightly_path(path) else known_rows(path, self._rows)
        return self._known[path]


def check_base(url: str) -> str:
    """The base of a copy of the index, without a last slash. Raises BadInput."""
    base = url.partition("#")[0].rstrip("/")
    try:
        parse_address(base)
    except ValueError as fault:
        raise BadInput(f"--torch-index {shown(url)}", str(fault), "give an https:// or http:// address") from None
    last = base.rpartition("/")[2]
    if last in {CPU, FOLDER} or _PATH.fullmatch(last):
        raise BadInput(f"--torch-index {shown(url)}", f"is the path {last} of a torch index, not its base",
                       f"leave out /{last}: the path follows from --cuda")
    return base


def open_path(address: str, *, settings: IndexSettings, cache_dir: Path, offline: bool) -> PackageIndex:
    """A client for one path of the index; a lock does not need it, so that its absence must show soon."""
    place = parse_address(address)
    known = place.host in hosts_of(settings)
    keyring = settings.keyring if known or place.user is not None else None     # it is the user's indexes' alone
    own = replace(settings, indexes=(address,), origin=("the torch index",), retries=min(settings.retries, 1),
                  routes=(), keyring=keyring, client_cert=settings.client_cert if known else None)
    return PackageIndex(own, cache_dir=cache_dir, offline=offline, limits=QUICK, workers=8)


def is_away(fault: Unreachable) -> bool:
    """Whether nobody answered for the index; an answer that cannot be trusted is another thing."""
    if isinstance(fault, IndexUnreachable | NotAllowedOffline | RateLimited):
        return True
    status = fault.status if isinstance(fault, RequestFailed) else None
    return status is not None and (status in _AWAY or status >= 500)
