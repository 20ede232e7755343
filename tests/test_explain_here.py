"""An error held against an environment: the finding that it is, or what there is in place of the cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.case_worlds import TAG, install_nvidia, install_torch, judge, nvjitlink
from tests.cli_world import Say
from tests.diagnose_world import World, lib

SONAME = "libnvJitLink.so.12"
LINE = ("ImportError: /elsewhere/nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4,"
        " version libnvJitLink.so.12")


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that runs the tests is not asked about."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)


def explain(say: Say, world: World, text: str, *words: str) -> dict[str, Any]:
    variables = [word for name, value in world.variables.items() for word in ("--env", f"{name}={value}")]
    said = say("explain", "--root", world.folder, "--prefix", world.prefix, *variables, "--json", *words, text)
    assert (said.status, said.err) == (0, ""), said
    document: dict[str, Any] = said.json
    return document


def shadowed(folder: Path) -> World:
    """torch 2.5.1, and the libnvJitLink of CUDA 12.2 on LD_LIBRARY_PATH."""
    world = install_torch(World(folder), "2.5.1")
    world.toolkit("/usr/local/cuda-12.2", "12.2.0")
    world.library(f"/usr/local/cuda-12.2/lib64/{SONAME}", nvjitlink("12.2.91"))
    return world.environ(LD_LIBRARY_PATH="/usr/local/cuda-12.2/lib64")


def test_it_is_so_here(tmp_path: Path, say: Say) -> None:
    """The file that is to blame is this machine's, and so is the command."""
    document = explain(say, shadowed(tmp_path), LINE)
    here = document["causes"][0]["here"]
    assert here == document["messages"][0]["here"]
    assert here["verdict"] == "so here"
    assert [each["code"] for each in here["findings"]] == ["SF101"]
    assert here["findings"][0]["culprit"] == {"path": f"/usr/local/cuda-12.2/lib64/{SONAME}", "package": None,
                                              "variable": "LD_LIBRARY_PATH"}
    assert here["command"].startswith("stackfix check --root ")
    assert (document["environment"]["prefix"], document["environment"]["error"]) == ("/venv", None)


def test_it_is_not_so_here(tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), "2.5.1")
    here = explain(say, world, LINE)["causes"][0]["here"]
    path = world.inside(f"nvidia/nvjitlink/lib/{SONAME}")
    assert (here["verdict"], here["findings"], here["command"]) == ("not so here", [], None)
    assert f"is {path} (nvidia-nvjitlink-cu12 12.4.127), found by RUNPATH" in here["text"]
    assert here["text"].endswith("and has __nvJitLinkComplete_12_4")


def without(path: str) -> Callable[[Path], World]:
    """torch 2.3.1 that lacks one file of its wheels."""
    def build(folder: Path) -> World:
        world = install_torch(World(folder), "2.3.1")
        return world.remove(world.inside(path))

    return build


def test_another_fault_of_the_same_library_is_told(tmp_path: Path, say: Say) -> None:
    """The line speaks of an old copy, and here the file is gone: what check finds of it is what is true here."""
    world = without(f"nvidia/nvjitlink/lib/{SONAME}")(tmp_path)
    here = explain(say, world, LINE)["causes"][0]["here"]
    assert here["verdict"] == "not so here"
    assert here["text"].startswith("another fault of the same library: ")
    assert [each["code"] for each in here["findings"]] == ["SF401"]


def with_extension(symbol: str) -> Callable[[Path], World]:
    """torch 2.3.1 beside a flash-attn that asks it for a function."""
    def build(folder: Path) -> World:
        module = lib(needs=("libc10_cuda.so",), wants=(symbol,))
        world = install_torch(World(folder), "2.3.1").wheel("einops", "0.8.0")
        return world.wheel("flash-attn", "2.5.7", {f"flash_attn_2_cuda.{TAG}": module}, requires=("torch", "einops"))

    return build


@pytest.mark.parametrize(("build", "code"), [
    (shadowed, "SF101"), (without("nvidia/cudnn/lib/libcudnn.so.8"), "SF401"),
    (without("nvidia/cusparse/lib/libcusparse.so.12"), "SF401"), (without("nvidia/nccl/lib/libnccl.so.2"), "SF401"),
    (with_extension("_ZN3c104cuda9SetDeviceEi"), "SF501"),
], ids=["nvjitlink", "cudnn", "cusparse", "nccl", "flash-attn"])
def test_the_line_of_a_finding_is_that_finding(build: Callable[[Path], World], code: str, tmp_path: Path,
                                               say: Say) -> None:
    """What `check` says that a user sees is explained, in the same place, as what `check` found."""
    world = build(tmp_path)
    found = [each for each in judge(say, world).findings if each["code"] == code]
    assert found[0]["error"]
    here = explain(say, world, f"ImportError: {found[0]['error']}")["causes"][0]["here"]
    assert here["verdict"] == "so here"
    assert found[0]["summary"] in [each["summary"] for each in here["findings"]]


def test_an_active_environment_that_cannot_be_inspected_costs_no_explanation(
    tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "nowhere"))
    said = say("explain", LINE)
    assert (said.status, said.err) == (0, "")
    assert "could not be inspected" in said.out
    assert "nvidia-nvjitlink-cu12>=12.4.99" in said.out
    document = say("explain", "--json", LINE).json
    assert document["causes"][0]["here"] is None
    assert "nowhere" in document["environment"]["error"]


@pytest.mark.parametrize(("words", "named"), [
    (("--prefix", "nowhere"), "nowhere: no such folder"), (("--env", "FOO"), "FOO: is not NAME=VALUE"),
    (("--python", "/bin/sh"), "/bin/sh: is no Python interpreter"),
])
def test_a_place_that_is_named_wrongly_is_an_error(words: tuple[str, ...], named: str, say: Say) -> None:
    said = say("explain", *words, LINE)
    assert (said.status, said.out) == (2, "")
    assert named in said.err


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_is_inspected(variable: str, tmp_path: Path, say: Say,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    world = install_torch(World(tmp_path, prefix=f"{tmp_path}/here"), "2.5.1")
    active = world.host(world.prefix)
    monkeypatch.setenv(variable, str(active))
    if variable == "CONDA_PREFIX":
        (active / "conda-meta").mkdir()
    document = say("explain", "--json", LINE).json
    assert document["environment"]["prefix"] == str(active)
    assert document["causes"][0]["here"]["verdict"] == "not so here"
    without = say("explain", "--json", "--no-inspect", LINE).json
    assert (without["environment"], without["causes"][0]["here"]) == (None, None)
    assert [each["summary"] for each in without["causes"]] == [each["summary"] for each in document["causes"]]


def test_a_text_alone_looks_at_nothing(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*_: object, **__: object) -> None:
        pytest.fail("an environment was looked at")

    monkeypatch.setattr("stackfix.cli.inspecting.open_view", looked)
    assert say("explain", "--json", LINE).json["environment"] is None


def test_a_library_that_lies_where_no_import_finds_it(tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), "2.5.1")
    world.library("/venv/lib/python3.11/site-packages/other/libcudart.so.11.0", nvjitlink("12.2.91"))
    line = "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
    here = explain(say, world, line)["causes"][0]["here"]
    assert here["verdict"] == "cannot tell"
    assert "other/libcudart.so.11.0" in here["text"]


def test_a_library_that_is_nowhere_is_not_said_to_be_no_error_here(tmp_path: Path, say: Say) -> None:
    """Nothing that was looked at asks for cuDNN 8; what does will fail, as cuDNN 9 is installed."""
    line = "ImportError: libcudnn.so.8: cannot open shared object file: No such file or directory"
    here = explain(say, install_torch(World(tmp_path), "2.5.1"), line)["causes"][0]["here"]
    assert here["verdict"] == "cannot tell"
    assert "libcudnn.so.8 is not loaded by any import here, and lies nowhere in /venv" in here["text"]
    assert "(libcudnn.so.9 of nvidia-cudnn-cu12 9.1.0.70 does)" in here["text"]


@pytest.mark.parametrize(("torch", "verdict", "text"), [
    ("2.5.1", "so here", "torch 2.5.1 here has no c10::cuda::SetDevice(int): whatever asks for it does not load"),
    ("2.2.2", "not so here", "torch 2.2.2 here has c10::cuda::SetDevice(int), in "),
])
def test_a_function_of_torch_is_looked_for_in_the_torch_that_is_here(
    torch: str, verdict: str, text: str, tmp_path: Path, say: Say,
) -> None:
    """The extension itself is not here."""
    line = "ImportError: /elsewhere/flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"
    here = explain(say, install_torch(World(tmp_path), torch), line)["causes"][0]["here"]
    assert (here["verdict"], here["text"][:len(text)]) == (verdict, text)


def test_no_driver_is_so_here_and_a_driver_that_is_too_old_cannot_be_told(tmp_path: Path, say: Say) -> None:
    world = install_torch(World(tmp_path), "2.5.1")
    for line, verdict in (("RuntimeError: Found no NVIDIA driver on your system. Please check that you have a GPU",
                           "so here"),
                          ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
                           "cannot tell")):
        here = explain(say, world, line)["causes"][0]["here"]
        assert (here["verdict"], here["text"]) == (verdict, "there is no NVIDIA driver on this machine")


def test_a_framework_s_message_is_held_against_what_is_wrong_with_that_library(tmp_path: Path, say: Say) -> None:
    """It names no file; the finding is one about cuDNN, not the first that there is."""
    world = install_torch(World(tmp_path), "2.5.1")
    install_nvidia(world, "nvidia-cudnn-cu12", "9.1.0.70")
    world.wheel("tensorflow", "2.18.0", {}, requires=("nvidia-cudnn-cu12>=9.3.0.75",))
    world.wheel("other", "1.0", {}, requires=("nvidia-nvjitlink-cu12>=12.9",))
    line = ("E cuda_dnn.cc:522] Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0.  CuDNN library"
            " needs to have matching major version and equal or higher minor version.")
    here = explain(say, world, line)["causes"][0]["here"]
    assert here["verdict"] == "so here"
    assert {each["culprit"]["package"] for each in here["findings"]} == {"nvidia-cudnn-cu12 9.1.0.70"}


def test_an_unknown_error_is_held_against_what_names_the_same_file(tmp_path: Path, say: Say) -> None:
    world = with_extension("_ZN3c104cuda9SetDeviceEi")(tmp_path)
    place = ("--root", world.folder, "--prefix", world.prefix)
    line = "SomeError: cannot dlopen flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so today"
    said = say("explain", *place, "--json", line)
    assert (said.status, said.json["kind"]) == (1, "unknown")
    assert [each["code"] for each in said.json["environment"]["findings"]] == ["SF501"]
    assert "here      SF501 abi-mismatch: flash-attn 2.5.7" in say("explain", *place, line).out
    other = say("explain", *place, "SomeError: cannot dlopen libother.so.3 today").out
    assert "here      nothing is found of the symbols and files that it names" in other


def test_for_people(tmp_path: Path, say: Say) -> None:
    world = shadowed(tmp_path)
    variables = ("--env", f"LD_LIBRARY_PATH={world.variables['LD_LIBRARY_PATH']}")
    said = say("explain", "--root", world.folder, "--prefix", world.prefix, *variables, LINE).out
    assert "  here      so here: " in said
    assert "SF101 shadowed-library, /usr/local/cuda-12.2/lib64/libnvJitLink.so.12" in said
    assert said.splitlines()[-1] == f"here: /venv of {world.folder}, Python 3.11.2 (--no-inspect leaves it out)"
    quiet = say("explain", "-q", "--root", world.folder, "--prefix", world.prefix, LINE).out.splitlines()
    assert len(quiet) == 2
    assert quiet[1].startswith("cure: ")
