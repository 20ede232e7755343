"""`repair --lock`: only what cures is brought to the lock's pins, with its hashes; locks of others are refused."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from stackfix.cli.repairing import DiskGround, DiskPlaces, with_hooks
from stackfix.cli.repairing_lock import LockedChoices
from stackfix.cli.repairing_pins import OtherTorch, Pins, read_pins
from stackfix.diagnose.diagnose import diagnose
from stackfix.errors import BadInput
from stackfix.inspect.places import Root
from stackfix.matrix.libraries import load_libraries
from stackfix.plan.install_choice import Wanted
from stackfix.plan.planner import make_plan
from stackfix.plan.records import Plan
from stackfix.report.repair import why_none
from stackfix.sync.errors import LockDoesNotFit
from tests.case_worlds import install_torch, nvidia_files
from tests.cli_world import World as Index
from tests.cli_world import settle
from tests.diagnose_world import World
from tests.plan_world import advice, cured, kinds
from tests.real_environments.repaired import Shop
from tests.real_environments.scenarios import NVJITLINK_FILE, TOO_OLD
from tests.real_environments.standins import write_wheels
from tests.real_environments.trees import differences, tree_of
from tests.real_environments.workshop import Workshop
from tests.test_cases_k3 import install_cpu_torch
from tests.test_cli_repairing_stack import CUSPARSE, JITLINK, choices_for, only_wheel, stocked, wheel_of
from tests.test_repair_real import projects

TORCH = "torch==2.3.1"
PINS = (TORCH, f"{JITLINK}==12.9.86", "idna==3.7")


def text_of(index: Index, *pins: str, header: str = "") -> str:
    """A requirements lock with the sha256 of all files that the index has of each pin."""
    lines = []
    for pin in pins:
        project, _, version = pin.partition("==")
        files = [body for name, body in index.projects[project].items() if name.split("-")[1] == version]
        lines.append(" \\\n    ".join([pin, *(f"--hash=sha256:{hashlib.sha256(each).hexdigest()}" for each in files)]))
    return "".join(f"{each}\n" for each in (*filter(None, (header,)), *lines))


def pylock_of(index: Index, *pins: str) -> str:
    """The same in the other format."""
    text = 'lock-version = "1.0"\ncreated-by = "tests"\nrequires-python = ">=3.11"\n'
    for pin in pins:
        project, _, version = pin.partition("==")
        text += f'[[packages]]\nname = "{project}"\nversion = "{version}"\n'
        for name, body in index.projects[project].items():
            if name.split("-")[1] == version:
                text += (f'[[packages.wheels]]\nname = "{name}"\nurl = "{index.url}/{name}"\n'
                         f'hashes = {{sha256 = "{hashlib.sha256(body).hexdigest()}"}}\n')
    return text


@contextmanager
def toward(world: World, folder: Path, lock: Path) -> Iterator[tuple[Pins, LockedChoices]]:
    view = world.view(load_libraries())
    pins = read_pins(str(lock), view, "stackfix sync --prefix /venv")
    with choices_for(world, folder) as choices:
        yield pins, LockedChoices(choices, view, pins)


def plan_for(world: World, folder: Path, lock: Path) -> tuple[Plan, Pins]:
    """The plan that goes toward a lock."""
    root = Root(str(world.folder))
    with toward(world, folder, lock) as (pins, choices):
        view = with_hooks(world.view(load_libraries()), root)
        with DiskGround(view, root, choices.fetch) as ground:
            return make_plan(view, diagnose(view), ground=ground, resolve=choices,
                             places=DiskPlaces(root, view.environment.prefix)), pins


@pytest.fixture
def old_jitlink(tmp_path: Path) -> World:
    return install_torch(World(tmp_path / "machine"), "2.3.1", nvjitlink="12.0.140").wheel("idna", "3.6")


@pytest.mark.parametrize("file", ["requirements.txt", "pylock.toml"])
def test_what_cures_is_brought_to_the_pin_and_the_rest_is_told(file: str, old_jitlink: World, tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        lock = tmp_path / file
        lock.write_text((pylock_of if file == "pylock.toml" else text_of)(index, *PINS))
        plan, pins = plan_for(old_jitlink, tmp_path, lock)
    assert (kinds(plan), cured(plan), plan.left) == (("install",), ["SF201"], ())
    assert only_wheel(plan).version == "12.9.86"                # without the lock it would be 12.1.105
    assert plan.actions[0].summary.endswith(f", and nothing else: as {file} pins it")
    [rest] = pins.rest(old_jitlink.view(load_libraries()), plan)
    assert (rest.name, rest.installed, rest.locked) == ("idna", "3.6", "3.7")
    assert [each for each in index.asked if "idna" in each] == []


def test_a_file_with_another_hash_is_not_taken(old_jitlink: World, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        lock = tmp_path / "requirements.txt"
        lock.write_text(f"{text_of(index, TORCH)}{JITLINK}==12.1.105 --hash=sha256:{'0' * 64}\n")
        plan, _ = plan_for(old_jitlink, tmp_path, lock)
    assert kinds(plan) == ()
    [left] = [each for each in plan.left if each.code == "SF201"]
    assert left.reason == f"{JITLINK}==12.1.105: the index has it with other sha256 than requirements.txt pins"
    [alarm] = left.unreached
    assert (alarm.what, alarm.code) == (left.reason, "hash-mismatch")
    assert "do not install it" in (alarm.hint or "")
    assert "is not the one that was promised" in why_none(plan)
    assert JITLINK not in advice(plan)          # no other release in place of a file that may have been changed
    assert not any(each.startswith(f"/files/{JITLINK}/") for each in index.asked)


@pytest.mark.parametrize(("line", "reason"), [
    ("", f"requirements.txt does not pin {JITLINK}"),
    (f"{JITLINK}==12.0.140", f"requirements.txt pins what is there: {JITLINK} 12.0.140"),
])
def test_a_lock_that_cures_nothing_is_said_to(line: str, reason: str, old_jitlink: World, tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        lock = tmp_path / "requirements.txt"
        lock.write_text(text_of(index, *filter(None, (TORCH, line))))
        plan, _ = plan_for(old_jitlink, tmp_path, lock)
    assert (kinds(plan), [each.reason for each in plan.left if each.code == "SF201"]) == ((), [reason])
    assert why_none(plan) == "nothing that requirements.txt pins would cure any"
    [told] = [each for each in plan.actions if each.kind == "advice"]
    assert JITLINK not in (told.command or "")
    assert told.summary.endswith("requirements.txt does not pin may cure it: lock anew, or leave --lock out")


def test_who_needs_it_is_brought_to_its_pin_where_that_cures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is as the lock has it; the one that needs more than it has is not."""
    world = install_torch(World(tmp_path / "machine"), "2.3.1", cusparse="12.3.1.170")
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        lock = tmp_path / "requirements.txt"
        lock.write_text(text_of(index, TORCH, f"{JITLINK}==12.1.105", f"{CUSPARSE}==12.1.0.106"))
        plan, _ = plan_for(world, tmp_path, lock)
    assert kinds(plan) == ("install",)
    assert "SF201" in cured(plan)
    assert (only_wheel(plan).project, only_wheel(plan).version) == (CUSPARSE, "12.1.0.106")


def test_a_damaged_wheel_comes_in_the_locks_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = install_torch(World(tmp_path / "machine"), "2.3.1", nvjitlink="12.9.86")
    world.remove(world.inside(NVJITLINK_FILE))
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        lock = tmp_path / "requirements.txt"
        for version in ("12.9.86", "12.1.105"):
            lock.write_text(text_of(index, TORCH, f"{JITLINK}=={version}"))
            plan, _ = plan_for(world, tmp_path, lock)
            assert (kinds(plan), only_wheel(plan).version) == (("install",), version)


def test_a_wheel_by_address_is_taken_from_there(old_jitlink: World, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        name, body = wheel_of(tmp_path / "release", JITLINK, "12.1.105", nvidia_files(JITLINK, "12.1.105"))
        index.projects["assets"] = {name: body}
        url = f"{index.url.removesuffix('/simple')}/files/assets/{name}"
        lock = tmp_path / "requirements.txt"
        lock.write_text(f"{text_of(index, TORCH)}{JITLINK} @ {url} --hash=sha256:{hashlib.sha256(body).hexdigest()}\n")
        plan, _ = plan_for(old_jitlink, tmp_path, lock)
    assert (kinds(plan), only_wheel(plan).version, only_wheel(plan).source) == (("install",), "12.1.105", url)
    assert f"/files/assets/{name}" in index.asked


# --- locks that are refused ---

OURS = "#\n# This file is locked by stackfix for {}\n"
NO_LOCKS: Mapping[str, tuple[str, str, type[Exception], str]] = {
    "another Python": ("requirements.txt", OURS.format("cp312-linux-64") + "{torch}", LockDoesNotFit, "CPython 3.12"),
    "another platform": ("requirements.txt", OURS.format("cp311-linux-aarch64") + "{torch}", LockDoesNotFit,
                         "linux-aarch64"),
    "another torch": ("requirements.txt", "torch==2.4.0 --hash=sha256:" + "0" * 64, OtherTorch, "torch 2.4.0"),
    "another build of torch": ("requirements.txt", "torch==2.3.1+cpu --hash=sha256:" + "0" * 64, OtherTorch, "+cpu"),
    "another build of torch by address": (
        "requirements.txt", "torch @ https://x.invalid/torch-2.3.1%2Bcu118-cp311-cp311-linux_x86_64.whl --hash=sha256:"
        + "0" * 64, OtherTorch, "torch 2.3.1+cu118"),
    "pylock of another Python": ("pylock.toml", 'lock-version = "1.0"\nrequires-python = "<3.9"\npackages = []\n',
                                 LockDoesNotFit, "<3.9"),
    "no hashes": ("requirements.txt", "torch==2.3.1", BadInput, "no sha256"),
    "no pins": ("requirements.txt", "torch>=2", BadInput, "line 1"),
    "a conda lock": ("conda-lock.yml", "version: 1\n", BadInput, "conda lock"),
    "an explicit conda lock": ("conda-linux-64.lock", "@EXPLICIT\n", BadInput, "conda lock"),
    "another tool's": ("uv.lock", "version = 1\n", BadInput, "goes toward a requirements.txt"),
}


@pytest.mark.parametrize("what", NO_LOCKS)
def test_a_lock_of_another_environment_is_refused(what: str, tmp_path: Path) -> None:
    name, text, fault, says = NO_LOCKS[what]
    world = install_torch(World(tmp_path / "machine"), "2.3.1", local="+cu121")
    lock = tmp_path / name
    lock.write_text(text.format(torch=f"torch==2.3.1 --hash=sha256:{'0' * 64}") if "{torch}" in text else text)
    with pytest.raises(fault) as raised:
        read_pins(str(lock), world.view(load_libraries()), "stackfix sync")
    told = f"{raised.value.what()} {raised.value.next_step()}"      # type: ignore[attr-defined]
    assert says in told
    if "torch" in what or "conda" in what:
        assert f"`stackfix sync {lock}`" in told


@pytest.mark.parametrize("pin", [
    "torch==2.3.1", "torch @ https://x.invalid/torch-2.3.1%2Bcu121-cp311-cp311-linux_x86_64.whl", "numpy==1.26.4"])
def test_a_lock_of_this_torch_or_of_none_is_taken(pin: str, tmp_path: Path) -> None:
    world = install_torch(World(tmp_path / "machine"), "2.3.1", local="+cu121")
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"{pin} --hash=sha256:{'0' * 64}\n")
    assert len(read_pins(str(lock), world.view(load_libraries()), "stackfix sync").pins) == 1


def test_another_build_of_torch_comes_with_what_the_lock_has_of_its_own(tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    world = install_cpu_torch(World(tmp_path / "machine"), "2.3.1+cpu")
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        lock = tmp_path / "requirements.txt"
        lock.write_text(text_of(index, TORCH, f"{JITLINK}==12.1.105", f"{CUSPARSE}==12.1.0.106", "idna==3.7"))
        with toward(world, tmp_path, lock) as (_, choices):
            offers = choices.offers((Wanted(project="torch", specifier="==2.3.1", near="2.3.1+cpu", cuda="12.1"),))
    [wheels] = offers.sets
    assert sorted(each.project for each in wheels) == sorted(("torch", JITLINK, CUSPARSE))      # and no idna


def test_a_second_step_is_left_to_sync(old_jitlink: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stocked(tmp_path / "wheels").served() as index:
        settle(monkeypatch, tmp_path, index.url)
        lock = tmp_path / "requirements.txt"
        lock.write_text(text_of(index, TORCH, header="# second step: requirements-flash-attn.txt"))
        lock.with_name("requirements-flash-attn.txt").write_text(
            f"# second step of: requirements.txt\nflash-attn==2.5.8 --hash=sha256:{'0' * 64}\n")
        with toward(old_jitlink, tmp_path, lock) as (_, choices):
            offers = choices.offers((Wanted(project="flash-attn", specifier="", near="2.5.7"),))
    assert offers.sets == ()
    assert "second step" in (offers.reason or "")
    assert "stackfix sync" in (offers.reason or "")


# --- the command ---


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
                    reason="the wheels are for x86_64 and glibc")
def test_the_command_repairs_toward_a_lock(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    with Index(projects=projects(write_wheels(tmp_path / "wheels"))).served() as index:
        shop = Shop(workshop=Workshop(folder=tmp_path / "made", wheels=tmp_path / "wheels"),
                    settings={"PIP_INDEX_URL": index.url, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"})
        made = shop.workshop.make(*TOO_OLD.base, python="3.11")
        TOO_OLD.broken(shop.workshop, made)
        before = tree_of(made.prefix)
        lock = tmp_path / "requirements.txt"
        lock.write_text(f"{text_of(index, TORCH, f'{JITLINK}==12.1.105')}filelock==3.13 --hash=sha256:{'0' * 64}\n")
        done = shop.repair(made, "--lock", str(lock))
        assert done.run.status == 0, done.told()
        [action] = done.said["plan"]["actions"]
        assert (action["kind"], action["cures"]) == ("install", ["SF201"])
        assert f"{JITLINK} 12.1.105 in place of {JITLINK} 12.0.140" in action["summary"]
        assert done.said["lock"]["file"] == str(lock)
        assert done.said["lock"]["differs"] == [{"name": "filelock", "installed": "3.15", "locked": "3.13"}]
        assert done.said["lock"]["sync"].endswith(f" {lock}")
        assert (done.said["verified"]["static"], done.said["verified"]["load"]) == ("clean", "works")
        told = shop.stackfix("repair", "--dry-run", "--lock", lock, "--prefix", made.prefix)
        assert told.status == 0, told
        assert "filelock 3.15 (pinned 3.13)" in told.stderr
        assert shop.stackfix("undo", "--prefix", made.prefix).status == 0
        assert not differences(before, tree_of(made.prefix))
        other = shop.stackfix("repair", "--yes", "--lock", tmp_path / "none.txt", "--prefix", made.prefix)
        assert (other.status, other.stdout) == (2, ""), other
        lock.write_text(f"torch==2.4.0 --hash=sha256:{'0' * 64}\n")
        other = shop.stackfix("repair", "--yes", "--lock", lock, "--prefix", made.prefix)
        assert (other.status, other.stdout) == (1, ""), other
        assert "torch 2.4.0" in other.stderr
