"""Wheels through the real uv and the real pip, from loopback, into fresh environments."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from stackfix.apply.pending import pending, take_back
from stackfix.apply.records import Undone
from stackfix.apply.transaction import apply_plan
from stackfix.apply.undo import undo
from stackfix.apply.wheels import WheelInstaller, find_wheel_installer, requirement
from stackfix.cli.inspecting import open_view
from stackfix.cli.repair_planning import asked_of
from stackfix.cli.repairing import DiskGround, DiskPlaces
from stackfix.errors import Unreachable
from stackfix.plan.effect import Laid
from stackfix.plan.effect_wheel import changes_by
from stackfix.plan.records import InstallWheel, Plan
from stackfix.sync.errors import InstallFailed
from stackfix.sync.interpreter import find_executable, read_interpreter
from stackfix.sync.plan import installer_environment, pip_installer, uv_installer
from tests.apply_faults.apply_child import as_input
from tests.apply_faults.servers import WheelServer, serving, wheel
from tests.apply_faults.world import action, tree_of
from tests.judges.command import clean_environment

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
ROOT = Path(__file__).resolve().parent.parent
UV = (sys.executable, "-m", "uv")


@dataclass(frozen=True)
class Place:
    """An environment with demo 1.0, and the tool that works on it."""

    prefix: Path
    tool: str
    environ: Mapping[str, str]

    def installer(self, index: str) -> WheelInstaller:
        interpreter = read_interpreter(find_executable(prefix=str(self.prefix), python=None, environ={}))
        environ = {**self.environ, "PIP_INDEX_URL": f"{index}/simple", "UV_DEFAULT_INDEX": f"{index}/simple"}
        found = uv_installer(UV, interpreter) if self.tool == "uv" else pip_installer(sys.executable, interpreter)
        return WheelInstaller(installer=found, environment=installer_environment(environ))

    def says(self) -> str:
        done = subprocess.run([self.prefix / "bin/demo-tool"], capture_output=True, text=True, check=True,
                              env={**self.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        return done.stdout.strip()


@pytest.fixture(params=["uv", "pip"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    environ = clean_environment(UV_CACHE_DIR=str(tmp_path / "cache"), PIP_RETRIES="0", PIP_TIMEOUT="30",
                                UV_HTTP_TIMEOUT="30", UV_HTTP_RETRIES="0", PIP_NO_CACHE_DIR="1",
                                PIP_RESUME_RETRIES="0")
    prefix = tmp_path / "an env"
    subprocess.run([*UV, "venv", "-q", "--python", sys.executable, prefix], check=True, env=environ)
    name, content = wheel("1.0")
    (tmp_path / name).write_bytes(content)
    subprocess.run([*UV, "pip", "install", "-q", "--python", prefix / "bin/python", tmp_path / name], check=True,
                   env=environ)
    return Place(prefix=prefix, tool=request.param, environ=environ)


def plan_for(place: Place, server: WheelServer, **changes: object) -> Plan:
    fields = {"project": "demo", "version": "2.0", "file": server.name, "sha256": server.sha256,
              "source": "demo==2.0", "site": SITE, "replaces": ("demo 1.0",), **changes}
    step = InstallWheel(**fields)       # type: ignore[arg-type]
    return Plan(prefix=str(place.prefix), actions=(action("install-1", "install", step),), left=())


def test_a_release_is_replaced_and_comes_back(place: Place, tmp_path: Path) -> None:
    before, cache = tree_of(place.prefix), tree_of(tmp_path / "cache", inodes=False)
    with serving(WheelServer(*wheel("2.0", padding=9))) as server:
        done = apply_plan(plan_for(place, server), place.prefix, installer=place.installer(server.url))
    assert place.says() == "demo 2.0"
    assert not (place.prefix / SITE / "demo/only_in_1_0.py").exists()
    assert not (place.prefix / "share/demo/1.0.txt").exists()
    assert (place.prefix / "share/demo/2.0.txt").exists()
    assert not (place.prefix / SITE / "demo-2.0.dist-info/direct_url.json").exists()
    assert f"{SITE}/demo" in {kept.path for kept in done.kept}
    code = "import importlib.metadata as m; print([str(f) for f in m.files('demo') if not f.locate().exists()])"
    told = subprocess.run([place.prefix / "bin/python", "-B", "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
    undo(place.prefix)
    assert tree_of(place.prefix) == before
    assert place.says() == "demo 1.0"
    after = tree_of(tmp_path / "cache", inodes=False)
    content = {path: each[:3] for path, each in cache.items() if "wheels" in path or "archive" in path}
    assert {path: after[path][:3] for path in content} == content


def plugin(folder: Path) -> Path:
    """A wheel of another project that puts a module into demo's folder."""
    path, info = folder / "plugin-1.0-py3-none-any.whl", "plugin-1.0.dist-info"
    files = {"demo/plugins/other.py": "other = 1\n",
             f"{info}/METADATA": "Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    return path


def test_what_another_tool_installs_into_our_folders_stays_and_is_whole(place: Place, tmp_path: Path) -> None:
    before = tree_of(place.prefix)
    with serving(WheelServer(*wheel("2.0"))) as server:
        apply_plan(plan_for(place, server), place.prefix, installer=place.installer(server.url))
    tool = ((*UV, "pip"), ("--python", place.prefix / "bin/python")) if place.tool == "uv" else (
        (sys.executable, "-m", "pip", "--python", str(place.prefix / "bin/python")), ("--quiet",))
    subprocess.run([*tool[0], "install", *tool[1], plugin(tmp_path)], check=True, env=place.environ)
    undone = undo(place.prefix)
    assert undone.left == ()        # the folder was there before
    assert place.says() == "demo 1.0"
    code = ("import demo.plugins.other, importlib.metadata as m; "
            "print([str(f) for f in m.files('plugin') if not f.locate().exists()])")
    told = subprocess.run([place.prefix / "bin/python", "-B", "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
    yes = ("--yes",) if place.tool == "pip" else ()
    subprocess.run([*tool[0], "uninstall", *tool[1], *yes, "plugin"], check=True, env=place.environ)
    after = tree_of(place.prefix)
    folder = f"{SITE}/demo"         # is ours no more, and took in what was there
    assert {path: facts for path, facts in after.items() if path != folder} == {
        path: facts for path, facts in before.items() if path != folder}
    assert after[folder][:4] == before[folder][:4]


def test_an_address_is_recorded_as_one_and_may_have_a_local_version(place: Place) -> None:
    before = tree_of(place.prefix)
    with serving(WheelServer(*wheel("2.0", file_version="2.0+cu123"))) as server:
        plan = plan_for(place, server, source=server.address.replace("+", "%2B"), version="2.0+cu123")
        apply_plan(plan, place.prefix, installer=place.installer(server.url))
    told = json.loads((place.prefix / SITE / "demo-2.0.dist-info/direct_url.json").read_text(encoding="utf-8"))
    assert told["url"] == server.address.replace("+", "%2B")
    undo(place.prefix)
    assert tree_of(place.prefix) == before


def test_a_wrong_hash_changes_nothing(place: Place) -> None:
    before = tree_of(place.prefix)
    with serving(WheelServer(*wheel("2.0"))) as server, pytest.raises(InstallFailed):
        apply_plan(plan_for(place, server, sha256="1" * 64), place.prefix, installer=place.installer(server.url))
    assert tree_of(place.prefix) == before
    assert place.says() == "demo 1.0"


def test_what_a_plan_says_that_changes_is_what_changes(place: Place, tmp_path: Path) -> None:
    """Also a file of RECORD outside of the site folder, a program, and what the new release has no more."""
    record = place.prefix / SITE / "demo-1.0.dist-info/RECORD"
    (place.prefix / "share/extra.txt").write_text("")
    text = record.read_text() + "../../../share/extra.txt,,\n"
    record.unlink()         # its bytes may be uv's, too
    record.write_text(text)
    name, content = wheel("2.0", padding=9)
    (tmp_path / name).write_bytes(content)
    with serving(WheelServer(name, content)) as server:
        plan = plan_for(place, server)
        [step] = [each for each in plan.actions[0].steps if isinstance(each, InstallWheel)]
        asked = asked_of(str(place.prefix), None)
        with open_view(asked) as view, DiskGround(view, asked.root, lambda _: tmp_path / name) as ground:
            ground.laid_over(Laid(environment=view.environment, installed=view.installed, files=view.files), step)
            changes = changes_by(ground.files(step), DiskPlaces(asked.root, view.environment.prefix))
        before = tree_of(place.prefix)
        # what is not as it says before or after is refused by apply_plan itself
        apply_plan(replace(plan, actions=(replace(plan.actions[0], changes=changes),)), place.prefix,
                   installer=place.installer(server.url))
    after = tree_of(place.prefix)
    moved = {str(path) for path in {*before, *after} if before.get(path) != after.get(path)}
    told = {change.path for change in changes}
    assert "share/extra.txt" in told
    assert {path for path in moved if not any(path == each or path.startswith(f"{each}/") for each in told)
            and not path.startswith(".stackfix") and not Path(place.prefix, path).is_dir()} == set()
    assert {each for each in told if not any(path == each or path.startswith(f"{each}/") for path in moved)} == set()


def test_an_installer_is_heard_only_where_it_fails(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(WheelServer(*wheel("2.0"))) as server:
        apply_plan(plan_for(place, server), place.prefix, installer=place.installer(server.url))
        assert tuple(capfd.readouterr()) == ("", "")
        undo(place.prefix)
        with pytest.raises(InstallFailed):
            apply_plan(plan_for(place, server, sha256="1" * 64), place.prefix, installer=place.installer(server.url))
    said = capfd.readouterr()
    assert said.out == ""
    assert "hash" in said.err.lower()


@pytest.mark.parametrize("how", ["other bytes", "cut short", "gone"])
def test_an_archive_that_is_altered_after_the_plan_changes_nothing(how: str, place: Place, tmp_path: Path) -> None:
    """It lies in a folder of ours, as a wheel does that a plan was simulated with."""
    before, wheels = tree_of(place.prefix), tmp_path / "wheels"
    wheels.mkdir()
    name, content = wheel("2.0", padding=9)
    server = WheelServer(name, content)
    plan = plan_for(place, server)
    (wheels / name).write_bytes(wheel("2.0", padding=8)[1] if how == "other bytes" else content[:-9])
    if how == "gone":
        (wheels / name).unlink()
    installer = place.installer("http://127.0.0.1:9")
    words = (*installer.installer.words, "--no-index", "--find-links", str(wheels))
    from_folder = replace(installer, installer=replace(installer.installer, words=words))
    with pytest.raises(InstallFailed) as caught:
        apply_plan(plan, place.prefix, installer=from_folder)
    assert caught.value.next_step() == "its own message is above; nothing was changed"
    assert tree_of(place.prefix) == before
    assert pending(place.prefix) is None
    (wheels / name).write_bytes(content)
    apply_plan(plan, place.prefix, installer=from_folder)
    assert place.says() == "demo 2.0"
    undo(place.prefix)
    assert tree_of(place.prefix) == before


@pytest.mark.parametrize("place", ["uv"], indirect=True)
def test_no_file_of_uvs_cache_is_changed_though_the_environment_is_linked_to_it(place: Place, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    linked = replace(place, environ={**place.environ, "UV_LINK_MODE": "hardlink"})
    before, own = tree_of(cache), tree_of(place.prefix)
    files = {path: facts for path, facts in before.items() if stat.S_ISREG(int(str(facts[0])))}
    shared = {facts[-1] for facts in files.values()} & {facts[-1] for facts in own.values()}
    assert len(shared) > 5      # inodes that both have, or nothing is shown here
    with serving(WheelServer(*wheel("2.0", padding=9))) as server:
        apply_plan(plan_for(linked, server), place.prefix, installer=linked.installer(server.url))
    after = tree_of(cache)
    assert {path: after[path] for path in files} == files       # bytes, modes, link counts, inodes
    new = {facts[-1] for path, facts in after.items() if path not in before}
    assert len(new & {facts[-1] for facts in tree_of(place.prefix).values()}) > 5
    assert place.says() == "demo 2.0"
    undo(place.prefix)
    after = tree_of(cache)
    assert {path: after[path] for path in files} == files
    assert tree_of(place.prefix) == own


def test_a_server_that_dies_in_the_middle_of_a_file_changes_nothing(place: Place) -> None:
    before = tree_of(place.prefix)
    with serving(WheelServer(*wheel("2.0", padding=4000), dies=True)) as server:
        with pytest.raises(InstallFailed):
            apply_plan(plan_for(place, server), place.prefix, installer=place.installer(server.url))
        assert server.half_sent.is_set()
    assert tree_of(place.prefix) == before
    assert pending(place.prefix) is None


def start(plan: Plan, installer: WheelInstaller) -> subprocess.Popen[bytes]:
    """A process that applies the plan."""
    child = subprocess.Popen([sys.executable, "-m", "tests.apply_faults.apply_child"], stdin=subprocess.PIPE, cwd=ROOT)
    assert child.stdin is not None
    child.stdin.write(as_input(plan, installer))
    child.stdin.close()
    return child


def test_a_kill_in_the_middle_of_a_download_leaves_no_installer_behind(place: Place, tmp_path: Path) -> None:
    before = tree_of(place.prefix)
    with serving(WheelServer(*wheel("2.0", padding=4000), stalls=True)) as server:
        child = start(plan_for(place, server), place.installer(server.url))
        assert server.half_sent.wait(60)
        found = pending(place.prefix)
        assert found is not None
        assert found.running is not None
        child.kill()
        assert child.wait(60) == -signal.SIGKILL
        found = pending(place.prefix)
        assert found is not None
        assert (found.state, found.touched, found.can_complete, found.running) == ("preparing", False, False, None)
        for _ in range(100):        # the kernel needs a moment; one that waits for the server would take thirty s
            if not processes_naming(f"{place.prefix}/.stackfix"):
                break
            time.sleep(0.02)
        assert processes_naming(f"{place.prefix}/.stackfix") == []
        done = take_back(place.prefix)
    assert isinstance(done, Undone)
    assert tree_of(place.prefix) == before


def processes_naming(text: str) -> list[int]:
    """Processes with `text` in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                if text.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("place", ["uv"], indirect=True)
def test_the_installer_of_a_prefix_is_found(place: Place) -> None:
    found = find_wheel_installer(str(place.prefix), {**place.environ, "PIP_TARGET": "elsewhere"})
    assert found.installer.name == "uv"
    assert str(place.prefix / "bin/python") in found.installer.after
    assert "PIP_TARGET" not in dict(found.environment)


def test_an_installer_leaves_no_compiled_modules(place: Place) -> None:
    (place.prefix / SITE / "starts.pth").write_text("import started_with_python\n")
    (place.prefix / SITE / "started_with_python.py").touch()
    before = tree_of(place.prefix)
    with serving(WheelServer(*wheel("2.0"))) as server:
        asked = place.installer(server.url)
        found = find_wheel_installer(str(place.prefix), dict(asked.environment))
        apply_plan(plan_for(place, server), place.prefix, installer=replace(found, installer=asked.installer))
    assert not list(place.prefix.rglob("started_with_python.*.pyc"))
    undo(place.prefix)
    assert tree_of(place.prefix) == before


@pytest.mark.parametrize("place", ["uv"], indirect=True)
def test_an_installer_that_is_not_there_is_told(place: Place) -> None:
    before = tree_of(place.prefix)
    with serving(WheelServer(*wheel("2.0"))) as server:
        installer = place.installer(server.url)
        gone = WheelInstaller(installer=type(installer.installer)(name="uv", words=("/nowhere/uv",), after=()),
                              environment=installer.environment)
        with pytest.raises(Unreachable, match="cannot be started"):
            apply_plan(plan_for(place, server), place.prefix, installer=gone)
    assert tree_of(place.prefix) == before


@pytest.mark.parametrize("place", ["uv"], indirect=True)
def test_an_interrupt_ends_the_installer_too(place: Place) -> None:
    before = tree_of(place.prefix)
    with serving(WheelServer(*wheel("2.0", padding=4000), stalls=True)) as server:
        child = start(plan_for(place, server), place.installer(server.url))
        assert server.half_sent.wait(60)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        assert processes_naming(f"{place.prefix}/.stackfix") == []
    assert tree_of(place.prefix) == before


def test_a_requirement_is_met_by_one_file_alone() -> None:
    step = InstallWheel(project="demo", version="2.0", file="", sha256="ab", source="demo==2.0", site=SITE, replaces=())
    assert requirement(step) == "demo==2.0 --hash=sha256:ab\n"
