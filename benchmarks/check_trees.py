"""Environments of any number of small libraries, as `check.py` measures them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.graph import Definition, Library, Reference

GROUP = 20              # libraries that know each other, as those of one wheel do
OFFERED, WANTED, NEEDED = 120, 340, 3       # symbols that a library defines, and asks for; 340 as torch's on average
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
SUFFIX = f"cpython-{MINOR.replace('.', '')}-x86_64-linux-gnu.so"


def build_tree(prefix: Path, size: int) -> Path:
    """A virtual environment with `size` shared objects; every fourth is an extension module. Nothing is missing."""
    site = prefix / "lib" / f"python{MINOR}" / "site-packages"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    home = Path(sys.executable).resolve().parent
    (prefix / "pyvenv.cfg").write_text(f"home = {home}\nversion_info = {MINOR}.0\n", encoding="utf-8")
    for group in range(0, size, GROUP):
        build_project(site, f"group{group // GROUP}", min(GROUP, size - group))
    return prefix


def build_project(site: Path, name: str, size: int) -> None:
    """One installed project with its libraries, metadata and RECORD."""
    info = f"{name}-1.0.dist-info"
    (site / name).mkdir(parents=True)
    (site / info).mkdir()
    files = {f"{name}/__init__.py": b""}
    for library in libraries(name, size):
        files[library.path] = write(library)
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp{MINOR.replace('.', '')}\n".encode()
    for path, content in files.items():
        (site / path).write_bytes(content)
    rows = [f"{path},,{len(content)}\n" for path, content in files.items()]
    (site / info / "RECORD").write_text("".join([*rows, f"{info}/RECORD,,\n"]), encoding="utf-8")


def libraries(name: str, size: int) -> Iterator[Library]:
    """Each needs some that come before it, and asks these for symbols."""
    for number in range(size):
        needed = range(number - 1, max(-1, number - 1 - NEEDED), -1)
        wanted = tuple(Reference(name=symbol(name, needed[index % len(needed)], index % OFFERED), plt=True)
                       for index in range(WANTED)) if needed else ()
        yield Library(
            path=f"{name}/{file_name(number)}", soname=file_name(number), runpath="$ORIGIN",
            needed=(*map(file_name, needed), "libc.so.6"), refers=tuple(dict.fromkeys(wanted)),
            defines=tuple(Definition(name=symbol(name, number, each)) for each in range(OFFERED)))


def file_name(number: int) -> str:
    return f"part{number}.{SUFFIX}" if number % 4 == 3 else f"libpart{number}.so.1"


def symbol(name: str, library: int, number: int) -> str:
    """As long as a C++ name, and different early in none: what a look-up has to compare."""
    return f"_ZN8benchmark6{name}7library{library:04}6detail8function{number:05}ERKNS_5tableE"
