"""A plan is made whole or not at all, and is refused where the environment is not as it should be."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.apply.errors import (
    CannotWrite,
    Drifted,
    ExternallyManaged,
    LeavesPrefix,
    NoSpace,
    NotOurs,
    StepFailed,
)
from stackfix.apply.pending import pending
from stackfix.apply.transaction import apply_plan, look_ahead
from stackfix.apply.undo import transactions, undo, undo_all
from stackfix.errors import BadInput, Unreachable
from stackfix.plan.records import InstallWheel, MakeLink, Node, Plan, SetAside, WriteFile
from tests.apply_faults.world import (
    HOOK,
    NEW,
    SCRIPT,
    SITE,
    TEXT,
    FakeInstaller,
    World,
    action,
    fake_installer,
    make_world,
    memory_folder,
    node,
    plan_of,
    tree_of,
    wheel_step,
    whole_plan,
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with memory_folder(tmp_path) as folder:
        yield make_world(folder)


def no_installer(step: InstallWheel, into: Path) -> None:
    raise AssertionError(step.project)


def test_all_steps_are_made_and_undone(tmp_path: Path) -> None:
    world = make_world(tmp_path)        # on a disk
    before, cache = tree_of(world.prefix), tree_of(world.cache)
    said: list[str] = []
    done = apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world), progress=said.append)
    prefix = world.prefix
    assert (prefix / "bin/activate").read_text(encoding="utf-8") == "# with our block\n"
    assert (prefix / "bin/activate").stat().st_mode & 0o777 == 0o755
    assert (prefix / SCRIPT).read_text(encoding="utf-8") == TEXT
    assert (prefix / HOOK).read_text(encoding="utf-8") == "hook = True\n"
    assert str((prefix / "lib/libcud.so").readlink()) == "../etc/conda/activate.d/stack.sh"
    assert (prefix / "lib/new/libcud.so.2").read_text(encoding="utf-8") == "old copy\n"
    assert not (prefix / "lib/stale").exists()
    assert not (prefix / SITE / "shadow.py").exists()
    assert (prefix / SITE / "demo/__init__.py").read_text(encoding="utf-8") == "version = 2\n"
    assert (prefix / "bin/demo").read_text(encoding="utf-8") == "#!new\n"
    assert not (prefix / SITE / "demo/core.py").exists()
    assert not (prefix / SITE / "demo-1.0.dist-info").exists()
    assert not (prefix / ".lock").exists()
    assert (done.number, done.folder, done.actions) == (1, ".stackfix/0001", ("one-1",))
    assert "install demo 2.0" in said
    for kept in done.kept:
        assert os.path.lexists(prefix / kept.copy), kept
    assert {"bin/activate", "lib/stale", f"{SITE}/demo", "lib/libcud.so"} <= {kept.path for kept in done.kept}
    assert pending(prefix) is None
    assert [each.number for each in transactions(prefix)] == [1]
    undone = undo(prefix)
    assert (undone.number, undone.kept) == (1, ())
    assert tree_of(prefix) == before
    assert {path: each for path, each in tree_of(world.cache).items() if path in cache} == cache


def test_to_look_ahead_changes_nothing(world: World) -> None:
    before = tree_of(world.prefix)
    assert look_ahead(whole_plan(world), world.prefix) == ()
    assert tree_of(world.prefix) == before


def test_a_file_that_another_distribution_records_stays(world: World) -> None:
    inode = (world.prefix / SITE / "nvidia/__init__.py").stat().st_ino
    apply_plan(plan_of(world, wheel_step()), world.prefix, installer=fake_installer(world))
    assert (world.prefix / SITE / "nvidia/__init__.py").stat().st_ino == inode
    assert (world.prefix / SITE / "nvidia/demo/lib.so").exists()


def test_a_file_in_a_packages_folder_that_is_not_its_own_stays(world: World) -> None:
    mine = world.write(f"{SITE}/demo/mine.txt", "mine\n")
    before = tree_of(world.prefix)
    apply_plan(plan_of(world, wheel_step()), world.prefix, installer=fake_installer(world))
    assert mine.read_text(encoding="utf-8") == "mine\n"
    assert not (world.prefix / SITE / "demo/core.py").exists()
    assert not (world.prefix / SITE / "demo/__pycache__").exists()
    assert (world.prefix / SITE / "demo/more/part.py").exists()
    undo(world.prefix)
    assert tree_of(world.prefix) == before


def test_a_link_of_an_earlier_repair_goes_with_its_package(world: World) -> None:
    before = tree_of(world.prefix)
    link = f"{SITE}/demo/libs/libdemo.so"
    apply_plan(plan_of(world, MakeLink(path=link, target="libdemo.so.1")), world.prefix, installer=no_installer)
    apply_plan(plan_of(world, wheel_step()), world.prefix, installer=fake_installer(world))
    assert not os.path.lexists(world.prefix / link)
    assert [each.number for each in undo_all(world.prefix)] == [2, 1]
    assert tree_of(world.prefix) == before


def test_a_row_of_record_that_leaves_the_prefix_is_never_touched(world: World) -> None:
    apply_plan(plan_of(world, wheel_step()), world.prefix, installer=fake_installer(world))
    assert (world.folder / "out.txt").read_text(encoding="utf-8") == "outside\n"


def test_no_hard_link_partner_is_written(world: World) -> None:
    partner = world.folder / "partner"
    os.link(world.prefix / "bin/activate", partner)
    apply_plan(plan_of(world, WriteFile(path="bin/activate", text="new\n")), world.prefix, installer=no_installer)
    assert partner.read_text(encoding="utf-8") == "# as the venv made it\n"
    undo(world.prefix)
    assert partner.stat().st_ino == (world.prefix / "bin/activate").stat().st_ino
    assert partner.stat().st_nlink == 2


def test_what_is_there_already_is_left_alone(world: World) -> None:
    before = tree_of(world.prefix)
    same = WriteFile(path="bin/activate", text="# as the venv made it\n", mode=0o755)
    done = apply_plan(plan_of(world, same), world.prefix, installer=no_installer)
    assert (done.made, done.kept) == ((), ())
    undo(world.prefix)
    assert tree_of(world.prefix) == before


def test_steps_may_follow_one_another_at_one_path(world: World) -> None:
    before = tree_of(world.prefix)
    plan = plan_of(world, SetAside(path="bin/activate"), WriteFile(path="bin/activate", text="1\n"),
                   WriteFile(path="bin/activate", text="2\n"), SetAside(path="lib/stale"),
                   WriteFile(path="lib/stale/new.txt", text="3\n"), after={"lib/stale": Node(kind="folder")})
    last = {change.path: change for change in plan.actions[0].changes}
    plan = replace(plan, actions=(replace(plan.actions[0], changes=tuple(last.values())),))
    apply_plan(plan, world.prefix, installer=no_installer)
    assert (world.prefix / "bin/activate").read_text(encoding="utf-8") == "2\n"
    assert [each.name for each in (world.prefix / "lib/stale").iterdir()] == ["new.txt"]
    undo(world.prefix)
    assert tree_of(world.prefix) == before


def test_an_empty_plan_and_advice_change_nothing(world: World) -> None:
    before = tree_of(world.prefix)
    plan = Plan(prefix=str(world.prefix), actions=(action("advice-1", "advice"),), left=())
    assert apply_plan(plan, world.prefix, installer=no_installer).number is None
    assert tree_of(world.prefix) == before


DRIFTS: dict[str, Callable[[World], object]] = {
    "content": lambda world: world.write("bin/activate", "edited\n", 0o755),
    "mode": lambda world: (world.prefix / "bin/activate").chmod(0o700),
    "gone": lambda world: (world.prefix / f"{SITE}/shadow.py").unlink(),
    "there": lambda world: world.write(SCRIPT, "mine\n"),
    "link": lambda world: (world.prefix / "lib/libcud.so.1").rename(world.prefix / "lib/libcud.so"),
    "release": lambda world: world.write(f"{SITE}/new", "Name: demo\nVersion: 3.0\n").rename(
        world.prefix / f"{SITE}/demo-1.0.dist-info/METADATA"),
    "parent": lambda world: world.write("etc", "a file in the way\n"),
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_drift_since_the_plan_is_refused(world: World, drift: str) -> None:
    plan = whole_plan(world)
    DRIFTS[drift](world)
    before = tree_of(world.prefix)
    with pytest.raises(Drifted):
        look_ahead(plan, world.prefix)
    with pytest.raises(Drifted) as caught:
        apply_plan(plan, world.prefix, installer=no_installer)
    assert str(world.prefix) in caught.value.what()
    assert tree_of(world.prefix) == before


BAD_STEPS = [
    (WriteFile(path="../x", text=""), LeavesPrefix),
    (WriteFile(path="/etc/x", text=""), LeavesPrefix),
    (WriteFile(path="bin/../../x", text=""), LeavesPrefix),
    (WriteFile(path="", text=""), BadInput),
    (WriteFile(path="bin//x", text=""), BadInput),
    (WriteFile(path="bin/x", text="", mode=0o4755), BadInput),
    (WriteFile(path=".stackfix/x", text=""), BadInput),
    (SetAside(path=".stackfix"), BadInput),
    (WriteFile(path="away/x", text=""), LeavesPrefix),
    (SetAside(path="round/x"), LeavesPrefix),
    (MakeLink(path="lib/x", target="../../out.txt"), LeavesPrefix),
    (MakeLink(path="lib/x", target="/etc/passwd"), LeavesPrefix),
    (MakeLink(path="lib/x", target="../away/passwd"), LeavesPrefix),
    (MakeLink(path="lib/x", target=""), BadInput),
    (wheel_step(site="../env/lib"), LeavesPrefix),
    (wheel_step(site="lib/none"), BadInput),
    (wheel_step(site="away"), LeavesPrefix),
    (wheel_step(source="demo --index-url=http://x", project="demo x"), BadInput),
]


@pytest.mark.parametrize(("step", "error"), BAD_STEPS, ids=lambda value: str(value)[:60])
def test_a_step_that_leaves_the_prefix_is_refused(world: World, step: WriteFile, error: type[BadInput]) -> None:
    (world.prefix / "away").symlink_to("/etc")
    (world.prefix / "round").symlink_to("round")
    before = tree_of(world.prefix)
    plan = Plan(prefix=str(world.prefix), actions=(action("one-1", "relink", step),), left=())
    with pytest.raises(error):
        apply_plan(plan, world.prefix, installer=no_installer)
    assert tree_of(world.prefix) == before


def test_a_plan_of_another_environment_is_refused(world: World) -> None:
    plan = replace(whole_plan(world), prefix="/somewhere/else")
    with pytest.raises(BadInput, match="somewhere"):
        apply_plan(plan, world.prefix, installer=no_installer)
    with pytest.raises(BadInput):
        apply_plan(plan, world.prefix / "none", installer=no_installer)


def test_an_externally_managed_python_is_refused_unless_told(world: World) -> None:
    (world.prefix / "pyvenv.cfg").unlink()
    world.write("lib/python3.11/EXTERNALLY-MANAGED", "")
    plan = whole_plan(world)
    before = tree_of(world.prefix)
    with pytest.raises(ExternallyManaged):
        apply_plan(plan, world.prefix, installer=no_installer)
    assert tree_of(world.prefix) == before
    apply_plan(plan, world.prefix, installer=fake_installer(world), break_system=True)
    undo(world.prefix)
    assert tree_of(world.prefix) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize("path", [".", "bin", "lib/stale", "bin/activate", SITE])
def test_what_belongs_to_another_user_is_refused(world: World, path: str) -> None:
    plan = whole_plan(world)
    os.chown(world.prefix / path, 12345, -1)
    before = tree_of(world.prefix)
    with pytest.raises(NotOurs, match="12345"):
        apply_plan(plan, world.prefix, installer=no_installer)
    assert tree_of(world.prefix) == before


def as_nobody(work: Callable[[], None]) -> str:
    """What `work` raises in a child that is an ordinary user: root is refused nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            work()
            os.write(writer, b"nothing")
        except BaseException as error:          # noqa: BLE001 - told to the parent
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as stream:
        return stream.read().decode()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_folder_without_write_permission_is_refused(world: World) -> None:
    plan = whole_plan(world)
    for path in [world.prefix, *world.prefix.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    world.folder.chmod(0o755)
    if any(folder.stat().st_mode & 0o001 == 0 for folder in world.folder.parents):
        pytest.skip("another user cannot get to the folder of this test")
    (world.prefix / "bin").chmod(0o555)
    before = tree_of(world.prefix)
    said = as_nobody(lambda: void(apply_plan(plan, world.prefix, installer=no_installer)))
    assert said.startswith("CannotWrite")
    assert "bin" in said
    (world.prefix / "bin").chmod(0o755)
    (world.prefix / "lib/stale").chmod(0o500)
    plan = plan_of(world, SetAside(path="lib/stale"))
    said = as_nobody(lambda: void(apply_plan(plan, world.prefix, installer=no_installer)))
    assert said.startswith("CannotWrite")
    (world.prefix / "lib/stale").chmod(0o750)
    assert tree_of(world.prefix) == before | {
        "bin": tree_of(world.prefix)["bin"], "lib/stale": tree_of(world.prefix)["lib/stale"]}


def void(_: object) -> None:
    """Nothing."""


def test_a_file_system_that_is_mounted_read_only_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = whole_plan(world)
    real = os.fstatvfs(0)
    read_only = os.statvfs_result((*real[:8], os.ST_RDONLY, real[9]))
    monkeypatch.setattr("stackfix.apply.managed.os.fstatvfs", lambda _: read_only)
    with pytest.raises(CannotWrite, match="read-only"):
        apply_plan(plan, world.prefix, installer=no_installer)


def test_a_real_read_only_mount_is_refused(world: World) -> None:
    plan = whole_plan(world)
    mount = ["mount", "--bind", str(world.prefix), str(world.prefix)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs root to mount a folder read-only")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(world.prefix)], check=True)
        with pytest.raises(CannotWrite, match="read-only"):
            apply_plan(plan, world.prefix, installer=no_installer)
        assert pending(world.prefix) is None
    finally:
        subprocess.run(["umount", str(world.prefix)], check=True)


def test_too_little_room_is_told_before_the_first_step(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = whole_plan(world)
    before = tree_of(world.prefix)
    real = os.fstatvfs(0)
    monkeypatch.setattr("stackfix.apply.preflight.os.fstatvfs",
                        lambda _: os.statvfs_result((*real[:3], 1, 1, *real[5:])))
    with pytest.raises(NoSpace):
        apply_plan(plan, world.prefix, installer=no_installer)
    assert tree_of(world.prefix) == before


def test_a_failing_installer_leaves_all_as_it_was(world: World) -> None:
    before = tree_of(world.prefix)

    def fails(step: InstallWheel, into: Path) -> None:
        (into / "half").mkdir()
        raise Unreachable(step.file, "the network is gone")

    with pytest.raises(Unreachable, match="network"):
        apply_plan(whole_plan(world), world.prefix, installer=fails)
    assert tree_of(world.prefix) == before


@pytest.mark.parametrize("files", [
    {"demo-3.0.dist-info/METADATA": "Name: demo\nVersion: 3.0\n"},
    {"demo-2.0.dist-info/METADATA": "Name: demon\nVersion: 2.0\n"},
    {"demo.py": ""},
])
def test_another_release_than_the_plan_says_is_refused(world: World, files: dict[str, str]) -> None:
    before = tree_of(world.prefix)

    def brings(step: InstallWheel, into: Path) -> None:
        for path, text in {**files, "demo-2.0.dist-info/x": ""}.items():
            (into / SITE / path).parent.mkdir(parents=True, exist_ok=True)
            (into / SITE / path).write_text(text, encoding="utf-8")

    with pytest.raises(Unreachable, match=r"not demo 2\.0"):
        apply_plan(whole_plan(world), world.prefix, installer=brings)
    assert tree_of(world.prefix) == before


def test_a_failing_step_takes_the_ones_before_back(world: World) -> None:
    before = tree_of(world.prefix)
    plan = whole_plan(world)
    last = action("two-2", "remove-shadow", SetAside(path="lib/never/was"))
    with pytest.raises(StepFailed, match="nothing is there"):
        apply_plan(replace(plan, actions=(*plan.actions, last)), world.prefix, installer=fake_installer(world))
    assert tree_of(world.prefix) == before
    assert pending(world.prefix) is None


def test_a_plan_that_says_something_else_than_its_steps_is_taken_back(world: World) -> None:
    before = tree_of(world.prefix)
    plan = plan_of(world, SetAside(path="lib/stale"), after={"lib/stale": Node(kind="folder")})
    with pytest.raises(StepFailed, match="lib/stale is gone"):
        apply_plan(plan, world.prefix, installer=no_installer)
    assert tree_of(world.prefix) == before


def test_an_interrupt_takes_all_back(world: World) -> None:
    before = tree_of(world.prefix)

    def interrupt(words: str) -> None:
        if words.startswith("install"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply_plan(whole_plan(world), world.prefix, installer=fake_installer(world), progress=interrupt)
    assert tree_of(world.prefix) == before


@pytest.mark.parametrize(("installer", "reason"), [("conda\n", "conda"), (None, "RECORD")])
def test_a_package_that_cannot_be_taken_out_is_refused(world: World, installer: str | None, reason: str) -> None:
    info = world.prefix / SITE / "demo-1.0.dist-info"
    if installer is None:
        (info / "RECORD").unlink()
    else:
        (info / "INSTALLER").unlink()
        (info / "INSTALLER").write_text(installer, encoding="utf-8")
    before = tree_of(world.prefix)
    with pytest.raises(BadInput, match=reason):
        apply_plan(plan_of(world, wheel_step()), world.prefix, installer=no_installer)
    assert tree_of(world.prefix) == before


def test_a_new_package_needs_nothing_to_replace(world: World) -> None:
    before = tree_of(world.prefix)
    fresh = FakeInstaller(world, {"fresh.py": "fresh = 1\n",
                                  "fresh-1.0.dist-info/METADATA": "Name: fresh\nVersion: 1.0\n"})
    step = wheel_step(project="fresh", version="1.0", site=SITE.replace("lib/", "lib64/", 1), replaces=())
    apply_plan(plan_of(world, step), world.prefix, installer=fresh)
    assert (world.prefix / SITE / "fresh.py").exists()
    assert node(world.prefix / "lib64") == Node(kind="link", target="lib")
    undo(world.prefix)
    assert tree_of(world.prefix) == before


@pytest.mark.parametrize("row", [".stackfix/0001/journal", ".stackfix/lock", ".stackfix/own", ".stackfix"])
def test_a_record_that_names_our_own_folder_is_believed_in_all_else(row: str, world: World) -> None:
    """No such file is there when the plan is made, and one is when it is applied."""
    record = world.prefix / SITE / "demo-1.0.dist-info" / "RECORD"
    with record.open("a", encoding="utf-8") as stream:
        stream.write(f"../../../{row},,\n")
    before = tree_of(world.prefix)
    apply_plan(plan_of(world, SetAside(path="lib/stale")), world.prefix, installer=no_installer)
    (world.prefix / ".stackfix" / "own").touch()
    done = apply_plan(plan_of(world, wheel_step()), world.prefix, installer=fake_installer(world))
    assert not [each.path for each in done.kept if each.path.startswith(".stackfix")]
    undo(world.prefix)
    undo(world.prefix)
    (world.prefix / ".stackfix" / "own").unlink()
    (world.prefix / ".stackfix").rmdir()
    assert tree_of(world.prefix) == before


def test_a_wheel_with_files_in_our_own_folder_is_refused(world: World) -> None:
    before = tree_of(world.prefix)
    brings = FakeInstaller(world, {**NEW, "../../../.stackfix/0001/journal": "forged\n"})
    with pytest.raises(BadInput, match="where transactions are kept"):
        apply_plan(plan_of(world, wheel_step()), world.prefix, installer=brings)
    assert tree_of(world.prefix) == before
    assert pending(world.prefix) is None
