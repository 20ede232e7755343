"""Installed Python projects: metadata folders of a site folder, and the rows of their RECORD. Nothing is imported."""

from __future__ import annotations

import errno
import json
import re
from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from typing import Any

from stackfix.inspect.environment_records import Distribution, Note, Origin
from stackfix.inspect.places import MIB, Entry, Root, reason_of

METADATA_LIMIT = 2 * MIB        # headers come first; a README behind them is not read further than this
RECORD_LIMIT = 16 * MIB
MAX_ROWS = 200_000             # a wheel of 30,000 files is a very large one
SMALL = 1 << 16
NAME = re.compile(r"[A-Z0-9](?:[A-Z0-9._-]{0,200}[A-Z0-9])?", re.IGNORECASE)
FOLDER = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)(?:-py[\d.]+(?:-[\w.-]+)?)?\.(?:dist-info|egg-info|egg)")
USERINFO = re.compile(r"(?<=://)[^/?#\s]*@")
SUFFIXES = {".dist-info": "dist-info", ".egg-info": "egg-info", ".egg": "egg"}

Row = tuple[str, str | None, int | None]    # path and hash as RECORD writes them, size


def normalised(name: str) -> str:
    """PEP 503: `Flash_Attn` as `flash-attn`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def without_credentials(url: str) -> str:
    return USERINFO.sub("", url)


def read_distributions(root: Root, site: str, entries: tuple[Entry, ...], notes: list[Note]) -> Iterator[Distribution]:
    """Every project of one site folder. What cannot be read becomes a note, and the others still come."""
    for entry in entries:
        kind = SUFFIXES.get(f".{entry.name.rpartition('.')[2]}")
        path = f"{site}/{entry.name}"
        if entry.name.startswith("~"):
            notes.append(Note(path=path, reason="left by an interrupted removal or upgrade; Python does not see it"))
        elif kind is not None and entry.kind != "other":
            found = read_distribution(root, site, path, kind, notes)
            if found is not None:
                yield found


def read_distribution(root: Root, site: str, path: str, kind: str, notes: list[Note]) -> Distribution | None:
    """The project of one metadata folder; None, with a note, where it does not say its name and version."""
    place = f"{path}/EGG-INFO" if kind == "egg" else path
    metadata = f"{place}/METADATA" if kind == "dist-info" else f"{place}/PKG-INFO" if root.is_folder(place) else place
    try:
        headers = parse_headers(root.read_head(metadata, METADATA_LIMIT))
    except OSError as error:
        notes.append(Note(path=metadata, reason=reason_of(error)))
        return None
    name, version = first(headers, "name"), first(headers, "version")
    if name is None or version is None or not NAME.fullmatch(name):
        notes.append(Note(path=metadata, reason="states no usable name and version"))
        return None
    wheel = parse_headers(find_bytes(root, f"{place}/WHEEL")) if kind == "dist-info" else []
    return Distribution(
        name=normalised(name), spelling=name, version=version, metadata=path, site=site, kind=kind,
        requires=every(headers, "requires-dist"), requires_python=first(headers, "requires-python"),
        extras=every(headers, "provides-extra"), tags=every(wheel, "tag"), build=first(wheel, "build"),
        generator=first(wheel, "generator"), installer=first_line(root, f"{place}/INSTALLER"),
        requested=root.exists(f"{place}/REQUESTED"), origin=read_origin(root, f"{place}/direct_url.json", notes),
        record=kind == "dist-info" and root.lexists(f"{place}/RECORD"), manager="pip", conda_package=None,
    )


def parse_headers(content: bytes) -> list[tuple[str, str]]:
    """(lower-case key, value) in file order, up to the empty line before the description; folded lines joined."""
    head = re.split(rb"\r?\n\r?\n", content.lstrip(b"\xef\xbb\xbf"), maxsplit=1)[0]
    found: list[tuple[str, list[str]]] = []
    for line in head.decode("utf-8", "replace").splitlines():
        key, colon, value = line.partition(":")
        if line[:1] in (" ", "\t"):
            if found:
                found[-1][1].append(line.strip())
        elif colon:
            found.append((key.strip().lower(), [value.strip()]))
    return [(key, " ".join(parts)) for key, parts in found]


def first(headers: list[tuple[str, str]], key: str) -> str | None:
    return next((value for name, value in headers if name == key and value), None)


def every(headers: list[tuple[str, str]], key: str) -> tuple[str, ...]:
    return tuple(value for name, value in headers if name == key and value)


def find_bytes(root: Root, path: str) -> bytes:
    """The head of a small file; nothing where it cannot be read."""
    try:
        return root.read_head(path, SMALL)
    except OSError:
        return b""


def first_line(root: Root, path: str) -> str | None:
    lines = find_bytes(root, path).decode("utf-8", "replace").strip().splitlines()
    return lines[0].strip()[:100] if lines else None


def read_origin(root: Root, path: str, notes: list[Note]) -> Origin | None:
    """Where the project came from, when it was not an index (PEP 610)."""
    try:
        stated: Any = json.loads(root.read_bytes(path, SMALL))
        url = stated["url"]
        if not isinstance(url, str):
            raise TypeError     # noqa: TRY301 - told like every other wrong shape, below
        folder, vcs, archive = (stated.get(key) or {} for key in ("dir_info", "vcs_info", "archive_info"))
        sha256 = (archive.get("hashes") or {}).get("sha256") or str(archive.get("hash") or "").partition("sha256=")[2]
        return Origin(url=without_credentials(url), editable=folder.get("editable") is True,
                      commit=as_text(vcs.get("commit_id")), sha256=as_text(sha256))
    except (FileNotFoundError, NotADirectoryError):     # an egg-info may be a file
        return None
    except OSError as error:
        notes.append(Note(path=path, reason=reason_of(error)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        notes.append(Note(path=path, reason="is no direct_url.json as PEP 610 has it"))
    return None


def as_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def read_record(root: Root, distribution: Distribution, notes: list[Note]) -> list[Row]:
    """Rows of RECORD; none, with a note, where it cannot be read."""
    path = f"{distribution.metadata}/RECORD"
    try:
        rows, wrong = parse_record(root.read_bytes(path, RECORD_LIMIT))
    except OSError as error:
        notes.append(Note(path=path, reason=reason_of(error)))
        return []
    if wrong:
        notes.append(Note(path=path, reason=f"{wrong} lines are no RECORD rows"))
    return rows


def parse_record(content: bytes) -> tuple[list[Row], int]:
    """Rows, and how many lines are none. Raises OSError for a file that could only exhaust the memory.

    Plain lines are split by hand: csv takes twice as long, and so would a call for each line.
    """
    if content.count(b"\n") > MAX_ROWS:
        raise OSError(errno.EFBIG, f"has more than {MAX_ROWS} lines")
    # surrogateescape: names must equal those that the disk gives, whatever their bytes
    text = content.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    lines = [line for line in text.split("\n") if line]
    if '"' not in text and "\0" not in text:
        try:
            rows = [(path, digest or None, int(size) if size else None)
                    for path, digest, size in [line.rsplit(",", 2) for line in lines]]
        except ValueError:      # a line that is no row, or no number: found one by one
            pass
        else:
            if all(row[0] for row in rows):
                return rows, 0
    return parse_lines(lines)


def parse_lines(lines: Iterable[str]) -> tuple[list[Row], int]:
    """Rows of lines of which some are quoted or wrong, and how many are wrong."""
    rows, wrong = list[Row](), 0
    for line in lines:
        path, digest, size = line.rsplit(",", 2) if '"' not in line and line.count(",") > 1 else split_quoted(line)
        try:
            number = int(size) if size else None
        except ValueError:
            path = ""
        if not path or "\0" in path:
            wrong += 1
        else:
            rows.append((path, digest or None, number))
    return rows, wrong


def split_quoted(line: str) -> tuple[str, str, str]:
    """Cells of a line that csv must read; empty ones where it is no row."""
    import csv

    try:
        cells = next(csv.reader([line], strict=True), []) if len(line) < SMALL else []
    except csv.Error:
        cells = []
    return (cells[0], cells[1], cells[2]) if len(cells) == 3 else ("", "", "")


def sha256_of(digest: str | None) -> str | None:
    """RECORD's `sha256=` and unpadded base64 as hexadecimal; None for another hash or none."""
    if digest is None or not digest.startswith("sha256="):
        return None
    try:
        found = a2b_base64(digest[7:].replace("-", "+").replace("_", "/") + "=")
    except ValueError:      # binascii.Error is one
        return None
    return found.hex() if len(found) == 32 else None
