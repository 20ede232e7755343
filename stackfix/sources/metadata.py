"""Metadata of one file, by the cheapest way that works.

    1. `<file>.metadata` where the page advertises it (PEP 658, 714), checked against the stated hash
    2. not advertised: the wheel's last bytes, which hold its directory and mostly its METADATA; a second range where
       they do not (wheel_inside.py). Of the first wheels of a server at the same time `.metadata`, and that alone of
       others where all of them had it
    3. the whole file, checked against the page's hash, where it is small enough
    4. sdists: the PKG-INFO inside, if it is static (PEP 643)
    5. sdists whose code the user allows to run: what a build says (sdist_build.py)

Only ways 1 (with a hash) and 3 to 5 are covered by a hash. Metadata that no hash covers may steer the search; what is
pinned is the hash of the file on the index page, so a lie there ends in an install that does not match its lock's
checks, never in other bytes being installed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from stackfix.quick import names_of
from stackfix.sources.address import parse_address
from stackfix.sources.answers import Limits
from stackfix.sources.cache import Cache
from stackfix.sources.core_metadata import needs_build, parse_metadata, read_fields, record_of, same_version
from stackfix.sources.errors import (
    BadMetadata,
    HashMismatch,
    NotAllowedOffline,
    RequestFailed,
    SdistNeedsBuild,
)
from stackfix.sources.records import CoreMetadata, IndexFile, IndexSettings
from stackfix.sources.transport import Transport
from stackfix.sources.wheel_inside import Inside, require_ok
from stackfix.sources.wheel_ways import Ways
from stackfix.sources.wire import NOT_THERE, OK

if TYPE_CHECKING:
    from stackfix.sources.sdist_build import Allowed

_WHOLE = 128 * 1024 * 1024          # the largest file that is read whole for its metadata
_MAYBE_NOT_THERE = (403, *NOT_THERE)  # 403: object stores answer so for a name that does not exist


class Pending(Protocol):
    """An answer that is on its way."""

    def result(self) -> CoreMetadata: ...
    def drop(self, fault: BaseException) -> None: ...


Start = Callable[[Callable[[], CoreMetadata]], Pending]  # begin work in another thread


class MetadataSource:
    """Fetches metadata. Called from many threads; each call blocks until its answer is there."""

    def __init__(self, transport: Transport, cache: Cache, limits: Limits, start: Start,
                 keep: Callable[[Callable[[], None]], object] = lambda write: write(),
                 look: Callable[[Callable[[], None]], object] = lambda look: look()) -> None:
        """`keep` has something written soon, `look` has what is here looked at soon."""
        self._transport, self._cache, self._limits, self._start, self._keep = transport, cache, limits, start, keep
        self._ways = Ways()
        self._inside = Inside(transport, limits, whole=self._whole, beside=self._beside_if_possible, look=look)

    def ask_ahead(self, file: IndexFile, then: Callable[[bool], object], now: Callable[[], object]) -> bool:
        """Whether the metadata is asked for; `then` is called once fetch() can go on (as of Transport.ask_ahead).

        `now` is called in its place where fetch() has all that it takes, from a thread that reads what is here.
        """
        if not file.is_wheel or file.sha256 is None or self._is_kept(file):
            return False
        url = f"{file.url}.metadata"
        if file.core_metadata is not None:
            return self._transport.ask_ahead(url, then=then, wheel=file)
        beside, inside = self._ways.of(file)
        if not inside:
            return self._transport.ask_ahead(url, then=then, wheel=file)
        if not beside:
            return self._inside.ask_ahead(file, then, now)
        both = _Both(then)
        return self._inside.ask_plainly(file, both) and (self._transport.ask_ahead(url, then=both) or both.alone())

    def _is_kept(self, file: IndexFile) -> bool:
        return any(self._cache.has_record("metadata-v1", _key(str(file.sha256), voucher))
                   for voucher in _vouchers(file))

    def kept(self, file: IndexFile) -> CoreMetadata | None:
        """Metadata of `file` in the cache. Raises SdistNeedsBuild where the cache knows that of it."""
        if file.sha256 is None:
            return None
        for voucher in _vouchers(file):
            about = self._cache.record("metadata-v1", _key(file.sha256, voucher))
            record = None if about is None else _record_from(about, file)
            if record is not None:
                return record
        verdict = None if file.is_wheel else self._cache.record("metadata-v1", _key(file.sha256, "needs build"))
        if verdict is not None:
            raise SdistNeedsBuild(file.project, file.version, str(verdict.get("reason")))
        return None

    def fetch(self, file: IndexFile) -> CoreMetadata:
        """Metadata of `file` from its server, kept for the next run. Raises a StackfixError about that file."""
        found = self._made(file)
        if found is None:
            found = self._of_wheel(file) if file.is_wheel else self._of_sdist(file)
            self._keep(partial(keep_metadata, self._cache, file, found))
        return found

    def _made(self, file: IndexFile) -> CoreMetadata | None:
        """What another process read, and keeps."""
        found = self._transport.made(f"{file.url}.metadata", {})
        if found is not None and file.core_metadata is None:
            self._ways.learn(file, there=True)
        return self._inside.made(file) if found is None else found

    def built(self, file: IndexFile, python: str, *, allowed: Allowed | None, settings: IndexSettings) -> CoreMetadata:
        """What a build of the sdist for this Python minor says, kept for the next run.

        Without `allowed` only what is kept. Raises NotAllowedOffline, SdistBuildFailed, and as fetch() does.
        """
        from stackfix.sources.sdist_build import build_metadata
        from stackfix.sources.sdist_build_install import with_logins
        from stackfix.sources.sdist_build_python import machine_name

        key = _key(file.sha256 or "", f"built for {python} on {machine_name()}")
        about = self._cache.record("metadata-v1", key) if file.sha256 is not None else None
        record = None if about is None else _record_from(about, file)
        if record is not None:
            return record
        if allowed is None:
            raise NotAllowedOffline(f"what a build of {file.filename} for Python {python} says")
        found = build_metadata(file, self._whole(file, None), python=python, allowed=allowed,
                               settings=with_logins(settings, self._transport.credentials))
        if file.sha256 is not None:
            self._cache.keep_record("metadata-v1", key, {name: getattr(found, name) for name in names_of(CoreMetadata)})
        return found

    def _of_wheel(self, file: IndexFile) -> CoreMetadata:
        if file.core_metadata is not None:
            found = self._beside(file)
            # An index may advertise what its file server does not have: uv ends there, we go on.
            return found if found is not None else self._inside.read(file)
        if self._inside.is_looked_at(file):
            return self._inside.read(file)
        if self._transport.is_asked(f"{file.url}.metadata", {}):
            found = self._beside_if_possible(file)
            if found is None:
                return self._inside.read(file)
            self._inside.forget(file)
            return found
        return self._inside.read(file) if self._inside.is_asked(file) else self._either(file)

    def _either(self, file: IndexFile) -> CoreMetadata:
        """Of a wheel of which nothing was asked ahead."""
        beside, inside = self._ways.of(file)
        tail = self._start(lambda: self._inside.read(file)) if beside and inside else None
        found = self._beside_if_possible(file) if beside else None
        if found is None:
            return self._inside.read(file) if tail is None else tail.result()
        if tail is not None:
            tail.drop(RequestFailed(file.url, "not needed any more"))
        return found

    def _beside_if_possible(self, file: IndexFile) -> CoreMetadata | None:
        """As _beside; None also where that fails: the wheel itself may still be had, or says better what is wrong."""
        try:
            found = self._beside(file)
        except RequestFailed:
            found = None
        self._ways.learn(file, there=found is not None)
        return found

    def _beside(self, file: IndexFile) -> CoreMetadata | None:
        """From `<file>.metadata`, None where the server has none."""
        url = file.url + ".metadata"
        answer = self._transport.get(url, limit=self._limits.metadata)
        if answer.status in _MAYBE_NOT_THERE:
            return None
        require_ok(answer, url)
        if isinstance(file.core_metadata, str):
            found = hashlib.sha256(answer.body).hexdigest()
            if found != file.core_metadata:
                raise HashMismatch(f"{file.filename}.metadata", file.url, stated=file.core_metadata, found=found)
            return parse_metadata(answer.body, file, "advertised")
        try:
            return parse_metadata(answer.body, file, "unadvertised")
        except BadMetadata:
            if file.core_metadata is None:  # nobody promised anything: some servers answer any name with a page
                return None
            raise

    def _whole(self, file: IndexFile, content: bytes | None) -> bytes:
        """All bytes of the file, checked against the page's hash."""
        if content is None:
            if (file.size or 0) > _WHOLE:
                raise BadMetadata(file.filename, file.url, f"the server has no metadata file, answers no range request,"
                                  f" and {file.size} bytes are too many to read for it")
            answer = self._transport.get(file.url, limit=_WHOLE, unpack=False)
            require_ok(answer, file.url)
            content = answer.body
        found = hashlib.sha256(content).hexdigest()
        if file.sha256 is not None and found != file.sha256:
            raise HashMismatch(file.filename, file.url, stated=file.sha256, found=found)
        return content

    def _of_sdist(self, file: IndexFile) -> CoreMetadata:
        from stackfix.sources.archives import pkg_info_in_sdist

        if isinstance(file.core_metadata, str):
            url = file.url + ".metadata"
            answer = self._transport.get(url, limit=self._limits.metadata)
            if answer.status == OK:
                found = hashlib.sha256(answer.body).hexdigest()
                if found != file.core_metadata:
                    raise HashMismatch(f"{file.filename}.metadata", file.url, stated=file.core_metadata, found=found)
                return self._static(answer.body, file, "advertised")
        content = self._whole(file, None)
        return self._parsed(lambda: pkg_info_in_sdist(content, file.filename), file, "sdist")

    def _parsed(self, read: Callable[[], bytes], file: IndexFile, basis: str) -> CoreMetadata:
        from stackfix.sources.archives import BadArchive

        try:
            content = read()
        except BadArchive as fault:
            raise BadMetadata(file.filename, file.url, str(fault)) from None
        return self._static(content, file, basis) if basis == "sdist" else parse_metadata(content, file, basis)

    def _static(self, content: bytes, file: IndexFile, basis: str) -> CoreMetadata:
        fields = read_fields(content, file)
        reason = needs_build(fields)
        if reason is not None:
            if file.sha256 is not None:
                self._cache.keep_record("metadata-v1", _key(file.sha256, "needs build"), {"reason": reason})
            raise SdistNeedsBuild(file.project, file.version, reason)
        return record_of(fields, file, basis)


class _Both:
    """Calls on when two answers are here: never as whole, since the second may not hold enough."""

    def __init__(self, then: Callable[[bool], object]) -> None:
        self._then, self._left, self._lock = then, 2, threading.Lock()

    def __call__(self, whole: bool) -> None:  # noqa: FBT001 - as Transport.ask_ahead calls it
        with self._lock:
            self._left -= 1
            left = self._left
        if not left:
            self._then(False)  # noqa: FBT003

    def alone(self) -> bool:
        """There is only one after all."""
        self(False)  # noqa: FBT003
        return True


def keep_metadata(cache: Cache, file: IndexFile, found: CoreMetadata) -> None:
    """Keeps the record, under who stands for it."""
    if file.sha256 is not None:
        whole, stated, server = _vouchers(file)
        voucher = whole if found.basis in ("file", "sdist") else stated if found.basis == "advertised" else server
        cache.keep_record("metadata-v1", _key(file.sha256, voucher), {
            name: getattr(found, name) for name in names_of(CoreMetadata)})


def _vouchers(file: IndexFile) -> tuple[str, str, str]:
    """Who may stand for metadata: the file's bytes, the hash on the page, the server's word where there is no hash.

    Part of the key, so that what one server says is never taken for another's.
    """
    server = "{}://{}:{}".format(*parse_address(file.url).origin)
    return "file", f"metadata {file.core_metadata}", f"server {server} without metadata {file.core_metadata}"


def _key(sha256: str, voucher: str) -> str:
    return f"{sha256}.{hashlib.sha256(voucher.encode()).hexdigest()[:16]}"


def _record_from(about: dict[str, object], file: IndexFile) -> CoreMetadata | None:
    """The kept record, None where it is not one or belongs to another file."""
    texts = [about.get(key) for key in ("name", "version", "basis")]
    lists = [about.get(key) for key in ("requires_dist", "provides_extra")]
    python, built_on = about.get("requires_python"), about.get("built_on")
    if not all(isinstance(text, str) for text in texts) or not (python is None or isinstance(python, str)):
        return None
    if not all(isinstance(values, list) and all(isinstance(value, str) for value in values) for values in lists):
        return None
    if texts[0] != file.project or not same_version(str(texts[1]), file.version):
        return None
    return CoreMetadata(name=file.project, version=str(texts[1]), requires_dist=tuple(lists[0] or ()),  # type: ignore[arg-type]
                        requires_python=python, provides_extra=tuple(lists[1] or ()), basis=str(texts[2]),  # type: ignore[arg-type]
                        built_on=built_on if isinstance(built_on, str) else None)
