"""A whole lock behind a proxy, a login in netrc, a client's certificate and several indexes."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.sources.connect import hosts_of, tls_context
from stackfix.sources.errors import IndexUnreachable
from stackfix.sources.settings import read_settings
from stackfix.sources.transport import Transport
from tests.cli_world import ASKED, Say, World, settle, speaker
from tests.replay.wheels import make_wheel
from tests.sources_servers import RawServer, header_of, make_certificate, ok, settings_for, status

LOCK = ("lock", *ASKED, "--format", "requirements", "--with", "idna")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with World(dated=True).served() as served:
        settle(monkeypatch, tmp_path, served.url)
        monkeypatch.setenv("HOME", str(tmp_path))
        yield served


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    return speaker(capfd)


@pytest.mark.parametrize("variable", ["PIP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_lock_through_a_proxy(variable: str, world: World, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts: set[str | None] = set()

    def forwarded(head: str) -> bytes:
        """The answer of the index, which nobody but the proxy can find."""
        hosts.add(header_of(head, "host"))
        return world.reply(head.replace("GET http://index.invalid", "GET ", 1))

    world.url = "http://index.invalid/simple"
    with RawServer(forwarded) as proxy:
        monkeypatch.delenv("NO_PROXY")
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(variable, proxy.url)
        said = say(*LOCK, "--index-url", world.url)
        assert said.status == 0, said
    assert hosts == {"index.invalid"}
    assert "idna==3.7" in Path("requirements.txt").read_text()


def test_a_lock_with_a_login_from_netrc(world: World, say: Say) -> None:
    wanted = "Basic " + b64encode(b"me:s3cret").decode()

    def guarded(head: str) -> bytes:
        known = header_of(head, "authorization") == wanted
        return world.reply(head) if known else status("401 Unauthorized", "WWW-Authenticate: Basic")

    with RawServer(guarded) as index:
        world.url = f"{index.url}/simple"
        said = say(*LOCK, "--index-url", world.url)
        assert said.status == 3, said
        Path(".netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
        Path(".netrc").chmod(0o600)
        said = say(*LOCK, "--index-url", world.url)
        assert said.status == 0, said
    assert "s3cret" not in said.out + said.err + Path("requirements.txt").read_text()
    kept = b"".join(path.read_bytes() for path in Path(".cache").rglob("*") if path.is_file())
    assert b"s3cret" not in kept
    assert b64encode(b"me:s3cret") not in kept


def test_several_indexes_are_asked_in_order_and_one_that_fails_ends_the_lock(world: World, say: Say) -> None:
    files = {"idna": {"idna-1.0-py3-none-any.whl": make_wheel("idna-1.0-py3-none-any.whl")}}
    with World(projects={}).served() as empty, World(projects=files).served() as second:
        words = ("--extra-index-url", empty.url, "--extra-index-url", second.url, "--index-url", world.url)
        said = say(*LOCK, *words)
        assert said.status == 0, said
        assert "idna==1.0" in Path("requirements.txt").read_text()
        assert f"taken from {second.url} (--extra-index-url)" in said.err
        assert "/simple/idna/" in empty.asked
        assert "/simple/idna/" not in world.asked
        empty.answers["/simple/idna/"] = status("403 Forbidden")
        said = say(*LOCK, *words)
        assert said.status == 3, said
        assert f"{empty.url}/idna/: it answered 403" in said.err


def mutual(folder: Path) -> tuple[Path, Path, ssl.SSLContext]:
    """The bundle that trusts a server which asks who its clients are, a client's certificate, the server's side."""
    for name in ("server", "client"):
        (folder / name).mkdir()
    bundle, context = make_certificate(folder / "server")
    certificate, _ = make_certificate(folder / "client")
    own = folder / "client.pem"
    own.write_text(certificate.read_text() + (folder / "client/key.pem").read_text())
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    return bundle, own, context


def test_a_client_s_certificate_is_shown_to_the_index_alone(tmp_path: Path) -> None:
    bundle, own, context = mutual(tmp_path)
    with RawServer(lambda _: ok(b"hello"), tls=context) as server:
        environ = {"PIP_CERT": str(bundle), "PIP_CLIENT_CERT": str(own), "PIP_RETRIES": "0",
                   "PIP_INDEX_URL": f"{server.url}/simple"}
        settings = read_settings(environ=environ, home=tmp_path, prefix=tmp_path)
        assert settings.client_cert == str(own)
        client = Transport(settings)
        assert client.get(f"{server.url}/simple/x/", limit=100).body == b"hello"
        with pytest.raises(IndexUnreachable):       # the same server by another name is another host
            client.get(f"https://localhost:{server.port}/simple/x/", limit=100)
        client.close()
    assert read_settings(environ={**environ, "SSL_CLIENT_CERT": "/own.pem"}, home=tmp_path,
                         prefix=tmp_path).client_cert == "/own.pem"


def test_a_client_s_certificate_that_cannot_be_used_is_one_error(tmp_path: Path) -> None:
    bundle, own, _ = mutual(tmp_path)
    assert tls_context(str(bundle), str(own)) is not None
    for text in (None, "no PEM", own.read_text().partition("-----BEGIN PRIVATE")[0]):
        path = tmp_path / "other.pem"
        if text is not None:
            path.write_text(text)
        with pytest.raises(BadInput, match=r"client certificate .*other\.pem: cannot be used"):
            tls_context(str(bundle), str(path))
    assert hosts_of(settings_for("https://x/simple", "no address")) == {"x"}
