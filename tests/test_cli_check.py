"""`stackfix check` as a command line: what it takes, what it says, and that it changes and runs nothing."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pty
import re
import shutil
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from stackfix.cli import inspecting
from tests.cli_world import Say
from tests.diagnose_world import World, elf_bytes, lib
from tests.inspect_trees import SITE, dist_info, make_venv, make_wheel
from tests.judges.command import clean_environment
from tests.loader_oracle.graph import Library

ADD, COMPLETE = "__nvJitLinkAddData_12_1", "__nvJitLinkComplete_12_1"
SONAME = "libnvJitLink.so.12"
OLD = "/usr/local/cuda-12.0/lib64"
OURS = ("LD_", "CUDA", "NVIDIA", "CONDA", "VIRTUAL_ENV", "PYTHON", "STACKFIX_")
NOBODY = 65534


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of this machine, an empty current folder, and no network."""
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("check opened a socket")

    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(socket, "socket", refuse)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)


@pytest.fixture
def tree(tmp_path: Path) -> World:
    """A machine whose cuSPARSE has the nvJitLink that it needs; a toolkit of CUDA 12.0 lies beside."""
    made = World(tmp_path / "tree")
    made.wheel("nvidia-nvjitlink-cu12", "12.1.105", {f"nvidia/nvjitlink/lib/{SONAME}": lib(
        offers=(f"{ADD}@{SONAME}", f"{COMPLETE}@{SONAME}"))})
    made.wheel("nvidia-cusparse-cu12", "12.1.0.106", {"nvidia/cusparse/lib/libcusparse.so.12": lib(
        needs=(SONAME,), wants=(f"{ADD}@{SONAME}", f"{COMPLETE}@{SONAME}"), runpath="$ORIGIN/../../nvjitlink/lib")})
    made.wheel("spmm", "1.0", {"spmm.cpython-311-x86_64-linux-gnu.so": lib(
        needs=("libcusparse.so.12",), runpath="$ORIGIN/nvidia/cusparse/lib")})
    made.toolkit("/usr/local/cuda-12.0", "12.0.1")
    made.library(f"{OLD}/{SONAME}", lib(offers=(f"__nvJitLinkAddData_12_0@{SONAME}",)))
    return made


def snapshot(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Every name below a folder with what a write would change."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.lstat()
        content = (str(path.readlink()) if path.is_symlink()
                   else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None)
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, status.st_ino, status.st_nlink,
                                                content)
    return found


def of(tree: World) -> tuple[str, ...]:
    """The options that name the tree and its environment."""
    return ("--root", str(tree.folder), "--prefix", tree.prefix)


def codes(document: Any) -> list[str]:
    return [each["code"] for each in document["findings"]]


def serious(document: Any) -> list[Any]:
    return [each for each in document["findings"] if each["severity"] != "note"]


# --- a tree ---


def test_a_healthy_tree_is_clean(tree: World, say: Say) -> None:
    said = say("check", *of(tree), "--json")
    assert (said.status, said.err) == (0, ""), said
    document = said.json
    assert serious(document) == []
    assert document["schema_version"] == 1
    assert document["verified"] | {"reason": ""} == {
        "static": "clean", "load": "cannot-tell", "kernel": "cannot-tell", "reason": ""}
    assert (document["plan"], document["applied"]) == ({"actions": []}, None)
    assert [each["name"] for each in document["levels"]] == ["driver", "cuda", "cudnn", "torch", "extensions",
                                                            "environment"]
    environment = document["environment"]
    assert (environment["prefix"], environment["root"]) == ("/venv", str(tree.folder))
    assert environment["python"]["minor"] == "3.11"
    assert {"name": "nvidia-nvjitlink-cu12", "version": "12.1.105", "manager": "pip"} in environment["packages"]
    assert environment["machine"]["glibc"] == "2.36"
    assert environment["variables"] == {}
    assert any(each["subject"] == "driver" for each in document["undecided"])


def test_a_shadow_is_found_with_its_path_and_symbols(tree: World, say: Say) -> None:
    words = ("check", *of(tree), "--env", f"LD_LIBRARY_PATH={OLD}")
    said = say(*words, "--json")
    assert said.status == 1, said
    [finding] = serious(said.json)
    assert finding["code"] == "SF101"
    assert finding["culprit"]["path"] == f"{OLD}/{SONAME}"
    assert set(finding["symbols"]) == {ADD, COMPLETE}
    assert finding["requester"]["path"] == f"{tree.site}/nvidia/cusparse/lib/libcusparse.so.12"
    assert said.json["verified"]["static"] == "findings"
    text = say(*words)
    assert (text.status, text.err) == (1, "")
    assert text.out.startswith("1 error in /venv")
    assert f"{OLD}/{SONAME}" in text.out
    assert ADD in text.out


def shape_differences(documented: Any, real: Any, way: str = "") -> Iterator[str]:
    """Where one has keys that the other has not; a null and an empty list say nothing of what they could hold."""
    if isinstance(documented, dict) and isinstance(real, dict):
        for key in documented.keys() ^ real.keys():
            yield f"{way}.{key} is only {'documented' if key in documented else 'real'}"
        for key in documented.keys() & real.keys():
            yield from shape_differences(documented[key], real[key], f"{way}.{key}")
    elif isinstance(documented, list) and isinstance(real, list) and documented:
        for each in real[:3]:
            yield from shape_differences(documented[0], each, f"{way}[]")
    elif documented is not None and real is not None and type(documented) is not type(real):
        yield f"{way}: {documented!r} is documented, {real!r} is real"


def test_the_document_has_the_shape_that_the_page_shows(tree: World, say: Say) -> None:
    page = (Path(__file__).parent.parent / "docs" / "commands.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("## `stackfix check`")[2].partition("```json\n")[2].partition("```")[0])
    real = say("check", *of(tree), "--env", f"LD_LIBRARY_PATH={OLD}", "--json").json
    for document in (shown, real):
        document["environment"]["variables"] = {}
        document["environment"]["machine"]["libstdcxx"]["newest"] = {}
    assert list(shape_differences(shown, real)) == []
    wrong = {**shown, "more": 1, "levels": [{"name": 1}]}
    assert sorted(shape_differences(wrong, shown)) == [
        ".levels[].name: 1 is documented, 'driver' is real", ".levels[].text is only real",
        ".levels[].verdict is only real", ".more is only documented"]


def test_variables_of_this_process_are_no_facts_of_a_tree(tree: World, say: Say,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", OLD)
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    monkeypatch.setenv("CUDA_HOME", "/usr/local/cuda-12.0")
    said = say("check", "--root", tree.folder, "--env", "PATH=/venv/bin:/usr/bin", "--json")
    assert said.status == 0, said
    assert said.json["environment"]["variables"] == {}
    assert (said.json["environment"]["prefix"], said.json["environment"]["found_via"]) == ("/venv", "PATH")


@pytest.mark.parametrize("prefix", ["/venv", "venv", "/venv/", "/./venv", "from outside", "relative from outside"])
def test_a_place_in_a_tree_may_be_spelled_from_inside_and_from_outside(
        prefix: str, tree: World, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.folder.parent)
    spelled = {"from outside": str(tree.host("/venv")), "relative from outside": "tree/venv"}.get(prefix, prefix)
    said = say("check", "--root", "tree", "--prefix", spelled, "--json")
    assert said.status == 0, said
    assert said.json["environment"]["prefix"] == "/venv"
    assert say("check", "--root", "tree", "--python", f"{spelled}/bin/python").status == 0


@pytest.mark.parametrize("prefix", ["/etc", "../outside", "from outside"])
def test_a_place_outside_of_a_tree_is_none_of_it(prefix: str, tree: World, say: Say) -> None:
    outside = make_venv(tree.folder.parent / "outside")
    said = say("check", "--root", tree.folder, "--prefix", str(outside) if prefix == "from outside" else prefix)
    assert said.status == 2, said
    assert "no such folder" in said.err or "is no environment" in said.err


@pytest.mark.parametrize(("fail_on", "sick", "healthy"), [("error", 1, 0), ("warning", 1, 0), ("never", 0, 0)])
def test_fail_on_decides_the_exit_status(fail_on: str, sick: int, healthy: int, tree: World, say: Say) -> None:
    words = ("check", *of(tree), "--fail-on", fail_on)
    assert say(*words).status == healthy
    assert say(*words, "--env", f"LD_LIBRARY_PATH={OLD}").status == sick


def test_a_note_counts_where_it_is_asked_to(tree: World, say: Say) -> None:
    tree.library(f"{OLD}/{SONAME}", lib(offers=(f"{ADD}@{SONAME}", f"{COMPLETE}@{SONAME}")))    # lacks nothing
    words = ("check", *of(tree), "--env", f"LD_LIBRARY_PATH={OLD}")
    assert say(*words).status == 0
    assert "SF102" in codes(say(*words, "--json").json)
    assert say(*words, "--fail-on", "note").status == 1


def test_quiet_says_nothing_of_a_healthy_tree(tree: World, say: Say) -> None:
    said = say("check", *of(tree), "-q")
    assert (said.status, said.out, said.err) == (0, "", "")
    said = say("check", *of(tree), "-q", "--env", f"LD_LIBRARY_PATH={OLD}")
    assert said.out.startswith("error SF101 ")


def test_colour_is_forced_on_a_pipe_and_kept_from_it(tree: World, say: Say) -> None:
    assert "\x1b[" in say("check", *of(tree), "--color", "always").out
    assert "\x1b[" not in say("check", *of(tree)).out


def test_on_a_terminal_there_is_colour_and_lines_are_as_wide_as_it(tree: World) -> None:
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 72, 0, 0))
    environ = {**clean_environment(), "TERM": "xterm"}
    for name in ("NO_COLOR", "COLUMNS"):
        environ.pop(name, None)
    command = [sys.executable, "-m", "stackfix", "check", *of(tree), "--env", f"LD_LIBRARY_PATH={OLD}"]
    with subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal) as child:
        os.close(terminal)
        said = b""
        with suppress(OSError):         # the terminal is gone with the child
            while part := os.read(ours, 65536):
                said += part
    os.close(ours)
    assert child.returncode == 1
    assert "\x1b[31m\x1b[1m1 error\x1b[0m in /venv" in said.decode()
    plain = re.sub(r"\x1b\[\d*m", "", said.decode()).splitlines()
    [why] = [number for number, line in enumerate(plain) if line.startswith("  why ")]
    assert len(plain[why + 1].lstrip()) == len(plain[why + 1]) - 12         # it goes on below
    assert [line for line in plain[why:why + 3] if len(line) > 72 and " " in line[12:72].strip()] == []


def test_an_extension_is_judged_against_the_environment(tree: World, say: Say) -> None:
    tree.library("/build/good.so", lib(needs=("libc.so.6",)))
    tree.library("/build/bad.so", lib(needs=("libc.so.6",), wants=("who_has_this",)))
    words = ("check", *of(tree), "--json")
    assert serious(say(*words, "--ext", "/build/good.so").json) == []
    said = say(*words, "--ext", "/build/good.so", "--ext", "build/bad.so")
    assert said.status == 1, said
    [finding] = serious(said.json)
    assert finding["symbols"] == ["who_has_this"]
    assert "/build/bad.so" in {finding["culprit"]["path"], (finding["requester"] or {}).get("path")}


def test_a_tree_of_another_processor_with_relative_links(tmp_path: Path, say: Say) -> None:
    made = World(tmp_path / "tree")
    for path in [*sorted(made.folder.rglob("*.so*")), made.host("/usr/bin/python3.11")]:
        content = bytearray(path.read_bytes())
        content[18:20] = (183).to_bytes(2, "little")        # EM_AARCH64
        path.write_bytes(content)
    made.host("/lib").mkdir(exist_ok=True)
    made.host("/lib64/ld-linux-x86-64.so.2").rename(made.host("/lib/ld-linux-aarch64.so.1"))
    shutil.move(made.host("/usr/lib/x86_64-linux-gnu"), made.host("/usr/lib/aarch64-linux-gnu"))
    made.link("/lib/aarch64-linux-gnu", "../usr/lib/aarch64-linux-gnu")
    made.link("/opt/env", "../venv")
    said = say("check", "--root", made.folder, "--prefix", "opt/env", "--json")
    assert said.status == 0, said
    assert said.json["environment"]["machine"]["architecture"] == "aarch64"
    assert serious(said.json) == []
    made.wheel("foreign", "1.0", {"foreign.cpython-311-x86_64-linux-gnu.so": lib()})        # for x86_64
    said = say("check", "--root", made.folder, "--prefix", "/opt/env", "--json")
    assert "SF905" in codes(said.json)


def wheel_of(folder: Path, name: str, version: str, file: str, library: Library, *, tag: str) -> Path:
    """A real wheel with one library."""
    return make_wheel(folder, name, version, {file: elf_bytes(f"/venv/{file}", library)}, tag=tag)


def test_a_wheel_is_judged_before_it_is_installed(tree: World, say: Say) -> None:
    old = wheel_of(Path.cwd(), "nvidia_nvjitlink_cu12", "12.0.140", f"nvidia/nvjitlink/lib/{SONAME}",
                   lib(offers=(f"__nvJitLinkAddData_12_0@{SONAME}",)), tag="py3-none-manylinux1_x86_64")
    new = wheel_of(Path.cwd(), "nvidia_nvjitlink_cu12", "12.4.127", f"nvidia/nvjitlink/lib/{SONAME}",
                   lib(offers=(f"{ADD}@{SONAME}", f"{COMPLETE}@{SONAME}")), tag="py3-none-manylinux2014_x86_64")
    before = snapshot(tree.folder)
    said = say("check", *of(tree), "--wheel", old.name, "--json")
    assert (said.status, said.err) == (1, ""), said
    [finding] = serious(said.json)
    assert (finding["code"], finding["culprit"]["package"]) == ("SF201", "nvidia-nvjitlink-cu12 12.0.140")
    assert set(finding["symbols"]) == {ADD, COMPLETE}
    assert said.json["environment"]["wheels"] == [old.name]
    assert {"name": "nvidia-nvjitlink-cu12", "version": "12.0.140", "manager": "pip"} in (
        said.json["environment"]["packages"])
    assert serious(say("check", *of(tree), "--wheel", new, "--json").json) == []
    assert say("check", *of(tree), "--wheel", old, "--wheel", new).status == 0      # the later one counts
    assert say("check", *of(tree), "--wheel", new, "--wheel", old).status == 1
    assert f"of {tree.folder} with {old.name}" in say("check", *of(tree), "--wheel", old.name).out
    assert snapshot(tree.folder) == before


@pytest.mark.parametrize(("tag", "fits"), [
    ("cp311-cp311-manylinux_2_36_x86_64", True), ("cp39-abi3-manylinux2014_x86_64", True), ("py3-none-any", True),
    ("cp310-cp310-manylinux2014_x86_64", False), ("cp311-cp311-manylinux2014_aarch64", False),
    ("cp311-cp311-manylinux_2_38_x86_64", False), ("cp311-cp311-win_amd64", False),
])
def test_a_wheel_that_no_installer_takes_is_refused(tag: str, fits: bool, tree: World, say: Say) -> None:
    wheel = make_wheel(Path.cwd(), "some", "1.0", {"some.py": b""}, tag=tag)
    said = say("check", *of(tree), "--wheel", wheel, "--json")
    assert (said.status, said.err) == (0 if fits else 1, ""), said
    if not fits:
        assert said.json["error"]["code"] == "wheel-does-not-fit"
        assert tag in said.json["error"]["message"]


# --- this machine ---


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real venv with two projects."""
    made = make_venv(tmp_path_factory.mktemp("real") / "env")
    dist_info(made / SITE, "filelock", "3.12.0", {"filelock/__init__.py": b"raise SystemExit('imported')\n"})
    dist_info(made / SITE, "nvidia_ml_py", "12.535.133", {"pynvml.py": b"raise SystemExit('imported')\n",
                                                          "example.py": b"VERSION = '12.535.133'\n"})
    return made


def test_the_environment_may_be_named_in_each_way(venv: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(venv.parent)
    for words, found_via in ((("--prefix", "env"), "--prefix"), (("--prefix", f"{venv}/"), "--prefix"),
                             (("--python", "env/bin/python"), "--python")):
        document = say("check", "--json", *words).json
        assert (document["environment"]["prefix"], document["environment"]["found_via"]) == (str(venv), found_via)
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    assert say("check", "--json").json["environment"]["found_via"] == "VIRTUAL_ENV"
    monkeypatch.delenv("VIRTUAL_ENV")
    running = say("check", "--json", "--fail-on", "never").json["environment"]
    assert (running["prefix"], running["found_via"]) == (sys.prefix, "running interpreter")


def test_a_real_venv_without_faults(venv: Path, say: Say) -> None:
    said = say("check", "--prefix", venv, "--json")
    assert (said.status, said.err) == (0, ""), said
    assert serious(said.json) == []
    environment = said.json["environment"]
    assert environment["python"]["minor"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert environment["projects"] == 2
    assert {"name": "nvidia-ml-py", "version": "12.535.133", "manager": "pip"} in environment["packages"]
    assert "filelock" not in {each["name"] for each in environment["packages"]}
    assert environment["machine"]["architecture"] == os.uname().machine
    assert len(said.out) < 10_000


def test_variables_are_those_of_this_process_and_may_be_replaced(venv: Path, say: Say,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere/a")
    monkeypatch.setenv("CUDA_API_TOKEN", "bait")
    words = ("check", "--prefix", venv, "--json")
    assert say(*words).json["environment"]["variables"] == {"LD_LIBRARY_PATH": "/nowhere/a"}
    replaced = say(*words, "--env", "LD_LIBRARY_PATH=/nowhere/b", "--env", "CUDA_HOME=/x=y").json
    assert replaced["environment"]["variables"] == {"LD_LIBRARY_PATH": "/nowhere/b", "CUDA_HOME": "/x=y"}


def test_a_relative_python_path_starts_in_the_current_folder(venv: Path, say: Say, tree: World,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    (Path.cwd() / "more").mkdir()
    monkeypatch.setenv("PYTHONPATH", "more")
    assert say("check", "--prefix", venv, "--json").json["environment"]["sites"][0] == str(Path.cwd() / "more")
    in_tree = say("check", *of(tree), "--env", "PYTHONPATH=more", "--json").json["environment"]
    assert ([each for each in in_tree["sites"] if "more" in each], in_tree["notes"][0]["path"]) == ([], "PYTHONPATH")


def test_a_deleted_and_a_changed_file_are_found(venv: Path, say: Say, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(venv, tmp_path / "broken", symlinks=True))
    module, version = broken / SITE / "filelock" / "__init__.py", broken / SITE / "example.py"
    whole = module.read_bytes()
    module.unlink()
    said = say("check", "--prefix", broken, "--json", "--fail-on", "warning")
    assert said.status == 1, said
    [finding] = said.json["findings"]
    assert (finding["code"], finding["culprit"]["path"]) == ("SF702", str(module))
    module.write_bytes(whole)
    version.write_bytes(version.read_bytes().replace(b"1", b"2"))           # of the same size
    assert codes(say("check", "--prefix", broken, "--json").json) == []
    [finding] = say("check", "--prefix", broken, "--json", "--deep").json["findings"]
    assert (finding["code"], finding["culprit"]["path"]) == ("SF702", str(version))


def test_nothing_is_run_and_nothing_is_written(venv: Path, say: Say, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(venv, tmp_path / "copy", symlinks=True))
    marker = tmp_path / "was-run"
    program = f"#!/bin/sh\ntouch {marker}\n"
    for name in ("python", "python3", "nvidia-smi", "ldd"):
        (copy / "bin" / name).unlink(missing_ok=True)
        (copy / "bin" / name).write_text(program)
        (copy / "bin" / name).chmod(0o755)
    for name in ("sitecustomize.py", "usercustomize.py"):
        (copy / SITE / name).write_text(f"open({str(marker)!r}, 'w')\n")
    (copy / SITE / "hook.pth").write_text(f"import os; open({str(marker)!r}, 'w')\n")
    before = snapshot(copy)
    for words in ((), ("--json",), ("--deep",), ("--python", copy / "bin" / "python")):
        said = say("check", *(("--prefix", copy) if "--python" not in words else ()), *words)
        assert said.status in (0, 1), said
    assert snapshot(copy) == before
    assert not marker.exists()
    assert list(Path().iterdir()) == []


# --- bad input ---


@pytest.mark.parametrize(("words", "status", "text"), [
    (("--prefix", "missing"), 2, "missing: no such folder"),
    (("--prefix", "file"), 2, "is a file, not a folder"),
    (("--prefix", "."), 2, "is no environment"),
    (("--prefix", ""), 2, "--prefix: is empty"),
    (("--prefix", "loop"), 2, "loop"),
    (("--prefix", "a\0b"), 2, "--prefix"),
    (("--python", "./missing"), 2, "missing: no such file"),
    (("--python", "no-such-program"), 2, "no such program on PATH"),
    (("--python", "./file"), 2, "is no Python interpreter"),
    (("--python", "."), 2, "--python"),
    (("--prefix", "file", "--python", "./file"), 2, "name the environment twice"),
    (("--root", "missing"), 2, "--root missing: no such folder"),
    (("--root", "file"), 2, "--root file"),
    (("--root", ".", "--prefix", "/missing"), 2, "no such folder"),
    (("--root", "."), 2, "no environment is named, and the usual places have none"),
    (("--ext", "missing.so"), 2, "missing.so: no such file"),
    (("--ext", "file"), 2, "is no ELF file that can be read"),
    (("--ext", "."), 2, "is a folder"),
    (("--ext", "fifo.so"), 2, "fifo.so: is no ELF file that can be read"),
    (("--ext", "loop"), 3, "loop"),
    (("--ext", sys.executable), 2, "no shared object"),
    (("--wheel", "missing.whl"), 2, "missing.whl"),
    (("--wheel", "file"), 2, "file"),
    (("--wheel", "."), 2, "is a folder"),
    (("--wheel", "fifo.so"), 2, "fifo.so"),
    (("--env", "NAME"), 2, "--env NAME: is not NAME=VALUE"),
    (("--env", "=x"), 2, "is not NAME=VALUE"),
    (("--fail-on", "sometimes"), 2, "'sometimes' is not one of"),
    (("--nope",), 2, "No such option"),
    (("extra",), 2, "unexpected extra argument"),
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value))
def test_bad_input_is_one_error(words: tuple[str, ...], status: int, text: str, say: Say) -> None:
    Path("file").write_text("no program\n")
    Path("loop").symlink_to("loop")
    os.mkfifo("fifo.so")
    said = say("check", *words)
    assert (said.status, said.out) == (status, ""), said
    assert len([line for line in said.err.splitlines() if line.startswith("error: ")]) == 1
    assert text in said.err
    assert "Traceback" not in said.err
    said = say("check", *words, "--json")
    assert (said.status, said.err) == (status, ""), said
    assert text in said.json["error"]["message"]


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user who may not read what root keeps to itself."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("unreadable", ["", "lib", SITE])
def test_an_environment_that_may_not_be_read_is_exit_3(unreadable: str, venv: Path, say: Say, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(venv, tmp_path / "copy", symlinks=True))
    assert say("check", "--prefix", copy).status == 0       # all that it imports is imported
    for folder in [copy, *copy.rglob("*")]:
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)
    parents = [each for each in copy.parents if each.is_relative_to("/tmp")]    # noqa: S108 - pytest's own folders
    modes = {each: each.stat().st_mode for each in parents}
    for each in parents:
        each.chmod(modes[each] | 0o055)
    (copy / unreadable).chmod(0o000)
    try:
        with without_rights():
            said = say("check", "--prefix", copy)
    finally:
        (copy / unreadable).chmod(0o755)
        for each, mode in modes.items():
            each.chmod(mode)
    assert said.status == 3, said
    assert said.out == ""
    assert "Permission denied" in said.err


# --- hostile trees ---


def in_child(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, which must end."""
    return subprocess.run([sys.executable, "-m", "stackfix", "check", *map(str, words)], env=clean_environment(),
                          capture_output=True, text=True, check=False, timeout=120, errors="surrogateescape")


def make_hostile(tree: World) -> None:
    """Links that loop, things that are no files, files that are not what they are called."""
    site = tree.host(tree.site)
    folder = site / "nvidia" / "cudnn" / "lib"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "libcudnn.so.8")
    (folder / "libcudnn_ops_infer.so.8").mkdir()
    (folder / "libcudnn_cnn_infer.so.8").symlink_to("libcudnn_cnn_train.so.8")
    (folder / "libcudnn_cnn_train.so.8").symlink_to("libcudnn_cnn_infer.so.8")
    (folder / "libcublas.so.12").write_bytes(b"")
    (folder / "libcurand.so.10").write_bytes(b"\x7fELF" + b"\xff" * 400)
    (site / "around").symlink_to("..")
    (site / "module.cpython-311-x86_64-linux-gnu.so").write_bytes(b"not ELF")
    (site / "evil\x1b[31m\n.so").write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 57)
    os.mkfifo(site / "pipe.pth")
    (site / "huge.pth").write_text("x" * 300_000)
    (site / "bad-1.0.dist-info").mkdir()
    (site / "bad-1.0.dist-info" / "METADATA").write_bytes(b"\xff\xfe" * 1000)
    (site / "bad-1.0.dist-info" / "RECORD").write_text('../../../../etc/passwd,,\n"unclosed,,\n/dev/zero,sha256=x,1\n')
    (site / "none-1.0.dist-info").symlink_to("none-1.0.dist-info")
    tree.host("/etc").mkdir(exist_ok=True)
    os.mkfifo(tree.host("/etc/ld.so.cache"))
    tree.write("/etc/ld.so.conf", "include /etc/ld.so.conf\ninclude /etc/*\n")
    os.mkfifo(tree.host("/etc/ld.so.preload"))


def test_a_hostile_tree_is_told_and_ends(tree: World) -> None:
    make_hostile(tree)
    before = {path: path.lstat().st_mtime_ns for path in tree.folder.rglob("*")}
    for words in ((), ("--json",), ("--deep", "-v")):
        done = in_child(*of(tree), "--fail-on", "never", *words)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert "\x1b" not in done.stdout
    assert {path: path.lstat().st_mtime_ns for path in tree.folder.rglob("*")} == before


def test_damaged_libraries_are_told_and_end(tree: World, say: Say) -> None:
    """One byte after the other of a library's headers, as a bad disk would change it."""
    library = tree.host(f"{tree.site}/nvidia/cusparse/lib/libcusparse.so.12")
    whole = library.read_bytes()
    for place in range(4, len(whole), max(1, len(whole) // 60)):
        library.write_bytes(whole[:place] + bytes([whole[place] ^ 0xff]) + whole[place + 1:])
        said = say("check", *of(tree), "--json", "--fail-on", "never")
        assert (said.status, said.err) == (0, ""), (place, said)
    for length in range(0, len(whole), max(1, len(whole) // 20)):
        library.write_bytes(whole[:length])
        said = say("check", *of(tree), "--json")
        assert (said.status, said.err) == (1, ""), (length, said)      # its RECORD states another size


def test_an_interrupt_is_one_word(tree: World, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(inspecting, "inspect_installation", interrupted)
    said = say("check", *of(tree))
    assert (said.status, said.out, said.err.strip()) == (130, "", "interrupted")


def test_a_fault_of_the_reading_beside_is_raised_where_it_is_awaited(tree: World, say: Say,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/etc/ld.so.cache")

    monkeypatch.setattr(inspecting, "read_loader", fails)
    said = say("check", *of(tree))
    assert (said.status, said.err) == (3, "error: /etc/ld.so.cache: Permission denied\n")


def test_the_document_is_json_also_where_names_are_no_text(tree: World) -> None:
    tree.environ(LD_LIBRARY_PATH="x")
    (tree.host(tree.site) / os.fsdecode(b"m\xff\x9b.so")).write_bytes(b"\x7fELF" + b"\xff" * 100)
    done = in_child(*of(tree), "--json", "--fail-on", "never")
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["schema_version"] == 1
