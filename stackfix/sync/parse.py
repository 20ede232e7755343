"""A requirements lock as text, parsed strictly: every line a pin with hashes, or a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from stackfix.errors import BadInput
from stackfix.write.records import Entry, RequirementsLock

LONGEST = 4096                  # characters of a pin without its hashes
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
URL = re.compile(r"[a-z]+://[^\s;\\]+")
VARIABLE = "${"
FILLED_IN = "pip and uv would fill it in, for whoever serves the file: lock again, or write `$` as %24"
SHA256 = re.compile(r"[0-9a-f]{64}")
SECOND_STEP = re.compile(r"requirements-flash-attn[A-Za-z0-9_-]*\.txt")
NAMED = re.compile(r"\bextras?\b|\bdependency_groups\b")
PIN = re.compile(
    rf"(?P<name>{NAME})(?:\[(?P<extras>{NAME}(?:, ?{NAME})*)\])?"
    rf"(?: ?== ?(?P<version>{VERSION.pattern})| ?@ ?(?P<url>{URL.pattern}))(?: ?; ?(?P<marker>.+))?")
HASH = re.compile(rf"--hash=sha256:(?P<digest>{SHA256.pattern})")
BEFORE_OPTION = re.compile(r"\s+(?=--)")
COMMENT = re.compile(r"(?:^|\s)#")
HEADER_TARGET = re.compile(
    r"# This file is locked by stackfix for cp3(?P<minor>\d{1,3})-(?P<platform>[a-z]+-[a-z0-9]+)"
    r"(?:-(?P<variant>cpu))?")
HEADER_NEXT = re.compile(rf"# second step: (?P<file>{SECOND_STEP.pattern})")
HEADER_AFTER = re.compile(r"# second step of: \S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalLine:
    """Continued lines as one. `comments` are those on it and below it, up to the next."""

    number: int
    text: str
    comments: tuple[str, ...]
    parts: tuple[tuple[int, str], ...]      # (number, text) of each line it was joined from


def parse_requirements_lock(text: str, name: str) -> RequirementsLock:
    """The lock that `text` is; `name` is for messages. Raises BadInput at the first line that no lock has."""
    lines = tuple(logical_lines(text, name))
    header = lines[0].comments if lines and not lines[0].text else ()
    entries: dict[str, Entry] = {}
    for line in lines:
        if not line.text:
            continue
        entry = parse_entry(line, name)
        earlier = entries.setdefault(entry.name + (entry.marker or ""), entry)
        if earlier is not entry:
            raise BadInput(f"{name} line {line.number}", f"{entry.name} is locked on line {earlier.line} already")
    target = first_match(HEADER_TARGET, header)
    step = first_match(HEADER_NEXT, header)
    return RequirementsLock(
        target=(f"3.{int(target['minor'])}", target["platform"]) if target else None,
        variant=(target["variant"] or "") if target else None,
        second_step=step["file"] if step else None,
        is_second_step=first_match(HEADER_AFTER, header) is not None,
        entries=tuple(entries.values()),
    )


def logical_lines(text: str, name: str) -> Iterator[LogicalLine]:
    """Lines with their continuations joined; the comments before the first come with an empty text."""
    parts, comments, continued = list[tuple[int, str]](), list[str](), False
    for position, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        comment = COMMENT.search(line)
        code = (line[:comment.start()] if comment else line).strip()
        if continued and not code:
            raise BadInput(f"{name} line {position}", "a continued line ends without what it promised")
        if code:
            if not continued:
                if comments or parts:
                    yield joined(parts, comments)
                parts, comments = [], []
            continued = code.endswith("\\")
            parts.append((position, code.rstrip("\\").strip()))
        if comment:
            comments.append(line[comment.start():].strip())
    if continued:
        raise BadInput(f"{name} line {parts[0][0]}", "the file ends within this line", "it may be cut off: lock again")
    if comments or parts:
        yield joined(parts, comments)


def joined(parts: list[tuple[int, str]], comments: list[str]) -> LogicalLine:
    """One line of what was continued."""
    return LogicalLine(number=parts[0][0] if parts else 0, text=" ".join(text for _, text in parts).strip(),
                       comments=tuple(comments), parts=tuple(parts))


def parse_entry(line: LogicalLine, name: str) -> Entry:
    """One pin. Raises BadInput where the line is not exactly a pin and its hashes."""
    where = f"{name} line {line.number}"
    pin, *options = BEFORE_OPTION.split(line.text)
    match = PIN.fullmatch(pin) if len(pin) <= LONGEST else None
    if match is None:
        raise BadInput(where, f"is not `name==version` or `name @ URL`: {pin[:80]!r}",
                       "only a lock with every requirement pinned and hashed can be installed")
    if VARIABLE in pin:
        raise BadInput(where, f"{match['name']} asks for a variable of the environment with {VARIABLE!r}", FILLED_IN)
    digests = []
    for option in options:
        digest = HASH.fullmatch(option)
        if digest is None:
            number = next((number for number, part in line.parts if option in BEFORE_OPTION.split(part)), line.number)
            raise BadInput(f"{name} line {number}", f"is not `--hash=sha256:` with 64 hex digits: {option[:90]!r}")
        digests.append(digest["digest"])
    if not digests:
        raise BadInput(where, f"{match['name']} has no sha256", "lock again: an unhashed file is never installed")
    extras = tuple(extra.strip() for extra in match["extras"].split(",")) if match["extras"] else ()
    return Entry(
        name=canonicalize_name(match["name"]), version=match["version"], url=match["url"],
        sha256=tuple(sorted(set(digests))), extras=extras, via=via_names(line.comments), marker=match["marker"],
        line=line.number,
    )


def via_names(comments: tuple[str, ...]) -> tuple[str, ...]:
    """What the `# via` note names."""
    names: list[str] = []
    for index, comment in enumerate(comments):
        if comment.startswith("# via "):
            return (comment.removeprefix("# via "),)
        if comment == "# via":
            for follower in comments[index + 1:]:
                if not follower.startswith("#   "):
                    break
                names.append(follower.removeprefix("#   "))
            break
    return tuple(names)


def first_match(pattern: re.Pattern[str], lines: tuple[str, ...]) -> re.Match[str] | None:
    """The first line that is wholly `pattern`."""
    return next((match for line in lines if (match := pattern.fullmatch(line))), None)
