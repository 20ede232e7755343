"""How the dynamic loader of a machine is set up: built-in folders, hwcaps subfolders, cache, configuration."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection

from stackfix.errors import BadInput
from stackfix.inspect.ldso_cache import CacheEntry, choose, parse_cache
from stackfix.inspect.ldso_records import ConfiguredFolder
from stackfix.inspect.places import Root
from stackfix.inspect.records import LoaderMachine

LIMIT = 64 << 20
MOST_INCLUDED = 1000        # files; an include that includes itself ends earlier
MULTIARCH = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
# What each level of the x86-64 psABI asks of the CPU, in the words of /proc/cpuinfo (abm: LZCNT, pni: SSE3).
X86_LEVELS = {
    "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
LEGACY_UNTIL = (2, 36)      # glibc 2.37 dropped tls/, the platform's name and the old hwcap bits


def read_cache(root: Root, path: str = "/etc/ld.so.cache") -> tuple[CacheEntry, ...]:
    """Entries of the loader's cache; none where there is no cache. Raises BadInput for what is no cache."""
    try:
        return parse_cache(root.read_bytes(path, LIMIT), path)
    except OSError:
        return ()


def read_conf(root: Root, path: str = "/etc/ld.so.conf") -> tuple[ConfiguredFolder, ...]:
    """Folders that ldconfig looks through, in order, `include` patterns followed (sorted, as glob(3) does)."""
    found: list[ConfiguredFolder] = []
    _read_conf(root, path, found, set())
    return tuple(found)


def _read_conf(root: Root, path: str, found: list[ConfiguredFolder], seen: set[str]) -> None:
    if path in seen or len(seen) >= MOST_INCLUDED:
        return
    seen.add(path)
    for number, line in enumerate((root.find_text(path) or "").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words or words[0] == "hwcap":
            continue
        if words[0] == "include":
            for pattern in words[1:]:
                absolute = pattern if pattern.startswith("/") else f"{path.rpartition('/')[0]}/{pattern}"
                for included in glob_in(root, absolute):
                    _read_conf(root, included, found, seen)
            continue
        # "folder=TYPE" was libc5's way to say more; ldconfig still cuts it off
        folder = line.partition("#")[0].strip().partition("=")[0].rstrip()
        if folder.startswith("/"):
            found.append(ConfiguredFolder(folder=folder.rstrip("/") or "/", file=path, line=number))


def glob_in(root: Root, pattern: str) -> tuple[str, ...]:
    """Paths below the root that match, sorted; a star does not match a leading dot."""
    paths = [""]
    for part in pattern.strip("/").split("/"):
        if any(sign in part for sign in "*?["):
            paths = [f"{path}/{entry.name}" for path in paths for entry in root.find_entries(path or "/")
                     if fnmatch.fnmatchcase(entry.name, part) and not (entry.name[0] == "." != part[0])]
        else:
            paths = [f"{path}/{part}" for path in paths if root.lexists(f"{path}/{part}")]
    return tuple(sorted(paths))


def system_folders(root: Root, machine: str) -> tuple[str, ...]:
    """The loader's built-in folders: Debian's multiarch ones where the root has them, else lib64 and lib."""
    multiarch = MULTIARCH.get(machine)
    if multiarch and root.is_folder(f"/usr/lib/{multiarch}"):
        return (f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib", "/usr/lib")
    return ("/lib64", "/usr/lib64")     # Fedora, SUSE and Arch configure glibc with --libdir=/usr/lib64


def cpu_levels(machine: str, cpu_flags: Collection[str]) -> tuple[str, ...]:
    """glibc-hwcaps subfolders that such a CPU makes the loader honour, best first."""
    levels: list[str] = []
    if machine == "x86_64":
        for level, needed in X86_LEVELS.items():
            if not set(needed.split()) <= set(cpu_flags):
                break
            levels.insert(0, level)
    return tuple(levels)


def read_cpu_flags(root: Root) -> frozenset[str]:
    """CPU features as /proc/cpuinfo names them; empty where it cannot be read."""
    for line in (root.find_text("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in {"flags", "Features"}:
            return frozenset(value.split())
    return frozenset()


def hwcap_subfolders(machine: str, levels: Collection[str], glibc: tuple[int, int] | None) -> tuple[str, ...]:
    """Subfolders that the loader tries in each folder, before it: new scheme first, then the one up to glibc 2.36.

    The legacy names depend on the CPU; only those that every CPU of the machine honours are given (tls, x86_64).
    """
    new = tuple(f"glibc-hwcaps/{level}" for level in levels) if glibc is None or glibc >= (2, 33) else ()
    if glibc is None or glibc > LEGACY_UNTIL or machine != "x86_64":
        return new
    return (*new, "tls/x86_64/x86_64", "tls/x86_64", "tls", "x86_64/x86_64", "x86_64")


def read_loader(
    root: Root, *, machine: str, cpu_flags: Collection[str] | None = None, glibc: tuple[int, int] | None = None,
) -> LoaderMachine:
    """The set-up of the loader below `root`. A cache that cannot be understood counts as none."""
    levels = cpu_levels(machine, read_cpu_flags(root) if cpu_flags is None else cpu_flags)
    folders = system_folders(root, machine)
    try:
        entries = read_cache(root)
    except BadInput:
        entries = ()
    preload = (root.find_text("/etc/ld.so.preload") or "").replace(":", " ").split()
    multiarch = folders[0].startswith("/lib/")
    return LoaderMachine(
        machine=machine, bits=64, system_folders=folders, hwcap_subfolders=hwcap_subfolders(machine, levels, glibc),
        lib=f"lib/{MULTIARCH[machine]}" if multiarch else "lib64", platform=machine,
        cache=choose(entries, machine=machine, bits=64, hwcaps=levels), preload_file=tuple(preload),
        sort_by_depth=glibc is None or glibc >= (2, 35),
    )
