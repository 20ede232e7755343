"""`stackfix check --expect`: an installed environment beside its lock and its proof."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from stackfix.cli.check_expect import beside
from stackfix.inspect.places import Root
from stackfix.prove.proof_records import OutsideOfProof, Proof
from stackfix.prove.proof_text import proof_text
from stackfix.prove.prove import Prover, Subject
from stackfix.prove.records import PlannedWheel
from tests.cli_world import Said, Say
from tests.diagnose_world import World, lib
from tests.prove_world import TARGET, InstalledTables, knowledge

JITLINK = "nvidia/nvjitlink/lib/libnvJitLink.so.12"
CUSPARSE = "nvidia/cusparse/lib/libcusparse.so.12"
MODULE = "some/core.cpython-311-x86_64-linux-gnu.so"
OTHER = f"# This file is locked by stackfix for cp39-linux-64\nsome==1.0 \\\n    --hash=sha256:{'0' * 64}\n"
ADD = "__nvJitLinkAddData_12_1@libnvJitLink.so.12"


def installed(folder: Path) -> World:
    """A stack of three packages."""
    world = World(folder)
    world.wheel("nvidia-nvjitlink-cu12", "12.1.105", {JITLINK: lib(offers=(ADD,))})
    world.wheel("nvidia-cusparse-cu12", "12.1.0.106", {CUSPARSE: lib(
        needs=("libnvJitLink.so.12",), runpath="$ORIGIN/../../nvjitlink/lib", wants=(ADD,))})
    return world.wheel("some", "1.0", {MODULE: lib(needs=("libcusparse.so.12",),
                                                   runpath="$ORIGIN/../nvidia/cusparse/lib")})


def sha256_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def lock(world: World, name: str = "requirements.txt", proof: str | None = "stack-proof.json") -> None:
    """The lock of what is installed, and its proof."""
    source = InstalledTables(world.site, Root(str(world.folder)))
    source.tables = {sha256_of(each.project.name): each for each in source.wheels() if each.project.name != "pip"}
    wheels = tuple(PlannedWheel(name=each.project.name, version=each.project.version, file=each.file, sha256=sha256,
                                url=None, size=None) for sha256, each in sorted(source.tables.items()))
    Path(name).write_text("# This file is locked by stackfix for cp311-linux-64\n" + "".join(
        f"{each.name}=={each.version} \\\n    --hash=sha256:{each.sha256}\n" for each in wheels))
    if proof is not None:
        subject = Subject(target=TARGET, wheels=wheels, tables=source.tables, outside=(
            OutsideOfProof(name="flash-attn", version="2.5.8", why="is an sdist"),))
        Path(proof).write_text(proof_text(Proof(targets=(Prover(subject, source, knowledge()).proven(()),))))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An environment in a tree, and its lock and proof in the working directory."""
    made = installed(tmp_path / "tree")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    lock(made)
    return made


def check(world: World, say: Say, *words: str, expect: str = "requirements.txt") -> Said:
    return say("check", "--root", world.folder, "--prefix", "/venv", "--expect", expect, *words)


def deviations(said: Said) -> list[tuple[str, str, str, str | None]]:
    found: list[dict[str, Any]] = said.json["expected"]["deviations"]
    return [(each["kind"], each["what"], each["expected"], each["found"]) for each in found]


def test_what_is_as_it_was_locked_and_proven_is_said(world: World, say: Say) -> None:
    said = check(world, say, "--json")
    assert (said.status, deviations(said)) == (0, []), said
    assert said.json["expected"]["proof"] == "stack-proof.json"
    shown = check(world, say)
    assert "as requirements.txt and stack-proof.json expect it" in shown.out


def test_without_a_proof_only_packages_are_compared(world: World, say: Say) -> None:
    Path("stack-proof.json").unlink()
    world.wheel("nvidia-nvjitlink-cu12", "12.1.105", {JITLINK: lib(offers=(ADD, "more"))})
    said = check(world, say)
    assert said.status == 0, said
    assert "there is no proof beside it" in said.out


def test_a_pylock_of_several_targets_is_read_for_the_environment(world: World, say: Say) -> None:
    Path("stack-proof.json").unlink()
    version = {"linux": "1.0", "win32": "2.0"}
    Path("pylock.toml").write_text('lock-version = "1.0"\n' + "".join(
        f"""[[packages]]\nname = "some"\nversion = "{version[system]}"\nmarker = "sys_platform == '{system}'"\n"""
        f"""wheels = [{{ url = "https://h/x.whl", hashes = {{ sha256 = "{sha256_of('some')}" }} }}]\n"""
        for system in version))
    said = check(world, say, "--json", expect="pylock.toml")
    assert (said.status, deviations(said)) == (0, []), said


def test_a_universal_pylock_without_a_file_for_the_environment_says_which_package_has_none(
    world: World, say: Say,
) -> None:
    Path("pylock.toml").write_text(
        f'lock-version = "1.0"\n[[packages]]\nname = "limited"\nversion = "1"\nwheels = [{{ url = '
        f'"https://files.example/limited-1-cp312-cp312-win_amd64.whl", hashes = {{ sha256 = "{"a" * 64}" }} }}]\n')
    said = check(world, say, expect="pylock.toml")
    assert said.status == 2
    assert "--expect pylock.toml: limited has no file for CPython 3.11 on linux-64\n" in said.err


def test_of_two_proofs_for_one_platform_the_one_of_the_locks_wheels_counts(world: World, say: Say) -> None:
    """As of linux-64 and linux-64-cpu, whose proofs lie in one file."""
    document = json.loads(Path("stack-proof.json").read_text())
    target = document["targets"][0]
    other = json.loads(json.dumps(target))
    other["platform"] = "linux-64-cpu"
    for each in (*other["wheels"], *other["files"]):
        each.update({"sha256": "1" * 64} if "sha256" in each else {"size": 1})
    for targets in ([other, target], [target, other]):
        Path("stack-proof.json").write_text(json.dumps({**document, "targets": targets}))
        said = check(world, say, "--json")
        assert (said.status, deviations(said)) == (0, []), said


@pytest.mark.parametrize(("lock_name", "proof_name"), [
    ("requirements-train-cp311-linux-64-cpu.txt", "train.stack-proof.json"), ("pylock.cpu.toml", "stack-proof.json"),
    ("pylock.train-cpu.toml", "train.stack-proof.json"), ("pylock.train-cpu.toml", "train-cpu.stack-proof.json")])
def test_the_proof_beside_a_lock(lock_name: str, proof_name: str, tmp_path: Path) -> None:
    for name in ("other.stack-proof.json", proof_name):
        (tmp_path / name).touch()
    assert beside(tmp_path / lock_name) == tmp_path / proof_name


def test_another_version_and_a_missing_package_are_named(world: World, say: Say) -> None:
    world.wheel("nvidia-nvjitlink-cu12", "12.9.86", {JITLINK: lib(offers=(ADD, "more"))})
    for path in world.host(world.site).glob("some-1.0.dist-info/*"):
        path.unlink()
    said = check(world, say, "--json")
    assert said.status == 1, said
    found = deviations(said)
    assert ("version", "nvidia-nvjitlink-cu12", "12.1.105", "12.9.86") in found
    assert ("package", "some", "1.0", None) in found


def test_a_file_that_is_not_the_wheels_is_named(world: World, say: Say) -> None:
    world.library(JITLINK, lib(offers=(ADD, "a_function_that_makes_it_longer" * 40)))
    said = check(world, say, "--json")
    assert said.status == 1, said
    (kind, what, expected, found), = deviations(said)
    assert (kind, what) == ("file", JITLINK)
    assert expected.endswith(" bytes")
    assert found is not None
    world.remove(JITLINK)
    assert ("file", JITLINK, "a file", None) in deviations(check(world, say, "--json"))


def test_a_library_in_the_way_is_named_with_how_it_comes_to_win(world: World, say: Say) -> None:
    world.library("/opt/cuda/lib64/libnvJitLink.so.12", lib(offers=(ADD,)))
    said = check(world, say, "--env", "LD_LIBRARY_PATH=/opt/cuda/lib64", "--json")
    assert said.status == 1, said
    assert deviations(said) == [("resolution", f"{CUSPARSE} needs libnvJitLink.so.12", JITLINK,
                                 "/opt/cuda/lib64/libnvJitLink.so.12")]
    shown = check(world, say, "--env", "LD_LIBRARY_PATH=/opt/cuda/lib64")
    assert "resolved otherwise" in shown.out
    assert "via LD_LIBRARY_PATH" in shown.out
    assert check(world, say, "--env", "LD_LIBRARY_PATH=/opt/cuda/lib64", "--fail-on", "never").status == 0


def test_a_proof_of_another_lock_is_named(world: World, say: Say) -> None:
    text = Path("requirements.txt").read_text()
    Path("requirements.txt").write_text(text.replace(sha256_of("some"), sha256_of("other")))
    kinds = {(each[0], each[1]) for each in deviations(check(world, say, "--json"))}
    assert kinds == {("proof", "some")}


def test_a_package_that_the_proof_does_not_know_is_named(world: World, say: Say) -> None:
    document = json.loads(Path("stack-proof.json").read_text())
    target = document["targets"][0]
    target["wheels"] = [each for each in target["wheels"] if each["name"] != "some"]
    Path("stack-proof.json").write_text(json.dumps(document))
    said = check(world, say, "--json")
    assert said.status == 1, said
    assert deviations(said) == [("proof", "some", "1.0, as locked", None)]


def test_the_second_step_is_no_other_lock(world: World, say: Say) -> None:
    """What is installed after the rest stands in the proof as being outside of it."""
    world.wheel("flash-attn", "2.5.8", {"flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so": lib()})
    Path("requirements-flash-attn.txt").write_text(
        "# This file is locked by stackfix for cp311-linux-64\nflash-attn==2.5.8 \\\n"
        f"    --hash=sha256:{sha256_of('flash-attn')}\n")
    said = check(world, say, "--json", expect="requirements-flash-attn.txt")
    assert (said.status, deviations(said)) == (0, []), said


def test_named_locks_have_their_own_proof(world: World, say: Say) -> None:
    lock(world, "requirements-train.txt", "train.stack-proof.json")
    Path("stack-proof.json").write_text("{}")
    said = check(world, say, "--json", expect="requirements-train.txt")
    assert (said.status, said.json["expected"]["proof"]) == (0, "train.stack-proof.json"), said
    lock(world, "requirements-train-cp311-linux-64.txt", None)
    assert check(world, say, "--json", expect="requirements-train-cp311-linux-64.txt").status == 0
    said = check(world, say, "--proof", "train.stack-proof.json", "--json", expect="requirements.txt")
    assert said.status == 0, said


@pytest.mark.parametrize(("words", "name", "text", "told"), [
    ((), "absent.txt", None, "absent.txt"),
    ((), "requirements.txt", "torch>=2\n", "requirements.txt"),
    ((), "conda-lock.yml", "version: 1\n", "conda-lock.yml"),
    ((), "requirements.txt", OTHER, "Python 3.9"),
    ((), "requirements.txt", "# This file is locked by stackfix for cp311-linux-64\n", "pins no package"),
    (("--proof", "absent.json"), "requirements.txt", "", "absent.json"),
    (("--proof", "bad.json"), "requirements.txt", "", "bad.json"),
])
def test_bad_input_is_one_error(words: tuple[str, ...], name: str, text: str | None, told: str, world: World,
                                say: Say) -> None:
    Path("bad.json").write_text("[")
    if text:
        Path(name).write_text(text)
    said = check(world, say, *words, expect=name)
    assert said.status == 2, said
    assert told in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("path", ["../../outside.so", "../lib/../../outside.so", "/outside.so", "a/../../outside.so",
                                  "nvidia/\0/lib.so", "\udc80.so"])
def test_a_proof_does_not_lead_out_of_the_environment(path: str, world: World, say: Say) -> None:
    world.write("/outside.so", "secret")
    text = Path("stack-proof.json").read_text()
    Path("stack-proof.json").write_text(text.replace(f'"path": "{JITLINK}"', f'"path": {json.dumps(path)}'))
    said = check(world, say, "--json")
    assert said.status == 1, said
    assert ("file", path, "a file", None) in deviations(said)
    assert "secret" not in said.out
    assert check(world, say).status == 1


def test_a_proof_of_other_targets_is_refused(world: World, say: Say) -> None:
    text = Path("stack-proof.json").read_text()
    Path("stack-proof.json").write_text(text.replace('"python": "3.11"', '"python": "3.12"'))
    said = check(world, say)
    assert said.status == 2, said
    assert "Python 3.12 on linux-64" in said.err


def test_a_proof_without_a_lock_is_refused(world: World, say: Say) -> None:
    said = say("check", "--root", world.folder, "--prefix", "/venv", "--proof", "stack-proof.json")
    assert said.status == 2, said
    assert "--expect" in said.err
