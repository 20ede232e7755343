"""Pages of HTML: links, markup and attributes that lead astray."""

from __future__ import annotations

from tests.hostile.records import Locked, Refused, Scenario
from tests.hostile.redirects import elsewhere, nothing_went_along
from tests.hostile.stage import FILE, PAGE, WHEEL, Stage, endless, html_page, sha256
from tests.sources_servers import ok, status

A = "a" * 64
EVIL = "evil.invalid"
MANY = "<!-- -->" * 100_000


def digest(stage: Stage) -> str:
    return sha256(stage.world.projects["demo"][WHEEL])


def anchor(stage: Stage, href: str | None = None, *, fragment: str | None = None, more: str = "") -> str:
    """The link to the sound wheel, but for what is given."""
    fragment = f"sha256={digest(stage)}" if fragment is None else fragment
    return f'<a href="{FILE if href is None else href}#{fragment}"{more}>{WHEEL}</a>'


def shown(name: str, before: str = "", behind: str = "", *, comes: Refused | Locked | None = None,
          absent: tuple[str, ...] = (EVIL,)) -> Scenario:
    """Markup around the link to the sound wheel."""
    return Scenario(name=f"HTML: {name}", comes=comes or Locked(), absent=absent,
                    does=lambda stage: stage.says(PAGE, html_page(before, anchor(stage), behind)))


def linked(name: str, href: str | None = None, *, comes: Refused | Locked | None = None, fragment: str | None = None,
           more: str = "") -> Scenario:
    """The only link of the page."""
    return Scenario(name=f"HTML: {name}", comes=comes or Refused(), absent=(EVIL,),
                    does=lambda stage: stage.says(PAGE, html_page(anchor(stage, href, fragment=fragment, more=more))))


def moved(stage: Stage) -> None:
    """The base of the page is another server, which has the files."""
    other = elsewhere(stage, lambda head: ok(stage.world.projects["demo"][WHEEL], kind="application/zip")
                      if ".whl " in head else status("404 Not Found"))
    stage.says(PAGE, html_page(f'<base href="{other.url}/deep/">', anchor(stage, WHEEL)))


def doubled(stage: Stage) -> None:
    stage.says(PAGE, html_page(anchor(stage), anchor(stage, fragment=f"sha256={A}")))


def anchors(stage: Stage) -> None:
    """Links without end."""
    stage.says(PAGE, lambda _: endless(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
                                       b'<a href="demo-1.0-py3-none-any.whl">x</a>\n' * 1000))


def crowd(stage: Stage) -> None:
    """More links than any page has."""
    stage.says(PAGE, ok(b'<a href="demo-0.1.zip">' * 110_000, kind="text/html"))


LINKS = (
    shown("a sound page"), linked("a link from the root", comes=Locked()),
    shown("an entity bomb", '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol1 "&lol;&lol;&lol;">]>&lol1;'),
    shown("a script", f"<script>location='https://{EVIL}'</script><meta http-equiv=refresh content='0;url=//{EVIL}'>"),
    shown("a comment with a link", f'<!-- <a href="https://{EVIL}/demo-9.0-py3-none-any.whl#sha256={A}">x</a> -->'),
    shown("a link in a comment without end", "", f'<!-- <a href="//{EVIL}/demo-9.0-py3-none-any.whl#sha256={A}">'),
    shown("a link in a quote without end", "", f'<p title="<a href=//{EVIL}/demo-9.0-py3-none-any.whl#sha256={A}>'),
    shown("tags without end", "", "<a " * 200_000), shown("signs alone", "", "<" * 1_000_000),
    shown("quotes without end", "", "<a '\"" * 200_000), shown("comments without number", MANY),
    shown("a tag of a hundred thousand attributes", f"<p {'a=b ' * 100_000}>"),
    shown("an attribute of a megabyte", f'<p a="{"x" * 1_000_000}">'),
    shown("blanks of a megabyte in a tag", f"<a{' ' * 1_000_000}href{' ' * 1_000_000}>"),
    shown("elements of a depth", "<div>" * 200_000),
    shown("a letter of five thousand digits", f'<a href="&#{"9" * 5000};demo-9.0-py3-none-any.whl">'),
    shown("entities without number", f'<a href="{"&amp;" * 100_000}demo-9.0.zip">'),
    shown("a link to another project", f'<a href="https://{EVIL}/other-9.0-py3-none-any.whl#sha256={A}">x</a>'),
    shown("a newer release without a hash", f'<a href="https://{EVIL}/demo-9.0-py3-none-any.whl">x</a>'),
    shown("a newer release with md5", f'<a href="https://{EVIL}/demo-9.0-py3-none-any.whl#md5={"0" * 32}">x</a>'),
    shown("a newer release that was yanked",
          f'<a data-yanked="\x1b[31m" href="https://{EVIL}/demo-9.0-py3-none-any.whl#sha256={A}">x</a>'),
    shown("a link to no address", '<a href="http://[::1/demo-9.0-py3-none-any.whl">x</a>'),
    shown("another version of the format", '<meta name="pypi:repository-version" content="2.0">',
          comes=Refused(says=("demo", "version"))),
    shown("a version of the format that paints", '<meta name="pypi:repository-version" content="\x1b[31m">',
          comes=Refused(says=("demo", "version"))),
    linked("a file of this disk", "file:///etc/demo-1.0-py3-none-any.whl", comes=Refused(says=("demo", "address"))),
    linked("a script as a link", "javascript:/demo-1.0-py3-none-any.whl", comes=Refused(says=("demo", "address"))),
    linked("a backslash", "\\\\evil.invalid\\demo-1.0-py3-none-any.whl"),
    linked("a name that climbs, encoded", "%2e%2e%2fdemo-1.0-py3-none-any.whl"),
    linked("a name with a NUL, encoded", "demo-1.0-1%00-py3-none-any.whl"),
    linked("a name that paints, encoded", "demo-1.0-1%1b%5b31m-py3-none-any.whl"),
    linked("a hash that is short", fragment="sha256=abc"), linked("md5 alone", fragment=f"md5={'0' * 32}",
                                                                    comes=Refused(status=1, says=("demo", "sha256"))),
    linked("a hash of another file", fragment=f"sha256={A}", comes=Refused(says=("demo", "sha256"))),
    linked("two hashes in one link", fragment=f"sha256={A}&sha256={'b' * 64}"),
    linked("metadata with a hash that is none", more=' data-core-metadata="sha256=zz"'),
    linked("requires-python that is none", more=' data-requires-python="&#27;[31m ~~ 3"', comes=Locked()),
    linked("requires-python of a megabyte", more=f' data-requires-python="{"&gt;=3," * 100_000}"',
           comes=Locked()),
    Scenario(name="HTML: a base elsewhere", does=moved, comes=Locked(), also=nothing_went_along),
    Scenario(name="HTML: a base that is a script", comes=Refused(),
             does=lambda stage: stage.says(PAGE, html_page('<base href="javascript:x/">', anchor(stage, WHEEL)))),
    Scenario(name="HTML: one file with two hashes", does=doubled, comes=Refused(says=("demo", "different hashes"))),
    Scenario(name="HTML: links without end", does=anchors, comes=Refused(says=("demo",)), peak=400 << 20),
    Scenario(name="HTML: a hundred thousand links", does=crowd, comes=Refused(says=("demo", "100000 files"))),
    Scenario(name="HTML: nothing of the project", comes=Refused(says=("demo", "login")),
             does=lambda stage: stage.says(PAGE, html_page(f'<a href="//{EVIL}/">Sign in</a>'))),
    Scenario(name="HTML: of two bytes a letter", comes=Refused(),
             does=lambda stage: stage.says(PAGE, ok("<a href='demo-1.0-py3-none-any.whl'>".encode("utf-16"),
                                                    kind="text/html"))),
)
