"""ELF reading: compared with readelf over the machine's own libraries, and over files that gcc makes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stackfix.inspect.elf import map_file, parse_elf, read_elf
from stackfix.inspect.elf_hash import DT_HASH
from stackfix.inspect.elf_layout import Layout
from stackfix.inspect.elf_names import sysv_hash
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.records import BadElf, ElfObject, UnreadableElf, gnu_hash
from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.graph import Definition, Library, Reference

needs_tools = pytest.mark.skipif(not shutil.which("gcc") or not shutil.which("readelf"), reason="needs gcc and readelf")
LINE = re.compile(r"\s*\d+: [0-9a-f]+\s+\S+ (\S+)\s+(\S+)\s+(\S+)\s+(?:\[.*?\]\s+)?(\S+)(?: (\S+)(?: \(\d+\))?)?")
FOLDERS = ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib64")
NAMES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "libdl.so.2", "libcrypto.so.3",
         "libssl.so.3", "libgomp.so.1", "libresolv.so.2", "libexpat.so.1", "libsqlite3.so.0", "libncursesw.so.6")
SYSTEM = [f"{folder}/{name}" for folder in FOLDERS for name in NAMES if Path(folder, name).exists()]


def symbols_of(path: Path | str) -> MappedSymbols:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return MappedSymbols(map_file(descriptor, str(path)), str(path))
    finally:
        os.close(descriptor)


def readelf(option: str, path: Path | str) -> str:
    return subprocess.run(["readelf", "-W", option, str(path)], capture_output=True, text=True, check=True, timeout=60,
                          env={"LC_ALL": "C", "PATH": os.environ["PATH"]}).stdout


def compile_c(folder: Path, source: str, *options: str, name: str = "libx.so", language: str = "c") -> Path:
    (folder / "x.src").write_text(source, encoding="utf-8")
    path = folder / name
    subprocess.run(["gcc", "-x", language, "-shared", "-fPIC", "-O0", "-nostdlib", "-o", str(path),
                    str(folder / "x.src"), *options], check=True, timeout=60)
    return path


@needs_tools
@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_a_library_that_offers_nothing_still_wants_something(tmp_path: Path, style: str) -> None:
    code = """
    extern void first(void); extern int second; __attribute__((weak)) extern int third;
    __attribute__((visibility("hidden"))) void *held[] = {(void *)first, &second, &third};
    """
    symbols = symbols_of(compile_c(tmp_path, code, f"-Wl,--hash-style={style}"))
    assert {(each.name, each.weak) for each in symbols.undefined()} == {
        ("first", False), ("second", False), ("third", True)}
    assert list(symbols.defined()) == []


@needs_tools
@pytest.mark.parametrize("path", SYSTEM)
def test_dynamic_section_as_readelf_reads_it(path: str) -> None:
    text, elf = readelf("-d", path), read_elf(path)
    assert isinstance(elf, ElfObject)
    assert list(elf.needed) == re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert [elf.soname] == re.findall(r"\(SONAME\).*\[(.*)\]", text)
    assert [elf.runpath] == (re.findall(r"\(RUNPATH\).*\[(.*)\]", text) or [None])
    assert (elf.bits, elf.byte_order, elf.kind, elf.dynamic) == (64, "little", "shared", True)
    assert ("DF_1_NOW" in elf.flags) == bool(re.search(r"\(FLAGS_1\).*NOW", text))
    built = re.findall(r"Build ID: (\w+)", readelf("-n", path))
    assert [elf.build_id] == (built or [None])


@needs_tools
@pytest.mark.parametrize("path", SYSTEM)
def test_symbols_as_readelf_reads_them(path: str) -> None:
    undefined, defined = set(), set()
    for line in readelf("--dyn-syms", path).splitlines():
        found = LINE.fullmatch(line)
        if not found or found[2] == "LOCAL":
            continue
        kind, binding, visibility, section, name = found.groups()
        bare, at, stated = (name or "").partition("@")
        hidden, version = bool(at) and not stated.startswith("@"), stated.lstrip("@") or None
        if section == "UND":
            undefined.add((bare, version, binding == "WEAK"))
        elif visibility in {"DEFAULT", "PROTECTED"} and not (kind == "OBJECT" and section == "ABS"):
            defined.add((bare, version, hidden, binding.lower()))
    symbols = symbols_of(path)
    assert {(each.name, each.version, each.weak) for each in symbols.undefined()} == undefined
    versions = set(symbols.versions.defined.values())     # the nodes are symbols too, absolute ones
    ours = {(each.name, each.version, each.hidden, each.binding) for each in symbols.defined()}
    assert {each for each in ours if each[0] not in versions} == defined
    for name, version, _, _ in defined:
        assert version in {each.version for each in symbols.named(name, gnu_hash(name))}, name


def test_bindings_visibility_and_versions(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "map").write_text("V1 { global: old*; both; };\nV2 { global: *; } V1;\n", encoding="utf-8")
    path = compile_c(tmp_path, """
        extern void wanted(void); extern void feeble(void) __attribute__((weak));
        int plain(void) { wanted(); if (feeble) feeble(); return 1; }
        int old_one(void) { return 1; }
        __attribute__((weak)) int soft(void) { return 2; }
        __attribute__((visibility("hidden"))) int secret(void) { return 3; }
        __attribute__((visibility("protected"))) int guarded(void) { return 4; }
        static int mine(void) { return 5; }
        int both_new(void) { return mine() + secret(); }
        __asm__(".symver both_new, both@@V2");
        int both_old(void) { return 6; }
        __asm__(".symver both_old, both@V1");
        __asm__(".data\\n.globl single\\n.type single, @gnu_unique_object\\n.size single, 4\\nsingle: .long 7\\n.text");
    """, f"-Wl,--version-script={tmp_path / 'map'}", "-Wl,-soname,libx.so.1", "-Wl,-rpath,$ORIGIN:/opt",
        "-Wl,--disable-new-dtags", "-Wl,-z,now,-z,nodefaultlib,-z,global", "-Wl,-Bsymbolic")
    elf, symbols = read_elf(str(path)), symbols_of(path)
    assert isinstance(elf, ElfObject)
    assert (elf.soname, elf.rpath, elf.runpath, elf.base_version) == ("libx.so.1", "$ORIGIN:/opt", None, "libx.so.1")
    assert elf.defined_versions == ("V1", "V2")
    assert {"DF_SYMBOLIC", "DF_BIND_NOW", "DF_1_NOW", "DF_1_NODEFLIB", "DF_1_GLOBAL"} <= set(elf.flags)
    found = {name: [(each.version, each.hidden, each.binding) for each in symbols.named(name, gnu_hash(name))]
             for name in ("plain", "soft", "secret", "guarded", "mine", "single", "old_one", "nothing")}
    assert found == {
        "plain": [("V2", False, "global")], "soft": [("V2", False, "weak")], "secret": [], "mine": [], "nothing": [],
        "guarded": [("V2", False, "global")], "single": [("V2", False, "unique")], "old_one": [("V1", False, "global")]}
    both = {(each.version, each.hidden) for each in symbols.named("both", gnu_hash("both"))}
    assert both == {("V1", True), ("V2", False)}
    assert {(each.name, each.weak) for each in symbols.undefined()} == {("wanted", False), ("feeble", True)}
    assert [each.name for each in symbols.unique()] == ["single"]


@needs_tools
@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_each_hash_table_finds_every_symbol(tmp_path: Path, style: str) -> None:
    names = [f"function_{place}" for place in range(300)]
    source = "extern int outside(void);\n" + "".join(f"int {name}(void) {{ return outside(); }}\n" for name in names)
    symbols = symbols_of(compile_c(tmp_path, source, f"-Wl,--hash-style={style}"))
    assert all([each.name for each in symbols.named(name, gnu_hash(name))] == [name] for name in names)
    assert not symbols.named("function_", gnu_hash("function_"))
    assert not symbols.named("outside", gnu_hash("outside"))
    assert [each.name for each in symbols.undefined()] == ["outside"]
    assert {each.name for each in symbols.defined()} >= set(names)


@needs_tools
def test_relocations_in_the_loader_s_order(tmp_path: Path) -> None:
    path = compile_c(tmp_path, """
        extern int lazy_one(void), eager(void), lazy_two(void);
        int (*pointer)(void) = eager;
        int call(void) { return lazy_one() + lazy_two(); }
    """, "-fplt", "-Wl,-z,lazy")
    uses = symbols_of(path).uses({"lazy_one", "eager", "lazy_two", "absent"})
    assert (uses[0].name, uses[0].lazy) == ("eager", False)
    assert {(each.name, each.lazy) for each in uses[1:]} == {("lazy_one", True), ("lazy_two", True)}


def test_a_program_names_its_interpreter() -> None:
    elf = read_elf("/proc/self/exe")
    assert isinstance(elf, ElfObject)
    assert elf.interpreter
    assert elf.interpreter.startswith("/lib")


LIBRARY = Library(
    path="a/libq.so", soname="libq.so.1", needed=("libr.so.1", "libs.so.2"), runpath="$ORIGIN", versions=("V1",),
    defines=(Definition(name="mine", version="V1"), Definition(name="single", binding="unique")),
    refers=(Reference(name="theirs", version="V9", file="libr.so.1"), Reference(name="single"),
            Reference(name="weak", weak=True, plt=True)))


def test_a_file_without_section_headers() -> None:
    data = write(LIBRARY)
    elf, symbols = parse_elf(data, "libq"), MappedSymbols(data, "libq")
    assert (elf.soname, elf.needed, elf.runpath) == ("libq.so.1", ("libr.so.1", "libs.so.2"), "$ORIGIN")
    assert [(each.file, each.version) for each in elf.needed_versions] == [("libr.so.1", "V9")]
    assert {(each.name, each.version, each.file) for each in symbols.undefined()} == {
        ("theirs", "V9", "libr.so.1"), ("weak", None, None), ("dlopen", None, None)}
    assert {each.name for each in symbols.referred()} == {"theirs", "weak", "dlopen", "single"}


def test_every_truncation_is_a_record_or_an_error_about_the_file() -> None:
    """Behind a file's end its last page holds zeros: less than a page that is cut off looks like an empty table."""
    data = write(LIBRARY)
    refused = 0
    for size in range(len(data)):
        try:
            parse_elf(data[:size], "libq")
            symbols = MappedSymbols(data[:size], "libq")
            assert len(symbols.undefined()) + len(list(symbols.defined())) + len(symbols.uses({"weak"})) <= 6
        except BadElf:
            refused += 1
    assert refused > 200


@pytest.mark.parametrize(("content", "reason"), [
    (b"", "file too short"),
    (b"\x7fELF", "file too short"),
    (b"GROUP ( libm.so.6 libmvec.so.1 )\n", "file too short"),         # as the loader says of less than a header
    (b"/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( libm.so.6 )\n", "invalid ELF header"),
    (b"!<arch>\nthis is an archive of objects" + bytes(40), "invalid ELF header"),
    (b"\x7fELF\x02\x01\x01" + bytes(20), "file too short"),
    (b"\x7fELF\x01\x01\x01" + bytes(44), "file too short"),
])
def test_no_elf_file(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(content)
    assert read_elf(str(path)) == UnreadableElf(path=str(path), reason=reason)


def test_a_folder_and_a_pipe_are_no_elf_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = [read_elf(str(path)) for path in (tmp_path, tmp_path / "pipe")]
    assert [each.reason for each in found if isinstance(each, UnreadableElf)] == [
        "cannot read file data: Is a directory", "not a regular file"]
    assert [bool(each.crash) for each in found if isinstance(each, UnreadableElf)] == [False, True]


def test_foreign_files_are_read() -> None:
    head = b"\x7fELF\x01\x02\x01" + bytes(9) + bytes.fromhex("0003 0014 00000001 00000000 00000034") + bytes(8)
    load = bytes.fromhex("00000001") + bytes(28)
    big = head + bytes.fromhex("0034 0020 0001") + bytes(6) + load
    layout = Layout(big, "ppc")
    assert (layout.bits, layout.byte_order, layout.machine, layout.kind) == (32, "big", "ppc", "shared")
    elf = parse_elf(big, "ppc")
    assert (elf.dynamic, elf.needed, elf.flags) == (False, (), ())


def test_a_damaged_file_says_how_far_the_loader_looks(tmp_path: Path) -> None:
    """A loader passes over what is of another class or machine, whatever else is wrong with it."""
    path, data = tmp_path / "libx.so", bytearray(write(LIBRARY))
    data[4], data[54] = 9, 1                    # EI_CLASS, e_phentsize
    path.write_bytes(data)
    assert read_elf(str(path)) == UnreadableElf(
        path=str(path), reason="unknown ELF class 9", bits=0, byte_order="little")
    data[4] = 2
    path.write_bytes(data)
    assert read_elf(str(path)) == UnreadableElf(
        path=str(path), reason="ELF file's phentsize not the expected size", bits=64, byte_order="little",
        machine="x86_64")
    path.write_bytes(write(LIBRARY)[:100])
    assert read_elf(str(path)) == UnreadableElf(
        path=str(path), reason="cannot read file data", bits=64, byte_order="little", machine="x86_64")
    path.write_bytes(write(LIBRARY)[:1000])     # a page is mapped, as zeros behind the file's end
    assert isinstance(read_elf(str(path)), (ElfObject, UnreadableElf))


def test_hashes() -> None:
    assert (gnu_hash(""), gnu_hash("printf"), gnu_hash("syscall")) == (5381, 0x156B2BB8, 0xBAC212A0)
    assert (sysv_hash(b""), sysv_hash(b"printf"), sysv_hash(b"jdfgsdhfsdfsd 6445dsfsd7fg/*/+bfjsdgf%$^")) == (
        0, 0x077905A6, 248446350)


def test_a_chain_without_end_is_an_error() -> None:
    data = bytearray(write(Library(path="x", gnu_hash=False, defines=(Definition(name="a"), Definition(name="b")))))
    symbols = MappedSymbols(bytes(data), "x")
    table = symbols.dynamic.table(DT_HASH)
    assert table
    for index in range(symbols.hashes.unhashed):    # each symbol's successor is itself
        at = table + 8 + 4 * (symbols.hashes.buckets + index)
        data[at:at + 4] = index.to_bytes(4, "little")
    with pytest.raises(BadElf, match="without end"):
        MappedSymbols(bytes(data), "x").named("zzz", gnu_hash("zzz"))


def test_names_that_are_one_long_string_over_and_over_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a few megabytes could else ask for gigabytes."""
    names = [f"{'long' * 250}{place}" for place in range(40)]
    data = write(Library(path="x", refers=tuple(Reference(name=name) for name in names)))
    assert {each.name for each in MappedSymbols(data, "x").undefined()} == {*names, "dlopen"}
    monkeypatch.setattr("stackfix.inspect.elf_table.MOST_TEXT", 20_000)
    with pytest.raises(BadElf, match="symbol names"):
        MappedSymbols(data, "x").undefined()
