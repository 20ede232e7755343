"""The settings of uv that a project states: whose they are, and what they say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stackfix.errors import BadInput
from stackfix.sources.address import without_credentials
from stackfix.sources.records import IndexSettings
from stackfix.sources.settings import read_settings
from stackfix.sources.settings_files import LARGEST, read_text
from tests.uv_index_servers import write_all

DEFAULT = "https://default.example/simple"
PROJECT = '[project]\nname = "p"\nversion = "1"\n'
PINNED = """
[[tool.uv.index]]
name = "corp"
url = "https://corp.example/simple/"
explicit = true
[tool.uv.sources]
Corp_Lib = { index = "corp" }
"""


def read(root: Path, files: dict[str, str], environ: dict[str, str] | None = None, *, folder: str = "p",
         **options: Any) -> IndexSettings:
    """Settings of a machine with these files and no others, for a command that runs in `folder`."""
    write_all(root, files)
    (root / folder).mkdir(parents=True, exist_ok=True)

    def read_below(path: Path) -> str | None:
        return read_text(path) if path.is_relative_to(root) else None

    return read_settings(environ=environ or {}, home=root / "home", read=read_below, platform="linux",
                         default_index=lambda: DEFAULT, prefix=root / "env", project=root / folder, **options)


def index(url: str, **more: str) -> str:
    """A line of a uv.toml that makes an address the default index, and more keys."""
    return "[[index]]\n" + "".join(f"{key} = {value}\n" for key, value in {"url": f'"{url}"', **more}.items())


def test_the_nearest_file_counts_and_uv_toml_wins(tmp_path: Path) -> None:
    assert read(tmp_path, {"p/pyproject.toml": PROJECT, "uv.toml": index("https://above/s")}).indexes == (
        "https://above/s", DEFAULT)
    tool = PROJECT + '[tool.uv]\nindex-url = "https://tool/s"\n'
    settings = read(tmp_path, {"p/pyproject.toml": tool})
    assert (settings.indexes, settings.origin) == (("https://tool/s",), ("pyproject.toml [tool.uv]",))
    settings = read(tmp_path, {"p/uv.toml": index("https://own/s", default="true")})
    assert (settings.indexes, settings.origin) == (("https://own/s",), ("uv.toml",))


def test_the_search_begins_at_the_project_and_a_workspace_at_its_root(tmp_path: Path) -> None:
    inner = {"p/pyproject.toml": PROJECT + '[tool.uv]\nindex-url = "https://project/s"\n',
             "p/sub/uv.toml": 'index-url = "https://sub/s"\n'}
    settings = read(tmp_path, inner, folder="p/sub")
    assert (settings.indexes, settings.origin) == (("https://project/s",), ("../pyproject.toml [tool.uv]",))
    outer = '[tool.uv]\nindex-url = "https://outer/s"\n[tool.uv.workspace]\nmembers = ["{}"]\nexclude = ["{}"]\n'
    for members, exclude, found in (("p", "x", "outer"), ("*", "x", "outer"), ("**", "x", "outer"),
                                    ("q", "x", "project"), ("*", "p", "project"), ("p/*", "x", "project")):
        assert read(tmp_path, {"pyproject.toml": outer.format(members, exclude)}).indexes == (f"https://{found}/s",)


def test_lists_of_all_levels_are_joined_and_the_first_value_counts(tmp_path: Path) -> None:
    files = {
        "p/uv.toml": 'extra-index-url = ["https://pe/s"]\n' + index("https://pi/s"),
        "home/.config/uv/uv.toml": 'index-url = "https://user/s"\nextra-index-url = ["https://ue/s"]\n'
                                   + index("https://ui/s", name='"n"'),
        "xdg/uv/uv.toml": 'index-url = "https://machine/s"\n' + index("https://mi/s", name='"n"'),
        "xdg2/uv/uv.toml": index("https://never/s"),
    }
    environ = {"XDG_CONFIG_DIRS": f"{tmp_path}/xdg:{tmp_path}/xdg2", "UV_INDEX": "https://v/s"}
    assert read(tmp_path, files, environ).indexes == (
        "https://v/s", "https://pi/s", "https://ui/s", "https://pe/s", "https://ue/s", "https://user/s")
    assert read(tmp_path, {}, {**environ, "UV_NO_CONFIG": "1"}).indexes == ("https://v/s", DEFAULT)
    named = {**environ, "UV_CONFIG_FILE": str(tmp_path / "xdg2/uv/uv.toml")}
    assert read(tmp_path, {}, named).indexes == ("https://v/s", "https://never/s", DEFAULT)
    with pytest.raises(BadInput, match=r"UV_CONFIG_FILE .*no such file"):
        read(tmp_path, {}, {"UV_CONFIG_FILE": "/nowhere/uv.toml"})


def test_options_win_over_the_project(tmp_path: Path) -> None:
    files = {"p/uv.toml": index("https://pi/s", default="true") + index("https://pe/s")}
    settings = read(tmp_path, files, index_url="https://o/s", extra_index_urls=("https://oe/s",))
    assert settings.indexes == ("https://oe/s", "https://o/s")


def test_a_pinned_project_is_looked_up_on_its_index_alone(tmp_path: Path) -> None:
    settings = read(tmp_path, {"p/pyproject.toml": PROJECT + PINNED},
                    {"UV_INDEX_CORP_USERNAME": "me", "UV_INDEX_CORP_PASSWORD": "s3cret"})
    assert settings.indexes == (DEFAULT,)
    [route] = settings.routes
    assert (route.project, route.indexes) == ("corp-lib", ("https://me:s3cret@corp.example/simple",))
    assert route.why == "pyproject.toml [tool.uv] takes it from the index corp"
    assert "s3cret" not in repr(settings.pins) + repr(settings.routes)
    named = read(tmp_path, {}, {"UV_INDEX": "corp=https://other.example/simple"})
    assert [without_credentials(url) for url in named.routes[0].indexes] == ["https://other.example/simple"]
    assert read(tmp_path, {}, {"UV_NO_SOURCES": "true"}).routes == ()
    assert read(tmp_path, {}, {"UV_NO_SOURCES_PACKAGE": "other corp.lib"}).routes == ()
    assert len(read(tmp_path, {}, {"UV_NO_CONFIG": "1"}).routes) == 1      # uv's own sources stay, too
    assert len(read(tmp_path, {"p/uv.toml": "offline = false"}).routes) == 1


def test_pins_to_the_torch_index_are_no_routes(tmp_path: Path) -> None:
    """Who locks follows them by the rules of the torch index; who repairs looks where packages came from."""
    for path, routed in (("whl/cu128", False), ("whl/nightly/cpu", False), ("whl/cu128/more", True), ("simple", True)):
        text = PROJECT + NAMED.format(f"https://mirror.example/{path}", "simple") + 'torch = { index = "c" }\n'
        routes = read(tmp_path, {"p/pyproject.toml": text}).routes
        assert [route.project for route in routes] == (["x", "torch"] if routed else ["x"])


def test_sources_of_the_workspace_count_where_the_project_says_nothing(tmp_path: Path) -> None:
    root = ('[tool.uv.workspace]\nmembers = ["p"]\n[[tool.uv.index]]\nname = "r"\nurl = "https://r/s"\n'
            '[tool.uv.sources]\na = { index = "r" }\ncorp-lib = { index = "r" }\n')
    settings = read(tmp_path, {"pyproject.toml": root, "p/pyproject.toml": PROJECT + PINNED})
    assert {route.project: route.indexes for route in settings.routes} == {
        "a": ("https://r/s",), "corp-lib": ("https://corp.example/simple",)}


def test_what_comes_from_no_index_is_looked_up_on_none(tmp_path: Path) -> None:
    for source, kind in (("{ git = 'https://git.example/x' }", "git"), ("{ workspace = true }", "workspace"),
                         ("{ path = '../x' }", "path"), ("{ url = 'https://x.example/x.whl' }", "url")):
        text = PROJECT + f"[tool.uv.sources]\nx = {source}\n"
        [route] = read(tmp_path, {"p/pyproject.toml": text}).routes
        assert (route.project, route.indexes) == ("x", ())
        assert f"from a {kind}" in route.why


def test_a_default_index_that_is_explicit_leaves_no_default(tmp_path: Path) -> None:
    files = {"p/uv.toml": index("https://a/s", default="true", explicit="true", name='"a"') + index("https://b/s")}
    assert read(tmp_path, files).indexes == ("https://b/s",)
    assert read(tmp_path, files, {"UV_DEFAULT_INDEX": "https://v/s"}).indexes == ("https://b/s", "https://v/s")
    assert read(tmp_path, files, index_url="https://o/s").indexes == ("https://b/s", "https://o/s")


def test_limits_of_the_project_are_its_own_and_what_is_not_followed_is_said(tmp_path: Path) -> None:
    own = ("constraint-dependencies = ['urllib3>=2']\noverride-dependencies = ['a==1']\n"
           "index-strategy = 'unsafe-best-match'\n")
    settings = read(tmp_path, {"p/uv.toml": own})
    assert [(asked.text, asked.origin) for asked in settings.constraints] == [
        ("urllib3>=2", "uv.toml, constraint-dependencies")]
    assert len(settings.notes) == 2
    assert "override-dependencies in uv.toml is not followed" in settings.notes[0]
    assert "index-strategy = unsafe-best-match (uv.toml) is not followed" in settings.notes[1]
    users = read(tmp_path / "other", {"home/.config/uv/uv.toml": own})
    assert users.constraints == ()
    assert sum("constraint-dependencies" in text or "override-dependencies" in text for text in users.ignored) == 2
    assert "UV_INDEX_STRATEGY" in read(tmp_path / "third", {}, {"UV_INDEX_STRATEGY": "unsafe-first-match"}).notes[0]


NAMED = """[[tool.uv.index]]
name = "c"
url = "{}"
format = "{}"
[tool.uv.sources]
x = {{ index = "c" }}
"""
def test_no_credential_is_shown_of_what_is_left_out(tmp_path: Path) -> None:
    own = "find-links = ['https://me:s3cret@links.example/x?token=s3cret']\nallow-insecure-host = ['a.example']\n"
    flat = index("https://me:s3cret@flat.example/s", format="'flat'")
    explicit = index("https://me:s3cret@e.example/s", explicit="true", name="'e'")
    settings = read(tmp_path, {"p/uv.toml": own + flat + explicit}, {"UV_FIND_LINKS": "https://me:s3cret@f.example/y"})
    text = "\n".join((*settings.ignored, *settings.notes))
    for part in ("links.example/x", "a.example", "flat.example/s (uv.toml) was left out", "e.example/s (explicit",
                 "f.example/y"):
        assert part in text
    assert "s3cret" not in text + repr(settings.pins) + repr(settings.routes)


def test_a_flat_index_is_left_out_with_a_note_where_it_would_count(tmp_path: Path) -> None:
    extra = {"p/uv.toml": index("https://links/s", format="'flat'", name="'links'")}
    settings = read(tmp_path, extra)
    assert (settings.indexes, len(settings.notes)) == ((DEFAULT,), 1)
    assert settings.notes[0].startswith("the index https://links/s (uv.toml, index links) was left out, since it is f")
    assert read(tmp_path, extra, extra_index_urls=("https://o/s",)).notes == ()
    assert read(tmp_path, extra, {"UV_INDEX": "links=https://simple/s"}).notes == ()
    default = {"p/uv.toml": index("https://links/s", format="'flat'", default="true")}
    assert "https://links/s" in read(tmp_path, default).notes[0]
    assert read(tmp_path, default, index_url="https://o/s").notes == ()
    assert read(tmp_path, default, {"UV_DEFAULT_INDEX": "https://o/s"}).notes == ()
    assert read(tmp_path, default, {"UV_INDEX_URL": "https://o/s"}).notes == ()
    explicit = {"p/uv.toml": index("https://links/s", format="'flat'", explicit="true")}
    assert read(tmp_path, explicit).notes == ()     # uv looks there for pinned projects alone


BROKEN = {
    "toml": ("uv.toml", "index = [", "uv.toml: is no valid TOML"),
    "pyproject": ("pyproject.toml", "[tool.uv", "pyproject.toml: is no valid TOML"),
    "deep": ("uv.toml", "x = " + "[" * 20000, "uv.toml: is no valid TOML"),
    "nul": ("uv.toml", "x = 1\0", "NUL bytes"),
    "huge": ("uv.toml", "#" * (LARGEST + 1), "it has more than"),
    "no list": ("uv.toml", "index = 'https://x/s'", "uv.toml: index is no list"),
    "table": ("uv.toml", "[index]\nurl = 'https://x/s'", "uv.toml: index is no list"),
    "no url": ("uv.toml", "[[index]]\nname = 'x'", r"uv.toml: has an \[\[index\]\] without url"),
    "name": ("uv.toml", index("https://x/s", name="'a b'"), "has the name 'a b'"),
    "format": ("uv.toml", index("https://x/s", format="'html'"), "format = 'html'"),
    "format of no text": ("uv.toml", index("https://x/s", format="3"), "format = '3'"),
    "codes": ("uv.toml", index("https://x/s", **{"ignore-error-codes": "[true]"}), "no list of HTTP statuses"),
    "authenticate": ("uv.toml", index("https://x/s", authenticate="'often'"), "authenticate = 'often'"),
    "extra": ("uv.toml", "extra-index-url = 'https://x/s'", "extra-index-url is no list of texts"),
    "index-url": ("uv.toml", "index-url = ['https://x/s']", "index-url is no text"),
    "pip": ("uv.toml", "pip = 1", "pip is no table"),
    "tool": ("pyproject.toml", "tool = 1", r"pyproject.toml: \[tool\] is no table"),
    "uv": ("pyproject.toml", "[tool]\nuv = 1", r"pyproject.toml: \[tool.uv\] is no table"),
    "sources": ("pyproject.toml", "[tool.uv]\nsources = 1", "sources is no table"),
    "source": ("pyproject.toml", "[tool.uv.sources]\nx = 'corp'", "sources.x is no table"),
    "undeclared": ("pyproject.toml", "[tool.uv.sources]\nx = { index = 'corp' }", "the index 'corp', which is not"),
    "two kinds": ("pyproject.toml", "[tool.uv.sources]\nx = { index = 'c', git = 'g' }", "not exactly one of"),
    "marker": ("pyproject.toml", PINNED + "x = { index = 'corp', marker = 1 }", "marker that is no text"),
    "project": ("pyproject.toml", "[tool.uv.sources]\n'../x' = { index = 'c' }", "no project's name"),
    "local": ("pyproject.toml", NAMED.format("file:///c", "simple"),
              "x is pinned to the index c at file:///c, which holds for this machine alone"),
    "flat": ("pyproject.toml", NAMED.format("https://c/s", "flat"), "the index c, which is flat"),
    "date": ("uv.toml", "exclude-newer = 'soon'", "uv.toml, exclude-newer: 'soon' is no date"),
    "months": ("uv.toml", "exclude-newer = '2 months'", "units without a fixed length"),
    "number": ("uv.toml", "exclude-newer = 7", "is no text"),
    "keyring": ("uv.toml", "keyring-provider = 'rm -rf'", "keyring-provider: 'rm -rf' is not known"),
    "members": ("pyproject.toml", PROJECT + "[tool.uv]\nworkspace = 1", None),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_hostile_file_is_one_error_that_names_it(case: str, tmp_path: Path) -> None:
    file, text, said = BROKEN[case]
    if said is None:
        assert read(tmp_path, {f"p/{file}": text}).indexes == (DEFAULT,)    # its own root: nobody asks for members
        return
    with pytest.raises(BadInput, match=said) as fault:
        read(tmp_path, {f"p/{file}": text})
    assert file in str(fault.value)


def test_what_is_no_text_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    path = tmp_path / "p" / "uv.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match=r"uv\.toml: cannot be read \(not UTF-8\)"):
        read(tmp_path, {})
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(BadInput, match=r"uv\.toml: cannot be read"):
        read(tmp_path, {})
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BadInput, match=r"uv\.toml: cannot be read \(it is a pipe\)"):
        read(tmp_path, {})
    path.unlink()
    path.mkdir()                    # a folder of that name is no settings file
    assert read(tmp_path, {}).indexes == (DEFAULT,)


def test_a_pattern_of_members_cannot_hang(tmp_path: Path) -> None:
    pattern, deep = "/".join(["**", "a*"] * 400), "/".join(["a"] * 60)
    outer = f'[tool.uv]\nindex-url = "https://outer/s"\n[tool.uv.workspace]\nmembers = ["{pattern}"]\n'
    own = PROJECT + '[tool.uv]\nindex-url = "https://own/s"\n'
    settings = read(tmp_path, {"pyproject.toml": outer, f"{deep}/pyproject.toml": own}, folder=deep)
    assert settings.indexes == ("https://own/s",)
