"""The PTX computes what is compared, by an interpreter of its own, and ptxas takes it for all that it knows."""

from __future__ import annotations

import ast
import inspect
import math
import os
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.verify import child_kernels
from stackfix.verify.child_kernels import BLOCK, PTX, mirror, saxpy, waves

WHEELS = {"nvidia-cuda-nvcc-cu12": ("sm_50", "sm_90"), "nvidia-cuda-nvcc": ("sm_75", "sm_100")}


class Machine:
    """Runs the few instructions of PTX that the kernels use, a block at a time, each thread up to the barrier."""

    def __init__(self, text: str, entry: str) -> None:
        head, _, rest = text.partition(f".entry {entry}(")[2].partition(")")
        self.parameters = re.findall(r"\.param \.(\w+) (\w+)", head)
        body = rest.partition("{")[2].partition("}")[0]
        self.lines = [line.strip() for line in re.split(r"[;\n]", body)
                      if line.strip() and not line.strip().startswith((".reg", ".shared", "//"))]
        self.memory: dict[int, int] = {}        # 32-bit words by address

    def run(self, blocks: int, threads: int, *values: float) -> None:
        given = {name: struct.unpack("I", struct.pack("f", value))[0] if kind == "f32" else int(value)
                 for (kind, name), value in zip(self.parameters, values, strict=True)}
        for block in range(blocks):
            shared: dict[int, int] = {}
            common = {"%ctaid.x": block, "%ntid.x": threads, "block": 0, **given}
            running = [self.thread({**common, "%tid.x": thread}, shared) for thread in range(threads)]
            while running:
                running = [each for each in running if next(each, None) is not None]

    def thread(self, registers: dict[str, int], shared: dict[int, int]) -> Iterator[bool]:
        """One thread; yields at a barrier."""
        place = 0
        while (line := self.lines[place]) != "ret":
            place += 1
            if line.endswith(":"):
                continue
            if guard := re.fullmatch(r"@(%p\d) bra (\w+)", line):
                place = self.lines.index(f"{guard[2]}:") if registers[guard[1]] else place
                continue
            name, _, operands = line.partition(" ")
            if name == "bar.sync":
                yield True
                continue
            self.step(name, [each.strip() for each in operands.split(",")], registers, shared)

    def step(self, name: str, operands: list[str], registers: dict[str, int], shared: dict[int, int]) -> None:
        operation, *_, kind = name.split(".")
        space = shared if ".shared." in name else self.memory
        to = operands[0].strip("[]")
        if operation == "st":
            space[registers[to]] = registers[operands[1]]
            return
        if name.startswith(("ld.global", "ld.shared")):
            registers[to] = space[registers[operands[1].strip("[]")]]
            return
        first, *more = (registers[each] if each in registers else int(each)
                        for each in (each.strip("[]") for each in operands[1:]))
        width = 64 if kind.endswith("64") or ".wide." in name else 32
        registers[to] = computed(operation, first, more) & ((1 << width) - 1)


def computed(operation: str, first: int, more: list[int]) -> int:
    """The operation on whole numbers; `fma` on float32 with one rounding."""
    if operation in {"mov", "ld", "cvta"}:
        return first
    if operation == "fma":
        a, x, y = (struct.unpack("f", struct.pack("I", each))[0] for each in (first, *more))
        # exact in float64 but for its last bit, which the rounding to float32 hides
        return int(struct.unpack("I", struct.pack("f", a * x + y))[0])
    second = more[0]
    if operation == "mad":
        return first * second + more[1]
    return {"mul": first * second, "add": first + second, "sub": first - second, "xor": first ^ second,
            "shl": first << (second & 63), "shr": first >> second, "setp": int(first >= second)}[operation]


def words(values: list[float]) -> list[int]:
    return [struct.unpack("I", struct.pack("f", each))[0] for each in values]


def test_saxpy_computes_a_x_plus_y_and_stops_at_n() -> None:
    machine, count, room = Machine(PTX, "saxpy"), 300, 512
    x, y = waves(room, 0.37), waves(room, 0.11)
    at_x, at_y = 1 << 33, 1 << 34           # addresses that need 64 bits
    machine.memory = {at + 4 * place: word for at, values in ((at_x, x), (at_y, y))
                      for place, word in enumerate(words(values))}
    machine.run(2, BLOCK, at_y, at_x, 1.375, count)
    got = [struct.unpack("f", struct.pack("I", machine.memory[at_y + 4 * place]))[0] for place in range(room)]
    want = saxpy(1.375, x, y)
    assert all(math.isclose(*each, rel_tol=1e-6, abs_tol=1e-6) for each in zip(got[:count], want, strict=False))
    assert words(got[count:]) == words(y[count:])


def test_mirror_computes_what_is_expected_of_it() -> None:
    machine, at = Machine(PTX, "mirror"), 1 << 33
    machine.run(2, BLOCK, at, 20_240_607)
    assert [machine.memory[at + 4 * place] for place in range(2 * BLOCK)] == mirror(20_240_607, 2)
    assert len(set(mirror(20_240_607, 40))) == 40 * BLOCK


@pytest.mark.parametrize(("entry", "right", "broken"), [
    ("mirror", "sub.u32 %r10, %r10, 1;", "sub.u32 %r10, %r10, 0;"),
    ("mirror", "1664525", "1664524"),
    ("mirror", "shr.u32 %r7, %r6, 15", "shr.u32 %r7, %r6, 14"),
    ("saxpy", "setp.ge.u32 %p1, %r5, %r1", "setp.ge.u32 %p1, %r5, %r3"),
])
def test_the_interpreter_sees_a_broken_kernel(entry: str, right: str, broken: str) -> None:
    assert right in PTX
    with pytest.raises((AssertionError, KeyError)):
        wrong_kernel(Machine(PTX.replace(right, broken), entry), entry)


def wrong_kernel(machine: Machine, entry: str) -> None:
    if entry == "mirror":
        machine.run(1, BLOCK, 0, 5)
        assert [machine.memory[4 * place] for place in range(BLOCK)] == mirror(5, 1)
    else:
        machine.memory = dict.fromkeys(range(0, 1 << 13, 4), words([1.0])[0])
        machine.run(2, BLOCK, 0, 1 << 12, 1.0, 300)
        assert [machine.memory[4 * place] for place in range(512)] == words([2.0] * 300 + [1.0] * 212)


def test_constants_of_the_kernel_and_of_what_is_expected_are_the_same() -> None:
    """Both are written down once in text and once in Python."""
    numbers = {node.value for node in ast.walk(ast.parse(inspect.getsource(child_kernels)))
               if isinstance(node, ast.Constant) and isinstance(node.value, int)}
    assert {int(each) for each in re.findall(r"\b\d{6,}\b", PTX)} <= numbers
    assert int(re.findall(r"\.b8 block\[(\d+)\]", PTX)[0]) == 4 * BLOCK


@pytest.mark.real
@pytest.mark.parametrize("project", WHEELS)
def test_ptxas_takes_it_for_every_architecture_it_knows(project: str, tmp_path: Path) -> None:
    """Two wheels of some 45 MB: the last ptxas that knows Maxwell to Volta, and the newest."""
    ptxas = fetched(project, tmp_path)
    help_text = subprocess.run([ptxas, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    architectures = sorted(set(re.findall(r"'(sm_\d+[af]?)'", help_text)))
    assert set(WHEELS[project]) <= set(architectures)
    source = tmp_path / "kernels.ptx"
    source.write_text(PTX)
    for each in architectures:
        done = subprocess.run([ptxas, f"-arch={each}", str(source), "-o", str(tmp_path / each)], capture_output=True,
                              text=True, check=False, timeout=120)
        assert (done.returncode, done.stderr) == (0, ""), each
        assert (tmp_path / each).stat().st_size > 0
    broken = tmp_path / "broken.ptx"
    broken.write_text(PTX.replace("bar.sync 0", "bar.sink 0"))
    assert subprocess.run([ptxas, f"-arch={architectures[0]}", str(broken)], capture_output=True, cwd=tmp_path,
                          check=False, timeout=120).returncode != 0


def fetched(project: str, folder: Path) -> Path:
    """ptxas out of the newest wheel."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_FIND", "PIP_CONSTRAINT"))}
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                    "--disable-pip-version-check", "--dest", str(folder), project],
                   env={**environ, "PIP_CONFIG_FILE": os.devnull}, check=True, timeout=600)
    wheel = next(folder.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        inside = next(name for name in archive.namelist() if name.endswith("/bin/ptxas"))
        path = Path(archive.extract(inside, folder))
    path.chmod(0o755)
    return path
