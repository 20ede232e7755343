"""Who we are to which server: passwords of `keyring` and netrc, and that none goes anywhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.errors import StackfixError, Unreachable
from stackfix.matrix.load import load_matrix
from stackfix.sources.address import parse_address
from stackfix.sources.credentials import Credentials
from stackfix.sources.index import PackageIndex
from stackfix.sources.keyring import LARGEST, Keyring
from stackfix.sources.records import IndexSettings
from stackfix.sources.releases import open_releases
from stackfix.sources.settings import read_settings
from stackfix.sources.torch_index import open_path
from tests.sources_servers import RawServer, header_of, path_of, settings_for, status
from tests.uv_index_servers import Indexes, bare_environment, uv, write_all

LOGIN = "me:s3cret"
PROGRAM = """#!/bin/sh
echo "$@" >> "$HOME/asked"
case "$*" in
    {answers}
    *) echo "no such entry s3cret" >&2; exit 1;;
esac
"""
KNOWS_ALL = '*"--mode creds") printf "me\\ns3cret\\n";; *" me") echo s3cret;;'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the only program `keyring` that is found."""
    place = tmp_path / "home"
    (place / "bin").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("PATH", os.pathsep.join((str(place / "bin"), "/usr/bin", "/bin")))
    return place


def program(home: Path, answers: str = KNOWS_ALL) -> None:
    (home / "bin/keyring").write_text(PROGRAM.format(answers=answers))
    (home / "bin/keyring").chmod(0o755)


def asked(home: Path) -> list[str]:
    """What the program was asked, in order."""
    return (home / "asked").read_text().splitlines() if (home / "asked").exists() else []


def settings_of(root: Path, text: str, environ: Mapping[str, str] | None = None) -> IndexSettings:
    """Settings of a project with this uv.toml."""
    write_all(root, {"p/uv.toml": text})
    return read_settings(environ=environ or {}, home=root / "home", project=root / "p", prefix=root / "env")


def found(settings: IndexSettings, root: Path) -> str:
    """The version of demo, or the error."""
    try:
        with PackageIndex(settings, cache_dir=root / "ours", offline=False) as index:
            page = index.page("demo")
            [version] = page.version_strings()
            index.metadata(page.files(version)[0])
            return version
    except StackfixError as fault:
        return str(fault)


KINDS: dict[str, tuple[str, str, bool]] = {      # address's user, more lines of the index, whether a provider is set
    "no user": ("", "", True), "a user": ("me@", "", True), "a user, no provider": ("me@", "", False),
    "always": ("", 'authenticate = "always"', True), "always, no provider": ("", 'authenticate = "always"', False),
    "never": ("", 'authenticate = "never"', True), "another user": ("you@", "", True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_uv_asks_the_same_of_keyring(kind: str, home: Path, tmp_path: Path) -> None:
    user, more, provider = KINDS[kind]
    program(home)
    with Indexes({"locked": {"demo": "1.0"}}, logins={"locked": LOGIN}) as indexes:
        url = f"{indexes.url}/locked/simple"
        text = ('keyring-provider = "subprocess"\n' if provider else "") + (
            f'[[index]]\nname = "locked"\nurl = "{url.replace("://", f"://{user}")}"\ndefault = true\n{more}\n')
        write_all(tmp_path, {"p/uv.toml": text, "p/r.in": "demo\n"})
        run = uv(("pip", "compile", "-q", "r.in"), tmp_path / "p", bare_environment(home), tmp_path / "cache")
        theirs = (run.returncode == 0, list(dict.fromkeys(asked(home))))
        (home / "asked").unlink(missing_ok=True)
        indexes.server.heads.clear()
        said = found(settings_of(tmp_path, text), tmp_path)
        assert (said == "1.0", asked(home)) == theirs, said
        assert "s3cret" not in said
        if kind == "never":
            assert indexes.logins_sent() == {"locked": {None}}
        if kind == "a user":
            assert asked(home) == [f"get {url} me"]
            assert indexes.logins_sent() == {"locked": {LOGIN}}, "nothing is sent before the password is known"


BOTH_FORMS = (      # pip 26 asks for JSON
    '*--output=json*) printf \'{{"username": "me", "password": "s3cret"}}\';; ' + KNOWS_ALL)


@pytest.mark.parametrize("user", ["me@", ""])
def test_pip_s_setting_lets_keyring_be_asked_as_pip_asks(user: str, home: Path, tmp_path: Path) -> None:
    program(home, BOTH_FORMS.replace("{{", "{").replace("}}", "}"))
    with Indexes({"locked": {"demo": "1.0"}}, logins={"locked": LOGIN}) as indexes:
        url = f"{indexes.url}/locked/simple"
        environ = {"PIP_INDEX_URL": url.replace("://", f"://{user}"), "PIP_KEYRING_PROVIDER": "subprocess"}
        words = [sys.executable, "-m", "pip", "download", "demo", "--no-deps", "--no-input", "-d", str(tmp_path / "o")]
        run = subprocess.run(
            words, env=bare_environment(home, PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1", **environ),
            check=False, capture_output=True, text=True)
        theirs = [line.partition("get ")[2].split()[0] for line in asked(home)]
        assert theirs or not user, run.stderr       # pip before 26 asks for no login without a user
        assert (run.returncode == 0) == bool(theirs), run.stderr
        (home / "asked").unlink(missing_ok=True)
        assert found(read_settings(environ=environ, home=home, prefix=tmp_path), tmp_path) == "1.0"
        ours = [line.split()[1] for line in asked(home)]
        assert ours == [f"{url}/"], "once for all requests"
        assert not theirs or set(theirs) == set(ours)
    assert read_settings(environ={**environ, "UV_KEYRING_PROVIDER": "disabled"}, home=home, prefix=home).keyring is None


def test_a_refusal_asks_keyring_once_for_the_index_alone(home: Path, tmp_path: Path) -> None:
    """As pip 26; a keyring that knows nothing leaves the refusal as it is."""
    program(home, "never) ;;")
    with Indexes({"locked": {"demo": "1.0"}}, logins={"locked": LOGIN}) as indexes:
        environ = {"PIP_INDEX_URL": f"{indexes.url}/locked/simple", "PIP_KEYRING_PROVIDER": "subprocess"}
        settings = read_settings(environ=environ, home=home, prefix=tmp_path)
        with PackageIndex(settings, cache_dir=tmp_path / "c", offline=False) as index:
            for name in ("demo", "other"):
                with pytest.raises(Unreachable, match="it answered 401"):
                    index.page(name)
        host = indexes.url.removeprefix("http://")
        assert asked(home) == [f"get {indexes.url}/locked/simple/ --mode creds", f"get {host} --mode creds"]
        assert indexes.logins_sent() == {"locked": {None}}


@pytest.mark.parametrize("user", ["", "me@"])
def test_keyring_is_not_asked_for_what_is_no_index(user: str, home: Path, tmp_path: Path) -> None:
    """The torch index, a copy of it and the release source: their refusals, of a limit that is reached say, ask nobody.

    Who names a user there wants to be known.
    """
    program(home)
    environ = {"PIP_INDEX_URL": "https://index.invalid/simple", "PIP_KEYRING_PROVIDER": "subprocess"}
    settings = read_settings(environ=environ, home=home, prefix=tmp_path)
    with RawServer(lambda _: status("403 Forbidden")) as server:
        url = server.url.replace("://", f"://{user}")
        with open_path(f"{url}/whl/cu118", settings=settings, cache_dir=tmp_path / "c", offline=False) as index, \
                pytest.raises(Unreachable, match="it answered 403"):
            index.page("torch")
        torch = len(asked(home))
        with open_releases(f"{url}/api", sources=load_matrix().sources, settings=settings, cache_dir=tmp_path / "c",
                           offline=False) as releases, pytest.raises(Unreachable, match="it answered 403"):
            releases.assets(("2.5.8",))
        assert (torch > 0, len(asked(home)) > torch) == (bool(user), bool(user))
        assert any(server.header("authorization")) == bool(user)


def test_netrc_goes_by_plain_http_only_to_hosts_that_settings_name() -> None:
    """An index page, or a redirect, may name any host that netrc has a login for."""
    netrc = (("files.example", "me", "s3cret"), ("index.example", "me", "s3cret"), ("api.example", "me", "s3cret"))
    known = Credentials(settings_for("http://index.example/simple", netrc=netrc))
    known.learn("http://api.example/x", is_index=False)
    sent = {url: known.header_for(parse_address(url)) is not None for url in (
        "http://index.example/files/x", "http://api.example/x", "https://files.example/x", "http://files.example/x",
        "http://files.example:8080/x")}
    assert list(sent.values()) == [True, True, True, False, False]


def test_the_host_is_asked_where_the_address_is_not_known(home: Path, tmp_path: Path) -> None:
    with Indexes({"locked": {"demo": "1.0"}}, logins={"locked": LOGIN}) as indexes:
        host = indexes.url.removeprefix("http://")
        program(home, f'"get {host} me") echo s3cret;;')
        url = f"{indexes.url}/locked/simple".replace("://", "://me@")
        text = f'keyring-provider = "subprocess"\nindex-url = "{url}"\n'
        assert found(settings_of(tmp_path, text), tmp_path) == "1.0"
        assert asked(home) == [f"get {indexes.url}/locked/simple me", f"get {host} me"]


def test_a_keyring_that_knows_nothing_leaves_the_user_alone(home: Path, tmp_path: Path) -> None:
    """A token often stands in the user's place, without a password."""
    program(home, "never) ;;")
    with Indexes({"locked": {"demo": "1.0"}}, logins={"locked": "token:"}) as indexes:
        url = f"{indexes.url}/locked/simple".replace("://", "://token@")
        text = f'keyring-provider = "subprocess"\nindex-url = "{url}"\n'
        assert found(settings_of(tmp_path, text), tmp_path) == "1.0"
        assert len(asked(home)) == len(set(asked(home))) == 3, "once for all requests"


def test_netrc_comes_before_keyring(home: Path, tmp_path: Path) -> None:
    program(home, "*) echo wrong;;")
    (home / ".netrc").write_text(f"machine 127.0.0.1 login me password {LOGIN.partition(':')[2]}\n")
    (home / ".netrc").chmod(0o600)
    with Indexes({"locked": {"demo": "1.0"}}, logins={"locked": LOGIN}) as indexes:
        url = f"{indexes.url}/locked/simple".replace("://", "://me@")
        text = f'keyring-provider = "subprocess"\nindex-url = "{url}"\n'
        assert found(settings_of(tmp_path, text), tmp_path) == "1.0"
        assert asked(home) == []


def hang(_: Path) -> str:
    return "*) sleep 60;;"


def hang_in_a_child(_: Path) -> str:
    return "*) sleep 60 & exit 0;;"


def endless(_: Path) -> str:
    return "*) yes;;"


def too_much(_: Path) -> str:
    return f"*) head -c {LARGEST * 2} /dev/zero | tr '\\0' x;;"


def no_text(_: Path) -> str:
    return "*) printf '\\377\\376\\n';;"


def empty(_: Path) -> str:
    return "*) echo;;"


@pytest.mark.parametrize("answers", [hang, hang_in_a_child, endless, too_much, no_text, empty])
def test_a_program_that_misbehaves_is_no_answer(answers: Callable[[Path], str], home: Path) -> None:
    program(home, answers(home))
    began = time.monotonic()
    keyring = Keyring(seconds=0.5)
    assert keyring.login("https://x/simple", parse_address("https://x/simple"), "me") is None
    assert time.monotonic() - began < 30, "it is not waited for"


def test_no_word_of_an_address_is_taken_for_an_option(home: Path) -> None:
    program(home)
    address = parse_address("https://x/simple")
    for user in ("--list-backends", "", "a\nb", "a\0b"):
        assert Keyring().login("https://x/simple", address, user) is None
    assert asked(home) == []


def test_a_password_goes_to_no_other_host(home: Path, tmp_path: Path) -> None:
    """Neither where the index redirects, nor to the host that has the files, nor to another index."""
    program(home)
    with Indexes({"other": {"demo": "1.0"}}) as elsewhere:
        def moved(head: str) -> bytes:
            if header_of(head, "authorization") is None:
                return status("401 Unauthorized")
            return status("302 Found", f"Location: {elsewhere.url}/other{path_of(head)}")

        with RawServer(moved) as index:
            text = ('keyring-provider = "subprocess"\n'
                    f'[[index]]\nurl = "{index.url.replace("://", "://me@")}/simple"\ndefault = true\n')
            assert found(settings_of(tmp_path, text), tmp_path) == "1.0"
            assert header_of(index.heads[0], "authorization") is not None
        assert elsewhere.logins_sent() == {"other": {None}}
    cached = b"".join(path.read_bytes() for path in (tmp_path / "ours").rglob("*") if path.is_file())
    assert b"s3cret" not in cached


def test_an_index_that_must_have_a_login_is_not_asked_without_one(home: Path, tmp_path: Path) -> None:
    with Indexes({"a": {"demo": "1.0"}}) as indexes:
        text = f'[[index]]\nurl = "{indexes.url}/a/simple"\ndefault = true\nauthenticate = "always"\n'
        said = found(settings_of(tmp_path, text), tmp_path)
        assert "none is known" in said
        assert indexes.asked == []
        assert home.is_dir()


def test_an_index_that_must_have_none_gets_none(tmp_path: Path) -> None:
    with Indexes({"a": {"demo": "1.0"}}) as indexes:
        url = f"{indexes.url}/a/simple"
        text = f'[[index]]\nurl = "{url.replace("://", "://me:s3cret@")}"\ndefault = true\nauthenticate = "never"\n'
        settings = replace(settings_of(tmp_path, text), netrc=(("127.0.0.1", "me", "s3cret"),))
        assert found(settings, tmp_path) == "1.0"
        assert indexes.logins_sent() == {"a": {None}}


def test_a_refused_password_is_one_error_without_it(home: Path, tmp_path: Path) -> None:
    program(home, '*" me") echo wr0ng;;')
    with Indexes({"locked": {"demo": "1.0"}}, logins={"locked": LOGIN}) as indexes:
        url = f"{indexes.url}/locked/simple".replace("://", "://me@")
        text = f'keyring-provider = "subprocess"\nindex-url = "{url}"\n'
        with PackageIndex(settings_of(tmp_path, text), cache_dir=tmp_path / "c", offline=False) as index, \
                pytest.raises(Unreachable, match="it answered 401") as fault:
            index.page("demo")
        assert "wr0ng" not in str(fault.value)
        assert "me@" not in str(fault.value)
