"""Where to look, out of options, variables and files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from stackfix.errors import BadInput, Unreachable
from stackfix.sources import pip_settings, uv_settings
from stackfix.sources.address import shown
from stackfix.sources.records import IndexSettings
from stackfix.sources.settings import pip_default_index, read_settings

DEFAULT = "https://default.example/simple"


def read(home: Path, environ: dict[str, str] | None = None, **options: Any) -> IndexSettings:
    """Settings of a made-up Linux machine: files outside `home` are those below home/root."""
    def read_text(path: Path) -> str | None:
        path = path if path.is_relative_to(home) else home / "root" / path.relative_to("/")
        return path.read_text() if path.is_file() else None

    how = {"default_index": lambda: DEFAULT, "read": read_text, "platform": "linux", "prefix": home / "env", **options}
    return read_settings(environ=environ or {}, home=home, **how)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_any_setting_it_is_pips_default(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert (settings.indexes, settings.origin, settings.ignored) == ((DEFAULT,), ("pip's default",), ())
    assert (settings.cert, settings.proxies, settings.no_proxy) == (None, (), None)
    assert (settings.timeout, settings.retries) == (15.0, 5)
    assert (settings.netrc, settings.release_token) == ((), None)


def test_pips_default_is_read_from_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    from pip._internal.models import index

    assert pip_default_index() == index.PyPI.simple_url
    monkeypatch.delattr(index, "PyPI")
    with pytest.raises(Unreachable, match="default index") as fault:
        pip_default_index()
    assert "--index-url" in str(fault.value.next_step())


def test_pips_default_is_not_asked_for_where_another_is_set(tmp_path: Path) -> None:
    def moved() -> str:
        raise AssertionError

    assert read(tmp_path, index_url="https://a/simple", default_index=moved).indexes == ("https://a/simple",)


def test_options_come_before_uv_before_pip(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    write(tmp_path / "root/etc/pip.conf", "[global]\nindex-url = https://8/s\n")
    assert where(tmp_path, environ) == ("https://8/s", "/etc/pip.conf [global]")
    write(tmp_path / ".config/pip/pip.conf", "[global]\nindex-url = https://7/s\n")
    assert where(tmp_path, environ) == ("https://7/s", f"{tmp_path}/.config/pip/pip.conf [global]")
    write(tmp_path / "env/pip.conf", "[install]\nindex_url = https://6/s\n")
    assert where(tmp_path, environ) == ("https://6/s", f"{tmp_path}/env/pip.conf [install]")
    environ["PIP_INDEX_URL"] = "https://5/s"
    assert where(tmp_path, environ) == ("https://5/s", "PIP_INDEX_URL")
    write(tmp_path / "root/etc/uv/uv.toml", 'index-url = "https://4b/s"\n')
    assert where(tmp_path, environ) == ("https://4b/s", "/etc/uv/uv.toml")
    write(tmp_path / ".config/uv/uv.toml", '[[index]]\nurl = "https://4/s"\ndefault = true\n')
    assert where(tmp_path, environ) == ("https://4/s", f"{tmp_path}/.config/uv/uv.toml")
    environ["UV_INDEX_URL"] = "https://3/s"
    assert where(tmp_path, environ) == ("https://3/s", "UV_INDEX_URL")
    environ["UV_DEFAULT_INDEX"] = "mine=https://2/s/"
    assert where(tmp_path, environ) == ("https://2/s", "UV_DEFAULT_INDEX")
    settings = read(tmp_path, environ, index_url="https://1/s")
    assert (settings.indexes, settings.origin) == (("https://1/s",), ("--index-url",))


def where(home: Path, environ: dict[str, str]) -> tuple[str, str]:
    settings = read(home, environ)
    return settings.indexes[-1], settings.origin[-1]


def test_additional_indexes_come_first_from_one_source(tmp_path: Path) -> None:
    environ = {"PIP_EXTRA_INDEX_URL": "https://p1/s\n https://p2/s"}
    assert read(tmp_path, environ).indexes == ("https://p1/s", "https://p2/s", DEFAULT)
    environ |= {"UV_INDEX": "a=https://u1/s https://u2/s", "UV_EXTRA_INDEX_URL": "https://u3/s"}
    assert read(tmp_path, environ).indexes == ("https://u1/s", "https://u2/s", "https://u3/s", DEFAULT)
    options = read(tmp_path, environ, index_url="https://o/s", extra_index_urls=("https://o1/s", "https://o/s/"))
    assert options.indexes == ("https://o1/s", "https://o/s")
    assert options.origin == ("--extra-index-url", "--extra-index-url")


@pytest.mark.parametrize(("flag", "options"), [
    ("--index-url", {"index_url": "file:///srv/simple"}), ("--index-url", {"index_url": "/srv/simple"}),
    ("--index-url", {"index_url": "ftp://x/"}), ("--index-url", {"index_url": "https://"}),
    ("--extra-index-url", {"extra_index_urls": ("file:///srv/simple",)}), ("--index-url", {"index_url": ""}),
])
def test_an_option_that_holds_for_this_machine_alone_is_refused(
    flag: str, options: dict[str, Any], tmp_path: Path,
) -> None:
    with pytest.raises(BadInput, match=flag) as fault:
        read(tmp_path, **options)
    assert "https://" in str(fault.value.next_step())


def test_settings_of_this_machine_alone_are_listed_and_steer_nothing(tmp_path: Path) -> None:
    write(tmp_path / ".config/pip/pip.conf", "[global]\nextra-index-url = file:///opt/simple https://x/s\n"
                                             "find-links = /opt/wheels\nconstraint = /opt/c.txt\n")
    environ = {"PIP_INDEX_URL": "file:///opt/pypi", "UV_FIND_LINKS": "/w", "PIP_NO_INDEX": "1"}
    settings = read(tmp_path, environ)
    assert settings.indexes == ("https://x/s", DEFAULT)
    text = "\n".join(settings.ignored)
    for part in ("find-links = /opt/wheels", "constraint = /opt/c.txt", "UV_FIND_LINKS", "PIP_NO_INDEX: no-index"):
        assert part in text
    assert str(tmp_path / ".config/pip/pip.conf") in text
    assert [note.partition(", since")[0] for note in settings.notes] == [
        f"the index file:///opt/simple ({tmp_path}/.config/pip/pip.conf [global]) was left out",
        "the index file:///opt/pypi (PIP_INDEX_URL) was left out"]


@pytest.mark.parametrize("address", ["/srv/simple", "./simple", "../x", "~/x", "wheels", "C:/wheels", "FILE:///srv/x"])
def test_an_index_that_is_a_folder_is_left_out_with_a_note(address: str, tmp_path: Path) -> None:
    for environ in ({"UV_INDEX": address}, {"PIP_EXTRA_INDEX_URL": address}, {"PIP_INDEX_URL": address}):
        settings = read(tmp_path, environ)
        assert settings.indexes == (DEFAULT,)
        assert len(settings.notes) == 1
        assert f"({next(iter(environ))}) was left out, since it holds for this machine alone" in settings.notes[0]
        assert not settings.ignored
    assert read(tmp_path, {"PIP_INDEX_URL": address}, index_url="https://o/s").notes == ()
    assert read(tmp_path, {"UV_INDEX": address}, extra_index_urls=("https://o/s",)).notes == ()


NO_ADDRESS = {
    "http://127.0.0.1:99999/simple": "is no valid address", "http://[::1": "is no valid address",
    "htps://idx.corp/simple": "has the scheme 'htps'", "ftp://h/s": "has the scheme 'ftp'",
    "https:/idx.corp/simple": "names no valid host", "https:idx.corp/simple": "names no valid host",
    "https://": "names no valid host", "idx.corp/simple": "has no scheme", "idx.corp": "has no scheme",
    "https//idx.corp/simple": "has no scheme", "localhost:8080/simple": "has the scheme 'localhost'",
    "127.0.0.1:8080/simple": "has no scheme",
}


@pytest.mark.parametrize(("address", "reason"), NO_ADDRESS.items(), ids=str)
def test_an_index_that_is_no_address_is_an_error_that_names_where_it_is_set(
    address: str, reason: str, tmp_path: Path,
) -> None:
    """Passed over, its private projects would be looked up on the public index."""
    for variable in ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "PIP_INDEX_URL",
                     "PIP_EXTRA_INDEX_URL"):
        with pytest.raises(BadInput, match=reason) as fault:
            read(tmp_path, {variable: address})
        kind = "additional" if variable == "UV_INDEX" or "EXTRA" in variable else "default"
        assert fault.value.what().startswith(f"{variable}: the {kind} index")
        assert "https://" in str(fault.value.next_step())
    for text in (f"index-url = '{address}'", f"extra-index-url = ['{address}']", f"[[index]]\nurl = '{address}'",
                 f"[pip]\nindex-url = '{address}'", f"[[index]]\nurl = '{address}'\ndefault = true"):
        write(tmp_path / "uv.toml", text)
        with pytest.raises(BadInput, match=reason) as fault:
            read(tmp_path, {"UV_CONFIG_FILE": str(tmp_path / "uv.toml")})
        assert fault.value.what().startswith(f"{tmp_path}/uv.toml: the ")


def test_what_an_option_replaces_is_not_judged(tmp_path: Path) -> None:
    typo = "htps://idx.corp/simple"
    assert read(tmp_path, {"PIP_INDEX_URL": typo, "UV_INDEX_URL": typo}, index_url="https://o/s").indexes == (
        "https://o/s",)
    assert read(tmp_path, {"UV_INDEX": typo}, extra_index_urls=("https://o/s",)).indexes == ("https://o/s", DEFAULT)
    assert read(tmp_path, {"UV_INDEX": "https://u/s", "PIP_EXTRA_INDEX_URL": typo}).indexes == ("https://u/s", DEFAULT)


@pytest.mark.parametrize("address", [
    "http://me:s3/s3cret@h/simple", "http://me:s3#s3cret@h/s", "http://me:s3?s3cret@h/s", "me:s3cret@h.example/simple",
    "https:/me:s3cret@h.example/simple", "htps://me:s3cret@h.example/simple", "http://me:s3cret@h:99999/s",
    "https//me:s3cret@h.example/simple",
])
def test_no_login_of_a_mistyped_index_is_shown(address: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="UV_INDEX") as fault:
        read(tmp_path, {"UV_INDEX": address})
    assert "s3" not in fault.value.what().replace("https", "")
    assert "  " not in fault.value.what()


@pytest.mark.parametrize("address", ["file:///me:s3cret@x", "file://me:s3cret@h/x", "/srv/me:s3cret@x",
                                     "./me:s3cret@h/x"])
def test_no_login_of_an_index_that_is_left_out_is_shown(address: str, tmp_path: Path) -> None:
    note, = read(tmp_path, {"UV_INDEX": address}).notes
    assert "s3cret" not in note


@pytest.mark.parametrize("address", ["https:/idx.corp/simple", "file:///srv/@scope/x", "/srv/x", "http://h:99999/s"])
def test_an_address_is_shown_as_it_was_written(address: str) -> None:
    assert shown(f"{address}?token=x#y") == address


def test_an_empty_address_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "uv.toml", "[[index]]\nurl = ''\n")
    with pytest.raises(BadInput, match=r"uv\.toml: the additional index: has no address"):
        read(tmp_path, {"UV_CONFIG_FILE": str(tmp_path / "uv.toml")})


def test_uv_files_and_their_kinds_of_index(tmp_path: Path) -> None:
    write(tmp_path / ".config/uv/uv.toml", """
        extra-index-url = ["https://e/s"]
        find-links = ["/w"]
        [[index]]
        name = "my-corp"
        url = "https://corp/s"
        [[index]]
        name = "torch"
        url = "https://t/s"
        explicit = true
        [pip]
        index-url = "https://p/s"
    """)
    environ = {"UV_INDEX_MY_CORP_USERNAME": "me@x", "UV_INDEX_MY_CORP_PASSWORD": "p:w"}
    settings = read(tmp_path, environ)
    assert settings.indexes == ("https://me%40x:p%3Aw@corp/s", "https://e/s", "https://p/s")
    assert any("torch" in note and "explicit" in note for note in settings.ignored)
    assert not any("p%3Aw" in note for note in settings.ignored)
    assert read(tmp_path, {"UV_NO_CONFIG": "1"}).indexes == (DEFAULT,)
    write(tmp_path / "other.toml", 'index-url = "https://other/s"')
    assert read(tmp_path, {"UV_CONFIG_FILE": str(tmp_path / "other.toml")}).indexes == ("https://other/s",)


@pytest.mark.parametrize(("file", "text"), [
    (".config/uv/uv.toml", "index-url = "), (".config/uv/uv.toml", "[[index]]\nname = 'x'\n"),
    (".config/pip/pip.conf", "no section\n"), (".config/pip/pip.conf", "[global]\ntimeout = soon\n"),
    (".config/pip/pip.conf", "[global]\n[global]\n"),
])
def test_a_broken_settings_file_is_named(file: str, text: str, tmp_path: Path) -> None:
    write(tmp_path / file, text)
    with pytest.raises(BadInput, match=file):
        read(tmp_path)


def test_an_unreadable_settings_file_is_named(tmp_path: Path) -> None:
    from stackfix.sources.settings_files import read_text

    (tmp_path / "pip.conf").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match=r"pip\.conf: cannot be read \(not UTF-8\)"):
        read_text(tmp_path / "pip.conf")
    assert read_text(tmp_path) is None
    assert read_text(tmp_path / "pip.conf" / "x") is None


def test_timeouts_retries_and_certificates(tmp_path: Path) -> None:
    pip = {"PIP_DEFAULT_TIMEOUT": "60", "PIP_RETRIES": "1", "PIP_CERT": "~/ca.pem", "REQUESTS_CA_BUNDLE": "/r.pem"}
    settings = read(tmp_path, pip)
    assert (settings.timeout, settings.retries, settings.cert) == (60.0, 1, str(tmp_path / "ca.pem"))
    uv = {**pip, "UV_HTTP_TIMEOUT": "7", "UV_HTTP_RETRIES": "0", "SSL_CERT_FILE": "/s.pem"}
    settings = read(tmp_path, uv)
    assert (settings.timeout, settings.retries, settings.cert) == (7.0, 0, "/s.pem")
    assert read(tmp_path, {"PIP_TIMEOUT": "3", "PIP_DEFAULT_TIMEOUT": "60"}).timeout == 3.0
    assert read(tmp_path, {"CURL_CA_BUNDLE": "/c.pem"}).cert == "/c.pem"


@pytest.mark.parametrize("variable", ["UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES", "PIP_TIMEOUT", "PIP_DEFAULT_TIMEOUT",
                                      "PIP_RETRIES"])
@pytest.mark.parametrize("text", ["soon", "nan", "NaN", "-nan", "inf", "-Infinity", "1e999", "9" * 400, "x" * 5000])
def test_what_is_no_number_is_named(variable: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"{variable}: .* is no number") as fault:
        read(tmp_path, {variable: text})
    assert len(fault.value.what()) < 200


def test_a_timeout_of_pip_conf_that_is_no_number_is_named(tmp_path: Path) -> None:
    write(tmp_path / ".config/pip/pip.conf", "[global]\ntimeout = nan\n")
    with pytest.raises(BadInput, match=r"pip\.conf \[global\]: 'nan' is no number"):
        read(tmp_path)


def test_proxies(tmp_path: Path) -> None:
    environ = {"HTTP_PROXY": "http://A", "http_proxy": "http://a", "ALL_PROXY": "http://all", "NO_PROXY": "x"}
    settings = read(tmp_path, environ)
    assert settings.proxies == (("http", "http://a"), ("all", "http://all"))
    assert settings.no_proxy == "x"
    assert read(tmp_path, {"HTTP_PROXY": "http://A", "REQUEST_METHOD": "GET"}).proxies == ()
    assert read(tmp_path, {"PIP_PROXY": "http://p", **environ}).proxies == (("http", "http://p"), ("https", "http://p"))


def test_netrc_entries_are_for_named_hosts_only(tmp_path: Path) -> None:
    write(tmp_path / ".netrc", "machine Index.Example login me password pw\ndefault login any password where\n")
    (tmp_path / ".netrc").chmod(0o600)
    assert read(tmp_path).netrc == (("index.example", "me", "pw"),)
    write(tmp_path / "other", "machine a.example login a password b\n")
    assert read(tmp_path, {"NETRC": str(tmp_path / "other")}).netrc == (("a.example", "a", "b"),)
    write(tmp_path / "other", "machine")
    broken = read(tmp_path, {"NETRC": str(tmp_path / "other")})
    assert (broken.netrc, len(broken.ignored)) == ((), 1)
    assert str(tmp_path / "other") in broken.ignored[0]
    assert read(tmp_path, {"NETRC": str(tmp_path / "none")}).netrc == ()


def test_what_a_netrc_says_is_not_shown_where_it_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path / ".netrc", "machine a.example\n  login me password s3cret of-words\n")
    (tmp_path / ".netrc").chmod(0o600)
    [told] = read(tmp_path).ignored
    assert told.startswith(f"{tmp_path}/.netrc: makes no sense at line ")
    assert "s3cret" not in told
    assert "of-words" not in told


def test_secrets_are_in_no_representation(tmp_path: Path) -> None:
    write(tmp_path / ".netrc", "machine a.example login a password s3cret\n")
    (tmp_path / ".netrc").chmod(0o600)
    settings = read(tmp_path, {"GITHUB_TOKEN": "s3cret"})
    assert settings.release_token == "s3cret"
    assert "s3cret" not in repr(settings)


def test_pip_conf_files_in_pips_order(tmp_path: Path) -> None:
    named = {"PIP_CONFIG_FILE": "/named"}
    names = [str(path) for path in pip_settings.config_files(named, Path("/h"), "linux", Path("/p"))]
    assert names == ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", "/h/.pip/pip.conf", "/h/.config/pip/pip.conf",
                     "/p/pip.conf", "/named"]
    assert pip_settings.config_files({"PIP_CONFIG_FILE": "/dev/null"}, Path("/h"), "linux", Path("/p")) == ()
    mac = [str(path) for path in pip_settings.config_files({}, Path("/h"), "darwin", Path("/p"))]
    assert "/h/Library/Application Support/pip/pip.conf" in mac
    windows = [str(path) for path in pip_settings.config_files({"APPDATA": "/a"}, Path("/h"), "win32", Path("/p"))]
    assert windows[-2:] == ["/a/pip/pip.ini", "/p/pip.ini"]
    assert str(uv_settings.config_files({"APPDATA": "/a"}, Path("/h"), "win32")[0]) == "/a/uv/uv.toml"


@pytest.mark.skipif(sys.platform != "linux", reason="pip's paths of this platform are compared")
def test_pip_itself_names_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    monkeypatch.delenv("PIP_CONFIG_FILE", raising=False)
    program = """if True:
        from pip._internal.configuration import get_configuration_files
        files = get_configuration_files()
        print("\\n".join(path for kind in ("global", "user", "site") for path in files[kind]))
    """
    environ = {"HOME": str(tmp_path), "PATH": ""}
    said = subprocess.run([sys.executable, "-c", program], env=environ, check=True, capture_output=True,
                          text=True).stdout
    ours = [str(path) for path in pip_settings.config_files(environ, tmp_path, "linux", Path(sys.prefix))]
    assert said.split("\n")[:-1] == ours


def test_pip_itself_has_the_same_precedence(tmp_path: Path) -> None:
    """pip config list says what is in force for each key and section."""
    import subprocess

    write(tmp_path / ".pip/pip.conf", "[global]\nindex-url = https://old/s\n[install]\nindex-url = https://install/s\n")
    write(tmp_path / ".config/pip/pip.conf", "[global]\nindex-url = https://new/s\n")
    environ = {"HOME": str(tmp_path), "PATH": "", "PIP_CONFIG_FILE": str(tmp_path / "none")}
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], env=environ, check=True, capture_output=True,
                          text=True).stdout
    assert "global.index-url='https://new/s'" in said
    assert "install.index-url='https://install/s'" in said
    assert read(tmp_path, environ).indexes == ("https://install/s",)
    (tmp_path / ".pip/pip.conf").unlink()
    assert read(tmp_path, environ).indexes == ("https://new/s",)
