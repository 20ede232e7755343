"""Consumers and providers of NVIDIA's functions, loaded by the real loader and judged by the book.

    python -m tests.abi_nvidia_pairs        prints the table; needs pip, gcc and 3 GB of downloads, no GPU

A consumer is a library of a wheel, or one that gcc makes here of what torch wants, or of functions that were dropped.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from stackfix.abi.nvidia_book import AlmanacOfNvidia, open_nvidia_book
from stackfix.almanac.fetch import download
from stackfix.almanac.manifest import read_manifest
from stackfix.almanac.nvidia_libraries import wanted_of
from stackfix.almanac.records import ManifestWheel
from stackfix.matrix.toml_files import matrix_directory

NO_SYMBOL = re.compile(r"undefined symbol: ([^,\s]+)|symbol (\S+) version \S+ not defined in file")
CHILD = """\
import _ctypes, json, os, sys
try:
    _ctypes.dlopen(sys.argv[1], os.RTLD_NOW)
except OSError as error:
    print(json.dumps(str(error)))
else:
    print(json.dumps(None))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A consumer, and one version of a library that it is loaded beside."""

    consumer: str                   # "nvidia-cusparse-cu12 12.1.0.106", "torch 2.7.1", or the names themselves
    soname: str                     # the provider's library
    package: str
    version: str
    others: tuple[str, ...] = ()    # further wheels that the consumer needs: "nvidia-nvjitlink-cu12 12.9.86"
    versioned: bool = True          # the library has a symbol version of its soname

    @property
    def of_wheel(self) -> bool:
        return self.consumer.startswith("nvidia-")

    def wanted(self, book: AlmanacOfNvidia) -> tuple[str, ...]:
        """What the consumer wants of the library, by the book."""
        name, _, version = self.consumer.partition(" ")
        if name not in book.consumers():
            return tuple(self.consumer.split())
        if version not in book.consumer_versions(name):
            raise LookupError(f"{self.consumer} was not read")
        return tuple(sorted({each for _, soname, names in book.wants(name, version) if soname == self.soname
                             for each in names}))


SPARSE, SOLVER = ("nvidia-cusparse-cu12 12.5.10.65",), "nvidia-cusolver-cu12 11.7.5.82"
JITLINK = "nvidia-nvjitlink-cu12 12.9.86"


def jitlink(consumer: str, version: str) -> Pair:
    return Pair(consumer=consumer, soname="libnvJitLink.so.12", package="nvidia-nvjitlink-cu12", version=version)


def solver(version: str) -> Pair:
    return Pair(consumer=SOLVER, soname="libcublas.so.12", package="nvidia-cublas-cu12", version=version,
                others=(*SPARSE, JITLINK))


def of_torch(release: str, soname: str, package: str, version: str, *, versioned: bool = True) -> Pair:
    return Pair(consumer=f"torch {release}", soname=soname, package=package, version=version, versioned=versioned)


def fp8(version: str) -> Pair:
    return Pair(consumer="cublasLtMatmul cublasLtE4m3E4m3Fp32Bf16Bf16Matmul", soname="libcublasLt.so.12",
                package="nvidia-cublas-cu12", version=version)


PAIRS = (
    jitlink("nvidia-cusparse-cu12 12.1.0.106", "12.0.140"),
    jitlink("nvidia-cusparse-cu12 12.1.0.106", "12.1.105"),
    jitlink("nvidia-cusparse-cu12 12.5.10.65", "12.8.93"),
    jitlink("nvidia-cusparse-cu12 12.5.10.65", "12.9.86"),
    solver("12.8.5.5"),
    solver("12.9.1.4"),
    of_torch("2.7.1", "libcupti.so.12", "nvidia-cuda-cupti-cu12", "12.4.127"),
    of_torch("2.7.1", "libcupti.so.12", "nvidia-cuda-cupti-cu12", "12.5.39"),
    of_torch("2.8.0", "libcudart.so.12", "nvidia-cuda-runtime-cu12", "12.4.127"),
    of_torch("2.8.0", "libcudart.so.12", "nvidia-cuda-runtime-cu12", "12.5.39"),
    of_torch("2.8.0", "libnccl.so.2", "nvidia-nccl-cu12", "2.26.2", versioned=False),
    of_torch("2.8.0", "libnccl.so.2", "nvidia-nccl-cu12", "2.27.3", versioned=False),
    fp8("12.6.0.22"),
    fp8("12.6.4.1"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the loader said of one pair, and what the book says."""

    pair: Pair
    error: str | None               # the loader's; None: loaded
    symbol: str | None              # the first that it missed
    missing: tuple[str, ...]        # by the book
    unsure: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether both say that it loads, or the symbol that stopped the loader is one that the book names."""
        if self.unsure:
            return False
        return not self.missing if self.error is None else self.symbol in self.missing


def outcome_of(pair: Pair, book: AlmanacOfNvidia, scratch: Path) -> Outcome:
    """Loads one pair for real. `scratch`: an empty folder."""
    names = pair.wanted(book)
    told = book.provides(pair.package, pair.version, pair.soname, names)
    folders = [unpacked(each, scratch / str(place)) for place, each in
               enumerate((f"{pair.package} {pair.version}", *pair.others))]
    if pair.of_wheel:
        consumer, = (path for path in unpacked(pair.consumer, scratch / "consumer").iterdir()
                     if ".so." in path.name and "Mg" not in path.name)
    else:
        consumer = compiled(names, pair, scratch / "consumer")
    environment = {"LD_LIBRARY_PATH": ":".join(map(str, folders))}
    done = subprocess.run([sys.executable, "-I", "-c", CHILD, consumer], check=True, capture_output=True, text=True,
                          env=environment, timeout=300)
    error = json.loads(done.stdout)
    found = NO_SYMBOL.search(error) if error else None
    return Outcome(pair=pair, error=error, symbol=(found[1] or found[2]) if found else None, missing=told.missing,
                   unsure=told.unsure)


def unpacked(release: str, folder: Path) -> Path:
    """A folder with the libraries of one wheel, which is fetched by the manifest's hash and not kept."""
    wheel = row_of(release)
    folder.mkdir(parents=True)
    path = download(wheel, folder)
    with ZipFile(path) as archive:
        for name in filter(wanted_of(wheel.package), archive.namelist()):
            (folder / name.rpartition("/")[2]).write_bytes(archive.read(name))
    path.unlink()
    return folder


def row_of(release: str) -> ManifestWheel:
    """The manifest's row of "package version"."""
    package, _, version = release.partition(" ")
    row, = (each for each in read_manifest(matrix_directory() / "abi" / "nvidia.toml")
            if (each.package, each.version) == (package, version))
    return row


def compiled(names: Sequence[str], pair: Pair, folder: Path) -> Path:
    """A library that wants these functions, linked against a stand-in of the provider that has them all."""
    folder.mkdir(parents=True)
    (folder / "all.c").write_text("".join(f"void {name}(void) {{}}\n" for name in names))
    (folder / "all.map").write_text(f"{pair.soname} {{ global: *; }};\n" if pair.versioned else "{ global: *; };\n")
    calls = "".join(f"extern void {name}(void);\n" for name in names)
    table = ", ".join(f"(void *){name}" for name in names)
    (folder / "user.c").write_text(f"{calls}void *const table[] = {{{table}}};\n")
    gcc = ["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-nostdlib"]
    (folder / "stand-in").mkdir()
    subprocess.run([*gcc, f"-Wl,-soname,{pair.soname}", f"-Wl,--version-script,{folder / 'all.map'}", "-o",
                    str(folder / "stand-in" / pair.soname), str(folder / "all.c")], check=True, timeout=60)
    subprocess.run([*gcc, "-o", str(folder / "libuser.so"), str(folder / "user.c"), f"-L{folder / 'stand-in'}",
                    f"-l:{pair.soname}"], check=True, timeout=60)
    return folder / "libuser.so"


def outcomes(pairs: Sequence[Pair] = PAIRS) -> Iterator[Outcome]:
    """Each pair loaded, one after the other: no two lie on the disk together."""
    book = open_nvidia_book()
    for pair in pairs:
        with tempfile.TemporaryDirectory(prefix="stackfix-pair-") as scratch:
            yield outcome_of(pair, book, Path(scratch))


def row(outcome: Outcome) -> str:
    """One line of the table."""
    pair = outcome.pair
    loader = "loads" if outcome.error is None else outcome.symbol or outcome.error
    book = "can load" if not outcome.missing else f"cannot load, {len(outcome.missing)} missing: {outcome.missing[0]}"
    if outcome.unsure:
        book = "cannot tell"
    return " | ".join([pair.consumer, f"{pair.package} {pair.version}", loader, book,
                       "agrees" if outcome.agrees else "DIFFERS"])


def main() -> None:
    for each in outcomes():
        sys.stdout.write(f"{row(each)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
