"""Which faults only a system would tell, in a tree that has none: a copied prefix, a few files of a report."""

from __future__ import annotations

import re

from stackfix.diagnose.situation import View

# glibc's own sonames, its loader too
C_LIBRARY = re.compile(r"lib(?:c|m|mvec|pthread|dl|rt|util|resolv|nsl|crypt|anl|thread_db|nss_\w+)\.so\.\d+"
                       r"|ld(?:64|-linux[\w-]*)\.so\.\d+")
C_VERSION = "GLIBC_"
RUNTIME = re.compile(r"lib(?:stdc\+\+|gcc_s|gomp|gfortran|quadmath|atomic)\.so\.\d+")
HASHED = re.compile(r"-[0-9a-f]{6,}\.")     # auditwheel's name of a bundled copy: no system has it


def lacks_system(view: View) -> bool:
    """Whether what is inspected is a tree without a C library: what its system would give is not known then."""
    machine = view.machine
    return (not machine.live and machine.glibc is None and machine.libc is None
            and not any(each.elf.soname == "libc.so.6" for each in view.start.objects))


def is_open(view: View, category: str, name: str, versions: tuple[str, ...], *, provided: bool) -> bool:
    """Whether the system that a tree without one will meet may have what a fault is about."""
    if category == "symbol-unknown":
        return True
    if category in {"symbol", "version"} and (any(each.startswith(C_VERSION) for each in versions)
                                              or C_LIBRARY.fullmatch(name)):
        return True
    return category in {"missing", "symbol"} and not provided and is_of_system(view, name)


def is_of_system(view: View, name: str) -> bool:
    """Whether a system may have a library: none of the GPU stack, and none that is the prefix's own.

    A compiler's run time is taken from the system although the prefix has a copy where the requester does not look.
    """
    if C_LIBRARY.fullmatch(name) or RUNTIME.fullmatch(name):
        return True
    family = view.family_of(name)
    if not re.fullmatch(r"[^/*?\[]+\.so(?:\.\d+)*", name) or HASHED.search(name) or (
            family is not None and family.level != "environment"):
        return False
    recorded = (each.path.rpartition("/")[2] for each in view.environment.file_faults)
    return name not in recorded and not any(name in each.libraries for each in view.environment.library_folders)
