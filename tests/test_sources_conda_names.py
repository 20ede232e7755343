"""Channels by the names that people give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.sources.conda_names import Place, Places, public_address
from stackfix.sources.conda_settings import CondaSettings
from tests.conda_servers import opened

BASES = {"conda-forge": "https://forge.test/conda-forge", "pytorch": "https://forge.test/pytorch",
         "pkgs/main": "https://main.test/pkgs/main", "pkgs/r": "https://main.test/pkgs/r"}


def places(folder: Path, **settings: object) -> Places:
    return Places(BASES, CondaSettings(**settings), home=folder / "home", folder=folder)  # type: ignore[arg-type]


def named(place: Place) -> tuple[str, str, str | None]:
    return place.channel.name, place.channel.url, place.bundled


CORP: dict[str, object] = {"alias": "https://corp.test/conda/", "custom": (("ours", "corp.test/own"), ("deep/er", "https://d.test")),
        "multi": (("both", ("ours", "conda-forge")), ("round", ("round",)))}
NAMED: dict[str, tuple[dict[str, object], str, tuple[str, str, str | None]]] = {
    "a known one": ({}, "pytorch", ("pytorch", "https://forge.test/pytorch", "pytorch")),
    "one below the alias": ({}, "bioconda", ("bioconda", "https://forge.test/bioconda", None)),
    "a label": ({}, "pytorch/label/x", ("pytorch/label/x", "https://forge.test/pytorch/label/x", None)),
    "its address": ({}, "https://forge.test/pytorch/", ("pytorch", "https://forge.test/pytorch", "pytorch")),
    "an address below the alias": ({}, "https://forge.test/other", ("other", "https://forge.test/other", None)),
    "another address": ({}, "https://h.test/a/b", ("https://h.test/a/b", "https://h.test/a/b", None)),
    "with a login": ({}, "https://u:p@h.test/t/tok/a", ("https://h.test/a", "https://h.test/a", None)),
    "a token alone": ({}, "https://forge.test/t/tok/pytorch", ("pytorch", "https://forge.test/pytorch", "pytorch")),
    "another alias": (CORP, "pytorch", ("pytorch", "https://corp.test/conda/pytorch", "pytorch")),
    "a custom channel": (CORP, "ours", ("ours", "https://corp.test/own/ours", None)),
    "below a custom channel": (CORP, "ours/sub", ("ours/sub", "https://corp.test/own/ours/sub", None)),
    "a custom channel with a slash": (CORP, "deep/er", ("deep/er", "https://d.test/deep/er", None)),
    "the address of a custom one": (CORP, "https://corp.test/own/ours", ("ours", "https://corp.test/own/ours", None)),
    "a mirror": ({"mirrored": (("pytorch", ("https://m.test/x",)),)}, "pytorch",
                 ("pytorch", "https://forge.test/pytorch", "pytorch")),
}


@pytest.mark.parametrize(("settings", "text", "found"), NAMED.values(), ids=NAMED)
def test_a_name_leads_to_its_address(settings: dict[str, object], text: str, found: tuple[str, str, str | None],
                                     tmp_path: Path) -> None:
    every = places(tmp_path, **settings)
    place = every.one(text, "--channel")
    assert named(place) == found
    assert every.of(place.channel) is place
    assert "tok" not in repr(place)
    assert "u:p" not in repr(place)


def test_the_login_is_kept_for_the_server(tmp_path: Path) -> None:
    assert places(tmp_path).one("https://u:p@h.test/t/tok/a/", "--channel").fetch == "https://u:p@h.test/t/tok/a"


def test_a_folder_is_found_from_here_and_from_home(tmp_path: Path) -> None:
    every = places(tmp_path)
    assert every.one("./chan", "--channel").channel.url == (tmp_path / "chan").as_uri()
    assert every.one("~/chan", "--channel").channel.url == (tmp_path / "home" / "chan").as_uri()
    assert every.one(str(tmp_path / "chan"), "--channel").channel.url == (tmp_path / "chan").as_uri()


def test_groups_are_taken_apart(tmp_path: Path) -> None:
    def names(every: Places, *texts: str) -> list[str]:
        return [place.channel.name for place in every.all_of(("--channel", text) for text in texts)]

    assert names(places(tmp_path, **CORP), "both", "pytorch", "ours") == ["ours", "conda-forge", "pytorch"]
    assert names(places(tmp_path), "defaults") == ["pkgs/main", "pkgs/r"]
    assert names(places(tmp_path, default_channels=("https://h.test/a",)), "defaults") == ["https://h.test/a"]


WRONG = {
    "no name": ({}, "two words", "is neither the name of a channel nor an address"),
    "another scheme": ({}, "ftp://u:p@h.test/x", "has the scheme 'ftp'"),
    "no host": ({}, "https:///x", "names no valid host"),
    "no address": ({}, "https://[::1/x", "is no valid address"),
    "a file on a host": ({}, "file://host/x", "names a host"),
    "a group of itself": (CORP, "round", "contains itself"),
    "a group for one": (CORP, "both", "names 2 channels"),
    "denied": ({"denied": ("pytorch",)}, "https://forge.test/pytorch", "is a channel that .condarc forbids"),
    "not allowed": ({"allowed": ("pytorch",)}, "conda-forge", "is a channel that .condarc forbids"),
    "a bad mirror": ({"mirrored": (("pytorch", ("gopher://x",)),)}, "pytorch", "mirrored_channels"),
}


@pytest.mark.parametrize(("settings", "text", "said"), WRONG.values(), ids=WRONG)
def test_what_is_no_channel_is_an_error_about_it(settings: dict[str, object], text: str, said: str,
                                                 tmp_path: Path) -> None:
    with pytest.raises(BadInput) as fault:
        places(tmp_path, **settings).one(text, "--channel")
    assert said in fault.value.what()
    assert "u:p" not in fault.value.what()


@pytest.mark.parametrize("settings", [{"alias": "https://["}, {"custom": (("x", "nope://h"),)}], ids=str)
def test_a_bad_base_is_an_error(settings: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        places(tmp_path, **settings)


def test_which_channels_are_the_users(tmp_path: Path) -> None:
    def names(*given: str, condarc: str = "", **environ: str) -> tuple[list[str], bool]:
        found = opened(tmp_path, *given, condarc=condarc, environ=environ)
        return [channel.name for channel in found.channels], found.explicit

    assert names() == (["conda-forge"], False)
    assert names(condarc="channels: [ours, nodefaults, conda-forge]\n") == (["ours", "conda-forge"], True)
    assert names(CONDA_CHANNELS="ours") == (["ours"], True)
    assert names("pytorch", "conda-forge", condarc="channels: [ours]\n") == (["pytorch", "conda-forge"], True)
    with pytest.raises(BadInput, match="override_channels_enabled is false"):
        names("pytorch", condarc="override_channels_enabled: false\n")
    assert opened(tmp_path, condarc="channel_priority: flexible\n").priority == "flexible"
    assert opened(tmp_path).named("pytorch").url == "https://forge.invalid/pytorch"


@pytest.mark.parametrize(("address", "public"), [
    ("https://h.test/t/abc-1/x/", "https://h.test/x"), ("https://h.test/x?sig=1#f", "https://h.test/x"),
    ("https://u:p@h.test:8/x", "https://h.test:8/x"), ("file:///a/t/b", "file:///a/t/b"),
    ("https://h.test/t/abc", "https://h.test"),
])
def test_what_may_be_written_down(address: str, public: str) -> None:
    assert public_address(address) == public
