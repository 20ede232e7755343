"""`-r requirements.in`, read as pip-compile reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from stackfix.errors import BadInput
from stackfix.quick import dataclass, field
from stackfix.request.logical_lines import LogicalLine, logical_lines
from stackfix.resolve.records import Requirement

LARGEST = 4 * 1024 * 1024       # bytes of one file
MOST_FILES = 200                # read in all, nested ones counted each time
ADDRESS = re.compile(r"(?:[a-z]+\+)?[a-z]+:(?://)?", re.IGNORECASE)
ARCHIVES = (".whl", ".tar.gz", ".zip")
HASH = re.compile(r"(?P<kind>[a-z0-9_]+):(?P<digest>[0-9a-f]+)", re.IGNORECASE)
VALUE_OPTIONS = {               # option -> what it is called here
    "-r": "requirement", "--requirement": "requirement", "-c": "constraint", "--constraint": "constraint",
    "-i": "index-url", "--index-url": "index-url", "--pypi-url": "index-url", "--extra-index-url": "extra-index-url",
}
ALREADY_SO = ("--require-hashes",)  # every lock has hashes
WHY_NOT = {
    "-e": "an editable install has no hash, so it cannot be locked", "--editable": "an editable install has no hash, "
    "so it cannot be locked",
    "-f": "a folder or page of links steers no lock", "--find-links": "a folder or page of links steers no lock",
    "--no-index": "a lock is made from an index",
    "--pre": "pre-releases are asked for one by one: write a pre-release in the specifier, as `torch>=2.9.0rc1`",
    "--trusted-host": "an index is never asked without checking its certificate",
    "--no-binary": "a lock is made of wheels", "--only-binary": "a lock is made of wheels already",
    "--prefer-binary": "a lock is made of wheels already",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """Index settings that requirement files state; may hold credentials."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()

    def then(self, later: IndexOptions) -> IndexOptions:
        """These, and where they say nothing those of `later`."""
        extra = dict.fromkeys((*self.extra_index_urls, *later.extra_index_urls))
        return IndexOptions(index_url=self.index_url or later.index_url, extra_index_urls=tuple(extra))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementsInput:
    """What one requirements file asks, with all that it includes."""

    requirements: tuple[Requirement, ...]
    index: IndexOptions
    files: tuple[Path, ...]         # every file that was read, for a lock must not overwrite one


@dataclass(slots=True, kw_only=True)
class Reading:
    """The state of one reading: what was opened, what was found."""

    environ: Mapping[str, str]
    files: list[Path] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)
    index: IndexOptions = field(default_factory=IndexOptions)


def read_requirements(path: Path, environ: Mapping[str, str], *, constraint: bool = False) -> RequirementsInput:
    """The requirements of the file and of those it includes, in their order. Raises BadInput naming file and line.

    `constraint`: the file was given as `-c`. Included files are found beside the file that includes them.
    """
    reading = Reading(environ=environ)
    read_file(reading, path, constraint=constraint, within=(), asked_by=None)
    return RequirementsInput(
        requirements=tuple(dict.fromkeys(reading.requirements)), index=reading.index,
        files=tuple(dict.fromkeys(reading.files)),
    )


def read_file(
    reading: Reading, path: Path, *, constraint: bool, within: tuple[Path, ...], asked_by: str | None,
) -> None:
    """Adds what one file says to `reading`. `within`: the files that are being read around it."""
    shown = os.path.normpath(path)
    where = f"{asked_by}: {shown}" if asked_by else shown
    resolved = resolve(path, where)
    if resolved in within:
        raise BadInput(where, "includes itself", "take one of the two includes out")
    if len(reading.files) >= MOST_FILES:
        raise BadInput(where, f"more than {MOST_FILES} requirement files are included", "include each file once")
    reading.files.append(resolved)
    for line in logical_lines(read_text(path, where), reading.environ, shown):
        for included, is_constraint in read_line(reading, line, shown, constraint=constraint):
            read_file(reading, path.parent / included, constraint=is_constraint, within=(*within, resolved),
                      asked_by=f"{shown} line {line.number}")


def read_line(
    reading: Reading, line: LogicalLine, name: str, *, constraint: bool,
) -> Iterator[tuple[str, bool]]:
    """Adds one line to `reading`; yields (file, whether a constraint) for each file it includes."""
    where = f"{name} line {line.number}"
    if line.requirement:
        hashes = hashes_of(line, where)
        text = requirement_text(line.requirement, where, hashes, constraint=constraint)
        reading.requirements.append(Requirement(text=text, origin=where, constraint=constraint, hashes=hashes))
        return
    options = tuple(options_of(line, where))
    if len(options) > 1 and any(VALUE_OPTIONS[option] in {"requirement", "constraint"} for option, _ in options):
        # pip would read one of them and pass over the rest in silence
        raise BadInput(where, "includes a file among other options", "write each on a line of its own")
    for option, value in options:
        kind = VALUE_OPTIONS[option]
        if kind in {"requirement", "constraint"}:
            if ADDRESS.match(value):
                raise BadInput(where, f"{option} names an address; only files are read", "download it, and name it")
            yield value, kind == "constraint"
        elif kind == "index-url":
            # The last one counts, as in pip
            reading.index = IndexOptions(index_url=value, extra_index_urls=reading.index.extra_index_urls)
        else:
            reading.index = reading.index.then(IndexOptions(extra_index_urls=(value,)))


def options_of(line: LogicalLine, where: str) -> Iterator[tuple[str, str]]:
    """(option, value) of each option of a line without requirement. Raises BadInput for one that is not honoured."""
    words = iter(line.options)
    for word in words:
        if word in ALREADY_SO:
            continue
        option, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if option not in VALUE_OPTIONS:
            raise BadInput(where, f"{option} is not honoured in a requirements file",
                           WHY_NOT.get(option, "take it out"))
        value = value if equals else next(words, "")
        if not value:
            raise BadInput(where, f"{option} is given no value")
        yield option, value


def requirement_text(text: str, where: str, hashes: tuple[str, ...], *, constraint: bool) -> str:
    """The requirement, checked to be PEP 508; the address in `name @ URL` with the line's one hash in its fragment.

    Raises BadInput, which shows no address: it may hold what a variable stands for.
    """
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as Parsed

    if ADDRESS.match(text) or text.startswith((".", "/", "~")) or ("@" not in text and text.endswith(ARCHIVES)):
        raise BadInput(where, "a path or an address is not a requirement by name", "write `name==version`")
    try:
        parsed = Parsed(text)
    except (InvalidRequirement, RecursionError) as error:
        reason = str(error).splitlines()[0] if "://" not in text else "not a PEP 508 requirement"
        raise BadInput(where, f"is not a requirement: {reason}", "write it as `name>=1.0`") from error
    if constraint and parsed.extras:
        raise BadInput(where, f"a constraint cannot have extras: {parsed.name}[{','.join(sorted(parsed.extras))}]",
                       f"write `{parsed.name}{parsed.specifier}`")
    if parsed.url is not None and "#" not in parsed.url and len(hashes) == 1:
        return text.replace(parsed.url, f"{parsed.url}#sha256={hashes[0]}")
    return text


def hashes_of(line: LogicalLine, where: str) -> tuple[str, ...]:
    """The sha256 digests that the line allows, sorted. Raises BadInput for another option or another hash."""
    digests: set[str] = set()
    words = iter(line.options)
    for word in words:
        option, equals, value = word.partition("=")
        value = value if equals else next(words, "")
        if option != "--hash":
            raise BadInput(where, f"{option} is not honoured after a requirement", WHY_NOT.get(option, "take it out"))
        match = HASH.fullmatch(value)
        if match is None or (match["kind"] == "sha256" and len(match["digest"]) != 64):
            raise BadInput(where, f"is not a hash: {value[:90]!r}", "write `--hash=sha256:` and 64 hex digits")
        if match["kind"].lower() != "sha256":
            raise BadInput(where, f"a {match['kind']} hash cannot be compared with the index", "give the sha256")
        digests.add(match["digest"].lower())
    return tuple(sorted(digests))


def resolve(path: Path, where: str) -> Path:
    """The real path of a regular file. Raises BadInput where it is none."""
    try:
        resolved = path.resolve(strict=True)
    except FileNotFoundError as error:
        hint = "check the name: it starts from the folder of the file that names it" if ": " in where else (
            "check the name: a relative one starts from the working directory, in a project file from its folder")
        raise BadInput(where, "no such file", hint) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise BadInput(where, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not resolved.is_file():
        raise BadInput(where, "is not a regular file")
    return resolved


def read_text(path: Path, where: str) -> str:
    """The file's text. Raises BadInput where it cannot be read, is too large or is not UTF-8."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise BadInput(where, f"cannot be read: {error.strerror}") from error
    if len(content) > LARGEST:
        raise BadInput(where, f"is larger than {LARGEST // 1024 // 1024} MB: no requirements file is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{where} line {line}", "is not UTF-8 text", "save it as UTF-8") from error
