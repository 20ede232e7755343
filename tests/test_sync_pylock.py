"""pylock.toml for one environment: what fits it, every file hashed, nothing that no hash covers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker

from stackfix.errors import BadInput
from stackfix.platforms import PLATFORMS
from stackfix.sync.errors import LockDoesNotFit
from stackfix.sync.pylock import parse_pylock
from stackfix.sync.records import Interpreter
from stackfix.sync.targets import PYTHONS
from stackfix.write.pylock import render_pylock
from stackfix.write.records import Entry
from stackfix.write.requirements import requirements_entries
from tests.judges.pylock import target_environment
from tests.lock_samples import HERE, NOWHERE, PYTHON, sample_packages, target_lock

A = "0a" * 32
MARKERS = {key: str(value) for key, value in target_environment(PYTHON, "x86_64").items()}
INTERPRETER = Interpreter(
    executable="/x/bin/python", prefix="/x", python=PYTHON, implementation="cpython", platform="linux-64",
    externally_managed=False, has_pip=False, markers=tuple(sorted(MARKERS.items())),
)
HEAD = 'lock-version = "1.0"\ncreated-by = "x"\n'


ALWAYS = "python_version > '3' or "


def document(*packages: str, head: str = "") -> str:
    return HEAD + head + "".join(f"[[packages]]\n{package}\n" for package in packages)


def entries(text: str) -> tuple[Entry, ...]:
    return parse_pylock(text, "pylock.toml", INTERPRETER)[0]


def wheel(digest: str = A) -> str:
    return f'wheels = [{{ url = "https://h/x.whl", hashes = {{ sha256 = "{digest}" }} }}]'


def test_what_we_write_reads_back_as_the_requirements_do() -> None:
    lock = target_lock(sample_packages(NOWHERE))
    written = {entry.name: replace(entry, extras=(), via=()) for entry in requirements_entries(lock)}
    assert {entry.name: entry for entry in entries(render_pylock(lock))} == written


def test_the_second_step() -> None:
    lock = target_lock(sample_packages(NOWHERE))
    text = render_pylock(lock, second_step="requirements-flash-attn.txt")
    assert parse_pylock(text, "x", INTERPRETER)[1] == "requirements-flash-attn.txt"


def test_packages_of_other_environments_are_left_out() -> None:
    text = document(f'name = "a"\nversion = "1"\nmarker = "sys_platform == \'win32\'"\n{wheel()}',
                    f'name = "B_x"\nversion = "2"\nmarker = "sys_platform == \'linux\'"\n{wheel()}',
                    f'name = "c"\nversion = "3"\n{wheel().replace("wheels = [", "sdist = ").rstrip("]")}')
    assert [(entry.name, entry.version) for entry in entries(text)] == [("b-x", "2"), ("c", "3")]


@pytest.mark.parametrize("head", ["requires-python = '>=3.99'\n", "environments = [\"sys_platform == 'win32'\"]\n",
                                  "environments = []\n"])
def test_a_lock_for_other_environments(head: str) -> None:
    with pytest.raises(LockDoesNotFit, match=r"pylock\.toml is locked for"):
        entries(document(head=head))


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("[[", "pylock.toml", "is not TOML"),
        ("a = " + "[" * 3000, "pylock.toml", "is not TOML"),
        (f"a = {'1' * 5001}", "pylock.toml", "is not TOML"),
        (HEAD + f"requires-python = '>={'1' * 5001}'\npackages = []", "requires-python", "is not a specifier"),
        (HEAD + f"environments = [\"python_version > '{'1' * 5001}'\"]\npackages = []", "environments",
         "is not a marker"),
        ("", "pylock.toml", "lock-version None is not 1.x"),
        ('lock-version = "2.0"', "pylock.toml", "lock-version '2.0' is not 1.x"),
        (HEAD, "packages", "is missing, not list"),
        (HEAD + "packages = 1", "packages", "is int, not list"),
        (HEAD + "packages = [1]", "packages[0]", "is int, not dict"),
        (HEAD + "requires-python = 1\npackages = []", "requires-python", "is int"),
        (HEAD + "requires-python = 'x'\npackages = []", "requires-python", "is not a specifier"),
        (HEAD + "environments = 'x'\npackages = []", "environments", "is str, not list"),
        (HEAD + "environments = ['x']\npackages = []", "environments", "is not a marker"),
        (HEAD + f"environments = {['x'] * 501}\npackages = []", "environments", "no lock has more than 500"),
        (HEAD + f"packages = {[1] * 20001}", "packages", "are 20001: no lock has more than 20000"),
        (HEAD + "packages = []\n[tool.stackfix]\nsecond-step = '../x.txt'", "tool.stackfix.second-step",
         "is not the name"),
        (document('version = "1"'), "packages[0] name", "is missing"),
        (document('name = "-"'), "packages[0] name", "is not a project name"),
        (document('name = "a\\nb"'), "packages[0] name", "is not a project name"),
        (document(f'name = "a"\n{wheel()}'), "packages[0] (a) version", "is missing"),
        (document(f'name = "a"\nversion = "1 --x"\n{wheel()}'), "(a) version", "is not a version"),
        (document('name = "a"\nversion = "1"'), "packages[0] (a)", "has no file"),
        (document('name = "a"\nversion = "1"\nwheels = 1'), "(a) wheels", "is int"),
        (document('name = "a"\nversion = "1"\nwheels = [{ url = "https://h/x.whl" }]'), "wheels[0] hashes",
         "is missing"),
        (document('name = "a"\nversion = "1"\nwheels = [{ hashes = { md5 = "0" } }]'), "hashes", "has no sha256"),
        (document(f'name = "a"\nversion = "1"\n{wheel("00")}'), "hashes", "has no sha256"),
        (document('name = "a"\nvcs = { type = "git", url = "x", commit-id = "0" }'), "(a)", "no hash covers"),
        (document('name = "a"\ndirectory = { path = "." }'), "(a)", "no hash covers"),
        (document(f'name = "a"\narchive = {{ path = "x.whl", hashes = {{ sha256 = "{A}" }} }}'), "archive url",
         "is missing"),
        (document(f'name = "a"\narchive = {{ url = "h x", hashes = {{ sha256 = "{A}" }} }}'), "archive url",
         "is not an address"),
        (document(f'name = "a"\narchive = {{ url = "https://h/${{TOKEN}}/x.whl", hashes = {{ sha256 = "{A}" }} }}'),
         "archive url", "a variable of the environment"),
        (document('name = "a"\narchive = { url = "https://h/x.whl", hashes = {} }'), "archive hashes", "no sha256"),
        (document(f'name = "a"\nversion = "1"\nmarker = "\'x\' in extras"\n{wheel()}'), "(a)", "extras or dependency"),
        (document(f'name = "a"\nversion = "1"\nmarker = "nonsense"\n{wheel()}'), "(a)", "is not a marker"),
        (document(*[f'name = "a"\nversion = "1"\n{wheel()}'] * 2), "packages[1]", "a is locked twice"),
        (HEAD + f"requires-python = '{',>=3' * 5000}'\npackages = []", "requires-python", "has 20000 characters"),
        (HEAD + f"environments = ['x', \"{ALWAYS * 700} \"]\npackages = []", "environments[1]",
         "no lock has more than 16384"),
        (document(f'name = "a"\nversion = "1"\nmarker = "{ALWAYS * 700} "\n{wheel()}'), "packages[0] marker",
         "no lock has more than 16384"),
        (document(*(f'name = "a{one}"\nversion = "1"\nmarker = "{ALWAYS * 300} {one}"\n{wheel()}'
                    for one in range(40))), "packages[36] marker", "the same ones counted once"),
    ],
)
def test_what_is_not_installed_is_named(text: str, where: str, reason: str) -> None:
    with pytest.raises(BadInput) as caught:
        entries(text)
    assert caught.value.thing.startswith("pylock.toml")
    assert where in caught.value.thing
    assert reason in caught.value.reason


def test_one_marker_of_many_packages_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    evaluate = Marker.evaluate

    def counted(self: Marker, environment: dict[str, str]) -> bool:
        asked.append(str(self))
        return evaluate(self, environment)

    monkeypatch.setattr(Marker, "evaluate", counted)
    marker = f"{ALWAYS * 500}python_version > '2.71'"       # of no other test: what was told once is remembered
    found = entries(document(*(f'name = "a{one}"\nversion = "1"\nmarker = "{marker}"\n{wheel()}' for one in range(50))))
    assert len(found) == 50
    assert len(asked) == 1


def test_the_other_environments_of_a_lock_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"sys_platform == 'win32' and python_version > '3.{one}'" for one in range(300)]
    asked: list[str] = []
    evaluate = Marker.evaluate

    def counted(self: Marker, environment: dict[str, str]) -> bool:
        asked.append(str(self))
        return evaluate(self, environment)

    monkeypatch.setattr(Marker, "evaluate", counted)
    for _ in range(20):
        with pytest.raises(LockDoesNotFit):
            entries(document(head=f"environments = {texts}\n"))
    assert len(asked) <= len(texts) * (len(PYTHONS) * len(PLATFORMS) + 1)


@given(st.text())
def test_any_text_is_a_lock_or_refused(text: str) -> None:
    with pytest.raises((BadInput, LockDoesNotFit)):
        entries(HEAD + text + "\npackages = 1\n")


def test_the_target_is_of_the_samples() -> None:
    assert (INTERPRETER.python, INTERPRETER.platform) == (HERE.python, HERE.platform)
