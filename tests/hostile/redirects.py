"""Redirects: where they lead, and what goes with them."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from tests.hostile.measured import Ended
from tests.hostile.records import Locked, Refused, Scenario
from tests.hostile.stage import FILE, METADATA, PAGE, WHEEL, Loopback, Stage, json_page, redirect, sha256
from tests.sources_servers import make_certificate, ok, path_of, status

LOGIN = "keeper:s3cr3t-of-the-index"
SECRET = "s3cr3t-of-the-index"  # bait
ENCODED = "a2VlcGVyOnMzY3IzdC1vZi10aGUtaW5kZXg="            # the login as a header has it


def to(location: str, *says: str, path: str = PAGE, code: str = "302 Found") -> Callable[[Stage], None]:
    return lambda stage: stage.says(path, redirect(location, code))


def refused(name: str, location: str, *says: str) -> Scenario:
    return Scenario(name=f"redirect to {name}", does=to(location), comes=Refused(says=("demo", *says)))


def inward(name: str, host: str) -> Scenario:
    """To where a machine is told about itself, its passwords among the rest."""
    return Scenario(name=f"redirect to {name}", does=to(f"http://{host}/latest/meta-data/"),
                    comes=Refused(says=("/latest/meta-data/", "machines ask about themselves")))


def loop(stage: Stage) -> None:
    stage.says(PAGE, redirect("/simple/demo/there"))
    stage.says("/simple/demo/there", redirect(PAGE))


def chain(stage: Stage) -> None:
    """Each hop leads one further, for ever."""
    for number in range(100):
        stage.says(PAGE if not number else f"{PAGE}{number}", redirect(f"{PAGE}{number + 1}"))


def elsewhere(stage: Stage, answer: Callable[[str], bytes]) -> Loopback:
    """Another server; the login of the index is nobody's business there."""
    stage.login = LOGIN
    stage.secrets += [SECRET, ENCODED]
    other = stage.open(answer)
    stage.others.append(other)
    return other


def page_elsewhere(stage: Stage) -> None:
    other = elsewhere(stage, lambda head: ok(json_page(stage.entry())))
    stage.says(PAGE, redirect(f"{other.url}/moved/"))


def page_with_another_login(stage: Stage) -> None:
    """The address it leads to holds a login of its own, which is nobody's either."""
    other = elsewhere(stage, lambda head: ok(json_page(stage.entry())))
    stage.secrets += ["t0ken-of-another", "b3RoZXI6dDBrZW4tb2YtYW5vdGhlcg=="]
    stage.says(PAGE, redirect(other.url.replace("://", "://other:t0ken-of-another@") + "/moved/"))


def metadata_elsewhere(stage: Stage) -> None:
    content = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
    other = elsewhere(stage, lambda head: ok(content, kind="text/plain"))
    stage.lists(stage.entry(core_metadata={"sha256": sha256(content)}))
    stage.says(METADATA, redirect(f"{other.url}/moved.metadata"))


def wheel_elsewhere(stage: Stage) -> None:
    other = elsewhere(stage, lambda head: ok(stage.world.projects["demo"][WHEEL], kind="application/zip"))
    stage.says(FILE, redirect(f"{other.url}/moved.whl"))


def files_elsewhere(stage: Stage) -> None:
    """The page itself names files on another server."""
    other = elsewhere(stage, lambda head: status("404 Not Found") if path_of(head).endswith(".metadata") else ok(
        stage.world.projects["demo"][WHEEL], kind="application/zip"))
    stage.lists(stage.entry(url=f"{other.url}/{WHEEL}"))


def nothing_went_along(stage: Stage, ended: Ended) -> None:
    """The other server was asked and saw no login; the index itself did."""
    assert [head for other in stage.others for head in other.heads]
    assert not [head for other in stage.others for head in other.heads if "authorization" in head.lower()]
    assert set(stage.server.header("Authorization")) == {f"Basic {ENCODED}"}


def downgrade(stage: Stage) -> None:
    """An index on TLS sends us to one without."""
    certificate, context = make_certificate(stage.notes)
    secure = secured(stage, context)
    stage.environ["SSL_CERT_FILE"] = str(certificate)
    stage.world.url = f"{secure.url}/simple"
    stage.says(PAGE, redirect(f"{stage.server.url}/plain/"))


def self_signed(stage: Stage) -> None:
    _, context = make_certificate(stage.notes)
    stage.world.url = f"{secured(stage, context).url}/simple"


def secured(stage: Stage, context: ssl.SSLContext) -> Loopback:
    return stage.open(stage.reply, tls=context)


def never_asked(stage: Stage, ended: Ended) -> None:
    assert not stage.server.heads


REDIRECTS = (
    refused("a file", "file:///etc/passwd", "no http(s)"),
    refused("a script", "javascript:alert(1)", "no http(s)"),
    refused("data", "data:application/json,{}", "no http(s)"),
    refused("FTP", "ftp://127.0.0.1/x", "no http(s)"),
    refused("no host", "http://", "redirects"),
    refused("an impossible host", "http://[::1", "no http(s)"),
    refused("a host of blanks", "http://a b/", "no http(s)"),
    refused("a port that is none", "http://127.0.0.1:99999/", "no http(s)"),
    inward("a machine's own metadata", "169.254.169.254"), inward("that in other digits", "2852039166"),
    inward("that in base 16", "0xa9fea9fe"), inward("that in IPv6", "[::ffff:169.254.169.254]"),
    inward("a link-local address", "[fe80::1]"),
    refused("a name of a megabyte", "http://" + "a" * (60 * 1024) + "/"),
    Scenario(name="redirect to what paints", does=to("http://127.0.0.1:9/\x1b[31m\x07"),
             comes=Refused(says=("127.0.0.1:9",))),
    Scenario(name="redirect to an address of 60 KB", does=to("/" + "a" * (60 * 1024)), comes=Refused(status=1)),
    Scenario(name="redirect without an address", does=lambda stage: stage.says(PAGE, status("301 Moved")),
             comes=Refused(says=("demo", "301"))),
    Scenario(name="redirects in a circle", does=loop, comes=Refused(says=("demo", "redirects"))),
    Scenario(name="redirects without end", does=chain, comes=Refused(says=("demo", "redirects"))),
    Scenario(name="a page elsewhere sees no login", does=page_elsewhere, comes=Locked(), also=nothing_went_along),
    Scenario(name="a login in a redirect is not used", does=page_with_another_login, comes=Locked(),
             also=nothing_went_along),
    Scenario(name="metadata elsewhere see no login", does=metadata_elsewhere, comes=Locked(), also=nothing_went_along),
    Scenario(name="a wheel elsewhere sees no login", does=wheel_elsewhere, comes=Locked(), also=nothing_went_along),
    Scenario(name="files elsewhere see no login", does=files_elsewhere, comes=Locked(), also=nothing_went_along),
    Scenario(name="from TLS to none", does=downgrade, comes=Refused(says=("demo", "https to http")), also=never_asked),
    Scenario(name="a certificate that nobody trusts", does=self_signed,
             comes=Refused(says=("certificate is not trusted", "SSL_CERT_FILE"))),
)
