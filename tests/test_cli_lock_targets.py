"""`stackfix lock` for several targets: the files, what they keep, what they leave behind, what `--check` says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from stackfix.sync.pylock import parse_pylock
from stackfix.sync.targets import stand_in
from tests.cli_world import ASKED, Said, Say, World
from tests.replay.wheels import make_wheel

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PIP = ("--format", "requirements", "--format", "pylock")
BOTH = ("--platform", "linux-64", "--platform", "osx-arm64")
NOBODY = "http://127.0.0.1:9"
MAC = "torch-2.3.1-cp311-none-macosx_11_0_arm64.whl"
NEEDS = ("filelock", "typing-extensions>=4.8.0", "sympy", "networkx", "jinja2", "fsspec")


@pytest.fixture
def two(world: World) -> World:
    """The index with torch for macOS."""
    world.projects["torch"][MAC] = make_wheel(MAC, requires=NEEDS)
    return world


def lock(say: Say, *words: str) -> Said:
    return say("lock", *ASKED, *PIP, *BOTH, "--torch-index", NOBODY, *words)


def versions(name: str, platform: str) -> set[str]:
    entries, _ = parse_pylock(Path(name).read_text(encoding="utf-8"), name, stand_in("3.11", platform))
    return {f"{one.name}=={one.version}" for one in entries}


def pinned(name: str) -> set[str]:
    return set(re.findall(r"^[a-z0-9-]+==\S+", Path(name).read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.usefixtures("two")
def test_one_pylock_holds_what_each_requirements_file_says(say: Say) -> None:
    said = lock(say)
    assert said.status == 0, said
    assert said.out.split() == ["requirements-cp311-linux-64.txt", "requirements-cp311-osx-arm64.txt", "pylock.toml"]
    for platform in ("linux-64", "osx-arm64"):
        assert versions("pylock.toml", platform) == pinned(f"requirements-cp311-{platform}.txt")
    assert "nvidia-cublas-cu12==12.1.3.1" in versions("pylock.toml", "linux-64") - versions("pylock.toml", "osx-arm64")
    head = Path("requirements-cp311-osx-arm64.txt").read_text(encoding="utf-8").splitlines()[:3]
    assert head[1:] == ["# This file is locked by stackfix for cp311-osx-arm64",
                        "# (Python 3.11 on osx-arm64, macOS 14.0 or newer)"]
    assert say("diff", "requirements-cp311-osx-arm64.txt", "pylock.toml", "--platform", "osx-arm64").status == 0
    assert say("diff", "requirements-cp311-linux-64.txt", "pylock.toml", "--platform", "linux-64").status == 0
    assert lock(say, "--check").status == 0


@pytest.mark.usefixtures("two")
def test_a_changed_line_is_named_in_the_file_of_its_target(say: Say) -> None:
    assert lock(say).status == 0
    path = Path("requirements-cp311-osx-arm64.txt")
    lines = path.read_text(encoding="utf-8").split("\n")
    number = next(number for number, line in enumerate(lines) if line.startswith("fsspec==")) + 1
    lines[number] = lines[number].replace("sha256:", "sha256:0")[:-1]
    path.write_text("\n".join(lines), encoding="utf-8")
    said = lock(say, "--check", "-q")
    assert (said.status, [line.partition(": ")[0] for line in said.out.splitlines()]) == (
        1, [f"requirements-cp311-osx-arm64.txt:{number + 1}"]), said


@pytest.mark.usefixtures("two")
def test_a_changed_line_of_a_pylock_is_told_with_its_package_and_environments(say: Say) -> None:
    assert lock(say).status == 0
    path = Path("pylock.toml")
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    cublas = next(one for one in document["packages"] if one["name"] == "nvidia-cublas-cu12")
    digest = cublas["wheels"][0]["hashes"]["sha256"]
    path.write_text(path.read_text(encoding="utf-8").replace(digest, digest[::-1]), encoding="utf-8")
    number = path.read_text(encoding="utf-8").split("\n").index(f'sha256 = "{digest[::-1]}"') + 1
    said = lock(say, "--check", "-q")
    assert said.status == 1
    assert said.out == (f"pylock.toml:{number}: nvidia-cublas-cu12 (sys_platform == 'linux'): found "
                        f"'sha256 = \"{digest[::-1]}\"', expected 'sha256 = \"{digest}\"'\n")
    assert lock(say, "--check", "--json").json["differences"][0]["about"] == (
        "nvidia-cublas-cu12 (sys_platform == 'linux')")


@pytest.mark.parametrize("formats", [PIP, PIP[:2], PIP[2:]], ids=["both", "requirements", "pylock"])
def test_each_target_keeps_its_own_pins(formats: tuple[str, ...], two: World, say: Say) -> None:
    words = ("lock", *ASKED, *BOTH, "--torch-index", NOBODY, "--with", "idna", *formats)
    marked = "--with", "idna<3.7; sys_platform == 'darwin'"
    assert say(*words, *marked).status == 0
    before = {path.name: path.read_text(encoding="utf-8") for path in Path().glob("*.t*")}
    assert any("idna==3.6" in text or 'version = "3.6"' in text for text in before.values())
    assert say(*words).status == 0      # nothing asks for the older one any more: it is kept where it was
    for name, text in before.items():
        now = Path(name).read_text(encoding="utf-8")
        assert [line for line in now.splitlines() if "idna" in line and "#" not in line] == [
            line for line in text.splitlines() if "idna" in line and "#" not in line], name
        if name == "pylock.toml":
            assert now == text
    assert say(*words, "--upgrade-package", "idna").status == 0
    assert not any("idna==3.6" in path.read_text(encoding="utf-8") or 'version = "3.6"' in
                   path.read_text(encoding="utf-8") for path in Path().glob("*.t*"))
    assert two.asked


OLD = """lock-version = "1.0"
environments = [
    "python_version == '3.11' and implementation_name == 'cpython' and sys_platform == 'linux' and \
platform_machine == 'x86_64'",
]
created-by = "stackfix"
packages = []
"""


@pytest.mark.usefixtures("two")
def test_a_pylock_of_one_target_that_an_earlier_release_wrote_goes_with_the_new_lock(say: Say) -> None:
    assert lock(say).status == 0
    Path("pylock.cp311-linux-64.toml").write_text(OLD, encoding="utf-8")
    for name, text in (("pylock.cp311-win-64.toml", OLD.replace("linux", "win32")),
                       ("pylock.train-cp311-linux-64.toml", OLD), ("pylock.new.toml", OLD),
                       ("pylock.cp312-linux-64.toml", OLD.replace("stackfix", "me"))):
        Path(name).write_text(text, encoding="utf-8")
    said = lock(say, "--check", "-q")
    assert (said.status, said.out.count("\n")) == (1, 1), said
    assert said.out.startswith("pylock.cp311-linux-64.toml:3: unexpected")
    said = lock(say)
    assert said.status == 0
    assert "note: pylock.cp311-linux-64.toml is removed: pylock.toml holds its target now" in said.err
    assert {path.name for path in Path().glob("pylock*")} == {
        "pylock.toml", "pylock.cp311-win-64.toml", "pylock.train-cp311-linux-64.toml", "pylock.new.toml",
        "pylock.cp312-linux-64.toml"}
    assert lock(say, "--check").status == 0


@pytest.mark.usefixtures("two")
def test_files_of_targets_that_are_not_locked_any_more_go(say: Say) -> None:
    assert lock(say, "--name", "train").status == 0
    assert say("lock", *ASKED, *PIP).status == 0
    mine = {"requirements-cp310-linux-64.txt": "idna==1.0\n", "requirements-flash-attn-cp311-linux-64.txt": "idna==1\n"}
    for name, text in mine.items():
        Path(name).write_text(text, encoding="utf-8")
    said = lock(say, "--check", "-q")
    assert "\nrequirements.txt:2: unexpected '# This file is locked by stackfix for cp311-linux-64'" in said.out, said
    said = lock(say)
    assert said.status == 0
    assert "note: requirements.txt is removed: requirements-cp311-linux-64.txt holds its target now" in said.err
    several = {path.name for path in Path().glob("requirements-*") if "train" not in path.name} - mine.keys()
    assert len(several) > 1
    Path("requirements-flash-attn-cp310-win-64.txt").write_text(
        f"# This file is locked by stackfix for cp310-win-64\n# second step of: {min(several)}\nidna==1\n",
        encoding="utf-8")
    said = say("lock", *ASKED, *PIP, "-q")
    assert said.status == 0
    assert re.findall(r"note: (\S+) is removed", said.err) == sorted(several)
    assert "note: requirements-cp311-linux-64.txt is removed: requirements.txt holds its target now" in said.err
    assert "note: requirements-cp311-osx-arm64.txt is removed: its target is not of this lock any more" in said.err
    left = {path.name for path in Path().glob("requirements*") if "train" not in path.name}
    assert left == {"requirements.txt", *mine}
    assert lock(say, "--name", "train", "--check").status == 0
    assert say("lock", *ASKED, *PIP, "--check").status == 0


@pytest.mark.usefixtures("two")
def test_a_lock_that_is_asked_by_is_not_taken_for_one_that_is_left(say: Say) -> None:
    Path("requirements.txt").write_text("# This file is locked by stackfix for cp311-linux-64\nidna\n")
    words = ("-r", "requirements.txt")
    assert lock(say, *words).status == 0
    assert Path("requirements.txt").exists()
    assert lock(say, *words, "--check").status == 0


@pytest.mark.usefixtures("two")
def test_a_cpu_build_beside_another_has_a_pylock_of_its_own(say: Say) -> None:
    words = ("lock", *ASKED, *PIP, "--platform", "linux-64", "--platform", "linux-64-cpu", "--torch-index", NOBODY)
    said = say(*words)
    assert said.status == 0, said
    assert said.out.split() == ["requirements-cp311-linux-64.txt", "requirements-cp311-linux-64-cpu.txt",
                                "pylock.toml", "pylock.cpu.toml"]
    assert ("no marker tells two builds for one platform apart, so there are two pylock files: pylock.toml for "
            "linux-64, pylock.cpu.toml for linux-64-cpu") in said.err
    assert tomllib.loads(Path("pylock.cpu.toml").read_text(encoding="utf-8"))["tool"] == {
        "stackfix": {"variant": "cpu"}}
    assert say(*words, "--check").status == 0
    said = say("diff", "requirements-cp311-linux-64.txt", "requirements-cp311-linux-64-cpu.txt")
    assert said.status == 1
    assert said.out.splitlines()[0] == "~ platform linux-64 -> linux-64-cpu"
    assert say("diff", "requirements-cp311-linux-64-cpu.txt", "pylock.cpu.toml").status == 0
    refused = say("lock", *ASKED, *PIP, "--name", "cpu", "--torch-index", NOBODY)
    assert refused.status == 2
    assert "pylock.cpu.toml: holds the CPU build of the lock without that name" in refused.err
    said = say("lock", *ASKED, *PIP, "--platform", "linux-64-cpu", "--torch-index", NOBODY)
    assert said.status == 0, said
    assert not Path("pylock.cpu.toml").exists()
    assert "note: pylock.cpu.toml is removed: pylock.toml holds its target now" in said.err
    assert say(*words, "--name", "cpu", "-q").status == 0
    said = say("lock", *ASKED, *PIP, "--name", "cpu", "--platform", "osx-arm64", "--torch-index", NOBODY, "-q")
    assert said.status == 0, said
    assert "note: pylock.cpu-cpu.toml is removed: its target is not of this lock any more" in said.err
    assert not Path("pylock.cpu-cpu.toml").exists()


@pytest.mark.usefixtures("two")
def test_a_lock_of_the_name_cpu_is_not_taken_for_a_variant(say: Say) -> None:
    assert say("lock", *ASKED, *PIP, "--name", "cpu").status == 0
    before = Path("pylock.cpu.toml").read_text(encoding="utf-8")
    refused = say("lock", *ASKED, *PIP, "--platform", "linux-64", "--platform", "linux-64-cpu", "--torch-index", NOBODY)
    assert refused.status == 2, refused
    assert "pylock.cpu.toml: holds the lock of that name and would be overwritten" in refused.err
    assert Path("pylock.cpu.toml").read_text(encoding="utf-8") == before
    assert not Path("pylock.toml").exists()


@pytest.mark.parametrize("name", ["pylock.toml", "requirements-cp311-osx-arm64.txt"])
def test_what_another_wrote_is_refused_before_the_index_is_asked(name: str, two: World, say: Say) -> None:
    Path(name).write_text("mine = 1\n", encoding="utf-8")
    refused = lock(say)
    assert (refused.status, two.asked) == (2, []), refused
    assert f"{name}: was not written by stackfix and would be overwritten" in refused.err
    assert lock(say, "--overwrite").status == 0


@pytest.mark.usefixtures("two")
def test_a_conda_lock_by_hand_is_in_nobodys_way_where_none_is_written(say: Say) -> None:
    Path("conda-lock.yml").write_text("mine: 1\n", encoding="utf-8")
    said = say("lock", *ASKED, "--platform", "osx-arm64", "--torch-index", NOBODY)
    assert said.status == 0, said
    assert said.out.split() == ["requirements.txt", "pylock.toml"]
    assert Path("conda-lock.yml").read_text(encoding="utf-8") == "mine: 1\n"
