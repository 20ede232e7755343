"""conda-meta, as conda writes it and as it should not be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackfix.errors import Unreachable
from stackfix.inspect.conda import MAX_FILES, CondaFile, read_conda
from stackfix.inspect.environment_records import Note
from stackfix.inspect.places import Root
from tests.inspect_trees import conda_package, write


def test_a_prefix_without_conda_is_none(tmp_path: Path) -> None:
    assert read_conda(Root(str(tmp_path)), "", []) is None


def test_packages_and_their_files(tmp_path: Path) -> None:
    body = b"x = 1\n"
    conda_package(tmp_path, "pytorch", "2.3.1", {
        "lib/python3.11/site-packages/torch/__init__.py": body,
        "lib/python3.11/site-packages/torch-2.3.1-py3.11.egg-info/PKG-INFO": b"Name: torch\nVersion: 2.3.1\n",
    }, build="py311_cuda12.1_0", more={"channel": "https://user:pw@conda.test/t/to-ken/pytorch/linux-64"})
    write(tmp_path, "conda-meta/history", "==> 2024 <==\n")
    notes: list[Note] = []
    answer = read_conda(Root(str(tmp_path)), "", notes)
    assert answer is not None
    conda, (content,) = answer
    assert (conda.history, conda.base, conda.variables) == ("/conda-meta/history", False, ())
    package = content.package
    assert (package.name, package.version, package.build) == ("pytorch", "2.3.1", "py311_cuda12.1_0")
    assert package.channel == "https://conda.test/pytorch/linux-64"
    assert (package.depends, package.projects, package.files) == (("libgcc",), ("torch",), 2)
    assert content.files[0].size == len(body)
    assert notes == []


def test_what_installing_rewrites_has_no_size(tmp_path: Path) -> None:
    sha = "a" * 64
    paths = [
        {"_path": "bin/tool", "path_type": "hardlink", "size_in_bytes": 9, "sha256": sha,
         "prefix_placeholder": "/opt/x", "file_mode": "text"},
        {"_path": "lib/a.so", "path_type": "hardlink", "size_in_bytes": 9, "sha256": sha,
         "prefix_placeholder": "/opt/x", "file_mode": "binary", "sha256_in_prefix": "b" * 64},
        {"_path": "bin/known", "path_type": "hardlink", "size_in_bytes": 9, "sha256": sha,
         "prefix_placeholder": "/opt/x", "file_mode": "text", "sha256_in_prefix": "c" * 64},
        {"_path": "lib/b.so", "path_type": "softlink", "size_in_bytes": 9, "sha256": sha},
        {"_path": "lib/c.so", "path_type": "hardlink", "size_in_bytes": 9, "sha256": sha},
    ]
    conda_package(tmp_path, "x", "1", {}, more={"paths_data": {"paths": paths}, "files": ["lib/c.so", "lib/d.pyc"]})
    answer = read_conda(Root(str(tmp_path)), "", [])
    assert answer is not None
    assert answer[1][0].files == (
        CondaFile("bin/tool", None, None), CondaFile("lib/a.so", 9, "sha256:" + "b" * 64),
        CondaFile("bin/known", None, "sha256:" + "c" * 64), CondaFile("lib/b.so", None, None),
        CondaFile("lib/c.so", 9, f"sha256:{sha}"), CondaFile("lib/d.pyc", None, None))


def test_the_base_prefix_and_its_variables(tmp_path: Path) -> None:
    conda_package(tmp_path, "conda", "24.5", {})
    write(tmp_path, "conda-meta/state", json.dumps({"env_vars": {"LD_LIBRARY_PATH": "/opt/conda/lib"}}))
    answer = read_conda(Root(str(tmp_path)), "", [])
    assert answer is not None
    assert answer[0].base
    assert answer[0].variables == (("LD_LIBRARY_PATH", "/opt/conda/lib"),)


@pytest.mark.parametrize("text", [
    "", "{", "[]", "null", "3", '{"name": "x"}', '{"name": 1, "version": "1", "build": "0"}', "[" * 50_000,
    '{"name": "x", "version": "1", "build": "0", "files": 3}',
    '{"name": "x", "version": "1", "build": "0", "paths_data": {"paths": [3]}}',
    '{"name": "x", "version": "1", "build": "0", "paths_data": {"paths": [{"path": "y"}]}}',
    '{"name": "x", "version": "1", "build": "0", "paths_data": 3}',
])
def test_a_wrong_record_is_a_note_and_the_others_come(tmp_path: Path, text: str) -> None:
    conda_package(tmp_path, "good", "1", {})
    write(tmp_path, "conda-meta/bad-1-0.json", text)
    write(tmp_path, "conda-meta/state", text if text != "null" else "[]")
    notes: list[Note] = []
    answer = read_conda(Root(str(tmp_path)), "", notes)
    assert answer is not None
    assert [each.name for each in answer[0].packages] == ["good"]
    assert notes[0] == Note(path="/conda-meta/bad-1-0.json", reason="is no conda-meta record")


def test_a_record_that_only_exhausts_memory_is_a_note(tmp_path: Path) -> None:
    conda_package(tmp_path, "bad", "1", {}, more={"files": ["x"] * (MAX_FILES + 1)})
    notes: list[Note] = []
    answer = read_conda(Root(str(tmp_path)), "", notes)
    assert answer is not None
    assert answer[1] == ()
    assert len(notes) == 1


def test_records_that_cannot_be_listed_are_no_empty_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything here, so the refusal is the reader's own."""
    conda_package(tmp_path, "good", "1", {})

    class Closed(Root):
        def entries(self, folder: str) -> tuple[()]:
            raise PermissionError(13, "Permission denied", folder)

    with pytest.raises(Unreachable, match="Permission denied"):
        read_conda(Closed(str(tmp_path)), "", [])
