"""The text of the almanac's files about NVIDIA's libraries, read strictly: a line that is not as written is an error.

docs/almanac-nvidia.md describes the three kinds of file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from stackfix.abi.nvidia_versions import mask_of, version_key
from stackfix.errors import BadInput
from stackfix.quick import dataclass

PACKAGE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
SONAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")      # becomes a file name
NAME = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$@]*")
INTERNAL = re.compile(r"_Z|sm[0-9]+_")      # how names begin that libraries of one wheel export for one another
HINT = "Install stackfix again, or make the files anew with `python -m stackfix.almanac nvidia --make`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What is known of one package's versions, oldest first."""

    read: Mapping[str, tuple[str, ...]]     # version -> sonames of its libraries
    unread: tuple[str, ...]                 # published, but not read: nothing is known of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Exports:
    """What one package's library exports. Bit i of a mask stands for versions[i]."""

    versions: tuple[str, ...]       # that carry the library, oldest first
    masks: Mapping[str, int]        # by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What one library of a consumer wants of one other library. Bit i of a mask stands for a consumer's version i."""

    file: str                       # "libcusparse.so.12"
    soname: str                     # "libnvJitLink.so.12"
    masks: Mapping[str, int]        # by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """What all read versions of one consumer want."""

    versions: tuple[str, ...]       # read, oldest first: also those that want nothing
    wants: tuple[Wants, ...]


def bad(file: str, number: int, reason: str) -> NoReturn:
    """Raises BadInput about one line."""
    raise BadInput(file, f"line {number}: {reason}", HINT)


def lines_of(file: str, content: bytes) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without the comment lines at the head."""
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        bad(file, content.count(b"\n", 0, error.start) + 1, "a byte that is not ASCII")
    if not text.endswith("\n"):
        bad(file, text.count("\n") + 1, "cut off: no end of line")
    head = True
    for number, line in enumerate(text[:-1].split("\n"), 1):
        head = head and line.startswith("#")
        if not head:
            yield number, line


def parse_packages(file: str, content: bytes) -> dict[str, Published]:
    """packages.tsv: "package, version, sonames" of each published wheel, "unread" in place of the sonames."""
    read: dict[str, dict[str, tuple[str, ...]]] = {}
    unread: dict[str, list[str]] = {}
    package, newest = "", None
    for number, line in lines_of(file, content):
        fields = line.split("\t")
        key = version_key(fields[1]) if len(fields) == 3 else None
        if key is None or not PACKAGE.fullmatch(fields[0]):
            bad(file, number, "not a package, a version, and sonames")
        if fields[0] != package:
            package, newest = fields[0], None
            if package in read:
                bad(file, number, f"{package} was listed before")
            read[package], unread[package] = {}, []
        if newest is not None and key <= newest:
            bad(file, number, f"{fields[1]} is not newer than the line above")
        newest = key
        if fields[2] == "unread":
            unread[package].append(fields[1])
        else:
            read[package][fields[1]] = sonames_in(file, number, fields[2])
    return {name: Published(read=versions, unread=tuple(unread[name])) for name, versions in read.items()}


def sonames_in(file: str, number: int, text: str) -> tuple[str, ...]:
    """The sonames of one line."""
    names = tuple(text.split(" "))
    if not all(map(SONAME.fullmatch, names)) or len(set(names)) != len(names):
        bad(file, number, f"{text!r} are no sonames")
    return names


def parse_exports(file: str, content: bytes, versions: Mapping[str, tuple[str, ...]]) -> dict[str, Exports]:
    """One library's file. `versions`: by package, those that carry the library."""
    found: dict[str, Exports] = {}
    for number, head, body in sections(file, content):
        package = head.removeprefix("@ ")
        if package not in versions or package in found:
            bad(file, number, f"{head!r} opens no package that carries this library, or one a second time")
        found[package] = Exports(versions=versions[package], masks=parse_masks(file, body, versions[package]))
    for package in versions:
        if package not in found:
            raise BadInput(file, f"without {package}, which carries this library", HINT)
    return found


def parse_uses(file: str, content: bytes) -> dict[str, Consumer]:
    """uses.tsv. "= consumer, versions" opens a consumer, "@ library, soname" what a library of it wants of another."""
    found: dict[str, Consumer] = {}
    consumer, versions, wants = "", tuple[str, ...](), list[Wants]()
    for number, head, body in sections(file, content):
        first, _, second = head[2:].partition("\t")
        if head.startswith("= "):
            consumer, versions, wants = first, consumer_versions(file, number, second), []
            if not PACKAGE.fullmatch(consumer) or consumer in found or body:
                bad(file, number, f"{consumer!r} is no package, is listed twice, or has names without a library")
        elif consumer and SONAME.fullmatch(first) and SONAME.fullmatch(second):
            wants.append(Wants(file=first, soname=second, masks=parse_masks(file, body, versions)))
        else:
            bad(file, number, f"{head!r} is neither a consumer with its versions nor a library with a soname")
        found[consumer] = Consumer(versions=versions, wants=tuple(wants))
    return found


def sections(file: str, content: bytes) -> Iterator[tuple[int, str, list[tuple[int, str]]]]:
    """Each line that opens a section, with its number, and the lines up to the next."""
    opened: tuple[int, str] | None = None
    body: list[tuple[int, str]] = []
    for number, line in lines_of(file, content):
        if line.startswith(("@ ", "= ")):
            if opened is not None:
                yield *opened, body
            opened, body = (number, line), []
        elif opened is None:
            bad(file, number, "before the first section")
        else:
            body.append((number, line))
    if opened is not None:
        yield *opened, body


def parse_masks(file: str, lines: Iterable[tuple[int, str]], versions: Sequence[str]) -> dict[str, int]:
    """Names with the versions that have them, from lines "name" or "name, spans" in the order of the names."""
    places = {version: place for place, version in enumerate(versions)}
    known = {"": mask_of("", places)}
    masks: dict[str, int] = {}
    newest = ""
    for number, line in lines:
        name, tab, spans = line.partition("\t")
        if name <= newest or not NAME.fullmatch(name) or bool(tab) != bool(spans):
            bad(file, number, f"{line!r} is not a name in order with its versions")
        if spans not in known:
            try:
                known[spans] = mask_of(spans, places)
            except ValueError as error:
                bad(file, number, str(error))
        masks[name] = known[spans]
        newest = name
    return masks


def consumer_versions(file: str, number: int, text: str) -> tuple[str, ...]:
    """The versions of one line, which must be in order."""
    versions, newest = tuple(text.split(" ")), None
    for version in versions:
        key = version_key(version)
        if key is None or (newest is not None and key <= newest):
            bad(file, number, f"{version!r} is no version, or not newer than the one before it")
        newest = key
    return versions
