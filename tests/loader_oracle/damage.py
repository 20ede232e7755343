"""Damaged files before the real dlopen and the simulated one: both accept, or both refuse with the same words.

python -m tests.loader_oracle.damage --count 20000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import signal
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackfix.diagnose.loader import Simulator
from stackfix.diagnose.records import BadLibrary, LoadOutcome, OpenLibrary, ProcessState, StartProgram
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.records import LoaderEnvironment
from tests.loader_oracle.observe import machine

HERE = Path(__file__).parent
X86_64 = 62
NUMBERS = (0, 1, 2, 0x7F, 0x1000, 1 << 31, 1 << 32, 1 << 40, 1 << 63, (1 << 64) - 1)
SOURCE = """
extern char *getenv (const char *), *secure_getenv (const char *);
__attribute__ ((visibility ("default"))) int zeros[3000];
__attribute__ ((visibility ("default"))) void *pointer = &zeros[7];
int old_name (void) { return getenv ("A") != 0; }
int new_name (void) { return secure_getenv ("B") != 0; }
"""
DEATHS: dict[int, str] = {signal.SIGBUS: "Bus error", signal.SIGSEGV: "Segmentation fault"}
SCRIPT = "V1 { global: old*; local: none; };\nV2 { global: *; } V1;\n"


@dataclass(frozen=True, slots=True)
class Seed:
    """A sound library, and the parts of it that are damaged, by name: (begin, end) in the file."""

    content: bytes
    parts: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Damaged:
    """One mutant."""

    content: bytes
    parts: tuple[str, ...]


def compile_seeds(folder: Path) -> list[Seed]:
    """Libraries of this machine's gcc and ld, without code that runs when they are loaded."""
    (folder / "seed.c").write_text(SOURCE, encoding="utf-8")
    (folder / "seed.map").write_text(SCRIPT, encoding="utf-8")
    found = []
    for place, options in enumerate((("-Wl,-z,relro,-z,now",), ("-Wl,--hash-style=both", "-Wl,-z,norelro,-z,lazy"),
                                     ("-Wl,-z,noseparate-code", "-Wl,-soname,libseed.so.1", "-Wl,-rpath,/nowhere"))):
        path = folder / f"seed{place}.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-nostartfiles", "-o", str(path), str(folder / "seed.c"),
                        f"-Wl,--version-script={folder / 'seed.map'}", *options], check=True, timeout=120)
        content = path.read_bytes()
        found.append(Seed(content, parts_of(content)))
    return found


def parts_of(content: bytes) -> dict[str, tuple[int, int]]:
    """The parts of a sound library that decide whether it is taken."""
    start, count = struct.unpack_from("<Q", content, 32)[0], struct.unpack_from("<H", content, 56)[0]
    parts = {"header": (0, 64), "program headers": (start, start + 56 * count)}
    headers = [struct.unpack_from("<IIQQQQQQ", content, start + 56 * place) for place in range(count)]
    loads = [each for each in headers if each[0] == 1]
    at = next(each for each in headers if each[0] == 2)
    parts["dynamic section"] = at[2], at[2] + at[5]
    for tag, value in struct.iter_unpack("<QQ", content[at[2]:at[2] + at[5]]):
        if tag in {0x6FFFFFFC, 0x6FFFFFFE}:
            place = next(each[2] + value - each[3] for each in loads if each[3] <= value < each[3] + each[5])
            parts["version tables"] = place, place + 0x40
    return parts


def damage(seeds: Sequence[Seed], rng: random.Random) -> Iterator[Damaged]:
    """Mutants without end: bytes, bits or numbers of one or more parts changed, or the end cut off."""
    while True:
        seed = rng.choice(seeds)
        content, hit = bytearray(seed.content), list[str]()
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            part = rng.choice(sorted(seed.parts))
            begin, end = seed.parts[part]
            at, kind = rng.randrange(begin, end), rng.random()
            if kind < 0.4:
                content[at] = rng.randrange(256)
            elif kind < 0.7:
                content[at] ^= 1 << rng.randrange(8)
            else:
                number = rng.choice((*NUMBERS, len(content), rng.randrange(len(content))))
                content[at & ~7:(at & ~7) + 8] = struct.pack("<Q", number)
            hit.append(part)
        if rng.random() < 0.1:
            del content[rng.randrange(len(content)):]
            hit.append("cut")
        yield Damaged(bytes(content), tuple(hit))


class Opener:
    """The real dlopen and the simulated one, in a program that holds nothing but libc."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.program = folder, folder / "opener"
        subprocess.run(["gcc", "-O1", "-o", str(self.program), str(HERE / "opener.c")], check=True, timeout=120)
        self.environment = LoaderEnvironment(machine=machine(), cwd=str(folder))

    def real(self, paths: Sequence[Path]) -> list[str]:
        """What the real loader does with each path, in a child for each."""
        done = subprocess.run([str(self.program)], input="".join(f"{path}\n" for path in paths).encode(), check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=600, cwd=self.folder,
                              env={"LC_ALL": "C"})
        return [spoken(line) for line in done.stdout.decode("utf-8", "surrogateescape").split("\n")[:-1]]

    def simulated(self, paths: Sequence[Path]) -> list[LoadOutcome]:
        """What the simulated one does with each."""
        simulator = Simulator(self.environment, DiskFiles())
        state = simulator.load(StartProgram(path=str(self.program)), ProcessState()).state
        return [simulator.load(OpenLibrary(name=str(path)), state) for path in paths]


def spoken(line: str) -> str:
    """A line of the opener as what a person sees: the loader's words, how it died, or nothing."""
    kind, _, rest = line.partition("\t")
    if kind == "signal":
        return DEATHS.get(int(rest), f"signal {rest}")
    if kind == "status":
        return "Inconsistency detected by ld.so" if rest == "127" else f"status {rest}"
    return rest if kind == "error" else ""


def said(outcome: LoadOutcome) -> str:
    """The simulation's answer in the same words."""
    failure = outcome.failure
    if failure is None:
        return ""
    crash = getattr(failure, "crash", None)
    return "Inconsistency detected by ld.so" if crash is True else failure.message()


CRASHES = ("Bus error", "Segmentation fault", "Inconsistency detected", "signal ", "status ")
ROOM = ("failed to map segment", "cannot map zero-fill pages", "cannot apply additional memory protection")


def judge(real: str, outcome: LoadOutcome, content: bytes) -> str:     # noqa: PLR0911 - one for each class
    """"same", the class of difference that is known and meant, or "DIFFERS".

    The simulation reads no code, no relocation but for its symbol, and no memory beside the file's own.
    """
    simulated, failure = said(outcome), outcome.failure
    if real == simulated:
        return "same"
    why = failure.why if isinstance(failure, BadLibrary) else ""
    if real.startswith(CRASHES):
        return "dies otherwise" if simulated.startswith(CRASHES) else "dies"
    if "unexpected reloc type" in real:
        return "relocation"
    if simulated.startswith(CRASHES) or any(each in real or each in simulated for each in ROOM):
        beside = ("lies in no segment", "lies over", "lies behind", "not all mapped")
        if any(each in why for each in beside) or any(each in text for each in ROOM for text in (real, simulated)):
            return "memory beside the file"
        if "cut short" in why:
            return "cut short"
    if "undefined symbol" in real + simulated:
        return "symbol table"
    if any(struct.pack("<Q", tag) in content for tag in (0x7FFFFFFF, 0x7FFFFFFD)) and "cannot open" in real:
        return "DT_FILTER or DT_AUXILIARY"
    if content[18] | content[19] << 8 != X86_64 and "cannot open" in real:
        return "two faults, one of them the machine"    # Debian's patch compares the machine first
    return "DIFFERS"


def compare(folder: Path, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often each class of answer came, and in words what must not differ and does."""
    opener, source = Opener(folder), damage(compile_seeds(folder), random.Random(seed))     # noqa: S311 - no secret
    mutants = [next(source) for _ in range(count)]
    paths = [folder / f"mutant{place}.so" for place in range(count)]
    for path, mutant in zip(paths, mutants, strict=True):
        path.write_bytes(mutant.content)
    found, different = Counter[str](), list[str]()
    for path, mutant, real, outcome in zip(paths, mutants, opener.real(paths), opener.simulated(paths), strict=True):
        verdict = judge(real, outcome, mutant.content)
        found[verdict] += 1
        if verdict == "DIFFERS":
            why = f" ({outcome.failure.why})" if isinstance(outcome.failure, BadLibrary) else ""
            different.append(f"{path.name}, damaged in {', '.join(mutant.parts)}: ld.so {real!r}, "
                             f"simulated {said(outcome)!r}{why}")
    return found, different


def main() -> int:
    """Compare as many as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))      # noqa: S311 - no secret
    parser.add_argument("--keep", type=Path, help="folder for the files")
    options = parser.parse_args()
    sys.stdout.write(f"seed {options.seed}\n")
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(exist_ok=True)
        found, different = compare(folder.resolve(), options.count, options.seed)
    for line in (*different, *(f"{count:6} {verdict}" for verdict, count in found.most_common())):
        sys.stdout.write(f"{line}\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
