"""What the shared objects of one file, wheel or package are and leave to others, as one record. Nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stackfix.abi.records import Compiled, CompiledFile
from stackfix.errors import BadInput, StackfixError, Unreachable
from stackfix.inspect.compiled_faults import HINT, must_be_plain, why_no_library, why_unreadable
from stackfix.inspect.compiled_supply import Piece, beside, without_supplied
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.fatbin import read_gpu_archs
from stackfix.inspect.places import Root
from stackfix.inspect.records import BadElf, FileAt, Refused, Symbols, UndefinedSymbol, UnreadableElf
from stackfix.quick import replace

MOST_FILES = 4096               # of one package; PySide has 400
Unreadable = tuple[str, str]    # path as it is shown, reason


def read_file(named: str, path: str, root: Root) -> Compiled:
    """One shared object. `path` is absolute and inside the root, `named` is what the user wrote.

    Raises BadInput for what is none, Unreachable where it cannot be read. Libraries that it finds beside itself,
    through its own $ORIGIN, are of the same package.
    """
    must_be_plain(named, path, root)
    files = DiskFiles(root)
    found = files.at(path)
    if not isinstance(found, FileAt):
        reason = found.reason if isinstance(found, Refused) else "no such file"
        raise Unreachable(named, reason)
    if isinstance(found.elf, UnreadableElf):
        raise BadInput(named, why_unreadable(found.elf, path, root), HINT)
    if why := why_no_library(found.elf):
        raise BadInput(named, why, HINT)
    name = path.rpartition("/")[2]
    pieces = [Piece(shown=name, file=found, elf=found.elf),
              *(Piece(shown=each.path, file=each, elf=elf) for each, elf in beside(files, found, found.elf))]
    read, unreadable = read_pieces(files, pieces[:1], pieces, root)
    for _, reason in unreadable:
        raise BadInput(named, reason, HINT)
    return Compiled(name=name, version=None, origin="file", source=named, tags=(), requires=(), file_name=None,
                    files=tuple(read), unreadable=())


def read_places(places: Mapping[str, str], root: Root) -> tuple[list[CompiledFile], list[Unreadable]]:
    """The files of one package, by the path that is shown: where each lies below the root. By path, each file once."""
    files = DiskFiles(root)
    pieces, unreadable = list[Piece](), list[Unreadable]()
    seen = set[str]()
    for shown, path in sorted(places.items())[:MOST_FILES]:
        found = files.at(path)
        if found is None or isinstance(found, Refused):
            unreadable.append((shown, found.reason if found else "no such file"))
        elif found.identity not in seen:
            seen.add(found.identity)
            if isinstance(found.elf, UnreadableElf):
                unreadable.append((shown, why_unreadable(found.elf, path, root)))
            elif why := why_no_library(found.elf):
                unreadable.append((shown, why))
            else:
                pieces.append(Piece(shown=shown, file=found, elf=found.elf))
    if len(places) > MOST_FILES:
        unreadable.append((f"{len(places) - MOST_FILES} more files", f"only {MOST_FILES} of one package are read"))
    read, damaged = read_pieces(files, pieces, pieces, root)
    return read, unreadable + damaged


def read_pieces(files: DiskFiles, asked: Sequence[Piece], package: Sequence[Piece],
                root: Root) -> tuple[list[CompiledFile], list[Unreadable]]:
    """The files `asked` as records, without what others of their package supply to them."""
    read, unreadable = list[CompiledFile](), list[Unreadable]()
    for piece in asked:
        try:
            symbols = files.symbols(piece.file)
            undefined = in_loader_order(symbols, symbols.undefined())
            kept = without_supplied(files, piece, package, undefined)
        except BadElf as error:
            unreadable.append((piece.shown, error.reason))
            continue
        archs = read_gpu_archs(piece.file.path, root)
        read.append(CompiledFile(
            path=piece.shown, elf=replace(piece.elf, path=piece.shown), undefined=kept,
            supplied=len(undefined) - len(kept), archs=replace(archs, path=piece.shown) if archs else None))
    return read, unreadable


def in_loader_order(symbols: Symbols, undefined: Iterable[UndefinedSymbol]) -> tuple[UndefinedSymbol, ...]:
    """Undefined symbols as the loader comes to them: where several are missing, it names the first. Raises BadElf.

    Those without a relocation, for which nobody asks, come last.
    """
    wanted = tuple(undefined)
    order: dict[tuple[str, str | None], int] = {}
    for place, use in enumerate(symbols.uses({each.name for each in wanted})):
        order.setdefault((use.name, use.version), place)
    return tuple(sorted(wanted, key=lambda each: (order.get((each.name, each.version), len(order)), each.name)))


def nothing_readable(named: str, compiled: Compiled) -> Iterator[StackfixError]:
    """The error where there are compiled files, and not one of them could be read."""
    if compiled.unreadable and not compiled.files:
        path, reason = compiled.unreadable[0]
        more = f", and {len(compiled.unreadable) - 1} more" if len(compiled.unreadable) > 1 else ""
        yield Unreachable(named, f"none of its compiled files can be read: {path} {reason}{more}")


__all__ = ["nothing_readable", "read_file", "read_places"]
