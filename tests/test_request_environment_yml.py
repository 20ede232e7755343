"""`environment.yml` as an input: who is asked what, what cannot be, and how it merges with other inputs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stackfix.errors import BadInput
from stackfix.matrix.conda_names import load_conda_names
from stackfix.request.environment_input import EnvironmentInput
from stackfix.request.environment_line import conda_text, parse_dependency, pip_specifier
from stackfix.request.environment_yml import read_environment_yml
from stackfix.resolve.records import CondaLine, Requirement
from stackfix.write.conda_read import read_conda_file
from tests.cli_world import Say, World
from tests.replay.wheels import make_wheel

FILE = """\
name: train
channels:
  - pytorch
  - nvidia
  - conda-forge
  - nodefaults
dependencies:
  - python=3.11
  - pytorch=2.3
  - pytorch-cuda=12.1
  - numpy >=1.26,<2
  - conda-forge::typing_extensions
  - cudnn 8.*
  - cmake>=3.20
  - pip
  - pip:
      - filelock<3.13   # a comment
      - idna[all]==3.7 ; python_version >= '3.8'
"""


def read(text: str, tmp_path: Path, *platforms: str) -> EnvironmentInput:
    path = tmp_path / "environment.yml"
    path.write_text(text, encoding="utf-8")
    return read_environment_yml(path, {"EXTRA": "jinja2"}, load_conda_names(None), platforms)


def where(tmp_path: Path, line: int) -> str:
    return f"{tmp_path / 'environment.yml'} line {line}"


def test_each_line_asks_those_whom_it_concerns(tmp_path: Path) -> None:
    found = read(FILE, tmp_path)
    assert found.channels == ("pytorch", "nvidia", "conda-forge")
    assert [(one.text, one.origin) for one in found.requirements] == [
        ("torch==2.3.*", where(tmp_path, 9)), ("numpy>=1.26,<2", where(tmp_path, 11)),
        ("typing-extensions", where(tmp_path, 12)), ("filelock<3.13", where(tmp_path, 17)),
        ("idna[all]==3.7 ; python_version >= '3.8'", where(tmp_path, 18))]
    assert found.conda_lines == (
        CondaLine(text="pytorch-cuda 12.1.*", origin=where(tmp_path, 10), project="torch", cuda=True),
        CondaLine(text="typing_extensions[channel='conda-forge']", origin=where(tmp_path, 12),
                  project="typing-extensions"),
        CondaLine(text="cudnn 8.*", origin=where(tmp_path, 13), project="torch",
                  limits=("nvidia-cudnn-cu11==8.*", "nvidia-cudnn-cu12==8.*", "nvidia-cudnn-cu13==8.*")),
        CondaLine(text="cmake >=3.20", origin=where(tmp_path, 14)), CondaLine(text="pip", origin=where(tmp_path, 15)))
    assert [one.value for one in found.cudas] == ["12.1"]
    assert [one.value for one in found.pythons] == ["==3.11.*"]
    assert found.files == ((tmp_path / "environment.yml").resolve(),)


@pytest.mark.parametrize(("text", "specifier", "build"), [
    ("numpy", "", None), ("numpy=1.26", "==1.26.*", None), ("numpy==1.26.4", "==1.26.4", None),
    ("numpy=1.26.4=py311_0", "==1.26.4", "py311_0"), ("numpy 1.26.4", "==1.26.4", None),
    ("numpy 1.26.*", "==1.26.*", None), ("numpy >=1.26, <2", ">=1.26,<2", None), ("numpy !=1.25.*", "!=1.25.*", None),
    ("numpy >= 1.26", ">=1.26", None), ("numpy ~=1.26", "~=1.26", None), ("numpy 1.26|1.27", None, None),
    ("numpy=*=py311*", "", "py311*"),
    ("numpy=1.26.*=py311*", "==1.26.*", "py311*"),
    ("numpy[version='>=1.26,<2', build='py311*']", ">=1.26,<2", "py311*"),
    ("numpy * py311_0", "", "py311_0"), ("numpy >=1!1.26", ">=1!1.26", None), ("numpy 1.26_odd", None, None),
])
def test_a_matchspec_is_taken_apart(text: str, specifier: str | None, build: str | None) -> None:
    one = parse_dependency(text, "environment.yml line 1")
    assert (one.name, pip_specifier(one), one.build) == ("numpy", specifier, build)


@pytest.mark.parametrize(("text", "spec"), [
    ("numpy=1.26", "numpy 1.26.*"), ("numpy=1.26.4=py311_0", "numpy ==1.26.4 py311_0"),
    ("numpy 1.26.4", "numpy ==1.26.4"),
    ("numpy=*=*cuda*", "numpy * *cuda*"), ("a::numpy >=1.26, <2", "numpy >=1.26,<2[channel='a']"), ("numpy", "numpy"),
    ("numpy 1.25|1.26.*", "numpy 1.25|1.26.*"),
])
def test_channels_are_asked_in_a_form_that_rattler_reads(text: str, spec: str) -> None:
    from rattler import MatchSpec

    found = conda_text(parse_dependency(text, "environment.yml line 1"))
    assert found == spec
    assert MatchSpec(found).name is not None


def test_cpu_is_asked_for_in_three_ways(tmp_path: Path) -> None:
    for line in ("cpuonly", "pytorch-cpu=2.3", "pytorch=2.3=*cpu*"):
        found = read(f"dependencies:\n  - {line}\n", tmp_path)
        assert [one.value for one in found.cudas] == ["cpu"], line


REFUSED = {
    "no yaml": ("dependencies: [", "line 2: is no YAML"),
    "a tag": ("dependencies: !!python/object:os.system\n  - x\n", "line 1: has the tag"),
    "no list": ("dependencies: numpy\n", "line 1: dependencies is no list"),
    "an unknown key": ("dependancies:\n  - numpy\n", "line 2: no such key as dependancies"),
    "an unknown section": ("dependencies:\n  - npm:\n    - x\n", "no such section as npm"),
    "an editable": ("dependencies:\n  - pip:\n    - -e .\n", "line 3: -e is not honoured"),
    "no version for pip": ("dependencies:\n  - numpy 1.25|1.26\n", "line 2: the version cannot be said to pip"),
    "no dependency": ("dependencies:\n  - '>=1.2'\n", "line 2: is no dependency"),
    "a twofold python": ("dependencies:\n  - python 3.10|3.11\n", "line 2: is no version of Python that both"),
    "a variable": ("dependencies:\n  - pip:\n    - ${UNSET}\n", "line 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_named_with_its_line(case: str, tmp_path: Path) -> None:
    text, reason = REFUSED[case]
    with pytest.raises(BadInput) as fault:
        read(text, tmp_path)
    assert reason in fault.value.what()


def test_variables_and_included_files_of_the_pip_section(tmp_path: Path) -> None:
    (tmp_path / "more.in").write_text("idna\n", encoding="utf-8")
    found = read("dependencies:\n  - pip:\n    - ${EXTRA}>=3\n    - -r more.in\n", tmp_path)
    assert [one.text for one in found.requirements] == ["jinja2>=3", "idna"]
    assert found.files[1:] == ((tmp_path / "more.in").resolve(),)


SELECTED = "dependencies:\n  - numpy\n  - triton  # [linux64]\n  - ffmpeg  # [aarch64]\n  - cmake  # [osx]\n"


def test_selectors_hold_lines_to_their_platforms(tmp_path: Path) -> None:
    found = read(SELECTED, tmp_path, "linux-64", "linux-aarch64")
    assert found.requirements == (
        Requirement(text="numpy", origin=where(tmp_path, 2)),
        Requirement(text="triton ; platform_machine == 'x86_64'", origin=where(tmp_path, 3)))
    assert found.conda_lines == (
        CondaLine(text="ffmpeg", origin=where(tmp_path, 4), platform="linux-aarch64"),)


def test_selectors_of_windows_and_macos_are_held_by_the_machine(tmp_path: Path) -> None:
    text = "dependencies:\n  - numpy\n  - idna  # [win]\n  - jinja2  # [osx]\n  - filelock  # [unix]\n"
    found = read(text, tmp_path, "linux-64", "win-64", "osx-arm64")
    assert [one.text for one in found.requirements] == [
        "numpy", "filelock ; platform_machine == 'x86_64' or platform_machine == 'arm64'",
        "idna ; platform_machine == 'AMD64'", "jinja2 ; platform_machine == 'arm64'"]


@pytest.mark.parametrize("order", [("linux-64", "osx-arm64"), ("osx-arm64", "linux-64")])
@pytest.mark.parametrize("more", ["", "  - cpuonly  # [osx]\n"])
def test_a_cuda_that_macos_does_not_name_is_that_of_the_others(
    order: tuple[str, str], more: str, tmp_path: Path
) -> None:
    text = f"dependencies:\n  - pytorch=2.3\n  - pytorch-cuda=12.1  # [linux64]\n{more}"
    found = read(text, tmp_path, *order)
    assert [one.value for one in found.cudas] == ["12.1"]
    assert found.conda_lines[0] == CondaLine(
        text="pytorch-cuda 12.1.*", origin=where(tmp_path, 3), project="torch", cuda=True, platform="linux-64")
    with pytest.raises(BadInput, match="say another one for linux-aarch64"):
        read(text, tmp_path, *order, "linux-aarch64")


def test_a_file_names_windows_macos_and_the_cpu_of_one_platform(world: World, say: Say) -> None:
    name = "torch-2.3.1-cp311-none-macosx_11_0_arm64.whl"
    world.projects["torch"][name] = make_wheel(name, requires=("filelock",))
    Path("environment.yml").write_text("platforms: [linux-64, osx-arm64]\ndependencies:\n  - pytorch=2.3\n")
    asked = ("lock", "-r", "environment.yml", "--no-flash-attn", "--python", "3.11", "--format", "requirements")
    said = say(*asked)
    assert said.status == 0, said
    assert said.out.split() == ["requirements-cp311-linux-64.txt", "requirements-cp311-osx-arm64.txt"]
    Path("environment.yml").write_text("platforms: [linux-64, osx-64]\ndependencies:\n  - pytorch=2.3\n")
    said = say(*asked)
    assert said.status == 2
    assert "platform osx-64: the matrix has no rows for this platform" in said.err
    said = say(*asked, "--platform", "linux-64-cpu", "--torch-index", "http://127.0.0.1:9")
    assert said.status == 0, said


def test_selectors_without_conda_lock_are_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert read(FILE, tmp_path).requirements        # a comment is no selector
    with pytest.raises(BadInput) as fault:
        read(SELECTED, tmp_path)
    assert "line 3: has a selector" in fault.value.what()
    assert "stackfix[conda-lock]" in (fault.value.next_step() or "")


def test_three_inputs_merge_into_both_sides(world: World, say: Say) -> None:
    Path("environment.yml").write_text(FILE.replace("idna[all]==3.7 ; python_version >= '3.8'", "idna"))
    Path("requirements.in").write_text("idna<3.7\n")
    Path("pyproject.toml").write_text(
        '[tool.stackfix]\nrequirements = ["requirements.in", "environment.yml"]\nno-flash-attn = true\n'
        'with = ["jinja2"]\n')
    said = say("lock")
    assert said.status == 0, said
    environment = read_conda_file(Path("conda-lock.yml")).environments[0]
    conda = {pin.name: pin.version for pin in environment.conda}
    assert conda["pytorch"] == "2.3.1"
    assert {"cmake", "jinja2", "pip"} <= conda.keys()
    assert (conda["pytorch-cuda"], conda["cudnn"].split(".")[0]) == ("12.1", "8")
    assert (conda["numpy"].split(".")[0], conda["idna"]) == ("1", "3.6")
    assert conda["filelock"].split(".")[:2] < ["3", "13"]
    assert [channel.rpartition("/")[2] for channel in environment.channels] == ["pytorch", "nvidia", "conda-forge"]
    text = Path("requirements.txt").read_text()
    assert "filelock==3.12.0 " in text
    assert "idna==3.6 " in text
    assert "numpy==1.26.4 " in text
    assert "nvidia-cudnn-cu12==8.9.2.26 " in text
    assert "cmake" not in text
    assert "--overwrite" not in text
    assert say("lock", "--check").status == 0


def test_contradictions_are_named_with_their_places(world: World, say: Say) -> None:
    Path("environment.yml").write_text(FILE)
    asked = ("lock", "-r", "environment.yml", "--no-flash-attn")
    said = say(*asked, "--cuda", "12.4")
    assert said.status == 1
    place = "environment.yml line 10: pytorch-cuda=12.1"
    assert f"CUDA: no stack has both 12.4 (--cuda 12.4) and 12.1 ({place})" in said.err
    said = say(*asked, "--python", "3.12")
    assert (said.status, "environment.yml line 8: python=3.11" in said.err) == (1, True), said
    Path("requirements.in").write_text("numpy>=2\n")
    said = say(*asked, "-r", "requirements.in", "--format", "requirements")
    assert said.status == 1
    assert "requirements.in line 1" in said.err
    assert "environment.yml line 11" in said.err


def test_a_package_of_channels_that_there_is_none_of_is_named(world: World, say: Say) -> None:
    Path("environment.yml").write_text(FILE.replace("cmake>=3.20", "cmake>=99"))
    said = say("lock", "-r", "environment.yml", "--no-flash-attn", "--format", "conda-lock")
    assert said.status == 1, said
    assert "cmake" in said.err
    assert "environment.yml line 14" in said.err
    assert not Path("conda-lock.yml").exists()


def test_its_file_is_not_written_over(world: World, say: Say) -> None:
    Path("environment.yml").write_text(FILE)
    said = say("lock", "-r", "environment.yml", "--no-flash-attn", "--format", "environment", "--overwrite")
    assert said.status == 2, said
    assert Path("environment.yml").read_text() == FILE


def test_a_range_of_pythons_takes_the_running_one(world: World, say: Say) -> None:
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    Path("environment.yml").write_text(f"dependencies:\n  - python >=3.9,<={running}.99\n  - pytorch=2.3\n")
    said = say("lock", "-r", "environment.yml", "--no-flash-attn", "--format", "requirements", "--json")
    assert said.status == 0, said
    assert said.json["stack"]["pythons"] == [running]
