"""What an installation changes, path by path: the same that applying it does."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from stackfix.cli.repairing_files import files_of, scripts_of
from stackfix.errors import BadInput
from stackfix.inspect.environment_records import Owner
from stackfix.plan.effect_wheel import Coming, Going, WheelFiles, changes_by
from stackfix.plan.records import Change, Node
from tests.case_worlds import install_torch, linked
from tests.diagnose_world import World, lib
from tests.plan_world import Shelf, kinds, plan_of, shelf_for

NCCL = "nvidia-nccl-cu12"
ABSENT, FOLDER = Node(kind="absent"), Node(kind="folder")


class Disk:
    """Fills plan.effect_world.Places: path -> the content of a file, None for a folder."""

    def __init__(self, **files: str | None) -> None:
        self.files = {path.replace("__", "/"): text for path, text in files.items()}

    def node(self, path: str) -> Node:
        if path not in self.files:
            return ABSENT
        text = self.files[path]
        return FOLDER if text is None else Node(kind="file", sha256=hashlib.sha256(text.encode()).hexdigest())

    def text(self, path: str) -> str | None:
        return self.files.get(path)

    def names(self, folder: str) -> tuple[str, ...]:
        raise AssertionError(folder)


def coming(path: str, text: str = "x") -> Coming:
    return Coming(path=path, size=len(text), sha256=hashlib.sha256(text.encode()).hexdigest())


def test_a_folder_that_goes_and_comes_is_one_change() -> None:
    files = WheelFiles(going=(Going(path="s/nv/a", kind="folder", files=9, size=90),),
                       coming=(coming("s/nv/a/lib/one"), coming("s/nv/a/two")))
    assert changes_by(files, Disk(s=None, s__nv=None, s__nv__a=None)) == (
        Change(path="s/nv/a", before=FOLDER, after=FOLDER, files=2, size=2),)


def test_what_is_new_is_named_by_its_topmost_folder_and_what_goes_by_itself() -> None:
    files = WheelFiles(going=(Going(path="s/a-1", kind="folder", files=3, size=7),), coming=(coming("s/a-2/x/y"),))
    assert changes_by(files, Disk(s=None)) == (
        Change(path="s/a-1", before=FOLDER, after=ABSENT, files=3, size=7),
        Change(path="s/a-2", before=ABSENT, after=FOLDER, files=1, size=1))


def test_a_file_that_stays_the_same_is_no_change_and_another_one_is() -> None:
    files = WheelFiles(coming=(coming("s/same.py", "a"), coming("s/other.py", "b")))
    [change] = changes_by(files, Disk(**{"s": None, "s__same.py": "a", "s__other.py": "a"}))
    assert (change.path, change.before.kind, change.after.kind, change.files) == ("s/other.py", "file", "file", 1)


def test_programs_of_a_wheel_are_known_before_it_is_installed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a-1-py3-none-any.whl", "w") as archive:
        archive.writestr("a-1.dist-info/entry_points.txt",
                         "[console_scripts]\nrun-a = a:main [x]\nrun_b=a:b\n"
                         "[gui_scripts]\nshow=a:c\n[other]\nno = a:d\n")
        archive.writestr("a-1.data/scripts/old.sh", "")
        archive.writestr("a-1.data/data/share/x", "")
    assert sorted(scripts_of(tmp_path / "a-1-py3-none-any.whl")) == ["old.sh", "run-a", "run_b", "show"]


# --- of a machine ---


def old_nccl(folder: Path) -> tuple[World, Shelf]:
    world = install_torch(World(folder / "machine"), "2.3.1", nccl="2.18.1")
    return world, shelf_for(world).put(NCCL, "2.20.5")


def with_row(world: World, row: str) -> None:
    """RECORD of the old NCCL with one row more."""
    [record] = world.host(world.site).glob("nvidia_nccl_cu12-*.dist-info/RECORD")
    record.write_text(record.read_text() + f"{row},,\n")


def test_a_row_that_leads_out_of_the_site_folder_is_told(tmp_path: Path) -> None:
    world, shelf = old_nccl(tmp_path)
    world.write(f"{world.prefix}/share/nccl.conf", "")
    with_row(world, "../../../share/nccl.conf")
    [action] = plan_of(world, shelf).actions
    gone = {each.path for each in action.changes if each.after.kind == "absent"}
    assert "share/nccl.conf" in gone or "share" in gone


@pytest.mark.parametrize("own", ["bin/python", "pyvenv.cfg"])
def test_an_installation_never_takes_the_environment_itself_away(own: str, tmp_path: Path) -> None:
    """An installer that replaced the release would remove whatever its RECORD lists."""
    world, shelf = old_nccl(tmp_path)
    assert kinds(plan_of(world, shelf)) == ("install",)
    with_row(world, f"../../../{own}")
    plan = plan_of(world, shelf)
    assert kinds(plan) == ()
    [left] = [each for each in plan.left if each.code == "SF201"]
    assert f"RECORD lists {own}, which is the environment's own" in left.reason
    assert left.is_refused


def test_what_goes_with_the_old_release_is_gone_in_the_simulation(tmp_path: Path) -> None:
    """A library that another package finds by RPATH, though no search would: only the old release's RECORD knows it."""
    world, shelf = old_nccl(tmp_path)
    world.wheel("other", "1.0", linked({"other/_ext.cpython-311-x86_64-linux-gnu.so": lib(
        needs=("libextra.so.1",), runpath="$ORIGIN/../../../extra")}))
    world.library(f"{world.prefix}/lib/extra/libextra.so.1", lib())
    assert kinds(plan_of(world, shelf)) == ("install",)
    with_row(world, "../../extra/libextra.so.1")
    plan = plan_of(world, shelf)
    assert kinds(plan) == ()
    assert any("libextra.so.1" in each.reason for each in plan.left)


def test_files_behind_a_link_out_of_the_prefix_are_no_plan(tmp_path: Path) -> None:
    world, shelf = old_nccl(tmp_path)
    nvidia = world.host(f"{world.site}/nvidia")
    outside = world.host("/shared/nvidia")
    outside.parent.mkdir(parents=True)
    nvidia.rename(outside)
    world.link(f"{world.site}/nvidia", "/shared/nvidia")
    plan = plan_of(world, shelf)
    assert kinds(plan) == ()
    assert any("out of" in each.reason for each in plan.left if each.code == "SF201"), plan.left


def test_a_damaged_release_is_reinstalled_and_it_is_said_what_is_gone(tmp_path: Path) -> None:
    world = install_torch(World(tmp_path / "machine"), "2.3.1")
    world.remove(f"{world.site}/nvidia/nccl/lib/libnccl.so.2")
    plan = plan_of(world, shelf_for(world).put(NCCL, "2.20.5"))
    [action] = [each for each in plan.actions if each.kind == "install"]
    assert action.summary == f"Reinstall {NCCL} 2.20.5, and nothing else: libnccl.so.2 is gone"


def test_another_release_is_not_called_the_same(tmp_path: Path) -> None:
    world, shelf = old_nccl(tmp_path)
    [action] = plan_of(world, shelf).actions
    assert action.summary.startswith(f"Install {NCCL} 2.20.5 in place of {NCCL} 2.18.1")


def test_a_wheel_with_files_among_our_transactions_is_no_candidate(tmp_path: Path) -> None:
    file, owner = tmp_path / "demo.whl", Owner(manager="pip", name="demo", version="1")
    zipfile.ZipFile(file, "w").close()
    assert files_of((), file, {}, "/env") == WheelFiles(going=(), coming=())
    with pytest.raises(BadInput, match="where transactions are kept"):
        files_of((), file, {"/env/.stackfix/0001/journal": (owner, 1, None)}, "/env")
