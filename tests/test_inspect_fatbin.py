"""GPU code in shared objects: files with known fatbins, damaged ones, and (`real`) what nvcc and cuobjdump say.

Layout of the fixtures, as real files of CUDA 11 to 13 have it: a fatbin header of 16 bytes, then entries of 64 bytes
or more, each followed by its payload.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.diagnose.gpu_archs import RunsOn, arch_runs_on, runs_on
from stackfix.inspect.fatbin import MOST_HEADERS, parse_gpu_archs, read_gpu_archs
from stackfix.inspect.fatbin_records import CodeSet, GpuArchs, UnreadableFatbin
from stackfix.inspect.places import Root
from stackfix.inspect.plain import from_json, to_json
from stackfix.inspect.records import BadElf
from tests.inspect_trees import HERMETIC

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
PTX, CUBIN, LTO = 1, 2, 8
KERNEL, HOLLOW = 3112, 760      # bytes of a cubin with a small kernel, and of one without any
PLAIN, LZ4, ZSTD = 0x11, 0x2011, 0x8011
SPECIFIC, FAMILY = 0x100000, 0x200000
EXTREMES = (0, 1, 8, 15, 16, 63, 64, 0x7FFF, 0xFFFF, 0xBA55ED50, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1)


def entry(kind: int, arch: int, *, flags: int = PLAIN, size: int = KERNEL, more: int = 0) -> bytes:
    """One entry. Compressed ones are given a payload of a third; `more` bytes of header follow the first 64."""
    packed = size if flags & 0xA000 == 0 else size // 3
    payload = packed + 7 & ~7
    head = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x0101, 64 + more, payload, packed if packed != size else 0,
                       64 if more else 0, 7, 1, arch, 0, 0, flags, 0, size if packed != size else 0)
    return head + bytes(more) + bytes(payload)


def fatbin(*entries: bytes) -> bytes:
    content = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content


def elf(*sections: tuple[str, bytes], kind: int = 1, moved: int = 0) -> bytes:
    """An ELF file of section headers only. `moved` is added to the size of each section that its header states."""
    names = b"\0.shstrtab\0" + b"".join(name.encode() + b"\0" for name, _ in sections)
    blocks, place = [names], 64 + len(names)
    headers = [bytes(64), struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64, len(names), 0, 0, 1, 0)]
    for name, content in sections:
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        headers.append(struct.pack("<IIQQQQIIQQ", at, kind, 2, place, place, len(content) + moved, 0, 0, 8, 0))
        blocks.append(content)
        place += len(content)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, place, 0, 64, 56, 0, 64,
                                                     len(headers), 1)
    return head + b"".join(blocks) + b"".join(headers)


def archs_of(*sections: bytes) -> GpuArchs:
    found = parse_gpu_archs(elf(*((".nv_fatbin", each) for each in sections)), "libx.so")
    assert found is not None
    return found


def code(*sets: tuple[int, str]) -> GpuArchs:
    """A record of (fatbins, "sm_80 compute_80")."""
    every = {arch for _, archs in sets for arch in archs.split()}
    return GpuArchs(
        path="x", empty=0, sets=tuple(CodeSet(archs=tuple(archs.split()), fatbins=count) for count, archs in sets),
        cubins=tuple(sorted(arch for arch in every if arch.startswith("sm_"))),
        ptx=tuple(sorted(arch for arch in every if arch.startswith("compute_"))), others=())


def test_architectures_and_what_goes_together() -> None:
    both = fatbin(entry(CUBIN, 80), entry(CUBIN, 90, flags=LZ4), entry(PTX, 90, flags=ZSTD, more=16))
    found = archs_of(both + both + fatbin(entry(CUBIN, 100, flags=ZSTD, more=48), entry(CUBIN, 80)))
    assert (found.cubins, found.ptx, found.others) == (("sm_80", "sm_90", "sm_100"), ("compute_90",), ())
    assert found.sets == (CodeSet(archs=("sm_80", "sm_90", "compute_90"), fatbins=2),
                          CodeSet(archs=("sm_80", "sm_100"), fatbins=1))
    assert (found.fatbins, found.empty, found.path) == (3, 0, "libx.so")


def test_suffixes_are_in_the_flags() -> None:
    found = archs_of(fatbin(entry(CUBIN, 90), entry(CUBIN, 90, flags=LZ4 | SPECIFIC), entry(PTX, 90, flags=SPECIFIC),
                            entry(CUBIN, 100, flags=PLAIN | FAMILY | 0x1000000), entry(PTX, 120, flags=FAMILY)))
    assert found.cubins == ("sm_90", "sm_90a", "sm_100f")
    assert found.ptx == ("compute_90a", "compute_120f")


def test_relocatable_code_counts_too() -> None:
    content = elf((".nv_fatbin", fatbin(entry(CUBIN, 80))), ("__nv_relfatbin", fatbin(entry(PTX, 80))))
    found = parse_gpu_archs(content, "x")
    assert found is not None
    assert (found.cubins, found.ptx) == (("sm_80",), ("compute_80",))


def test_other_kinds_of_code_are_named_and_not_judged() -> None:
    found = archs_of(fatbin(entry(LTO, 90), entry(16, 100)))
    assert (found.cubins, found.ptx, found.others) == ((), (), ("lto_90", "kind16_100"))
    assert runs_on(found, "9.0").answer == "cannot-tell"


def test_fatbins_without_a_kernel_are_left_out() -> None:
    variables = fatbin(entry(CUBIN, 52, size=HOLLOW), entry(PTX, 52, size=356, flags=LZ4))
    bare = fatbin(entry(PTX, 90, size=56))
    partly = fatbin(entry(CUBIN, 50, size=HOLLOW, flags=LZ4), entry(CUBIN, 80), entry(PTX, 80))
    found = archs_of(variables + bare + partly + fatbin())
    assert (found.fatbins, found.empty, found.cubins, found.ptx) == (1, 3, ("sm_80",), ("compute_80",))


def test_a_gap_for_alignment_is_passed_over() -> None:
    assert archs_of(bytes(24) + fatbin(entry(CUBIN, 80)) + bytes(4000) + fatbin(entry(CUBIN, 90)) + bytes(8)).cubins \
        == ("sm_80", "sm_90")


@pytest.mark.parametrize("content", [
    elf((".text", b"x")), elf((".nv_fatbins", fatbin(entry(CUBIN, 80)))), elf((".nv_fatbin", b""), kind=8),
], ids=["no-section", "another-name", "debug-file"])
def test_files_without_gpu_code_have_no_record(content: bytes) -> None:
    assert parse_gpu_archs(content, "x") is None


whole = fatbin(entry(CUBIN, 80), entry(PTX, 80))
DAMAGED = {
    "no known fatbin": elf((".nv_fatbin", b"\1\2\3\4" * 8)),
    "another version": elf((".nv_fatbin", whole[:4] + b"\2" + whole[5:])),
    "header too small": elf((".nv_fatbin", whole[:6] + b"\10" + whole[7:])),
    "longer than its section": elf((".nv_fatbin", whole[:-8])),
    "half a header": elf((".nv_fatbin", whole + whole[:12])),
    "endless size": elf((".nv_fatbin", whole[:8] + b"\xff" * 8 + whole[16:])),
    "entry past its fatbin": elf((".nv_fatbin", whole[:24] + b"\xff\xff\xff\x7f" + whole[28:])),
    "entry of no bytes": elf((".nv_fatbin", whole[:20] + bytes(12) + whole[32:])),
    "half an entry": elf((".nv_fatbin", fatbin(entry(CUBIN, 80), bytes(40)))),
    "no architecture": elf((".nv_fatbin", fatbin(entry(CUBIN, 4_000_000_000)))),
    "zeros and more zeros": elf((".nv_fatbin", whole + bytes(5000) + whole)),
    "section past the file": elf((".nv_fatbin", whole), moved=1 << 40),
    "more than memory": elf((".nv_fatbin", fatbin() * (MOST_HEADERS + 1))),
    "entries without end": elf((".nv_fatbin", fatbin(*[entry(CUBIN, 80, size=0)] * (MOST_HEADERS + 1)))),
    "sections of another size": elf((".nv_fatbin", whole))[:58] + b"\50" + elf((".nv_fatbin", whole))[59:],
    "names in no section": elf((".nv_fatbin", whole))[:62] + b"\77" + elf((".nv_fatbin", whole))[63:],
    "no section headers": elf((".nv_fatbin", whole))[:40] + bytes(8) + elf((".nv_fatbin", whole))[48:],
    "table cut off": elf((".nv_fatbin", whole))[:-70],
    "no ELF file": b"PK\3\4" + bytes(100),
    "nothing": b"",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_a_value_with_its_reason(name: str, tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(DAMAGED[name])
    found = read_gpu_archs(str(path))
    assert isinstance(found, UnreadableFatbin)
    assert found.path == str(path)
    assert re.search(r"\w{4}", found.reason)


def test_what_cannot_be_opened_is_a_value_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("nowhere", "fifo", "."):
        assert isinstance(read_gpu_archs(str(tmp_path / name)), UnreadableFatbin)


def test_a_tree_is_read_below_its_root(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libreal.so").write_bytes(elf((".nv_fatbin", whole)))
    (tmp_path / "lib/libx.so").symlink_to("/lib/libreal.so")
    found = read_gpu_archs("/lib/libx.so", Root(str(tmp_path)))
    assert isinstance(found, GpuArchs)
    assert (found.path, found.cubins) == ("/lib/libx.so", ("sm_80",))


@given(st.data())
def test_any_damage_is_a_record_or_an_error(data: st.DataObject) -> None:
    content = bytearray(elf((".nv_fatbin", whole * 2 + fatbin(entry(CUBIN, 90, flags=LZ4 | SPECIFIC, more=48)))))
    for _ in range(data.draw(st.integers(1, 4))):
        width = data.draw(st.sampled_from((1, 2, 4, 8)))
        place = data.draw(st.integers(0, len(content) - width))
        value = data.draw(st.sampled_from(EXTREMES) | st.integers(0, (1 << 64) - 1))
        content[place:place + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
    del content[data.draw(st.integers(1, len(content))):]
    try:
        found = parse_gpu_archs(bytes(content), "x")
    except BadElf:
        return
    assert found is None or found.fatbins >= 0


@needs_gcc
def test_a_library_that_gcc_links(tmp_path: Path) -> None:
    """The real linker lays the section out; stripping keeps it."""
    for name, archs in (("a", (80, 90)), ("b", (90, 100))):
        (tmp_path / f"{name}.fatbin").write_bytes(fatbin(*(entry(CUBIN, arch) for arch in archs)))
        source = f'.section .nv_fatbin,"a"\n.align 8\n.incbin "{tmp_path}/{name}.fatbin"\n'
        (tmp_path / f"{name}.s").write_text(source, encoding="utf-8")
    path = tmp_path / "libx.so"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-s", "-o", path, tmp_path / "a.s", tmp_path / "b.s"], check=True,
                   timeout=60)
    found = read_gpu_archs(str(path))
    assert isinstance(found, GpuArchs)
    assert found.sets == (CodeSet(archs=("sm_80", "sm_90"), fatbins=1), CodeSet(archs=("sm_90", "sm_100"), fatbins=1))


def test_records_go_through_json() -> None:
    found = archs_of(whole)
    assert from_json(to_json(found), GpuArchs) == found


RUNS = {
    "sm_80": "8.0 8.6 8.9 8.7? 9.0- 7.5-", "sm_86": "8.6 8.9 8.0- 9.0-", "sm_87": "8.7 8.6- 8.9?",
    "sm_90": "9.0 10.0- 12.0-", "sm_90a": "9.0 9.1- 10.0-", "sm_100": "10.0 10.3 9.0- 11.0- 12.0-",
    "sm_100f": "10.0 10.3 10.7 11.0- 12.0-", "sm_103f": "10.3 10.7 10.0-", "sm_120f": "12.0 12.1 10.0-",
    "sm_100a": "10.0 10.3-", "compute_80": "8.0 8.7 9.0 12.1 7.5-", "compute_90a": "9.0 10.0- 8.9-",
    "compute_100f": "10.0 10.3 10.7 12.0- 9.0-", "compute_52": "5.2 12.0 5.0-", "lto_90": "9.0?",
}


@pytest.mark.parametrize("arch", RUNS)
def test_which_gpu_runs_which_code(arch: str) -> None:
    for expected in RUNS[arch].split():
        match = re.fullmatch(r"(\d+)\.(\d)([-?]?)", expected)
        assert match is not None
        verdict = {"": True, "-": False, "?": None}[match[3]]
        assert arch_runs_on(arch, (int(match[1]), int(match[2]))) is verdict, (arch, expected)


TORCH_231 = code((296, "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"), (1, "sm_80 sm_86 sm_90"))
XFORMERS_0027 = code((67, "sm_60 sm_70 sm_75 sm_80 compute_60 compute_80"))
VLLM_063 = code((24, "sm_90a"), (18, "sm_70 sm_80 sm_90"), (9, "sm_80 sm_90"), (1, "sm_52 compute_52"))


@pytest.mark.parametrize(("archs", "capability", "answer", "counts"), [
    (TORCH_231, "9.0", "native", (297, 0, 0, 0)), (TORCH_231, "7.0", "native", (296, 0, 0, 1)),
    (TORCH_231, "12.0", "no", (0, 0, 0, 297)), (TORCH_231, "3.7", "no", (0, 0, 0, 297)),
    (XFORMERS_0027, "8.9", "native", (67, 0, 0, 0)), (XFORMERS_0027, "9.0", "jit", (0, 67, 0, 0)),
    (VLLM_063, "9.0", "native", (51, 0, 0, 1)), (VLLM_063, "12.0", "no", (0, 0, 0, 52)),
    (code((1, "sm_52 compute_52")), "12.0", "jit", (0, 1, 0, 0)), (code(), "9.0", "no-code", (0, 0, 0, 0)),
    (code((3, "sm_80")), "8.7", "cannot-tell", (0, 0, 3, 0)), (code((3, "sm_80")), "N/A", "cannot-tell", (0, 0, 3, 0)),
    (code((2, "sm_80 compute_80"), (1, "sm_87")), "8.7", "native", (1, 2, 0, 0)),
])
def test_what_of_a_file_runs(archs: GpuArchs, capability: str, answer: str, counts: tuple[int, ...]) -> None:
    native, jit, undecided, lacking = counts
    assert runs_on(archs, capability) == RunsOn(capability=capability, answer=answer, native=native, jit=jit,
                                                undecided=undecided, lacking=lacking)


TOOLS = ("nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-runtime", "nvidia-cuda-cccl",
         "nvidia-cuda-cuobjdump")
KERNELS = '__global__ void k(float *a) { a[threadIdx.x] *= 2.f; }\nextern "C" void go(float *a) { k<<<1, 32>>>(a); }\n'


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bin/ of a CUDA 13 toolkit from wheels."""
    folder = tmp_path_factory.mktemp("toolkit")
    reach = {name: value for name, value in os.environ.items() if "PROXY" in name.upper() or "CERT" in name}
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-cache-dir", "--target",
                           folder, *TOOLS], env=HERMETIC | reach, capture_output=True, text=True, check=False,
                          timeout=900)
    if done.returncode:
        pytest.skip(f"no toolkit: {done.stderr.strip()[-200:]}")
    programs = folder / "nvidia/cu13/bin"
    for program in (*programs.iterdir(), folder / "nvidia/cu13/nvvm/bin/cicc"):
        program.chmod(0o755)
    return programs


@pytest.mark.real
@needs_gcc
@pytest.mark.parametrize(("mode", "numbers"), [
    ("none", ("75", "80", "90", "90a", "100f")), ("size", ("80", "86", "100a", "120", "121a")),
    ("speed", ("75", "90a", "100", "103a", "120")),
])
def test_what_nvcc_makes_is_what_cuobjdump_lists(
    toolkit: Path, tmp_path: Path, mode: str, numbers: tuple[str, ...],
) -> None:
    (tmp_path / "k.cu").write_text(KERNELS, encoding="utf-8")
    targets = [f"-gencode=arch=compute_{number},code=[sm_{number},compute_{number}]" for number in numbers]
    path = tmp_path / "libk.so"
    subprocess.run([toolkit / "nvcc", "-shared", "-Xcompiler=-fPIC", "-cudart=none", f"-compress-mode={mode}",
                    *targets, "-o", path, tmp_path / "k.cu"], check=True, timeout=600, capture_output=True)
    listed = subprocess.run([toolkit / "cuobjdump", "-lelf", "-lptx", path], check=True, timeout=600,
                            capture_output=True, text=True).stdout
    judged = Counter(re.findall(r"\.(sm_\w+\.(?:cubin|ptx))", listed))
    found = read_gpu_archs(str(path))
    assert isinstance(found, GpuArchs)
    # cuobjdump leaves the "f" out of a cubin's name
    ours = [f"{arch.rstrip('f')}.cubin" for arch in found.cubins]
    ours += [f"{arch.replace('compute', 'sm')}.ptx" for arch in found.ptx]
    assert Counter(ours) == judged
    assert len(judged) == 10


@pytest.mark.real
@needs_gcc
@pytest.mark.parametrize("family", ["100f", "103f", "110f", "120f", "121f"])
def test_families_are_those_of_nvcc(toolkit: Path, tmp_path: Path, family: str) -> None:
    (tmp_path / "k.cu").write_text(KERNELS, encoding="utf-8")
    for arch in ("100", "103", "110", "120", "121"):
        done = subprocess.run([toolkit / "nvcc", "-cubin", f"-gencode=arch=compute_{family},code=sm_{arch}", "-o",
                               tmp_path / "k.cubin", tmp_path / "k.cu"], check=False, timeout=600, capture_output=True)
        assert arch_runs_on(f"sm_{family}", (int(arch) // 10, int(arch) % 10)) is (done.returncode == 0), arch
