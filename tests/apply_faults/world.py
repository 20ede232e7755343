"""One small environment with all that a repair meets, a plan that touches all of it, and the hash of a tree."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stackfix.plan.records import (
    Action,
    Change,
    InstallConda,
    InstallWheel,
    MakeLink,
    Node,
    Plan,
    SetAside,
    Step,
    WriteFile,
)

SITE = "lib/python3.11/site-packages"
HOOK = f"{SITE}/_preload_hook.py"
SCRIPT = "etc/conda/activate.d/stack.sh"
TEXT = "export LD_LIBRARY_PATH='/a b'\n" * 4
OLD = {
    f"{SITE}/demo/__init__.py": "version = 1\n", f"{SITE}/demo/core.py": "core = 1\n",
    f"{SITE}/demo/libs/libdemo.so.1": "ELF 1\n", f"{SITE}/nvidia/__init__.py": "", "bin/demo": "#!old\n",
    f"{SITE}/demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    f"{SITE}/demo-1.0.dist-info/INSTALLER": "uv\n",
}
NEW = {
    "demo/__init__.py": "version = 2\n", "demo/more/part.py": "part = 2\n", "demo/libs/libdemo.so.2": "ELF 2\n",
    "nvidia/__init__.py": "", "nvidia/demo/lib.so": "ELF n\n",
    "demo-2.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 2.0\n",
    "../../../bin/demo": "#!new\n",
}


@dataclass(frozen=True)
class World:
    """A prefix, and beside it the cache that its files are hard links into."""

    folder: Path

    @property
    def prefix(self) -> Path:
        return self.folder / "env"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def write(self, path: str, text: str, mode: int = 0o644) -> Path:
        place = self.prefix / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        place.chmod(mode)
        return place

    def link_from_cache(self, place: Path, text: str) -> None:
        """A file as uv installs it: a hard link into the cache."""
        cached = self.cache / hashlib.sha256(text.encode() + place.name.encode()).hexdigest()
        self.cache.mkdir(exist_ok=True)
        if not cached.exists():
            cached.write_text(text, encoding="utf-8")
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(cached, place)


def make_world(folder: Path) -> World:
    """A fresh environment."""
    world = World(folder)
    world.write("pyvenv.cfg", "home = /nowhere\n")
    world.write("bin/activate", "# as the venv made it\n", 0o755)
    (world.prefix / "lib64").symlink_to("lib")
    for path, text in OLD.items():
        world.link_from_cache(world.prefix / path, text)
    world.write(f"{SITE}/demo/__pycache__/core.cpython-311.pyc", "compiled core")
    rows = ["demo-1.0.dist-info/RECORD", "../../../../../out.txt", "/etc/passwd"]
    world.write(f"{SITE}/demo-1.0.dist-info/RECORD", record_of([path.removeprefix(f"{SITE}/") for path in OLD] + rows))
    world.write(f"{SITE}/other-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    world.write(f"{SITE}/other-1.0.dist-info/RECORD", record_of(["nvidia/__init__.py", "other.py"]))
    world.write(f"{SITE}/other.py", "other = 1\n", 0o600)
    world.write(f"{SITE}/shadow.py", "shadow = 1\n")
    world.write(f"{SITE}/__pycache__/shadow.cpython-311.pyc", "compiled shadow")
    world.write("lib/libcud.so.1", "old copy\n", 0o755)
    (world.prefix / "lib/libcud.so").symlink_to("libcud.so.1")
    world.write("lib/stale/deep/a.txt", "kept\n", 0o640)
    (world.prefix / "lib/stale").chmod(0o750)
    (folder / "out.txt").write_text("outside\n", encoding="utf-8")
    return world


def record_of(paths: list[str]) -> str:
    """A RECORD; a path in bin is told from the site folder."""
    return "".join(f"{'../../../' if path.startswith('bin/') else ''}{path},,\n" for path in paths)


@contextmanager
def memory_folder(otherwise: Path) -> Iterator[Path]:
    """A folder in memory, where a sync costs nothing; `otherwise` where the machine has none."""
    if not os.access("/dev/shm", os.W_OK):      # noqa: S108 - names below are random
        yield otherwise
        return
    with tempfile.TemporaryDirectory(prefix="stackfix-apply-", dir="/dev/shm") as folder:
        yield Path(folder)


def node(path: Path) -> Node:
    """What is there, read without our own code."""
    if not os.path.lexists(path):
        return Node(kind="absent")
    if path.is_symlink():
        return Node(kind="link", target=str(path.readlink()))
    mode = stat.S_IMODE(path.lstat().st_mode)
    if path.is_dir():
        return Node(kind="folder", mode=mode)
    return Node(kind="file", mode=mode, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def text_node(text: str, mode: int = 0o644) -> Node:
    return Node(kind="file", mode=mode, sha256=hashlib.sha256(text.encode()).hexdigest())


def wheel_step(**changes: object) -> InstallWheel:
    """Demo 2.0 in place of 1.0, from an index."""
    fields = {"project": "demo", "version": "2.0", "file": "demo-2.0-py3-none-any.whl", "sha256": "0" * 64,
              "source": "demo==2.0", "site": SITE, "replaces": ("demo 1.0",), **changes}
    return InstallWheel(**fields)       # type: ignore[arg-type]


def action(identity: str, kind: str, *steps: Step, changes: tuple[Change, ...] = ()) -> Action:
    return Action(id=identity, kind=kind, summary=f"{kind} of {len(steps)}", cures=("SF101",), steps=steps,
                  changes=changes)


def plan_of(world: World, *steps: Step, after: Mapping[str, Node] | None = None) -> Plan:
    """These steps as one action, with what each path is now."""
    changes = tuple(Change(path=step.path, before=node(world.prefix / step.path), after=after_of(step, after or {}))
                    for step in steps if not isinstance(step, InstallWheel | InstallConda))
    return Plan(prefix=str(world.prefix), actions=(action("one-1", "relink", *steps, changes=changes),), left=())


def after_of(step: Step, known: Mapping[str, Node]) -> Node:
    if isinstance(step, WriteFile):
        return text_node(step.text, step.mode)
    if isinstance(step, MakeLink):
        return Node(kind="link", target=step.target)
    return known.get(getattr(step, "path", ""), Node(kind="absent"))


def whole_plan(world: World) -> Plan:
    """Every kind of step, in several folders, through a link, some of them new."""
    return plan_of(
        world,
        WriteFile(path="bin/activate", text="# with our block\n", mode=0o755),
        WriteFile(path=SCRIPT, text=TEXT),
        WriteFile(path="etc/conda/deactivate.d/stack.sh", text=TEXT, mode=0o600),
        WriteFile(path=HOOK.replace("lib/", "lib64/", 1), text="hook = True\n"),
        MakeLink(path="lib/libcud.so", target="../etc/conda/activate.d/stack.sh"),
        MakeLink(path="lib/new/libcud.so.2", target="../libcud.so.1"),
        SetAside(path=f"{SITE}/shadow.py"),
        SetAside(path="lib/stale"),
        wheel_step(),
    )


def fake_installer(world: World) -> FakeInstaller:
    return FakeInstaller(world, NEW)


@dataclass(frozen=True)
class FakeInstaller:
    """Puts files as uv does: hard links into the cache, its own lock file beside them."""

    world: World
    files: Mapping[str, str]

    def __call__(self, step: InstallWheel, into: Path) -> None:
        site = into / step.site
        for path, text in self.files.items():
            self.world.link_from_cache(Path(os.path.normpath(site / path)), text)
        info = f"{step.project}-{step.version}.dist-info"
        (site / info / "RECORD").write_text(record_of([*self.files, f"{info}/RECORD"]), encoding="utf-8")
        (into / ".lock").write_text("", encoding="utf-8")


def tree_of(folder: Path, *, inodes: bool = True) -> dict[str, tuple[object, ...]]:
    """Path -> kind, mode, bytes or target, link count, inode, of all that is in a folder; the folder itself too."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content: object = None
        if stat.S_ISLNK(status.st_mode):
            content = str(path.readlink())
        elif stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        links = status.st_nlink if not stat.S_ISDIR(status.st_mode) else None
        found[str(path.relative_to(folder))] = (
            stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), content, links,
            *((status.st_ino,) if inodes else ()))
    return found
