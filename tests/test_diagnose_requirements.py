"""SF601, SF602, SF603: requirements that are not met, companions of another torch, rules that no metadata states."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from stackfix.diagnose.finding_records import Finding
from stackfix.diagnose.requirements import find_requirement_faults
from stackfix.diagnose.requirements_judge import Judge, Unmet
from stackfix.diagnose.requirements_lines import parse_line, surely_met, surely_void
from stackfix.inspect.machine_records import Undecided
from stackfix.matrix.libraries import load_libraries
from stackfix.matrix.load import load_matrix
from stackfix.matrix.needs import load_needs
from tests.diagnose_books import books
from tests.diagnose_world import LIBRARIES, World, lib

REAL = load_libraries()


def findings(world: World) -> list[Finding]:
    return [each for each in find_requirement_faults(world.view(REAL)) if isinstance(each, Finding)]


def told(world: World) -> list[tuple[str, str, str]]:
    """(code, severity, culprit) of each."""
    return [(each.code, each.severity, each.culprit.package or "") for each in findings(world)]


def torch(world: World, version: str = "2.3.1", *requires: str, cuda: str = "12.1.105") -> World:
    return world.wheel("torch", version, {}, requires=(f"nvidia-cuda-runtime-cu12=={cuda}", *requires)).wheel(
        "nvidia-cuda-runtime-cu12", cuda)


# --- SF601: what metadata declares ---


def test_an_environment_that_meets_all_is_told_nothing(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.3.1", "nvidia-cudnn-cu12==8.9.2.26", "sympy",
                  "triton==2.3.1 ; python_version < '3.12'",
                  "nvidia-cufft-cu12==11.0.2.54 ; platform_machine == 'aarch64'", "opt-einsum>=3.3 ; extra == 'opt'",
                  "colorama ; sys_platform == 'win32'")
    world.wheel("nvidia-cudnn-cu12", "8.9.2.26").wheel("sympy", "1.13").wheel("triton", "2.3.1")
    world.wheel("torchvision", "0.18.1+cu121", requires=("torch==2.3.1", "numpy")).wheel("numpy", "1.26.4")
    assert told(world) == []


def test_a_pin_of_torch_that_was_moved_is_a_warning(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.3.1", "nvidia-cudnn-cu12==8.9.2.26").wheel("nvidia-cudnn-cu12", "9.1.0.70")
    found, = findings(world)
    assert (found.code, found.severity, found.level) == ("SF601", "warning", "cudnn")
    assert found.summary == "torch 2.3.1 requires nvidia-cudnn-cu12==8.9.2.26, and 9.1.0.70 is installed"
    assert (found.culprit.package, found.requester and found.requester.package) == (
        "nvidia-cudnn-cu12 9.1.0.70", "torch 2.3.1")
    assert found.cure == ("/venv/bin/python -m pip install --no-deps 'nvidia-cudnn-cu12==8.9.2.26'",)
    assert found.repairable
    world.wheel("nvidia-cudnn-cu12", "8.9.2.26")
    assert told(world) == []


def test_where_the_loader_shows_the_fault_it_is_a_note(tmp_path: Path) -> None:
    """The error is that finding's; here is its explanation."""
    world = torch(World(tmp_path), "2.3.1", "nvidia-cudnn-cu12==8.9.2.26").wheel("nvidia-cudnn-cu12", "9.1.0.70", {
        "nvidia/cudnn/lib/libcudnn.so.9": lib()})
    world.library("torch/_C.cpython-311-x86_64-linux-gnu.so", lib(needs=("libcudnn.so.8",)))
    world.library("torch/lib/libtorch_global_deps.so", lib())
    found, = findings(world)
    assert (found.code, found.severity) == ("SF601", "note")
    assert found.evidence[-1].startswith("the loader shows what comes of it: libcudnn.so.8: cannot open")


def test_where_the_loader_dies_of_the_fault_it_is_told_why(tmp_path: Path) -> None:
    """It says no line itself."""
    world = torch(World(tmp_path), "2.3.1", "nvidia-cudnn-cu12==8.9.2.26").wheel("nvidia-cudnn-cu12", "9.1.0.70", {
        "nvidia/cudnn/lib/libcudnn.so.9": lib(offers=tuple(f"of_many_symbols_{each}" for each in range(2000)))})
    file = world.host(world.inside("nvidia/cudnn/lib/libcudnn.so.9"))
    file.write_bytes(file.read_bytes()[:8192])
    world.library("torch/_C.cpython-311-x86_64-linux-gnu.so", lib(
        needs=("libcudnn.so.9",), runpath="$ORIGIN/../nvidia/cudnn/lib"))
    world.library("torch/lib/libtorch_global_deps.so", lib())
    found, = findings(world)
    assert (found.code, found.severity) == ("SF601", "note")
    assert "libcudnn.so.9: cut short: " in found.evidence[-1]
    assert found.evidence[-1].endswith("; the process that opens it dies with a Bus error")


@pytest.mark.parametrize(("name", "requires", "severity", "level"), [
    ("flash-attn", ("torch",), "error", "torch"),               # fails when it is imported
    ("some-tool", ("torch>=2",), "warning", "torch"),
    ("flash-attn", ("einops",), "note", "environment"),
])
def test_what_is_required_and_absent(name: str, requires: tuple[str, ...], severity: str, level: str,
                                     tmp_path: Path) -> None:
    found, = findings(World(tmp_path).wheel(name, "2.5.8", requires=requires))
    assert (found.code, found.severity, found.level) == ("SF601", severity, level)
    assert "not installed" in found.summary


def test_what_torch_itself_imports_is_a_warning_where_it_is_absent(tmp_path: Path) -> None:
    assert told(torch(World(tmp_path), "2.3.1", "typing-extensions>=4.8.0")) == [
        ("SF601", "warning", "typing-extensions")]


def test_a_torch_that_an_extension_was_not_built_for_is_told_with_its_symbols(tmp_path: Path) -> None:
    world, module, runpath = torch(World(tmp_path)), "ext/_C.abi3.so", "$ORIGIN/../torch/lib"
    for name in ("libtorch_global_deps.so", "libc10.so"):
        world.library(f"torch/lib/{name}", lib(offers=("_ZN3c105ErrorD1Ev",)))
    world.library("torch/_C.cpython-311-x86_64-linux-gnu.so", lib(needs=("libc10.so",), runpath="$ORIGIN/lib"))
    world.wheel("vllm-flash-attn", "2.5.6", {module: lib(
        needs=("libc10.so",), wants=("_ZN3c105ErrorD1Ev",), runpath=runpath)}, requires=("torch==2.1.2",))
    [works] = findings(world)
    assert (works.code, works.severity, works.cure) == ("SF601", "note", ())    # another torch would break the rest
    assert any("it can be loaded with torch 2.3.1 all the same" in each for each in works.evidence)
    world.library(module, lib(needs=("libc10.so",), wants=("_ZN3c104cuda9SetDeviceEi",), runpath=runpath))
    assert told(world) == [("SF601", "note", "torch 2.3.1")]


def test_packages_beside_the_stack_are_one_note(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("a", "1.0", requires=("b>=2", "gone", "c<1; python_version < '3'"))
    world.wheel("b", "1.0").wheel("c", "2.0")
    found, = findings(world)
    assert (found.severity, found.level) == ("note", "environment")
    assert found.summary.startswith("2 declared requirements are not met")
    assert found.evidence == ("a 1.0 requires b>=2, and 1.0 is installed",
                              "a 1.0 requires gone, and nothing is installed")
    assert not found.repairable


def test_an_endless_requirement_is_cut(tmp_path: Path) -> None:
    endless = ">=2," + ",".join(f"!=2.{number}" for number in range(5000))
    for name, asking in (("nvidia-x", "torch"), ("x", "a")):
        world = World(tmp_path / name).wheel(asking, "2.3.1", requires=(f"{name}{endless}",)).wheel(name, "1")
        found, = findings(world)
        assert found.code == "SF601"
        assert all(len(each) < 300 for each in (found.summary, *found.evidence, *found.cure))


@pytest.mark.parametrize("line", [
    "x>={}", "x==1.{}", "x>=1; python_version>'{}'", "x>=1; python_version<'3.{}'"], ids=range(4))
def test_an_endless_number_is_undecided_or_never_holds(line: str, tmp_path: Path) -> None:
    world = World(tmp_path).wheel("a", "1", requires=(line.format("9" * 20000),)).wheel("x", "1")
    for each in find_requirement_faults(world.view(REAL)):
        assert isinstance(each, Undecided)
        assert len(each.reason) < 400
    world.write(f"{world.site}/x-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: x\nVersion: {'9' * 20000}\n")
    assert all(isinstance(each, Undecided) for each in find_requirement_faults(world.view(REAL)))


def test_conda_may_have_it_under_another_name(tmp_path: Path) -> None:
    world = World(tmp_path, conda=True)
    site = "lib/python3.11/site-packages"
    world.conda("pytorch", "2.3.1", {
        f"{site}/torch-2.3.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.3.1\n"
                                                  "Requires-Dist: triton==2.3.1\n",
        f"{site}/torch-2.3.1.dist-info/INSTALLER": "conda\n"})
    assert told(world) == [("SF601", "note", "triton")]


def test_versions_are_judged_as_pep_440_has_them(tmp_path: Path) -> None:
    """A local version meets a pin without one; a pre-release meets a range below its release, not above."""
    world = torch(World(tmp_path), "2.5.0+cu121")
    world.wheel("a", "1.0", requires=("torch==2.5.0", "b>=2.0rc1", "c (>=1.0)", "triton~=3.1", "e[x]@ https://x/e.whl"))
    world.wheel("b", "2.0rc2").wheel("c", "1.0.post1").wheel("triton", "3.1.0.dev1").wheel("e", "0")
    assert told(world) == [("SF601", "warning", "triton 3.1.0.dev1")]


def test_a_version_that_is_none_is_not_decided(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("triton", "main-build").wheel("a", "1.0", requires=("triton>=3",))
    answers = list(find_requirement_faults(world.view(REAL)))
    assert [type(each) for each in answers] == [Undecided]


def test_extras_count_where_somebody_requires_them(tmp_path: Path) -> None:
    """torch from 2.11 on has its libraries through an extra; an extra of an extra is followed."""
    asked = "cuda-toolkit[all,x]==13.0.2; platform_system == 'Linux'"
    world = World(tmp_path).wheel("torch", "2.11.0", requires=(asked,))
    world.wheel("cuda-toolkit", "13.0.2", requires=(
        "cuda-toolkit[cublas]; extra == 'all'", "nvidia-cublas==13.1.0.3; extra == 'cublas'",
        "nvidia-cufft==12.0.0.61; extra == 'cufft'", "nvidia-nothing; extra == 'x' and sys_platform == 'win32'"))
    world.wheel("nvidia-cublas", "13.1.1.3")
    assert told(world) == [("SF601", "warning", "nvidia-cublas 13.1.1.3")]


def test_markers_are_for_the_inspected_python(tmp_path: Path) -> None:
    """The environment's Python is 3.11.2 on x86_64, whatever runs the tests."""
    world = World(tmp_path).wheel("a", "1.0", requires=(
        "x1; python_version == '3.11'", "x2; python_version != '3.11'", "x3; python_full_version < '3.11.3'",
        "x4; platform_machine == 'x86_64' and implementation_name == 'cpython'", "x5; platform_machine == 'arm64'",
        "x6; os_name == 'nt' or sys_platform == 'linux'", "x7; 'lin' in sys_platform", "x8; nonsense == '1'"))
    judge = Judge(world.view(REAL))
    assert [each.line.name for each in judge.unmet() if isinstance(each, Unmet)] == ["x1", "x3", "x4", "x6", "x7"]


def test_a_cudnn_older_than_what_an_extra_was_compiled_with(tmp_path: Path) -> None:
    """torch's own pin brings it: TensorFlow refuses an older minor when it is used."""
    world = torch(World(tmp_path), "2.5.1", "nvidia-cudnn-cu12==9.1.0.70", cuda="12.4.127")
    world.wheel("nvidia-cudnn-cu12", "9.1.0.70").wheel("tensorflow", "2.18.0", requires=(
        "nvidia-cudnn-cu12==9.3.0.75; extra == 'and-cuda'", "nvidia-cublas-cu12==12.5.3.2; extra == 'and-cuda'"))
    found, = findings(world)
    assert (found.code, found.severity, found.level) == ("SF601", "warning", "cudnn")
    assert found.summary == "tensorflow 2.18.0 was compiled with cuDNN 9.3.0.75, and 9.1.0.70 is installed"
    world.wheel("tensorflow", "2.18.0", requires=("nvidia-cudnn-cu12==9.1.1.17; extra == 'and-cuda'",))
    assert told(world) == []


# --- SF602: companions ---


def test_a_companion_of_another_torch_is_told_with_the_one_that_fits(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.4.0").wheel("torchvision", "0.20.1", requires=("torch==2.5.1", "numpy"))
    world.wheel("numpy", "2.1.0")
    found, = findings(world)
    assert (found.code, found.severity, found.level) == ("SF602", "warning", "extensions")
    assert found.summary == "torchvision 0.20.1 is for torch==2.5.1, and torch 2.4.0 is installed"
    assert found.cure == ("/venv/bin/python -m pip install --no-deps 'torchvision==0.19.0'",
                          "/venv/bin/python -m pip install 'torch==2.5.1'")
    world.wheel("torchvision", "0.19.0", requires=("torch==2.4.0", "numpy"))
    assert told(world) == []


@pytest.mark.parametrize(("name", "version", "code"), [("torchvision", "0.20.1", "SF602"), ("timm", "1.0", "SF601")])
def test_metadata_that_excludes_a_torch_which_symbols_do_not(name: str, version: str, code: str,
                                                             tmp_path: Path) -> None:
    """The import works: that is said beside the warning, with the releases that its symbols are those of."""
    device, files = "_ZN3c104cuda9SetDeviceEa", {"torch/lib/libc10_cuda.so": lib(offers=("_ZN3c104cuda9SetDeviceEa",))}
    world = torch(World(tmp_path), "2.3.1")
    world.wheel("torch", "2.3.1", files)
    world.wheel(name, version, {f"{name}/_C.so": lib(needs=("libc10_cuda.so",), wants=(device,),
                                                     runpath="$ORIGIN/../torch/lib")}, requires=("torch==2.5.1",))
    world.opens("torch/lib/libc10_cuda.so", project="torch").opens(f"{name}/_C.so", project=name)
    view = world.view(REAL, load_books=lambda: books({device: "2.3-2.7"}))
    found = next(each for each in find_requirement_faults(view)
                 if isinstance(each, Finding) and each.code == code and name in each.summary)
    line = ("it is stated to be for torch==2.5.1, its symbols are those of torch 2.3 to 2.7: it can be loaded with "
            "torch 2.3.1 all the same")
    assert line in found.evidence


def test_what_the_matrix_knows_counts_where_metadata_say_nothing(tmp_path: Path) -> None:
    """torchaudio 2.11.1 says torch>=2.11; its symbols are those of torch 2.13."""
    world = World(tmp_path).wheel("torch", "2.12.0").wheel("torchaudio", "2.11.1", requires=("torch>=2.11",))
    assert ("SF603", "warning", "torch 2.12.0") in told(world)


@pytest.mark.parametrize(("name", "version", "severity"), [
    ("torchaudio", "2.3.1+cu118", "error"),         # refuses to be imported
    ("torchvision", "0.18.1+cu118", "error"),
    ("xformers", "0.0.26.post1+cu118", "warning"),
    ("torchvision", "0.18.1+cu124", None),          # its own check compares the majors alone
    ("torchaudio", "2.3.1+cu124", "error"),         # before 2.11 another minor is refused too
    ("torchaudio", "2.3.1+cu121", None),
    ("torchaudio", "2.3.1", None),
    ("torchaudio", "2.3.1+cpu", None),
])
def test_a_companion_of_another_cuda(name: str, version: str, severity: str | None, tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.3.1+cu121").wheel(name, version, requires=("torch==2.3.0",) if "xf" in name else (
        "torch==2.3.1",))
    if name == "xformers":
        torch(world, "2.3.0+cu121")
    assert [(each.code, each.severity) for each in findings(world)] == ([("SF602", severity)] if severity else [])


def test_a_companion_is_for_the_torch_of_the_lines_that_apply(tmp_path: Path) -> None:
    def with_lines(name: str, *lines: str) -> list[str]:
        world = torch(World(tmp_path / name)).wheel("torchvision", "0.18.1", requires=lines)
        return [each.summary for each in findings(world) if each.code == "SF602"]

    assert with_lines("a", "torch==2.1.0 ; sys_platform == 'darwin'", "torch==2.3.1 ; sys_platform != 'darwin'") == []
    assert with_lines("b", "torch>=2.2", "torch<2.3 ; python_version >= '3.8'") == [
        "torchvision 0.18.1 is for torch>=2.2,<2.3, and torch 2.3.1 is installed"]


def test_a_companion_that_the_loader_shows_to_fail_is_a_note(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.4.0").wheel("torchvision", "0.20.1", {
        "torchvision/_C.so": lib(needs=("libtorch.so",), wants=("_ZN2at4goneEv",))}, requires=("torch==2.5.1",))
    world.library("torch/lib/libtorch.so", lib(soname="libtorch.so")).library(
        "torch/lib/libtorch_global_deps.so", lib())
    world.library("torch/_C.cpython-311-x86_64-linux-gnu.so", lib(needs=("libtorch.so",), runpath="$ORIGIN/lib"))
    assert told(world) == [("SF602", "note", "torchvision 0.20.1")]


# --- SF603: rules ---


def test_a_rule_names_what_it_limits_and_its_source(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cusparse-cu12", "12.5.10.65", requires=("nvidia-nvjitlink-cu12",))
    world.wheel("nvidia-nvjitlink-cu12", "12.8.93")
    found, = findings(world)
    assert (found.code, found.severity, found.level) == ("SF603", "warning", "cuda")
    assert found.summary == ("nvidia-cusparse-cu12 12.5.10.65 needs nvidia-nvjitlink-cu12>=12.9.41, and 12.8.93 is "
                             "installed")
    assert "__nvJitLinkAddData_12_9" in found.why
    assert any(each.startswith("the matrix (certain): ") for each in found.evidence)
    assert found.cure == ("/venv/bin/python -m pip install --no-deps 'nvidia-nvjitlink-cu12>=12.9.41'",)
    world.wheel("nvidia-nvjitlink-cu12", "12.9.86")
    assert told(world) == []


def test_numpy_2_beside_an_old_torch(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.2.2").wheel("numpy", "2.0.0")
    assert told(world) == [("SF603", "warning", "numpy 2.0.0")]
    torch(world, "2.3.1")
    assert told(world) == []


def test_packages_that_cannot_be_together(tmp_path: Path) -> None:
    world = World(tmp_path).wheel("nvidia-cudnn-cu13", "9.13.0.50").wheel("nvidia-cudnn-cu12", "9.13.0.50")
    found, = findings(world)
    assert found.summary == "nvidia-cudnn-cu13 9.13.0.50 and nvidia-cudnn-cu12 9.13.0.50 cannot share an environment"
    assert found.cure == ("/venv/bin/python -m pip uninstall -y nvidia-cudnn-cu12",)


def test_a_rule_of_low_confidence_is_a_note(tmp_path: Path) -> None:
    world = torch(World(tmp_path), "2.10.0", cuda="12.8.90").wheel("torchcodec", "0.13.0")
    assert told(world) == [("SF603", "note", "torch 2.10.0")]


# --- the quick way against packaging ---

VERSIONS = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,3}(rc1|\.post1|\.dev2|\+cu121|)", fullmatch=True)
SPECIFIERS = st.lists(st.from_regex(r"(>=|<=|<|>|~=|==|!=) ?[0-9]{1,2}(\.[0-9]{1,2}){1,2}", fullmatch=True), min_size=1,
                      max_size=3).map(",".join)
CLAUSES = st.sampled_from((
    "python_version < '3.12'", 'python_version >= "3.11"', "python_version == '3.9'", "python_full_version<'3.11.5'",
    "sys_platform == 'win32'", "sys_platform != 'win32'", "platform_system == 'Linux'", "extra == 'gpu'",
    "extra == 'Other_One'", "os_name == 'nt'", "platform_machine != 'x86_64'", "'arm' in platform_machine",
    "implementation_name == 'pypy'"))
WORDS = st.sampled_from((" and ", " or "))
MARKERS = st.recursive(CLAUSES, lambda inner: st.tuples(inner, WORDS, inner, st.booleans()).map(
    lambda parts: f"({parts[0]}{parts[1]}{parts[2]})" if parts[3] else "".join(parts[:3])), max_leaves=6)
HERE = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64",
        "python_version": "3.11", "python_full_version": "3.11.4", "implementation_name": "cpython"}


@given(version=VERSIONS, specifier=SPECIFIERS)
def test_what_is_surely_met_is_met(version: str, specifier: str) -> None:
    if surely_met(specifier, version):
        assert SpecifierSet(specifier).contains(version, prereleases=True)


@given(marker=MARKERS, extras=st.frozensets(st.sampled_from(("gpu", "other-one"))))
def test_what_is_surely_void_does_not_hold(marker: str, extras: frozenset[str]) -> None:
    if surely_void(marker, HERE, extras):
        assert not any(Marker(marker).evaluate({**HERE, "extra": extra}) for extra in ("", *extras))


@given(text=st.one_of(st.text(max_size=40), st.from_regex(
    r"[a-zA-Z][a-zA-Z._-]{0,8}[a-z] ?(\[[a-z]{1,3}(,[a-z]{1,3})?\])? ?(\(?[<>=!~]=1\.[0-9]\)?)? ?(; ?extra == 'x')?",
    fullmatch=True)))
def test_a_line_is_taken_apart_as_packaging_does(text: str) -> None:
    try:
        expected = Requirement(text)
    except InvalidRequirement:
        parse_line(text)            # anything may stand in METADATA
        return
    line = parse_line(text)
    assert line is not None
    assert (line.name, set(line.extras)) == (canonicalize_name(expected.name), expected.extras)
    assert SpecifierSet(line.specifier) == expected.specifier
    assert (Marker(line.marker) if line.marker else None) == expected.marker


def test_a_healthy_environment_needs_no_packaging(tmp_path: Path) -> None:
    """What is met, or is for another platform, is told without its import."""
    world = torch(World(tmp_path), "2.3.1", "sympy", "x; sys_platform == 'win32'",
                  "y; extra == 'z' and os_name == 'posix'")
    world.wheel("sympy", "1.13")
    code = ("import sys; from pathlib import Path; from tests.diagnose_world import World, LIBRARIES\n"
            "from stackfix.diagnose.requirements import find_requirement_faults\n"
            "from stackfix.matrix.needs import load_needs\n"
            "world = World.__new__(World); world.folder = Path(sys.argv[1]); world.conda_kind = False\n"
            "world.prefix = '/venv'; world.variables = {}; world._wanted = []\n"
            "view = world.view(LIBRARIES, load_needs=load_needs)\n"
            "loaded = [each for each in sys.modules if each.partition('.')[0] == 'packaging']\n"
            "for name in loaded: del sys.modules[name]\n"
            "print(list(find_requirement_faults(view)), 'packaging' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60,
                          check=True)
    assert done.stdout == "[] False\n"


def test_companions_and_rules_alone_are_those_of_the_matrix() -> None:
    needs, matrix = load_needs(), load_matrix()
    assert (needs.companions, needs.rules) == (matrix.companions, matrix.rules)
    assert LIBRARIES is not REAL
