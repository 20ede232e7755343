"""The verdict on small extensions for small torches, each compiled here, beside what the real loader says of them."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.abi.book import open_torch_book
from stackfix.abi.can_load import can_load
from stackfix.abi.flavour import TAGGED, name_flavour
from stackfix.abi.mangled import neutral
from stackfix.abi.records import Compiled, TorchBook
from stackfix.abi.torch_range import torch_range
from stackfix.inspect.compiled import read_file
from stackfix.inspect.places import Root
from tests.abi_small import write_book

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.libc_ver()[0] != "glibc" or platform.machine() != "x86_64"
    or not shutil.which("g++") or not shutil.which("nm"), reason="g++ compiles the files, glibc's loader opens them")

HEADER = """
#ifdef WITH_STRING          // the header costs half a second
#include <string>
#endif
typedef signed char int8_t;
#pragma GCC visibility push(default)
namespace c10 {
struct Error { virtual ~Error(); int code; };
#ifdef WITH_STRING
void fail(const char* file, int line, const std::string& text);
std::string name_of(int n);
#endif
const char* plain(int n);
namespace cuda { void SetDevice(DEVICE device EXTRA); }
}
namespace at { struct Context { int preferred() CONST; }; int empty(long size); }
extern "C" { int aoti_torch_size(int); int torch_late_shim(int); }
#pragma GCC visibility pop
"""
TORCH = """
#define WITH_STRING
#include "torch.h"
namespace c10 {
Error::~Error() {}
void fail(const char*, int, const std::string& text) { throw text; }
std::string name_of(int n) { return std::string(n, 'x'); }
const char* plain(int n) { return n ? "a" : "b"; }
namespace cuda { void SetDevice(DEVICE EXTRA) {} }
}
namespace at { int Context::preferred() CONST { return 1; } int empty(long size) { return size; } }
extern "C" int aoti_torch_size(int n) { return n; }
#ifdef LATE
extern "C" int torch_late_shim(int n) { return n; }
#endif
"""
OPEN = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** words) {
    if (dlopen(words[1], RTLD_NOW) == 0) return 1;
    if (dlopen(words[2], RTLD_NOW) == 0) puts(dlerror());
    return 0;
}
"""
# Release -> (std::string, macros); 2.4.0 is a patch that is otherwise than 2.4.1
TORCHES = {
    "2.3.1": ("old", ("-DDEVICE=int", "-DEXTRA=", "-DMORE=", "-DCONST=")),
    "2.4.0": ("old", ("-DDEVICE=int8_t", "-DEXTRA=", "-DMORE=", "-DCONST=const")),
    "2.4.1": ("old", ("-DDEVICE=int8_t", "-DEXTRA=", "-DMORE=", "-DCONST=")),
    "2.5.1": ("new", ("-DDEVICE=int8_t", "-DEXTRA=,bool", "-DMORE=,true", "-DCONST=", "-DLATE")),
}
EXTENSIONS = {
    "plain": 'extern "C" const char* go() { return c10::plain(at::empty(3)); }',
    "device": 'extern "C" void go() { c10::cuda::SetDevice(1 MORE); }',
    "string": '#define WITH_STRING\n#include "torch.h"\nextern "C" void go() { c10::fail("f", 1, std::string("x")); }',
    "returned": '#define WITH_STRING\n#include "torch.h"\nextern "C" int go() { return c10::name_of(2).size(); }',
    "error": 'struct Mine : c10::Error {}; extern "C" void* go() { return new Mine; }',
    "context": 'extern "C" int go(at::Context* c) { return c->preferred(); }',
    "shim": 'extern "C" int go() { return aoti_torch_size(2); }',
    "late": 'extern "C" int go() { return torch_late_shim(2) + aoti_torch_size(1); }',
    "weak": 'extern "C" int none_such(int) __attribute__((weak)); namespace at { int gone(int) __attribute__((weak)); }'
            ' extern "C" int go() { return at::gone ? at::gone(1) : at::empty(2); }',
    "nightly": 'namespace at { int nightly(int); } extern "C" int go() { c10::plain(1); return at::nightly(1); }',
    "nothing": 'extern "C" int go() { return 1; }',
}


class Workshop:
    """The torches, the extensions that were compiled against each of them, and the book of the torches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "torch.h").write_text(HEADER, encoding="utf-8")
        (folder / "torch.cpp").write_text(TORCH, encoding="utf-8")
        for name, source in EXTENSIONS.items():
            text = source if "#include" in source else f'#include "torch.h"\n{source}\n'
            (folder / f"{name}.cpp").write_text(text, encoding="utf-8")
        (folder / "open.c").write_text(OPEN, encoding="utf-8")
        subprocess.run(["gcc", "-o", "open", "open.c", "-ldl"], check=True, cwd=folder)
        for version, (string, macros) in TORCHES.items():
            (folder / version).mkdir()
            self.compile("torch.cpp", self.torch(version), "-Wl,-soname,libc10.so", string, *macros)
        self.book = self.make_book()

    def torch(self, version: str) -> Path:
        return self.folder / version / "libc10.so"

    def compile(self, source: str, target: Path, more: str, string: str, *macros: str) -> None:
        flavour = f"-D_GLIBCXX_USE_CXX11_ABI={int(string == 'new')}"
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-w", flavour, *macros, "-o", str(target),
                        str(self.folder / source), "-Wl,--no-as-needed", *more.split()], check=True, cwd=self.folder)

    def extension(self, name: str, version: str) -> Path:
        """The extension as compiled against one of the torches."""
        target = self.folder / f"{name}-{version}.so"
        if not target.exists():
            string, macros = TORCHES[version]
            self.compile(f"{name}.cpp", target, f"-L{version} -lc10", string, *macros)
        return target

    def make_book(self) -> TorchBook:
        names = {version: self.exports(version) for version in TORCHES}
        releases = (("2.3", "2.3.1", "old", ()), ("2.4", "2.4.1", "old", ("2.4.0",)), ("2.5", "2.5.1", "new", ()))
        rows = [(row, minor, ("libc10.so",)) for minor, version, _, _ in releases for name in names[version]
                for row in (name, *tagged(name))]
        patches = [*(("2.4.0", "+", name, "libc10.so") for name in sorted(names["2.4.0"] - names["2.4.1"])),
                   *(("2.4.0", "-", name, "libc10.so") for name in sorted(names["2.4.1"] - names["2.4.0"]))]
        return open_torch_book(write_book(self.folder, rows, releases=releases, patches=patches))

    def exports(self, version: str) -> set[str]:
        """By the system's own reader of symbols."""
        done = subprocess.run(["nm", "-D", "--defined-only", "--format=just-symbols", str(self.torch(version))],
                              capture_output=True, text=True, check=True)
        return {name for name in done.stdout.split() if "3c10" in name or "2at" in name or "torch_" in name}

    def read(self, name: str, version: str) -> Compiled:
        path = str(self.extension(name, version))
        return read_file(path, path, Root())

    def missing(self, name: str, version: str, against: str) -> str | None:
        """What the real loader misses first with another torch than the one it was compiled for."""
        done = subprocess.run([str(self.folder / "open"), str(self.torch(against)), str(self.extension(name, version))],
                              capture_output=True, text=True, check=True)
        if not done.stdout:
            return None
        assert "undefined symbol: " in done.stdout, done.stdout
        return done.stdout.rpartition("undefined symbol: ")[2].strip()


def tagged(name: str) -> Iterator[str]:
    """The row that a generator adds for a function that returns the new string and takes none."""
    key = neutral(name)
    if key != name and name_flavour(key) is None:
        yield key + TAGGED


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("workshop"))


@pytest.mark.parametrize(("name", "version"), [
    *((name, version) for name in EXTENSIONS for version in ("2.3.1", "2.5.1")),
    ("device", "2.4.1"), ("context", "2.4.0"),
])
def test_the_verdict_is_that_of_the_real_loader(workshop: Workshop, name: str, version: str) -> None:
    found = workshop.read(name, version)
    for against in TORCHES:
        verdict = can_load(found.files, workshop.book, against)
        said = workshop.missing(name, version, against)
        assert verdict.verdict == ("can load" if said is None else "cannot load"), (against, said, verdict)
        if said is not None:
            assert said in {each.name for each in verdict.missing}
            if name != "nightly":
                assert said == verdict.missing[0].name


@pytest.mark.parametrize(("name", "version", "minors", "index"), [
    ("plain", "2.3.1", ("2.3", "2.4", "2.5"), ("2.3", "2.4", "2.5")),
    ("device", "2.3.1", ("2.3",), ("2.3",)),
    ("device", "2.4.1", ("2.4",), ("2.4",)),
    ("device", "2.5.1", ("2.5",), ("2.5",)),
    ("string", "2.3.1", ("2.3", "2.4", "2.5"), ("2.3", "2.4")),
    ("string", "2.5.1", ("2.3", "2.4", "2.5"), ("2.5",)),
    ("returned", "2.3.1", ("2.3", "2.4", "2.5"), ("2.3", "2.4")),
    ("returned", "2.5.1", ("2.3", "2.4", "2.5"), ("2.5",)),
    ("late", "2.5.1", ("2.5",), ("2.5",)),
    ("nothing", "2.3.1", ("2.3", "2.4", "2.5"), ("2.3", "2.4", "2.5")),
    ("context", "2.4.0", (), ()),
    ("nightly", "2.3.1", (), ()),
])
def test_the_range_of_a_compiled_extension(workshop: Workshop, name: str, version: str, minors: tuple[str, ...],
                                           index: tuple[str, ...]) -> None:
    answer = torch_range(workshop.read(name, version).files, workshop.book)
    assert answer is not None
    assert (answer.minors, answer.index_minors) == (minors, index)
    assert answer.patches == (("2.4.0",) if name == "context" else ())
    assert [each.demangled for each in answer.unknown] == (["at::nightly(int)"] if name == "nightly" else [])
    assert answer.stable is (name == "late")
