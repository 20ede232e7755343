"""What this machine's own loader and linker say of libraries that do not fit is explained."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.cli.explain_facts import MatrixFacts
from stackfix.explain.derive import DERIVE
from stackfix.explain.explain import explain
from stackfix.explain.records import Explanation
from stackfix.explain.rules import read_rules
from stackfix.explain.text import read_text

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
RULES, FACTS = read_rules(), MatrixFacts(None)
CLASS_OF_FILE = 4           # e_ident[EI_CLASS]
OPEN = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)"


def build(path: Path, source: str, *options: str | Path, versions: str | None = None) -> Path:
    """A shared object of a few lines of C; `versions`: the node that all that it defines belongs to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    more = [f"-Wl,-soname,{path.name}"]
    if versions:
        script = path.with_suffix(".map")
        script.write_text(f"{versions} {{ global: *; }};\n", encoding="utf-8")
        more.append(f"-Wl,--version-script={script}")
    subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-o", path, "-x", "none", *more, *options],
                   input=source, text=True, check=True, timeout=60)
    return path


def said_of(path: Path, *, code: str = OPEN, **variables: str) -> str:
    """What a new process says that opens the file; the test is skipped where it says nothing."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LD_")} | variables
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60,
                          env=environ, check=False)
    if done.returncode == 0:
        pytest.skip("this loader takes it")
    return done.stderr


def explained(text: str) -> Explanation:
    return explain(read_text(text.encode()), RULES, FACTS, DERIVE)


def first(text: str) -> tuple[str, str, str]:
    """(rule, summary, cure) of what is explained first."""
    found = explained(text)
    assert found.causes, text
    return found.messages[0].rule, found.causes[0].summary, found.causes[0].cure


def versioned(folder: Path, caller: str, library: str, function: str, path: str = "") -> tuple[Path, Path]:
    """A library and one that was linked against it, with the version that the library is named by."""
    provider = build(folder / "new" / library, f"void {function}(void) {{}}", versions=library)
    user = build(folder / path / caller, f"void {function}(void); void f(void) {{ {function}(); }}", provider,
                 "-Wl,-z,now")
    return user, provider


@pytest.mark.parametrize(("caller", "library", "function", "floor", "rule"), [
    ("libcusparse.so.12", "libnvJitLink.so.12", "__nvJitLinkComplete_12_4", "12.4.99", "nvjitlink-symbol"),
    ("libcusolver.so.11", "libcublas.so.12", "cublasSetEnvironmentMode", "12.9.0.13", "cuda-library-symbol"),
    ("libtorch_cpu.so", "libcupti.so.12", "cuptiActivityEnableDriverApi", "12.5.39", "cuda-runtime-symbol"),
])
def test_a_version_that_an_older_library_lacks(caller: str, library: str, function: str, floor: str, rule: str,
                                               tmp_path: Path) -> None:
    place = "lib/python3.11/site-packages/nvidia/x/lib" if not caller.startswith("libtorch") else (
        "lib/python3.11/site-packages/torch/lib")
    user, _ = versioned(tmp_path, caller, library, function, place)
    build(tmp_path / "old" / library, "void other(void) {}", versions=library)
    said = said_of(user, LD_LIBRARY_PATH=str(tmp_path / "old"))
    assert f"undefined symbol: {function}, version {library}" in said
    name, summary, cure = first(said)
    assert name == rule
    assert floor in summary
    assert "LD_LIBRARY_PATH" in cure or floor in cure
    ldd = subprocess.run(["ldd", "-r", user], capture_output=True, text=True, timeout=60, check=False,
                         env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "old")})
    assert first(ldd.stdout + ldd.stderr)[:2] == (rule, summary)
    old = f"{user}: symbol {function}, version {library} not defined in file {library} with link time reference"
    assert first(f"ImportError: {old}")[:2] == (rule, summary)         # glibc before 2.30


def test_the_linker_says_the_same(tmp_path: Path) -> None:
    user, _ = versioned(tmp_path, "libcusparse.so.12", "libnvJitLink.so.12", "__nvJitLinkAddData_12_1")
    build(tmp_path / "old" / "libnvJitLink.so.12", "void other(void) {}", versions="libnvJitLink.so.12")
    done = subprocess.run(["gcc", "-x", "c", "-", "-o", tmp_path / "program", "-x", "none", user,
                           f"-Wl,-rpath-link,{tmp_path / 'old'}"],
                          input="void f(void); int main(void) { f(); }", capture_output=True, text=True, timeout=60,
                          check=False, env={**os.environ, "LC_ALL": "C"})
    assert done.returncode != 0
    name, summary, _ = first(done.stderr)
    assert name == "nvjitlink-symbol"
    assert "12.1.55" in summary


def test_an_unversioned_function_of_nccl(tmp_path: Path) -> None:
    provider = build(tmp_path / "new" / "libnccl.so.2", "void ncclCommRegister(void) {}")
    user = build(tmp_path / "site-packages" / "torch" / "lib" / "libtorch_cuda.so",
                 "void ncclCommRegister(void); void f(void) { ncclCommRegister(); }", provider, "-Wl,-z,now")
    build(tmp_path / "old" / "libnccl.so.2", "void other(void) {}")
    name, summary, cure = first(said_of(user, LD_LIBRARY_PATH=str(tmp_path / "old")))
    assert name == "cuda-runtime-symbol"
    assert "2.19.3" in summary
    assert "nvidia-nccl-cu12" in cure


def test_a_function_of_another_torch(tmp_path: Path) -> None:
    user = build(tmp_path / "site-packages" / "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so",
                 "void _ZN3c104cuda9SetDeviceEi(int); void f(void) { _ZN3c104cuda9SetDeviceEi(0); }", "-Wl,-z,now")
    name, summary, cure = first(said_of(user))
    assert name == "torch-symbol"
    assert "flash-attn was built for torch 2.1 and 2.2" in summary
    assert "flash-attn==2.5.8" in cure


@pytest.mark.parametrize("library", ["libcudart.so.12", "libcudart.so.11.0", "libcusparseLt.so.0", "libnccl.so.2"])
def test_a_library_that_is_nowhere(library: str, tmp_path: Path) -> None:
    provider = build(tmp_path / "gone" / library, "void function(void) {}")
    user = build(tmp_path / "_ext.so", "void function(void); void f(void) { function(); }", provider)
    for said in (said_of(user), said_of(Path(library), code=OPEN)):     # needed, and opened by its bare name
        name, summary, _ = first(said)
        assert name == "missing-library"
        assert library in summary
    program = tmp_path / "program"
    subprocess.run(["gcc", "-x", "c", "-", "-o", program, "-x", "none", provider], check=True, text=True, timeout=60,
                   input="void function(void); int main(void) { function(); }")
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert "error while loading shared libraries" in done.stderr
    assert first(done.stderr)[0] == "missing-library"
    ldd = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=60, check=False)
    assert first(ldd.stdout)[0] == "missing-library"


@pytest.mark.parametrize("library", ["libc10.so", "libtorch_cuda.so"])
def test_a_library_of_torch_that_is_nowhere(library: str, tmp_path: Path) -> None:
    provider = build(tmp_path / "gone" / library, "void function(void) {}")
    user = build(tmp_path / "_ext.so", "void function(void); void f(void) { function(); }", provider)
    assert first(said_of(user))[0] == "missing-torch-library"


def test_a_library_without_its_version(tmp_path: Path) -> None:
    user, _ = versioned(tmp_path, "libcusolver.so.11", "libcublas.so.12", "cublasCreate_v2")
    other = build(tmp_path / "fake" / "libcublas.so.11", "void cublasCreate_v2(void) {}", versions="OTHER_1")
    fake = other.with_name("libcublas.so.12")         # a name that someone gave to another library
    fake.symlink_to(other.name)
    said = said_of(user, LD_LIBRARY_PATH=str(fake.parent))
    assert "version `libcublas.so.12' not found" in said
    name, summary, _ = first(said)
    assert name == "library-without-version"
    assert str(fake) in summary


@pytest.mark.parametrize(("node", "library", "rule", "told"), [
    ("GLIBCXX_3.4.30", "libstdc++.so.6", "libstdcxx-version", "GLIBCXX_3.4.30"),
    ("CXXABI_1.3.13", "libstdc++.so.6", "libstdcxx-version", "CXXABI_1.3.13"),
])
def test_a_version_of_the_cxx_library_that_is_not_there(node: str, library: str, rule: str, told: str,
                                                        tmp_path: Path) -> None:
    provider = build(tmp_path / "new" / library, "void function(void) {}", versions=node)
    user = build(tmp_path / "site-packages" / "some" / "_ext.so", "void function(void); void f(void) { function(); }",
                 provider)
    old = build(tmp_path / "old" / library, "void function(void) {}", versions="GLIBCXX_3.4")
    code = f"import ctypes; ctypes.CDLL({str(old)!r}); {OPEN}"
    name, summary, cure = first(said_of(user, code=code))
    assert name == rule
    assert told in summary
    assert "libstdcxx" in cure


def test_a_newer_glibc(tmp_path: Path) -> None:
    provider = build(tmp_path / "new" / "libc.so.6", "void function(void) {}", versions="GLIBC_2.99")
    user = build(tmp_path / "_ext.so", "void function(void); void f(void) { function(); }", provider)
    said = said_of(user)
    assert "version `GLIBC_2.99' not found" in said
    name, summary, _ = first(said)
    assert name == "glibc-version"
    assert "2.99" in summary


@pytest.mark.parametrize(("content", "words"), [
    (b"", "cut short"), (b"a pointer to a large file\n" * 8, "no library"), (b"\x7fELF", "cut short"),
])
def test_a_file_that_is_no_library(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "site-packages" / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    name, summary, _ = first(said_of(path))
    assert name == "damaged-library"
    assert words in summary


def test_a_library_for_32_bits(tmp_path: Path) -> None:
    path = build(tmp_path / "libcudart.so.12", "void function(void) {}")
    content = bytearray(path.read_bytes())
    content[CLASS_OF_FILE] = 3 - content[CLASS_OF_FILE]
    path.write_bytes(content)
    name, summary, _ = first(said_of(path))
    assert name == "other-architecture"
    assert "ELFCLASS" in summary


def test_no_room_for_thread_local_memory(tmp_path: Path) -> None:
    source = ('static __thread char room[200000] __attribute__((tls_model("initial-exec")));'
              "char *f(int at) { return room + at; }")
    path = build(tmp_path / "libgomp.so.1", source)
    said = said_of(path)
    assert "static TLS block" in said
    assert first(said)[0] == "static-tls"
    path.unlink()


def test_no_room_for_a_library(tmp_path: Path) -> None:
    path = build(tmp_path / "libtorch_cuda.so", "char room[1u << 30] = {1}; char *f(void) { return room; }"
                 if sys.maxsize < 1 << 32 else "char room[1u << 30]; char *f(void) { return room; }")
    code = f"import resource; resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)); {OPEN}"
    said = said_of(path, code=code)
    if "failed to map segment" not in said:
        pytest.skip(f"this loader says otherwise: {said[-200:]}")
    name, summary, _ = first(said)
    assert name == "map-segment"
    assert "libtorch_cuda.so" in summary


def test_a_private_function_between_two_halves_of_cudnn(tmp_path: Path) -> None:
    symbol = "_ZN10cask_cudnn2kr8isAmpereEPNS0_5spa_tERKi"
    user, _ = versioned(tmp_path, "libcudnn_cnn_train.so.8", "libcudnn_cnn_infer.so.8", symbol, "module/lib64")
    build(tmp_path / "torch" / "libcudnn_cnn_infer.so.8", "void other(void) {}", versions="libcudnn_cnn_infer.so.8")
    said = said_of(user, LD_LIBRARY_PATH=str(tmp_path / "torch"))
    name, summary, cure = first(f"Could not load library libcudnn_cnn_train.so.8. Error: {said.splitlines()[-1]}")
    assert name == "cudnn-parts"
    assert "libcudnn_cnn_infer.so.8" in summary
    assert "LD_LIBRARY_PATH" in cure


def test_other_libraries_functions_are_nobodys(tmp_path: Path) -> None:
    user = build(tmp_path / "_ext.so", "void u_charsToUChars_70(void); void f(void) { u_charsToUChars_70(); }",
                 "-Wl,-z,now")
    assert explained(said_of(user)).kind == "unknown"
    assert explained(said_of(Path("libelse_where.so.3"))).kind == "unknown"
