"""Damaged files: the simulated loader takes and refuses what the real one does, in the same words."""

from __future__ import annotations

import os
import platform
import random
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stackfix.diagnose.faults_text import seen_error
from stackfix.diagnose.records import BadLibrary
from tests.loader_oracle.damage import Opener, Seed, compare, compile_seeds, said
from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.graph import Definition, Library

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc" or not shutil.which("gcc"),
    reason="files are for x86_64 and glibc's loader, and gcc compiles them")
release = tuple(int(part) for part in platform.libc_ver()[1].split(".")[:2]) if platform.libc_ver()[1] else (0, 0)
as_2_36 = pytest.mark.skipif(release != (2, 36), reason="checks and words are those of glibc 2.36")
MUTANTS, LEAST_ALIKE = 400, 0.75
LARGE = [path for path in map(Path, ("/lib/x86_64-linux-gnu/libcrypto.so.3", "/lib/x86_64-linux-gnu/libstdc++.so.6",
                                     "/usr/lib64/libcrypto.so.3", "/usr/lib64/libstdc++.so.6")) if path.exists()]


@dataclass(frozen=True, slots=True)
class Bench:
    """What is built once."""

    folder: Path
    opener: Opener
    seed: Seed

    def answers(self, *contents: bytes) -> list[tuple[str, str]]:
        """What the real loader says of each file, and the simulated one, with `X` for its path."""
        paths = [self.folder / f"libx{place}.so" for place in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.unlink(missing_ok=True)
            path.write_bytes(content)
        return [(real.replace(str(path), "X"), said(outcome).replace(str(path), "X")) for path, real, outcome in
                zip(paths, self.opener.real(paths), self.opener.simulated(paths), strict=True)]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        yield Bench(folder, Opener(folder), compile_seeds(folder)[0])


@as_2_36
def test_random_damage_is_judged_as_the_real_loader_judges_it(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)        # noqa: S311 - not a secret
    found, different = compare(tmp_path, MUTANTS, seed)
    print(f"seed {seed}: {dict(found)}")    # noqa: T201 - to repeat a failure
    assert not different, f"seed {seed}"
    assert found["same"] >= LEAST_ALIKE * MUTANTS


def headers(seed: Seed, kind: int) -> list[int]:
    """Places of the program headers of one kind in the file."""
    begin, end = seed.parts["program headers"]
    return [at for at in range(begin, end, 56) if struct.unpack_from("<I", seed.content, at)[0] == kind]


def entry(seed: Seed, tag: int) -> int:
    """Place of a tag of the dynamic section in the file."""
    begin, end = seed.parts["dynamic section"]
    return next(at for at in range(begin, end, 16) if struct.unpack_from("<Q", seed.content, at)[0] == tag)


def edited(seed: Seed, *edits: tuple[int, bytes]) -> bytes:
    content = bytearray(seed.content)
    for at, new in edits:
        content[at:at + len(new)] = new
    return bytes(content)


HEADER = {      # place: what is written there, and what the loader says of it
    "magic": (1, b"L", "X: invalid ELF header"),
    "class": (4, b"\1", "X: wrong ELF class: ELFCLASS32"),
    "class of no kind": (4, b"\7", "X: wrong ELF class: ELFCLASS32"),
    "byte order": (5, b"\2", "X: ELF file data encoding not little-endian"),
    "byte order of no kind": (5, b"\0", "X: ELF file data encoding not little-endian"),
    "version in the identification": (6, b"\2", "X: ELF file version ident does not match current one"),
    "ABI of another system": (7, b"\x09", "X: ELF file OS ABI invalid"),
    "ABI of GNU": (7, b"\3\2", ""),
    "ABI version": (8, b"\1", "X: ELF file ABI version invalid"),
    "ABI version of GNU": (7, b"\3\x09", "X: ELF file ABI version invalid"),
    "padding": (12, b"\1", "X: nonzero padding in e_ident"),
    "version": (20, b"\2", "X: ELF file version does not match current one"),
    "machine": (18, b"\xb7", "X: cannot open shared object file: No such file or directory"),
    "machine and type": (16, b"\1\0\xb7", "X: cannot open shared object file: No such file or directory"),
    "type": (16, b"\1", "X: only ET_DYN and ET_EXEC can be loaded"),
    "type and size of program headers": (16, b"\4", "X: only ET_DYN and ET_EXEC can be loaded"),
    "executable": (16, b"\2", "X: cannot dynamically load executable"),
    "size of program headers": (54, b"\x20", "X: ELF file's phentsize not the expected size"),
    "no program headers": (56, b"\0", "X: object file has no loadable segments"),
    "program headers behind the end": (34, b"\x10", "X: cannot read file data"),
    "program headers before the begin": (39, b"\x80", "X: cannot read file data: Invalid argument"),
}


@as_2_36
def test_header_in_the_loader_s_words(bench: Bench) -> None:
    found = bench.answers(*(edited(bench.seed, (at, new)) for at, new, _ in HEADER.values()))
    expected = {name: (words, words) for name, (_, _, words) in HEADER.items()}
    assert dict(zip(HEADER, found, strict=True)) == expected


@as_2_36
def test_segments_and_tables_in_the_loader_s_words(bench: Bench) -> None:
    seed = bench.seed
    first, *_, last = headers(seed, 1)
    dynamic, relro = headers(seed, 2)[0], headers(seed, 0x6474E552)[0]
    begin = struct.unpack_from("<Q", seed.content, entry(seed, 0x6FFFFFFE) + 8)[0]
    number = struct.Struct("<Q").pack
    cases = {
        "X: ELF load command address/offset not page-aligned": edited(seed, (last + 8, b"\1")),
        "X: object file has no dynamic section": edited(seed, (dynamic, b"\0")),
        "X: object file has no loadable segments": edited(seed, *((at, b"\0") for at in headers(seed, 1))),
        "X: failed to map segment from shared object": edited(seed, (last + 40, number(1 << 50))),
        "X: cannot map zero-fill pages": edited(seed, (first + 40, number(1 << 46))),
        "X: cannot apply additional memory protection after relocation: Cannot allocate memory":
            edited(seed, (relro + 16, number((1 << 46) + 0xE38))),
        "X: unsupported version 2 of Verneed record": edited(seed, (begin, b"\2")),
        "": edited(seed, (entry(seed, 10) + 8, number(1)), (dynamic + 8, number(0)),      # DT_STRSZ, p_offset
                   (entry(seed, 0x6FFFFFFF) + 8, number(99)), (entry(seed, 11) + 8, number(3))),
        "Inconsistency detected by ld.so": edited(seed, (entry(seed, 9) + 8, number(23))),
    }
    found = dict(zip(cases, bench.answers(*cases.values()), strict=True))
    assert found == {words: (words, words) for words in cases}


@as_2_36
def test_a_false_hash_of_a_version_is_another_version(bench: Bench) -> None:
    at = struct.unpack_from("<Q", bench.seed.content, entry(bench.seed, 0x6FFFFFFE) + 8)[0] + 16
    (real, simulated), = bench.answers(edited(bench.seed, (at, b"\0\0\0\0")))
    assert "version `GLIBC_2." in real
    assert "not found (required by X)" in real
    assert simulated == real


@as_2_36
def test_no_noopen_library_is_dlopened(bench: Bench) -> None:
    library = bench.folder / "libno.so"
    subprocess.run(["gcc", "-shared", "-o", str(library), str(bench.folder / "seed.c"), "-Wl,-z,nodlopen"],
                   check=True, timeout=60)
    assert bench.answers(library.read_bytes()) == [("X: shared object cannot be dlopen()ed",) * 2]


@as_2_36
def test_a_file_cut_short(bench: Bench) -> None:
    """Less than a header, less than the program headers, and less than the segments: there the process dies."""
    content = bench.seed.content
    sizes = (0, 18, 63, 64, 100, *range(0x1000, len(content), 0x400))
    found = bench.answers(*(content[:size] for size in sizes))
    assert [real for real, _ in found] == [simulated for _, simulated in found]
    assert [real for real, _ in found][:5] == ["X: file too short"] * 3 + ["X: cannot read file data"] * 2


@as_2_36
def test_a_small_file_without_its_dynamic_section_kills_the_process(bench: Bench) -> None:
    """Behind the end of a file, up to the page's, there are zeros: no dynamic section, and none that is missing."""
    content = write(Library(path="", soname="libsmall.so", defines=(Definition(name="here"),)))
    found = bench.answers(*(content[:size] for size in range(240, len(content) // 2, 40)))
    assert len(found) > 5
    assert set(found) == {("Segmentation fault", "Segmentation fault")}
    cut = bench.folder / "libcut.so"
    cut.write_bytes(content[:300])
    failure = bench.opener.simulated([cut])[0].failure
    assert isinstance(failure, BadLibrary)
    assert failure.why == "cut short: the dynamic section is behind its end"


@as_2_36
@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.name)
def test_a_large_library_cut_short_kills_the_process(bench: Bench, path: Path) -> None:
    content = path.read_bytes()
    found = bench.answers(*(content[:len(content) * part // 10] for part in range(1, 10)))
    assert found == [("Bus error", "Bus error")] * 9
    cut = bench.folder / "libcut.so"
    cut.write_bytes(content[:len(content) // 2])
    failure = bench.opener.simulated([cut])[0].failure
    assert isinstance(failure, BadLibrary)
    assert failure.why.startswith(f"cut short: {len(content) // 2} bytes of at least ")
    assert seen_error(failure) is None      # there is no line of the loader's


def test_paths_that_cannot_be_opened(bench: Bench) -> None:
    (bench.folder / "loop.so").symlink_to("loop.so")
    (bench.folder / "nowhere.so").symlink_to("absent.so")
    (bench.folder / "folder.so").mkdir()
    paths = [bench.folder / f"{name}.so" for name in ("loop", "nowhere", "folder", "absent")]
    real = bench.opener.real(paths)
    assert [said(outcome) for outcome in bench.opener.simulated(paths)] == real
    assert [words.partition(".so: ")[2] for words in real] == [
        "cannot open shared object file: Too many levels of symbolic links",
        "cannot open shared object file: No such file or directory", "cannot read file data: Is a directory",
        "cannot open shared object file: No such file or directory"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(bench: Bench) -> None:
    path = bench.folder / "libsecret.so"
    path.write_bytes(bench.seed.content)
    path.chmod(0)
    real, = bench.opener.real([path])
    assert real == f"{path}: cannot open shared object file: Permission denied"
    assert [said(outcome) for outcome in bench.opener.simulated([path])] == [real]
