"""Answers that are no answers: what goes wrong below the page, in HTTP."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from functools import cache

from tests.hostile.records import Locked, Refused, Scenario
from tests.hostile.stage import PAGE, RESET, Stage, dripping, endless, json_page
from tests.sources_servers import JSON, Reply, ok, status

HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\n".encode()
PIECE = b" " * (1 << 20)
CHUNK = b"100000\r\n" + PIECE + b"\r\n"
TWO_GB = 2 << 30
HURRY = 300
LONG = b"a" * (1 << 20)


def sound(stage: Stage) -> bytes:
    """The page as it should be."""
    return json_page(stage.entry())


def headed(stage: Stage, *lines: str, body: bytes | None = None) -> bytes:
    """An answer with these header lines, and the sound page unless something else is given."""
    head = "\r\n".join([f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}", *lines])
    return head.encode() + b"\r\n\r\n" + (sound(stage) if body is None else body)


@cache
def bomb(size: int) -> bytes:
    """Blanks, packed a thousandfold."""
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([*(pack.compress(PIECE) for _ in range(size >> 20)), pack.flush()])


def said(name: str, answer: Reply, *says: str, hurry: float = 1) -> Scenario:
    return Scenario(name=name, does=lambda stage: stage.says(PAGE, answer), comes=Refused(says=("demo", *says)),
                    hurry=hurry)


def large(name: str, head: bytes, piece: bytes, *says: str) -> Scenario:
    """An answer of 2 GB, made as it is sent."""
    return Scenario(name=name, does=lambda stage: stage.says(PAGE, lambda _: endless(head, piece)),
                    comes=Refused(says=("demo", *says)))


def slow(name: str, head: bytes, piece: bytes = b" ") -> Scenario:
    return Scenario(name=name, does=lambda stage: stage.says(PAGE, lambda _: dripping(stage, head, piece)),
                    comes=Refused(says=("demo", "too long")), hurry=HURRY)


def lines(name: str, *headers: str, body: bytes | None = None, says: tuple[str, ...] = ()) -> Scenario:
    """The sound page under these headers."""
    return Scenario(name=name, does=lambda stage: stage.says(PAGE, headed(stage, *headers, body=body)),
                    comes=Refused(says=("demo", *says)))


def half_of(stage: Stage) -> Iterable[bytes]:
    content = sound(stage)
    yield headed(stage, f"Content-Length: {len(content)}", body=content[:20])
    yield RESET


def short(stage: Stage) -> Iterable[bytes]:
    """A whole page, said to be longer."""
    yield headed(stage, "Content-Length: 100000")
    raise ConnectionError


def split(stage: Stage) -> None:
    """Behind demo's page stands another answer, which the next request on the connection would take for its own."""
    evil = ok(json_page({"filename": "idna-9.9-py3-none-any.whl", "url": "x", "hashes": {"sha256": "0" * 64}},
                        project="idna"))
    stage.words += ["--with", "idna"]
    stage.says(PAGE, lambda _: ok(sound(stage)) + evil)


def silent(stage: Stage) -> None:
    stage.environ.update(PIP_DEFAULT_TIMEOUT="1", PIP_RETRIES="0")
    stage.says(PAGE, lambda _: dripping(stage, b"", b"", pause=60))


def fresh_forever(stage: Stage) -> None:
    """An ETag that cannot be sent back: the second run asks with it."""
    stage.says(PAGE, lambda head: ok(sound(stage), headers=('ETag: "\x01\x7f"',)))


def unasked(stage: Stage) -> None:
    """304 in the second run for a page that came without an ETag."""
    seen: list[str] = []

    def answer(head: str) -> bytes:
        seen.append(head)
        return ok(sound(stage)) if len(seen) == 1 else status("304 Not Modified")
    stage.says(PAGE, answer)


def trailing(stage: Stage) -> Iterable[bytes]:
    """Chunks in pieces, with a trailer, on a connection that stays open: all of it is as it should be."""
    content = sound(stage)
    yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    for start in range(0, len(content), 50):
        piece = content[start:start + 50]
        yield f"{len(piece):x};x=y\r\n".encode() + piece
        yield b"\r\n"
    yield from (b"0\r", b"\n", b"X-Checksum: 5\r\n", b"\r\n")


def old(stage: Stage) -> None:
    stage.says(PAGE, lambda _: [b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + sound(stage), RESET])


def closed(stage: Stage) -> Iterable[bytes]:
    """HTTP/1.0, ended by the end of the connection."""
    yield f"HTTP/1.0 200 OK\r\nContent-Type: {JSON}\r\n\r\n".encode() + sound(stage)
    raise ConnectionError


ANSWERS = (
    large("2 GB, as stated", HEAD + b"Content-Length: 2147483648\r\n\r\n", PIECE, "2147483648 bytes"),
    large("2 GB in chunks", HEAD + b"Transfer-Encoding: chunked\r\n\r\n", CHUNK, "more"),
    large("2 GB without a length", HEAD + b"\r\n", PIECE, "more"),
    large("2 GB of HTML without a length", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", PIECE, "more"),
    large("2 GB of a 404", b"HTTP/1.1 404 Not Found\r\nContent-Length: 2147483648\r\n\r\n", PIECE),
    large("2 GB of a 404 without a length", b"HTTP/1.1 404 Not Found\r\n\r\n", PIECE),
    large("2 GB of trailers", HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: " + LONG + b"\r\n"),
    large("a million headers", HEAD, b"X-A: b\r\n" * 1000),
    large("a header without end", HEAD + b"X-A: ", PIECE),
    large("a status line without end", b"HTTP/1.1 200 ", PIECE),
    large("interim answers for ever", b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100),
    large("a chunk extension without end", HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", PIECE),
    large("empty pieces of gzip for ever", HEAD + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b"") * 1000),
    said("a bomb of gzip", ok(bomb(TWO_GB), headers=("Content-Encoding: gzip",))),
    said("a bomb in a bomb", ok(gzip.compress(bomb(TWO_GB)), headers=("Content-Encoding: gzip",))),
    said("a small bomb that is JSON", ok(gzip.compress(b"[" * (1 << 25)), headers=("Content-Encoding: gzip",))),
    slow("a body that drips", HEAD + b"Content-Length: 100000\r\n\r\n"),
    slow("chunks that drip", HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    slow("headers that drip", HEAD + b"X-Slow: ", b"x"),
    slow("headers that drip one by one", HEAD, b"X: y\r\n"[:1]),
    slow("gzip that drips", HEAD + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b"")),
    Scenario(name="silence", does=silent, comes=Refused(says=("demo", "no answer"))),
    Scenario(name="a reset in the body", does=lambda stage: stage.says(PAGE, lambda _: half_of(stage)),
             comes=Refused(says=("demo", "connection"))),
    Scenario(name="a reset before an answer", does=lambda stage: stage.says(PAGE, lambda _: [RESET]), comes=Refused()),
    said("no HTTP at all", b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "HTTP/1.1"),
    said("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1"),
    said("a status of four digits", b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"),
    said("a status line that paints", b"HTTP/1.1 \x1b[31m200\x1b[0m OK\r\nContent-Length: 0\r\n\r\n"),
    said("an unknown status", status("999 \x1b[2J"), "999"),
    said("401 that paints", status("401 Unauthorized", 'WWW-Authenticate: Basic realm="\x1b[2Jhello"'), "401"),
    said("204", status("204 No Content"), "204"),
    said("206 for a page", status("206 Partial Content"), "206"),
    said("304 that nobody asked for", status("304 Not Modified"), "304"),
    said("429 for an age", status("429 Too Many Requests", "Retry-After: 99999999999999999999"), "429"),
    said("429 until the year 9999", status("429 Too Many", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"), "429"),
    said("429 until never", status("429 Too Many", "Retry-After: Fri, 99 Foo 99999 99:99:99"), "429"),
    said("a login page", ok(b"<html><form action=/login>Password</form></html>", kind="text/html"), "login"),
    said("a login page that says JSON", ok(b"<html><form action=/login>Password</form></html>"), "JSON"),
    said("no content type", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "type"),
    said("another content type", ok(b"{}", kind="application/octet-stream"), "octet-stream"),
    said("a content type that paints", ok(b"{}", kind="a/\x1b[31mb\u202e".encode().decode("latin-1")), "type"),
    said("a content type of a megabyte", ok(b"{}", kind="a" * (1 << 20))),
    said("brotli that was not asked for", ok(b"x", headers=("Content-Encoding: br",)), "br"),
    said("a coding that paints", ok(b"x", headers=("Content-Encoding: \x1b[31mred",))),
    said("gzip that is none", ok(b"{}", headers=("Content-Encoding: gzip",)), "damaged"),
    Scenario(name="a length that is too long", does=lambda stage: stage.says(PAGE, lambda _: short(stage)),
             comes=Refused(says=("demo", "still to come"))),
    lines("two lengths", "Content-Length: 2", "Content-Length: 3", says=("two lengths",)),
    lines("a negative length", "Content-Length: -1", says=("length",)),
    lines("a length of thirty digits", f"Content-Length: {'9' * 30}", says=("length",)),
    lines("a length in other digits", "Content-Length: \u00b2", says=("length",)),
    lines("an unknown transfer coding", "Transfer-Encoding: gzip, chunked", says=("transfer coding",)),
    lines("chunks that are none", "Transfer-Encoding: chunked", body=b"zz\r\n", says=("chunk",)),
    lines("a chunk of a quintillion", "Transfer-Encoding: chunked", body=b"f" * 16 + b"\r\n", says=("chunk",)),
    lines("a chunk of a negative size", "Transfer-Encoding: chunked", body=b"-5\r\n", says=("chunk",)),
    lines("a header without a colon", "Nonsense", says=("header",)),
    lines("a header with a blank name", "Content Length: 5", says=("header",)),
    Scenario(name="another answer behind the answer", does=split, comes=Locked(pins=("demo==1.0", "idna==3.7")),
             absent=("idna-9.9",)),
    Scenario(name="an ETag of control characters", does=fresh_forever, comes=Locked(), runs=2),
    Scenario(name="304 without an ETag", does=unasked, comes=Refused(says=("304",)), runs=2),
    Scenario(name="chunks with a trailer", does=lambda stage: stage.says(PAGE, lambda _: trailing(stage)),
             comes=Locked()),
    Scenario(name="HTTP/1.0 to its end", does=lambda stage: stage.says(PAGE, lambda _: closed(stage)), comes=Locked()),
    Scenario(name="HTTP/1.0 broken off", does=old, comes=Refused()),
)
