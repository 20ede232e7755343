"""uv 0.13 is the judge of its own settings: run beside ours on loopback, it asks the same indexes for one project."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stackfix.errors import BadInput, StackfixError
from stackfix.sources.index import PackageIndex
from stackfix.sources.settings import read_settings
from tests.uv_index_servers import Indexes, bare_environment, uv, write_all

VERSIONS = {"a": "1.0", "b": "2.0", "c": "3.0", "d": "4.0"}      # of every project, by index
PROJECT = '[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["demo"]\n'
DEFAULT = '[[tool.uv.index]]\nurl = "{a}"\ndefault = true\n'
PINNED = '[tool.uv.sources]\ndemo = { index = "x" }\n'
EXPLICIT = '[[tool.uv.index]]\nname = "x"\nurl = "{b}"\nexplicit = true\n'
WHOLE = PROJECT + PINNED + DEFAULT + EXPLICIT
MACHINE = '[[index]]\nurl = "{d}"\ndefault = true\n'


@dataclass(frozen=True, kw_only=True)
class Case:
    """Files below the machine's root (`p` is the project, `home` the user's), variables, where uv runs."""

    files: Mapping[str, str]
    environ: Mapping[str, str] = field(default_factory=dict)
    folder: str = "p"
    only_lock: bool = False         # `uv pip compile` of a name alone reads no sources


CASES = {
    "extra-index-url of a file": Case(files={"p/uv.toml": 'extra-index-url = ["{b}", "{c}"]\n' + MACHINE}),
    "extra indexes of variables": Case(files={}, environ={"UV_EXTRA_INDEX_URL": "{b} {c}", "UV_DEFAULT_INDEX": "{d}"}),
    "UV_INDEX before UV_EXTRA_INDEX_URL": Case(
        files={}, environ={"UV_INDEX": "{b}", "UV_EXTRA_INDEX_URL": "{c}", "UV_DEFAULT_INDEX": "{d}"}),
    "[[index]] before extra-index-url": Case(
        files={"p/uv.toml": 'extra-index-url = ["{b}"]\n[[index]]\nurl = "{c}"\n' + MACHINE}),
    "a variable before a file": Case(
        files={"p/uv.toml": '[[index]]\nurl = "{b}"\n' + MACHINE}, environ={"UV_EXTRA_INDEX_URL": "{c}"}),
    "the project before the user": Case(
        files={"p/uv.toml": MACHINE, "home/.config/uv/uv.toml": '[[index]]\nurl = "{b}"\ndefault = true\n'}),
    "a name of the project hides the user's": Case(files={
        "p/uv.toml": '[[index]]\nname = "x"\nurl = "{none}"\n' + MACHINE,
        "home/.config/uv/uv.toml": '[[index]]\nname = "x"\nurl = "{b}"\n'}),
    "a name of a variable hides the project's": Case(
        files={"p/uv.toml": '[[index]]\nname = "x"\nurl = "{c}"\n' + MACHINE}, environ={"UV_INDEX": "x={b}"}),
    "a default of [[index]] before index-url": Case(files={
        "p/uv.toml": 'index-url = "{b}"\n', "home/.config/uv/uv.toml": MACHINE}),
    "UV_INDEX_URL before a default of a file": Case(files={"p/uv.toml": MACHINE}, environ={"UV_INDEX_URL": "{b}"}),
    "[pip] before the top level": Case(files={"p/uv.toml": 'index-url = "{b}"\n[pip]\nindex-url = "{c}"\n'}),
    "the machine's first file alone": Case(files={
        "home/xdg/uv/uv.toml": 'index-url = "{b}"\n', "home/xdg2/uv/uv.toml": '[[index]]\nurl = "{c}"\n'}),
    "UV_CONFIG_FILE in place of all": Case(
        files={"p/uv.toml": MACHINE, "o.toml": 'index-url = "{b}"\n'}, environ={"UV_CONFIG_FILE": "{root}/o.toml"}),
    "UV_NO_CONFIG": Case(files={"p/uv.toml": MACHINE}, environ={"UV_NO_CONFIG": "1", "UV_DEFAULT_INDEX": "{b}"}),
    "a folder of the project": Case(
        files={"p/pyproject.toml": PROJECT + DEFAULT, "p/sub/uv.toml": MACHINE}, folder="p/sub"),
    "above a pyproject.toml without [tool.uv]": Case(files={"p/pyproject.toml": PROJECT, "uv.toml": MACHINE}),
    "a member of a workspace": Case(files={
        "pyproject.toml": '[tool.uv.workspace]\nmembers = ["p*"]\n' + DEFAULT.replace("{a}", "{d}"),
        "p/pyproject.toml": PROJECT + DEFAULT}),
    "no member of the workspace above": Case(files={
        "pyproject.toml": '[tool.uv.workspace]\nmembers = ["k/*"]\n' + DEFAULT.replace("{a}", "{d}"),
        "p/pyproject.toml": PROJECT + DEFAULT}),
    "a pin to an explicit index": Case(files={"p/pyproject.toml": WHOLE}, only_lock=True),
    "a pin to an index of a variable": Case(files={"p/pyproject.toml": PROJECT + PINNED + DEFAULT},
                                            environ={"UV_INDEX": "x={c}"}, only_lock=True),
    "a variable in place of the pinned index": Case(
        files={"p/pyproject.toml": WHOLE}, environ={"UV_INDEX": "x={c}"}, only_lock=True),
    "a pin to an index of the user": Case(files={
        "p/pyproject.toml": PROJECT + PINNED + DEFAULT,
        "home/.config/uv/uv.toml": '[[index]]\nname = "x"\nurl = "{c}"\n'}, only_lock=True),
    "sources beside a uv.toml": Case(
        files={"p/pyproject.toml": WHOLE, "p/uv.toml": MACHINE}, only_lock=True),
    "sources with UV_NO_CONFIG": Case(
        files={"p/pyproject.toml": WHOLE}, environ={"UV_NO_CONFIG": "1"}, only_lock=True),
    "UV_NO_SOURCES": Case(
        files={"p/pyproject.toml": WHOLE}, environ={"UV_NO_SOURCES": "1"}, only_lock=True),
    "no-sources of the file": Case(files={
        "p/pyproject.toml": WHOLE + "[tool.uv]\nno-sources = true\n"}, only_lock=True),
    "no-sources-package of a variable": Case(
        files={"p/pyproject.toml": WHOLE}, environ={"UV_NO_SOURCES_PACKAGE": "demo"},
        only_lock=True),
    "a default that is explicit": Case(files={
        "p/uv.toml": '[[index]]\nname = "x"\nurl = "{a}"\ndefault = true\nexplicit = true\n[[index]]\nurl = "{b}"\n'}),
    "an index with a login that ignores 401": Case(files={
        "p/uv.toml": '[[index]]\nurl = "{locked}"\nignore-error-codes = [401]\n' + MACHINE}),
    "an index with a login": Case(files={"p/uv.toml": '[[index]]\nurl = "{locked}"\n' + MACHINE}),
    "no project and no default": Case(files={"p/uv.toml": 'index-url = "{none}"\n'}),
}


@pytest.mark.parametrize("name", CASES)
def test_uv_asks_the_same_indexes(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    projects = {index: {"demo": version} for index, version in VERSIONS.items()}
    with Indexes({**projects, "locked": {"demo": "9.0"}}, logins={"locked": "me:secret"}) as indexes:
        files = {path: indexes.filled(text) for path, text in case.files.items()}
        (tmp_path / case.folder).mkdir(parents=True)
        write_all(tmp_path, files)
        environ = bare_environment(tmp_path / "home", XDG_CONFIG_DIRS=f"{tmp_path}/home/xdg:{tmp_path}/home/xdg2")
        environ |= {key: indexes.filled(value.replace("{root}", str(tmp_path))) for key, value in case.environ.items()}
        theirs = of_uv(case, tmp_path, environ)
        asked_by_uv = indexes.asked
        indexes.server.heads.clear()
        ours = of_ours(case, tmp_path, environ)
        assert (ours, indexes.asked) == (theirs, asked_by_uv)


def of_uv(case: Case, root: Path, environ: Mapping[str, str]) -> str | None:
    """The version of demo that uv takes; None where it takes none."""
    folder = root / case.folder
    if case.only_lock:
        run = uv(("lock", "-q"), folder, environ, root / "cache")
        text = (folder / "uv.lock").read_text() if run.returncode == 0 else ""
        found = re.search(r'name = "demo"\nversion = "([^"]+)"', text)
    else:
        (folder / "r.in").write_text("demo\n")
        run = uv(("pip", "compile", "-q", "--no-header", "r.in"), folder, environ, root / "cache")
        found = re.search(r"^demo==(\S+)", run.stdout, re.MULTILINE)
    assert (run.returncode == 0) == (found is not None), run.stderr
    return None if found is None else found[1]


def of_ours(case: Case, root: Path, environ: Mapping[str, str]) -> str | None:
    """The version that our client finds, with the same files and variables."""
    try:
        settings = read_settings(environ=environ, home=root / "home", project=root / case.folder, prefix=root / "env",
                                 default_index=lambda: "http://127.0.0.1:9/none")
        with PackageIndex(settings, cache_dir=root / "ours", offline=False) as index:
            [version] = index.page("demo").version_strings()
            return version
    except StackfixError:
        return None


REFUSED = {
    "port of an index": ({"p/uv.toml": '[[index]]\nurl = "http://127.0.0.1:99999/simple"\n' + MACHINE}, {}),
    "no host": ({"p/uv.toml": 'extra-index-url = ["https://"]\n' + MACHINE}, {}),
    "half an IPv6 host": ({"p/uv.toml": '[[index]]\nurl = "http://[::1"\n' + MACHINE}, {}),
    "no address at all": ({"p/uv.toml": '[[index]]\nurl = ""\n' + MACHINE}, {}),
    "format": ({"p/uv.toml": '[[index]]\nurl = "{b}"\nformat = "html"\n' + MACHINE}, {}),
    "port of the default index": ({"p/uv.toml": 'index-url = "http://127.0.0.1:99999/simple"\n'},
                                  {"PIP_INDEX_URL": "{d}"}),
    "port in a variable": ({"p/uv.toml": MACHINE}, {"UV_INDEX": "http://127.0.0.1:99999/simple"}),
    "timeout nan": ({"p/uv.toml": MACHINE}, {"UV_HTTP_TIMEOUT": "nan"}),
    "retries inf": ({"p/uv.toml": MACHINE}, {"UV_HTTP_RETRIES": "inf"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_uv_refuses_is_refused_before_anything_is_asked(name: str, tmp_path: Path) -> None:
    """The index that is left has the project: passing the mistake over would take it from there."""
    files, variables = REFUSED[name]
    with Indexes({index: {"demo": version} for index, version in VERSIONS.items()}) as indexes:
        write_all(tmp_path, {path: indexes.filled(text) for path, text in files.items()})
        environ = bare_environment(tmp_path / "home", **{key: indexes.filled(text) for key, text in variables.items()})
        (tmp_path / "p/r.in").write_text("demo\n")
        assert uv(("pip", "compile", "-q", "r.in"), tmp_path / "p", environ, tmp_path / "cache").returncode == 2
        with pytest.raises(BadInput):
            read_settings(environ=environ, home=tmp_path / "home", project=tmp_path / "p", prefix=tmp_path / "env",
                          default_index=lambda: indexes.url)
        assert indexes.asked == []


@pytest.mark.parametrize(("text", "latest"), [
    ("2024-03-10", True), ("2024-03-09", False), ("2024-03-10T12:00:01Z", True), ("2024-03-10T12:00:00Z", False),
    ("2024-03-10T14:00:01+02:00", True), ("P36500D", False), ("36500 days", False), ("1 day", True), ("1 week", True),
    ("PT24H", True), ("2w", True), ("20 hours", True), ("soon", None), ("1 month", None),
])
def test_uv_reads_the_same_dates(text: str, latest: bool | None, tmp_path: Path) -> None:
    """Whether a file from 2024-03-10T12:00:00Z is taken; None where the date is refused. uv's dates are of TZ."""
    with Indexes({"a": {"demo": "1.0"}}, uploaded={"a": "2024-03-10T12:00:00Z"}) as indexes:
        write_all(tmp_path, {"p/uv.toml": f"exclude-newer = {json.dumps(text)}\nindex-url = '{indexes.url}/a/simple'\n",
                             "p/r.in": "demo\n"})
        environ = bare_environment(tmp_path / "home", TZ="UTC")
        run = uv(("pip", "compile", "-q", "--no-header", "r.in"), tmp_path / "p", environ, tmp_path / "cache")
        taken = None if "exclude-newer" in run.stderr and "parse" in run.stderr.lower() else run.returncode == 0
        try:
            settings = read_settings(environ=environ, home=tmp_path / "home", project=tmp_path / "p", prefix=tmp_path)
            [limit] = settings.uploaded_before
            ours = str(limit.moment) > "2024-03-10T12:00:00Z"
        except StackfixError:
            assert (taken, latest) == (None, None), run.stderr
        else:
            assert (ours, taken) == (latest, latest), run.stderr
