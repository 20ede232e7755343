"""Files against what their owners recorded: missing, changed, claimed twice, outside."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from stackfix.inspect.environment import inspect_installation
from stackfix.inspect.environment_files import InstalledFiles
from stackfix.inspect.environment_find import Found
from stackfix.inspect.environment_records import Environment, FileClaim, Note, Owner, SharedFile
from stackfix.inspect.places import Root
from tests.inspect_trees import (
    SITE,
    conda_package,
    dist_info,
    link,
    look,
    make_venv,
    make_wheel,
    pip_install,
    plain_venv,
    uv_install,
    write,
)

SP = "/venv/lib/python3.11/site-packages"


def faults(environment: Environment) -> list[tuple[str, str, str]]:
    return [(each.kind, each.path.removeprefix(f"{SP}/"), each.owner.name) for each in environment.file_faults]


@pytest.mark.parametrize("install", [pip_install, uv_install], ids=["pip", "uv"])
def test_what_an_installer_installed_is_right_until_it_is_changed(tmp_path: Path, install: object) -> None:
    assert callable(install)
    venv = make_venv(tmp_path / "venv")
    install(venv, make_wheel(tmp_path, "demo", "1.0", {
        "demo/__init__.py": b"x = 1\n", "demo/a, b.py": b"", "demo/caf\u00e9.py": b"", "demo/lib/libdemo.so.1": b"v1",
        "demo-1.0.data/scripts/tool": b"#!python\nprint()\n"}))
    environment = look(venv, deep=True)
    assert environment.file_faults == ()
    assert environment.notes == ()
    assert environment.shared_files == ()
    (venv / SITE / "demo" / "__init__.py").write_bytes(b"x = 2\n")
    (venv / SITE / "demo" / "lib" / "libdemo.so.1").write_bytes(b"v10")
    (venv / SITE / "demo" / "a, b.py").unlink()
    (venv / "bin" / "tool").unlink()
    where = [(each.kind, each.path.removeprefix(f"{venv}/")) for each in look(venv).file_faults]
    assert where == [("missing", "bin/tool"), ("missing", f"{SITE}/demo/a, b.py"),
                     ("size", f"{SITE}/demo/lib/libdemo.so.1")]
    deep = look(venv, deep=True).file_faults
    changed = next(each for each in deep if each.kind == "hash")
    assert len(deep) == 4
    assert (changed.expected, changed.found) == tuple(hashlib.sha256(b"x = %d\n" % x).hexdigest() for x in (1, 2))
    assert changed.owner == Owner(manager="pip", name="demo", version="1.0")


def test_a_target_folder_of_pip_on_pythonpath(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / "venv")
    pip_install(venv, "--target", tmp_path / "target", make_wheel(tmp_path, "demo", "1.0", {
        "demo.py": b"1", "demo-1.0.data/scripts/tool": b"#!python\nprint()\n"}))
    environ = {"PYTHONPATH": str(tmp_path / "target")}
    assert (tmp_path / "target" / "bin" / "tool").is_file()
    assert look(venv, environ).file_faults == ()
    (tmp_path / "target" / "bin" / "tool").unlink()
    assert [(each.kind, each.path) for each in look(venv, environ).file_faults] == [
        ("missing", f"{tmp_path}/target/bin/tool")]


def test_two_wheels_own_one_path(tmp_path: Path) -> None:
    """nvidia-cutlass-dsl: the last one that was extracted wins, and exactly one RECORD matches."""
    venv = make_venv(tmp_path / "venv")
    for name, body in (("dsl_base", b"base"), ("dsl_cu13", b"cu13!")):
        pip_install(venv, make_wheel(tmp_path, name, "4.5.1", {
            "dsl/lib/libdsl.so": body, "nvidia/__init__.py": b"", f"{name}/__init__.py": b""}))
    environment = look(venv)
    base, cu13 = (Owner(manager="pip", name=name, version="4.5.1") for name in ("dsl-base", "dsl-cu13"))
    library, empty = environment.shared_files
    assert (library.path, library.same) == (f"{venv}/{SITE}/dsl/lib/libdsl.so", False)
    assert library.claims == (
        FileClaim(owner=base, size=4, sha256=hashlib.sha256(b"base").hexdigest()),
        FileClaim(owner=cu13, size=5, sha256=hashlib.sha256(b"cu13!").hexdigest()))
    assert (empty.path, empty.same) == (f"{venv}/{SITE}/nvidia/__init__.py", True)
    assert [(each.kind, each.owner, each.expected, each.found) for each in environment.file_faults] == [
        ("size", base, "4", "5")]


def test_paths_that_leave_the_prefix_are_noted_and_not_followed(tmp_path: Path) -> None:
    site = plain_venv(tmp_path)
    write(tmp_path, "etc/passwd", "root")
    write(tmp_path, "venv/bin/tool", "12345")
    record = ("../../../../etc/passwd,,999\n/etc/passwd,,999\n../../../bin/tool,,5\nx/../y.py,,1\n./z.py,,1\n"
              "a/../../../../../../../../../etc/shadow,,1\n")
    dist_info(site, "demo", "1", record=record)
    write(site, "y.py", "y")
    write(site, "z.py", "z")
    environment = look("/venv", root=Root(str(tmp_path)), deep=True)
    assert faults(environment) == [("outside", path, "demo") for path in ("/etc/passwd", "/etc/passwd", "/etc/shadow")]
    assert all(each.found is None for each in environment.file_faults)


def test_links_in_the_place_of_files_and_folders(tmp_path: Path) -> None:
    site = plain_venv(tmp_path)
    for name in ("a.py", "b.py", "sub/c.py"):
        write(tmp_path, f"elsewhere/{name}", "123")
    write(site, "real.py", "123")
    link(tmp_path, "venv/" + SP.removeprefix("/venv/") + "/folder", "/elsewhere")
    link(site, "broken.py", "none.py")
    link(site, "loop.py", "loop.py")
    link(site, "inside.py", "real.py")
    link(site, "outside.py", "/elsewhere/a.py")
    link(site, "longer.py", "/elsewhere/a.py")
    (site / "folder.py").mkdir()
    sizes = {"longer.py": 4, "folder/sub/c.py": 4}
    names = ("folder/a.py", "folder/b.py", "folder/sub/c.py", "longer.py", "broken.py", "loop.py", "inside.py",
             "outside.py", "folder.py")
    record = "".join(f"{name},,{sizes.get(name, 3)}\n" for name in names)
    dist_info(site, "demo", "1", record=record)
    environment = look("/venv", root=Root(str(tmp_path)))
    assert faults(environment) == [
        ("broken-link", "broken.py", "demo"), ("outside", "folder", "demo"), ("no-file", "folder.py", "demo"),
        ("size", "longer.py", "demo"), ("broken-link", "loop.py", "demo")]
    assert environment.notes == (Note(
        path=f"{SP}/longer.py", reason="is a link that leads out of the prefix, as 2 files are"),)


def test_a_prefix_reached_through_a_link_is_no_outside(tmp_path: Path) -> None:
    site = plain_venv(tmp_path, "real/venv")
    dist_info(site, "demo", "1", {"demo.py": b"1"})
    link(tmp_path, "venv", "/real/venv")
    link(tmp_path, "real/venv/lib64", "lib")
    environment = look("/venv", root=Root(str(tmp_path)), deep=True)
    assert environment.file_faults == ()
    assert [each.metadata for each in environment.distributions] == [f"{SP}/demo-1.dist-info"]


def test_a_folder_that_cannot_be_listed_is_not_missing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may list everything here, so the refusal is put into the listing."""
    site = plain_venv(tmp_path)
    dist_info(site, "demo", "1", {"closed/a.py": b"1", "open/a.py": b"1"})
    (site / "open" / "a.py").unlink()
    real = __import__("os").scandir

    def refuse(path: str) -> object:
        if str(path).endswith("/closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr("os.scandir", refuse)
    environment = look("/venv", root=Root(str(tmp_path)))
    assert faults(environment) == [("unreadable", "closed/a.py", "demo"), ("missing", "open/a.py", "demo")]
    assert environment.file_faults[0].found == "Permission denied"


def test_what_lies_below_a_folder_that_may_not_be_entered_is_not_missing(tmp_path: Path) -> None:
    class Closed(Root):
        def resolve(self, path: str) -> str:
            if "/closed/" in path:
                raise PermissionError(13, "Permission denied", path)
            return super().resolve(path)

        def find(self, path: str) -> str | None:
            return None if "/closed/" in path else super().find(path)

    site = plain_venv(tmp_path)
    dist_info(site, "demo", "1", {"closed/deep/er/a.py": b"1", "open/deep/a.py": b"1"})
    shutil.rmtree(site / "open")
    shutil.rmtree(site / "closed" / "deep")     # as one sees it who may not enter
    environment = look("/venv", root=Closed(str(tmp_path)))
    assert faults(environment) == [("unreadable", "closed/deep/er/a.py", "demo"), ("missing", "open/deep/a.py", "demo")]


def test_a_record_with_a_thousand_folders_in_one_another(tmp_path: Path) -> None:
    deep = f"{'d/' * 1900}a.py"
    dist_info(plain_venv(tmp_path), "demo", "1", record=f"{deep},,1\n")
    assert faults(look("/venv", root=Root(str(tmp_path)))) == [("missing", deep, "demo")]


def test_compiled_files_come_and_go(tmp_path: Path) -> None:
    record = "a/__pycache__/a.cpython-311.pyc,,\na/a.py,,0\n"
    site = plain_venv(tmp_path)
    write(site, "a/a.py")
    dist_info(site, "demo", "1", record=f"{record}a/sub/__pycache__,,\n")
    dist_info(site, "other", "1", record=record)
    environment = look("/venv", root=Root(str(tmp_path)))
    assert faults(environment) == []
    assert [each.path for each in environment.shared_files] == [f"{SP}/a/a.py"]


@pytest.mark.parametrize("deep", [False, True])
def test_a_compiled_file_that_a_wheel_ships_is_compiled_anew(tmp_path: Path, *, deep: bool) -> None:
    site = plain_venv(tmp_path)
    path = "a/__pycache__/a.cpython-311.pyc"
    write(site, path, b"compiled by this interpreter")
    dist_info(site, "demo", "1", record=f"{path},sha256={'A' * 43},3\n")
    assert faults(look("/venv", root=Root(str(tmp_path)), deep=deep)) == []


def test_a_size_that_the_folder_cannot_tell_is_asked_of_the_file(tmp_path: Path) -> None:
    """A link in a file's place, and a file of two owners."""
    site = plain_venv(tmp_path)
    write(site, "a/real.py", b"12345")
    write(site, "a/both.py", b"123")
    link(site, "a/link.py", "real.py")
    dist_info(site, "demo", "1", record="a/link.py,,5\na/both.py,,3\na/real.py,,5\n")
    dist_info(site, "other", "1", record="a/both.py,,4\na/link.py,,4\n")
    environment = look("/venv", root=Root(str(tmp_path)))
    assert faults(environment) == [("size", "a/both.py", "other"), ("size", "a/link.py", "other")]


def test_conda_is_judged_by_its_own_record(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    body = b"x = 1\n"
    info = "lib/python3.11/site-packages/torch-2.3.1.dist-info"
    conda_package(prefix, "python", "3.11.7", {"lib/python3.11/os.py": b""})
    conda_package(prefix, "pytorch", "2.3.1", {
        "lib/python3.11/site-packages/torch/__init__.py": body, "lib/libc10.so": b"12", "lib/gone.so": b"1",
        f"{info}/METADATA": b"Name: torch\nVersion: 2.3.1\n", f"{info}/RECORD": b"torch/__init__.py,,999\n",
        f"{info}/INSTALLER": b"conda\n"}, more={})
    (prefix / "lib" / "gone.so").unlink()
    write(prefix, "lib/libc10.so", "123")
    environment = look("/env", root=Root(str(tmp_path)))
    pytorch = Owner(manager="conda", name="pytorch", version="2.3.1")
    assert [(each.kind, each.path, each.owner) for each in environment.file_faults] == [
        ("missing", "/env/lib/gone.so", pytorch), ("size", "/env/lib/libc10.so", pytorch)]
    assert [(each.manager, each.conda_package) for each in environment.distributions] == [("conda", "pytorch")]


def test_a_distributions_own_packages_are_not_judged(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/python3.11/os.py")
    for site, installer in (("usr/lib/python3/dist-packages", ""), ("usr/local/lib/python3.11/dist-packages", "pip")):
        name = installer or "debian"
        dist_info(tmp_path / site, name, "1", record=f"{name}.py,,1\n", installer=installer)
    assert faults(look("/usr", root=Root(str(tmp_path)))) == [
        ("missing", "/usr/local/lib/python3.11/dist-packages/pip.py", "pip")]


def test_a_removed_project_gives_so_many_faults_and_a_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stackfix.inspect.environment_judge.MAX_FAULTS", 2)
    site = plain_venv(tmp_path)
    dist_info(site, "gone", "1", record="".join(f"gone/{name}.py,,1\n" for name in "cbad"))
    dist_info(site, "other", "1", record="other.py,,1\n")
    environment = look("/venv", root=Root(str(tmp_path)))
    assert faults(environment) == [
        ("missing", "gone/a.py", "gone"), ("missing", "gone/b.py", "gone"), ("missing", "other.py", "other")]
    assert environment.notes == (Note(
        path="gone 1", reason="4 of its files are at fault: only the first 2 are listed"),)


def test_owners_of_any_path(tmp_path: Path) -> None:
    files = InstalledFiles(Root(str(tmp_path)))
    one, two = (Owner(manager="pip", name=name, version="1") for name in ("one", "two"))
    files.add(one, "/site", ("/site",), [("a", None, 1), ("a", None, 1), ("b", None, None)])
    files.add(two, "/site", ("/site",), [("b", None, None)])
    assert files.owners("/site/a") == (one,)
    assert files.owners("/site/b") == (one, two)
    assert files.owners("/site/c") == ()
    assert files.shared() == (SharedFile(path="/site/b", same=False, claims=tuple(
        FileClaim(owner=each, size=None, sha256=None) for each in (one, two))),)


def test_progress_is_told_in_bytes_from_nothing_to_all(tmp_path: Path) -> None:
    site = plain_venv(tmp_path)
    dist_info(site, "demo", "1.0", {"demo/a.py": b"12345", "demo/b.py": b"", "demo/c.py": b"123"})
    seen: list[tuple[int, int]] = []
    root, found = Root(str(tmp_path)), Found(prefix="/venv", found_via="--prefix", executable=None)
    environment, _ = inspect_installation(root, {}, found, deep=True, progress=lambda *told: seen.append(told))
    assert environment.file_faults == ()
    assert seen == [(0, 8), (5, 8), (5, 8), (8, 8)]
