"""Metadata folders and RECORD, as installers write them and as a hostile hand might."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.inspect.environment_records import Distribution, Note, Origin
from stackfix.inspect.places import Root
from stackfix.inspect.wheels import (
    MAX_ROWS,
    METADATA_LIMIT,
    normalised,
    parse_headers,
    parse_record,
    read_distributions,
    read_record,
    sha256_of,
    without_credentials,
)
from tests.inspect_trees import dist_info, link, record_hash, write


def read_all(site: Path) -> tuple[dict[str, Distribution], list[Note]]:
    notes: list[Note] = []
    root = Root(str(site))
    return {each.name: each for each in read_distributions(root, "", root.entries("/"), notes)}, notes


def test_what_a_wheel_says_of_itself(tmp_path: Path) -> None:
    folder = dist_info(tmp_path, "Flash_Attn", "2.5.8", installer="uv", extra={
        "WHEEL": "Wheel-Version: 1.0\nGenerator: bdist_wheel (0.43)\nBuild: 1cu\n"
                 "Tag: cp311-cp311-linux_x86_64\nTag: cp311-cp311-manylinux_2_28_x86_64\n",
        "REQUESTED": "",
    })
    write(folder, "METADATA", "Metadata-Version: 2.1\nName: Flash_Attn\nVersion: 2.5.8\nRequires-Python: >=3.8\n"
          "Requires-Dist: torch\nRequires-Dist: ninja ;\n  extra == 'build'\nProvides-Extra: build\n\nName: prose\n")
    found, notes = read_all(tmp_path)
    each = found["flash-attn"]
    assert (each.spelling, each.version, each.metadata) == ("Flash_Attn", "2.5.8", "/Flash_Attn-2.5.8.dist-info")
    assert each.requires == ("torch", "ninja ; extra == 'build'")
    assert (each.requires_python, each.extras) == (">=3.8", ("build",))
    assert each.tags == ("cp311-cp311-linux_x86_64", "cp311-cp311-manylinux_2_28_x86_64")
    assert (each.build, each.generator, each.installer) == ("1cu", "bdist_wheel (0.43)", "uv")
    assert each.requested
    assert each.record
    assert notes == []


@pytest.mark.parametrize(("stated", "expected"), [
    ({"url": "file:///src/demo", "dir_info": {"editable": True}},
     Origin(url="file:///src/demo", editable=True, commit=None, sha256=None)),
    ({"url": "https://user:word@forge.example/x.git", "vcs_info": {"vcs": "git", "commit_id": "ab12"}},
     Origin(url="https://forge.example/x.git", editable=False, commit="ab12", sha256=None)),
    ({"url": "https://host.test/x.whl", "archive_info": {"hash": "sha256=00ff"}},
     Origin(url="https://host.test/x.whl", editable=False, commit=None, sha256="00ff")),
    ({"url": "https://host.test/x.whl", "archive_info": {"hashes": {"sha256": "00ee"}, "hash": "sha256=00ff"}},
     Origin(url="https://host.test/x.whl", editable=False, commit=None, sha256="00ee")),
])
def test_where_it_came_from(tmp_path: Path, stated: object, expected: Origin) -> None:
    dist_info(tmp_path, "demo", "1", extra={"direct_url.json": json.dumps(stated)})
    assert read_all(tmp_path)[0]["demo"].origin == expected


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"url": 3}', '{"url": "x", "dir_info": 3}', "[" * 30000, '"\ud800"'])
def test_a_wrong_direct_url_is_a_note(tmp_path: Path, text: str) -> None:
    folder = dist_info(tmp_path, "demo", "1")
    (folder / "direct_url.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    found, notes = read_all(tmp_path)
    assert found["demo"].origin is None
    assert [each.path for each in notes] == ["/demo-1.dist-info/direct_url.json"]


def test_old_forms(tmp_path: Path) -> None:
    write(tmp_path, "a-1.0-py3.11.egg-info/PKG-INFO", "Name: a\nVersion: 1.0\n")
    write(tmp_path, "b.egg-info", "Metadata-Version: 1.1\r\nName: b\r\nVersion: 2\r\nDescription: x\r\n        |\r\n")
    write(tmp_path, "c-3-py3.11.egg/EGG-INFO/PKG-INFO", "Name: c\nVersion: 3\n")
    found, notes = read_all(tmp_path)
    assert {name: (each.kind, each.version, each.record) for name, each in found.items()} == {
        "a": ("egg-info", "1.0", False), "b": ("egg-info", "2", False), "c": ("egg", "3", False)}
    assert notes == []


def test_an_interrupted_removal_is_a_note(tmp_path: Path) -> None:
    write(tmp_path, "~orch-2.3.1.dist-info/METADATA", "Name: torch\nVersion: 2.3.1\n")
    write(tmp_path, "torch-2.3.1.dist-info/RECORD")
    found, notes = read_all(tmp_path)
    assert found == {}
    assert [each.path for each in notes] == ["/torch-2.3.1.dist-info/METADATA", "/~orch-2.3.1.dist-info"]


@pytest.mark.parametrize("metadata", [
    b"", b"\x00\xff" * 5000, b"Name: x\n", b"Version: 1\n", b"Name: ../x\nVersion: 1\n", b"Name: x y\nVersion: 1\n",
    b" " * 100_000, b"Name:\nVersion:\n", "Name: x\u2028\nVersion".encode(),
])
def test_metadata_without_name_and_version_is_a_note(tmp_path: Path, metadata: bytes) -> None:
    folder = dist_info(tmp_path, "demo", "1")
    (folder / "METADATA").write_bytes(metadata)
    dist_info(tmp_path, "other", "2")
    found, notes = read_all(tmp_path)
    assert found.keys() == {"other"}
    assert [each.path for each in notes] == ["/demo-1.dist-info/METADATA"]


def test_huge_metadata_is_read_to_its_limit_only(tmp_path: Path) -> None:
    folder = dist_info(tmp_path, "demo", "1")
    with (folder / "METADATA").open("ab") as stream:
        stream.truncate(4 << 30)        # sparse
    assert (folder / "METADATA").stat().st_size > METADATA_LIMIT
    assert read_all(tmp_path)[0]["demo"].version == "1"


def test_a_metadata_folder_that_leads_outside_is_a_note(tmp_path: Path) -> None:
    dist_info(tmp_path, "demo", "1")
    link(tmp_path / "tree", "demo-1.dist-info", str(tmp_path / "demo-1.dist-info"))
    found, notes = read_all(tmp_path / "tree")
    assert found == {}
    assert len(notes) == 1


def test_names_are_those_of_the_disk_whatever_their_bytes(tmp_path: Path) -> None:
    name = b"caf\xe9.py"
    rows, wrong = parse_record(name + b",,3\n")
    assert wrong == 0
    assert rows[0][0].encode("utf-8", "surrogateescape") == name


def test_lines_that_are_no_rows_are_counted(tmp_path: Path) -> None:
    record = 'a.py,,1\nno comma\n"open,,1\nb.py,,x\n,,1\n\nc\0.py,,1\na,b,c,,2\r\n"q""x.py",,3\n'
    record += f'"{"x" * 70_000}",,1\n'
    folder = dist_info(tmp_path, "demo", "1", record=record)
    notes: list[Note] = []
    rows = read_record(Root(str(tmp_path)), read_all(tmp_path)[0]["demo"], notes)
    assert rows == [("a.py", None, 1), ("a,b,c", None, 2), ('q"x.py', None, 3)]
    assert notes == [Note(path="/demo-1.dist-info/RECORD", reason="6 lines are no RECORD rows")]
    (folder / "RECORD").write_bytes(b"\n" * (MAX_ROWS + 1))
    assert read_record(Root(str(tmp_path)), read_all(tmp_path)[0]["demo"], notes) == []
    assert notes[-1].reason == f"has more than {MAX_ROWS} lines"


def test_a_record_that_is_no_file_is_a_note(tmp_path: Path) -> None:
    for name in ("fifo", "folder", "gone"):
        (dist_info(tmp_path, name, "1") / "RECORD").unlink()
    os.mkfifo(tmp_path / "fifo-1.dist-info/RECORD")
    (tmp_path / "folder-1.dist-info/RECORD").mkdir()
    found, notes = read_all(tmp_path)[0], list[Note]()
    assert {name: each.record for name, each in found.items()} == {"fifo": True, "folder": True, "gone": False}
    assert [read_record(Root(str(tmp_path)), found[name], notes) for name in ("fifo", "folder")] == [[], []]
    assert [each.reason for each in notes] == ["not a plain file"] * 2


PATHS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)


@given(st.lists(st.tuples(PATHS, st.binary(max_size=20)), max_size=20))
def test_what_csv_wrote_is_read(files: list[tuple[str, bytes]]) -> None:
    """RECORD as installers write it: csv, quoted where a path has a comma or a quote."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows((path, record_hash(body), len(body)) for path, body in files)
    rows, wrong = parse_record(text.getvalue().encode())
    assert wrong == 0
    assert [(path, sha256_of(digest), size) for path, digest, size in rows] == [
        (path, hashlib.sha256(body).hexdigest(), len(body)) for path, body in files]


@given(st.binary(max_size=300))
def test_any_bytes_end_in_rows_or_a_count(content: bytes) -> None:
    rows, wrong = parse_record(content)
    assert len(rows) + wrong <= content.count(b"\n") + 1
    parse_headers(content)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_folded_licence_with_empty_lines_does_not_end_the_headers(end: str) -> None:
    """setuptools puts whole licences into METADATA, each line indented: those that were empty too (vllm 0.7.3)."""
    lines = ("Name: some", "License:   Apache License", "        Version 2.0", "        ", "        Terms", "\t",
             "Requires-Dist: torch==2.5.1", "", "Requires-Dist: of the description")
    found = parse_headers(end.join(lines).encode())
    assert [value for key, value in found if key == "requires-dist"] == ["torch==2.5.1"]
    assert [key for key, _ in found] == ["name", "license", "requires-dist"]


@pytest.mark.parametrize("digest", ["md5=abc", "sha256=", "sha256=!!", "sha256=AAAA", "sha256=\u00e9", ""])
def test_another_hash_is_no_sha256(digest: str) -> None:
    assert sha256_of(digest) is None


def test_names_and_addresses() -> None:
    assert normalised("Flash__Attn.X") == "flash-attn-x"
    assert without_credentials("https://a:b@host.test/p@q") == "https://host.test/p@q"
