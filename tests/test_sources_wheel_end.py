"""METADATA out of the last bytes of real wheels: what zipfile reads, or nothing."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest

from stackfix.sources.archives import metadata_in_wheel
from stackfix.sources.wheel_end import first_needed, metadata_at_end

MOST = 16 * 1024 * 1024
TEXT = b"Metadata-Version: 2.1\nName: Demo\nVersion: 1.0\n" + b"Requires-Dist: other\n" * 50
OURS = "demo-1.0.dist-info/METADATA"


def wheel(*names: str, method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"", before: int = 0) -> bytes:
    """A wheel with these files, METADATA among them."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for number in range(before):
            archive.writestr(f"demo/module_{number}.py", f"NUMBER = {number}\n")
        for name in names:
            archive.writestr(name, TEXT if name == OURS else b"something else")
        archive.comment = comment
    return stream.getvalue()


@pytest.mark.parametrize("content", [
    wheel(OURS), wheel(OURS, method=zipfile.ZIP_STORED), wheel("demo/__init__.py", OURS, "demo-1.0.dist-info/RECORD"),
    wheel("demo/_vendor/other-2.0.dist-info/METADATA", OURS, before=2000),
    wheel("other-2.0.dist-info/METADATA", OURS), wheel("demo/METADATA", OURS),
], ids=["packed", "stored", "between others", "vendored and many", "another project's", "of that name"])
def test_what_zipfile_reads(content: bytes) -> None:
    found = metadata_at_end(content, len(content), "demo", most=MOST)
    assert found == TEXT == metadata_in_wheel(io.BytesIO(content), "demo")


def test_a_part_is_enough_where_it_holds_all() -> None:
    content = wheel(OURS, before=3000)
    directory = int.from_bytes(content[-6:-2], "little")
    tail = content[directory - 2000:]
    assert metadata_at_end(tail, len(content), "demo", most=MOST) == TEXT
    assert metadata_at_end(content[directory:], len(content), "demo", most=MOST) is None
    assert metadata_at_end(content[directory + 1:], len(content), "demo", most=MOST) is None


def test_where_more_is_needed_it_is_told_from_where() -> None:
    content = wheel("demo/__init__.py", OURS, "demo-1.0.dist-info/RECORD", before=3000)
    total, directory = len(content), int.from_bytes(content[-6:-2], "little")
    header = content.index(OURS.encode()) - 30
    for begin in (directory + 100, directory + 100_000, total - 22):
        found = first_needed(content[begin:], total, "demo")
        assert found is not None
        assert found <= header
    assert first_needed(content[directory:], total, "demo") == header
    assert first_needed(content[header:], total, "demo") == header
    assert first_needed(content, total, "other") is None
    assert first_needed(content[:-1], total - 1, "demo") is None
    assert first_needed(content[total - 21:], total, "demo") is None


def test_what_is_far_before_the_end_is_not_told() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(OURS, TEXT)
        archive.writestr("demo/weights", bytes(600_000))
    content = stream.getvalue()
    assert first_needed(content[-200:], len(content), "demo") is None


def changed(change: Callable[[bytearray], object]) -> bytes:
    """A wheel with damage."""
    content = bytearray(wheel(OURS))
    change(content)
    return bytes(content)


def entry_of(content: bytes | bytearray) -> int:
    return content.rindex(b"PK\1\2")


@pytest.mark.parametrize("content", [
    b"", b"PK\5\6", b"no archive at all, and longer than the end of one",
    wheel("demo/__init__.py"),
    wheel(OURS, "Demo-1.0.dist-info/METADATA"),
    wheel(OURS, comment=b"a comment"),
    b"before" + wheel(OURS),
    changed(lambda c: c.__setitem__(entry_of(c) + 8, c[entry_of(c) + 8] | 1)),      # encrypted
    changed(lambda c: c.__setitem__(entry_of(c) + 10, 99)),                         # another method
    changed(lambda c: c.__setitem__(entry_of(c) + 16, c[entry_of(c) + 16] ^ 1)),    # another sum
    changed(lambda c: c.__setitem__(entry_of(c) + 24, c[entry_of(c) + 24] ^ 1)),    # another size
    changed(lambda c: c.__setitem__(slice(entry_of(c) + 24, entry_of(c) + 28), b"\xff\xff\xff\x7f")),
    changed(lambda c: c.__setitem__(entry_of(c) + 42, 7)),                          # another place
    changed(lambda c: c.__setitem__(30, ord("x"))),                                 # another name before the content
    changed(lambda c: c.__setitem__(60, c[60] ^ 0xFF)),                             # damaged
], ids=lambda content: str(len(content)))
def test_what_is_unusual_is_left_to_zipfile(content: bytes) -> None:
    assert metadata_at_end(content, len(content), "demo", most=MOST) is None


def test_it_may_not_be_larger_than_allowed() -> None:
    content = wheel(OURS)
    assert metadata_at_end(content, len(content), "demo", most=len(TEXT)) == TEXT
    assert metadata_at_end(content, len(content), "demo", most=len(TEXT) - 1) is None


def test_an_entry_inside_a_comment_does_not_count() -> None:
    """One that zipfile would not see, in the comment of another entry."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(OURS, TEXT)
    real = stream.getvalue()
    hidden = real[real.rindex(b"PK\1\2"):real.rindex(b"PK\5\6")]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        info = zipfile.ZipInfo(OURS)
        info.comment = hidden
        archive.writestr(info, TEXT)
    content = stream.getvalue()
    assert metadata_at_end(content, len(content), "demo", most=MOST) is None
    assert metadata_in_wheel(io.BytesIO(content), "demo") == TEXT
