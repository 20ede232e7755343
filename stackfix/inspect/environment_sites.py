"""Folders that Python would put on sys.path for packages, in its order, after the rules of `site.py`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from stackfix.inspect.environment_records import Note, PathFile, Python, SiteFolder, Venv
from stackfix.inspect.places import MIB, Entry, Root, reason_of
from stackfix.quick import replace

PATH_FILE_LIMIT = MIB
MAX_ADDED = 1000            # folders of one .pth file


def find_sites(root: Root, environ: Mapping[str, str], prefix: str, python: Python, venv: Venv | None,
               cwd: str | None = None) -> tuple[SiteFolder, ...]:
    """PYTHONPATH, then as site.main(): a venv's own, the user's, and those of the base where the venv sees them.

    Outside a venv the user's come first. Folders that .pth files add are not among them.
    """
    found = [SiteFolder(path=path, kind="PYTHONPATH", base=path, exists=root.is_folder(path))
             for path in python_path(environ, cwd)]
    own = [site(root, path, "environment", prefix) for path in site_paths(prefix, python)]
    user = [site(root, path, "user", base) for base, path in user_paths(environ, python)]
    if venv is None:
        found += [*user, *own]
    elif venv.system_site_packages:
        found += [*own, *user, *(site(root, path, "base", python.base_prefix)
                                 for path in site_paths(python.base_prefix, python))]
    else:
        found += own
    return tuple(distinct(root, found))


def site(root: Root, path: str, kind: str, base: str) -> SiteFolder:
    # Debian's /usr also searches /usr/local: a folder is its own base where it does not lie in the prefix's lib
    base = base if path.startswith(f"{base}/lib") else path.partition("/lib")[0] or base
    return SiteFolder(path=path, kind=kind, base=base, exists=root.is_folder(path))


def python_path(environ: Mapping[str, str], cwd: str | None = None) -> tuple[str, ...]:
    """Folders on PYTHONPATH; what is relative starts at the current folder, where that is known.

    That folder itself, as a colon too many names it, is left out: it may be a home with all that lies in it.
    """
    here = posixpath.normpath(cwd) if cwd else None
    found = (posixpath.normpath(posixpath.join(here or "", each)) for each in elements(environ))
    return tuple(each for each in found if each.startswith("/") and each != here)


def elements(environ: Mapping[str, str]) -> list[str]:
    text = environ.get("PYTHONPATH")
    return text.split(":") if text else []


def why_left_out(environ: Mapping[str, str], cwd: str | None) -> str | None:
    """What of PYTHONPATH is not searched, and why; None where all of it is."""
    if any(not each or posixpath.normpath(each) == "." for each in elements(environ)):
        return "an element is the folder in which Python is started: that folder was not searched"
    if cwd is None and any(not each.startswith("/") for each in elements(environ)):
        return "an element is relative: which folder it is depends on where Python is started"
    return None


def site_paths(prefix: str, python: Python) -> Iterator[str]:
    """site.getsitepackages(), and the additions of Debian and Fedora for the system's own Python."""
    name = folder_name(python)
    if prefix == "/usr":
        yield from (f"/usr/local/{lib}/{name}/{kind}-packages" for lib in ("lib64", "lib") for kind in ("site", "dist"))
        yield "/usr/lib/python3/dist-packages"
    # sys.platlibdir is what the Python was built with; its own standard library lies there
    wide = python.standard_library is not None and python.standard_library.startswith(f"{python.base_prefix}/lib64/")
    libs = ("lib64", "lib") if wide else ("lib",)
    yield from (f"{prefix}/{lib}/{name}/{kind}-packages" for lib in libs for kind in ("site", "dist"))


def folder_name(python: Python) -> str:
    """`python3.13t`: the folder below lib."""
    start = "pypy" if python.implementation == "pypy" else "python"
    return f"{start}{python.minor}{'t' if python.free_threaded else ''}"


def user_paths(environ: Mapping[str, str], python: Python) -> Iterator[tuple[str, str]]:
    """(base, folder) of the user site, unless PYTHONNOUSERSITE switches it off or nothing says whose home it is."""
    home = environ.get("HOME", "")
    base = environ.get("PYTHONUSERBASE") or (f"{home.rstrip('/')}/.local" if home.startswith("/") else "")
    if base.startswith("/") and not environ.get("PYTHONNOUSERSITE"):
        yield base, f"{base}/lib/{folder_name(python)}/site-packages"


def distinct(root: Root, found: Sequence[SiteFolder]) -> Iterator[SiteFolder]:
    """One for each real folder, the first name kept. Of those that are not there only what the user set is told."""
    seen = set()
    for each in found:
        real = root.find(each.path)
        if real is None and each.kind != "PYTHONPATH":
            continue
        if (real or each.path) not in seen:
            seen.add(real or each.path)
            yield each


def read_path_files(root: Root, folder: str, entries: Sequence[Entry], notes: list[Note]) -> Iterator[PathFile]:
    """The .pth files of one site folder, in the order in which Python reads them; none is executed."""
    for entry in entries:
        path = f"{folder}/{entry.name}"
        # site.py passes over hidden ones since 3.12.4
        if not entry.name.endswith(".pth") or entry.name.startswith(".") or entry.kind == "folder":
            continue
        try:
            content = root.read_bytes(path, PATH_FILE_LIMIT)
        except OSError as error:
            notes.append(Note(path=path, reason=reason_of(error)))
            continue
        found = parse_path_file(content.decode("utf-8-sig", "surrogateescape"), path)
        if len(found.adds) > MAX_ADDED:
            notes.append(Note(path=path, reason=f"adds {len(found.adds)} folders: only {MAX_ADDED} were read"))
        yield replace(found, adds=found.adds[:MAX_ADDED])


def parse_path_file(text: str, path: str) -> PathFile:
    """Lines of a .pth file by what site.addpackage() does with them; relative folders start at the file's own."""
    adds, executes = [], []
    for line in text.splitlines():
        if line.startswith(("import ", "import\t")):
            executes.append(line.rstrip())
        elif line.strip() and not line.startswith("#") and "\0" not in line:
            adds.append(posixpath.normpath(posixpath.join(posixpath.dirname(path), line.rstrip())))
    return PathFile(path=path, adds=tuple(adds), executes=tuple(executes))


def with_path_files(root: Root, sites: Sequence[SiteFolder], files: Sequence[PathFile]) -> tuple[SiteFolder, ...]:
    """The sites, each followed by the folders that its .pth files add; those of a .pth are not searched for more."""
    found: list[SiteFolder] = []
    for each in sites:
        found.append(each)
        for file in files:
            if posixpath.dirname(file.path) == each.path:
                found += [SiteFolder(path=path, kind="pth", base=path, exists=True, named_by=file.path)
                          for path in file.adds if root.is_folder(path)]
    return tuple(distinct(root, found))
