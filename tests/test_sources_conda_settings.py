"""conda's settings: every place in its order, and an error that names the place where one makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.sources.conda_files import condarc_files
from stackfix.sources.conda_settings import CondaSettings, read_conda_settings


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def settings(tmp_path: Path, condarc: str = "", **environ: str) -> CondaSettings:
    """The settings of a user with this ~/.condarc."""
    write(tmp_path / "home" / ".condarc", condarc)
    return read_conda_settings(environ, tmp_path / "home", system=tmp_path / "system")


def channels(found: CondaSettings) -> list[str]:
    return [text for _, text in found.channels]


def test_nothing_is_set_where_there_is_no_file(tmp_path: Path) -> None:
    assert read_conda_settings({}, tmp_path, system=tmp_path / "system") == CondaSettings()


def test_each_place_goes_before_the_lower_ones(tmp_path: Path) -> None:
    home, root, prefix = tmp_path / "home", tmp_path / "conda", tmp_path / "env"
    places = [
        tmp_path / "system/etc/conda/.condarc", tmp_path / "system/etc/conda/condarc.d/a.yml",
        tmp_path / "system/etc/conda/condarc.d/b.yaml", tmp_path / "system/var/lib/conda/condarc", root / ".condarc",
        tmp_path / "xdg/conda/condarc", home / ".config/conda/.condarc", home / ".conda/condarc", home / ".condarc",
        prefix / ".condarc", tmp_path / "named.yml",
    ]
    for number, place in enumerate(places):
        write(place, f"channels: [c{number}]\nchannel_alias: https://alias{number}.test\n"
                     f"custom_channels: {{shared: https://h{number}.test, own{number}: https://own.test}}\n")
    environ = {"CONDA_EXE": str(root / "bin" / "conda"), "XDG_CONFIG_HOME": str(tmp_path / "xdg"),
               "CONDA_PREFIX": str(prefix), "CONDARC": str(places[-1]), "CONDA_CHANNELS": "first,c3"}
    found = read_conda_settings(environ, home, system=tmp_path / "system")
    # of channels set in two places the higher one counts
    assert channels(found) == ["first", "c3", *(f"c{number}" for number in reversed(range(11)) if number != 3)]
    assert found.alias == "https://alias10.test"
    assert dict(found.custom)["shared"] == "https://h10.test"
    assert {f"own{number}" for number in range(11)} <= dict(found.custom).keys()
    assert dict(found.channels)[str(places[0])] == "c0"


def test_what_is_final_is_taken_from_no_higher_place(tmp_path: Path) -> None:
    write(tmp_path / "system/etc/conda/.condarc", "channels: [corp]  #!final\nchannel_priority: strict\n")
    found = settings(tmp_path, "channels: [mine]\nchannel_priority: disabled\n", CONDA_CHANNELS="mine")
    assert channels(found) == ["corp"]
    assert found.priority == "disabled"


def test_variables_are_filled_in(tmp_path: Path) -> None:
    text = "custom_channels: {ours: 'https://${WHO}:$SECRET@h.test', theirs: 'https://${UNSET}.test'}\n"
    found = settings(tmp_path, text, WHO="me", SECRET="s3cret")
    assert dict(found.custom) == {"ours": "https://me:s3cret@h.test", "theirs": "https://${UNSET}.test"}
    assert "s3cret" not in repr(found)


def test_what_is_not_followed_is_listed(tmp_path: Path) -> None:
    found = settings(tmp_path, "channel_settings: [{channel: x, auth: y}]\nclient_ssl_cert: /c\n"
                               "proxy_servers: {http: 'http://p.test', 'https://one.test': 'http://q.test'}\n")
    where = str(tmp_path / "home" / ".condarc")
    assert found.ignored == (f"{where}: channel_settings", f"{where}: client_ssl_cert",
                             f"{where}: proxy_servers of one host")
    assert found.proxies == (("http", "http://p.test"),)


@pytest.mark.parametrize(("text", "verify"), [
    ("ssl_verify: false", "false"), ("ssl_verify: true", "true"), ("ssl_verify: truststore", "true"),
    ("ssl_verify: <false>", "<false>"), ("ssl_verify: /etc/ca.pem", "/etc/ca.pem"), ("", "true"),
])
def test_certificates(text: str, verify: str, tmp_path: Path) -> None:
    assert settings(tmp_path, text).verify == verify


def test_numbers_are_kept_within_reason(tmp_path: Path) -> None:
    found = settings(
        tmp_path, "remote_read_timeout_secs: .inf\nremote_connect_timeout_secs: -3\nremote_max_retries: 99\n")
    assert (found.read_timeout, found.connect_timeout, found.retries) == (3600.0, 0.01, 10)
    assert settings(tmp_path, "remote_read_timeout_secs: .nan").read_timeout == 60.0


MALFORMED = {
    "no yaml": ("channels: [a\n", "is no valid YAML"),
    "a tab": ("channels:\n\t- a\n", "is no valid YAML: found character '\\t' that cannot start any token in line 2"),
    "no mapping": ("- a\n", "its top level is no mapping"),
    "a tag": ("channels: !!python/object/apply:os.system ['true']\n", "is no valid YAML"),
    "a date that is none": ("channels: 2024-99-99\n", "is no valid YAML"),
    "nested too deeply": ("channels: " + "[" * 5_000, "is no valid YAML"),
    "channels are a mapping": ("channels: {a: b}\n", "channels is no list"),
    "a channel is a list": ("channels: [[a]]\n", "channels is no text"),
    "custom_channels are a list": ("custom_channels: [a]\n", "custom_channels is no mapping"),
    "a custom channel is a list": ("custom_channels: {a: [b]}\n", "custom_channels: a is no text"),
    "a group is a number": ("custom_multichannels: {a: 3}\n", "custom_multichannels: a is no list"),
    "offline is a word": ("offline: perhaps\n", "offline is neither true nor false"),
    "no such priority": ("channel_priority: loose\n", "channel_priority is none of strict, flexible, disabled"),
    "a timeout is a word": ("remote_read_timeout_secs: soon\n", "remote_read_timeout_secs is no number"),
    "huge": ("#" * 2_000_000, "is too large"),
}


@pytest.mark.parametrize(("text", "said"), MALFORMED.values(), ids=MALFORMED)
def test_a_file_that_makes_no_sense_is_one_error_about_it(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as fault:
        settings(tmp_path, text)
    assert fault.value.what().startswith(f"{tmp_path / 'home' / '.condarc'}: ")
    assert said in fault.value.what()
    assert "\n" not in fault.value.what()


def test_a_file_in_another_encoding_is_an_error_about_it(tmp_path: Path) -> None:
    write(tmp_path / ".condarc", "").write_bytes(b"channels: [\xff]\n")
    with pytest.raises(BadInput, match="condarc: cannot be read"):
        read_conda_settings({}, tmp_path, system=tmp_path / "system")


def test_nothing_of_the_platform_is_read_elsewhere(tmp_path: Path) -> None:
    found = condarc_files({}, tmp_path, prefix=None, system=Path("C:/"), platform="win32")
    assert next(iter(found)).as_posix() == "C:/ProgramData/conda/.condarc"
