"""Pages of JSON: what they say of files that cannot be, or of one file in two ways."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.hostile.records import Locked, Refused, Scenario
from tests.hostile.stage import NEWER, PAGE, WHEEL, Stage, json_page
from tests.sources_servers import Reply, ok, path_of

A, B = "a" * 64, "b" * 64
EVIL = "evil.invalid"
LARGE = 400 << 20           # of the largest page, its bytes and its text


def raw(name: str, content: bytes, *says: str) -> Scenario:
    """The page is these bytes."""
    return Scenario(name=name, does=lambda stage: stage.says(PAGE, ok(content)), comes=Refused(says=("demo", *says)))


def entry(name: str, *says: str, status: int = 3, **changes: Any) -> Scenario:
    """What the page says of demo's only wheel."""
    return Scenario(name=name, does=lambda stage: stage.lists(stage.entry(**changes)),
                    comes=Refused(status=status, says=("demo", *says)))


def harmless(name: str, **changes: Any) -> Scenario:
    """What the page says of demo's only wheel, and does not matter."""
    return Scenario(name=name, does=lambda stage: stage.lists(stage.entry(**changes)), comes=Locked())


def beside(name: str, filename: str, absent: str = EVIL, **changes: Any) -> Scenario:
    """A file beside the sound one, which must not be chosen."""
    def does(stage: Stage) -> None:
        stage.lists(stage.entry(), {"filename": filename, "url": f"https://{EVIL}/x.whl", "hashes": {"sha256": A},
                                    **changes})
    return Scenario(name=name, does=does, comes=Locked(), absent=(absent,))


def out(name: str, filename: str) -> Scenario:
    """A name that is a path or no name, and would be the newest: an error, whatever else the page lists."""
    def does(stage: Stage) -> None:
        stage.lists(stage.entry(), {"filename": filename, "url": f"https://{EVIL}/x.whl", "hashes": {"sha256": A}})
    return Scenario(name=name, does=does, comes=Refused(says=("demo", "name")))


def text(name: str, change: Callable[[str], str], comes: Refused | Locked) -> Scenario:
    """The text of a sound page, changed."""
    def does(stage: Stage) -> None:
        stage.says(PAGE, ok(change(json_page(stage.entry()).decode()).encode("utf-8", "surrogatepass")))
    return Scenario(name=name, does=does, comes=comes)


def many(stage: Stage) -> None:
    """A million files, as small as they can be: as large as a page may be."""
    one = json.dumps({"filename": WHEEL, "url": "x"})
    rows = ",".join([one.replace("1.0", f"0.{number}") for number in range(1_000_000)])
    stage.says(PAGE, ok(f'{{"meta":{{"api-version":"1.0"}},"name":"demo","files":[{rows}]}}'.encode()))


def no_hashes(stage: Stage) -> None:
    """Ten thousand releases that cannot be pinned, each looked at, the sound one among them."""
    rows = [{"filename": f"demo-9.{number}-py3-none-any.whl", "url": "x"} for number in range(10_000)]
    stage.lists(*rows[::2], stage.entry(), *rows[1::2])


def large_entry(stage: Stage) -> None:
    """A file with a list of lists beside its name: decoded, it would take a gigabyte."""
    stage.says(PAGE, ok(json_page(stage.entry()).replace(b'"url"', b'"x": [' + b"[]," * 20_000_000 + b'[]], "url"')))


def large_frame(stage: Stage) -> None:
    """The same beside the files."""
    stage.says(PAGE, ok(json_page(stage.entry())[:-1] + b', "versions": [' + b"[]," * 20_000_000 + b"[]]}"))


def large_form(stage: Stage) -> None:
    """The same in a page of another form."""
    stage.says(PAGE, ok(b'{"files": [' + b"[]," * 20_000_000 + b"[]]}"))


def all_large(stage: Stage) -> None:
    """Every page is sound, and has 20 MB of blanks in it."""
    sound = stage.world.reply

    def reply(head: str) -> Reply:
        answer = sound(head)
        if not path_of(head).startswith("/simple/") or b"404" in answer[:20]:
            return answer
        page = json.loads(answer.partition(b"\r\n\r\n")[2])
        one, *_ = page["files"]
        doubled = json.dumps({**page, "files": [one, *page["files"]]}).encode()
        return ok(doubled.replace(b"}, {", b"}," + b" " * 20_000_000 + b"{", 1))
    stage.otherwise = reply


def versions(stage: Stage) -> None:
    """Ninety thousand versions beside the sound one, none of which is a version."""
    rows = [{"filename": f"demo-{number}..x-py3-none-any.whl", "url": "x"} for number in range(90_000)]
    stage.lists(stage.entry(), *rows)


def twice(stage: Stage) -> None:
    stage.lists(stage.entry(), stage.entry(hashes={"sha256": A}))


def twice_elsewhere(stage: Stage) -> None:
    """The same bytes at another address: the first one counts."""
    stage.lists(stage.entry(), stage.entry(url=f"https://{EVIL}/{WHEEL}"))


def newer(stage: Stage, **changes: Any) -> None:
    """A second release beside the sound one."""
    stage.has("demo", NEWER)
    stage.lists(stage.entry(), stage.entry(NEWER, **changes))


def passed_over(name: str, **changes: Any) -> Scenario:
    """A newer release that cannot be pinned."""
    return Scenario(name=name, does=lambda stage: newer(stage, **changes), comes=Locked(), absent=("2.0",))


def nested(depth: int, opening: str, closing: str = "") -> bytes:
    return b'{"meta":{"api-version":"1.1"},"name":"demo","files":[],"x":' + (opening * depth + closing * depth).encode()


PAGES = (
    raw("a deep list", nested(200_000, "["), "JSON"),
    raw("a deep list that ends", nested(200_000, "[", "]") + b"}"),
    raw("a deep object", nested(200_000, '{"a":'), "JSON"),
    raw("a list and no object", b"[]"), raw("a number", b"1"), raw("null", b"null"), raw("no bytes", b""),
    raw("no UTF-8", b'{"name":"\xff\xfe"}'), raw("UTF-16", '{"meta":{},"files":[]}'.encode("utf-16")),
    raw("files that are an object", b'{"meta":{"api-version":"1.1"},"files":{}}'),
    raw("files that are numbers", b'{"meta":{"api-version":"1.1"},"files":[1,2]}'),
    raw("files without names", b'{"meta":{"api-version":"1.1"},"files":[{"url":"x"}]}'),
    raw("names that are no text", b'{"meta":{"api-version":"1.1"},"files":[{"filename":["demo-1.0.tar.gz"]}]}'),
    raw("another version of the format", json_page().replace(b"1.1", b"2.0"), "version"),
    raw("a version of the format that paints", json_page().replace(b"1.1", b"2.\\u001b[31m\\u202e"), "version"),
    raw("no version of the format", b'{"files":[]}', "version"),
    raw("half a page", json_page({"filename": WHEEL, "url": "x"})[:-20]),
    raw("a number of a million digits", b'{"meta":{"api-version":"1.1"},"files":[],"x":' + b"9" * 1_000_000 + b"}"),
    Scenario(name="a page of another project", does=lambda stage: stage.lists(stage.entry(), name="other"),
             comes=Refused(says=("demo", "other"))),
    Scenario(name="a name that paints", does=lambda stage: stage.lists(stage.entry(), name="\x1b[2J\u202eomed\n"),
             comes=Refused()),
    Scenario(name="a million files", does=many, comes=Refused(says=("demo", "100000 files"))),
    Scenario(name="ten thousand releases without a hash", does=no_hashes, comes=Locked()),
    Scenario(name="an entry of 60 MB", does=large_entry, comes=Refused(), peak=LARGE),
    Scenario(name="60 MB beside the files", does=large_frame, comes=Refused(), peak=LARGE),
    Scenario(name="60 MB in another form", does=large_form, comes=Refused(), peak=LARGE),
    Scenario(name="20 MB on every page", does=all_large, limits={"pages": 64 << 20}, peak=600 << 20,
             comes=Refused(says=("pages of this run",))),
    Scenario(name="ninety thousand versions that are none", does=versions, comes=Locked()),
    entry("no address", "address", url=None), entry("an address that is a number", "address", url=3),
    entry("a file's own disk", "address", url="file:///etc/passwd"),
    entry("an address that is a script", "address", url=f"javascript:/{WHEEL}"),
    entry("an address of FTP", "address", url=f"ftp://{EVIL}/{WHEEL}"),
    Scenario(name="an address without a host", does=lambda stage: stage.lists(stage.entry(url="http:///x.whl")),
             comes=Refused(says=("x.whl", "404"))),
    entry("an address with a port that is none", "address", url=f"http://{EVIL}:0x50/x.whl"),
    entry("no hash", "sha256", hashes={}, status=1),
    entry("hashes that are null", "sha256", hashes=None, status=1),
    entry("md5 alone", "sha256", hashes={"md5": "0" * 32}, status=1),
    entry("a short hash", "sha256", hashes={"sha256": "a" * 63}),
    entry("a hash with a line end", "sha256", hashes={"sha256": "a" * 64 + "\n"}),
    entry("a hash of other letters", "sha256", hashes={"sha256": "g" * 64}),
    entry("a hash in other digits", "sha256", hashes={"sha256": "\uff11" * 64}),
    entry("a hash that is a number", "sha256", hashes={"sha256": 10**80}),
    entry("hashes that are a list", "sha256", hashes=["sha256", A]),
    entry("a hash that is not the wheel's", "sha256", hashes={"sha256": A}),
    entry("requires-python that is no text", "requires-python", requires_python=[3]),
    entry("requires-python that nothing meets", "Python", requires_python=">=99", status=1),
    entry("upload-time that is no text", "upload-time", upload_time=3),
    entry("metadata with a hash that is none", "sha256", core_metadata={"sha256": "x"}),
    entry("metadata that are not there and a wheel of another hash", core_metadata={"sha256": B}, hashes={"sha256": A}),
    harmless("a size that is no number", size="x"), harmless("a size of a float", size=1e300),
    harmless("a negative size", size=-1),
    harmless("upload-time that is no time", upload_time="yesterday\n\x1b[31m"),
    harmless("requires-python that makes no sense", requires_python="3.x || evil"),
    harmless("yanked that is empty", yanked=""), harmless("yanked that is false", yanked=False),
    passed_over("yanked with words", yanked="bad"), passed_over("yanked that is a list", yanked=["x"]),
    passed_over("yanked in a thousand lines", yanked="x\n" * 1000),
    passed_over("a newer release without a hash", hashes={}),
    passed_over("a newer release with md5 alone", hashes={"md5": "0" * 32}),
    passed_over("a newer release for Python 4", requires_python=">=4"),
    beside("a wheel of another project", "evil-9.0-py3-none-any.whl"),
    beside("a project that begins alike", "demo_more-9.0-py3-none-any.whl"),
    beside("a version that is none", "demo-9.0.x-py3-none-any.whl"),
    beside("a version of a hundred thousand digits", f"demo-{'9' * 100_000}-py3-none-any.whl"),
    beside("a version of five thousand digits", f"demo-{'9' * 5000}-py3-none-any.whl"),
    beside("a local version of ten thousand parts", f"demo-9+{'a.' * 10_000}a-py3-none-any.whl"),
    beside("an epoch of a thousand digits", f"demo-{'1' * 1000}!9-py3-none-any.whl"),
    beside("a version of dots", f"demo-9{'.' * 100_000}-py3-none-any.whl"),
    beside("a wheel of too few parts", "demo-9.0-any.whl"),
    beside("a wheel of too many parts", "demo-9.0-1-2-3-py3-none-any.whl"),
    beside("an empty name", ""), beside("a name of blanks", "   "),
    beside("a name without a version", "demo.tar.gz"), beside("another kind of file", "demo-9.0.exe"),
    beside("an egg", "demo-9.0-py3.11.egg"),
    out("a name that climbs", "../demo-9.0-py3-none-any.whl"),
    out("a name from the root", "/etc/demo-9.0-py3-none-any.whl"),
    out("a name of another system", "..\\demo-9.0-py3-none-any.whl"),
    out("an sdist that climbs", "demo-../../9.0.tar.gz"),
    out("a build tag with a slash", "demo-9.0-1/2-py3-none-any.whl"),
    out("a build tag with a NUL", "demo-9.0-1\0-py3-none-any.whl"),
    out("a build tag with a line", "demo-9.0-1\n2-py3-none-any.whl"),
    out("a build tag that paints", "demo-9.0-1\x1b[31m-py3-none-any.whl"),
    out("a build tag that turns around", "demo-9.0-1\u202e-py3-none-any.whl"),
    out("a build tag with an encoded slash", "demo-9.0-1%2f-py3-none-any.whl"),
    out("a build tag of dots", "demo-9.0-1..-py3-none-any.whl"),
    out("a build tag of half a letter", "demo-9.0-1\ud800-py3-none-any.whl"),
    out("an sdist with a line", "demo-9.0\n.tar.gz"), out("an sdist with a blank", "demo-9.0 .tar.gz"),
    beside("a name that climbs inside", "demo-9.0/../../x-py3-none-any.whl"),
    beside("a tag with a NUL", "demo-9.0-py3-none-any\0.whl"),
    beside("a tag with a line", "demo-9.0-py3-none-any\n.whl"),
    beside("a tag that paints", "demo-9.0-py3-\x1b[31mnone-any.whl"),
    beside("a tag that turns around", "demo-9.0-py3-none-any\u202ewhl.whl"),
    beside("a tag with an encoded slash", "demo-9.0-py3-none-%2fany.whl"),
    out("a tag with dots for parts", "demo-9.0-py3-none-...any.whl"),
    out("a name of ten thousand letters", f"demo-9.0-py3-none-{'a' * 10_000}.any.whl"),
    beside("a name of a hundred thousand dashes", f"demo-{'1-' * 100_000}.tar.gz"),
    Scenario(name="one file with two hashes", does=twice, comes=Refused(says=("demo", "different hashes"))),
    Scenario(name="one file at two addresses", does=twice_elsewhere, comes=Locked(), absent=(EVIL,)),
    text("the same key twice", lambda page: page.replace('"files":', '"name": "other", "files":'),
         Refused(says=("demo", "other"))),
    text("files twice", lambda page: page[:-1] + ', "files": []}', Locked()),
    text("a file's hash twice", lambda page: page.replace('"hashes":', f'"hashes": {{"sha256": "{A}"}}, "hashes":'),
         Locked()),
    text("NaN for a size", lambda page: page.replace('"size": ', '"size": NaN, "s": '), Locked()),
    text("infinity for a size", lambda page: page.replace('"size": ', '"size": Infinity, "s": '), Locked()),
    text("a size of five thousand digits", lambda page: page.replace('"size": ', f'"size": {"9" * 5000}, "s": '),
         Refused()),
    text("half a letter", lambda page: page.replace('"size"', '"yanked": "\\ud800", "size"'), Refused(status=1)),
    text("a name spelled otherwise", lambda page: page.replace('"filename"', '"\\u0066ilename"'), Locked()),
    text("a file inside a file", lambda page: page.replace(
        '"url"', f'"x": {{"filename": "demo-9.0-py3-none-any.whl", "url": "https://{EVIL}/x"}}, "url"'), Locked()),
    text("blanks of a megabyte", lambda page: page.replace(": ", f":{' ' * 100_000}"), Locked()),
)
