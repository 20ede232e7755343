"""Each line of each default file, changed in turn, is named by `lock --check`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from stackfix.write.compare import compare
from stackfix.write.records import Difference, PlannedFile
from tests.cli_world import Said, Say, World
from tests.replay.wheels import make_wheel

ASKED = ("--torch", "2.3", "--cuda", "12.1", "--python", "3.11", "--no-flash-attn")
FILES = ("requirements.txt", "pylock.toml", "conda-lock.yml")
QUOTED = "#    "                # the command, and how to install: there are many ways to say the same
NVJITLINK = "nvidia_nvjitlink_cu12-12.1.105-py3-none-any.whl"


@pytest.fixture
def locked(world: World, say: Say, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the files of a native layout, of the bundled records."""
    monkeypatch.setenv("CONDA_OFFLINE", "1")
    for name in ("nvidia-cusparse-cu12", "nvidia-cusolver-cu12"):
        world.projects[name] = {file: make_wheel(file, requires=["nvidia-nvjitlink-cu12"])
                                for file in world.projects[name]}
    world.projects["nvidia-nvjitlink-cu12"] = {NVJITLINK: make_wheel(NVJITLINK)}
    said = say("lock", *ASKED)
    assert said.status == 0, said
    assert said.out.split() == list(FILES)
    return Path()


def changed(line: str, number: int) -> Iterator[tuple[str, ...]]:
    """What may become of one line: another letter; of every ninth also nothing, twice, one more blank."""
    places = [place for place, char in enumerate(line) if char.isalnum()]
    if places:
        at = places[len(places) // 2]
        yield (line[:at] + ("x" if line[at] != "x" else "y") + line[at + 1:],)
    if number % 9 == 0:
        yield ()
        yield line, line
        yield (f"{line} ",)


@pytest.mark.parametrize("name", FILES)
def test_each_line_changed_removed_or_repeated_is_named(name: str, locked: Path) -> None:
    path = locked / name
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")[:-1]
    planned = [PlannedFile(path=name, text=text)]
    assert compare(locked, planned) == ()
    counted = 0
    for number, line in enumerate(lines, start=1):
        if line.startswith(QUOTED):
            continue
        for now in changed(line, number):
            path.write_text("\n".join((*lines[:number - 1], *now, *lines[number:])) + "\n", encoding="utf-8")
            differences = compare(locked, planned)
            assert named(differences, number, line, now), (number, line, now, differences)
            counted += 1
    assert counted > len(lines)


def named(differences: tuple[Difference, ...], number: int, line: str, now: tuple[str, ...]) -> bool:
    """Whether exactly this line is named. One of several alike may stand for another: nobody can tell them apart."""
    if len(differences) != 1:
        return False
    found, expected, at = differences[0].found, differences[0].expected, differences[0].line
    if now and now != (line, line):
        return (at, found, expected) == (number, now[0], line)
    return {found, expected} == {None, line} if now else {found, expected} == {None, line} or found is not None


KINDS = {
    # file: what a line is that is changed, and into what
    "a pin of requirements": ("requirements.txt", r"^filelock==3\.15\.4", "filelock==3.12.0"),
    "a hash of requirements": ("requirements.txt", r"--hash=sha256:[0-9a-f]{4}", "--hash=sha256:0000"),
    "a note of requirements": ("requirements.txt", r"^    # via torch$", "    # via numpy"),
    "a version of pylock": ("pylock.toml", r'^version = "3\.15\.4"', 'version = "3.12.0"'),
    "a URL of pylock": ("pylock.toml", r'^url = "http://', 'url = "https://'),
    "a hash of pylock": ("pylock.toml", r'^sha256 = "[0-9a-f]{4}', 'sha256 = "0000'),
    "a dependency of pylock": ("pylock.toml", r'\{ name = "mpmath" \}|name = "filelock" \}', 'name = "numpy" }'),
    "a name of conda": ("conda-lock.yml", r"^- name: mkl$", "- name: mkl2"),
    "a version of conda": ("conda-lock.yml", r"^  version: '2022\.1\.0'$", "  version: '2022.2.0'"),
    "a URL of conda": ("conda-lock.yml", r"(-[0-9a-z.]+_)(\d)(\.conda)$", r"\g<1>9\g<3>"),
    "an md5 of conda": ("conda-lock.yml", r"^(    md5: '?)[0-9a-f]{4}", r"\g<1>0000"),
    "a sha256 of conda": ("conda-lock.yml", r"^(    sha256: '?)[0-9a-f]{4}", r"\g<1>0000"),
    "a dependency of conda": ("conda-lock.yml", r"^    pytorch-mutex: .*$", "    pytorch-mutex: '1.0 cpu'"),
    "the content hash": ("conda-lock.yml", r"^    linux-64: [0-9a-f']{4}", "    linux-64: '000"),
    "the snapshot": ("conda-lock.yml", r"snapshot of \d{4}", "snapshot of 1999"),
}


WHEELS = {
    "a version of pip": (r"^  version: '3\.15\.4'$", "  version: '3.12.0'"),
    "a URL of pip": (r"filelock-3\.15\.4-py3", "filelock-3.12.0-py3"),
    "a hash of pip": (r"(filelock-3\.15\.4\S+\n  hash:\n    sha256: '?)[0-9a-f]{4}", r"\g<1>0000"),
    "a dependency of pip": (r"^    mpmath: ''$|^    networkx: ''$", "    numpy: ''"),
    "a name of pip": (r"^- name: filelock$", "- name: filelocks"),
    "a manager": (r"^  manager: pip$", "  manager: conda"),
}


def said_of(kinds: Mapping[str, tuple[str, str, str]], say: Say, *asked: str) -> dict[str, Said]:
    """What --check says of each change where it is not one line, that of the change, and exit 1."""
    wrong = {}
    for kind, (name, pattern, other) in kinds.items():
        path = Path(name)
        text = path.read_text(encoding="utf-8")
        match = re.search(pattern, text, re.MULTILINE)
        assert match is not None, kind
        changed = re.sub(pattern, other, text, count=1, flags=re.MULTILINE)
        number = next(number for number, (old, new) in enumerate(
            zip(text.split("\n"), changed.split("\n"), strict=True), start=1) if old != new)
        path.write_text(changed, encoding="utf-8")
        check = say("lock", *asked, "--check", "-q")
        if (check.status, [line.partition(": ")[0] for line in check.out.splitlines()]) != (1, [f"{name}:{number}"]):
            wrong[kind] = check
        path.write_text(text, encoding="utf-8")
    assert say("lock", *asked, "--check", "-q").status == 0
    return wrong


def test_the_command_names_the_line_and_exits_1(locked: Path, say: Say) -> None:
    assert said_of(KINDS, say, *ASKED) == {}


def test_it_does_so_for_pins_of_pip_in_a_conda_file_alone(locked: Path, say: Say) -> None:
    asked = (*ASKED, "--layout", "wheels", "--format", "conda-lock", "--name", "wheels")
    assert say("lock", *asked).status == 0
    kinds = {kind: ("wheels.conda-lock.yml", pattern, other) for kind, (pattern, other) in WHEELS.items()}
    assert said_of(kinds, say, *asked) == {}
