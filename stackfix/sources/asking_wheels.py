"""Metadata of wheels as most are, read by the process that asks ahead; None for what metadata.py has to see to."""

from __future__ import annotations

import hashlib

from stackfix.sources.answers import LIMITS, Response
from stackfix.sources.core_metadata import read_fields, record_of
from stackfix.sources.errors import BadMetadata
from stackfix.sources.records import CoreMetadata, IndexFile
from stackfix.sources.wheel_end import metadata_at_end
from stackfix.sources.wheel_inside import part_before_end, range_of
from stackfix.sources.wire import OK, PARTIAL, unpacked


def metadata_beside(file: IndexFile, answer: Response) -> CoreMetadata | None:
    """What is in the file beside the wheel; checked against its hash where the page states one."""
    content = unpacked(answer.headers, answer.body, LIMITS.metadata) if answer.status == OK else None
    if content is None:
        return None
    stated = isinstance(file.core_metadata, str)
    if stated and hashlib.sha256(content).hexdigest() != file.core_metadata:
        return None
    return _read(content, file, "advertised" if stated else "unadvertised")


def part_before(file: IndexFile, end: Response, most: int) -> str | None:
    """As wheel_inside.part_before_end; None for a part that is not as it says."""
    try:
        start, total = range_of(end, file)
    except BadMetadata:
        return None
    return part_before_end(file, end.body, start, total, most)


def metadata_inside(file: IndexFile, end: Response, before: Response | None = None) -> CoreMetadata | None:
    """What is in the wheel's last bytes, and in those before them."""
    try:
        start, total = range_of(end, file)
        if start + len(end.body) != total or (before is not None and before.status != PARTIAL):
            return None
        tail = end.body
        if before is not None:
            begin, _ = range_of(before, file)
            if begin + len(before.body) != start:
                return None
            tail = before.body + tail
    except BadMetadata:
        return None
    content = metadata_at_end(tail, total, file.project, most=LIMITS.metadata)
    return None if content is None else _read(content, file, "range")


def _read(content: bytes, file: IndexFile, basis: str) -> CoreMetadata | None:
    """The record, where it is sound and spells the version as the file's name does: all else is to be thought about."""
    try:
        fields = read_fields(content, file)
        return record_of(fields, file, basis) if fields.get("version") == [file.version] else None
    except BadMetadata:
        return None
