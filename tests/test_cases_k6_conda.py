"""Public reports on conda, pixi and conda-lock resolution, each with its right answer.

The facts are those of the reports; the channel beside the bundled records is made of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackfix.write.conda_read import read_conda_file
from stackfix.write.records import CondaEnvironment, CondaPin
from tests.cli_world import Said, Say, World
from tests.conda_servers import Row, channel_folder, repodata, row


def channel(*rows: Row, platform: str = "linux-64") -> str:
    """The address of a channel with these packages."""
    folder = channel_folder(Path("channel"))
    (folder / platform).mkdir(exist_ok=True)
    (folder / platform / "repodata.json").write_bytes(
        repodata(*({**each, "subdir": platform} for each in rows), subdir=platform))
    return folder.resolve().as_uri()


def write(*dependencies: str, channels: tuple[str, ...]) -> None:
    Path("environment.yml").write_text(
        "\n".join(["channels:", *(f"  - {one}" for one in channels), "dependencies:",
                   *(f"  - {json.dumps(one)}" for one in dependencies)]) + "\n")


def lock(say: Say, *words: str) -> Said:
    return say("lock", "-r", "environment.yml", "--no-flash-attn", "--python", "3.11", *words)


def only(environments: tuple[CondaEnvironment, ...], name: str) -> CondaPin:
    [environment] = environments
    return next(pin for pin in environment.conda if pin.name == name)


# -- prefix-dev/pixi#3949: `jaxlib = "*=*cuda*"` without system-requirements: "jaxlib would require __cuda *" ----------
# Root cause: builds for CUDA depend on __cuda, which pixi takes from declared requirements. Right answer: declare it;
# and an unpinned jaxlib falls back to the build for the CPU without a word.

JAX = (row("jaxlib", "0.4.35", "python >=3.11,<3.12.0a0", "__cuda", build="cuda126py311_0"),
       row("jaxlib", "0.4.35", "python >=3.11,<3.12.0a0", build="cpu_py311_0"))


def test_a_lock_for_cuda_declares_the_virtual_package(world: World, say: Say) -> None:
    write("pytorch=2.3", "jaxlib=*=*cuda*", channels=(channel(*JAX), "conda-forge"))
    said = lock(say, "--cuda", "12.0", "--format", "pixi", "--format", "conda-lock")
    assert said.status == 0, said
    assert "__cuda is 12.0: taken as --cuda 12.0" in said.err       # this machine has no driver; that is told
    for path in ("pixi.lock", "conda-lock.yml"):
        found = read_conda_file(Path(path)).environments
        assert only(found, "jaxlib").build == "cuda126py311_0", path
        assert only(found, "pytorch").build.startswith("cuda120"), path
        assert "__cuda" in Path(path).read_text()


def test_a_lock_for_the_cpu_names_what_the_cuda_build_needs(world: World, say: Say) -> None:
    write("pytorch=2.3", "jaxlib=*=*cuda*", channels=(channel(*JAX), "conda-forge"))
    said = lock(say, "--cuda", "cpu", "--format", "pixi")
    assert said.status == 1, said
    assert "__cuda" in said.err
    assert "jaxlib" in said.err
    assert "environment.yml line 6" in said.err
    assert not Path("pixi.lock").exists()


# -- conda/conda-lock#101: a lock for linux-64 made elsewhere fails for want of __glibc and __cuda --------------------
# Right answer: give the target's virtual packages and record them. conda-lock 4 has __cuda 11.4 for linux-64, so a
# package that needs __cuda >=12 fails there for the opposite reason: the value is to be stated, not defaulted.

TOOLKIT = (row("cudatoolkit-of-report", "11.0", "__glibc >=2.17"), row("needs-twelve", "1.0", "__cuda >=12"))


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64"])
def test_the_target_tells_the_virtual_packages_not_the_host(platform: str, world: World, say: Say) -> None:
    torch = {"linux-64": ("2.3", "12.0"), "linux-aarch64": ("2.8", "12.9")}[platform]
    write(f"pytorch={torch[0]}", "cudatoolkit-of-report=11.0", "needs-twelve",
          channels=(channel(*TOOLKIT, platform=platform), "conda-forge"))
    said = lock(say, "--cuda", torch[1], "--platform", platform, "--format", "conda-lock")
    assert said.status == 0, said
    found = read_conda_file(Path("conda-lock.yml")).environments
    assert only(found, "needs-twelve").platform == only(found, "cudatoolkit-of-report").platform == platform
    text = Path("conda-lock.yml").read_text()
    [offered] = [line for line in text.splitlines() if line.startswith("# locked for machines with: ")]
    assert f"__cuda {torch[1]}" in offered
    assert "__glibc 2.28" in offered


def test_a_stack_for_a_newer_glibc_than_the_targets_is_refused(world: World, say: Say) -> None:
    """cuDNN 9 of conda-forge needs __glibc >=2.28, whatever this machine has."""
    write("pytorch=2.8", "python=3.13", channels=("conda-forge",))
    asked = ("lock", "-r", "environment.yml", "--no-flash-attn", "--cuda", "12.9", "--format", "conda-lock")
    said = say(*asked, "--glibc", "2.17")
    assert said.status == 1, said
    assert "--glibc 2.17" in said.err
    assert not Path("conda-lock.yml").exists()
    assert say(*asked, "--glibc", "2.28").status == 0
