"""Why a file is no shared object whose symbols can be read, in words."""

from __future__ import annotations

import errno
import os

from stackfix.errors import BadInput, Unreachable
from stackfix.inspect.places import Root, reason_of, why_unreached
from stackfix.inspect.records import ElfObject, UnreadableElf

HINT = "name a compiled extension: build/name.cpython-311-x86_64-linux-gnu.so"
ET_REL, ET_EXEC = 1, 2
LOST = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
KINDS = {ET_REL: "is an object file (.o) that no linker has made a shared object of",
         ET_EXEC: "is a program, and no shared object", 4: "is a memory dump (core)"}
# What else is called .so, or lies beside one: by its first bytes.
KNOWN = (
    (b"!<arch>\n", "is an archive of object files (.a): a linker makes a shared object of it"),
    (b"!<thin>\n", "is an archive of object files (.a): a linker makes a shared object of it"),
    (b"PK\x03\x04", "is a zip archive: a wheel's name ends in .whl"),
    (b"/* GNU ld script", "is a text for the linker, which names the library that is meant"),
    (b"\xcf\xfa\xed\xfe", "is a Mach-O file of macOS"),
    (b"MZ", "is a Windows file"),
)


def must_be_plain(named: str, path: str, root: Root) -> None:
    """Raises BadInput or Unreachable for what is no file that can be opened."""
    try:
        os.close(root.open(path))
    except PermissionError as error:
        raise Unreachable(named, reason_of(error)) from error
    except OSError as error:
        if root.is_folder(path):
            raise BadInput(named, "is a folder", HINT) from error
        if error.errno in LOST:
            raise BadInput(named, why_unreached(root, path, error) or "no such file", HINT) from error
        reason = reason_of(error)
        raise BadInput(named, f"is {reason}" if reason.startswith("not a") else reason, HINT) from error


def why_no_library(elf: ElfObject) -> str | None:
    """Why no process could open an ELF file as a library."""
    if elf.kind == "other":
        return KINDS[ET_REL]
    if elf.kind != "shared" or "DF_1_PIE" in elf.flags or (elf.interpreter is not None and elf.soname is None):
        return KINDS[ET_EXEC]
    return None if elf.dynamic else "is an ELF file without a dynamic section, and no shared object"


def why_unreadable(elf: UnreadableElf, path: str, root: Root) -> str:
    """What is wrong with a file, in words."""
    try:
        head = root.read_head(path, 18)
    except OSError as error:
        return reason_of(error)
    known = next((reason for start, reason in KNOWN if head.startswith(start)), None)
    if known or head[:4] != b"\x7fELF":
        return known or ("is no ELF file" if head else "is empty")
    kind = int.from_bytes(head[16:18], "big" if head[5:6] == b"\x02" else "little")
    return KINDS.get(kind, f"is no ELF file that can be read: {elf.reason}")
