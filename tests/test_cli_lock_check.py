"""`lock --check` where the files that are there steer what is expected of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.cli.common import CommonOptions
from stackfix.cli.lock_kept import Kept, kept_pins
from stackfix.cli.options import LockOptions
from stackfix.write.conda_files import plan_conda
from stackfix.write.pylock import render_pylock
from stackfix.write.requirements import render_requirements, requirements_entries
from stackfix.write.stated import contradicted, decided, read_stated
from tests.cli_world import ASKED, Say, World
from tests.conda_samples import COMMAND, record, target
from tests.lock_samples import HERE, NOWHERE, lock_of, sample_packages, target_lock

OLD, NEW = "filelock==3.12.0", "filelock==3.15.4"
PIP = ("--format", "requirements", "--format", "pylock")


@pytest.fixture
def older(world: World, say: Say) -> World:
    """Files that keep an older filelock than the index has by now."""
    newest = world.projects["filelock"].pop("filelock-3.15.4-py3-none-any.whl")
    assert say("lock", *ASKED, *PIP).status == 0
    world.projects["filelock"]["filelock-3.15.4-py3-none-any.whl"] = newest
    return world


def places(say: Say, *words: str) -> list[str]:
    said = say("lock", *ASKED, *words, "--check", "-q")
    assert said.status == (1 if said.out else 0), said
    return [line.partition(": ")[0] for line in said.out.splitlines()]


def line_of(name: str, start: str) -> str:
    lines = Path(name).read_text(encoding="utf-8").splitlines()
    return f"{name}:{next(number for number, line in enumerate(lines, start=1) if line.startswith(start))}"


def test_an_older_pin_that_its_hashes_agree_with_is_kept(older: World, say: Say) -> None:
    assert places(say, *PIP) == []
    assert OLD in Path("requirements.txt").read_text(encoding="utf-8")


def test_a_pin_that_was_changed_is_told_by_the_other_file(older: World, say: Say) -> None:
    path = Path("requirements.txt")
    path.write_text(path.read_text(encoding="utf-8").replace(OLD, NEW), encoding="utf-8")
    assert places(say, *PIP) == [line_of("requirements.txt", NEW)]


def test_a_hash_that_was_changed_is_the_only_line_while_the_other_file_confirms_the_pin(older: World, say: Say) -> None:
    path = Path("requirements.txt")
    before, _, after = path.read_text(encoding="utf-8").partition(f"{OLD} \\\n    --hash=sha256:")
    path.write_text(f"{before}{OLD} \\\n    --hash=sha256:{'0' * 8}{after[8:]}", encoding="utf-8")
    number = int(line_of("requirements.txt", OLD).partition(":")[2])
    assert places(say, *PIP) == [f"requirements.txt:{number + 1}"]


def test_alone_a_pin_and_its_hash_that_disagree_are_both_told(older: World, say: Say) -> None:
    """Which of the two is wrong nobody knows; as a fresh lock would have neither, both are named."""
    alone = ("--format", "requirements")
    path = Path("requirements.txt")
    before, _, after = path.read_text(encoding="utf-8").partition(f"{OLD} \\\n    --hash=sha256:")
    path.write_text(f"{before}{OLD} \\\n    --hash=sha256:{'0' * 8}{after[8:]}", encoding="utf-8")
    number = int(line_of("requirements.txt", OLD).partition(":")[2])
    assert places(say, *alone) == [f"requirements.txt:{number}", f"requirements.txt:{number + 1}"]


CONDA = (record("pytorch", "2.3.1", "0"), record("libcublas", "12.1", "0"), record("numpy", "1.26.4", "0"))


@pytest.mark.parametrize(("renewed", "kept"), [
    ((), {"pytorch", "libcublas", "numpy", "a-server", "b-client", "flash-attn"}),
    (("torch",), {"libcublas", "numpy", "a-server", "b-client", "flash-attn"}),
    (("nvidia-cublas-cu12", "Flash_Attn"), {"pytorch", "numpy", "a-server", "b-client"}),
    (("libcublas", "numpy"), {"pytorch", "a-server", "b-client", "flash-attn"}),
    (("scipy",), {"pytorch", "libcublas", "numpy", "a-server", "b-client", "flash-attn"}),
])
def test_a_package_is_renewed_by_the_name_of_its_project_too(
    renewed: tuple[str, ...], kept: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    for file in plan_conda((target(records=CONDA),), formats=("conda-lock",), name=None, command=COMMAND):
        (tmp_path / file.path).write_text(file.text, encoding="utf-8")
    common = CommonOptions(as_json=False, quiet=False, verbose=0, offline=True, cache_dir=tmp_path)
    found = kept_pins(LockOptions(upgrade_packages=renewed), tmp_path, common)
    assert {name for name, _ in found.pip} | {name for _, name in found.conda} == kept
    told = capsys.readouterr().err
    assert [name for name in renewed if f"--upgrade-package {name}: the existing lock does not pin it" in told] == [
        name for name in renewed if name == "scipy"]
    assert kept_pins(LockOptions(formats=("requirements",)), tmp_path, common) == Kept()
    assert kept_pins(LockOptions(upgrade=True), tmp_path, common) == Kept()


def test_what_another_request_changes_is_no_contradiction(older: World, say: Say) -> None:
    differences = places(say, *PIP, "--with", "idna")
    assert differences
    assert line_of("requirements.txt", OLD) not in differences


def test_every_pin_is_stated_by_every_file_that_holds_it(tmp_path: Path) -> None:
    pip, conda = target_lock(sample_packages(NOWHERE)), target(pip=())
    lock = replace(lock_of(pip), conda=(conda,))
    wanted = set(decided(lock))
    (tmp_path / "requirements.txt").write_text(
        render_requirements(requirements_entries(pip), HERE, command=COMMAND), encoding="utf-8")
    (tmp_path / "pylock.toml").write_text(render_pylock(pip), encoding="utf-8")
    for file in plan_conda((conda,), formats=("conda-lock", "explicit", "environment"), name=None, command=COMMAND):
        (tmp_path / file.path).write_text(file.text, encoding="utf-8")
    for name, manager in (("requirements.txt", "pip"), ("pylock.toml", "pip"), ("conda-lock.yml", "conda")):
        stated = read_stated(tmp_path, [name])
        assert set(stated) == {one for one in wanted if one.manager == manager}, name
        assert contradicted(lock, stated) == {}
    assert {(one.name, one.pin) for one in read_stated(tmp_path, ["conda-linux-64.lock"])} == {
        (one.name, one.pin) for one in wanted if one.manager == "conda"}
    assert read_stated(tmp_path, ["environment.yml", "nowhere.txt"]) == ()


@pytest.mark.parametrize("kind", ["conda-lock", "pixi"])
def test_a_pin_of_pip_in_a_conda_file_is_stated_too(kind: str, tmp_path: Path) -> None:
    one = target(records=())
    lock = replace(lock_of(), conda=(one,))
    for file in plan_conda((one,), formats=(kind,), name=None, command=COMMAND):
        (tmp_path / file.path).write_text(file.text.replace("'1.10'", "'1.11'"), encoding="utf-8")
        stated = [each for each in read_stated(tmp_path, [file.path]) if each.manager == "pip"]
    assert {(each.name, each.pin) for each in stated} == {
        ("a-server", "1.11"), ("b-client", "12"), ("flash-attn", "2.5.8")}
    server = replace(one.pip[0], version="1.11", files=(replace(one.pip[0].files[0], sha256="0" * 64),))
    changed = replace(lock, conda=(replace(one, pip=(server, *one.pip[1:])),))
    assert contradicted(changed, stated) == {("pip", "a-server"): ()}


def test_an_address_that_its_hashes_contradict_is_not_kept(tmp_path: Path) -> None:
    right, other = record("a", "1", "0"), record("a", "1", "1")
    wrong = replace(right, url=other.url, build="1", file_name=other.file_name)
    for one, folder in ((wrong, tmp_path / "one"), (right, tmp_path / "two")):
        folder.mkdir()
        for file in plan_conda((target(records=(one,), pip=()),), formats=("conda-lock",), name=None, command=COMMAND):
            (folder / file.path).write_text(file.text, encoding="utf-8")
    lock = replace(lock_of(), conda=(target(records=(other,), pip=()),))
    stated = read_stated(tmp_path / "one", ["conda-lock.yml"])
    assert contradicted(lock, stated) == {("conda", "a"): ()}
    assert contradicted(lock, (*stated, *read_stated(tmp_path / "two", ["conda-lock.yml"]))) == {
        ("conda", "a"): (right.url,)}
