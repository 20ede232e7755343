"""Metadata and wheels: what they say of themselves and of others, and archives that are traps."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Callable
from functools import cache

from tests.hostile.answers import PIECE, bomb
from tests.hostile.records import Locked, Refused, Scenario
from tests.hostile.stage import FILE, METADATA, WHEEL, Stage, dripping, endless, json_page, redirect, sha256
from tests.replay.wheels import make_wheel
from tests.sources_servers import ok, path_of, status

EVIL = "evil.invalid"
HEAD = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
INFO = "demo-1.0.dist-info/METADATA"


def advertised(stage: Stage, content: bytes) -> None:
    """The metadata of demo, with their hash on the page."""
    stage.lists(stage.entry(core_metadata={"sha256": sha256(content)}))
    stage.says(METADATA, ok(content, kind="text/plain"))


def stated(name: str, content: str, comes: Refused | Locked | None = None, absent: tuple[str, ...] = ()) -> Scenario:
    return Scenario(name=f"metadata: {name}", does=lambda stage: advertised(stage, content.encode()),
                    comes=comes or Refused(), absent=absent)


def needs(name: str, *lines: str, comes: Refused | Locked | None = None, absent: tuple[str, ...] = (),
          peak: int = 250 << 20) -> Scenario:
    """What demo asks for."""
    text = HEAD + "".join(f"Requires-Dist: {line}\n" for line in lines)
    return Scenario(name=f"needs: {name}", comes=comes or Refused(), absent=absent, peak=peak,
                    does=lambda stage: advertised(stage, text.encode()))


def archive(name: str, content: bytes, *says: str, peak: int = 250 << 20) -> Scenario:
    """The wheel's bytes, which the page's hash covers."""
    def does(stage: Stage) -> None:
        stage.world.projects["demo"][WHEEL] = content
    return Scenario(name=f"wheel: {name}", does=does, comes=Refused(says=("demo", *says)), peak=peak)


def ranged(name: str, answer: Callable[[bytes], bytes], *says: str) -> Scenario:
    """What the server sends where it was asked for the wheel's last bytes."""
    def does(stage: Stage) -> None:
        stage.says(METADATA, status("404 Not Found"))
        stage.says(FILE, answer(stage.world.projects["demo"][WHEEL]))
    return Scenario(name=f"range: {name}", does=does, comes=Refused(says=("demo", *says)))


def part(content: bytes, content_range: str | None, *headers: str, kind: str = "application/zip") -> bytes:
    said = () if content_range is None else (f"Content-Range: {content_range}",)
    return ok(content, kind=kind, status="206 Partial Content", headers=(*said, *headers))


def other_hash(stage: Stage) -> None:
    stage.lists(stage.entry(core_metadata={"sha256": "a" * 64}))
    stage.says(METADATA, ok(HEAD.encode(), kind="text/plain"))


def huge(stage: Stage) -> None:
    """Metadata of 2 GB, not said beforehand."""
    stage.lists(stage.entry(core_metadata=True))
    stage.says(METADATA, lambda _: endless(b"HTTP/1.1 200 OK\r\n\r\n", PIECE))


def packed(stage: Stage) -> None:
    stage.lists(stage.entry(core_metadata=True))
    stage.says(METADATA, ok(bomb(2 << 30), headers=("Content-Encoding: gzip",)))


def dripped(stage: Stage) -> None:
    stage.lists(stage.entry(core_metadata=True))
    stage.says(METADATA, lambda _: dripping(stage, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"))


def vast(stage: Stage) -> None:
    """A wheel of 2 GB on a server that knows no ranges."""
    stage.lists(stage.entry(size=2 << 30))
    stage.says(FILE, lambda _: endless(b"HTTP/1.1 200 OK\r\nContent-Length: 2147483648\r\n\r\n", PIECE))


def vast_unsaid(stage: Stage) -> None:
    stage.lists(stage.entry(size=None))
    stage.says(FILE, lambda _: endless(b"HTTP/1.1 200 OK\r\n\r\n", PIECE))


def away(stage: Stage) -> None:
    stage.lists(stage.entry(core_metadata=True))
    stage.says(METADATA, redirect("file:///etc/passwd"))


def chained(stage: Stage) -> None:
    """Every project asks for one more, for ever."""
    def reply(head: str) -> bytes:
        found = re.search(r"(?:simple/|/)(chain-(\d+))[-/]", path_of(head))
        if found is None:
            return status("404 Not Found")
        name, number = found[1], int(found[2])
        file = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
        content = make_wheel(file, name=name, requires=(f"chain-{number + 1}",))
        if "/simple/" in path_of(head):
            return ok(json_page({"filename": file, "url": f"/{name}-/{file}", "size": len(content),
                                 "hashes": {"sha256": sha256(content)}}, project=name))
        return ok(content) if path_of(head).endswith(".whl") else status("404 Not Found")
    sound = stage.world.reply
    stage.otherwise = lambda head: reply(head) if "chain-" in path_of(head) else sound(head)
    stage.has("demo", WHEEL, requires=("chain-0",))


def tangled(stage: Stage) -> None:
    """Releases that all ask for another one of each other."""
    for name, other in (("demo", "knot"), ("knot", "tie"), ("tie", "demo")):
        for number in range(40):
            stage.has(name, f"{name}-2.{number}-py3-none-any.whl", requires=(f"{other}==2.{(number + 1) % 40}",))


@cache
def zipped(members: tuple[tuple[str, str], ...]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in members:
            made.writestr(zipfile.ZipInfo(name), text)
    return stream.getvalue()


def with_size(content: bytes, field: int, value: int) -> bytes:
    """A field of the first entry of the directory, changed."""
    at = content.rfind(b"PK\x01\x02") + field
    return content[:at] + struct.pack("<I", value) + content[at + 4:]


@cache
def crowded() -> bytes:
    """Sixty thousand entries that are all the same bytes: overlapping, as a bomb is."""
    body = zipped(((INFO, HEAD),))
    start, end = body.index(b"PK\x01\x02"), body.index(b"PK\x05\x06")
    entry = body[start:end]
    others = b"".join(entry.replace(INFO.encode(), b"%0*d" % (len(INFO), number)) for number in range(60_000))
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 60_001, 60_001, len(entry) + len(others), start, 0)
    return body[:start] + entry + others + tail


def crammed(stage: Stage) -> None:
    stage.world.projects["demo"][WHEEL] = crowded()


NO = Refused(status=1)
SOUND = zipped(((INFO, HEAD),))
DEEP = "(" * 50_000 + 'python_version > "3"' + ")" * 50_000
LONG = "9" * 5000

WHEELS = (
    Scenario(name="metadata: another hash", does=other_hash, comes=Refused(says=("demo", "sha256"))),
    Scenario(name="metadata: 2 GB", does=huge, comes=Refused(says=("demo", "more"))),
    Scenario(name="metadata: a bomb", does=packed, comes=Refused(says=("demo", "more"))),
    Scenario(name="metadata: a drip", does=dripped, comes=Refused(says=("demo", "too long")), hurry=300),
    Scenario(name="metadata: a redirect to a file", does=away, comes=Refused(says=("demo", "no http(s)"))),
    stated("of another project", HEAD.replace("demo", "other"), Refused(says=("demo", "other"))),
    stated("of another version", HEAD.replace("1.0", "9.0"), Refused(says=("demo", "9.0"))),
    stated("of a version of digits", HEAD.replace("1.0", LONG)),
    stated("two names", HEAD + "Name: other\n"), stated("no name", HEAD.replace("Name: demo\n", "")),
    stated("a name that paints", HEAD.replace("demo", "de\x1b[31mmo")),
    stated("of a form to come", HEAD.replace("2.1", "9.0")), stated("no text", "\0" * 1000), stated("nothing", ""),
    stated("a page", "<html>login</html>"),
    stated("a requires-python of a megabyte", HEAD + f"Requires-Python: {'>=3,' * 250_000}>=3\n", Locked()),
    stated("a requires-python that nothing meets", HEAD + "Requires-Python: >=99\n", Refused(status=1)),
    stated("a requires-python that makes no sense", HEAD + "Requires-Python: \x1b[31m~~\n", Locked()),
    stated("a hundred thousand extras", HEAD + "".join(f"Provides-Extra: x{n}\n" for n in range(100_000)),
           Refused(says=("demo", "provides-extra"))),
    needs("without number", *(f"idna>={number}" for number in range(200_000)),
          comes=Refused(says=("demo", "requires-dist"))),
    needs("nine thousand of nothing", *(f'x{number}; extra == "y"' for number in range(9_000)), comes=Locked()),
    needs("a file at an address", f"idna @ https://{EVIL}/idna-9.0-py3-none-any.whl", comes=NO),
    needs("torch at an address", f"torch @ https://{EVIL}/torch-2.3.1-py3-none-any.whl", comes=NO),
    needs("an address with a login", f"idna @ https://me:s3cr3t@{EVIL}/idna-9.0-py3-none-any.whl", comes=NO),
    needs("a file of this disk", "idna @ file:///etc/passwd", comes=NO), needs("brackets", f"idna; {DEEP}", comes=NO),
    needs("brackets of a depth", f"idna; {'(' * 2000}python_version > '3'{')' * 2000}", comes=NO),
    needs("or without end", "idna; " + " or ".join(["'a' == 'b'"] * 20_000), comes=NO),
    needs("a limit of five thousand digits", f"idna>={LONG}", comes=NO),
    needs("a limit on Python of five thousand digits", f"idna; python_version >= '{LONG}'", comes=NO),
    needs("a hundred thousand limits", "idna" + ",".join([">=1"] * 100_000), comes=NO),
    needs("a name of a megabyte", "a" * 1_000_000, comes=NO),
    needs("dots and dashes", "a" + "-._" * 200_000 + "!", comes=NO),
    needs("blanks of a megabyte", f"idna{' ' * 1_000_000}!", comes=NO),
    needs("what paints", "idna\x1b[31m;\u202e", comes=NO), needs("no sense", "idna >=>= 3", comes=NO),
    needs("an unknown variable", "idna; planet == 'mars'", comes=NO),
    needs("a comparison that fails", "idna; python_version ~= 'x.y'", comes=Locked()),
    needs("itself", "demo", comes=Locked()), needs("itself in another release", "demo==9.0", comes=Refused(status=1)),
    needs("extras of itself in a circle", "demo[a]; extra == 'b'", "demo[b]; extra == 'a'", "demo[a,b]",
          comes=Locked(pins=("demo[a,b]==1.0",))),
    needs("a torch under another name", "Torch==1.13.0", comes=Refused(status=1, says=("torch", "demo"))),
    needs("a torch in other letters", "TORCH<2", comes=Refused(status=1, says=("torch", "demo"))),
    needs("another cuDNN", "NVIDIA.cuDNN_cu12==9.9.9", comes=Refused(status=1, says=("cudnn", "demo"))),
    needs("what is nowhere", "no-such-project", comes=Refused(status=1, says=("no-such-project", "demo"))),
    Scenario(name="needs: one more for ever", does=chained, limits={"projects": 60},
             comes=Refused(says=("chain-", "60 projects"))),
    Scenario(name="needs: a knot", does=tangled, comes=Refused(status=1, says=("rounds",))),
    Scenario(name="wheel: 2 GB without ranges", does=vast, comes=Refused(says=("demo", "too many"))),
    Scenario(name="wheel: 2 GB without a size", does=vast_unsaid, comes=Refused(says=("demo",)), peak=500 << 20),
    archive("no archive", b"not a zip" * 1000, "damaged"), archive("nothing", b""),
    archive("cut", SOUND[:-30]), archive("no metadata", zipped((("demo.py", ""),)), "METADATA"),
    archive("two metadata", zipped(((INFO, HEAD), ("demo-2.0.dist-info/METADATA", HEAD))), "METADATA"),
    archive("metadata of another project", zipped((("other-1.0.dist-info/METADATA", HEAD),)), "METADATA"),
    archive("a bomb", zipped(((INFO, HEAD + " " * (40 << 20)),)), "larger"),
    archive("a bomb of a false size", with_size(zipped(((INFO, HEAD + " " * (40 << 20)),)), 24, 100)),
    archive("an offset beyond the end", with_size(SOUND, 42, 0x7FFFFFFF)),
    archive("another checksum", with_size(SOUND, 16, 1), "damaged"),
    Scenario(name="wheel: sixty thousand entries in one place", does=crammed, comes=Locked()),
    ranged("another part", lambda content: part(content[:10], "bytes 0-9/10000000")),
    ranged("a part of another size", lambda content: part(content, f"bytes 0-9/{len(content)}"), "another part"),
    ranged("another whole", lambda content: part(content, f"bytes 0-{len(content) - 1}/{len(content) + 1}"), "bytes"),
    ranged("a part that ends before it begins", lambda content: part(content, "bytes 9-0/100"), "another part"),
    ranged("numbers of a length", lambda content: part(content, f"bytes 0-{'9' * 500}/{'9' * 501}")),
    ranged("no word on which part", lambda content: part(content, None), "which part"),
    ranged("several parts", lambda content: part(content, None, kind="multipart/byteranges; boundary=x"), "which part"),
    ranged("one byte of a tebibyte", lambda content: part(b"x", f"bytes {(1 << 40) - 1}-{(1 << 40) - 1}/{1 << 40}")),
)
