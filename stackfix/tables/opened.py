"""Symbols of a reduced wheel's libraries, read from their images."""

from __future__ import annotations

from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.records import BadElf, UnreadableElf
from stackfix.tables.image import open_image
from stackfix.tables.packed import unpack
from stackfix.tables.records import ReducedWheel


def open_symbols(wheel: ReducedWheel, path: str) -> MappedSymbols:
    """Symbols of one library. Raises BadElf where the loader refuses the file, or what is kept of it is damaged."""
    packed = wheel.images.get(path)
    if packed is not None:
        return MappedSymbols(open_image(unpack(packed, path), path), path)
    elf = next(each.elf for each in wheel.tables.libraries if each.path == path)
    if isinstance(elf, UnreadableElf):
        raise BadElf(path, elf.reason, crash=elf.crash, bits=elf.bits, byte_order=elf.byte_order, machine=elf.machine)
    raise BadElf(path, "nothing is kept of its symbols", crash="cannot tell")


__all__ = ["open_symbols"]
