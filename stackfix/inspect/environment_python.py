"""Which Python an environment has, from its files: the interpreter may be broken, foreign or hostile: it is not run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stackfix.inspect.environment_find import Found, parent, python_folders
from stackfix.inspect.environment_records import CondaPackage, Note, Python, Venv
from stackfix.inspect.places import Root, why_unreached
from stackfix.platforms import LINUX_SUBDIRS

MINOR = re.compile(r"(python|pypy)(3(?:\.\d{1,2})?)(t?)")
FULL = re.compile(r"\b(3\.\d{1,2}\.\d{1,3}(?:(?:a|b|rc)\d+)?)")
PATCH_LEVEL = re.compile(r'^\s*#\s*define\s+PY_VERSION\s+"(3\.\d{1,2}\.\d{1,3}[\w]*)\+?"', re.MULTILINE)
BUILD_FACTS = re.compile(r"_sysconfigdata_t?_linux_(x86_64|aarch64|\w+?)-linux-\w+\.py")


def read_venv(root: Root, prefix: str) -> tuple[Venv, dict[str, str]] | None:
    """pyvenv.cfg as a record and as keys (lower case); None where the prefix is no venv."""
    path = f"{prefix}/pyvenv.cfg"
    text = root.find_text(path)
    if text is None:
        return None
    keys = {key.strip().lower(): value.strip() for key, equals, value in
            (line.partition("=") for line in text.splitlines()) if equals}
    tool = next((f"{name} {keys[name]}" for name in ("uv", "virtualenv") if keys.get(name)), None)
    return Venv(
        config=path, home=keys.get("home") or None, made_by=tool,
        system_site_packages=keys.get("include-system-site-packages", "").lower() == "true",
    ), keys


def read_python(root: Root, found: Found, venv: tuple[Venv, dict[str, str]] | None, packages: Sequence[CondaPackage],
                notes: list[Note]) -> Python | None:
    """The Python of the environment; None, with a note, where its files do not tell one."""
    keys = venv[1] if venv else {}
    stated = next((match[1] for key in ("version_info", "version") if (match := FULL.search(keys.get(key, "")))), None)
    stated = stated or next((each.version for each in packages if each.name == "python"), None)
    folder = chosen_folder(root, found, stated, notes)
    match = MINOR.fullmatch(folder.rpartition("/")[2]) if folder else None
    if folder is None or match is None:
        return None
    base = base_prefix(venv[0]) if venv and venv[0].home else found.prefix
    name = folder.rpartition("/")[2]
    library = next((each for lib in ("lib", "lib64") for each in (f"{base}/{lib}/{name}",)
                    if root.is_file(f"{each}/os.py")), None)
    if venv and venv[0].home and library is None and not is_closed(root, f"{base}/lib/{name}/os.py"):
        notes.append(Note(path=venv[0].config, reason=f"its base Python is not there: home = {venv[0].home}"))
    minor = match[2] if "." in match[2] else ".".join((stated or match[2]).split(".")[:2])
    headers = root.find_text(f"{base}/include/{name}/patchlevel.h")
    level = PATCH_LEVEL.search(headers) if headers else None
    executable = found.executable or first_executable(root, found.prefix, name)
    return Python(
        minor=minor, version=stated if stated and stated.startswith(f"{minor}.") else level[1] if level else None,
        implementation="pypy" if match[1] == "pypy" else "cpython", free_threaded=bool(match[3]), executable=executable,
        executable_reaches=root.find(executable) if executable else None, base_prefix=base, standard_library=library,
        platform=read_platform(root, library, packages),
        externally_managed=venv is None and library is not None and root.exists(f"{library}/EXTERNALLY-MANAGED"),
        lost=why_lost(root, found.prefix, executable),
    )


def is_closed(root: Root, path: str) -> bool:
    """Whether a folder on the way may not be entered, so that nobody knows what lies behind it."""
    try:
        root.resolve(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def base_prefix(venv: Venv) -> str:
    """`/usr` for `home = /usr/bin`."""
    home = (venv.home or "/").rstrip("/")
    return parent(home) if home.startswith("/") else "/"


def chosen_folder(root: Root, found: Found, stated: str | None, notes: list[Note]) -> str | None:
    """The lib/python3.x folder that the environment's Python uses, where the prefix may hold several."""
    folders = python_folders(root, found.prefix)
    by_name = {each.rpartition("/")[2]: each for each in reversed(folders)}
    if len(by_name) < 2:
        return next(iter(by_name.values()), None)
    wanted = [f"python{'.'.join(stated.split('.')[:2])}"] if stated else []
    for name in (found.executable, f"{found.prefix}/bin/python3", f"{found.prefix}/bin/python"):
        reached = root.find(name) if name else None
        wanted += [reached.rpartition("/")[2]] if reached else []
    for name in wanted:
        if name in by_name or f"{name}t" in by_name:
            return by_name.get(name) or by_name[f"{name}t"]
    several = ", ".join(sorted(by_name))
    notes.append(Note(path=found.prefix, reason=f"several Pythons and no word which is meant: {several}"))
    return None


def first_executable(root: Root, prefix: str, name: str) -> str | None:
    names = (f"{prefix}/bin/{each}" for each in ("python", "python3", name, "pypy3"))
    return next((each for each in names if root.lexists(each)), None)


def why_lost(root: Root, prefix: str, executable: str | None) -> str | None:
    """Why there is no executable, in words; None where there is one, or where it may only not be reached by us."""
    path = executable or f"{prefix}/bin/python"
    try:
        root.resolve(path)
    except PermissionError:
        return None
    except OSError as error:
        return why_unreached(root, path, error) or "is not there"
    return None


def read_platform(root: Root, library: str | None, packages: Sequence[CondaPackage]) -> str | None:
    """Platform from the name of the standard library's own build facts, else from conda's subdir."""
    for entry in root.find_entries(library) if library else ():
        if match := BUILD_FACTS.fullmatch(entry.name):
            return LINUX_SUBDIRS.get(match[1], f"other-linux-{match[1]}")
    return next((each.subdir for each in packages if each.name == "python" and each.subdir), None)
