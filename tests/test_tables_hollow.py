"""A file reduced to its tables answers every question as the file does: real, compiled, damaged and hostile ones."""

from __future__ import annotations

import platform
import random
import shutil
import struct
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from stackfix.inspect.elf import map_file
from stackfix.inspect.elf_layout import Buffer
from stackfix.inspect.records import BadElf
from stackfix.tables import hollow as hollow_module
from stackfix.tables.hollow import NotReducible, reduce_elf
from stackfix.tables.image import Image, fits, joined, open_image
from stackfix.tables.packed import pack, unpack
from tests.loader_oracle.build import Bench, build, clean, make_bench
from tests.loader_oracle.generate import generate
from tests.loader_oracle.judge import CASES, read_case
from tests.loader_oracle.observe import differences, run_real, run_simulated
from tests.tables_answers import HollowDisk, answers, hollow_answers
from tests.test_inspect_elf import SYSTEM, compile_c, needs_tools
from tests.test_inspect_elf_fuzz import FILES, mutations

INSTALLED = sorted(path for name in ("stdlib", "purelib") for path in Path(sysconfig.get_path(name)).rglob("*.so*")
                   if path.is_file() and not path.is_symlink())
SAMPLE = random.Random(7).sample(INSTALLED, min(40, len(INSTALLED)))        # noqa: S311 - not a secret
DAMAGED = 1500
needs_loader = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc" or not shutil.which("gcc"),
    reason="graphs are x86_64 files for glibc's loader, and gcc compiles their driver")

CODE = """
#include <stdio.h>
extern int wanted(int); extern int weakly(int) __attribute__((weak)); extern __thread int slot;
int shared_value = 3; int *pointer = &shared_value; __thread int own_slot = 4;
static int chosen(int x) { return x + 1; }
int (*table[])(int) = { wanted, weakly, chosen };
int first_v1(int x) { return wanted(x) + wanted(x) + slot; } int first_v2(int x) { return x + own_slot; }
int second(int x) { return weakly ? weakly(x) : puts("no"); }
__attribute__((visibility("protected"))) int third(int x) { return second(x); }
__attribute__((visibility("hidden"))) int fourth(int x) { return third(x); }
"""
VERSIONED = CODE + """
__asm__(".symver first_v1,first@V1"); __asm__(".symver first_v2,first@@V2");
"""
MAP = "V1 { global: first; }; V2 { global: second; third; shared_value; own_slot; local: *; } V1;"
CPLUSPLUS = """
#include <vector>
#include <string>
template <class T> struct Once { static T value; static T& get() { static T local = T(); return local; } };
template <class T> T Once<T>::value = T();
std::string name(const std::vector<int>& v) { return std::to_string(v.size() + Once<int>::value + Once<long>::get()); }
"""


def mapped(path: Path | str) -> Buffer:
    with Path(path).open("rb") as stream:
        return map_file(stream.fileno(), str(path))


@pytest.mark.parametrize("path", [*SYSTEM, *map(str, SAMPLE)])
def test_a_real_file_answers_as_before(path: str) -> None:
    data = mapped(path)
    assert hollow_answers(data) == answers(data)


@needs_tools
@pytest.mark.parametrize("options", [
    ("-Wl,--hash-style=gnu",), ("-Wl,--hash-style=sysv",), ("-Wl,--hash-style=both", "-Wl,-z,now"),
    ("-Wl,--hash-style=gnu", "-Wl,-z,norelro", "-Wl,-rpath,$ORIGIN/../lib", "-Wl,--disable-new-dtags"),
    ("-Wl,--hash-style=gnu", "-Wl,-Bsymbolic", "-Wl,-soname,libx.so.1", "-s"),
    ("-Wl,--hash-style=gnu", "-Wl,-z,separate-code", "-Wl,--build-id=sha1", "-Wl,-z,combreloc"),
    ("-Wl,--hash-style=gnu", "-Wl,-z,nocombreloc", "-Wl,-z,noseparate-code"),
], ids=" ".join)
@pytest.mark.parametrize("versioned", [False, True])
def test_a_compiled_file_answers_as_before(
        tmp_path: Path, options: tuple[str, ...], versioned: bool) -> None:
    if versioned:
        (tmp_path / "x.map").write_text(MAP)
        options = (*options, f"-Wl,--version-script,{tmp_path / 'x.map'}")
    data = mapped(compile_c(tmp_path, VERSIONED if versioned else CODE, *options))
    found = answers(data)
    assert {each.name for each in found["undefined"]} >= {"wanted", "weakly", "slot"}     # type: ignore[attr-defined]
    assert hollow_answers(data) == found


@needs_tools
def test_a_file_of_many_symbols_keeps_its_unique_ones_and_little_else(tmp_path: Path) -> None:
    path = compile_c(tmp_path, CPLUSPLUS, "-O1", "-fno-gnu-unique" if not shutil.which("g++") else "-fgnu-unique",
                     "-lstdc++", language="c++")
    with path.open("ab") as stream:
        stream.write(random.Random(1).randbytes(1 << 20))       # noqa: S311 - what no table points to
    data = mapped(path)
    found = answers(data)
    assert found["unique"] or not shutil.which("g++")
    assert hollow_answers(data) == found
    image = reduce_elf(data, "x").image
    assert image is not None
    assert len(image.content) < len(data) - (1 << 20)


@needs_tools
def test_only_the_first_relocation_of_a_symbol_is_kept(tmp_path: Path) -> None:
    code = "extern int far; int *many[20000] = {" + "&far," * 20000 + "};"
    data = mapped(compile_c(tmp_path, code))
    image = reduce_elf(data, "x").image
    assert image is not None
    assert len(image.content) < 20_000 < 24 * 20_000 < len(data)
    assert hollow_answers(data) == answers(data)


def test_damaged_files_answer_as_before() -> None:
    seed = random.randrange(1 << 32)        # noqa: S311 - not a secret
    print(f"seed {seed}")                   # noqa: T201 - to repeat a failure
    for data in islice(mutations(random.Random(seed)), DAMAGED):       # noqa: S311 - not a secret
        assert hollow_answers(data) == answers(data)


def test_written_files_answer_as_before() -> None:
    for data in FILES:
        assert hollow_answers(data) == answers(data)


@pytest.mark.parametrize("content", [b"", b"x", b"INPUT(libx.so.1)\n" * 9, b"\x7fELF" + bytes(60), bytes(100)])
def test_what_is_no_library_keeps_what_the_loader_says(content: bytes) -> None:
    found = reduce_elf(content, "site/lib.so")
    assert found.image is None
    assert answers(content)["record"] == found.elf or content == b""


def strings_outside(data: bytes) -> bytes:
    """The file with a DT_STRSZ that leaves most strings out: nothing to the loader."""
    out = bytearray(data)
    for place in range(data[56]):
        kind, _, start, _, _, size = struct.unpack_from("<IIQQQQ", data, 64 + 56 * place)
        for at in range(start, start + size if kind == 2 else start, 16):
            if struct.unpack_from("<Q", out, at)[0] == 10:
                struct.pack_into("<Q", out, at + 8, 1)
    return bytes(out)


@needs_tools
def test_a_file_that_would_read_otherwise_is_kept_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = strings_outside(compile_c(tmp_path, CODE).read_bytes())
    found = reduce_elf(data, "site/lib.so")
    assert found.image is not None
    assert bytes(found.image.content) == data
    assert hollow_answers(data) == answers(data)
    monkeypatch.setattr(hollow_module, "WHOLE", len(data) - 1)
    with pytest.raises(NotReducible, match=r"site/lib\.so: its tables cannot be told apart"):
        reduce_elf(data, "site/lib.so")


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tables-oracle-") as folder:
        yield Path(folder).resolve()


@pytest.fixture(scope="module")
def bench(scratch: Path) -> Bench:
    return make_bench(scratch)


@needs_loader
def test_the_real_loader_agrees_with_a_simulation_on_hollow_files(scratch: Path, bench: Bench) -> None:
    seed = random.randrange(1 << 32)        # noqa: S311 - not a secret
    print(f"seed {seed}")                   # noqa: T201 - to repeat a failure
    graphs = [read_case(path) for path in sorted(CASES.glob("*.json"))] + [generate(seed, place) for place in range(40)]
    for place, graph in enumerate(graphs):
        folder = Path(tempfile.mkdtemp(dir=scratch))
        try:
            build(graph, folder, bench)
            found = differences(run_real(graph, folder), run_simulated(graph, folder, bench, files=HollowDisk()))
        finally:
            clean(folder)
        assert found == [], f"graph {place} of seed {seed}"


def test_a_packed_image_that_was_changed_is_refused() -> None:
    image = reduce_elf(FILES[0], "x").image
    assert image is not None
    packed = pack(image)
    assert unpack(packed, "x").extents == image.extents
    content = bytes(packed.content)
    for other in (content[:-5], content[:9] + b"zz" + content[11:], b""):
        with pytest.raises(BadElf, match="damaged"):
            unpack(replace(packed, content=other), "x")
    for wrong in (replace(packed, size=100), replace(packed, extents=packed.extents + 1), replace(packed, length=15)):
        with pytest.raises(BadElf, match="damaged"):
            unpack(wrong, "x")


def test_extents_are_in_order_and_inside() -> None:
    assert joined([(500, 600), (0, 10), (8, 20), (90, 90), (610, 700), (2000, 9000)], 3000) == (
        (0, 20), (500, 700), (2000, 3000))
    assert fits(100, [(0, 10), (20, 30)], 20)
    assert not any(fits(100, extents, 20) for extents in ([(0, 10), (5, 15)], [(90, 110)], [(20, 30), (0, 10)],
                                                          [(0, 19)], [(0, 0), (1, 21)]))
    opened = open_image(Image(size=50, extents=((2, 4), (48, 50)), content=b"abcd"), "x")
    assert opened[:] == b"\0\0ab" + bytes(44) + b"cd"
