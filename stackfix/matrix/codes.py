"""codes.toml to records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stackfix.matrix.code_records import Architecture, Codes, CudaError, CudnnStatus
from stackfix.matrix.faults import Faults
from stackfix.matrix.rows import Origins, Row
from stackfix.matrix.toml_files import matrix_directory, parse_file, read_file

FILE = "codes.toml"
CUDNN_MAJORS = ("8", "9")


def load_codes(directory: Path | None = None) -> Codes:
    """All rows of the file in `directory` (default: the matrix that comes with stackfix). Raises BadInput."""
    path = (matrix_directory() if directory is None else directory) / FILE
    return parse_file(str(path), read_file(path, (FILE,)), parse_codes)


def parse_codes(document: dict[str, object], faults: Faults) -> Codes:
    """The four tables in file order."""
    top = Row(document, "", faults)
    origins = Origins(top, faults)
    tables = {name: top.table(name) for name in ("cuda", "cudnn", "ptx", "gpu")}
    for table in tables.values():
        origins.of(table)
    codes = Codes(
        cuda=tuple(cuda_errors(tables["cuda"])),
        cudnn=tuple(each for major in CUDNN_MAJORS for each in cudnn_statuses(tables["cudnn"], major)),
        ptx=tuple(ptx_releases(tables["ptx"])),
        architectures=tuple(map(architecture, tables["gpu"].rows("architectures", name_by="arch"))),
        gpu_names=tuple(gpu_names(tables["gpu"].table("names"))),
    )
    for table in (*tables.values(), top):
        table.done()
    for what, keys in (("cuda", [each.number for each in codes.cuda]), ("ptx", [each[0] for each in codes.ptx]),
                       ("cudnn", [(each.major, each.name) for each in codes.cudnn]),
                       ("gpu", [each.arch for each in codes.architectures])):
        if len(set(keys)) < len(keys):
            faults.add(what, "one of them is given twice")
    return codes


def cuda_errors(table: Row) -> Iterator[CudaError]:
    for line in table.lines("errors", "text"):
        number, runtime, driver, *text = line.split(" ", 3) if line.count(" ") >= 2 else ("", "-", "-")
        if not number.isdecimal() or (runtime, driver) == ("-", "-"):
            table.fault(f"{line!r} is no number with names")
            continue
        yield CudaError(number=int(number), runtime=None if runtime == "-" else runtime,
                        driver=None if driver == "-" else driver, text=text[0] if text else None)


def cudnn_statuses(table: Row, major: str) -> Iterator[CudnnStatus]:
    for line in table.lines(major, "text"):
        number, name, since = [*line.split(" "), "", ""][:3]
        if not number.isdecimal() or not name:
            table.fault(f"{line!r} is no number with a name")
            continue
        yield CudnnStatus(major=int(major), number=int(number), name=name, since=since or None)


def ptx_releases(table: Row) -> Iterator[tuple[str, str]]:
    for line in table.lines("releases", "text"):
        isa, _, cuda = line.partition(" ")
        if not isa.replace(".", "").isdecimal() or not cuda.replace(".", "").isdecimal():
            table.fault(f"{line!r} is no version of PTX with one of CUDA")
            continue
        yield isa, cuda


def gpu_names(table: Row) -> Iterator[tuple[str, str]]:
    for digits in table.names():
        for name in table.several(digits, "text"):
            yield name, f"sm_{digits}"
    table.done()


def architecture(row: Row) -> Architecture:
    found = Architecture(arch=f"sm_{row.text('arch', 'arch')}", family=row.text("family"),
                         first_cuda=row.optional("cuda", "minor"), last_cuda=row.optional("last", "minor"))
    row.done()
    return found
