"""Logins and signatures: in addresses of indexes, of files, of what nobody can reach. They are told to nobody."""

from __future__ import annotations

from base64 import b64encode

from tests.hostile.measured import Ended
from tests.hostile.records import Locked, Refused, Scenario
from tests.hostile.redirects import ENCODED, LOGIN, SECRET
from tests.hostile.stage import FILE, METADATA, PAGE, WHEEL, Stage, html_page, redirect, sha256
from tests.sources_servers import ok, path_of, status

SHUT = "127.0.0.1:9"                # nobody listens there
SIGNED = "X-Amz-Credential=AKIAs3cr3t&X-Amz-Signature=5ign4ture"
SIGNATURE = ("AKIAs3cr3t", "5ign4ture")


def with_login(stage: Stage, login: str = LOGIN, *secrets: str) -> None:
    stage.login = login
    stage.secrets += [*(secrets or (SECRET,)), b64encode(login.replace("%40", "@").encode()).decode()]


def asked_with_login(stage: Stage, ended: Ended) -> None:
    """The index saw its login with every request, and the option to name it is in no header of a lockfile."""
    assert set(stage.server.header("Authorization")) == {f"Basic {ENCODED}"}


def in_the_variable(stage: Stage) -> None:
    with_login(stage)
    stage.environ["PIP_EXTRA_INDEX_URL"] = stage.index_url.replace("/simple", "/none")


def in_file_addresses(stage: Stage) -> None:
    """The page gives the login of the index with each file, as some servers do."""
    with_login(stage)
    stage.lists(stage.entry(url=f"{stage.files_url}/demo/{WHEEL}".replace("://", f"://{LOGIN}@")))


def of_another(stage: Stage) -> None:
    """The page gives another login with its files: it is not used."""
    with_login(stage)
    stage.secrets += ["t0ken-of-another"]
    stage.lists(stage.entry(url=f"{stage.files_url}/demo/{WHEEL}".replace("://", "://other:t0ken-of-another@")))


def in_links(stage: Stage) -> None:
    with_login(stage)
    href = f"{stage.files_url}/demo/{WHEEL}".replace("://", f"://{LOGIN}@")
    content = stage.world.projects["demo"][WHEEL]
    stage.says(PAGE, html_page(f'<a href="{href}#sha256={sha256(content)}">x</a>'))


def signed(stage: Stage) -> None:
    """Addresses of files that are signed for an hour: the signature is needed to read, and kept nowhere."""
    stage.secrets += SIGNATURE
    stage.lists(stage.entry(url=f"{stage.files_url}/demo/{WHEEL}?{SIGNED}"))
    content = stage.world.projects["demo"][WHEEL]
    stage.says(FILE, lambda head: ok(content) if SIGNED in path_of(head) else status("403 Forbidden"))


def signed_elsewhere(stage: Stage) -> None:
    """The index sends us to a signed address of an object store."""
    stage.secrets += SIGNATURE
    content = stage.world.projects["demo"][WHEEL]
    store = stage.open(lambda head: ok(content) if SIGNED in path_of(head) else status("403 Forbidden"))
    stage.says(FILE, redirect(f"{store.url}/bucket/{WHEEL}?{SIGNED}"))


def signed_and_refused(stage: Stage) -> None:
    """The signature is too old: the error shows the address without it."""
    stage.secrets += SIGNATURE
    stage.lists(stage.entry(url=f"{stage.files_url}/demo/{WHEEL}?{SIGNED}", core_metadata=True))
    stage.says(METADATA, status("403 Forbidden"))
    stage.says(FILE, status("403 Forbidden"))


def in_requirements(stage: Stage) -> None:
    """What demo asks for is a file at an address with a login."""
    stage.secrets.append("s3cr3t-of-a-file")
    text = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nRequires-Dist: idna @ https://me:s3cr3t-of-a-file@a.invalid/x"
    stage.lists(stage.entry(core_metadata={"sha256": sha256(text.encode())}))
    stage.says(METADATA, ok(text.encode()))


def option(name: str, *words: str, says: tuple[str, ...], code: int = 3) -> Scenario:
    """An option with a login, for a server that is not there."""
    def does(stage: Stage) -> None:
        stage.words += words
        stage.secrets += [SECRET, ENCODED]
    return Scenario(name=f"login: {name}", does=does, comes=Refused(status=code, says=says))


def refused(name: str, answer: bytes, *says: str) -> Scenario:
    """The index has a login, and answers so."""
    def does(stage: Stage) -> None:
        with_login(stage)
        stage.says(PAGE, answer)
    return Scenario(name=f"login: {name}", does=does, comes=Refused(says=("demo", *says)))


def as_json(stage: Stage) -> None:
    with_login(stage)
    stage.words.append("--json")


def verbose(stage: Stage) -> None:
    with_login(stage)
    stage.words.append("-v")


def token_alone(stage: Stage) -> None:
    with_login(stage, "t0ken-alone", "t0ken-alone")


def odd_letters(stage: Stage) -> None:
    with_login(stage, "me%40here:p%40ss-w0rd", "p%40ss-w0rd", "p@ss-w0rd")


def proxied(stage: Stage) -> None:
    """A proxy wants another login than it got."""
    proxy = stage.open(lambda head: status("407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="x"'))
    stage.environ.update(HTTP_PROXY=proxy.url.replace("://", f"://{LOGIN}@"), NO_PROXY="", no_proxy="")
    stage.secrets += [SECRET, ENCODED]


def of_netrc(stage: Stage) -> None:
    """A login of netrc, and a server that sends it back in its words."""
    (stage.notes / "netrc").write_text(f"machine 127.0.0.1 login keeper password {SECRET}\n")
    stage.environ["NETRC"] = str(stage.notes / "netrc")
    stage.secrets += [SECRET, ENCODED]


AT = f"{LOGIN}@{SHUT}"
LOGINS = (
    Scenario(name="login: of the index", does=with_login, comes=Locked(), also=asked_with_login),
    Scenario(name="login: of an additional index", does=in_the_variable, comes=Locked(), also=asked_with_login),
    Scenario(name="login: in the addresses of files", does=in_file_addresses, comes=Locked(), also=asked_with_login),
    Scenario(name="login: of another in the addresses of files", does=of_another, comes=Locked(),
             also=asked_with_login),
    Scenario(name="login: in links", does=in_links, comes=Locked(), also=asked_with_login),
    Scenario(name="login: a token alone", does=token_alone, comes=Locked()),
    Scenario(name="login: of odd letters", does=odd_letters, comes=Locked()),
    Scenario(name="login: told as JSON", does=as_json, comes=Locked()),
    Scenario(name="login: told at length", does=verbose, comes=Locked()),
    Scenario(name="login: of netrc", does=of_netrc, comes=Locked(), also=asked_with_login),
    Scenario(name="login: the same request again", does=in_file_addresses, comes=Locked(), runs=2),
    Scenario(name="login: in what is asked for", does=in_requirements, comes=Refused(status=1)),
    Scenario(name="login: of a proxy", does=proxied, comes=Refused(says=("407",))),
    Scenario(name="signed files", does=signed, comes=Locked(), absent=SIGNATURE),
    Scenario(name="signed files again", does=signed, comes=Locked(), absent=SIGNATURE, runs=2),
    Scenario(name="a signed address in a redirect", does=signed_elsewhere, comes=Locked(), absent=SIGNATURE),
    Scenario(name="a signature that is too old", does=signed_and_refused, comes=Refused(says=("demo", "403"))),
    refused("that is wrong", status("401 Unauthorized"), "401", "credentials"),
    refused("that may not", status("403 Forbidden"), "403"), refused("and a fault", status("500 Oops"), "500"),
    refused("and a redirect to a file", redirect("file:///etc/passwd"), "no http(s)"),
    refused("and a page that is none", ok(b"[]"), "PEP 691"),
    option("an additional index that is not there", "--extra-index-url", f"http://{AT}/simple", says=(SHUT,)),
    option("a torch index that is not there", "--cuda", "11.8", "--torch-index", f"http://{AT}/whl", says=(), code=1),
    option("a torch index that is none", "--torch-index", f"ftp://{AT}/whl", says=("--torch-index",), code=2),
    option("a torch index that is a path of one", "--torch-index", f"http://{AT}/whl/cu118", says=("cu118",), code=2),
    option("a release source that is none", "--flash-attn-source", f"ftp://{AT}/x", says=("--flash-attn-source",),
           code=2),
    option("a channel that is not there", "--format", "conda-lock", "--channel", f"http://{AT}/chan", says=(SHUT,)),
    option("a token of a channel", "--format", "conda-lock", "--channel", f"http://{SHUT}/t/{SECRET}/chan",
           says=(SHUT,)),
    option("an index that is a file", "--extra-index-url", f"file://{LOGIN}@host/simple", says=(), code=2),
    option("an index of another kind", "--extra-index-url", f"gopher://{AT}/simple", says=("gopher",), code=2),
)
