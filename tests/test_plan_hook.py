"""The preload hook in real interpreters: which library wins, and that nothing else of importing is different."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.plan.hook import hook_steps
from stackfix.plan.records import SetAside, WriteFile
from tests.hook_world import GOOD, LIBRARIES, MAPS, MINORS, World, compile_stack, make_world, write

pytestmark = pytest.mark.skipif((platform.system(), platform.machine(), bool(shutil.which("gcc"))) != (
    "Linux", "x86_64", True), reason="gcc makes the libraries, for x86_64 Linux")
WINNER = MAPS + "print(sorted({line.split(maxsplit=5)[-1] for line in maps.splitlines() if 'libjit' in line}))\n"
HOOKS = "import sys; print([type(each).__name__ for each in sys.meta_path].count('Finder'))\n"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stack") / "site"
    compile_stack(folder)
    return folder


@pytest.fixture(scope="module", params=MINORS)
def plain(request: pytest.FixtureRequest, stack: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The environment before the repair."""
    return made(request.param, stack, tmp_path_factory.mktemp("plain") / "a prefix")


@pytest.fixture(scope="module", params=MINORS)
def world(request: pytest.FixtureRequest, stack: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The environment with the hook. Tests leave it as it was."""
    found = made(request.param, stack, tmp_path_factory.mktemp("hooked") / "a prefix")
    write(found.prefix, hook_steps(found.place, LIBRARIES, found.minor))
    return found


@pytest.fixture
def fresh(stack: Path, tmp_path: Path) -> World:
    """An environment of this very Python's minor to be changed."""
    return made(f"{sys.version_info.major}.{sys.version_info.minor}", stack, tmp_path / "prefix")


def made(minor: str, stack: Path, prefix: Path) -> World:
    try:
        return make_world(minor, stack, prefix)
    except LookupError:
        pytest.skip(f"no Python {minor} with ctypes and venv here")


def winner_is_ours(world: World, said: str) -> bool:
    return GOOD in said and "hostile" not in said


def test_without_the_hook_the_shadow_wins(plain: World) -> None:
    done = plain.run("import faketorch")
    assert done.returncode == 1
    assert "undefined symbol: jit_new" in done.stderr


@pytest.mark.parametrize("options", [(), ("-I",), ("-W", "error")], ids=str)
def test_with_it_the_environments_own_library_is_mapped(world: World, options: tuple[str, ...]) -> None:
    assert winner_is_ours(world, world.says("import faketorch\n" + WINNER, *options))


def test_stackfix_is_not_needed(world: World) -> None:
    """It was never installed in this environment; nor is anything of it imported."""
    said = world.says("import importlib.util, sys; print(importlib.util.find_spec('stackfix'))\nimport faketorch\n"
                      f"print([name for name in sys.modules if name.startswith('stackfix')])\n{WINNER}")
    assert said.startswith("None\n[]\n")
    assert winner_is_ours(world, said)


def test_no_site_no_hook(world: World) -> None:
    """-S runs no .pth file: docs/repair.md says so."""
    done = world.run(f"import sys; sys.path.append({str(world.site)!r}); import faketorch", "-S")
    assert "undefined symbol: jit_new" in done.stderr


def test_finding_loads_nothing(world: World) -> None:
    said = world.says(f"""
import importlib.machinery, importlib.util, pickle, copy, sys
spec = importlib.util.find_spec("faketorch")
assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
assert spec.loader.__class__ is importlib.machinery.SourceFileLoader
other = importlib.machinery.PathFinder.find_spec("faketorch")
assert spec.loader == other.loader and other.loader == spec.loader and spec == other
assert hash(spec.loader) == hash(other.loader)
assert type(pickle.loads(pickle.dumps(spec)).loader) is importlib.machinery.SourceFileLoader
assert type(copy.copy(spec.loader)) is importlib.machinery.SourceFileLoader
assert spec.loader.get_source("faketorch").startswith("from faketorch")
assert spec.loader.get_data({str(world.site / 'faketorch' / 'words.txt')!r}) == b"some words"
assert "ctypes" not in sys.modules and "faketorch" not in sys.modules
{MAPS}
assert "libjit" not in maps
import faketorch
{WINNER}""")
    assert winner_is_ours(world, said)


def test_nothing_of_it_is_left_after_the_import(world: World) -> None:
    said = world.says(f"""
import sys, importlib, importlib.machinery, importlib.resources
meta_path = sys.meta_path
{HOOKS}
import faketorch
assert type(faketorch.__spec__.loader) is importlib.machinery.SourceFileLoader
assert faketorch.__loader__ is faketorch.__spec__.loader
{HOOKS}
assert [type(each).__name__ for each in meta_path].count("Finder") == 1     # who walks the old list is not disturbed
assert importlib.reload(faketorch) is faketorch
assert importlib.resources.files(faketorch).joinpath("words.txt").read_text() == "some words"
""")
    assert said.split() == ["1", "0"]
    assert not list(world.site.glob("__pycache__/_stackfix*"))


def test_threads_processes_and_spawn(world: World) -> None:
    code = textwrap.dedent("""
        import concurrent.futures, multiprocessing, subprocess, sys, threading, time
        def winner(_=None):
            import faketorch
            return [line.split(" /")[-1] for line in open("/proc/self/maps") if "libjit" in line]
        def others(_=None):
            import json.tool, xml.dom.minidom, email.message, sqlite3, decimal
            return []
        if __name__ == "__main__":
            wait = threading.Barrier(8)
            def run(number):
                wait.wait()
                return others() if number % 2 else winner()
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                found = [each for every in pool.map(run, range(8)) for each in every]
            found += subprocess.run([sys.executable, __file__, "child"], capture_output=True, text=True,
                                    check=True).stdout.split("|") if len(sys.argv) == 1 else []
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found += [each for every in pool.map(winner, [0]) for each in every]
            print("|".join(sorted({each.strip() for each in found})))
    """)
    script = world.prefix / "threads.py"
    script.write_text(code)
    said = world.says(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert [each for each in said.split("|") if not each.endswith(GOOD)] == []
    assert GOOD in said


def test_start_up_loads_no_module_more(plain: World) -> None:
    code = "import sys; print(*sorted(sys.modules))"
    (plain.site / "empty.pth").write_text("# some Pythons load a codec to read it\n")
    before = plain.says(code)
    write(plain.prefix, steps := hook_steps(plain.place, LIBRARIES, plain.minor))
    try:
        assert plain.says(code) == before
        assert plain.says(HOOKS) == "1"
        twice = f"import site; site.addsitedir({str(plain.site)!r})\nimport faketorch\n"
        assert winner_is_ours(plain, plain.says(twice + WINNER))
        assert plain.says(twice + HOOKS) == "0"
    finally:
        for step in steps:
            (plain.prefix / step.path).unlink()


def test_what_fails_in_the_package_looks_as_it_did(fresh: World) -> None:
    write(fresh.prefix, hook_steps(fresh.place, LIBRARIES, fresh.minor))
    text = "import warnings\nwarnings.warn('old', stacklevel=2)\n1 / 0\n"
    (fresh.site / "faketorch" / "__init__.py").write_text(text)
    script = fresh.prefix / "caller.py"
    script.write_text("import faketorch\n")
    done = fresh.run(f"import runpy; runpy.run_path({str(script)!r})")
    assert f"{script}:1: UserWarning: old" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "_stackfix" not in done.stderr


@pytest.mark.parametrize("gone", ["_stackfix*_loader.py", "_stackfix*.py", "_stackfix*.pth"])
def test_it_is_silent_when_parts_are_gone(fresh: World, gone: str) -> None:
    write(fresh.prefix, hook_steps(fresh.place, LIBRARIES, fresh.minor))
    for path in fresh.site.glob(gone):
        path.unlink()
    (fresh.site / "faketorch" / "__init__.py").write_text("works = True")
    assert fresh.says("import faketorch; print(faketorch.works)") == "True"


def test_what_cannot_be_loaded_harms_nobody(fresh: World) -> None:
    broken = fresh.site / "broken.so"
    broken.write_bytes(b"\x7fELF no more")
    paths = ("nowhere/libgone.so.1", "broken.so", *LIBRARIES["faketorch"])
    write(fresh.prefix, hook_steps(fresh.place, {"faketorch": paths}, fresh.minor))
    assert winner_is_ours(fresh, fresh.says("import faketorch\n" + WINNER))
    assert fresh.run("import sys; sys.modules['ctypes'] = None; import faketorch").stderr.count("undefined symbol") == 1


def test_a_prefix_that_was_moved(fresh: World, tmp_path: Path) -> None:
    write(fresh.prefix, hook_steps(fresh.place, LIBRARIES, fresh.minor))
    moved = World(prefix=tmp_path / "else where", hostile=tmp_path / "else where" / "hostile", minor=fresh.minor)
    fresh.prefix.rename(moved.prefix)
    assert winner_is_ours(moved, moved.says("import faketorch\n" + WINNER))


def test_one_variable_switches_it_off(fresh: World) -> None:
    write(fresh.prefix, hook_steps(fresh.place, LIBRARIES, fresh.minor))
    assert "undefined symbol" in fresh.run("import faketorch", env={"STACKFIX_PRELOAD": "0"}).stderr


def test_a_package_from_elsewhere_keeps_its_own_libraries(fresh: World, tmp_path: Path) -> None:
    """PYTHONPATH goes first: that package was never judged, and may need another library of the same name."""
    write(fresh.prefix, hook_steps(fresh.place, LIBRARIES, fresh.minor))
    other = tmp_path / "other"
    (other / "faketorch").mkdir(parents=True)
    (other / "faketorch" / "__init__.py").write_text("")
    said = fresh.says(f"import faketorch\n{MAPS}print('libjit' in maps)\n{HOOKS}", env={"PYTHONPATH": str(other)})
    assert said.split() == ["False", "1"]


@pytest.mark.parametrize("how", ["path", "finder"])
def test_an_editable_package(fresh: World, tmp_path: Path, how: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "mine.py").write_text("import faketorch._C\n")
    if how == "path":
        (fresh.site / "__editable__.mine.pth").write_text(f"{source}\n")
    else:
        (fresh.site / "__editable__.mine.pth").write_text("import __editable___mine_finder as f; f.install()\n")
        (fresh.site / "__editable___mine_finder.py").write_text(textwrap.dedent(f"""
            import sys
            from importlib.util import spec_from_file_location
            class Finder:
                @classmethod
                def find_spec(cls, name, path=None, target=None):
                    return spec_from_file_location(name, {str(source / 'mine.py')!r}) if name == "mine" else None
            def install():
                sys.meta_path.append(Finder)
        """))
    libraries = {"mine": LIBRARIES["faketorch"]}
    write(fresh.prefix, hook_steps(fresh.place, libraries, fresh.minor))
    assert "undefined symbol" in fresh.run("import mine").stderr
    write(fresh.prefix, hook_steps(fresh.place, libraries, fresh.minor, elsewhere={"mine": str(source)}))
    assert winner_is_ours(fresh, fresh.says("import mine\n" + WINNER))


def test_a_module_that_is_an_extension(world: World, tmp_path: Path) -> None:
    """Its file is loaded before it is executed, when the module is created."""
    assert "undefined symbol" in world.run("import fakesingle").stderr
    write(world.prefix, steps := hook_steps(world.place, {"fakesingle": LIBRARIES["faketorch"]}, world.minor))
    try:
        assert winner_is_ours(world, world.says("import fakesingle\n" + WINNER))
    finally:
        for step in steps:
            (world.prefix / step.path).unlink()


def test_packages_in_a_zip_file_and_namespaces(fresh: World) -> None:
    shutil.make_archive(str(fresh.site / "zipped"), "zip", _folder_with(fresh.prefix / "in", "faketorch",
                                                                        "import fakesingle\n"))
    shutil.rmtree(fresh.site / "faketorch")
    (fresh.site / "zipped.pth").write_text("zipped.zip\n")
    libraries = dict.fromkeys(("faketorch", "fakelibs"), LIBRARIES["faketorch"])
    write(fresh.prefix, hook_steps(fresh.place, libraries, fresh.minor))
    code = "import fakelibs, faketorch; print(type(faketorch.__loader__).__name__, fakelibs.__path__)\n"
    said = fresh.says(code + WINNER)
    assert said.startswith("zipimporter _NamespacePath(")
    assert winner_is_ours(fresh, said)


def _folder_with(folder: Path, package: str, text: str) -> Path:
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text(text)
    return folder


BY_HAND = """
import importlib.util
spec = importlib.util.find_spec("faketorch")
module = importlib.util.module_from_spec(spec)
import sys; sys.modules["faketorch"] = module
spec.loader.exec_module(module)
"""
LAZY = """
import importlib.util, sys
spec = importlib.util.find_spec("faketorch")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = sys.modules["faketorch"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert "libjit" not in open("/proc/self/maps").read()
module._C
"""
WRAPPED = """
import sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name != "faketorch":
            return None
        for finder in sys.meta_path[1:]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                first = spec.loader.exec_module
                def exec_module(module):
                    print("watched")
                    return first(module)
                spec.loader.exec_module = exec_module
                return spec
sys.meta_path.insert(0, Watch())
import faketorch
"""
CHAINED = """
import sys
class Chained:
    def __init__(self, loader):
        self.loader = loader
    def __getattr__(self, name):
        return getattr(self.loader, name)
    def exec_module(self, module):
        print("chained")
        self.loader.exec_module(module)
class Watch:
    def find_spec(self, name, path=None, target=None):
        for finder in sys.meta_path[1:] if name == "faketorch" else ():
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = Chained(spec.loader)
                return spec
sys.meta_path.insert(0, Watch())
import faketorch
"""


@pytest.mark.parametrize("code", [BY_HAND, LAZY, WRAPPED, CHAINED], ids=["by hand", "lazy", "method", "wrapper"])
def test_other_ways_to_import(world: World, code: str) -> None:
    said = world.says(code + WINNER)
    assert winner_is_ours(world, said)
    assert said.startswith({WRAPPED: "watched", CHAINED: "chained"}.get(code, "["))


def test_below_pytest(fresh: World) -> None:
    """Assertions are rewritten by an import hook that comes before ours."""
    write(fresh.prefix, hook_steps(fresh.place, LIBRARIES, fresh.minor))
    tests = fresh.prefix / "tests"
    tests.mkdir()
    (tests / "test_it.py").write_text("import faketorch\ndef test_it():\n    found = [1]\n    assert found == [2]\n")
    code = f"import site; site.addsitedir({str(fresh.site)!r}); import pytest; pytest.main(['-q', {str(tests)!r}])"
    done = subprocess.run([sys.executable, "-c", code], env={"LD_LIBRARY_PATH": str(fresh.hostile)}, check=False,
                          cwd=tests, capture_output=True, text=True, timeout=120)
    assert "assert [1] == [2]" in done.stdout
    assert "1 failed" in done.stdout


def test_two_environments_with_a_hook_each(fresh: World, stack: Path, tmp_path: Path) -> None:
    """A venv that sees the packages of another environment starts both."""
    base = tmp_path / "base"
    shutil.copytree(stack, base)
    write(tmp_path, hook_steps("base", {"faketorch": LIBRARIES["faketorch"]}, fresh.minor))
    write(fresh.prefix, hook_steps(fresh.place, {"fakesingle": LIBRARIES["faketorch"]}, fresh.minor))
    shutil.rmtree(fresh.site / "faketorch")
    said = fresh.says(f"import site; site.addsitedir({str(base)!r})\n{HOOKS}import faketorch\n{WINNER}")
    assert said.startswith("2")
    assert str(base / GOOD) in said
    assert "hostile" not in said


def test_start_files_where_python_reads_them(stack: Path, tmp_path: Path) -> None:
    world = made("3.15", stack, tmp_path / "a prefix")
    assert "undefined symbol: jit_new" in world.run("import faketorch").stderr
    write(world.prefix, steps := hook_steps(world.place, LIBRARIES, world.minor))
    assert [Path(step.path).suffix for step in steps] == [".py", ".py", ".start"]
    for options in ((), ("-I",)):
        assert winner_is_ours(world, world.says("import faketorch\n" + WINNER, *options))
    found = "import importlib.util; importlib.util.find_spec('faketorch')\n"
    assert "libjit" not in world.says(f"{found}{MAPS}print('libjit' in maps and maps)")


def test_start_files(fresh: World) -> None:
    """PEP 829, by its own rule: pkgutil resolves the entry point of each line, and it is called without arguments."""
    steps = hook_steps(fresh.place, LIBRARIES, "3.15")
    assert [Path(step.path).suffix for step in steps] == [".py", ".py", ".start"]
    write(fresh.prefix, steps)
    code = textwrap.dedent(f"""
        import pkgutil, re
        for line in open({str(fresh.prefix / steps[-1].path)!r}, encoding="utf-8-sig").read().splitlines():
            assert re.fullmatch(r"[a-z_]\\w*(\\.[a-z_]\\w*)*:[a-z_]\\w*", line), line
            pkgutil.resolve_name(line)()
        import faketorch
    """)
    assert winner_is_ours(fresh, fresh.says(code + WINNER))


def test_names_follow_the_content_and_older_hooks_go() -> None:
    one = hook_steps("lib/site", {"a": ("x/liba.so",)}, "3.11")
    two = hook_steps("lib/site", {"a": ("x/libb.so",)}, "3.11", present=("other.pth", *names(one)))
    again = hook_steps("lib/site", {"a": ("x/libb.so",)}, "3.11", present=names(two))
    assert [step.path for step in two if isinstance(step, SetAside)] == sorted(step.path for step in one)
    assert again == tuple(step for step in two if isinstance(step, WriteFile))
    assert hook_steps("lib/site", {"a": ()}, "3.11") == ()


def names(steps: tuple[WriteFile | SetAside, ...]) -> list[str]:
    return [step.path.rpartition("/")[2] for step in steps if isinstance(step, WriteFile)]


@pytest.mark.parametrize(("site", "libraries"), [
    ("../site", {"a": ("liba.so",)}), ("/site", {"a": ("liba.so",)}), ("site", {"a": ("../liba.so",)}),
    ("site", {"a": ("/usr/lib/liba.so",)}), ("site", {"a.b": ("liba.so",)}), ("site", {"a": ("lib\udcff.so",)}),
    ("site", {"a": ("x/../../liba.so",)}), ("site", {"a'": ("liba.so",)}),
])
def test_what_leaves_the_folder_is_refused(site: str, libraries: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(BadInput):
        hook_steps(site, libraries, "3.11")


PARTS = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12).filter(
    lambda part: part not in {".", ".."})
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(["torch", "ünï", "a"]), min_size=1,
                       values=st.lists(PATHS | st.just("<module><libraries>"), min_size=1, unique=True)))
def test_any_path_comes_through(libraries: dict[str, list[str]]) -> None:
    steps = hook_steps("site", libraries, "3.11")
    space: dict[str, object] = {"__file__": "/prefix/site/x.py", "__name__": "x"}
    exec(compile(text_of(steps[0]), "x.py", "exec"), space)     # noqa: S102 - this text is what is tested
    assert space["LIBRARIES"] == {name: tuple(paths) for name, paths in libraries.items()}
    assert space["SITE"] == "/prefix/site"


def text_of(step: WriteFile | SetAside) -> str:
    assert isinstance(step, WriteFile)
    return step.text
