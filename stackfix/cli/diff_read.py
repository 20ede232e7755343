"""Either side of `stackfix diff`: any lockfile that is read here, or an environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from stackfix.errors import AnswerIsNo, BadInput, Unreachable

if TYPE_CHECKING:
    from stackfix.sync.records import Interpreter
    from stackfix.write.records import CondaPin, Entry, Held, HeldTarget, PipPin

KeyOf = Callable[["CondaPin"], str]
VERSION_PIN = re.compile(r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*(?P<version>[A-Za-z0-9.!+_-]+)")
OF_PYTHON = re.compile(r"py\d")
MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}
PYTHONS = tuple(f"3.{minor}" for minor in range(8, 16))
CONDA_SUFFIXES = (".yml", ".yaml", ".lock")


def read_side(text: str) -> tuple[str, tuple[HeldTarget, ...]]:
    """What kind of side it is, and what it holds for each target. Raises BadInput, or Unreachable where unreadable."""
    path = Path(text)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise Unreachable(text, f"cannot be read: {error.strerror}") from error
    if is_folder:
        return "environment", (read_environment(path),)
    if not exists:
        raise BadInput(text, "no such lockfile or environment")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise Unreachable(text, f"cannot be read: {error.strerror}") from error
    if path.suffix in CONDA_SUFFIXES:
        return read_conda(path)
    if path.suffix == ".toml":
        return "pylock", read_pylock(path)
    return read_requirements(path)


def key_book() -> KeyOf:
    """What a package of a channel is called on both sides, by matrices/conda_names.toml."""
    from packaging.utils import canonicalize_name

    from stackfix.matrix.conda_names import load_conda_names
    from stackfix.write.difference import CONDA, key_of

    names = load_conda_names(None)
    rows = {row.package: row.projects for row in (*names.stack, *names.other, *names.same)}

    def key(pin: CondaPin) -> str:
        own = canonicalize_name(pin.name)
        projects = rows.get(pin.name)
        if projects:
            keys = dict.fromkeys(key_of(project) for project in projects)
            return own if own in keys else next(iter(keys))
        is_python = pin.noarch == "python" or OF_PYTHON.match(pin.build) is not None or any(
            line.split(" ")[0] in {"python", "python_abi"} for line in pin.depends)
        return own if pin.name == "python" or (is_python and pin.name not in names.none) else f"{CONDA}{pin.name}"

    return key


def conda_held(pins: Iterable[CondaPin], key: KeyOf) -> Iterator[Held]:
    """The packages of channels."""
    from stackfix.write.clean import without_credentials
    from stackfix.write.records import Held

    for pin in pins:
        hashes = [*([f"sha256:{pin.sha256}"] if pin.sha256 else []), *([f"md5:{pin.md5}"] if pin.md5 else [])]
        source = without_credentials(pin.channel).rstrip("/") if pin.channel and "://" in pin.channel else None
        yield Held(name=pin.name, key=key(pin), manager="conda", version=pin.version, build=pin.build, source=source,
                   hashes=tuple(sorted(hashes)))


def pip_held(pins: Iterable[PipPin | Entry]) -> Iterator[Held]:
    """The packages of pip."""
    from stackfix.sync.changes import version_in
    from stackfix.write.clean import without_credentials
    from stackfix.write.difference import key_of
    from stackfix.write.records import Held

    for pin in pins:
        digests = (pin.sha256,) if isinstance(pin.sha256, str) else pin.sha256 or ()
        version = pin.version or (version_in(pin.url) if pin.url else None)
        yield Held(name=pin.name, key=key_of(pin.name), manager="pip", version=version,
                   source=without_credentials(pin.url) if pin.url else None,
                   hashes=tuple(sorted(f"sha256:{digest}" for digest in digests)))


def read_conda(path: Path) -> tuple[str, tuple[HeldTarget, ...]]:
    """conda-lock.yml, pixi.lock, an explicit file or a pinned environment.yml; with their second steps."""
    from stackfix.write.conda_read import read_conda_file
    from stackfix.write.records import HeldTarget

    lock, key = read_conda_file(path), key_book()
    found = []
    for one in lock.environments:
        python = one.python or next((python for python, platform in lock.targets if platform == one.platform), None)
        second = [entry for name in lock.second_steps
                  for entry in second_entries(path.with_name(name), python, one.platform)]
        found.append(HeldTarget(python=python, platform=one.platform, packages=(
            *conda_held(one.conda, key), *pip_held(one.pip), *pip_held(second))))
    return lock.kind, tuple(found)


def second_entries(path: Path, python: str | None, platform: str | None) -> tuple[Entry, ...]:
    """The pins of a second step for the target; none where the file is not there, or is another target's."""
    from stackfix.sync.lockfile import read_text
    from stackfix.sync.parse import parse_requirements_lock

    if not path.is_file():
        return ()
    lock = parse_requirements_lock(read_text(path), path.name)
    return lock.entries if lock.target in {None, (python, platform)} or None in {python, platform} else ()


def read_requirements(path: Path) -> tuple[str, tuple[HeldTarget, ...]]:
    """A requirements lock with its second step, or a constraints file."""
    from stackfix.sync.lockfile import read_text
    from stackfix.sync.parse import HEADER_TARGET, parse_requirements_lock
    from stackfix.write.records import HeldTarget

    text = read_text(path)
    if "--hash" in text:
        lock = parse_requirements_lock(text, path.name)
        python, platform = lock.target or (None, None)
        second = second_entries(path.with_name(lock.second_step), python, platform) if lock.second_step else ()
        return "requirements", (HeldTarget(python=python, platform=platform,
                                           packages=tuple(pip_held((*lock.entries, *second)))),)
    entries: dict[str, Entry] = {}
    target = next((match for line in text.splitlines() if (match := HEADER_TARGET.fullmatch(line))), None)
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition(" #")[0].strip()
        if not content or content.startswith("#"):
            continue
        found = VERSION_PIN.fullmatch(content)
        if found is None:
            raise BadInput(f"{path} line {number}", f"is no pin of a version: {content[:80]!r}",
                           "name a lockfile: every line of one pins a version")
        entry = version_entry(found["name"], found["version"], number)
        if entries.setdefault(entry.name, entry) is not entry:
            raise BadInput(f"{path} line {number}", f"{entry.name} is pinned twice")
    return "constraints", (HeldTarget(
        python=f"3.{int(target['minor'])}" if target else None, platform=target["platform"] if target else None,
        packages=tuple(pip_held(entries.values()))),)


def version_entry(name: str, version: str, line: int) -> Entry:
    """`name==version`."""
    from packaging.utils import canonicalize_name

    from stackfix.write.records import Entry

    return Entry(name=canonicalize_name(name), version=version, url=None, sha256=(), line=line)


def read_pylock(path: Path) -> tuple[HeldTarget, ...]:
    """pylock.toml for each target that it is for, of those that are known here."""
    from stackfix.sync.lockfile import read_text
    from stackfix.sync.pylock import parse_pylock
    from stackfix.write.records import HeldTarget

    text, found, refusal = read_text(path), list[HeldTarget](), None
    for platform in MACHINES:
        for python in PYTHONS:
            try:
                entries, second = parse_pylock(text, path.name, stand_in(python, platform))
            except AnswerIsNo as error:
                refusal = error
                continue
            later = second_entries(path.with_name(second), python, platform) if second else ()
            found.append(HeldTarget(python=python, platform=platform, packages=tuple(pip_held((*entries, *later)))))
    if not found:
        raise BadInput(str(path), f"is for no target known here ({refusal})")
    if len({frozenset(one.packages) for one in found}) == 1 and len(found) > 1:     # it does not tell them apart
        one = found[0]
        return (HeldTarget(python=None, platform=None, packages=one.packages),)
    return tuple(found)


def stand_in(python: str, platform: str) -> Interpreter:
    """An interpreter of the target, for markers."""
    from stackfix.sync.records import Interpreter

    machine = MACHINES[platform]
    markers = {
        "implementation_name": "cpython", "implementation_version": f"{python}.0", "os_name": "posix",
        "platform_machine": machine, "platform_release": "", "platform_system": "Linux", "platform_version": "",
        "python_full_version": f"{python}.0", "platform_python_implementation": "CPython", "python_version": python,
        "sys_platform": "linux"}
    return Interpreter(executable="", prefix="", python=python, implementation="cpython", platform=platform,
                       externally_managed=False, has_pip=False, markers=tuple(sorted(markers.items())))


def read_environment(prefix: Path) -> HeldTarget:
    """What a folder holds: conda-meta and site-packages, read as files. Raises BadInput where it is no environment."""
    from stackfix.sync.conda_prefix import META, read_conda_installed
    from stackfix.sync.installed import read_record as read_installed_record
    from stackfix.sync.installed import records_in
    from stackfix.write.difference import key_of
    from stackfix.write.records import CondaPin, Held, HeldTarget

    sites = sorted(prefix.glob("lib/python3*/site-packages"))
    if not (prefix / META).is_dir() and not sites:
        raise BadInput(str(prefix), "is no environment: it has neither conda-meta nor lib/python3.*/site-packages",
                       "name a lockfile, or the folder of an environment")
    linked = read_conda_installed(prefix)
    owned = {path for one in linked.values() for path in one.files}
    pins = [CondaPin(name=one.name, version=one.version, build=one.build, platform=one.subdir or "", subdir=one.subdir,
                     channel=one.channel, file_name=None, url=one.url, md5=one.md5, sha256=one.sha256,
                     noarch="python" if has_metadata(one.files) else None) for one in linked.values()]
    held: dict[str, Held] = {}
    for site in sites:
        for path in records_in(site):
            relative = str(path.relative_to(prefix))
            found = None if owned & {relative, f"{relative}/METADATA", f"{relative}/PKG-INFO"} else (
                read_installed_record(path))
            if found is not None:
                held.setdefault(found.name, Held(name=found.name, key=key_of(found.name), manager="pip",
                                                 version=found.version, source=None))
    python = linked["python"].version if "python" in linked else sites[0].parent.name.removeprefix("python")
    subdirs = {one.subdir for one in linked.values()} - {None, "noarch"}
    return HeldTarget(python=".".join(python.split(".")[:2]), platform=next(iter(sorted(filter(None, subdirs))), None),
                      packages=(*conda_held(pins, key_book()), *held.values()))


def has_metadata(files: Iterable[str]) -> bool:
    """Whether a package brings a Python project."""
    return any(".dist-info/" in path or ".egg-info" in path for path in files)
