"""Graphs on disk, and what all of them share: the driver and a loader that reads its cache from the current folder."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from tests.loader_oracle.elf_writer import CODE_AT, write
from tests.loader_oracle.gcc import compile_library
from tests.loader_oracle.graph import Graph, Library

HERE = Path(__file__).parent
REAL_LOADER = "/lib64/ld-linux-x86-64.so.2"
CACHE = "/etc/ld.so.cache"
ENTRY = "oracle_main"
X86_64_LIBC6 = 0x0303


@dataclass(frozen=True, slots=True)
class Bench:
    """What is built once."""

    driver: str
    loader: str


def make_bench(folder: Path) -> Bench:
    """Compile the driver; copy the real ld.so, with its cache's path made relative: each graph brings its own."""
    driver = folder / "libdriver.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(driver), str(HERE / "driver.c"),
                    f"-Wl,-soname,{driver.name}"], check=True, timeout=120)
    loader = folder / "ld-oracle.so"
    content = Path(REAL_LOADER).read_bytes()
    name = CACHE.encode() + b"\0"
    if content.count(name) != 1:
        raise RuntimeError(f"{REAL_LOADER} does not name {CACHE} once")
    relative = b"ld.so.cache".ljust(len(name), b"\0")
    loader.write_bytes(content.replace(name, relative))
    loader.chmod(0o755)
    return Bench(str(driver), str(loader))


def build(graph: Graph, folder: Path, bench: Bench, *, with_gcc: bool = False) -> None:
    """Write the graph's files into an empty folder."""
    offsets: dict[str, int] = {}
    root = str(folder)
    (folder / graph.cwd).mkdir(parents=True)
    for library in graph.libraries:
        settled = settle(library, root)
        if with_gcc and not library.garbage and (library.machine, library.bits) == (62, 64):
            (folder / library.path).parent.mkdir(parents=True, exist_ok=True)
            offsets[library.path] = compile_library(settled, folder / library.path, folder / "scratch")
        else:
            put(folder / library.path, write(settled))
    for link in graph.links:
        (folder / link.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / link.path).symlink_to(link.target.replace("@", root))
    program = settle(graph.program, root)
    program = replace(program, needed=(bench.driver, *program.needed))
    put(folder / program.path, write(program, interpreter=bench.loader, entry=ENTRY))
    if graph.cached:
        entries = [(each.soname, f"{root}/{each.path}") for each in graph.libraries
                   if each.path in graph.cached and each.soname]
        (folder / graph.cwd / "ld.so.cache").write_bytes(cache_of(entries))
    flags = [(2 if step.now else 1) | 0x100 * step.to_global | 8 * step.deep_bind for step in graph.steps]
    callers = [os.path.realpath(folder / step.caller) if step.caller else "" for step in graph.steps]
    lines = [f"{caller}\t{offsets.get(step.caller or '', CODE_AT)}\t{flag}\t{step.name.replace('@', root)}\n"
             for caller, flag, step in zip(callers, flags, graph.steps, strict=True)]
    (folder / "steps").write_text("".join(lines), encoding="utf-8")


def settle(library: Library, root: str) -> Library:
    """The library with the folder's path in place of `@`."""
    return replace(
        library, needed=tuple(name.replace("@", root) for name in library.needed),
        rpath=library.rpath and library.rpath.replace("@", root),
        runpath=library.runpath and library.runpath.replace("@", root),
    )


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)


def cache_of(entries: list[tuple[str, str]]) -> bytes:
    """An ld.so.cache of the new format, names in descending order as glibc's binary search wants them."""
    ordered = sorted(entries, key=lambda entry: cache_key(entry[0]), reverse=True)
    at = 48 + 24 * len(ordered)
    lines, strings = b"", b""
    for soname, path in ordered:
        key = at + len(strings)
        strings += soname.encode() + b"\0"
        lines += struct.pack("<iIIIQ", X86_64_LIBC6, key, at + len(strings), 0, 0)
        strings += path.encode() + b"\0"
    head = b"glibc-ld.so.cache1.1" + struct.pack("<IIBxxxI12x", len(ordered), len(strings), 2, 0)
    return head + lines + strings


def cache_key(name: str) -> list[tuple[int, int]]:
    """Sorting key of _dl_cache_libcmp for the names that graphs use: a digit sorts behind what is none."""
    parts: list[tuple[int, int]] = []
    digits = ""
    for sign in f"{name}\0":
        if sign.isdigit():
            digits += sign
            continue
        if digits:
            parts.append((1, int(digits)))
            digits = ""
        parts.append((0, ord(sign)))
    return parts


def clean(folder: Path) -> None:
    """Remove a built graph."""
    shutil.rmtree(folder)
