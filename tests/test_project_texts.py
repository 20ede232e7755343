"""What no committed file may hold: addresses, names of package registries, paths of one machine, loose ends."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOP_LEVEL = {"pyproject.toml", "stackfix", "matrices", "tests", "README.md", "noxfile.py", ".ci", "docs", "benchmarks",
             "LICENSE", ".gitignore"}
ADDRESSES = "matrices/sources.toml"         # the one file that names addresses


def whole(broken: str) -> str:
    """The text without its tildes: forbidden words are written with one, so that this file does not hold them."""
    return broken.replace("~", "")


REGISTRIES = re.compile(whole(r"py~pi\.org|python~hosted|npm~js\.org|deb\.~debian"), re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:work|farm|root|tmp/w)/")
UNFINISHED = re.compile(whole("raise Not~ImplementedError|TO~DO|FIX~ME|X~XX|pragma: no~ cover"))
URL = re.compile(r"\b(?:https?|ftp|file)://(?:[^\s/@]*@)?(?P<host>[A-Za-z0-9.-]+)")
# Loopback, names without a dot inside (nobody's on the Internet), and what RFC 2606 sets aside for examples and tests.
STAND_INS = re.compile(r"[^.]+\.?|127\.0\.0\.\d+|(?:.+\.)?(?:invalid|test|example|localhost|example\.(?:com|org|net))")


def committed() -> list[str]:
    """Files git tracks or would track; in a tree without git, every file outside the ignored folders."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.CalledProcessError):
        ignored = {"__pycache__", ".venv", ".nox", ".git", "dist", "build"}
        every = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        return [str(path) for path in every if not (ignored & set(path.parts) or path.parts[0].endswith("_cache"))]
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


FILES = committed()


def faults(name: str, text: str) -> list[str]:
    """What the file `name` must not hold, each with its line number."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"{name}:{number}"
        if MACHINE_PATH.search(line):
            found.append(f"{place}: path of one machine")
        if name.endswith(".py") and UNFINISHED.search(line):
            found.append(f"{place}: unfinished")
        if name == ADDRESSES or (name == "LICENSE" and number in (4, 196)):
            continue        # the licence's own text names its home
        if REGISTRIES.search(line):
            found.append(f"{place}: name of a package registry")
        hosts = [match["host"] for match in URL.finditer(line)]
        found += [f"{place}: address of {host}" for host in hosts if not STAND_INS.fullmatch(host)]
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_committed_file_names_no_place(name: str) -> None:
    try:
        text = (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return              # an archive or a wheel: its text is not ours
    assert faults(name, text) == []


def test_only_the_agreed_names_stand_at_the_top() -> None:
    assert {name.partition("/")[0] for name in FILES} <= TOP_LEVEL


@pytest.mark.parametrize(
    ("name", "line", "what"),
    [
        ("a.md", "see https~://torch.dev/x", "address of torch.dev"),
        ("a.md", "see https~://user:word@torch.dev/x", "address of torch.dev"),
        ("a.py", "index = 'py~pi.org'", "name of a package registry"),
        ("a.txt", "cd /wo~rk/main", "path of one machine"),
        ("a.py", "# TO~DO: later", "unfinished"),
        ("matrices/torch.toml", "url = 'http~://mirror.dev'", "address of mirror.dev"),
        ("LICENSE", "http~://elsewhere.dev", "address of elsewhere.dev"),
    ],
)
def test_the_judge_of_texts_sees_a_fault(name: str, line: str, what: str) -> None:
    assert faults(name, f"\n{whole(line)}\n") == [f"{name}:2: {what}"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.py", "url = 'http://127.0.0.1:8080/simple'"),
        ("a.py", "url.startswith('https://')"),
        ("a.py", "f'http://{host}/x'"),
        ("a.py", "mirror = 'https://user:secret@packages.example/simple'"),
        ("a.py", "url = 'https://host/simple'"),
        ("a.py", "except NotImplementedError:"),
        ("a.md", "homework/main, ./work/x"),
        (ADDRESSES, "base = 'https~://anything.dev'"),
    ],
)
def test_the_judge_of_texts_lets_stand_ins_pass(name: str, line: str) -> None:
    assert faults(name, whole(line)) == []
