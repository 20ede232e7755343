"""`stackfix lock` with a conda side, as a command: what is written, what is said, what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.write.conda_read import read_conda_file
from tests.cli_world import ASKED, Say, World
from tests.conda_servers import Answer, serving
from tests.conda_stacks import Decider
from tests.judges.command import clean_environment

CONDA = ("--format", "conda-lock")
BOTH = ("--format", "requirements", *CONDA)


def pins_of(path: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+) ", Path(path).read_text(), re.MULTILINE))


def test_the_default_files_are_of_one_stack(world: World, say: Say) -> None:
    said = say("lock", *ASKED)
    assert (said.status, said.out.split()) == (0, ["requirements.txt", "pylock.toml", "conda-lock.yml"]), said
    assert "layout native" in said.err
    assert "taken as CUDA 12.1 of the stack" in said.err
    environment = read_conda_file(Path("conda-lock.yml")).environments[0]
    conda = {pin.name: pin.version for pin in environment.conda}
    assert conda["pytorch"] == pins_of("requirements.txt")["torch"] == "2.3.1"
    held = say("lock", *ASKED, "--check")
    assert (held.status, held.out) == (0, ""), held


def test_json_has_both_sides_and_how_they_came_about(world: World, say: Say) -> None:
    target = say("lock", *ASKED, "--json").json["targets"][0]
    managers = {package["manager"] for package in target["packages"]}
    assert managers == {"pip", "conda"}
    torch = next(package for package in target["packages"] if package["name"] == "pytorch")
    assert torch["build"] == "py3.11_cuda12.1_cudnn8.9.2_0"
    assert {len(torch["md5"]), len(torch["sha256"])} == {32, 64}
    side = target["conda"]
    assert (side["layout"], side["priority"]) == ("native", "strict")
    assert [channel["name"] for channel in side["channels"]] == ["pytorch", "nvidia", "conda-forge"]
    assert {"name": "__cuda", "version": "12.1", "build": "0", "origin": "taken as CUDA 12.1 of the stack"} in (
        side["virtual_packages"])
    cublas = next(one for one in side["departures"] if one["about"] == "libcublas")
    assert (cublas["pip"], cublas["conda"]) == ("12.1.3.1", "12.1.0.26")
    assert "excludes 12.1.3.1" in cublas["reason"]
    assert side["snapshot"]["reason"].startswith("offline")


def test_in_layout_wheels_pip_brings_what_the_pip_lock_has(world: World, say: Say) -> None:
    assert say("lock", *ASKED, *BOTH, "--layout", "wheels").status == 0
    environment = read_conda_file(Path("conda-lock.yml")).environments[0]
    beside = {pin.name: pin.version for pin in environment.pip}
    wanted = pins_of("requirements.txt")
    assert beside == wanted
    assert {pin.name for pin in environment.conda} >= {"python", "pip", "libstdcxx"}
    assert not {pin.name for pin in environment.conda} & {"pytorch", "libtorch"}


def test_a_file_for_each_python(world: World, say: Say) -> None:
    said = say("lock", *ASKED, "--python", "3.10", *CONDA, "--layout", "wheels", "--with", "idna")
    assert (said.status, said.out.split()) == (0, ["cp310.conda-lock.yml", "cp311.conda-lock.yml"]), said


def test_conda_formats_alone_ask_no_package_index(world: World, say: Say) -> None:
    said = say("lock", "--torch", "2.3", "--cuda", "11.8", "--python", "3.11", "--no-flash-attn", *CONDA)
    assert said.status == 0, said
    assert "torch 2.3.1 · CUDA 11.8" in said.err
    assert world.asked == []


def test_what_no_channel_has_comes_from_pip(world: World, say: Say) -> None:
    """idna is taken away from the channels by its hash: a line with a hash is about wheels."""
    line = "idna==3.7 --hash=sha256:" + "0" * 64
    Path("in.txt").write_text(line + "\n")
    assert say("lock", *ASKED, *BOTH, "-r", "in.txt").status == 1, "no file has that hash"
    page = next(name for name in world.projects["idna"] if "3.7" in name)
    import hashlib

    digest = hashlib.sha256(world.projects["idna"][page]).hexdigest()
    Path("in.txt").write_text(f"idna==3.7 --hash=sha256:{digest}\n")
    said = say("lock", *ASKED, *BOTH, "-r", "in.txt")
    assert said.status == 0, said
    assert "layout mixed" in said.err
    environment = read_conda_file(Path("conda-lock.yml")).environments[0]
    assert {pin.name: pin.version for pin in environment.pip} == {"idna": "3.7"}
    assert "idna" not in {pin.name for pin in environment.conda}


@pytest.mark.parametrize(("words", "status", "says"), [
    (("--layout", "both"), 2, "--layout both: is not a layout"),
    (("--channel", "not a channel"), 2, "is neither the name of a channel nor an address"),
    (("--channel", "somebodys-own"), 3, "somebodys-own"),
    (("--channel", "pytorch"), 1, "no Python 3.11 for linux-64 is in pytorch"),
    (("--layout", "native", "--flash-attn", "2.5.8"), 1, "flash-attn"),
])
def test_what_cannot_be_is_one_clear_error(
    words: tuple[str, ...], status: int, says: str, world: World, say: Say,
) -> None:
    asked = [word for word in ASKED if word != "--no-flash-attn"] if "--flash-attn" in words else list(ASKED)
    said = say("lock", *asked, *words)
    assert (said.status, said.out) == (status, ""), said
    assert says in said.err
    assert "Traceback" not in said.err
    assert not [path for path in Path().iterdir() if path.suffix in {".txt", ".toml", ".yml"}]


def test_layout_and_channels_are_keys_of_a_project(world: World, say: Say) -> None:
    Path("stackfix.toml").write_text(
        'torch = "2.3"\npython = "3.11"\nflash-attn = false\nformat = "explicit"\nlayout = "wheels"\n'
        'channel = ["conda-forge"]\n')
    said = say("lock")
    assert (said.status, said.out.split()) == (0, ["conda-linux-64.lock"]), said
    assert "layout wheels" in said.err


def test_a_login_of_a_channel_stands_nowhere(world: World, say: Say, tmp_path: Path) -> None:
    folder = tmp_path / "bundled"
    decider = Decider(folder=folder)
    decider.channels().records(decider.channels().channels, "linux-64", "python")
    texts = {path.stem.removeprefix("conda-forge-"): path.read_bytes()
             for path in folder.glob("conda-snapshot-*/conda-forge-*.json")}

    def reply(path: str) -> Answer:
        if path.endswith("/repodata.json"):
            return Answer(body=texts[path.split("/")[-2]])
        return Answer(status=404)

    Path("condarc").write_text("offline: false\n")
    with serving(reply) as served, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONDARC", "condarc")
        address = served.url.replace("http://", "http://me:hidden@") + "/t/secret-token/conda-forge"
        said = say("lock", *ASKED, *BOTH, "--layout", "wheels", "--channel", address)
    assert said.status == 0, said
    written = said.out + said.err + "".join(Path(name).read_text() for name in ("requirements.txt", "conda-lock.yml"))
    assert "hidden" not in written
    assert "secret-token" not in written
    assert "--channel" in Path("conda-lock.yml").read_text()


def test_a_lock_for_pip_alone_loads_no_rattler(world: World, tmp_path: Path) -> None:
    code = ("import sys; from stackfix.cli.app import run; "
            "status = run(sys.argv[1:]); print(status, 'rattler' in sys.modules, file=sys.stderr)")
    done = subprocess.run(
        [sys.executable, "-c", code, "lock", *ASKED, "--format", "requirements", "--index-url", world.url, "-q"],
        cwd=tmp_path, env=clean_environment(STACKFIX_CACHE_DIR=str(tmp_path / "cache")), capture_output=True,
        text=True, check=True, timeout=120)
    assert done.stderr.split() == ["0", "False"], done.stderr


def test_the_users_own_priority_is_followed(world: World, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("condarc").write_text("offline: true\nchannel_priority: disabled\n")
    monkeypatch.setenv("CONDARC", "condarc")
    said = say("lock", *ASKED, *CONDA, "--json")
    assert said.json["targets"][0]["conda"]["priority"] == "disabled"
    monkeypatch.delenv("CONDARC")
    Path("condarc").write_text("offline: true\nchannel_priority: flexible\nremote_max_retry: 3\n")
    monkeypatch.setenv("CONDARC", "condarc")
    assert say("lock", *ASKED, *CONDA, "--json", "--overwrite").json["targets"][0]["conda"]["priority"] == "strict"


def test_a_channel_out_of_reach_can_be_left_out_where_nobody_asked_for_it(world: World, say: Say) -> None:
    words = ("lock", *ASKED, "--channel", "somebodys-own")
    assert "leave the conda lock out: --format requirements --format pylock" in say(*words).err
    assert "leave the conda lock out" not in say(*words, *BOTH).err
