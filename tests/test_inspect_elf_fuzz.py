"""Damaged and hostile ELF files: a record or an error about the file, never a crash, a hang or a flood of memory.

STACKFIX_FUZZ_SECONDS=600 lets `test_damaged_files_for_a_while` run that long; a few seconds are the rule.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stackfix.inspect.elf import parse_elf
from stackfix.inspect.elf_layout import Buffer
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.records import BadElf, SymbolNames
from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.generate import generate

SECONDS = float(os.environ.get("STACKFIX_FUZZ_SECONDS", "3"))
MEMORY = 300 << 20
LIBRARIES = [library for place in range(6) for library in generate(3, place).libraries if not library.garbage]
FILES = [write(library) for library in LIBRARIES]
EXTREMES = (0, 1, 2, 3, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1,
            (1 << 64) - 1)
NAMES = ("s0", "s1", "nowhere", "dlopen", "")


def read_all(data: Buffer) -> None:
    """Ask everything that the simulation asks. Names asked for together get the answers that each gets alone."""
    try:
        parse_elf(data, "damaged")
        symbols = MappedSymbols(data, "damaged")
    except BadElf:
        return
    with contextlib.suppress(BadElf):
        together = symbols.offered(SymbolNames(NAMES))
        alone = {name: [tuple(each)[1:] for each in symbols.named(name)] for name in NAMES}
        assert alone == {name: [tuple(each) for each in together.get(name, ())] for name in NAMES}
    for name in NAMES:
        for question in (lambda n=name: symbols.named(n), lambda n=name: symbols.uses({n}),
                         lambda n=name: MappedSymbols(data, "damaged").offered(SymbolNames([n]))):
            with contextlib.suppress(BadElf):
                question()
    for whole in (symbols.undefined, symbols.unique, symbols.referred, lambda: list(symbols.defined())):
        with contextlib.suppress(BadElf):
            whole()


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A file with bytes flipped, numbers put to extremes, tables moved over one another, or its end cut off."""
    data = bytearray(draw(st.sampled_from(FILES)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data) - 1))
        kind = draw(st.sampled_from(("flip", "extreme", "copy")))
        if kind == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "extreme":
            number = draw(st.sampled_from(EXTREMES)) & ((1 << 8 * (size := draw(st.sampled_from((2, 4, 8))))) - 1)
            data[at:at + size] = number.to_bytes(size, "little")
        else:
            other = draw(st.integers(0, len(data) - 1))
            data[at:at + 16] = data[other:other + 16]
    return bytes(data[:draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(damaged())
def test_damaged_files(data: bytes) -> None:
    read_all(data)


def mutations(rng: random.Random) -> Iterator[bytes]:
    """Damage aimed at the numbers that matter: headers, the dynamic section, version and hash tables."""
    while True:
        data = bytearray(rng.choice(FILES))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(0, len(data), rng.choice((1, 2, 4, 8)))
            size = rng.choice((1, 2, 4, 8))
            number = rng.choice((rng.choice(EXTREMES), rng.randrange(len(data)), rng.randrange(1 << 16)))
            data[at:at + size] = (number & (1 << 8 * size) - 1).to_bytes(size, "little")
        yield bytes(data[:rng.randrange(len(data))] if rng.random() < 0.1 else data)


def test_damaged_files_for_a_while() -> None:
    seed = random.randrange(1 << 32)        # noqa: S311 - not a secret
    print(f"seed {seed}")                   # noqa: T201 - to repeat a failure
    slowest, count, end = 0.0, 0, time.monotonic() + SECONDS
    for data in mutations(random.Random(seed)):     # noqa: S311 - not a secret
        start = time.monotonic()
        read_all(data)
        slowest, count = max(slowest, time.monotonic() - start), count + 1
        if time.monotonic() > end:
            break
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{count} files, the slowest took {slowest:.3f} s, {memory} MB at most")    # noqa: T201 - for the note
    assert slowest < 30


HUGE = 3 << 30
AT = 0x100000                   # where the claims of a huge file stand


def with_dynamic(data: bytes, changes: dict[int, int]) -> bytearray:
    """`data` with values of its dynamic section replaced, by tag."""
    out = bytearray(data)
    for place in range(data[56]):
        kind, _, start, _, _, size = struct.unpack_from("<IIQQQQ", data, 64 + 56 * place)
        for at in range(start, start + size if kind == 2 else start, 16):
            tag = struct.unpack_from("<Q", data, at)[0]
            if tag in changes:
                struct.pack_into("<Q", out, at + 8, changes[tag])
        if kind == 1:           # PT_LOAD covers the whole file
            struct.pack_into("<QQ", out, 64 + 56 * place + 32, HUGE, HUGE)
    return out


@pytest.mark.parametrize(("claims", "head"), [
    ({0x6FFFFEF5: AT}, struct.pack("<4I", 1 << 20, 0x7FFFFFFF, 1, 6)),                      # symbols before the hashed
    ({0x6FFFFEF5: AT}, struct.pack("<4IQ", 1 << 19, 999_000, 1, 6, (1 << 64) - 1)),       # as many as are taken
    ({0x6FFFFEF5: AT}, struct.pack("<4I", 0x20000000, 1, 1, 6)),                            # buckets
    ({0x6FFFFEF5: AT}, struct.pack("<4IQ", 1, 1, 1, 6, (1 << 64) - 1) + b"\2\0\0\0"),     # a chain of zeros
    ({10: HUGE, 5: AT}, b"\1" * (8 << 20)),                                                 # a string of megabytes
    ({8: 1 << 31, 7: AT, 9: 24}, b"\1" * (8 << 20)),                                        # relocations
    ({0x6FFFFFFD: 0xFFFFFFFF, 0x6FFFFFFC: AT}, struct.pack("<HHHHIII", 1, 0, 2, 1, 0, 0, 20) * 100_000),
], ids=["undefined", "symbols", "buckets", "chain", "string", "relocations", "versions"])
def test_time_and_memory_stay_bounded_over_a_huge_file(tmp_path: Path, claims: dict[int, int], head: bytes) -> None:
    """A sparse file of 3 GB whose tables claim all of it, read in a child whose own memory is looked at."""
    path = tmp_path / "huge.so"
    library = next(each for each in LIBRARIES if each.gnu_hash and each.versions and each.refers)
    with path.open("wb") as stream:
        stream.write(with_dynamic(write(library), claims))
        stream.seek(AT)
        stream.write(head)
        stream.truncate(HUGE)
    code = ("import os, sys, tracemalloc; from stackfix.inspect.elf import map_file; "
            "from tests.test_inspect_elf_fuzz import read_all; tracemalloc.start(1); "
            "d = os.open(sys.argv[1], os.O_RDONLY); read_all(map_file(d, 'huge')); "
            "print(tracemalloc.get_traced_memory()[1])")
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=240,
                          check=False, cwd=Path(__file__).parent.parent)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MEMORY
