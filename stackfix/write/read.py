"""Pins of the lock that is there already: a new lock keeps them while they fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stackfix.errors import BadInput
from stackfix.platforms import CPU
from stackfix.write.names import check_name, joined

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
VERSION = r"[A-Za-z0-9][A-Za-z0-9.!+_-]*"
LARGEST = 32 * 1024 * 1024      # bytes; a lock of 400 packages has 2 MB
APART = r"(?:cp3\d{1,3}-[a-z]+-[a-z0-9]+|cpu)"
TARGET_SUFFIX = r"(?:-cp3\d{1,3}-[a-z]+-[a-z0-9]+(?:-cpu)?)?"
PIN = re.compile(
    rf"(?P<name>{NAME})(?:\[[^\]]*\])?\s*"
    rf"(?:==\s*(?P<version>{VERSION})|@\s*(?P<url>[^\s;]+))\s*(?=$|[\\;#]|--)")


def read_kept_pins(directory: Path, name: str | None) -> tuple[tuple[str, str], ...]:
    """(name, version) of what the existing requirements files pin, else what the pylock files do; sorted.

    Several targets may pin two versions of one name: both are given. Lines that are no pins and files that are no TOML
    are passed over, since a file by hand may stand there. Raises BadInput for a file that cannot be read.
    """
    check_name(name)
    found = {pin for _, text in kept_requirements(directory, name) for pin in requirements_pins(text)}
    if not found:
        found = {pin for _, document in kept_pylocks(directory, name) for pin in pylock_pins(document)}
    return tuple(sorted(found))


def kept_requirements(directory: Path, name: str | None) -> Iterator[tuple[Path, str]]:
    """The existing requirements files of this name, of all targets and steps, with their text."""
    suffix = f"-{re.escape(name)}" if name else ""
    pattern = re.compile(rf"requirements(?:-flash-attn)?{suffix}{TARGET_SUFFIX}\.txt")
    yield from ((path, read_text(path)) for path in named(directory, pattern))


def kept_pylocks(directory: Path, name: str | None) -> Iterator[tuple[Path, dict[str, object]]]:
    """The existing pylock files of this name, also of one variant alone, and those that earlier releases wrote."""
    begin = rf"\.{re.escape(name)}(?:-{APART})?" if name else rf"(?:\.{APART})?"
    for path in named(directory, re.compile(rf"pylock{begin}\.toml")):
        document = read_toml(path)
        of_the_cpu = path.name == f"pylock.{joined(name, CPU)}.toml"
        # a lock may have the name `cpu`: the file of a variant says that it is one
        if not of_the_cpu or variant_of(document):
            yield path, document


def variant_of(document: Mapping[str, object]) -> str:
    """`cpu` of a pylock of the CPU builds of a lock alone, where no marker could say so; else ""."""
    tool = document.get("tool")
    ours = tool.get("stackfix") if isinstance(tool, dict) else None
    return CPU if isinstance(ours, dict) and ours.get("variant") == CPU else ""


def named(directory: Path, pattern: re.Pattern[str]) -> list[Path]:
    """The folder's regular files whose whole name is `pattern`, sorted; none where there is no folder."""
    try:
        return sorted(path for path in directory.iterdir() if pattern.fullmatch(path.name) and path.is_file())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadInput(str(directory), f"cannot be listed: {error.strerror}", "name a folder with -o DIR") from error


def requirements_pins(text: str) -> Iterator[tuple[str, str]]:
    """(name, version) of each `name==version`, and of each `name @ URL` of a wheel."""
    for line in text.splitlines():
        match = PIN.match(line[:4096].strip())
        if match is None:
            continue
        version = match["version"] or wheel_version(match["url"])
        if version:
            yield normalise(match["name"]), version


def pylock_pins(document: dict[str, object]) -> Iterator[tuple[str, str]]:
    """(name, version) of each package; of an archive without version the one in its file name."""
    packages = document.get("packages")
    for package in packages if isinstance(packages, list) else ():
        if not isinstance(package, dict) or not isinstance(package.get("name"), str):
            continue
        version, archive = package.get("version"), package.get("archive")
        if version is None and isinstance(archive, dict):
            version = wheel_version(str(archive.get("url", "")))
        if isinstance(version, str) and re.fullmatch(VERSION, version):
            yield normalise(package["name"]), version


def normalise(name: str) -> str:
    """The name as indexes spell it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wheel_version(url: str) -> str | None:
    """The public version in a wheel's file name; its local part is not in its metadata. None for other files."""
    file = unquote(urlsplit(url).path).rpartition("/")[2]
    parts = file.removesuffix(".whl").split("-")
    if not file.endswith(".whl") or len(parts) not in {5, 6}:
        return None
    return parts[1].partition("+")[0] or None


def read_toml(path: Path) -> dict[str, object]:
    """The parsed file; empty where it is no TOML, which `lock` does not overwrite unasked."""
    from stackfix.write.toml import loads

    try:
        return loads(read_text(path))
    except (ValueError, RecursionError):      # TOMLDecodeError, or a number that int() refuses
        return {}


def read_text(path: Path) -> str:
    """The file's text. Raises BadInput where it is missing, too large, no text or no file."""
    try:
        if not path.is_file():
            raise BadInput(str(path), "is not a regular file" if path.exists() else "no such file")
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from error
    if len(content) > LARGEST:
        raise BadInput(str(path), f"is larger than {LARGEST // 1024 // 1024} MB: no lockfile is")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}", "is not UTF-8 text", "remove it, or write with -o elsewhere") from error
