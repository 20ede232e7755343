"""`stackfix diff` as a command line: formats, environments, what counts as a change, and what is no side at all."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.conda.records import Channel, CondaTarget
from stackfix.write.conda_files import plan_conda
from stackfix.write.files import plan_files
from tests.cli_world import Say, settle
from tests.conda_real import solved_target
from tests.lock_samples import COMMAND, HERE, NOWHERE, TAG, indexed, lock_of, sample_packages, target_lock
from tests.target_samples import NEWER, OLDER, Samples, target_of

FORMATS = ("requirements", "pylock", "constraints")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path, "http://127.0.0.1:9/simple")


@pytest.fixture(scope="module")
def solved(stackfix_cache: Path) -> CondaTarget:
    return solved_target(stackfix_cache, "pytorch 2.3.* cuda*", "cudnn <9", "numpy 1.26.*")


def write(folder: str, target: CondaTarget, *formats: str) -> None:
    Path(folder).mkdir(exist_ok=True)
    for file in plan_conda((target,), formats=formats, name=None, command="stackfix lock"):
        Path(folder, file.path).write_text(file.text, encoding="utf-8")


def write_pip(folder: str) -> None:
    Path(folder).mkdir(exist_ok=True)
    for file in plan_files(lock_of(target_lock(sample_packages(NOWHERE))), formats=FORMATS, name=None,
                           command=COMMAND):
        Path(folder, file.path).write_text(file.text, encoding="utf-8")


def test_formats_of_one_lock_say_the_same(say: Say, solved: CondaTarget) -> None:
    write("a", solved, "conda-lock", "explicit", "pixi", "environment")
    write_pip("a")
    for first, second in (("conda-lock.yml", "pixi.lock"), ("pixi.lock", "conda-linux-64.lock"),
                          ("conda-lock.yml", "environment.yml"), ("requirements.txt", "pylock.toml"),
                          ("pylock.toml", "constraints.txt")):
        said = say("diff", f"a/{first}", f"a/{second}")
        assert (said.status, said.out) == (0, ""), (first, second, said)


def test_what_changed_is_named_the_stack_first(say: Say, solved: CondaTarget) -> None:
    write("a", solved, "conda-lock")
    records = []
    for record in solved.records:
        if record.name == "cudnn":
            records.append(replace(record, version="8.8.0", file_name=f"cudnn-8.8.0-{record.build}.conda",
                                   url=record.url.replace(record.version, "8.8.0")))
        elif record.name == "bzip2":
            records.append(replace(record, sha256="0" * 64, md5="0" * 32))
        elif record.name == "numpy":
            records.append(replace(record, build="other_0", file_name=f"numpy-{record.version}-other_0.conda",
                                   url=record.url.replace(record.build, "other_0")))
        elif record.name != "zstd":
            records.append(record)
    write("b", replace(solved, records=tuple(records)), "conda-lock")
    said = say("diff", "a/conda-lock.yml", "b/conda-lock.yml")
    assert said.status == 1
    by = {record.name: record for record in solved.records}
    assert said.out.splitlines() == [
        f"~ cudnn {by['cudnn'].version} {by['cudnn'].build} -> 8.8.0 {by['cudnn'].build} (conda; version)",
        f"~ bzip2 {by['bzip2'].version} {by['bzip2'].build} (conda; another file: the hash differs)",
        f"~ numpy {by['numpy'].version} {by['numpy'].build} -> {by['numpy'].version} other_0 (conda; build)",
        f"- zstd {by['zstd'].version} {by['zstd'].build} (conda)"]
    document = say("diff", "a/conda-lock.yml", "b/conda-lock.yml", "--json").json
    assert document["schema_version"] == 1
    [target] = document["targets"]
    assert [(one["kinds"], one["stack"]) for one in target["changes"]] == [
        (["version"], True), (["hash"], False), (["build"], False), (["removed"], False)]
    assert target["changes"][1]["after"]["hashes"] == [f"md5:{'0' * 32}", f"sha256:{'0' * 64}"]
    turned = say("diff", "b/conda-lock.yml", "a/conda-lock.yml")
    assert turned.out.splitlines()[-1] == f"+ zstd {by['zstd'].version} {by['zstd'].build} (conda)"


def test_another_channel_is_told_beside_another_version(say: Say, solved: CondaTarget) -> None:
    torch = next(record for record in solved.records if record.name == "pytorch")
    moved = replace(torch, version="2.5.1", build="py3.11_cuda12.4_0", channel="https://channels.example/pytorch",
                    file_name="pytorch-2.5.1-py3.11_cuda12.4_0.tar.bz2",
                    url="https://channels.example/pytorch/linux-64/pytorch-2.5.1-py3.11_cuda12.4_0.tar.bz2")
    other = Channel(name="pytorch", url=moved.channel)
    write("a", replace(solved, channels=(other, *solved.channels),
                       records=tuple(moved if one is torch else one for one in solved.records)), "conda-lock")
    write("b", solved, "conda-lock")
    said = say("diff", "a/conda-lock.yml", "b/conda-lock.yml")
    assert said.out == (
        f"~ pytorch 2.5.1 py3.11_cuda12.4_0 -> {torch.version} {torch.build} "
        f"(conda; version, build, source: https://channels.example/pytorch -> {torch.channel})\n")
    [target] = say("diff", "a/conda-lock.yml", "b/conda-lock.yml", "--json").json["targets"]
    [change] = target["changes"]
    assert change["kinds"] == ["version", "build", "source"]
    # conda writes the channel with the platform's folder
    Path("env/conda-meta").mkdir(parents=True)
    Path("env/conda-meta/pytorch.json").write_text(json.dumps({
        "name": "pytorch", "version": "2.0.0", "build": torch.build, "subdir": "linux-64",
        "channel": f"{torch.channel}/linux-64"}))
    lines = say("diff", "env", "b/conda-lock.yml").out.splitlines()
    assert next(line for line in lines if line.startswith("~")).endswith(" (conda; version)")


def test_names_of_conda_and_pip_are_joined(say: Say, solved: CondaTarget) -> None:
    write("a", solved, "conda-lock")
    wheels = [indexed("torch", "2.3.1", "https://files.example")]
    for file in plan_files(lock_of(target_lock(tuple(wheels), replace(HERE, python="3.11"))),
                           formats=("requirements",), name=None, command=COMMAND):
        Path(file.path).write_text(file.text.replace(f"cp{HERE.python.replace('.', '')}-linux", "cp311-linux"),
                                   encoding="utf-8")
    said = say("diff", "requirements.txt", "a/conda-lock.yml")
    build = next(record for record in solved.records if record.name == "pytorch")
    assert said.out.splitlines()[0] == f"~ torch 2.3.1 (pip) -> pytorch {build.version} {build.build} (conda)"


def test_an_environment_is_a_side(say: Say) -> None:
    write_pip("a")
    site = Path(f"env/lib/python{HERE.python}/site-packages")
    for name, version in (("torch", "2.3.1+cu121"), ("einops", "0.7.0"), ("filelock", "3.29.0"),
                          ("tiny_server", "1.0")):
        folder = site / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    said = say("diff", "a/requirements.txt", "env")
    assert (said.status, said.out.splitlines()) == (1, [
        "~ torch 2.3.1 -> 2.3.1+cu121 (pip; build)",
        "- flash-attn 2.5.8 (pip)",
        "~ einops 0.8.1 -> 0.7.0 (pip; version)"]), said


def test_a_conda_prefix_is_a_side(say: Say, solved: CondaTarget) -> None:
    write("a", solved, "conda-lock")
    meta = Path("env/conda-meta")
    meta.mkdir(parents=True)
    for record in solved.records:
        if record.name == "zstd":
            continue
        (meta / f"{record.name}.json").write_text(json.dumps({
            "name": record.name, "version": record.version, "build": record.build, "subdir": record.subdir,
            "sha256": record.sha256, "md5": record.md5, "channel": f"{record.channel}/", "url": record.url,
            "files": [f"lib/python3.11/site-packages/{record.name}-1.dist-info/METADATA"]}))
    site = Path(f"env/lib/python3.11/site-packages/{solved.records[0].name}-1.dist-info")
    site.mkdir(parents=True)        # conda's own: no package of pip
    said = say("diff", "a/conda-lock.yml", "env")
    assert (said.status, len(said.out.splitlines())) == (1, 1), said
    assert said.out.startswith("- zstd ")


def test_targets_are_paired_and_chosen(say: Say, solved: CondaTarget, stackfix_cache: Path) -> None:
    arm = solved_target(stackfix_cache, "pytorch 2.8.* cuda*", platform="linux-aarch64", cuda="12.9")
    Path("b").mkdir()
    for file in plan_conda((solved, arm), formats=("conda-lock",), name=None, command="stackfix lock"):
        Path("b", file.path).write_text(file.text, encoding="utf-8")
    write("a", solved, "conda-lock")
    said = say("diff", "a/conda-lock.yml", "b/conda-lock.yml")
    assert (said.status, said.out.splitlines()[-1]) == (
        1, f"+ Python 3.11 on linux-aarch64: {len(arm.records)} packages"), said
    assert say("diff", "a/conda-lock.yml", "b/conda-lock.yml", "--platform", "linux-64").status == 0
    refused = say("diff", "a/conda-lock.yml", "b/conda-lock.yml", "--platform", "linux-aarch64")
    assert refused.status == 2
    assert "--platform linux-aarch64: a/conda-lock.yml has no such target" in refused.err


def test_an_environment_without_python_is_a_side(say: Say) -> None:
    Path("tools/conda-meta").mkdir(parents=True)
    Path("tools/conda-meta/zlib-1.3-0.json").write_text(
        json.dumps({"name": "zlib", "version": "1.3", "build": "0", "subdir": "linux-64"}))
    Path("none/conda-meta").mkdir(parents=True)
    assert (said := say("diff", "tools", "none")).out == "- zlib 1.3 0 (conda)\n", said
    assert say("diff", "tools", "none", "--json").json["targets"][0]["before"]["python"] is None


def test_what_pip_left_in_an_earlier_python_is_not_there(say: Say) -> None:
    Path("env/conda-meta").mkdir(parents=True)
    Path("env/conda-meta/python-3.12.1-0.json").write_text(
        json.dumps({"name": "python", "version": "3.12.1", "build": "0"}))
    for minor in ("3.11", "3.12"):
        folder = Path(f"env/lib/python{minor}/site-packages/mine_of_{minor.replace('.', '')}-1.dist-info")
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Name: mine_of_{minor.replace('.', '')}\nVersion: 1\n")
    Path("none/conda-meta").mkdir(parents=True)
    assert say("diff", "none", "env").out.splitlines() == ["+ python 3.12.1 0 (conda)", "+ mine-of-312 1 (pip)"]


def test_fifos_are_not_waited_for(say: Say) -> None:
    for name in ("a.yml", "a.toml", "a.txt"):
        os.mkfifo(name)
        said = say("diff", name, name)
        assert (said.status, "is not a regular file" in said.err) == (2, True), said
    Path("env/conda-meta").mkdir(parents=True)
    os.mkfifo("env/conda-meta/x-1-0.json")
    said = say("diff", "env", "env")
    assert (said.status, "x-1-0.json: is no record of a package" in said.err) == (3, True), said


@pytest.mark.parametrize(("text", "reason"), [
    ("torch>=2\n", "other.txt line 1: is no pin of a version"),
    ("torch==2\ntorch==3\n", "torch is pinned twice"),
    ("torch==2 --hash=md5:beef\n", "is not `--hash=sha256:`"),
])
def test_what_is_no_lockfile_is_one_error(text: str, reason: str, say: Say) -> None:
    write_pip("a")
    Path("other.txt").write_text(text)
    said = say("diff", "a/requirements.txt", "other.txt")
    assert said.status == 2
    assert reason in said.err


def test_numbers_that_no_version_has_are_no_traceback(say: Say) -> None:
    for name, number in (("one", "1" * 5001), ("two", "2" * 5001)):
        Path(f"{name}.yml").write_text(f"dependencies:\n- pip:\n  - a=={number}\n")
    assert say("diff", "one.yml", "one.yml").status == 0
    said = say("diff", "one.yml", "two.yml")
    assert (said.status, said.out.endswith(" (pip; version)\n")) == (1, True), said
    Path("one.toml").write_text(f"a = {'1' * 5001}\n")
    said = say("diff", "one.toml", "one.yml")
    assert (said.status, "one.toml: is not TOML" in said.err) == (2, True), said


def test_sides_that_are_not_there(say: Say) -> None:
    write_pip("a")
    Path("empty").mkdir()
    assert say("diff", "a/requirements.txt", "none.txt").status == 2
    assert "is no environment" in say("diff", "a/requirements.txt", "empty").err
    said = say("diff", "--json", "a/requirements.txt", "none.txt")
    assert (said.status, said.json["error"]["code"]) == (2, "bad-input")


def test_no_login_is_shown(say: Say) -> None:
    digest = "0" * 64
    for name, host in (("one", "a"), ("two", "b")):
        Path(f"{name}.txt").write_text(
            f"einops @ https://user:secret@{host}.example/einops-0.8.1-py3-none-any.whl --hash=sha256:{digest}\n")
    for options in ((), ("--json",)):
        said = say("diff", "one.txt", "two.txt", *options)
        assert said.status == 1
        assert "secret" not in said.out
    assert "einops 0.8.1 (pip; source: https://a.example" in say("diff", "one.txt", "two.txt").out


def environment(platform: str, **versions: str) -> None:
    """A folder with these projects, torch as a wheel of the platform."""
    site = Path(f"env/lib/python{HERE.python}/site-packages")
    tags = {"linux-64": "manylinux_2_28_x86_64", "osx-arm64": "macosx_11_0_arm64"}
    for name, version in versions.items():
        folder = site / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        tag = f"cp{TAG}-cp{TAG}-{tags[platform]}" if name == "torch" else "py3-none-any"
        (folder / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n")


@pytest.mark.parametrize("platform", ["linux-64", "osx-arm64"])
def test_an_environment_is_compared_with_its_own_target_of_a_lock(platform: str, say: Say) -> None:
    targets = [target_of(HERE.python, each) for each in ("linux-64", "osx-arm64", "win-64")]
    for file in plan_files(lock_of(*map(Samples().lock, targets)), formats=("pylock",), name=None, command=COMMAND):
        Path(file.path).write_text(file.text, encoding="utf-8")
    varied = OLDER if HERE.python == "3.11" else NEWER
    linux = {"only_linux": "1.0"} if platform == "linux-64" else {}
    environment(platform, torch="2.8.0", pure="0.9", shared="3.0", varied=varied, **linux)
    said = say("diff", "pylock.toml", "env")
    changed = [line for line in said.out.splitlines() if not line.startswith("~ torch")]
    assert (said.status, changed) == (1, ["~ pure 1.0 -> 0.9 (pip; version)"]), said
    document = say("diff", "env", "pylock.toml", "--json").json
    assert [one["after"]["platform"] for one in document["targets"]] == [platform]
    assert (document["only_before"], document["only_after"]) == ([], [])


def test_a_lockfile_that_is_not_there_is_answered_with_those_that_are(say: Say) -> None:
    for name in ("pylock.toml", f"requirements-cp{TAG}-linux-64.txt", "requirements-flash-attn.txt", "notes.txt"):
        Path(name).touch()
    said = say("sync", "--dry-run")
    assert said.status == 2
    assert f"there is: pylock.toml, requirements-cp{TAG}-linux-64.txt\n" in said.err


def universal(path: str, *wheels: str, version: str = "1.0") -> None:
    """A lock for every Python and platform that its packages have a wheel for, as `uv export` writes it."""
    packages = "".join(
        f'\n[[packages]]\nname = "{name}"\nversion = "{version}"\nwheels = [\n' + "".join(
            f'    {{ url = "https://h/{name}-{version}-{tag}.whl", hashes = {{ sha256 = "{"a" * 64}" }} }},\n'
            for tag in tags.split()) + "]\n"
        for name, _, tags in (wheel.partition(" ") for wheel in wheels))
    Path(path).write_text(f'lock-version = "1.0"\ncreated-by = "uv"\nrequires-python = ">=3.16"\n{packages}')


def test_a_target_that_a_universal_lock_has_no_file_for_is_left_out_and_the_others_compared(say: Say) -> None:
    limited = "limited cp316-cp316-manylinux_2_28_x86_64 cp317-cp317-manylinux_2_28_x86_64 cp316-cp316-win_amd64"
    universal("a.toml", "anywhere py3-none-any", limited)
    universal("b.toml", "anywhere py3-none-any", limited, version="2.0")
    assert (same := say("diff", "a.toml", "a.toml")).status == 0, same
    said = say("diff", "a.toml", "b.toml")
    assert (said.status, [line for line in said.out.splitlines() if line.startswith("Python")]) == (
        1, ["Python 3.16 on linux-64", "Python 3.16 on win-64", "Python 3.17 on linux-64"]), said
    assert said.out.count("~ anywhere 1.0 -> 2.0") == 3
    left = ("is not compared for CPython 3.16 on linux-aarch64 or osx-arm64; "
            "CPython 3.17 on linux-aarch64 or win-64 or osx-arm64: limited has no file there")
    assert said.err.splitlines() == [f"note: {name} {left}" for name in ("a.toml", "b.toml")]
    assert say("diff", "a.toml", "a.toml", "-q").err == ""
    document = say("diff", "a.toml", "b.toml", "--python", "3.17", "--platform", "linux-64", "--json").json
    assert (document["before"]["left_out"], len(document["targets"])) == ([], 1)
    document = say("diff", "a.toml", "b.toml", "--platform", "win-64", "--json").json
    assert document["after"]["left_out"] == [{"python": "3.17", "platform": "win-64", "project": "limited"}]
    refused = say("diff", "a.toml", "b.toml", "--platform", "osx-arm64")
    assert (refused.status, "--platform osx-arm64: a.toml has no such target" in refused.err) == (2, True), refused
    assert "note: a.toml is not compared for CPython 3.16 or 3.17 on osx-arm64: limited has no file" in refused.err


def test_a_lock_that_can_be_installed_nowhere_is_one_error(say: Say) -> None:
    universal("a.toml", "limited cp311-cp311-win_amd64")
    said = say("diff", "a.toml", "a.toml")
    assert said.status == 2
    assert "a.toml: is for no target known here (a.toml packages[0] (limited): has no file for CPython 3.16" in said.err
    assert "Traceback" not in said.err
